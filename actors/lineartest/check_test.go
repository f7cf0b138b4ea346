package lineartest

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// A script writes a history whose operations have names.
type script struct {
	*History
	nonces map[int]uint64
	named  map[string]*Recorded
}

func newScript() *script {
	s := &script{&History{}, map[int]uint64{}, map[string]*Recorded{}}
	for pair := range Pairs {
		for account := range Accounts {
			s.Fees[pair][account] = Rates{Maker: 10, Taker: 20}
		}
	}
	for account := range Accounts {
		s.did("", Operation{Kind: CreateKey, Account: account, Key: account + 1,
			Permissions: MayAll}, Result{})
	}
	return s
}

// begin signs with the account's first key and the key's next nonce, unless the operation names
// others.
func (s *script) begin(name string, o Operation) *Recorded {
	if o.Kind.Needs() != 0 {
		if o.Key == 0 {
			o.Key = o.Account + 1
		}
		if o.Nonce == 0 {
			s.nonces[o.Key]++
			o.Nonce = s.nonces[o.Key]
		}
	}
	r := s.Begin(o.Account, o)
	if name != "" {
		s.named[name] = r
	}
	return r
}

func (s *script) did(name string, o Operation, r Result) {
	if r.Outcome == Unknown {
		r.Outcome = Done
	}
	s.begin(name, o).End(r)
}

// sample is a right history of two accounts. It contains everything that the planted errors below
// change: trades with several orders of one price and their fees, cancels, withdrawals, keys, a
// freeze, two pairs, refusals, operations that overlap, and one without an outcome.
func sample() *script {
	s := newScript()
	s.did("", Operation{Kind: Deposit, Account: 0, Amount: 10}, Result{})
	s.did("", Operation{Kind: Deposit, Account: 1, Currency: 1, Amount: 1000}, Result{})
	s.trade()
	s.payOut()
	s.reserveForTwoBooks()
	s.changeKeys()
	s.overlap()
	return s
}

func (s *script) trade() {
	s.did("", Operation{Kind: Place, Account: 0, Order: 1, Price: 100, Amount: 2},
		Result{ID: 1, Remains: 2})
	s.did("", Operation{Kind: Place, Account: 0, Order: 2, Price: 100, Amount: 2},
		Result{ID: 2, Remains: 2})
	s.did("", Operation{Kind: Place, Account: 0, Order: 3, Price: 99, Amount: 1},
		Result{ID: 3, Remains: 1})
	s.did("too much", Operation{Kind: Place, Account: 0, Order: 4, Price: 90, Amount: 6},
		Result{Outcome: RefusedFunds})
	s.did("first book", Operation{Kind: ReadBook},
		Result{Levels: [2][]Level{nil, {{99, 1}, {100, 4}}}, UpdateID: 3})
	s.did("big buy", Operation{Kind: Place, Account: 1, Order: 5, Buy: true, Price: 101, Amount: 4},
		Result{ID: 4, Trades: []Trade{{1, 3, 99, 1}, {2, 1, 100, 2}, {3, 2, 100, 1}}})
	s.did("repeated", Operation{Kind: Place, Account: 1, Pair: 1, Order: 5, Price: 100, Amount: 1},
		Result{Outcome: RefusedRepeated, ID: 4})
	s.did("partly filled", Operation{Kind: ReadOrder, Account: 0, Order: 2},
		Result{Orders: []OrderRow{{2, 2, Open, 1}}})
	s.did("open orders", Operation{Kind: ReadOpen, Account: 0},
		Result{Orders: []OrderRow{{2, 2, Open, 1}}})
	s.did("buyer", Operation{Kind: ReadWallet, Account: 1},
		Result{Funds: Wallet{{39_920, 0}, {6_010_000, 0}}})
	s.did("seller", Operation{Kind: ReadWallet, Account: 0},
		Result{Funds: Wallet{{60_000, 10_000}, {3_986_010, 0}}})
	s.did("fees", Operation{Kind: ReadWallet, Account: FeeAccount},
		Result{Funds: Wallet{{80, 0}, {3_990, 0}}})
	s.did("cancel", Operation{Kind: Cancel, Account: 0, Order: 2}, Result{ID: 5, Remains: 1})
	s.did("second cancel", Operation{Kind: Cancel, Account: 0, Order: 2},
		Result{Outcome: RefusedState})
	s.did("cancelled", Operation{Kind: ReadOrder, Account: 0, Order: 2},
		Result{Orders: []OrderRow{{2, 2, Cancelled, 1}}})
}

