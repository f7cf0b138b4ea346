package node

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"testing"
	"time"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/market"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
)

// A past is an account's history that exceeds the lists in memory, and the pages of observers and
// long queries.
type past struct {
	*testing.T
	nonce uint64
	order uint64 // one of the oldest that are closed
	open  uint64 // one that is open
	left  uint64 // a withdrawal that ended
	until time.Time
	// lists as answered before the restart
	want map[string]string
}

const (
	pastOrders   = 1200 // that are filled, and have client order ids
	pastMinutes  = 6
	pastDeposits = 210
	pastLeft     = 210
)

func (p *past) next() uint64 { p.nonce++; return p.nonce }

// all sends commands, fifty at a time.
func (p *past) all(e *actors.Engine, list []*actors.Command) (done []*actors.Command) {
	p.Helper()
	for len(list) > 0 {
		n := min(len(list), 50)
		errs := make([]error, n)
		succeeds(p, e.DoAll(list[:n], errs))
		for i, c := range list[:n] {
			if errs[i] != nil || c.Outcome() != actors.Accepted {
				p.Fatalf("command %d is refused: %v %v", len(done)+i, errs[i], c)
			}
		}
		done, list = append(done, list[:n]...), list[n:]
	}
	return done
}

// lives fills a new exchange: ann sells to ben, and to herself, minute by minute.
func (p *past) lives(e *actors.Engine) {
	p.Helper()
	ann := fund(p, e, "ann", map[string]money.Amount{"BTC": 10_000 * coin, "USD": 1e6 * coin})
	ben := fund(p, e, "ben", map[string]money.Amount{"USD": 1e6 * coin})
	id := 0
	order := func(key *directory.Key, side trading.Side, amount money.Amount) *actors.Command {
		id++
		w := orderOf(e, side, 100e8, amount)
		w.ClientID = must[event.ClientID](p)(event.NewClientID(fmt.Sprint("order-", id)))
		return actors.NewOrder(key, p.nonce, w)
	}
	for range pastMinutes {
		var sells []*actors.Command
		for range pastOrders / pastMinutes {
			if len(sells)%50 == 0 {
				p.next()
			}
			sells = append(sells, order(ann, trading.Sell, coin))
		}
		for _, c := range p.all(e, sells) {
			if p.order == 0 {
				p.order = c.Record().Order.ID
			}
			c.Free()
		}
		for _, key := range []*directory.Key{ben, ann} {
			p.next()
			p.all(e, []*actors.Command{order(key, trading.Buy,
				coin*pastOrders/pastMinutes/2)})[0].Free()
		}
		time.Sleep(time.Minute)
	}
	p.until = time.Now()
	p.next()
	for _, c := range p.all(e, []*actors.Command{order(ann, trading.Sell, coin),
		order(ann, trading.Sell, coin)}) {
		p.open = c.Record().Order.ID
		c.Free()
	}
	for i := range pastDeposits {
		must[actors.Admin](p)(e.Deposit("test", "ann", "BTC", coin, fmt.Sprint("again ", i)))
	}
	for range pastLeft {
		c := p.all(e, []*actors.Command{actors.NewWithdrawal(ann, p.next(), 1, coin,
			"bc1q-somewhere")})[0]
		p.left = c.Record().Withdrawal.ID
		c.Free()
		p.all(e, []*actors.Command{actors.NewWithdrawalCancel(ann, p.next(), p.left)})[0].Free()
	}
	p.all(e, []*actors.Command{actors.NewWithdrawal(ann, p.next(), 1, coin,
		"bc1q-somewhere")})[0].Free()
}

// text returns the rows of a list as text, of which there are that many.
func text[T any](rows int) func(list *committed.List[T], err error) (string, error) {
	return func(list *committed.List[T], err error) (string, error) {
		if err != nil {
			return "", err
		}
		defer list.Free()
		if len(list.Rows) != rows {
			err = fmt.Errorf("%d rows, want %d", len(list.Rows), rows)
		}
		return fmt.Sprintf("%+v", list.Rows), err
	}
}

