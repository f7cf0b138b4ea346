package state

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/money"
	"exchange/core/trading"
)

const coin = 100_000_000

// small returns a state to break. Alice (1) has sell orders 1 and 2 of 1 BTC at 10 and 11 USD, and
// bob (2) a buy order 3 of 2 BTC at 9 USD. A trade of order 4 took half of order 1.
func small() *State {
	s, t := New(), must{}
	apply(t, s, founding()...)
	apply(t, s, smallRecords()...)
	return s
}

func smallRecords() []event.Record {
	id, _ := event.NewClientID("first")
	past, _ := event.NewClientID("past")
	return []event.Record{
		{Kind: event.KindDeposit, TimeUs: 20,
			Deposit: event.Deposit{ID: 1, Account: 1, Currency: 1, Amount: 10 * coin,
				Reference: "one"}},
		{Kind: event.KindDeposit, TimeUs: 20,
			Deposit: event.Deposit{ID: 2, Account: 2, Currency: 2, Amount: 100 * coin,
				Reference: "two"}},
		{Kind: event.KindOrder, Pair: 1, TimeUs: 30,
			Order: event.Order{ID: 1, Account: 1, Key: 1, Nonce: 5, Side: trading.Sell,
				Price: 10 * coin, Amount: coin, Remaining: coin, ClientID: id}},
		{Kind: event.KindOrder, Pair: 1, TimeUs: 31,
			Order: event.Order{ID: 2, Account: 1, Key: 1, Nonce: 6, Side: trading.Sell,
				Price: 11 * coin, Amount: coin, Remaining: coin}},
		{Kind: event.KindOrder, Pair: 1, TimeUs: 32,
			Order: event.Order{ID: 3, Account: 2, Side: trading.Buy, Price: 9 * coin,
				Amount: 2 * coin, Remaining: 2 * coin}},
		{Kind: event.KindOrder, Pair: 1, TimeUs: 33,
			Order: event.Order{ID: 4, Account: 2, Side: trading.Buy, Price: 10 * coin,
				Amount: coin / 2, FeeAccount: 3, ClientID: past, Trades: []event.Trade{
					{ID: 1, Maker: 1, MakerAccount: 1, Price: 10 * coin, Amount: coin / 2,
						MakerRemaining: coin / 2, TakerFee: money.Amount(7).Balance(),
						MakerFee: money.Amount(9).Balance()}}}},
	}
}

type must struct{}

func (must) Helper()                           {}
func (must) Fatalf(format string, args ...any) { panic(strings.TrimSpace(format)) }

// buy returns an order of bob's that fits small: it takes the rest of order 1, and rests with half
// a coin.
func buy() event.Record {
	return event.Record{Kind: event.KindOrder, Pair: 1, TimeUs: 40,
		Order: event.Order{ID: 5, Account: 2, Side: trading.Buy, Price: 10 * coin, Amount: coin,
			Remaining: coin / 2, FeeAccount: 3,
			Trades: []event.Trade{{ID: 2, Maker: 1, MakerAccount: 1, Price: 10 * coin,
				Amount: coin / 2}}}}
}

func cancelOf1() event.Record {
	return event.Record{Kind: event.KindCancel, Pair: 1, TimeUs: 40,
		Cancel: event.Cancel{ID: 5, Order: 1, Account: 1, Key: 1, Nonce: 9, Side: trading.Sell,
			Price: 10 * coin, Remaining: coin / 2}}
}

func deposit() event.Record {
	return event.Record{Kind: event.KindDeposit, TimeUs: 40,
		Deposit: event.Deposit{ID: 3, Account: 1, Currency: 1, Amount: coin, Reference: "three"}}
}

func refusedBy(t *testing.T, s *State, what string, r event.Record, text string) {
	t.Helper()
	seq := s.Seq()
	var e Effects
	err := s.Apply(&r, &e)
	if err == nil || !strings.Contains(err.Error(), text) ||
		!strings.Contains(err.Error(), r.Kind.String()) {
		t.Errorf("%s: %v", what, err)
	}
	if s.Seq() != seq {
		t.Errorf("%s: the sequence advanced", what)
	}
}