func (s *script) payOut() {
	s.did("withdraw", Operation{Kind: Withdrawal, Account: 0, Withdrawal: 1, Currency: 1,
		Amount: 300}, Result{})
	s.did("withdraw too much", Operation{Kind: Withdrawal, Account: 0, Withdrawal: 2, Currency: 1,
		Amount: 100}, Result{Outcome: RefusedFunds})
	s.did("new", Operation{Kind: ReadPending, Account: 0}, Result{Pending: []Pending{{1, false}}})
	s.did("", Operation{Kind: Freeze, Account: 0, On: true}, Result{})
	s.did("approve of a frozen one", Operation{Kind: ApproveWithdrawal, Withdrawal: 1},
		Result{Outcome: RefusedFrozen})
	s.did("", Operation{Kind: Freeze, Account: 0}, Result{})
	s.did("confirm", Operation{Kind: ConfirmWithdrawal, Withdrawal: 1}, Result{})
	s.did("confirmed", Operation{Kind: ReadPending, Account: 0},
		Result{Pending: []Pending{{1, true}}})
	s.did("approve", Operation{Kind: ApproveWithdrawal, Withdrawal: 1}, Result{})
	s.did("late cancel", Operation{Kind: CancelWithdrawal, Withdrawal: 1},
		Result{Outcome: RefusedState})
	s.did("paid out", Operation{Kind: ReadWallet, Account: 0},
		Result{Funds: Wallet{{60_000, 0}, {986_010, 0}}})
	s.did("", Operation{Kind: Deposit, Currency: 2, Amount: 3}, Result{})
	s.did("", Operation{Kind: Freeze, Account: 0, On: true}, Result{})
	s.did("adjust", Operation{Kind: Adjustment, Currency: 2, Amount: 2}, Result{})
	s.did("adjust too much", Operation{Kind: Adjustment, Currency: 2, Amount: 2},
		Result{Outcome: RefusedFunds})
	s.did("", Operation{Kind: Freeze, Account: 0}, Result{})
	s.did("", Operation{Kind: Adjustment, Currency: 2, Amount: 1}, Result{})
	s.did("adjusted", Operation{Kind: ReadWallet, Account: 0},
		Result{Funds: Wallet{{60_000, 0}, {986_010, 0}}})
}

func (s *script) reserveForTwoBooks() {
	s.did("", Operation{Kind: Place, Account: 0, Pair: 1, Order: 10, Price: 50, Amount: 4},
		Result{ID: 6, Remains: 4})
	s.did("", Operation{Kind: Place, Account: 0, Order: 11, Price: 120, Amount: 2},
		Result{ID: 7, Remains: 2})
	s.did("money of both", Operation{Kind: Place, Account: 0, Pair: 1, Order: 12, Price: 50,
		Amount: 1}, Result{Outcome: RefusedFunds})
	s.did("other book", Operation{Kind: ReadBook, Pair: 1},
		Result{Levels: [2][]Level{nil, {{50, 4}}}, UpdateID: 1})
	s.did("", Operation{Kind: Cancel, Account: 0, Pair: 1, Order: 10}, Result{ID: 8, Remains: 4})
	s.did("one reserve", Operation{Kind: ReadWallet, Account: 0},
		Result{Funds: Wallet{{60_000, 20_000}, {986_010, 0}}})
	s.did("", Operation{Kind: Place, Account: 0, Order: 13, Price: 130, Amount: 1},
		Result{ID: 9, Remains: 1})
	s.did("", Operation{Kind: Place, Account: 0, Pair: 1, Order: 14, Price: 140, Amount: 1},
		Result{ID: 10, Remains: 1})
	s.did("", Operation{Kind: CancelAll, Account: 0, Pair: 1}, Result{Cancelled: []uint64{10}})
	s.did("cancel all", Operation{Kind: CancelAll, Account: 0, Pair: AllPairs},
		Result{Cancelled: []uint64{7, 9}})
	s.did("nothing to cancel", Operation{Kind: CancelAll, Account: 0, Pair: AllPairs},
		Result{Outcome: RefusedState})
	s.did("", Operation{Kind: ReadWallet, Account: 0},
		Result{Funds: Wallet{{60_000, 0}, {986_010, 0}}})
}