// one is text of one row.
func one[T any](row T, found bool, err error) (string, error) {
	if err == nil && !found {
		err = persistence.ErrNotFound
	}
	return fmt.Sprintf("%+v", row), err
}

// lists are all lists that clients may ask for, by name, each at its bounds.
func (p *past) lists(d *committed.Door, key *directory.Key,
	pair *directory.Pair) map[string]func() (string, error) {
	isObserver := key.Material == nil
	by := func() committed.Client {
		if isObserver {
			return committed.Client{}
		}
		return committed.Client{Key: key, Nonce: p.next()}
	}
	lists := map[string]func() (string, error){
		"one order": func() (string, error) { return one(d.Order(by(), p.order)) },
		"the order of a cancel": func() (string, error) {
			return one(d.OrderOf(key.Account.ID, p.order))
		},
		"the order of a name": func() (string, error) {
			return one(d.OrderNamed(key.Account.ID, pastName(p)))
		},
		"one withdrawal": func() (string, error) { return one(d.WithdrawalOf(p.left)) },
		"candles": func() (string, error) {
			chart, err := d.Candles(by(), committed.ChartQuery{Pair: pair, Frame: market.Minute,
				Until: p.until.Unix(), Limit: 100})
			if err != nil || chart.Older == nil {
				return "", fmt.Errorf("no older candles: %w", err)
			}
			memory := chart.View.Candles[chart.From:chart.To]
			return text[market.Candle](pastMinutes-len(memory))(chart.Older, nil)
		},
	}
	p.trades(lists, d, by, pair.Number)
	p.orders(lists, d, by, pair.Number)
	for currency, rows := range map[uint16]int{0: 2 + pastDeposits, 1: 1 + pastDeposits, 2: 1} {
		lists[fmt.Sprint("deposits of currency ", currency)] = func() (string, error) {
			list, err := d.Deposits(by(), committed.DepositQuery{Currency: currency, Limit: 1000})
			for i := 0; err == nil && i < len(list.Rows); i++ {
				list.Rows[i].Reference = "" // not available to observers
			}
			return text[committed.Deposit](rows)(list, err)
		}
	}
	for status, rows := range map[uint8]int{0: pastLeft + 1, event.WithdrawalNew: 1,
		event.WithdrawalCancelled: pastLeft, event.WithdrawalApproved: 0} {
		lists[fmt.Sprint("withdrawals of status ", status)] = func() (string, error) {
			return text[committed.Withdrawal](rows)(d.Withdrawals(by(),
				committed.WithdrawalQuery{Status: status, Limit: 1000}))
		}
	}
	maps.DeleteFunc(lists, func(name string, _ func() (string, error)) bool {
		return isObserver && !isObservable.MatchString(name)
	})
	return lists
}

// isObservable matches lists that an observer answers: public ones, and those for the answers to
// commands. Members answer the others.
var isObservable = regexp.MustCompile("^(trades|candles|the order|one withdrawal)")

func pastName(p *past) event.ClientID {
	return must[event.ClientID](p)(event.NewClientID("order-7"))
}

// trades adds the lists of trades.
func (p *past) trades(lists map[string]func() (string, error), d *committed.Door,
	by func() committed.Client, pair uint16) {
	until := p.until.UnixMicro()
	const some = 3 * pastOrders / pastMinutes
	for name, q := range map[string]struct {
		committed.TradeQuery
		rows, selling int // of all, and of those in which the account sells
	}{
		"":              {committed.TradeQuery{}, 1000, pastOrders / 2},
		" of a pair":    {committed.TradeQuery{Pair: pair}, 1000, pastOrders / 2},
		" of no trades": {committed.TradeQuery{Pair: pair + 1}, 0, 0},
		" after an offset": {committed.TradeQuery{Pair: pair, Offset: pastOrders - 300}, 300,
			0},
		" oldest first": {committed.TradeQuery{Ascending: true}, 1000, pastOrders / 2},
		" after one":    {committed.TradeQuery{Pair: pair, After: 1, Ascending: true}, 1000, -1},
		" of a time": {committed.TradeQuery{Pair: pair, UntilUs: until,
			SinceUs: until - 3*time.Minute.Microseconds()}, some, some / 2},
	} {
		q.Limit = 1000
		lists["trades"+name] = func() (string, error) {
			return text[committed.Trade](q.rows)(d.Trades(by(), q.TradeQuery))
		}
		lists["own trades"+name] = func() (string, error) {
			return text[committed.OwnTrade](q.rows)(d.OwnTrades(by(), 0, 0, q.TradeQuery))
		}
		if q.selling >= 0 {
			lists["own sales"+name] = func() (string, error) {
				return text[committed.OwnTrade](q.selling)(d.OwnTrades(by(), 0, trading.Sell,
					q.TradeQuery))
			}
		}
	}
}