// A spoiler changes a record of an order with one trade.
type (
	spoiler = func(r R, o O, t T)
	R       = *event.Record
	O       = *event.Order
	T       = *event.Trade
)

// refusesOrders returns a function that checks that Apply refuses bob's order after a change.
func refusesOrders(t *testing.T) func(name string, change spoiler, text string) {
	t.Helper()
	f := refusesOf(t, small, buy)
	return func(name string, change spoiler, text string) {
		t.Helper()
		f(name, func(r *event.Record) { change(r, &r.Order, &r.Order.Trades[0]) }, text)
	}
}

// In the tests of this package the newest closed order of an account keeps its client order id, and
// two others for a moment.
func init() { ledger.KeptIDs = ledger.IDBounds{Newest: 1, Most: 3, SpanUs: 1000} }

func TestTheClientOrderIDOfAnOrderIsNotUsedAgain(t *testing.T) {
	s, r := small(), buy()
	past := r
	past.Order.ClientID = clientID("past")
	if err := s.Apply(&past, new(Effects)); err == nil ||
		!strings.Contains(err.Error(), "order 4 of account bob has id past") {
		t.Fatal(err)
	}
	s = small()
	r.Order.ClientID = clientID("next")
	apply(t, s, r)
	bob := s.Account(2)
	for name, by := range map[string]uint64{"next": r.Order.ID, "past": 4, "other": 0} {
		if got := bob.ClientIDs.TakenBy(clientID(name), r.TimeUs); got != by {
			t.Errorf("%s is taken by order %d, want %d", name, got, by)
		}
	}
	if bob.Closed != 1 || s.Account(1).Closed != 1 {
		t.Errorf("%d and %d orders have closed", s.Account(1).Closed, bob.Closed)
	}
}

func TestApplyRefusesOrdersThatDoNotFit(t *testing.T) {
	f := refusesOrders(t)
	f("no pair", func(r R, o O, t T) { r.Pair = 0 }, "its pair does not exist")
	f("an unknown pair", func(r R, o O, t T) { r.Pair = 3 }, "its pair does not exist")
	f("account 0", func(r R, o O, t T) { o.Account = 0 }, "no account 0")
	f("an unknown account", func(r R, o O, t T) { o.Account = 4 }, "no account 4")
	f("an unknown key", func(r R, o O, t T) { o.Key = 2 }, "key number 2")
	f("another account's key", func(r R, o O, t T) { o.Key = 1 },
		"key number 1 does not belong to account 2")
	f("an id that does not grow", func(r R, o O, t T) { o.ID = 4 }, "id 4 is not above 4")
	f("time that goes back", func(r R, o O, t T) { r.TimeUs = 32 }, "time 32 us is before 33 us")
	f("a client order id used by an open order",
		func(r R, o O, t T) { o.Account = 1; o.ClientID, _ = event.NewClientID("first") },
		"order 1 of account alice has id first")
	f("no price", func(r R, o O, t T) { o.Price = 0 }, "cannot be of side 1")
	f("a negative price", func(r R, o O, t T) { o.Price = -1 }, "at -1 units")
	f("no amount", func(r R, o O, t T) { o.Amount, o.Remaining, o.Trades = 0, 0, nil },
		"for 0 units")
	f("a negative amount", func(r R, o O, t T) { o.Amount = -1 }, "for -1 units")
	f("no side", func(r R, o O, t T) { o.Side = 0 }, "cannot be of side 0")
	f("a side of neither", func(r R, o O, t T) { o.Side = 3 }, "cannot be of side 3")
	f("more remaining than is left", func(r R, o O, t T) { o.Remaining++ },
		"remains after the trades")
	f("less remaining than is left", func(r R, o O, t T) { o.Remaining-- },
		"remains after the trades")
	f("a negative rest", func(r R, o O, t T) { o.Remaining = -1 }, "remains after the trades")
	f("a cut of nothing",
		func(r R, o O, t T) { o.Amount, o.Remaining, o.RestCancelled = coin/2, 0, true },
		"cut off the rest")
	f("a cut without a trade", func(r R, o O, t T) {
		o.Remaining, o.Trades, o.RestCancelled = coin, nil, true
	}, "cut off the rest")
	f("a rest that crosses the book", func(r R, o O, t T) { o.Trades, o.Remaining = nil, coin },
		"crosses the best price, 10")
	f("a sell whose rest crosses the book", func(r R, o O, t T) {
		*o = event.Order{ID: 5, Account: 1, Side: trading.Sell, Price: 9 * coin, Amount: coin,
			Remaining: coin}
	}, "crosses the best price, 9")
	f("an order above its account's money", func(r R, o O, t T) {
		*o = event.Order{ID: 5, Account: 2, Side: trading.Buy, Price: 9 * coin, Amount: 9 * coin,
			Remaining: 9 * coin}
	}, "account bob: ")
	f("an order of an unimaginable value", func(r R, o O, t T) {
		*o = event.Order{ID: 5, Account: 2, Side: trading.Buy, Price: 9 * coin,
			Amount: math.MaxInt64, Remaining: math.MaxInt64}
	}, "account bob: ")

	for _, rests := range []bool{true, false} {
		s, r := small(), buy()
		r.Pair, r.Order.ID, r.Order.Price, r.Order.Trades, r.Order.Remaining = 2, 3, 1, nil,
			r.Order.Amount
		if !rests {
			r.Kind, r.Order.RestCancelled = event.KindInstructed, true
			r.Instructions = trading.Instructions{IOC: true, Cancelled: trading.CancelledIOC}
		}
		if err := s.Apply(&r, new(Effects)); err == nil ||
			!strings.Contains(err.Error(), "open order 3 in another pair") {
			t.Errorf("an id that is open in another pair, of an order that rests, %v: %v", rests,
				err)
		}
	}
}

