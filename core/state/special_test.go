package state

import (
	"slices"
	"strings"
	"testing"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// instructed returns a state to break, with two traders, alice (1) and bob (2). Alice sells 1 BTC
// at 10 USD (order 1, plain), and 1 at 12 until 1,000 us (3). Bob sells 2 at 11, of which 0.5 are
// displayed (2), 1 at 13 or, triggered at 8, at 7 (4), 1 at 10 (8, plain), and buys 1 at 9,
// post-only (5). Alice's buy of 1 at 11 waits for a rise to 10 (6), and bob's sell of 1 at 8, ioc,
// for a fall to 9 (7).
func instructed() *State {
	s, t := New(), must{}
	apply(t, s, founding()...)
	for i, d := range []event.Deposit{{Account: 1, Currency: 1, Amount: 10 * coin},
		{Account: 1, Currency: 2, Amount: 1000 * coin},
		{Account: 2, Currency: 1, Amount: 10 * coin},
		{Account: 2, Currency: 2, Amount: 1000 * coin}} {
		d.ID, d.Reference = uint64(i+1), string(rune('a'+i))
		apply(t, s, event.Record{Kind: event.KindDeposit, TimeUs: 20, Deposit: d})
	}
	for id, o := range instructedOrders() {
		o.Pair, o.TimeUs, o.Order.ID, o.Order.Remaining = 1, 30+int64(id), uint64(id+1),
			o.Order.Amount
		apply(t, s, o)
	}
	return s
}

func instructedOrders() []event.Record {
	order := func(account uint32, side trading.Side, price, amount int64) event.Order {
		return event.Order{Account: account, Side: side, Price: money.Price(price * coin),
			Amount: money.Amount(amount * coin)}
	}
	list := []event.Record{
		{Kind: event.KindOrder, Order: order(1, trading.Sell, 10, 1)},
		{Kind: event.KindInstructed, Order: order(2, trading.Sell, 11, 2),
			Instructions: trading.Instructions{Display: coin / 2}},
		{Kind: event.KindInstructed, Order: order(1, trading.Sell, 12, 1),
			Instructions: trading.Instructions{ExpireUs: 1000}},
		{Kind: event.KindInstructed, Order: order(2, trading.Sell, 13, 1),
			Instructions: trading.Instructions{OCO: trading.OCO{Trigger: 8 * coin,
				Price: 7 * coin}}},
		{Kind: event.KindInstructed, Order: order(2, trading.Buy, 9, 1),
			Instructions: trading.Instructions{PostOnly: true}},
		{Kind: event.KindStop, Order: order(1, trading.Buy, 11, 1),
			Trigger: trading.Trigger{Price: 10 * coin, When: trading.Rise}},
		{Kind: event.KindStop, Order: order(2, trading.Sell, 8, 1),
			Instructions: trading.Instructions{IOC: true,
				SelfTrade: trading.SelfTradeCancelNewest},
			Trigger: trading.Trigger{Price: 9 * coin, When: trading.Fall}},
		{Kind: event.KindOrder, Order: order(2, trading.Sell, 10, 1)},
	}
	list[5].Order.ClientID = clientID("six")
	return list
}

// takes returns an ioc buy of bob's that fits instructed: it trades with order 1, takes out bob's
// orders 8 and 2, and its rest is cancelled.
func takes() event.Record {
	return event.Record{Kind: event.KindInstructed, Pair: 1, TimeUs: 40,
		Order: event.Order{ID: 9, Account: 2, Side: trading.Buy, Price: 11 * coin,
			Amount: 3 * coin, Remaining: 2 * coin, RestCancelled: true,
			Trades: []event.Trade{{ID: 1, Maker: 1, MakerAccount: 1, Price: 10 * coin,
				Amount: coin}}},
		Instructions: trading.Instructions{IOC: true, SelfTrade: trading.SelfTradeCancelOldest,
			Cancelled: trading.CancelledIOC, Prevented: []trading.Prevented{
				{Before: 1, Order: 8, Cancel: 10, Price: 10 * coin, Amount: coin},
				{Before: 1, Order: 2, Cancel: 11, Price: 11 * coin, Amount: 2 * coin}}}}
}

// rises returns a plain buy of bob's that trades with order 1 at 10, and so triggers order 6.
func rises() event.Record {
	return event.Record{Kind: event.KindOrder, Pair: 1, TimeUs: 40,
		Order: event.Order{ID: 9, Account: 2, Side: trading.Buy, Price: 10 * coin, Amount: coin,
			Trades: []event.Trade{{ID: 1, Maker: 1, MakerAccount: 1, Price: 10 * coin,
				Amount: coin}}}}
}

// enters returns the entry of order 6 after rises: it trades with order 8.
func enters() event.Record {
	return event.Record{Kind: event.KindTriggered, Pair: 1, TimeUs: 41,
		Order: event.Order{ID: 6, Account: 1, Side: trading.Buy, Price: 11 * coin, Amount: coin,
			ClientID: clientID("six"), Trades: []event.Trade{{ID: 2, Maker: 8, MakerAccount: 2,
				Price: 10 * coin, Amount: coin}}},
		Triggered: event.Triggered{Was: event.Was{Price: 11 * coin, Open: coin}}}
}

// falls returns a plain sell of alice's that trades with order 5 at 9, and one that trades with
// another buy of bob's at 8: together they trigger order 7, and then the other half of order 4.
func falls() []event.Record {
	buy := event.Record{Kind: event.KindOrder, Pair: 1, TimeUs: 40,
		Order: event.Order{ID: 9, Account: 2, Side: trading.Buy, Price: 8 * coin, Amount: coin,
			Remaining: coin}}
	sell := event.Record{Kind: event.KindOrder, Pair: 1, TimeUs: 41,
		Order: event.Order{ID: 10, Account: 1, Side: trading.Sell, Price: 8 * coin,
			Amount: 2 * coin, Trades: []event.Trade{
				{ID: 1, Maker: 5, MakerAccount: 2, Price: 9 * coin, Amount: coin},
				{ID: 2, Maker: 9, MakerAccount: 2, Price: 8 * coin, Amount: coin}}}}
	return []event.Record{buy, sell}
}

// killed returns the entry of order 7 after falls: nothing buys any more.
func killed() event.Record {
	return event.Record{Kind: event.KindTriggered, Pair: 1, TimeUs: 42,
		Order: event.Order{ID: 7, Account: 2, Side: trading.Sell, Price: 8 * coin, Amount: coin,
			Remaining: coin, RestCancelled: true},
		Triggered: event.Triggered{Was: event.Was{Price: 8 * coin, Open: coin}},
		Instructions: trading.Instructions{IOC: true, SelfTrade: trading.SelfTradeCancelNewest,
			Cancelled: trading.CancelledIOC}}
}

// otherHalf returns the entry of the other half of order 4 after killed: it rests at 7.
func otherHalf() event.Record {
	return event.Record{Kind: event.KindTriggered, Pair: 1, TimeUs: 43,
		Order: event.Order{ID: 4, Account: 2, Side: trading.Sell, Price: 7 * coin, Amount: coin,
			Remaining: coin},
		Triggered: event.Triggered{Was: event.Was{Price: 13 * coin, Open: coin}, FromBook: true},
		Instructions: trading.Instructions{OCO: trading.OCO{Trigger: 8 * coin,
			Price: 7 * coin}}}
}

// shrinks returns a change of order 2 to 1.2 BTC, which keeps its priority.
func shrinks() event.Record {
	return event.Record{Kind: event.KindAmended, Pair: 1, TimeUs: 40,
		Order: event.Order{ID: 2, Account: 2, Side: trading.Sell, Price: 11 * coin,
			Amount: 6 * coin / 5, Remaining: 6 * coin / 5},
		Amended: event.Amended{ID: 9, Was: event.Was{Price: 11 * coin, Open: 2 * coin},
			Kept: true},
		Instructions: trading.Instructions{Display: coin / 2}}
}

// crosses returns a change of order 3 to 9 USD, at which it trades with order 5.
func crosses() event.Record {
	return event.Record{Kind: event.KindAmended, Pair: 1, TimeUs: 40,
		Order: event.Order{ID: 3, Account: 1, Key: 1, Nonce: 7, Side: trading.Sell,
			Price: 9 * coin, Amount: 2 * coin, Remaining: coin, Trades: []event.Trade{{ID: 1,
				Maker: 5, MakerAccount: 2, Price: 9 * coin, Amount: coin}}},
		Amended:      event.Amended{ID: 9, Was: event.Was{Price: 12 * coin, Open: coin}},
		Instructions: trading.Instructions{ExpireUs: 2000}}
}

// waitsElse returns a change of order 6, which then waits for 10.5.
func waitsElse() event.Record {
	return event.Record{Kind: event.KindAmended, Pair: 1, TimeUs: 40,
		Order: event.Order{ID: 6, Account: 1, Side: trading.Buy, Price: 12 * coin,
			Amount: 2 * coin, Remaining: 2 * coin, ClientID: clientID("six")},
		Amended: event.Amended{ID: 9, Was: event.Was{Price: 11 * coin, Open: coin}},
		Trigger: trading.Trigger{Price: 21 * coin / 2, When: trading.Rise}}
}

func expires() event.Record {
	return event.Record{Kind: event.KindExpired, Pair: 1, TimeUs: 1000,
		Expired: []event.Expired{{ID: 9, Order: 3, Account: 1, Side: trading.Sell,
			Price: 12 * coin, Open: coin}}}
}

// A spoils changes a record that fits.
type spoils = func(r *event.Record)

// refusesOf returns a function that checks that a state refuses a record after a change, and
// accepts it without.
func refusesOf(t *testing.T, before func() *State, fits func() event.Record) func(name string,
	change spoils, text string) {
	t.Helper()
	s := before()
	apply(t, s, fits())
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	return func(name string, change spoils, text string) {
		t.Helper()
		r := fits()
		change(&r)
		refusedBy(t, before(), name, r, text)
	}
}

func after(records ...event.Record) func() *State {
	return func() *State {
		s := instructed()
		apply(must{}, s, records...)
		return s
	}
}

// rests returns a sell at 14 whose other half is triggered at 8, and then rests at 7.
func rests() event.Record {
	return event.Record{Kind: event.KindInstructed, Pair: 1, TimeUs: 40,
		Order: event.Order{ID: 9, Account: 2, Side: trading.Sell, Price: 14 * coin, Amount: coin,
			Remaining: coin},
		Instructions: trading.Instructions{PostOnly: true, OCO: trading.OCO{Trigger: 8 * coin,
			Price: 7 * coin}}}
}

// retriggers returns a change of order 4, whose other half then waits for 6.
func retriggers() event.Record {
	return event.Record{Kind: event.KindAmended, Pair: 1, TimeUs: 40,
		Order: event.Order{ID: 4, Account: 2, Side: trading.Sell, Price: 13 * coin, Amount: coin,
			Remaining: coin},
		Amended: event.Amended{ID: 9, Was: event.Was{Price: 13 * coin, Open: coin}, Kept: true},
		Instructions: trading.Instructions{OCO: trading.OCO{Trigger: 6 * coin,
			Price: 7 * coin}}}
}

// An order without a price for its other half takes at once when that is triggered.
func TestApplyRefusesOtherHalvesThatCouldOnlyBeCancelled(t *testing.T) {
	for name, fits := range map[string]func() event.Record{"placed": rests,
		"changed": retriggers} {
		f := refusesOf(t, instructed, fits)
		f(name+" as post-only without a price", func(r *event.Record) {
			r.Instructions.PostOnly, r.Instructions.OCO.Price = true, 0
		}, "has another half, but")
		f(name+" to slide without a price", func(r *event.Record) {
			i := &r.Instructions
			i.PostOnly, i.OCO.Price, i.Asked = true, 0, r.Order.Price
		}, "has another half, but")
		f(name+" with an end", func(r *event.Record) { r.Instructions.ExpireUs = 1 << 40 },
			"has another half, but")
		f(name+" as an ioc", func(r *event.Record) {
			r.Instructions.PostOnly, r.Instructions.IOC = false, true
		}, "has another half, but")
	}
	f := rests()
	f.Instructions.PostOnly, f.Instructions.OCO.Price = false, 0
	apply(t, instructed(), f) // it need not have a price
	late := otherHalf()
	late.Kind, late.TimeUs, late.Triggered = event.KindAmended, 44, event.Triggered{}
	late.Amended = event.Amended{ID: 11, Was: event.Was{Price: 7 * coin, Open: coin}, Kept: true}
	late.Instructions.ExpireUs = 1 << 40
	apply(t, after(append(falls(), killed(), otherHalf())...)(), late) // it no longer waits
}

func TestApplyRefusesOrdersWithInstructionsThatDoNotFit(t *testing.T) {
	f := refusesOf(t, instructed, takes)
	f("an id that is given", func(r *event.Record) { r.Order.ID = 8 }, "id 8 is not above 8")
	refusedBy(t, after(halt(1, true))(), "a halted pair", later(takes(), 41), "was halted")
	f("both ioc and fok", func(r *event.Record) { r.Instructions.FOK = true }, "both ioc and fok")
	f("a market order that rests", func(r *event.Record) {
		r.Instructions.IOC, r.Instructions.Market = false, true
	}, "market order that may rest")
	f("a post-only ioc", func(r *event.Record) { r.Instructions.PostOnly = true }, "never rests")
	f("a post-only fok", func(r *event.Record) {
		r.Instructions.IOC, r.Instructions.FOK, r.Instructions.PostOnly = false, true, true
	}, "never rests")
	f("an ioc iceberg", func(r *event.Record) { r.Instructions.Display = 1 }, "never rests")
	f("an ioc with an end", func(r *event.Record) { r.Instructions.ExpireUs = 50 }, "never rests")
	f("a resting sum", func(r *event.Record) {
		r.Instructions.IOC, r.Instructions.Quote = false, 1
	}, "spends a sum, but may rest")
	f("a slide that is not post-only", func(r *event.Record) { r.Instructions.Asked = 1 },
		"not post-only")
	f("a buy with another half", func(r *event.Record) { r.Instructions.OCO.Trigger = 1 },
		"no sell")
	f("a rest without a reason", func(r *event.Record) { r.Instructions.Cancelled = 0 },
		"with the reason")
	f("a reason without an end", func(r *event.Record) { r.Order.RestCancelled = false },
		"with the reason")
	f("an ioc that rests", func(r *event.Record) {
		r.Instructions.Cancelled, r.Order.RestCancelled = 0, false
	}, "takes at once, but rests")
	for why := trading.CancelledFOK; why <= trading.CancelledDisconnect; why++ {
		if why != trading.CancelledMaxFills {
			f("the reason "+why.String(), func(r *event.Record) {
				r.Instructions.Cancelled = why
			}, "cannot be cancelled for the reason")
		}
	}
	f("a fok in part", func(r *event.Record) {
		r.Instructions.IOC, r.Instructions.FOK, r.Instructions.Cancelled = false, true,
			trading.CancelledFOK
	}, "takes all or nothing")
	f("a fok that rests", func(r *event.Record) {
		i := &r.Instructions
		i.IOC, i.FOK, i.Cancelled, r.Order.RestCancelled = false, true, 0, false
	}, "takes all or nothing")
	f("an ioc that might take more", func(r *event.Record) {
		r.Instructions.Prevented = r.Instructions.Prevented[:1]
	}, "cannot be cancelled for the reason ioc")
}

// A valid checksum does not make a record valid: a start fails there, and serves nothing.
func TestAStoredRecordThatDoesNotFitStopsTheFold(t *testing.T) {
	s, r := instructed(), takes()
	r.Instructions.PostOnly = true
	b := event.EndBatch(r.Append(event.BeginBatch(nil)), 1, s.Seq(), 1)
	fold := Fold{State: s}
	if err := fold.Batch(s.Seq(), s.Seq()+1, b); err == nil ||
		!strings.Contains(err.Error(), "never rests") {
		t.Error(err)
	}
}

func TestApplyRefusesPreventedOrdersThatDoNotFit(t *testing.T) {
	f := refusesOf(t, instructed, takes)
	first := func(change func(v *trading.Prevented)) spoils {
		return func(r *event.Record) { change(&r.Instructions.Prevented[0]) }
	}
	f("no mode", func(r *event.Record) { r.Instructions.SelfTrade = 0 }, "self-trade mode is 0")
	f("the mode that ends the taker", func(r *event.Record) {
		r.Instructions.SelfTrade = trading.SelfTradeCancelNewest
	}, "self-trade mode is 1")
	f("the mode that ends both, twice", func(r *event.Record) {
		r.Instructions.SelfTrade, r.Instructions.Cancelled = trading.SelfTradeCancelBoth,
			trading.CancelledSelfTrade
	}, "cannot be cancelled for the reason self_trade")
	f("a mode that ends both, and continues", func(r *event.Record) {
		i := &r.Instructions
		i.SelfTrade, i.Prevented = trading.SelfTradeCancelBoth, i.Prevented[:1]
		i.Cancelled = trading.CancelledMaxFills
	}, "cannot be cancelled for the reason max_fills")
	f("an order that is not the next", first(func(v *trading.Prevented) { v.Order = 2 }),
		"the next to trade is")
	f("an order of another account", func(r *event.Record) { r.Order.Account = 1 }, "account 1")
	f("another price", first(func(v *trading.Prevented) { v.Price++ }), "the next to trade is")
	f("another amount", first(func(v *trading.Prevented) { v.Amount-- }), "the next to trade is")
	f("the displayed amount alone", func(r *event.Record) {
		r.Instructions.Prevented[1].Amount = coin / 2
	}, "the next to trade is")
	f("an order beyond the limit", func(r *event.Record) { r.Order.Price = 10 * coin },
		"the next to trade is")
	f("a cancel's id that is given", first(func(v *trading.Prevented) { v.Cancel = 9 }),
		"id 9 is not above 9")
	f("cancels out of order", func(r *event.Record) {
		r.Instructions.Prevented[0].Cancel, r.Instructions.Prevented[1].Cancel = 11, 10
	}, "id 10 is not above 11")
	f("an order before a trade that is not there", func(r *event.Record) {
		r.Instructions.Prevented[1].Before = 2
	}, "before trade 2 of 1")
	f("a trade with itself", func(r *event.Record) { // order 8 comes after order 1
		r.Instructions.Prevented = r.Instructions.Prevented[1:]
		r.Order.Trades = append(r.Order.Trades, event.Trade{ID: 2, Maker: 8, MakerAccount: 2,
			Price: 10 * coin, Amount: coin})
		r.Instructions.Prevented[0].Before, r.Order.Remaining = 2, coin
	}, "with itself")
	f("an end at an order of another account", func(r *event.Record) {
		i := &r.Instructions
		i.Prevented, i.SelfTrade, i.Cancelled = nil, trading.SelfTradeCancelNewest,
			trading.CancelledSelfTrade
		r.Order.Trades, r.Order.Remaining = nil, 3*coin
	}, "cannot be cancelled for the reason self_trade")
}

func TestApplyRefusesPostOnlyOrdersThatTake(t *testing.T) {
	f := refusesOf(t, instructed, func() event.Record {
		return event.Record{Kind: event.KindInstructed, Pair: 1, TimeUs: 40,
			Order: event.Order{ID: 9, Account: 2, Side: trading.Buy, Price: 9 * coin,
				Amount: coin, Remaining: coin},
			Instructions: trading.Instructions{PostOnly: true}}
	})
	f("one that trades", func(r *event.Record) {
		r.Order, r.Instructions.ExpireUs = takes().Order, 0
		r.Order.RestCancelled = false
	}, "is post-only, but has 1 trades")
	f("one that crosses", func(r *event.Record) { r.Order.Price = 10 * coin },
		"crosses the best price")
	f("one whose end has come", func(r *event.Record) { r.Instructions.ExpireUs = 40 },
		"expires at 40 us")
	f("one that ends before its time", func(r *event.Record) {
		r.Order.RestCancelled, r.Instructions.Cancelled = true, trading.CancelledExpired
	}, "cannot be cancelled for the reason expired")
}

func TestApplyRefusesSumsThatDoNotFit(t *testing.T) {
	spends := func() event.Record {
		r := takes()
		r.Order.Account, r.Order.Amount, r.Order.Remaining, r.Order.RestCancelled = 2, coin, 0,
			false
		r.Instructions = trading.Instructions{Market: true, IOC: true, Quote: 10 * coin}
		return r
	}
	f := refusesOf(t, instructed, spends)
	f("more than the sum", func(r *event.Record) { r.Instructions.Quote-- }, "spends 10 of 9.9")
	f("a rest", func(r *event.Record) { r.Order.Amount, r.Order.Remaining = 2*coin, coin },
		"takes at once, but rests")
	f("nothing bought, and done", func(r *event.Record) {
		r.Order.Amount, r.Order.Trades = 0, nil
	}, "has bought nothing")
	f("a sell", func(r *event.Record) { r.Order.Side = trading.Sell }, "spends a sum")
	f("less than it has bought", func(r *event.Record) { r.Order.Amount-- }, "is open")
}

func TestApplyRefusesStopsThatDoNotFit(t *testing.T) {
	f := refusesOf(t, instructed, func() event.Record {
		return event.Record{Kind: event.KindStop, Pair: 1, TimeUs: 40,
			Order: event.Order{ID: 9, Account: 2, Key: 0, Side: trading.Buy, Price: 9 * coin,
				Amount: coin, Remaining: coin},
			Instructions: trading.Instructions{ExpireUs: 50},
			Trigger:      trading.Trigger{Price: 12 * coin, When: trading.Rise}}
	})
	f("an id that is given", func(r *event.Record) { r.Order.ID = 8 }, "id 8 is not above 8")
	f("no trigger", func(r *event.Record) { r.Trigger.Price = 0 }, "waits for a trigger at 0")
	f("no direction", func(r *event.Record) { r.Trigger.When = 0 }, "direction 0")
	f("a trade", func(r *event.Record) { r.Order.Trades = takes().Order.Trades }, "has 1 trades")
	f("a prevented order", func(r *event.Record) {
		r.Instructions.Prevented = takes().Instructions.Prevented
	}, "prevents 2 orders")
	f("less than its amount", func(r *event.Record) { r.Order.Remaining-- }, "left")
	f("an end that has come", func(r *event.Record) { r.Instructions.ExpireUs = 40 },
		"was cancelled at 40 us")
	f("an end before its time", func(r *event.Record) {
		r.Order.RestCancelled, r.Instructions.Cancelled = true, trading.CancelledExpired
	}, "was cancelled at 40 us")
	f("another reason", func(r *event.Record) {
		r.Order.RestCancelled, r.Instructions.Cancelled = true, trading.CancelledIOC
		r.Instructions.ExpireUs = 40
	}, "was cancelled at 40 us")
	f("another half", func(r *event.Record) {
		r.Order.Side, r.Instructions.OCO = trading.Sell, trading.OCO{Trigger: coin}
	}, "has another half")
	f("an ioc with an end", func(r *event.Record) { r.Instructions.IOC = true }, "never rests")
	f("no money", func(r *event.Record) {
		r.Order.Amount, r.Order.Remaining = 1000*coin, 1000*coin
	}, "account bob")
}

func TestApplyRefusesTriggeredOrdersThatDoNotFit(t *testing.T) {
	f := refusesOf(t, after(rises()), enters)
	f("an order that is not the head", func(r *event.Record) { r.Order.ID = 7 },
		"the head of the queue is")
	f("one from the book", func(r *event.Record) { r.Triggered.FromBook = true },
		"the head of the queue is")
	f("no pair", func(r *event.Record) { r.Pair = 0 }, "its pair does not exist")
	f("time that goes back", func(r *event.Record) { r.TimeUs = 39 }, "its time 39 us")
	f("another account", func(r *event.Record) { r.Order.Account = 2 }, "is open on BTC_USD as")
	f("no account", func(r *event.Record) { r.Order.Account = 9 }, "is open on BTC_USD as")
	f("another side", func(r *event.Record) { r.Order.Side = trading.Sell },
		"is open on BTC_USD as")
	f("another price before", func(r *event.Record) { r.Triggered.Was.Price++ },
		"is open on BTC_USD as")
	f("another amount before", func(r *event.Record) { r.Triggered.Was.Open-- },
		"is open on BTC_USD as")
	f("another client id", func(r *event.Record) { r.Order.ClientID = clientID("x") },
		"is open on BTC_USD as")
	f("another amount", func(r *event.Record) { r.Order.Amount++ }, "is triggered with")
	f("another price", func(r *event.Record) { r.Order.Price-- }, "should enter at 11")
	f("other instructions", func(r *event.Record) { r.Instructions.PostOnly = true },
		"should enter as")
	f("no trade where there is one", func(r *event.Record) {
		r.Order.Trades, r.Order.Remaining = nil, coin
	}, "crosses the best price")

	refusedBy(t, after(rises(), halt(1, true))(), "a halted pair", later(enters(), 1<<40),
		"is halted (true)")
	refusedBy(t, after(rises(), maintenance(true, ""))(), "maintenance", enters(),
		"maintenance (true)")
	refusedBy(t, after(rises(), withCancels(""))(), "maintenance with cancels", enters(),
		"maintenance (true)")
	refusedBy(t, instructed(), "an empty queue", enters(), "the head of the queue is")

	f = refusesOf(t, after(falls()...), killed)
	f("the second of the queue", func(r *event.Record) { *r = otherHalf() },
		"the head of the queue is")
	f("another reason", func(r *event.Record) {
		r.Instructions.Cancelled = trading.CancelledPostOnly
	}, "cannot be cancelled for the reason post_only")
	f("an ioc that rests", func(r *event.Record) {
		r.Order.RestCancelled, r.Instructions.Cancelled = false, 0
	}, "takes at once, but rests")
	f = refusesOf(t, after(append(falls(), killed())...), otherHalf)
	f("not from the book", func(r *event.Record) { r.Triggered.FromBook = false },
		"the head of the queue is")
	f("another price", func(r *event.Record) { r.Order.Price++ }, "should enter at 7")
}

func later(r event.Record, timeUs int64) event.Record {
	r.TimeUs = timeUs
	return r
}

func TestApplyRefusesChangesThatDoNotFit(t *testing.T) {
	f := refusesOf(t, instructed, shrinks)
	f("an id that is given", func(r *event.Record) { r.Amended.ID = 8 }, "id 8 is not above 8")
	f("an order that is not open", func(r *event.Record) { r.Order.ID = 9 }, "is not open on")
	f("another account's order", func(r *event.Record) { r.Order.Account = 1 }, "is not open on")
	f("another price before", func(r *event.Record) { r.Amended.Was.Price++ },
		"is open on BTC_USD as")
	f("another amount before", func(r *event.Record) { r.Amended.Was.Open++ },
		"is open on BTC_USD as")
	f("another client id", func(r *event.Record) { r.Order.ClientID = clientID("x") },
		"is open on BTC_USD as")
	f("a place that is not lost", func(r *event.Record) { r.Amended.Kept = false },
		"with its place kept: false")
	f("a place that is not kept", func(r *event.Record) { r.Order.Price++ },
		"with its place kept: true")
	f("a larger amount in place", func(r *event.Record) {
		r.Order.Amount, r.Order.Remaining = 3*coin, 3*coin
	}, "with its place kept: true")
	f("a trade in place", func(r *event.Record) { r.Order.Trades = takes().Order.Trades },
		"keeps its place, but has 1 trades")
	f("another rest", func(r *event.Record) { r.Order.Remaining-- }, "remains after the trades")
	f("an iceberg that shows all", func(r *event.Record) { r.Instructions.Display = 0 },
		"is changed from")
	f("an ioc", func(r *event.Record) { r.Instructions.IOC, r.Instructions.Display = true, 0 },
		"is changed from")
	f("another half", func(r *event.Record) { r.Instructions.OCO.Trigger = coin },
		"is changed from")
	f("a trigger", func(r *event.Record) { r.Trigger = waitsElse().Trigger }, "rests, but")
	f("an end that has come", func(r *event.Record) { r.Instructions.ExpireUs = 40 },
		"keeps its place, but")
	f("an end with other values", func(r *event.Record) {
		r.Order.RestCancelled, r.Instructions.Cancelled = true, trading.CancelledAmended
	}, "a change ends order 2")

	f = refusesOf(t, instructed, crosses)
	f("a post-only order that takes", func(r *event.Record) { r.Instructions.PostOnly = true },
		"is post-only, but has 1 trades")
	f("an end that has come", func(r *event.Record) { r.Instructions.ExpireUs = 40 },
		"expires at 40 us")
	f("an amount that is filled", func(r *event.Record) {
		r.Order.Amount, r.Order.Remaining, r.Order.Trades = 0, 0, nil
	}, "cannot be of side")
	f("another key", func(r *event.Record) { r.Order.Key = 2 }, "key number 2")
	refusedBy(t, after(halt(1, true))(), "a halted pair", later(crosses(), 1<<40),
		"loses its place while trading")

	part := rises()
	part.Order.Amount, part.Order.Trades[0].Amount, part.Order.Trades[0].MakerRemaining = coin/2,
		coin/2, coin/2
	filled := crosses()
	filled.Order = event.Order{ID: 1, Account: 1, Side: trading.Sell, Price: 10 * coin,
		Amount: coin / 2}
	filled.Amended = event.Amended{ID: 10, Was: event.Was{Price: 10 * coin, Open: coin / 2}}
	refusedBy(t, after(part)(), "a filled amount that stays open", filled, "and stays open")
}

// Without a mode of its own an order uses its account's, which may be none when it is changed.
func TestAChangedOrderKeepsItsPreventedOrders(t *testing.T) {
	sell := event.Record{Kind: event.KindInstructed, Pair: 1, TimeUs: 40,
		Order: event.Order{ID: 9, Account: 2, Side: trading.Sell, Price: 9 * coin,
			Amount: 2 * coin, Remaining: 2 * coin},
		Instructions: trading.Instructions{SelfTrade: trading.SelfTradeCancelOldest,
			Prevented: []trading.Prevented{{Order: 5, Cancel: 10, Price: 9 * coin,
				Amount: coin}}}}
	for _, price := range []money.Price{9 * coin, 10 * coin} {
		change := event.Record{Kind: event.KindAmended, Pair: 1, TimeUs: 41, Order: sell.Order,
			Amended: event.Amended{ID: 11, Was: event.Was{Price: 9 * coin, Open: 2 * coin},
				Kept: price == 9*coin}}
		change.Order.Price, change.Order.Amount, change.Order.Remaining = price, coin, coin
		s := after(sell, change)()
		x := s.Pair(1).Instructed(9)
		if x == nil || !slices.Equal(x.Prevented, sell.Instructions.Prevented) {
			t.Errorf("changed to %v, order 9 says %+v", price, x)
		}
	}
}

func TestApplyRefusesChangesOfWaitingOrdersThatDoNotFit(t *testing.T) {
	f := refusesOf(t, instructed, waitsElse)
	f("no trigger", func(r *event.Record) { r.Trigger = trading.Trigger{} },
		"waits for a trigger at 0")
	f("a trade", func(r *event.Record) { r.Order.Trades = takes().Order.Trades }, "has 1 trades")
	f("less than its amount", func(r *event.Record) { r.Order.Remaining-- }, "left")
	f("an end that has come", func(r *event.Record) { r.Instructions.ExpireUs = 40 },
		"ends at 40 us, and is changed")
	f("an ioc", func(r *event.Record) { r.Instructions.IOC = true }, "is changed from")
	f("no money", func(r *event.Record) {
		r.Order.Amount, r.Order.Remaining = 1000*coin, 1000*coin
	}, "account alice")
	queued := waitsElse()
	queued.Amended.ID = 10
	refusedBy(t, after(rises())(), "another trigger of a queued order", queued, "is queued")
	queued.Trigger.Price = 10 * coin
	s := after(rises())()
	apply(t, s, queued)
	if head, _ := s.pairs[0].Stops.Head(); head.Order.Price != 12*coin || !head.Queued {
		t.Errorf("the queued order is changed to %+v", head)
	}
}

func TestApplyRefusesExpiriesThatDoNotFit(t *testing.T) {
	f := refusesOf(t, instructed, expires)
	f("before its time", func(r *event.Record) { r.TimeUs = 999 }, "before its time")
	f("an order without an end", func(r *event.Record) { r.Expired[0].Order = 2 },
		"before its time")
	f("an order that is not open", func(r *event.Record) { r.Expired[0].Order = 9 },
		"before its time")
	f("an id that is given", func(r *event.Record) { r.Expired[0].ID = 8 }, "id 8 is not above 8")
	f("another account", func(r *event.Record) { r.Expired[0].Account = 2 }, "but is open as")
	f("another side", func(r *event.Record) { r.Expired[0].Side = trading.Buy },
		"but is open as")
	f("another price", func(r *event.Record) { r.Expired[0].Price-- }, "but is open as")
	f("another amount", func(r *event.Record) { r.Expired[0].Open-- }, "but is open as")
	f("twice", func(r *event.Record) {
		r.Expired = append(r.Expired, r.Expired[0])
		r.Expired[1].ID++
	}, "before its time")
	f("no pair", func(r *event.Record) { r.Pair = 0 }, "its pair does not exist")
	f("time that goes back", func(r *event.Record) { r.TimeUs = 1 }, "its time 1 us")
	refusedBy(t, after(maintenance(true, ""))(), "maintenance", expires(), "in maintenance")
	apply(t, after(withCancels(""))(), expires())

	late := rises()
	late.TimeUs, late.Order.Price, late.Order.Amount = 1000, 12*coin, 5*coin
	late.Order.Trades = append(late.Order.Trades,
		event.Trade{ID: 2, Maker: 8, MakerAccount: 2, Price: 10 * coin, Amount: coin})
	for left := 3; left >= 0; left-- {
		late.Order.Trades = append(late.Order.Trades, event.Trade{ID: uint64(6 - left), Maker: 2,
			MakerAccount: 2, Price: 11 * coin, Amount: coin / 2,
			MakerRemaining: money.Amount(left) * coin / 2})
	}
	late.Order.Trades = append(late.Order.Trades,
		event.Trade{ID: 7, Maker: 3, MakerAccount: 1, Price: 12 * coin, Amount: coin})
	apply(t, instructed(), later(late, 999))
	refusedBy(t, instructed(), "a fill after the end", late, "which ends at 1000 us")
}

// armed returns a state with switches of alice's key: one of calls, for sells on pair 1, which is
// due at 100 us, and one of sessions.
func armed() *State {
	s := instructed()
	apply(must{}, s, event.Record{Kind: event.KindSwitch, TimeUs: 50,
		Switch: event.Switch{Account: 1, Key: 1, Nonce: 9, Armed: true, DueUs: 100, Seconds: 5,
			Pair: 1, Side: trading.Sell}},
		event.Record{Kind: event.KindSwitch, TimeUs: 51,
			Switch: event.Switch{Account: 1, Key: 1, Session: true, Armed: true,
				Prefix: clientID("s")}})
	return s
}

func TestApplyRefusesSwitchesAndSettingsThatDoNotFit(t *testing.T) {
	f := refusesOf(t, armed, func() event.Record {
		return event.Record{Kind: event.KindSwitch, TimeUs: 100,
			Switch: event.Switch{Account: 1, Key: 1, DueUs: 100}}
	})
	f("no account", func(r *event.Record) { r.Switch.Account = 9 }, "there is no account 9")
	f("no key", func(r *event.Record) { r.Switch.Key = 0 }, "is of no key")
	f("an unknown key", func(r *event.Record) { r.Switch.Key = 2 }, "key number 2")
	f("another account's key", func(r *event.Record) { r.Switch.Account = 2 },
		"does not belong to account 2")
	f("an unknown pair", func(r *event.Record) { r.Switch.Pair = 3 }, "pair 3")
	f("a switch that fires early", func(r *event.Record) { r.TimeUs = 99 }, "has fired at 99 us")
	f("a switch that fires for another time", func(r *event.Record) { r.Switch.DueUs = 99 },
		"has fired")
	f("a switch that is not due at all", func(r *event.Record) { r.Switch.Session = true },
		"has fired")
	f("a switch of calls without a time", func(r *event.Record) {
		r.Switch.Armed, r.Switch.Seconds, r.Switch.DueUs = true, 5, 0
	}, "cannot be armed so")
	f("a switch of calls without seconds", func(r *event.Record) { r.Switch.Armed = true },
		"cannot be armed so")
	f("a switch of no side", func(r *event.Record) {
		r.Switch.Armed, r.Switch.Seconds, r.Switch.Side = true, 5, 3
	}, "cannot be armed so")
	maintained := func() *State {
		s := armed()
		apply(must{}, s, later(maintenance(true, ""), 99))
		return s
	}
	fires := event.Record{Kind: event.KindSwitch, TimeUs: 100,
		Switch: event.Switch{Account: 1, Key: 1, DueUs: 100}}
	refusedBy(t, maintained(), "a switch that fires in maintenance", fires, "has fired")
	with := maintained()
	apply(t, with, later(withCancels(""), 99), fires)
	if with.Maintained() != 0 {
		t.Error("a maintenance that changes has ended")
	}
	ended := maintained()
	apply(t, ended, later(maintenance(false, ""), 200))
	if ended.Maintained() != 200 {
		t.Errorf("maintenance ended at %d us", ended.Maintained())
	}
	apply(t, ended, later(maintenance(false, ""), 300))
	if ended.Maintained() != 200 {
		t.Errorf("maintenance that was over ended at %d us", ended.Maintained())
	}
	apply(t, ended, fires) // the clock was ahead at the end of the maintenance, and is right again

	f = refusesOf(t, armed, func() event.Record {
		return event.Record{Kind: event.KindSettings, Settings: event.Settings{Account: 1, Key: 1,
			Nonce: 20, SelfTrade: trading.SelfTradeCancelBoth}}
	})
	f("no account", func(r *event.Record) { r.Settings.Account = 9 }, "there is no account 9")
	f("another account's key", func(r *event.Record) { r.Settings.Account = 2 },
		"does not belong to account 2")
	f("an unknown mode", func(r *event.Record) { r.Settings.SelfTrade = 4 }, "no self-trade mode 4")
}

func TestApplyRefusesSweptOrdersThatDoNotFit(t *testing.T) {
	swept := func() event.Record {
		return event.Record{Kind: event.KindSwitchCancel, Pair: 1, TimeUs: 100,
			Cancel: event.Cancel{ID: 9, Order: 1, Account: 1, Key: 1, Side: trading.Sell,
				Price: 10 * coin, Remaining: coin, Reason: trading.CancelledSwitch}}
	}
	f := refusesOf(t, armed, swept)
	f("before its time", func(r *event.Record) { r.TimeUs = 99 }, "a switch that is not due")
	f("by the other switch", func(r *event.Record) {
		r.Cancel.Reason = trading.CancelledDisconnect
	}, "a switch that is not due")
	f("no switch", func(r *event.Record) { r.Cancel.Key = 0 }, "which is not armed")
	f("an order of the other side", func(r *event.Record) {
		r.Cancel.Order, r.Cancel.Side, r.Cancel.Price = 6, trading.Buy, 11*coin
	}, "is for other orders")
	f("another price", func(r *event.Record) { r.Cancel.Price++ }, "but the book has")

	s := armed()
	apply(t, s, event.Record{Kind: event.KindSwitch, TimeUs: 60,
		Switch: event.Switch{Account: 1, Key: 1, Session: true, Armed: true, DueUs: 90,
			Prefix: clientID("s")}})
	r := swept()
	r.Cancel.Reason = trading.CancelledDisconnect
	refusedBy(t, s, "an order without the prefix", r, "is for other orders")
	s = armed()
	apply(t, s, later(maintenance(true, ""), 99))
	refusedBy(t, s, "a sweep in maintenance", swept(), "by a switch")
	with := armed()
	apply(t, with, later(withCancels(""), 99), swept())
	apply(t, s, later(maintenance(false, ""), 101)) // by a clock that was ahead
	r = swept()
	r.Cancel.ID = 10
	apply(t, s, r)
}
