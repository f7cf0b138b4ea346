package lineartest

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// sample is a right history of two accounts, with what the planted errors below are made of: trades of several orders
// of one price, a cancel, withdrawals, refusals, overlapping operations, and one without an outcome.
func sample() *History {
	h := &History{}
	did := func(o Operation, r Result) {
		if r.Outcome == Unknown {
			r.Outcome = Done
		}
		h.Begin(o.Account, o).End(r)
	}
	did(Operation{Kind: Deposit, Account: 0, Amount: 10}, Result{})
	did(Operation{Kind: Deposit, Account: 1, Quote: true, Amount: 1000}, Result{})
	did(Operation{Kind: Place, Account: 0, Order: 1, Price: 100, Amount: 2}, Result{ID: 1, Remains: 2})
	did(Operation{Kind: Place, Account: 0, Order: 2, Price: 100, Amount: 2}, Result{ID: 2, Remains: 2})
	did(Operation{Kind: Place, Account: 0, Order: 3, Price: 99, Amount: 1}, Result{ID: 3, Remains: 1})
	did(Operation{Kind: Place, Account: 0, Order: 4, Price: 90, Amount: 6}, Result{Outcome: RefusedFunds})
	did(Operation{Kind: ReadBook}, Result{Levels: [2][]Level{nil, {{99, 1}, {100, 4}}}, UpdateID: 3})
	did(Operation{Kind: Place, Account: 1, Order: 5, Buy: true, Price: 101, Amount: 4},
		Result{ID: 4, Trades: []Trade{{1, 3, 99, 1}, {2, 1, 100, 2}, {3, 2, 100, 1}}})
	did(Operation{Kind: ReadOrder, Account: 0, Order: 2}, Result{Orders: []OrderRow{{2, 2, Open, 1}}})
	did(Operation{Kind: ReadOpen, Account: 0}, Result{Orders: []OrderRow{{2, 2, Open, 1}}})
	did(Operation{Kind: ReadWallet, Account: 1}, Result{Base: Funds{4, 0}, Quote: Funds{601, 0}})
	did(Operation{Kind: ReadWallet, Account: 0}, Result{Base: Funds{6, 1}, Quote: Funds{399, 0}})
	did(Operation{Kind: Cancel, Account: 0, Order: 2}, Result{ID: 5, Remains: 1})
	did(Operation{Kind: Cancel, Account: 0, Order: 2}, Result{Outcome: RefusedState})
	did(Operation{Kind: ReadOrder, Account: 0, Order: 2}, Result{Orders: []OrderRow{{2, 2, Cancelled, 1}}})
	did(Operation{Kind: Withdraw, Account: 0, Withdrawal: 1, Quote: true, Amount: 300}, Result{})
	did(Operation{Kind: Withdraw, Account: 0, Withdrawal: 2, Quote: true, Amount: 100}, Result{Outcome: RefusedFunds})
	did(Operation{Kind: ConfirmWithdraw, Withdrawal: 1}, Result{})
	did(Operation{Kind: ApproveWithdraw, Withdrawal: 1}, Result{})
	did(Operation{Kind: CancelWithdraw, Withdrawal: 1}, Result{Outcome: RefusedState})
	did(Operation{Kind: ReadWallet, Account: 0}, Result{Base: Funds{6, 0}, Quote: Funds{99, 0}})
	// An order without an outcome, and two that overlap: each answer is right in one order of the two.
	h.Begin(0, Operation{Kind: Place, Account: 0, Order: 6, Price: 110, Amount: 1})
	first := h.Begin(0, Operation{Kind: Place, Account: 0, Order: 7, Price: 110, Amount: 1})
	second := h.Begin(1, Operation{Kind: Place, Account: 1, Order: 8, Buy: true, Price: 110, Amount: 1})
	second.End(Result{Outcome: Done, ID: 7, Trades: []Trade{{4, 7, 110, 1}}})
	first.End(Result{Outcome: Done, ID: 6, Remains: 1})
	did(Operation{Kind: ReadBook}, Result{UpdateID: 7})
	did(Operation{Kind: ReadBook}, Result{Levels: [2][]Level{nil, {{110, 1}}}, UpdateID: 8}) // now it has happened
	return h
}

// Positions in the sample.
const (
	refusedPlace  = 5
	firstBook     = 6
	bigBuy        = 7
	partlyFilled  = 8
	openOrders    = 9
	buyerWallet   = 10
	sellerWallet  = 11
	cancel        = 12
	secondCancel  = 13
	cancelled     = 14
	askedWithdraw = 15
	tooMuch       = 16
	approve       = 18
	lateCancel    = 19
	paidOut       = 20
	overlapBuy    = 23
	lastBook      = 25
)

func TestARightHistoryIsAccepted(t *testing.T) {
	if err := sample().Check(); err != nil {
		t.Fatal(err)
	}
}