func (s *script) changeKeys() {
	s.did("", Operation{Kind: CreateKey, Account: 1, Key: 9, Permissions: MayRead}, Result{})
	order := Operation{Kind: Place, Account: 1, Key: 9, Order: 20, Price: 110, Amount: 1}
	s.did("not permitted", order, Result{Outcome: RefusedPermission})
	s.did("reads", Operation{Kind: ReadOpen, Account: 1, Key: 9}, Result{})
	s.did("same nonce", Operation{Kind: ReadOpen, Account: 1, Key: 9, Nonce: 2},
		Result{Outcome: RefusedNonce, LastNonce: 2})
	// read while its key was valid, and again when the account was frozen
	late := s.begin("", Operation{Kind: ReadOpen, Account: 1, Key: 9})
	s.did("", Operation{Kind: RevokeKey, Account: 1, Key: 9}, Result{})
	s.did("revoked", Operation{Kind: ReadOpen, Account: 1, Key: 9}, Result{Outcome: RefusedKey})
	s.did("revoked twice", Operation{Kind: RevokeKey, Account: 1, Key: 9},
		Result{Outcome: RefusedState})
	s.did("", Operation{Kind: Freeze, Account: 1, On: true}, Result{})
	late.End(Result{Outcome: RefusedFrozen})
	order.Key = 0
	s.did("frozen", order, Result{Outcome: RefusedFrozen})
	s.did("frozen reads", Operation{Kind: ReadOpen, Account: 1}, Result{Outcome: RefusedFrozen})
	s.did("keys", Operation{Kind: ReadKeys, Account: 1},
		Result{Frozen: true, Keys: []KeyRow{{Key: 2, Permissions: MayAll},
			{Key: 9, Revoked: true}}})
	s.did("", Operation{Kind: Freeze, Account: 1}, Result{})
	s.did("deposit", Operation{Kind: Deposit, Account: 1, Currency: 2, Amount: 1}, Result{})
	s.did("rich", Operation{Kind: ReadWallet, Account: 1},
		Result{Funds: Wallet{{39_920, 0}, {6_010_000, 0}, {10_000, 0}}})
}

// overlap adds an order without an outcome, and two orders that overlap: their answers are right if
// the first one happened first.
func (s *script) overlap() {
	s.begin("", Operation{Kind: Place, Account: 0, Order: 6, Price: 110, Amount: 1})
	first := s.begin("", Operation{Kind: Place, Account: 0, Order: 7, Price: 110, Amount: 1})
	second := s.begin("overlapping buy",
		Operation{Kind: Place, Account: 1, Order: 8, Buy: true, Price: 110, Amount: 1})
	second.End(Result{Outcome: Done, ID: 12, Trades: []Trade{{4, 7, 110, 1}}})
	first.End(Result{Outcome: Done, ID: 11, Remains: 1})
	s.did("before", Operation{Kind: ReadBook}, Result{UpdateID: 11})
	// Now the order without an outcome has happened.
	s.did("after", Operation{Kind: ReadBook},
		Result{Levels: [2][]Level{nil, {{110, 1}}}, UpdateID: 12})
	s.Settle()
	s.did("", Operation{Kind: ReadBook}, Result{Levels: [2][]Level{nil, {{110, 1}}}, UpdateID: 12})
}

func isWrong(s *script) bool { return errors.Is(s.Judge(decideWithin), ErrNotLinearizable) }

// A plantedError changes the result of a named operation of a right history, to make it wrong.
type plantedError struct {
	planted, of string
	change      func(r *Result)
}

