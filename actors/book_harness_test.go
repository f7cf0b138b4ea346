package actors

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"exchange/actors/directory"
	"exchange/actors/metrics"
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
)

// A bookHarness is a book without an engine. Each record of the book is encoded, decoded and
// folded, so all checks of the fold apply in each test. Nothing is released until the test does so.
type bookHarness struct {
	testing.TB
	b          *book
	s          *state.State
	nowUs      int64
	lines      []string    // descriptions of the records since the last read
	ownEntries []*ownEntry // unreleased
	// records are not folded: for measurements only
	unfolded bool
	// of the shared parts of an engine:
	held   bool
	busy   int64
	slots  int64
	taken  int64
	called bool
}

// Accounts of a harness, each with 1,000,000 of both currencies.
const (
	ann = 1 + iota
	bob
	cid
)

func newDesk(t testing.TB, change func(*directory.PairRules, *Limits)) *bookHarness {
	d := &bookHarness{TB: t, s: state.New(), nowUs: 1_000_000, slots: 1 << 40}
	rules, limits := directory.PairRules{Name: "BTC_USD", PriceTick: 1, AmountStep: 1,
		PricePrecision: 8, AmountPrecision: 8, MaximumOrderSize: money.MaxAmount}, DefaultLimits
	if change != nil {
		change(&rules, &limits)
	}
	accounts := directory.New()
	d.setUp(accounts)
	p := directory.NewPair(rules, 1, 1, 2)
	var live atomic.Pointer[Limits]
	live.Store(&limits)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	d.b = newBook(p, d.s, &bookShares{limits: &live, ids: new(idCounters),
		dir: accounts, out: d, clock: &clockAlarm{log: quiet},
		journal: newJournal(nil, "", 0, 1<<20, nil, quiet, new(metrics.Engine),
			nil)})
	t.Cleanup(d.rest)
	return d
}

// setUp makes the accounts, their money, and the pair.
func (d *bookHarness) setUp(accounts *directory.Directory) {
	records := []event.Record{
		{Kind: event.KindCurrency, Currency: event.Currency{Number: 1, Code: "BTC"}},
		{Kind: event.KindCurrency, Currency: event.Currency{Number: 2, Code: "USD"}},
		{Kind: event.KindPair, NewPair: event.Pair{Number: 1, Name: "BTC_USD", Base: 1, Quote: 2}}}
	deposit := uint64(0)
	for id := uint32(ann); id <= cid; id++ {
		name := string(rune('a' + id - ann))
		accounts.Update(&state.Account{ID: id, Name: name})
		records = append(records, event.Record{Kind: event.KindAccount,
			Account: event.Account{ID: id, Name: name}})
		for currency := uint16(1); currency <= 2; currency++ {
			deposit++
			records = append(records, event.Record{Kind: event.KindDeposit,
				Deposit: event.Deposit{ID: deposit, Account: id, Currency: currency,
					Amount: 1e15, Reference: fmt.Sprint(deposit)}})
		}
	}
	for i := range records {
		records[i].TimeUs = 1
		d.apply(&records[i])
	}
}

func (d *bookHarness) apply(r *event.Record) {
	d.Helper()
	if err := d.s.Apply(r, new(state.Effects)); err != nil {
		d.Fatalf("%v\n%+v", err, r)
	}
}

// These implement bookOut.
func (d *bookHarness) countBook(n int64)     { d.busy += n }
func (d *bookHarness) booksMayStart() bool   { return !d.held }
func (d *bookHarness) booksMayTrigger() bool { return !d.held }
func (d *bookHarness) returnTriggerSlot()    { d.taken-- }
func (d *bookHarness) callBook(*book)        { d.called = true }
func (d *bookHarness) takeTriggerSlot() bool {
	if d.taken == d.slots {
		return false
	}
	d.taken++
	return true
}

// fold folds the book's submissions.
func (d *bookHarness) fold() {
	d.Helper()
	for b := d.b.journal.next(); b != nil; b = d.b.journal.next() {
		for _, n := range b.entries {
			var r event.Record
			if rest, err := r.Decode(n.encoded); err != nil || len(rest) > 0 {
				d.Fatalf("%v: %d bytes are left of %+v", err, len(rest), n.record)
			}
			d.apply(&r)
			d.lines = append(d.lines, describeRecord(&r))
			if n.own != nil {
				d.ownEntries = append(d.ownEntries, n.own)
			}
		}
	}
}