// A check that accepts everything would prove nothing.
func TestPlantedErrorsAreFound(t *testing.T) {
	for what, plant := range map[string]func(ops []*Recorded){
		"a book without an acknowledged order": func(ops []*Recorded) {
			ops[firstBook].Result.Levels[1] = []Level{{99, 1}, {100, 2}}
		},
		"a stale book": func(ops []*Recorded) {
			ops[firstBook].Result.Levels[1], ops[firstBook].Result.UpdateID = []Level{{100, 4}}, 2
		},
		"an update id that skips": func(ops []*Recorded) { ops[firstBook].Result.UpdateID = 4 },
		"a younger order is filled before an older one": func(ops []*Recorded) {
			ops[bigBuy].Result.Trades = []Trade{{1, 3, 99, 1}, {2, 2, 100, 2}, {3, 1, 100, 1}}
		},
		"a dearer order is filled before a cheaper one": func(ops []*Recorded) {
			ops[bigBuy].Result.Trades = []Trade{{1, 1, 100, 2}, {2, 2, 100, 1}, {3, 3, 99, 1}}
		},
		"one order is filled twice": func(ops []*Recorded) {
			ops[bigBuy].Result.Trades = []Trade{{1, 3, 99, 1}, {2, 1, 100, 2}, {3, 1, 100, 1}}
		},
		"a trade at the taker's price": func(ops []*Recorded) {
			ops[bigBuy].Result.Trades = []Trade{{1, 3, 101, 1}, {2, 1, 100, 2}, {3, 2, 100, 1}}
		},
		"trades whose ids fall": func(ops []*Recorded) {
			ops[bigBuy].Result.Trades = []Trade{{3, 3, 99, 1}, {2, 1, 100, 2}, {4, 2, 100, 1}}
		},
		"an order id that was given before": func(ops []*Recorded) { ops[bigBuy].Result.ID = 3 },
		"an order that is more filled":      func(ops []*Recorded) { ops[partlyFilled].Result.Orders = []OrderRow{{2, 2, Filled, 0}} },
		"an order that is not filled":       func(ops []*Recorded) { ops[partlyFilled].Result.Orders = []OrderRow{{2, 2, Open, 2}} },
		"an order that is lost":             func(ops []*Recorded) { ops[partlyFilled].Result.Orders = nil },
		"an open order that is left out":    func(ops []*Recorded) { ops[openOrders].Result.Orders = nil },
		"an order that nobody sent": func(ops []*Recorded) {
			ops[openOrders].Result.Orders = append(ops[openOrders].Result.Orders, OrderRow{9, 9, Open, 1})
		},
		"a buyer who pays the limit":         func(ops []*Recorded) { ops[buyerWallet].Result.Quote.Balance = 596 },
		"a reserve that is not released":     func(ops []*Recorded) { ops[buyerWallet].Result.Quote.Reserve = 5 },
		"a seller who is paid twice":         func(ops []*Recorded) { ops[sellerWallet].Result.Quote.Balance = 499 },
		"a cancel that is forgotten":         func(ops []*Recorded) { ops[cancelled].Result.Orders = []OrderRow{{2, 2, Open, 1}} },
		"a cancel that released too much":    func(ops []*Recorded) { ops[cancel].Result.Remains = 2 },
		"two cancels of one order":           func(ops []*Recorded) { ops[secondCancel].Result = Result{Outcome: Done, ID: 6, Remains: 1} },
		"a cancel that is refused for once":  func(ops []*Recorded) { ops[cancel].Result = Result{Outcome: RefusedState} },
		"a refused order that is there":      func(ops []*Recorded) { ops[refusedPlace].Result = Result{Outcome: Done, ID: 4, Remains: 6} },
		"a refusal though there are funds":   func(ops []*Recorded) { ops[refusedPlace].Operation.Amount = 5 },
		"a withdraw of more than is there":   func(ops []*Recorded) { ops[tooMuch].Result.Outcome = Done },
		"a withdraw that is refused":         func(ops []*Recorded) { ops[askedWithdraw].Result.Outcome = RefusedFunds },
		"an approved withdraw is taken back": func(ops []*Recorded) { ops[lateCancel].Result.Outcome = Done },
		"a withdraw that nobody confirmed":   func(ops []*Recorded) { ops[approve-1].Result.Outcome = RefusedState },
		"money that was paid out and stays":  func(ops []*Recorded) { ops[paidOut].Result.Quote.Balance = 399 },
		"an order of the future is filled":   func(ops []*Recorded) { ops[overlapBuy].Result.Trades[0].Maker = 8 },
		"an unknown order that comes and goes": func(ops []*Recorded) {
			ops[lastBook-1].Result, ops[lastBook].Result = ops[lastBook].Result, ops[lastBook-1].Result
		},
	} {
		h := sample()
		plant(h.Operations())
		if h.Linearizable() {
			t.Errorf("%s is not found", what)
		}
	}
}

func TestARefusalMayLeaveOutOnlyWhatCameMeanwhile(t *testing.T) {
	f := func(overlaps, want bool) {
		t.Helper()
		h := &History{}
		place := Operation{Kind: Place, Order: 1, Price: 1, Amount: 1}
		deposit := h.Begin(1, Operation{Kind: Deposit, Amount: 1})
		var refused *Recorded
		if overlaps {
			refused = h.Begin(0, place)
		}
		deposit.End(Result{Outcome: Done})
		h.Begin(2, Operation{Kind: ReadWallet}).End(Result{Outcome: Done, Base: Funds{1, 0}})
		if !overlaps {
			refused = h.Begin(0, place)
		}
		refused.End(Result{Outcome: RefusedFunds})
		if got := h.Linearizable(); got != want {
			t.Errorf("overlapping %v: accepted %v", overlaps, got)
		}
	}
	f(true, true)
	f(false, false)
}

func TestAWrongHistoryIsShownOnAPage(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	h := sample()
	h.Operations()[firstBook].Result.UpdateID++
	err := h.Check()
	if !errors.Is(err, ErrNotLinearizable) {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(err.Error(), "see ")
	b, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(b), "read book") {
		t.Errorf("the page %s: %v", page, err)
	}
}