var plantedErrors = []plantedError{
	{"a book without an acknowledged order", "first book",
		func(r *Result) { r.Levels[1] = []Level{{99, 1}, {100, 2}} }},
	{"a stale book", "first book",
		func(r *Result) { r.Levels[1], r.UpdateID = []Level{{100, 4}}, 2 }},
	{"a stale wallet", "rich", func(r *Result) { r.Funds[2] = Funds{} }},
	{"a book of the other pair", "other book",
		func(r *Result) { r.Levels[1], r.UpdateID = []Level{{120, 2}}, 8 }},
	{"an update id that skips", "first book", func(r *Result) { r.UpdateID = 4 }},
	{"a younger order that is filled first", "big buy",
		func(r *Result) { r.Trades = []Trade{{1, 3, 99, 1}, {2, 2, 100, 2}, {3, 1, 100, 1}} }},
	{"a dearer order that is filled first", "big buy",
		func(r *Result) { r.Trades = []Trade{{1, 1, 100, 2}, {2, 2, 100, 1}, {3, 3, 99, 1}} }},
	{"an order that is filled twice", "big buy",
		func(r *Result) { r.Trades = []Trade{{1, 3, 99, 1}, {2, 1, 100, 2}, {3, 1, 100, 1}} }},
	{"a trade at the taker's price", "big buy",
		func(r *Result) { r.Trades = []Trade{{1, 3, 101, 1}, {2, 1, 100, 2}, {3, 2, 100, 1}} }},
	{"a trade with itself", "big buy",
		func(r *Result) { r.Trades = []Trade{{1, 5, 99, 1}, {2, 1, 100, 2}, {3, 2, 100, 1}} }},
	{"trades whose ids fall", "big buy",
		func(r *Result) { r.Trades = []Trade{{3, 3, 99, 1}, {2, 1, 100, 2}, {4, 2, 100, 1}} }},
	{"an order id that was given before", "big buy", func(r *Result) { r.ID = 3 }},
	{"an order id that the other pair has given", "big buy", func(r *Result) { r.ID = 6 }},
	{"an order that is more filled", "partly filled",
		func(r *Result) { r.Orders = []OrderRow{{2, 2, Filled, 0}} }},
	{"an order that is not filled", "partly filled",
		func(r *Result) { r.Orders = []OrderRow{{2, 2, Open, 2}} }},
	{"an order that is lost", "partly filled", func(r *Result) { r.Orders = nil }},
	{"an open order that is left out", "open orders", func(r *Result) { r.Orders = nil }},
	{"an order that no client sent", "open orders",
		func(r *Result) { r.Orders = append(r.Orders, OrderRow{9, 9, Open, 1}) }},
	{"a repeated id that is taken", "repeated",
		func(r *Result) { *r = Result{Outcome: Done, ID: 20, Remains: 1} }},
	{"a repeated id that another order is said to have", "repeated", func(r *Result) { r.ID = 3 }},
	{"a repeated id that is refused for funds", "repeated",
		func(r *Result) { *r = Result{Outcome: RefusedFunds} }},
	{"a new id that is called repeated", "too much",
		func(r *Result) { *r = Result{Outcome: RefusedRepeated} }},
	{"a buyer who pays the limit", "buyer", func(r *Result) { r.Funds[1].Balance -= 50_000 }},
	{"a reserve that is not released", "buyer", func(r *Result) { r.Funds[1].Reserve = 50_000 }},
	{"a seller who is paid twice", "seller", func(r *Result) { r.Funds[1].Balance += 999_000 }},
	{"a fee that is not taken", "buyer", func(r *Result) { r.Funds[0].Balance = 40_000 }},
	{"a fee that is taken twice", "buyer", func(r *Result) { r.Funds[0].Balance = 39_840 }},
	{"a maker's fee for a taker", "buyer", func(r *Result) { r.Funds[0].Balance = 39_960 }},
	{"a fee that is not credited", "fees", func(r *Result) { r.Funds[0].Balance = 0 }},
	{"a fee that is credited twice", "fees", func(r *Result) { r.Funds[1].Balance = 7_980 }},
	{"a cancel that is forgotten", "cancelled",
		func(r *Result) { r.Orders = []OrderRow{{2, 2, Open, 1}} }},
	{"a cancel that released too much", "cancel", func(r *Result) { r.Remains = 2 }},
	{"two cancels of one order", "second cancel",
		func(r *Result) { *r = Result{Outcome: Done, ID: 6, Remains: 1} }},
	{"a right cancel that is refused", "cancel",
		func(r *Result) { *r = Result{Outcome: RefusedState} }},
	{"a cancel of all that misses one", "cancel all",
		func(r *Result) { r.Cancelled = []uint64{7} }},
	{"a cancel of all that cancels one that is closed", "cancel all",
		func(r *Result) { r.Cancelled = []uint64{6, 7, 9} }},
	{"a cancel of all that finds none", "cancel all",
		func(r *Result) { *r = Result{Outcome: RefusedState} }},
	{"a cancel of all that cancels another's", "nothing to cancel",
		func(r *Result) { *r = Result{Outcome: Done, Cancelled: []uint64{4}} }},
	{"a refused order that is there", "too much",
		func(r *Result) { *r = Result{Outcome: Done, ID: 4, Remains: 6} }},
	{"money that both books take", "money of both",
		func(r *Result) { *r = Result{Outcome: Done, ID: 8, Remains: 1} }},
	{"a reserve that is released for both books", "one reserve",
		func(r *Result) { r.Funds[0].Reserve = 0 }},
	{"a reserve that no book has", "one reserve", func(r *Result) { r.Funds[0].Reserve = 60_000 }},
	{"a withdrawal of more than is there", "withdraw too much",
		func(r *Result) { r.Outcome = Done }},
	{"a withdrawal that is refused", "withdraw", func(r *Result) { r.Outcome = RefusedFunds }},
	{"an approved withdrawal that is cancelled", "late cancel",
		func(r *Result) { r.Outcome = Done }},
	{"a right confirmation that is refused", "confirm",
		func(r *Result) { r.Outcome = RefusedState }},
	{"a withdrawal that is lost", "new", func(r *Result) { r.Pending = nil }},
	{"a confirmation that is lost", "confirmed",
		func(r *Result) { r.Pending[0].Confirmed = false }},
	{"a withdrawal that no client asked for", "new",
		func(r *Result) { r.Pending = append(r.Pending, Pending{2, false}) }},
	{"money of a frozen account that leaves", "approve of a frozen one",
		func(r *Result) { r.Outcome = Done }},
	{"an approval that is refused as if of a frozen account", "approve",
		func(r *Result) { r.Outcome = RefusedFrozen }},
	{"money that was paid out and stays", "paid out",
		func(r *Result) { r.Funds[1].Balance = 3_986_010 }},
	{"an adjustment of more than is there", "adjust too much",
		func(r *Result) { r.Outcome = Done }},
	{"an adjustment that is refused", "adjust", func(r *Result) { r.Outcome = RefusedFunds }},
	{"money that was taken and stays", "adjusted",
		func(r *Result) { r.Funds[2].Balance = 10_000 }},
	{"a key that does what it may not", "not permitted",
		func(r *Result) { *r = Result{Outcome: RefusedFunds} }},
	{"a key that may not do what it may", "reads",
		func(r *Result) { *r = Result{Outcome: RefusedPermission} }},
	{"a key that is not known when it was made", "reads",
		func(r *Result) { *r = Result{Outcome: RefusedKey} }},
	{"a nonce that is taken twice", "same nonce", func(r *Result) { *r = Result{Outcome: Done} }},
	{"a new nonce that is refused", "reads",
		func(r *Result) { *r = Result{Outcome: RefusedNonce, LastNonce: 2} }},
	{"a last nonce that was never used", "same nonce", func(r *Result) { r.LastNonce = 3 }},
	{"a revoked key that reads", "revoked", func(r *Result) { *r = Result{Outcome: Done} }},
	{"a revoked key whose nonce is looked at", "revoked",
		func(r *Result) { *r = Result{Outcome: RefusedNonce, LastNonce: 3} }},
	{"a key that is revoked twice", "revoked twice",
		func(r *Result) { *r = Result{Outcome: Done} }},
	{"a revoked key that is listed as live", "keys",
		func(r *Result) { r.Keys[1] = KeyRow{Key: 9, Permissions: MayRead} }},
	{"a key that is lost", "keys", func(r *Result) { r.Keys = r.Keys[1:] }},
	{"a key with more permissions", "keys", func(r *Result) { r.Keys[0].Permissions = MayRead }},
	{"a freeze that is lost", "keys", func(r *Result) { r.Frozen = false }},
	{"a frozen account that trades", "frozen",
		func(r *Result) { *r = Result{Outcome: Done, ID: 11, Remains: 1} }},
	{"a frozen account whose order is looked at", "frozen",
		func(r *Result) { *r = Result{Outcome: RefusedFunds} }},
	{"a frozen account that reads", "frozen reads", func(r *Result) { *r = Result{Outcome: Done} }},
	{"a freeze that no operator asked for", "reads",
		func(r *Result) { *r = Result{Outcome: RefusedFrozen} }},
	{"an order that is filled before it was sent", "overlapping buy",
		func(r *Result) { r.Trades[0].Maker = 8 }},
}