func TestApplyRefusesTradesThatDoNotFit(t *testing.T) {
	f := refusesOrders(t)
	f("a trade id that does not grow", func(r R, o O, t T) { t.ID = 1 },
		"trade 1 of 50000000 units must be above trade 1")
	f("a trade of more than the order", func(r R, o O, t T) { o.Amount, o.Remaining = coin/4, 0 },
		"open")
	f("a trade of nothing", func(r R, o O, t T) { t.Amount = 0 }, "fill of order 1 by 0")
	f("a negative trade", func(r R, o O, t T) { t.Amount = -1 }, "fill of order 1 by -1")
	f("a trade of more than the maker has", func(r R, o O, t T) { t.Amount++ },
		"fill of order 1 by 50000001")
	f("a maker that is not in the book", func(r R, o O, t T) { t.Maker = 9 }, "not in the book")
	f("a maker that is not the next",
		func(r R, o O, t T) { o.Price = 11 * coin; t.Maker, t.Price = 2, 11*coin },
		"order 1 at price 1000000000 is the next")
	f("a price that is not the maker's", func(r R, o O, t T) { t.Price-- },
		"its price is 1000000000")
	f("a price of nothing", func(r R, o O, t T) { t.Price = 0 }, "its price is 1000000000")
	f("a buy at a price above its limit", func(r R, o O, t T) { o.Price = 10*coin - 1 },
		"beyond the order's limit price")
	f("a maker of another account", func(r R, o O, t T) { t.MakerAccount = 3 },
		"order 1, but the book has")
	f("a maker with another rest", func(r R, o O, t T) { t.MakerRemaining = 1 },
		"order 1, but the book has")
	f("a maker of the same side", func(r R, o O, t T) {
		t.Maker, t.MakerAccount, t.Price, t.MakerRemaining = 3, 2, 9*coin, 3*coin/2
	}, "order 3, but the book has")
	f("a sell at a price below its limit", func(r R, o O, t T) {
		*o = event.Order{ID: 5, Account: 1, Side: trading.Sell, Price: 9*coin + 1, Amount: coin,
			Trades: []event.Trade{{ID: 2, Maker: 3, MakerAccount: 2, Price: 9 * coin, Amount: coin,
				MakerRemaining: coin}}}
	}, "beyond the order's limit price")
	f("a trade above its account's money",
		func(r R, o O, t T) { o.Account = 3; o.Amount, o.Remaining = coin/2, 0 }, "account house: ")
}