// newLines returns the descriptions of the records since the last read.
func (d *bookHarness) newLines() string {
	d.Helper()
	d.fold()
	text := strings.Join(d.lines, " | ")
	d.lines = nil
	return text
}

// release returns all own entries in flight to the book.
func (d *bookHarness) release() {
	list := d.ownEntries
	d.ownEntries = nil
	for _, u := range list {
		d.b.recycle(u)
	}
}

// call delivers the book's message to itself.
func (d *bookHarness) call() {
	d.called, d.b.continuePending = false, false
	d.b.continueQueue()
}

// settle lets the book continue until it is at rest, and returns the descriptions.
func (d *bookHarness) settle() string {
	d.Helper()
	for d.fold(); d.called || len(d.ownEntries) > 0; d.fold() {
		if d.release(); d.called {
			d.call()
		}
	}
	return d.newLines()
}

// rest compares both sides at the end of a test.
func (d *bookHarness) rest() {
	d.Helper()
	if d.Failed() || d.unfolded {
		return
	}
	d.settle()
	d.compare(d.b)
	if d.busy != 0 || d.taken != 0 || d.b.waiting.Len() != 0 {
		d.Errorf("at rest %d books are busy with %d slots, %d commands wait", d.busy, d.taken,
			d.b.waiting.Len())
	}
	d.compare(newBook(d.b.pair, d.s, d.b.bookShares)) // as a restart builds it
}

// compare compares a book with the state.
func (d *bookHarness) compare(b *book) {
	d.Helper()
	if err := d.s.Check(); err != nil {
		d.Error(err)
	}
	if err := sameBook(b, d.s, 3); err != nil {
		d.Error(err)
	}
}

// An orderOption changes an order's instructions.
type orderOption func(*SpecialRequest)

func (d *bookHarness) command(kind event.Kind, account uint32) *Command {
	c := newCommand(kind)
	c.timeUs, c.account, c.pair = d.nowUs, d.b.dir.Account(account), d.b.pair
	return c
}

// send has the book decide a command, and returns the descriptions of all new records.
func (d *bookHarness) send(c *Command) string {
	d.Helper()
	d.b.decide(c)
	return d.newLines()
}

func (d *bookHarness) order(account uint32, side trading.Side, amount money.Amount,
	price money.Price, says ...orderOption) *Command {
	c := d.command(event.KindOrder, account)
	c.order.side, c.order.amount, c.order.price = side, amount, price
	if len(says) > 0 {
		c.special = new(SpecialRequest)
		for _, say := range says {
			say(c.special)
		}
	}
	return c
}

func (d *bookHarness) buy(account uint32, amount money.Amount, price money.Price,
	says ...orderOption) string {
	d.Helper()
	return d.send(d.order(account, trading.Buy, amount, price, says...))
}

func (d *bookHarness) sell(account uint32, amount money.Amount, price money.Price,
	says ...orderOption) string {
	d.Helper()
	return d.send(d.order(account, trading.Sell, amount, price, says...))
}

// amend changes an order, with the reserve that its wallet would make.
func (d *bookHarness) amend(id uint64, a AmendRequest) string {
	d.Helper()
	return d.send(d.amending(id, a))
}

func (d *bookHarness) amending(id uint64, a AmendRequest) *Command {
	o, open := d.s.Pair(1).Open(id)
	c := d.command(event.KindAmended, max(o.Account, ann))
	c.order.id, c.amend = id, &amendRequest{AmendRequest: a}
	if !open {
		return c
	}
	c.order.clientID = d.s.Account(o.Account).ClientIDs.Of(id)
	was := ledger.Terms{Price: o.Price, Amount: o.Amount}
	is := was
	if a.Price != 0 {
		is.Price = a.Price
	}
	if a.Amount != 0 {
		is.Amount = a.Amount
	}
	c.reserved.currency, c.reserved.amount = ledger.NeedOfAmend(o.Side, was, is, 1, 2)
	return c
}

func (d *bookHarness) cancel(id uint64) string {
	d.Helper()
	o, _ := d.s.Pair(1).Open(id)
	c := d.command(event.KindCancel, max(o.Account, ann))
	c.order.id = id
	return d.send(c)
}

func (d *bookHarness) halt(on bool) string {
	d.Helper()
	c := d.command(event.KindHalt, ann)
	c.admin.On, c.operator = on, "op"
	return d.send(c)
}