// special is a right history of orders that do not rest, and of amends.
func special() *script {
	s := newScript()
	s.did("", Operation{Kind: Deposit, Account: 0, Amount: 10}, Result{})
	s.did("", Operation{Kind: Deposit, Account: 1, Currency: 1, Amount: 1000}, Result{})
	s.did("", Operation{Kind: Place, Account: 0, Order: 1, Price: 100, Amount: 2},
		Result{ID: 1, Remains: 2})
	s.did("", Operation{Kind: Place, Account: 0, Order: 2, Price: 101, Amount: 3},
		Result{ID: 2, Remains: 3})
	s.did("fok", Operation{Kind: Place, Account: 1, Order: 3, Buy: true, Price: 100, Amount: 3,
		Force: FOK}, Result{ID: 3, Remains: 3})
	s.did("ioc", Operation{Kind: Place, Account: 1, Order: 4, Buy: true, Price: 100, Amount: 3,
		Force: IOC}, Result{ID: 4, Remains: 1, Trades: []Trade{{1, 1, 100, 2}}})
	s.did("book", Operation{Kind: ReadBook},
		Result{Levels: [2][]Level{nil, {{101, 3}}}, UpdateID: 3})
	s.did("ended", Operation{Kind: ReadOrder, Account: 1, Order: 4},
		Result{Orders: []OrderRow{{4, 4, Cancelled, 1}}})
	s.did("", Operation{Kind: Place, Account: 1, Order: 5, Buy: true, Price: 98, Amount: 1},
		Result{ID: 5, Remains: 1})
	s.did("larger", Operation{Kind: Amend, Account: 1, Order: 5, Amount: 5},
		Result{ID: 6, Remains: 5})
	s.did("no change", Operation{Kind: Amend, Account: 1, Order: 5, Price: 98},
		Result{ID: 7, Remains: 5})
	s.did("too much", Operation{Kind: Amend, Account: 1, Order: 5, Price: 161},
		Result{Outcome: RefusedFunds})
	s.did("amend", Operation{Kind: Amend, Account: 1, Order: 5, Price: 101},
		Result{ID: 8, Remains: 2, Trades: []Trade{{2, 2, 101, 3}}})
	s.did("reserve", Operation{Kind: ReadWallet, Account: 1},
		Result{Funds: Wallet{{49_900, 0}, {4_970_000, 2_020_000}, {}}})
	s.did("late", Operation{Kind: Amend, Account: 0, Order: 2, Price: 99},
		Result{Outcome: RefusedState})
	s.Settle()
	return s
}

