package simulation

import (
	"testing"
	"time"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// A told is what happens in a test of the model, one record after the other.
type told struct {
	t     *testing.T
	m     *Model
	us    int64
	id    uint64 // of the newest order or cancel
	trade uint64
	nonce [2]uint64
}

func tell(t *testing.T) *told {
	m := begun(t)
	m.Pairs[0].rules.StopCollar = 5e6
	return &told{t: t, m: m, us: 1e6, id: 2, nonce: [2]uint64{2, 0}}
}

// order returns a record's order of account 1 or 2, which trades with makers.
func (x *told) order(account uint32, side trading.Side, price money.Price, amount money.Amount,
	trades ...event.Trade) event.Record {
	x.id++
	x.us++
	x.nonce[account-1]++
	left := amount
	for i := range trades {
		x.trade++
		trades[i].ID = x.trade
		left -= trades[i].Amount
	}
	return event.Record{Kind: event.KindInstructed, Pair: 1, TimeUs: x.us,
		Order: event.Order{ID: x.id, Account: account, Key: account, Nonce: x.nonce[account-1],
			Side: side, Price: price, Amount: amount, Remaining: left, Trades: trades}}
}

// cut sets the reason for which a record's order ends.
func cut(r event.Record, i trading.Instructions) event.Record {
	r.Instructions, r.Order.RestCancelled = i, i.Cancelled != 0
	return r
}

func (x *told) takes(r event.Record) {
	x.t.Helper()
	if err := x.m.Apply(&r); err != nil {
		x.t.Fatal(err)
	}
}

func (x *told) plain(r event.Record) event.Record {
	r.Kind = event.KindOrder
	return r
}

func of(maker uint64, account uint32, price money.Price, amount,
	left money.Amount) event.Trade {
	return event.Trade{Maker: maker, MakerAccount: account, Price: price, Amount: amount,
		MakerRemaining: left}
}

// stop returns an order of account 2 that waits for a rise to 100 and buys at 102 then.
func (x *told) stop() event.Record {
	r := x.order(2, trading.Buy, 102e8, coin)
	r.Kind, r.Trigger = event.KindStop, trading.Trigger{Price: 100e8, When: trading.Rise}
	return r
}

// triggered returns the record with which that order enters the book.
func (x *told) triggered(id uint64, trades ...event.Trade) event.Record {
	r := x.order(2, trading.Buy, 102e8, coin, trades...)
	x.id--
	r.Kind, r.Order.ID, r.Order.Key, r.Order.Nonce = event.KindTriggered, id, 0, 0
	r.Triggered.Was = event.Was{Price: 102e8, Open: coin}
	return r
}

func TestTheModelTakesOrdersWithInstructions(t *testing.T) {
	x := tell(t)
	const half = coin / 2
	x.takes(cut(x.order(2, trading.Buy, 100e8, coin, of(1, 1, 100e8, coin, coin)),
		trading.Instructions{FOK: true}))
	x.takes(cut(x.order(2, trading.Buy, 100e8, 9*coin),
		trading.Instructions{FOK: true, Cancelled: trading.CancelledFOK}))
	x.takes(cut(x.order(2, trading.Buy, 99e8, coin),
		trading.Instructions{IOC: true, Cancelled: trading.CancelledIOC}))
	slid := cut(x.order(2, trading.Buy, 100e8-1, coin),
		trading.Instructions{PostOnly: true, Asked: 101e8})
	x.takes(slid)
	own := x.order(1, trading.Buy, 100e8, coin)
	x.id++
	x.takes(cut(own, trading.Instructions{
		SelfTrade: trading.SelfTradeCancelBoth, Cancelled: trading.CancelledSelfTrade,
		Prevented: []trading.Prevented{{Order: 1, Cancel: x.id, Price: 100e8, Amount: coin}}}))
	iceberg := cut(x.order(1, trading.Sell, 100e8, coin), trading.Instructions{Display: half})
	x.takes(iceberg)
	if l := x.m.Pairs[0].Book.levels(trading.Sell)[0]; l.Amount.Int64() != int64(2*coin+half) {
		t.Errorf("the book shows %v", l)
	}
	last := iceberg.Order.ID
	spent := cut(x.order(2, trading.Buy, 102e8, 3*coin, of(2, 1, 100e8, 2*coin, 0),
		of(last, 1, 100e8, half, half), of(last, 1, 100e8, half, 0)),
		trading.Instructions{Market: true, IOC: true, Quote: money.Amount(300 * coin)})
	spent.Order.Remaining = 0
	x.takes(spent)
	gtd := cut(x.order(2, trading.Buy, 90e8, coin), trading.Instructions{ExpireUs: 1e6 + 20})
	x.takes(gtd)
	x.id++
	x.us = 1e6 + 20
	x.takes(event.Record{Kind: event.KindExpired, Pair: 1, TimeUs: x.us, Expired: []event.Expired{
		{ID: x.id, Order: gtd.Order.ID, Account: 2, Side: trading.Buy, Price: 90e8, Open: coin}}})
	if p := x.m.Pairs[0]; p.Book.len() != 1 {
		t.Errorf("%d orders rest, and only the one that slid should", p.Book.len())
	}
}

func TestTheModelTakesTriggersAndChanges(t *testing.T) {
	x := tell(t)
	first, second := x.stop(), x.stop()
	x.takes(first)
	x.takes(second)
	if f := x.m.Accounts[1].At(x.m.Seq); f[1].Reserve.Cmp(valueOf(204e8, coin)) != 0 {
		t.Errorf("two stops reserve %v", f)
	}
	x.takes(x.plain(x.order(2, trading.Buy, 100e8, coin, of(1, 1, 100e8, coin, coin))))
	p := x.m.Pairs[0]
	if p.Next() != first.Order.ID || len(p.queue) != 2 || p.updateID != 3 {
		t.Errorf("the queue is %v, after %d updates", p.queue, p.updateID)
	}
	x.takes(x.triggered(first.Order.ID, of(1, 1, 100e8, coin, 0)))
	x.takes(x.triggered(second.Order.ID, of(2, 1, 100e8, coin, coin)))
	less := x.amended(2, 100e8, coin+coin/2, coin/2)
	less.Amended.Was, less.Amended.Kept = event.Was{Price: 100e8, Open: coin}, true
	x.takes(less)
	dearer := x.amended(2, 101e8, coin+coin/2, coin/2)
	dearer.Amended.Was = event.Was{Price: 100e8, Open: coin / 2}
	x.takes(dearer)
	ends := x.amended(2, 101e8, coin+coin/2, coin/2)
	ends.Amended.Was = event.Was{Price: 101e8, Open: coin / 2}
	x.takes(cut(ends, trading.Instructions{Cancelled: trading.CancelledAmended}))
	if p.Book.len() != 0 || len(p.waiting) != 0 || len(p.queue) != 0 {
		t.Errorf("%+v is left", p)
	}
}

// amended returns a change of a sell order of account 1.
func (x *told) amended(id uint64, price money.Price, amount, left money.Amount) event.Record {
	r := x.order(1, trading.Sell, price, amount)
	r.Kind, r.Order.ID, r.Order.Remaining, r.Amended.ID = event.KindAmended, id, left, x.id
	return r
}

func TestTheModelTakesSwitches(t *testing.T) {
	x := tell(t)
	x.m.SwitchGrace = time.Second
	arms := event.Record{Kind: event.KindSwitch, TimeUs: x.us, Switch: event.Switch{Account: 1,
		Key: 1, Nonce: 3, Armed: true, DueUs: x.us + 5e6, Seconds: 5, Side: trading.Sell}}
	ended := event.Record{Kind: event.KindSwitch, TimeUs: x.us + 5e6,
		Switch: event.Switch{Account: 1, Key: 1, DueUs: x.us + 5e6}}
	swept := func(id, order uint64) event.Record {
		return event.Record{Kind: event.KindSwept, Pair: 1, TimeUs: x.us + 5e6,
			Cancel: event.Cancel{ID: id, Order: order, Account: 1, Key: 1, Side: trading.Sell,
				Price: 100e8, Remaining: 2 * coin, Reason: trading.CancelledSwitch}}
	}
	early, late := swept(3, 1), ended
	early.TimeUs = x.us
	late.Switch.DueUs++
	for mistake, list := range map[string][]event.Record{
		"a switch that nobody has armed":            {swept(3, 1)},
		"a switch that fires early":                 {arms, early},
		"a switch that ends without its cancels":    {arms, ended},
		"a switch that ends before its last cancel": {arms, swept(3, 1), ended},
		"a switch that ends for another due time":   {arms, swept(3, 1), swept(4, 2), late},
		"a switch that is set again while it fires": {arms, swept(3, 1), again(arms)},
		"a switch that was taken back, and fires":   {arms, off(arms), swept(3, 1)},
		"a due time that is not the seconds ahead":  {dueLater(arms)},
		"a switch that fires in the grace behind it": {arms, maintained(x.us), swept(3, 1),
			swept(4, 2), ended},
	} {
		one, err := tell(t), error(nil)
		one.m.SwitchGrace = time.Minute
		if list[0].Kind != event.KindSwept && len(list) > 1 && list[1].Kind ==
			event.KindMaintenance {
			one.takes(list[0])
			one.takes(event.Record{Kind: event.KindMaintenance,
				Maintenance: event.Maintenance{On: true}})
			list = list[1:]
		}
		for i := range list {
			if err == nil {
				err = one.m.Apply(&list[i])
			}
		}
		if err == nil {
			t.Errorf("%s is taken", mistake)
		}
	}
	for _, r := range []event.Record{arms, swept(3, 1), swept(4, 2), ended} {
		x.takes(r)
	}
}

func again(r event.Record) event.Record {
	r.Switch.Nonce, r.TimeUs, r.Switch.DueUs = 4, r.TimeUs+6e6, r.Switch.DueUs+6e6
	return r
}

func off(r event.Record) event.Record {
	r.Switch.Armed, r.Switch.DueUs, r.Switch.Nonce = false, 0, 4
	return r
}

func dueLater(r event.Record) event.Record {
	r.Switch.DueUs++
	return r
}

func maintained(us int64) event.Record {
	return event.Record{Kind: event.KindMaintenance, TimeUs: us + 1}
}

func takes(x *told, i trading.Instructions, amount money.Amount) event.Record {
	filled := min(amount, 2*coin)
	return cut(x.order(2, trading.Buy, 100e8, amount, of(1, 1, 100e8, filled, 2*coin-filled)), i)
}

// wrong are records that must not follow what they themselves tell before.
var wrong = map[string]func(x *told) event.Record{
	"a fok in part": func(x *told) event.Record {
		return takes(x, trading.Instructions{FOK: true, Cancelled: trading.CancelledFOK}, 9*coin)
	},
	"a fok that does nothing where it can be filled": func(x *told) event.Record {
		return cut(x.order(2, trading.Buy, 100e8, coin),
			trading.Instructions{FOK: true, Cancelled: trading.CancelledFOK})
	},
	"an ioc that rests": func(x *told) event.Record {
		return cut(x.order(2, trading.Buy, 99e8, coin), trading.Instructions{IOC: true})
	},
	"a post-only order that takes": func(x *told) event.Record {
		return takes(x, trading.Instructions{PostOnly: true}, coin)
	},
	"a post-only order that crosses": func(x *told) event.Record {
		return cut(x.order(2, trading.Buy, 100e8, coin), trading.Instructions{PostOnly: true})
	},
	"a slide by two ticks": func(x *told) event.Record {
		return cut(x.order(2, trading.Buy, 100e8-2, coin),
			trading.Instructions{PostOnly: true, Asked: 101e8})
	},
	"an own trade where it is forbidden": func(x *told) event.Record {
		return cut(x.order(1, trading.Buy, 100e8, coin, of(1, 1, 100e8, coin, coin)),
			trading.Instructions{SelfTrade: trading.SelfTradeCancelOldest})
	},
	"another's order prevented": func(x *told) event.Record {
		r := x.order(2, trading.Buy, 100e8, coin)
		return cut(r, trading.Instructions{
			SelfTrade: trading.SelfTradeCancelBoth, Cancelled: trading.CancelledSelfTrade,
			Prevented: []trading.Prevented{{Order: 1, Cancel: x.id + 1, Price: 100e8,
				Amount: 2 * coin}}})
	},
	"a trade of an order whose time was up": func(x *told) event.Record {
		x.takes(cut(x.order(1, trading.Sell, 99e8, coin),
			trading.Instructions{ExpireUs: 1e6 + 2}))
		return x.plain(x.order(2, trading.Buy, 99e8, coin, of(x.id, 1, 99e8, coin, 0)))
	},
	"an order that takes after its own time": func(x *told) event.Record {
		return takes(x, trading.Instructions{ExpireUs: 1e6}, coin)
	},
	"an expiry before its time": func(x *told) event.Record {
		g := cut(x.order(1, trading.Sell, 101e8, coin),
			trading.Instructions{ExpireUs: 1e6 + 9})
		x.takes(g)
		return event.Record{Kind: event.KindExpired, Pair: 1, TimeUs: x.us + 1,
			Expired: []event.Expired{{ID: x.id + 1, Order: g.Order.ID, Account: 1,
				Side: trading.Sell, Price: 101e8, Open: coin}}}
	},
	"an iceberg whose next part keeps its place": func(x *told) event.Record {
		x.takes(cut(x.order(1, trading.Sell, 99e8, 2*coin),
			trading.Instructions{Display: coin}))
		x.takes(x.plain(x.order(1, trading.Sell, 99e8, coin)))
		return x.plain(x.order(2, trading.Buy, 99e8, 2*coin,
			of(x.id-1, 1, 99e8, coin, coin), of(x.id-1, 1, 99e8, coin, 0)))
	},
	"more than the money buys": func(x *told) event.Record {
		r := takes(x, trading.Instructions{Market: true, Quote: money.Amount(50 * coin)}, coin)
		return r
	},
	"a stop that the last price has reached": func(x *told) event.Record {
		x.takes(x.plain(x.order(2, trading.Buy, 100e8, coin, of(1, 1, 100e8, coin, coin))))
		return x.stop()
	},
	"a stop that enters without a trigger": func(x *told) event.Record {
		s := x.stop()
		x.takes(s)
		return x.triggered(s.Order.ID, of(1, 1, 100e8, coin, coin))
	},
	"a stop that enters before another": func(x *told) event.Record {
		x.takes(x.stop())
		s := x.stop()
		x.takes(s)
		x.takes(x.plain(x.order(2, trading.Buy, 100e8, coin, of(1, 1, 100e8, coin, coin))))
		return x.triggered(s.Order.ID, of(1, 1, 100e8, coin, 0))
	},
	"a change that keeps a place it has lost": func(x *told) event.Record {
		r := x.amended(1, 100e8, 3*coin, 3*coin)
		r.Amended.Was, r.Amended.Kept = event.Was{Price: 100e8, Open: 2 * coin}, true
		return r
	},
	"a change that loses a place it keeps": func(x *told) event.Record {
		r := x.amended(1, 100e8, coin, coin)
		r.Amended.Was = event.Was{Price: 100e8, Open: 2 * coin}
		return r
	},
	"a change from another price": func(x *told) event.Record {
		r := x.amended(1, 100e8, coin, coin)
		r.Amended.Was, r.Amended.Kept = event.Was{Price: 101e8, Open: 2 * coin}, true
		return r
	},
	"a change to more than there is money for": func(x *told) event.Record {
		r := x.amended(1, 100e8, 9*coin, 9*coin)
		r.Amended.Was = event.Was{Price: 100e8, Open: 2 * coin}
		return r
	},
}

func TestTheModelRefusesWrongOrdersWithInstructions(t *testing.T) {
	for mistake, plant := range wrong {
		x := tell(t)
		if r := plant(x); x.m.Apply(&r) == nil {
			t.Errorf("%s is taken", mistake)
		}
	}
}
