package committed

import (
	"fmt"
	"slices"
	"testing"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
)

// A feedTest folds records of one pair, and describes the feed's update for each.
type feedTest struct {
	t *testing.T
	c *Side
}

// newFeedTest returns a feedTest of a pair with two accounts, which have 100 of both currencies
// each.
func newFeedTest(t *testing.T) *feedTest {
	records := []event.Record{
		{Kind: event.KindCurrency, Currency: event.Currency{Number: 1, Code: "BTC"}},
		{Kind: event.KindCurrency, Currency: event.Currency{Number: 2, Code: "USD"}},
		{Kind: event.KindPair, NewPair: event.Pair{Number: 1, Name: "BTC_USD", Base: 1, Quote: 2}},
		{Kind: event.KindAccount, Account: event.Account{ID: 1, Name: "ann"}},
		{Kind: event.KindAccount, Account: event.Account{ID: 2, Name: "ben"}}}
	for i := range uint64(4) {
		records = append(records, event.Record{Kind: event.KindDeposit, Deposit: event.Deposit{
			ID: i + 1, Account: uint32(i/2 + 1), Currency: uint16(i%2 + 1), Amount: 100e8,
			Reference: fmt.Sprint(i)}})
	}
	return &feedTest{t, &Side{state: folded(t, records...), feeds: []*feed{{updates: 1, levels: 1,
		watchers: make([]pairWatcher, 1)}}}}
}

// order returns a resting order of ann's (1) or ben's (2).
func order(id uint64, account uint32, side trading.Side, price, amount money.Amount) event.Order {
	return event.Order{ID: id, Account: account, Side: side, Price: money.Price(price * 1e8),
		Amount: amount * 1e8, Remaining: amount * 1e8}
}

// fold folds a record, and describes the feed's update for it; "": none.
func (w *feedTest) fold(r event.Record) string {
	w.t.Helper()
	var e state.Effects
	r.Pair = 1
	if err := w.c.state.Apply(&r, &e); err != nil {
		w.t.Fatal(err)
	}
	f := w.c.feeds[0]
	w.c.noteUpdate(&r, &e)
	if f.forming == nil {
		return ""
	}
	u := f.forming.List[0]
	f.forming = nil
	text := fmt.Sprintf("%d:", u.UpdateID)
	for _, g := range u.Gone {
		text += fmt.Sprintf(" -%d by %d, %v %v at %v;", g.Order, g.ID, g.Side, g.Remaining, g.Price)
	}
	switch {
	case u.Silent:
	case u.Cancel:
		text += fmt.Sprintf(" cancel of %d by %d, %v %v at %v;", u.Cancelled, u.ID, u.Side,
			u.Remaining, u.Price)
	default:
		text += fmt.Sprintf(" +%d, %v %v at %v, %d trades;", u.ID, u.Side, u.Remaining, u.Price,
			len(u.Trades))
	}
	for _, l := range u.Levels {
		text += fmt.Sprintf(" %v at %v=%v", l.Side, l.Price, l.Amount)
	}
	return text
}