var specialErrors = []plantedError{
	{"a fok order that trades in part", "fok",
		func(r *Result) { r.Remains, r.Trades = 1, []Trade{{1, 1, 100, 2}} }},
	{"an ioc order that takes nothing", "ioc", func(r *Result) { r.Remains, r.Trades = 3, nil }},
	{"an ioc order that rests", "ended",
		func(r *Result) { r.Orders = []OrderRow{{4, 4, Open, 1}} }},
	{"the rest of an ioc order in the book", "book",
		func(r *Result) { r.Levels[0] = []Level{{100, 1}} }},
	{"an order without effect that is counted", "book", func(r *Result) { r.UpdateID = 4 }},
	{"an amend that changes nothing", "larger", func(r *Result) { r.Remains = 1 }},
	{"an amend that is refused though there are funds", "larger",
		func(r *Result) { *r = Result{Outcome: RefusedFunds} }},
	{"an amend that takes more than there is", "too much",
		func(r *Result) { *r = Result{Outcome: Done, ID: 8, Remains: 5} }},
	{"an amend that trades at its own price", "amend",
		func(r *Result) { r.Trades = []Trade{{2, 2, 102, 3}} }},
	{"an amend that meets nothing", "amend", func(r *Result) { r.Remains, r.Trades = 5, nil }},
	{"a reserve that an amend leaks", "reserve", func(r *Result) { r.Funds[1].Reserve += 10_000 }},
	{"an amend of an order that is filled", "late",
		func(r *Result) { *r = Result{Outcome: Done, ID: 9, Remains: 1} }},
}