// want compares descriptions with the expected ones.
func (d *bookHarness) want(what, got, want string) {
	d.Helper()
	if got != want {
		d.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

// describeRecord describes a record: its order, "2x100#1" for a trade of 2 at 100 with order 1,
// "-#1" for a prevented order 1, and the state of the remainder.
func describeRecord(r *event.Record) string {
	switch r.Kind {
	case event.KindOrder:
		return tellOrder("order", r)
	case event.KindInstructed:
		return tellOrder("special", r)
	case event.KindStop:
		return tellOrder("stop", r)
	case event.KindTriggered:
		return tellOrder("triggered", r)
	case event.KindAmended:
		if r.Amended.Kept {
			return tellOrder("kept", r)
		}
		return tellOrder("lost", r)
	case event.KindExpired:
		text := "expired"
		for i := range r.Expired {
			text += fmt.Sprint(" ", r.Expired[i].Order)
		}
		return text
	case event.KindCancel, event.KindSwitchCancel:
		return fmt.Sprint(r.Kind, " ", r.Cancel.Order)
	case event.KindRefusal:
		return event.RefusalName(r.Refusal.Reason)
	}
	return r.Kind.String()
}

func tellOrder(what string, r *event.Record) string {
	o, i := &r.Order, &r.Instructions
	if r.Kind == event.KindOrder {
		i = new(trading.Instructions)
	}
	text, prevented := fmt.Sprint(what, " ", o.ID, ":"), i.Prevented
	for k := 0; k <= len(o.Trades); k++ {
		for ; len(prevented) > 0 && int(prevented[0].Before) == k; prevented = prevented[1:] {
			text += fmt.Sprint(" -#", prevented[0].Order)
		}
		if k < len(o.Trades) {
			t := &o.Trades[k]
			text += fmt.Sprintf(" %dx%d#%d", int64(t.Amount), int64(t.Price), t.Maker)
		}
	}
	if o.Rests() {
		return fmt.Sprintf("%s rests %d at %d", text, int64(o.Remaining), int64(o.Price))
	}
	if o.RestCancelled {
		return fmt.Sprintf("%s cancelled %d (%v)", text, int64(o.Remaining), i.Cancelled)
	}
	return text + " done"
}

// last trades between two accounts at a price, and leaves no order.
func (d *bookHarness) last(price money.Price) {
	d.Helper()
	d.sell(cid, 1, price)
	d.buy(bob, 1, price)
	if d.b.last != price {
		d.Fatalf("the last price is %d, want %d", int64(d.b.last), int64(price))
	}
}

func rising(price money.Price) orderOption {
	return func(s *SpecialRequest) { s.Trigger = trading.Trigger{Price: price, When: trading.Rise} }
}

func falling(price money.Price) orderOption {
	return func(s *SpecialRequest) { s.Trigger = trading.Trigger{Price: price, When: trading.Fall} }
}

func ioc(s *SpecialRequest)         { s.IOC = true }
func marketOrder(s *SpecialRequest) { s.Market, s.IOC = true, true }
func fok(s *SpecialRequest)         { s.FOK = true }
func postOnly(s *SpecialRequest)    { s.PostOnly = true }

// slide lets an order slide from a requested price.
func slide(price money.Price) orderOption {
	return func(s *SpecialRequest) { s.PostOnly, s.Asked = true, price }
}

func until(us int64) orderOption { return func(s *SpecialRequest) { s.ExpireUs = us } }

func apart(mode trading.SelfTrade) orderOption {
	return func(s *SpecialRequest) { s.SelfTrade, s.SelfTradeGiven = mode, true }
}

// own is apart with a mode that differs from the account's setting.
func own(mode trading.SelfTrade) orderOption {
	return func(s *SpecialRequest) {
		s.SelfTrade, s.SelfTradeGiven, s.SelfTradeOwn = mode, true, true
	}
}

func display(amount money.Amount) orderOption {
	return func(s *SpecialRequest) { s.Display = amount }
}

func oco(trigger, price money.Price) orderOption {
	return func(s *SpecialRequest) { s.OCO = trading.OCO{Trigger: trigger, Price: price} }
}

// displays returns the displayed amount of an order.
func (d *bookHarness) displays(id uint64) money.Amount {
	o, _ := d.b.orders.Get(id)
	return o.Remaining - d.b.orders.Iceberg(id).Hidden
}