// orders adds the lists of orders.
func (p *past) orders(lists map[string]func() (string, error), d *committed.Door,
	by func() committed.Client, pair uint16) {
	const all = pastOrders + pastMinutes + 2
	for name, q := range map[string]struct {
		committed.OrderQuery
		rows int
	}{
		"":                  {committed.OrderQuery{}, all},
		" of a pair":        {committed.OrderQuery{Pair: pair}, all},
		" of no orders":     {committed.OrderQuery{Pair: pair + 1}, 0},
		" that buy":         {committed.OrderQuery{Side: trading.Buy}, pastMinutes},
		" that are open":    {committed.OrderQuery{Status: trading.StatusActive}, 2},
		" that are done":    {committed.OrderQuery{Status: trading.StatusDone}, all - 2},
		" cancelled":        {committed.OrderQuery{Status: trading.StatusCancelled}, 0},
		" that wait":        {committed.OrderQuery{Waiting: committed.OnlyWaiting}, 0},
		" that do not wait": {committed.OrderQuery{Waiting: committed.NotWaiting}, all},
		" after an offset":  {committed.OrderQuery{Offset: all - 5}, 5},
		" before one":       {committed.OrderQuery{Before: p.order + 3}, 3},
		" of a name":        {committed.OrderQuery{ClientID: pastName(p)}, 1},
		" of a name, done": {committed.OrderQuery{ClientID: pastName(p),
			Status: trading.StatusDone}, 1},
	} {
		q.Limit = 2000
		lists["orders"+name] = func() (string, error) {
			return text[committed.Order](q.rows)(d.Orders(by(), q.OrderQuery))
		}
	}
}

// answers expects each list as before the restart.
func (p *past) answers(node string, d *committed.Door, key *directory.Key, pair *directory.Pair) {
	p.Helper()
	first := p.want == nil
	if first {
		p.want = map[string]string{}
	}
	for name, list := range p.lists(d, key, pair) {
		switch got, err := list(); {
		case err != nil:
			p.Errorf("%s, %s: %v", node, name, err)
		case first:
			p.want[name] = got
		case got != p.want[name]:
			p.Errorf("%s, %s: %.300s, want %.300s", node, name, got, p.want[name])
		}
	}
}

// pastOptions keep little in memory, and make a snapshot of a past, after its orders.
func pastOptions(o *actors.Options) {
	o.Tests.Candles = 2
	o.Snapshot = committed.SnapshotPolicy{MinRecords: 1500, MaxRecords: 1500}
}

// After a restart with a trimmed journal, and only a part in memory, each list is answered as
// before.
func TestListsAreCompleteAfterRestart(t *testing.T) {
	for name, fresh := range stores {
		t.Run(name, func(t *testing.T) {
			at := fresh(t)
			bubble(t, func(t *testing.T) { answersBehindARestart(t, at) })
		})
	}
}