// A check that accepts everything would prove nothing.
func TestPlantedErrorsAreFound(t *testing.T) {
	find := func(planted string, s *script) {
		t.Helper()
		if !isWrong(s) {
			t.Errorf("%s is not found", planted)
		}
	}
	for _, x := range []struct {
		right  func() *script
		errors []plantedError
	}{{sample, plantedErrors}, {special, specialErrors}} {
		if err := x.right().Check(); err != nil {
			t.Fatal(err)
		}
		for _, p := range x.errors {
			s := x.right()
			p.change(&s.named[p.of].Result)
			find(p.planted, s)
		}
	}
	s := sample()
	s.named["too much"].Operation.Amount = 5
	find("a refusal though there are funds", s)
	s = sample()
	r := s.named["revoked"]
	r.Operation.Kind = Place // without funds, so it changes nothing
	r.Operation.Order, r.Operation.Amount, r.Operation.Price = 30, 1000, 1
	r.Result.Outcome = RefusedFunds
	find("a revoked key that trades", s)
	s = sample()
	before, after := s.named["before"], s.named["after"]
	before.Result, after.Result = after.Result, before.Result
	find("an unknown order that comes and goes", s)
}

func TestARefusalForFundsMayIgnoreOnlyOverlappingCredits(t *testing.T) {
	try := func(overlaps, right bool) {
		t.Helper()
		s := newScript()
		place := Operation{Kind: Place, Order: 1, Price: 1, Amount: 1}
		deposit := s.begin("", Operation{Kind: Deposit, Amount: 1})
		var refused *Recorded
		if overlaps {
			refused = s.begin("", place)
		}
		deposit.End(Result{Outcome: Done})
		s.did("", Operation{Kind: ReadWallet}, Result{Funds: Wallet{{Unit, 0}}})
		if !overlaps {
			refused = s.begin("", place)
		}
		refused.End(Result{Outcome: RefusedFunds})
		if err := s.Check(); (err == nil) != right || isWrong(s) == right {
			t.Errorf("the deposit overlaps with the refusal: %v; the check says %v", overlaps, err)
		}
	}
	t.Setenv("TMPDIR", t.TempDir())
	try(true, true)
	try(false, false)
}

// A wallet refuses an order for funds reserved by another order in flight. A third one, which it
// receives later and which has the client order id of the refused one, may be in before the first.
func TestARefusalForFundsMayIgnoreAnOverlappingOrderUnderItsID(t *testing.T) {
	s := newScript()
	s.did("", Operation{Kind: Deposit, Amount: 1}, Result{})
	s.did("", Operation{Kind: Deposit, Currency: 2, Amount: 1}, Result{})
	first := s.begin("", Operation{Kind: Place, Order: 1, Price: 1, Amount: 1})
	refused := s.begin("", Operation{Kind: Place, Pair: 1, Order: 2, Price: 1, Amount: 1})
	s.did("", Operation{Kind: Place, Pair: 1, Order: 2, Buy: true, Price: 1, Amount: 1},
		Result{ID: 1, Remains: 1})
	s.did("", Operation{Kind: ReadOpen, Nonce: 5}, Result{Orders: []OrderRow{{2, 1, Open, 1}}})
	first.End(Result{Outcome: Done, ID: 2, Remains: 1})
	refused.End(Result{Outcome: RefusedFunds})
	s.try(t, "orders that overlap", true)
}