func TestApplyRefusesFeesThatDoNotFit(t *testing.T) {
	f := refusesOrders(t)
	f("an unknown fee account", func(r R, o O, t T) { o.FeeAccount = 4 },
		"fees, 4, does not exist")
	f("a taker fee for no account", func(r R, o O, t T) {
		o.FeeAccount, t.TakerFee = 0, money.Amount(1).Balance()
	}, "for account 0")
	f("a maker fee for no account", func(r R, o O, t T) {
		o.FeeAccount, t.MakerFee = 0, money.Amount(1).Balance()
	}, "for account 0")
	f("a taker fee above what it receives",
		func(r R, o O, t T) { t.TakerFee = (t.Amount + 1).Balance() }, "fees of 0.50000001 of 0.5")
	f("a maker fee above what it receives",
		func(r R, o O, t T) { t.MakerFee = money.Amount(5*coin + 1).Balance() }, "5.00000001 of 5 ")
	sell := func(r R, o O, t T) { // takes bob's order 3: alice receives 9 USD, bob 1 BTC
		*o = event.Order{ID: 5, Account: 1, Side: trading.Sell, Price: 9 * coin, Amount: coin,
			FeeAccount: 3, Trades: []event.Trade{{ID: 2, Maker: 3, MakerAccount: 2,
				Price: 9 * coin, Amount: coin, MakerRemaining: coin,
				TakerFee: money.Amount(9 * coin).Balance(),
				MakerFee: money.Amount(coin).Balance()}}}
	}
	fits := buy()
	sell(&fits, &fits.Order, nil)
	apply(t, small(), fits)
	f("a taker fee of a sell above what it receives",
		func(r R, o O, t T) {
			sell(r, o, t)
			o.Trades[0].TakerFee = money.Amount(9*coin + 1).Balance()
		}, "9.00000001 of 9 ")
	f("a maker fee of a sell above what it receives",
		func(r R, o O, t T) {
			sell(r, o, t)
			o.Trades[0].MakerFee = money.Amount(coin + 1).Balance()
		}, "1.00000001 of 1 ")
	f("a fee that no sum could hold",
		func(r R, o O, t T) { t.MakerFee = money.BalanceFromBits(math.MaxUint64, math.MaxUint64) },
		"fees of")
}

func TestApplyRefusesCancelsThatDoNotFit(t *testing.T) {
	refuses := refusesOf(t, small, cancelOf1)
	f := func(what string, change func(r *event.Record, c *event.Cancel), text string) {
		t.Helper()
		refuses(what, func(r *event.Record) { change(r, &r.Cancel) }, text)
	}
	f("no pair", func(r *event.Record, c *event.Cancel) { r.Pair = 0 }, "its pair does not exist")
	f("another pair", func(r *event.Record, c *event.Cancel) { r.Pair = 2 }, "the book has")
	f("an unknown account", func(r *event.Record, c *event.Cancel) { c.Account = 4 },
		"no account 4")
	f("another account", func(r *event.Record, c *event.Cancel) { c.Account, c.Key = 2, 0 },
		"the book has")
	f("another account's key", func(r *event.Record, c *event.Cancel) { c.Account = 2 },
		"key number 1 does not belong to account 2")
	f("an unknown key", func(r *event.Record, c *event.Cancel) { c.Key = 2 }, "key number 2")
	f("an id that does not grow", func(r *event.Record, c *event.Cancel) { c.ID = 4 },
		"id 4 is not above 4")
	f("time that goes back", func(r *event.Record, c *event.Cancel) { r.TimeUs = 32 }, "time 32 us")
	f("an order that is not open", func(r *event.Record, c *event.Cancel) { c.Order = 4 },
		"the book has")
	f("another side", func(r *event.Record, c *event.Cancel) { c.Side = trading.Buy },
		"the book has")
	f("another price", func(r *event.Record, c *event.Cancel) { c.Price++ }, "the book has")
	f("a negative price", func(r *event.Record, c *event.Cancel) { c.Price = -1 }, "at -1 units")
	f("another rest", func(r *event.Record, c *event.Cancel) { c.Remaining++ }, "the book has")
	f("a negative rest", func(r *event.Record, c *event.Cancel) { c.Remaining = -1 },
		"-1 units of account")
}