func answersBehindARestart(t *testing.T, at func() persistence.Store) {
	store := at()
	o := testOptions(store)
	pastOptions(&o)
	e := must[*actors.Engine](t)(actors.Start(t.Context(), o))
	p := &past{T: t}
	p.lives(e)
	key := e.Key([]byte("key-of-ann"))
	p.answers("at first", e.Door, key, e.Pairs()[0])
	for range 2 {
		succeeds(t, e.Stop(context.Background()))
		succeeds(t, store.Close())
		store = at()
		o.Store = store
		e = must[*actors.Engine](t)(actors.Start(t.Context(), o))
		p.answers("restarted", e.Door, e.Key([]byte("key-of-ann")), e.Pairs()[0])
		p.operates(e)
	}
	if n := e.Stats().Meter.RecoveryRecords; n != 0 {
		t.Errorf("there are %d records after the snapshot", n)
	}
	succeeds(t, e.Stop(context.Background()))
	succeeds(t, store.Close())
}

// The same for three restarted nodes, and an observer that starts from a snapshot.
func TestListsAreCompleteAtEveryKindOfNode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		v := newObservatory(t, func(_ int, o *actors.Options) { pastOptions(o) })
		p := &past{T: t}
		r := v.next()
		p.lives(r.Engine)
		p.answers("at first", r.Door, r.Key([]byte("key-of-ann")), r.Pairs()[0])
		v.caughtUp(r)
		time.Sleep(10 * time.Second) // and all have a snapshot
		v.killAll()
		v.startAll()
		r = v.next()
		v.caughtUp(r)
		if began := v.nodes[r.at].committed.Began(); began < 1500 {
			t.Errorf("the node began with the snapshot at %d", began)
		}
		p.answers("the leader", r.Door, r.Key([]byte("key-of-ann")), r.Pairs()[0])
		p.operates(r.Engine)
		a := v.follower((r.at + 1) % len(v.nodes))
		b := &branch{T: t, Follower: a, Commands: a.Commands()}
		b.connected()
		b.key = b.Commands.Key([]byte("key-of-ann"))
		p.answers("a follower", b.Door, b.key, b.Pairs()[0])
		x := v.observe("o1", pastOptions).serves(t)
		p.answers("an observer", x.Door, x.key, x.Pairs()[0])
	})
}

// operates reads all lists of operators, and checks the number of rows.
func (p *past) operates(e *actors.Engine) {
	p.Helper()
	account := e.Key([]byte("key-of-ann")).Account.ID
	count := func(what string, want int, list func(add func()) error) {
		p.Helper()
		n := 0
		if err := list(func() { n++ }); err != nil || n != want {
			p.Errorf("%s: %d rows, want %d: %v", what, n, want, err)
		}
	}
	ctx := p.Context()
	past := must[*committed.Past](p)(e.Past())
	statement := must[*committed.Statement](p)(e.Statement("ann"))
	const orders = pastOrders + 2*pastMinutes + 2
	count("every order", orders, func(add func()) error {
		return e.EveryOrder(ctx, func(*committed.Order) bool { add(); return true })
	})
	count("every trade", pastOrders, func(add func()) error {
		return past.Trades(ctx, 1, func(*committed.Trade) bool { add(); return true })
	})
	count("every deposit", 2+pastDeposits, func(add func()) error {
		return past.Deposits(ctx, account, func(*committed.Deposit) bool { add(); return true })
	})
	count("every withdrawal", 1+pastLeft, func(add func()) error {
		return past.Withdrawals(ctx, func(*committed.Withdrawal) bool { add(); return true })
	})
	count("a statement's trades", pastOrders, func(add func()) error {
		return statement.Trades(ctx, func(*committed.Trade) bool { add(); return true })
	})
	count("a statement's deposits", 2+pastDeposits, func(add func()) error {
		return statement.Deposits(ctx, func(*committed.Deposit) bool { add(); return true })
	})
	count("a statement's withdrawals", 0, func(add func()) error {
		return statement.Left(ctx, func(*committed.Withdrawal) bool { add(); return true })
	})
	_, err := text[committed.Withdrawal](1 + pastLeft)(e.WithdrawalsOf(account, 1000))
	succeeds(p, err)
	_, err = text[committed.Withdrawal](1)(e.AllPending(1000))
	succeeds(p, err)
	_, err = text[committed.Action](2*2 + 3 + pastDeposits)(e.Actions(0, 1000))
	succeeds(p, err)
}