// try reports a wrongly judged history.
func (s *script) try(t *testing.T, history string, right bool) {
	t.Helper()
	if wrong := isWrong(s); wrong == right {
		t.Errorf("%s: the check says that the history is wrong: %v", history, wrong)
	}
}

func TestAnOrderWithoutAnOutcomeHappensBeforeSettleOrNever(t *testing.T) {
	try := func(order string, right bool, looks ...Result) {
		t.Helper()
		s := newScript()
		s.did("", Operation{Kind: Deposit, Amount: 2}, Result{})
		s.begin("", Operation{Kind: Place, Order: 1, Price: 1, Amount: 1})
		// The same order cannot be accepted again.
		s.begin("", Operation{Kind: Place, Order: 1, Price: 1, Amount: 1})
		s.Settle()
		for _, look := range looks {
			s.did("", Operation{Kind: ReadOrder, Order: 1}, look)
		}
		s.try(t, order, right)
	}
	there := Result{Orders: []OrderRow{{1, 1, Open, 1}}}
	try("an order that is there", true, there, there)
	try("an order that is not there", true, Result{}, Result{})
	try("an order that comes later", false, Result{}, there)
	try("an order that is lost again", false, there, Result{})
}

func TestACancelOfAllWithoutAnOutcomeMayHaveCancelledSome(t *testing.T) {
	try := func(cancelled string, right bool, looks ...Status) {
		t.Helper()
		s := newScript()
		s.did("", Operation{Kind: Deposit, Amount: 2}, Result{})
		for i := range 2 {
			s.did("", Operation{Kind: Place, Order: i + 1, Price: 1, Amount: 1},
				Result{ID: uint64(i + 1), Remains: 1})
		}
		s.begin("", Operation{Kind: CancelAll, Pair: AllPairs})
		s.Settle()
		for i, status := range looks {
			order := i%2 + 1
			s.did("", Operation{Kind: ReadOrder, Order: order},
				Result{Orders: []OrderRow{{order, uint64(order), status, 1}}})
		}
		s.try(t, cancelled, right)
	}
	try("none", true, Open, Open)
	try("one", true, Open, Cancelled, Open, Cancelled)
	try("both", true, Cancelled, Cancelled)
	try("one that is cancelled later", false, Open, Cancelled, Cancelled)
	try("one that is open again", false, Cancelled, Open, Open)
	try("one that is filled", false, Filled)
}

func TestARestartMayForgetTheNoncesOfReadsOnly(t *testing.T) {
	try := func(nonce string, right bool, o Operation, r Result) {
		t.Helper()
		s := newScript()
		s.did("", Operation{Kind: CancelAll, Nonce: 5}, Result{Outcome: RefusedState})
		s.did("", Operation{Kind: ReadOpen, Nonce: 9}, Result{})
		s.did("", Operation{Kind: Restart}, Result{})
		s.did("", o, r)
		s.try(t, nonce, right)
	}
	try("a nonce of a read that is kept", true, Operation{Kind: ReadOpen, Nonce: 9},
		Result{Outcome: RefusedNonce, LastNonce: 9})
	try("a nonce of a read that is forgotten", true, Operation{Kind: ReadOpen, Nonce: 8}, Result{})
	try("a nonce of a command that is forgotten", false,
		Operation{Kind: ReadOpen, Nonce: 5}, Result{})
	try("a last nonce below a command's", false, Operation{Kind: ReadOpen, Nonce: 3},
		Result{Outcome: RefusedNonce, LastNonce: 4})
}

func TestAWrongHistoryIsWrittenToAPage(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := sample()
	s.named["first book"].Result.UpdateID++
	err := s.Check()
	if !errors.Is(err, ErrNotLinearizable) {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(err.Error(), "see ")
	b, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(b), "read book") {
		t.Errorf("the page %s: %v", page, err)
	}
}