// expect folds a record, and expects an update.
func (w *feedTest) expect(what string, r event.Record, want string) {
	w.t.Helper()
	if got := w.fold(r); got != want {
		w.t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestFeedUpdatesOfInstructedOrders(t *testing.T) {
	w := newFeedTest(t)
	f := w.expect
	iceberg := order(1, 1, trading.Sell, 10, 4)
	f("an iceberg is published as displayed", event.Record{Kind: event.KindInstructed,
		Order: iceberg, Instructions: trading.Instructions{Display: 1e8}},
		"1: +1, sell 1 at 10, 0 trades; sell at 10=1")
	f("a stop is sent to its owner only", event.Record{Kind: event.KindStop,
		Order: order(2, 1, trading.Buy, 11, 1), Trigger: trading.Trigger{Price: 12e8,
			When: trading.Rise}}, "")
	f("and so is its change", event.Record{Kind: event.KindAmended,
		Order: order(2, 1, trading.Buy, 11, 1), Amended: event.Amended{ID: 3,
			Was: event.Was{Price: 11e8, Open: 1e8}},
		Trigger: trading.Trigger{Price: 10e8, When: trading.Rise}}, "")
	f("a change of the hidden part is not published", event.Record{Kind: event.KindAmended,
		Order: order(1, 1, trading.Sell, 10, 3), Amended: event.Amended{ID: 4, Kept: true,
			Was: event.Was{Price: 10e8, Open: 4e8}},
		Instructions: trading.Instructions{Display: 1e8, ExpireUs: 50}}, "")
	f("a plain order", event.Record{Kind: event.KindOrder, Order: order(5, 2, trading.Sell, 10, 2)},
		"2: +5, sell 2 at 10, 0 trades; sell at 10=3")
	f("a smaller order in its place", event.Record{Kind: event.KindAmended,
		Order: order(5, 2, trading.Sell, 10, 1), Amended: event.Amended{ID: 6, Kept: true,
			Was: event.Was{Price: 10e8, Open: 2e8}}},
		"3: -5 by 6, sell 2 at 10; +5, sell 1 at 10, 0 trades; sell at 10=2")
	f("an order at another price", event.Record{Kind: event.KindAmended,
		Order: order(5, 2, trading.Sell, 11, 1), Amended: event.Amended{ID: 7,
			Was: event.Was{Price: 10e8, Open: 1e8}}},
		"4: -5 by 7, sell 1 at 10; +5, sell 1 at 11, 0 trades; sell at 10=1 sell at 11=1")

	takes := order(8, 2, trading.Buy, 11, 3)
	takes.Remaining, takes.RestCancelled = 2e8, true
	takes.Trades = []event.Trade{{ID: 1, Maker: 1, MakerAccount: 1, Price: 10e8, Amount: 1e8,
		MakerRemaining: 2e8}}
	kills := takes
	kills.ID, kills.Trades, kills.Remaining = 8, nil, 3e8
	f("a killed order is sent to its owner only", event.Record{
		Kind: event.KindInstructed, Order: kills,
		Instructions: trading.Instructions{FOK: true, Cancelled: trading.CancelledFOK}}, "")
	takes.ID, takes.Amount, takes.Remaining, takes.RestCancelled = 9, 4e8, 1e8, true
	takes.Trades = append(takes.Trades,
		event.Trade{ID: 2, Maker: 1, MakerAccount: 1, Price: 10e8, Amount: 1e8,
			MakerRemaining: 1e8},
		event.Trade{ID: 3, Maker: 1, MakerAccount: 1, Price: 10e8, Amount: 1e8})
	f("own orders are removed before the trades", event.Record{Kind: event.KindInstructed,
		Order: takes, Instructions: trading.Instructions{IOC: true,
			SelfTrade: trading.SelfTradeCancelBoth, Cancelled: trading.CancelledSelfTrade,
			Prevented: []trading.Prevented{{Before: 3, Order: 5, Cancel: 10, Price: 11e8,
				Amount: 1e8}}}},
		"5: -5 by 10, sell 1 at 11; +9, buy 0 at 11, 3 trades; sell at 10=0 sell at 11=0")
	f("a triggered order that rests", event.Record{Kind: event.KindTriggered, TimeUs: 10,
		Order:     order(2, 1, trading.Buy, 11, 1),
		Triggered: event.Triggered{Was: event.Was{Price: 11e8, Open: 1e8}}},
		"6: +2, buy 1 at 11, 0 trades; buy at 11=1")
	f("a cancel", event.Record{Kind: event.KindCancel, TimeUs: 10, Cancel: event.Cancel{ID: 11,
		Order: 2, Account: 1, Side: trading.Buy, Price: 11e8, Remaining: 1e8}},
		"7: cancel of 2 by 11, buy 1 at 11; buy at 11=0")
}

func TestFeedUpdatesOfExpiriesAndOCOs(t *testing.T) {
	w := newFeedTest(t)
	f := w.expect
	until := trading.Instructions{ExpireUs: 50}
	for id := uint64(1); id <= 3; id++ {
		o := order(id, 1, trading.Buy, 5, 1)
		if o.Price = money.Price(id) * 1e8; id == 2 {
			w.fold(event.Record{Kind: event.KindStop, Order: o, Instructions: until,
				Trigger: trading.Trigger{Price: 9e8, When: trading.Rise}})
			continue
		}
		w.fold(event.Record{Kind: event.KindInstructed, Order: o, Instructions: until})
	}
	oco := trading.Instructions{OCO: trading.OCO{Trigger: 4e8, Price: 8e8}}
	w.fold(event.Record{Kind: event.KindInstructed, Order: order(4, 2, trading.Sell, 9, 2),
		Instructions: oco})
	sell := order(5, 2, trading.Sell, 3, 1)
	sell.Remaining, sell.Trades = 0, []event.Trade{{ID: 1, Maker: 3, MakerAccount: 1, Price: 3e8,
		Amount: 1e8}}
	w.fold(event.Record{Kind: event.KindOrder, Order: sell})
	f("another half that is triggered", event.Record{Kind: event.KindTriggered,
		Order: order(4, 2, trading.Sell, 8, 2), Instructions: oco,
		Triggered: event.Triggered{Was: event.Was{Price: 9e8, Open: 2e8}, FromBook: true}},
		"5: -4 by 4, sell 2 at 9; +4, sell 2 at 8, 0 trades; sell at 8=2 sell at 9=0")
	ended := event.Record{Kind: event.KindExpired, TimeUs: 50, Expired: []event.Expired{
		{ID: 6, Order: 2, Account: 1, Side: trading.Buy, Price: 2e8, Open: 1e8},
		{ID: 7, Order: 1, Account: 1, Side: trading.Buy, Price: 1e8, Open: 1e8}}}
	f("orders that expire, one of which has waited", ended,
		"6: -1 by 7, buy 1 at 1; buy at 1=0")
}

func TestListsContainStopsWithInstructions(t *testing.T) {
	w := newFeedTest(t)
	w.fold(event.Record{Kind: event.KindOrder, Order: order(1, 1, trading.Sell, 10, 1)})
	w.fold(event.Record{Kind: event.KindInstructed, Order: order(2, 1, trading.Sell, 11, 1),
		Instructions: trading.Instructions{PostOnly: true}})
	stop := trading.Instructed{Trigger: trading.Trigger{Price: 9e8, When: trading.Fall}}
	w.fold(event.Record{Kind: event.KindStop, Order: order(3, 1, trading.Sell, 8, 1),
		Trigger: stop.Trigger})
	for filter, want := range map[WaitFilter][]uint64{0: {3, 2, 1}, OnlyWaiting: {3},
		NotWaiting: {2, 1}} {
		q := OpenOrders{Account: 1, waiting: filter, Limit: 10}
		ids := openIDs{account: 1, waiting: filter, limit: 10}
		q.from(w.c)
		ids.from(w.c)
		var got []uint64
		for i := range q.Orders {
			got = append(got, q.Orders[i].ID)
			query := OrderQuery{Waiting: filter}
			if !query.passes(&q.Orders[i]) {
				t.Errorf("order %d does not pass the filter %d", q.Orders[i].ID, filter)
			}
		}
		if !slices.Equal(got, want) || !slices.Equal(ids.ids, want) {
			t.Errorf("with the filter %d: orders %v, ids %v, want %v", filter, got, ids.ids, want)
		}
	}
	says := (&trading.Instructed{Instructions: trading.Instructions{PostOnly: true}}).Pack()
	for id, want := range map[uint64]trading.Packed{1: "", 2: says, 3: stop.Pack()} {
		q := OneOrder{Account: 1, ID: id}
		if q.from(w.c); !q.Found || q.Order.Instructed != want || isStop(&q.Order) != (id == 3) {
			t.Errorf("order %d is %+v, want it to say %x", id, q.Order, string(want))
		}
	}
	owner := OwnerOf{Order: 3}
	if owner.from(w.c); owner.Account != 1 {
		t.Errorf("the waiting order is of account %d", owner.Account)
	}
}