func TestApplyRefusesDepositsThatDoNotFit(t *testing.T) {
	refuses := refusesOf(t, small, deposit)
	f := func(name string, change func(d *event.Deposit), text string) {
		t.Helper()
		refuses(name, func(r *event.Record) { change(&r.Deposit) }, text)
	}
	f("a deposit id twice", func(d *event.Deposit) { d.ID = 2 },
		"deposit 2 is not the next after 2")
	f("a deposit id that is not the next", func(d *event.Deposit) { d.ID = 4 },
		"deposit 4 is not the next after 2")
	f("no reference", func(d *event.Deposit) { d.Reference = "" }, "has no reference")
	f("a deposit of no currency", func(d *event.Deposit) { d.Currency = 0 }, "no currency 0")
	f("a deposit of an unknown currency", func(d *event.Deposit) { d.Currency = 4 },
		"no currency 4")
	f("a deposit to no account", func(d *event.Deposit) { d.Account = 0 }, "no account 0")
	f("a deposit to an unknown account", func(d *event.Deposit) { d.Account = 4 },
		"no account 4")
	f("a deposit of nothing", func(d *event.Deposit) { d.Amount = 0 }, "deposit 3 is of 0 units")
	f("a negative deposit", func(d *event.Deposit) { d.Amount = -1 }, "deposit 3 is of -1 units")
}

func TestApplyRefusesOtherRecordsThatDoNotFit(t *testing.T) {
	type R = event.Record
	f := func(name string, r R, text string) { t.Helper(); refusedBy(t, small(), name, r, text) }
	f("a refusal of an unknown account",
		R{Kind: event.KindRefusal, Refusal: event.Refusal{Account: 4}}, "no account 4")
	f("a refusal of an unknown key",
		R{Kind: event.KindRefusal, Refusal: event.Refusal{Account: 1, Key: 2}}, "key number 2")
	f("a refusal of another account's key",
		R{Kind: event.KindRefusal, Refusal: event.Refusal{Account: 2, Key: 1}},
		"key number 1 does not belong to account 2")
	f("a currency number twice", R{Kind: event.KindCurrency,
		Currency: event.Currency{Number: 3, Code: "LTC"}}, "number 3 is not the next after 3")
	f("a currency number that is not the next",
		R{Kind: event.KindCurrency, Currency: event.Currency{Number: 5, Code: "LTC"}},
		"number 5 is not the next after 3")
	f("a currency code twice", R{Kind: event.KindCurrency,
		Currency: event.Currency{Number: 4, Code: "BTC"}}, "BTC exists already")
	f("a pair number twice", R{Kind: event.KindPair,
		NewPair: event.Pair{Number: 2, Name: "BTC_ETH", Base: 1, Quote: 3}},
		"number 2, which is not the next after 2")
	f("a pair name twice", R{Kind: event.KindPair,
		NewPair: event.Pair{Number: 3, Name: "BTC_USD", Base: 1, Quote: 3}}, "exists")
	f("a pair of one currency", R{Kind: event.KindPair,
		NewPair: event.Pair{Number: 3, Name: "BTC_BTC", Base: 1, Quote: 1}}, "currency 1 for 1")
	f("a pair without a base", R{Kind: event.KindPair,
		NewPair: event.Pair{Number: 3, Name: "X_BTC", Quote: 1}}, "currency 0 for 1")
	f("a pair without a quote", R{Kind: event.KindPair,
		NewPair: event.Pair{Number: 3, Name: "BTC_X", Base: 1}}, "currency 1 for 0")
	f("a pair of an unknown currency",
		R{Kind: event.KindPair, NewPair: event.Pair{Number: 3, Name: "BTC_X", Base: 1, Quote: 4}},
		"currency 1 for 4: it needs two of the 3")
	f("an account id twice", R{Kind: event.KindAccount,
		Account: event.Account{ID: 3, Name: "carol"}}, "id 3 is not the next after 3")
	f("an account id that is not the next",
		R{Kind: event.KindAccount, Account: event.Account{ID: 5, Name: "carol"}},
		"id 5 is not the next after 3")
	f("an account name twice", R{Kind: event.KindAccount,
		Account: event.Account{ID: 4, Name: "alice"}}, "exists already")
	f("a key number twice", R{Kind: event.KindKey,
		Key: event.Key{Number: 1, Account: 1, Key: "new"}}, "number 1 is not the next after 1")
	f("a key twice", R{Kind: event.KindKey, Key: event.Key{Number: 2, Account: 1, Key: "alice-1"}},
		"exists already")
	f("a key of an unknown account",
		R{Kind: event.KindKey, Key: event.Key{Number: 2, Account: 4, Key: "new"}},
		"account 4 does not")
	f("the end of an unknown key",
		R{Kind: event.KindKeyRevoked, KeyRevoked: event.KeyRevoked{Number: 2}},
		"key number 2 does not exist")
	f("an unknown kind", R{Kind: 100}, "cannot apply records of this kind")

	s := small()
	apply(t, s, R{Kind: event.KindKeyRevoked, KeyRevoked: event.KeyRevoked{Number: 1}})
	if err := s.Apply(&R{Kind: event.KindKeyRevoked, KeyRevoked: event.KeyRevoked{Number: 1}},
		new(Effects)); err == nil || !strings.Contains(err.Error(), "was revoked already") {
		t.Errorf("a key that ends twice: %v", err)
	}
}

func TestResealingASecretChangesNothingElseOfItsKey(t *testing.T) {
	s := small()
	apply(t, s, event.Record{Kind: event.KindRefusal,
		Refusal: event.Refusal{Account: 1, Key: 1, Nonce: 77, Reason: event.RefusedNonce}})
	was := *s.KeyByName("alice-1")
	resealed := func() event.Record {
		k := was.Key
		k.SealedBy, k.Sealed = was.SealedBy+1, []byte("another seal")
		return event.Record{Kind: event.KindKey, Key: k}
	}
	for what, change := range map[string]func(*event.Key){
		"under the same server key": func(k *event.Key) { k.SealedBy-- },
		"for another account":       func(k *event.Key) { k.Account = 2 },
		"under another name":        func(k *event.Key) { k.Key = "alice-2" },
		"with other permissions":    func(k *event.Key) { k.Permissions = event.PermissionRead },
		"from anywhere":             func(k *event.Key) { k.Allow = nil },
		"as a number that is not":   func(k *event.Key) { k.Number = 2 },
	} {
		r := resealed()
		change(&r.Key)
		if err := s.Apply(&r, new(Effects)); err == nil ||
			!strings.Contains(err.Error(), "exists already, or its account") {
			t.Errorf("%s: %v", what, err)
		}
		if got := s.KeyByName("alice-1"); !reflect.DeepEqual(*got, was) {
			t.Fatalf("%s: %+v", what, got)
		}
	}
	before := s.Hash()
	apply(t, s, resealed())
	want := was
	want.Key = resealed().Key
	if got := s.KeyByName("alice-1"); !reflect.DeepEqual(*got, want) || s.Hash() == before {
		t.Errorf("%+v, want %+v", got, want)
	}
	apply(t, s, event.Record{Kind: event.KindKeyRevoked, KeyRevoked: event.KeyRevoked{Number: 1}})
	// a revoked key has no secret
	if err := s.Apply(&event.Record{Kind: event.KindKey, Key: was.Key}, new(Effects)); err == nil {
		t.Error("a revoked key is sealed again")
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

func TestApplyRefusesDepositsThatReachTheSupply(t *testing.T) {
	s := New()
	apply(t, s, founding()...)
	r := deposit()
	r.Deposit.ID = 1
	s.currencies[0].Deposited = money.MaxSupply.Sub(r.Deposit.Amount.Balance())
	if err := s.Apply(&r, new(Effects)); err == nil ||
		!strings.Contains(err.Error(), "all deposits of BTC would be") {
		t.Error(err)
	}
	s.currencies[0].Deposited = money.MaxSupply.Sub((r.Deposit.Amount + 1).Balance())
	apply(t, s, r)
}

func TestUnknownNamesHaveNoEntry(t *testing.T) {
	s := small()
	if s.Pair(0) != nil || s.Pair(3) != nil || s.Account(0) != nil || s.Account(4) != nil ||
		s.AccountByName("carol") != nil || s.KeyByName("x") != nil {
		t.Error("something unknown is known")
	}
	if _, _, ok := s.OpenOrder(s.Account(2), 1); ok {
		t.Error("another account's order is bob's")
	}
}
