package actors

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"exchange/actors/lineartest"
)

// histories is the number recorded on each store, unless EXCHANGE_LINEAR_HISTORIES sets another. As
// long as something is done in none of them, others follow, up to four times as many.
const histories = 8

// The store fails and the engine crashes, and clients get the answers of one exchange that does one
// operation after the other.
func TestConcurrentClientsSeeOneExchange(t *testing.T) {
	n, seed := histories, uint64(time.Now().UnixNano())
	for name, v := range map[string]func(uint64){
		"EXCHANGE_LINEAR_HISTORIES": func(u uint64) { n = int(u) },
		"EXCHANGE_LINEAR_SEED":      func(u uint64) { seed = u }} {
		if text := os.Getenv(name); text != "" {
			u, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			v(u)
		}
	}
	t.Logf("EXCHANGE_LINEAR_SEED=%d", seed)
	onEachStore(t, func(t *testing.T, fresh places) {
		var all tellings
		undecided := undecidedHistories{most: 3 * n}
		missing := all.missing()
		for i := 0; i < n+undecided.n || len(missing) > 0 && i < 4*n; i++ {
			r := newRecording(t, fresh(t), seed+uint64(i))
			r.run()
			if err := undecided.check(&r.history); err != nil {
				t.Fatalf("history %d: %v", i, err)
			}
			all.add(r)
			missing = all.missing()
		}
		t.Logf("%d histories, %d undecided, %d operations, faults %d, crashes %d, outcomes %v", n,
			undecided.n, all.operations, all.faults, all.crashes, all.outcomes)
		if len(missing) > 0 {
			t.Errorf("the histories show too little: %s", strings.Join(missing, ", "))
		}
	})
}

// undecidedHistories counts the histories that the checker does not decide. They show nothing, so
// the test records others in their place, as long as they are few.
type undecidedHistories struct{ n, most int }

// check returns an error for a wrong history, and for an undecided one that is one too many.
func (u *undecidedHistories) check(h *lineartest.History) error {
	err := h.Check()
	if errors.Is(err, lineartest.ErrUndecided) && u.n <= u.most {
		u.n++
		return nil
	}
	return err
}

// tellings count the operations and outcomes that histories show.
type tellings struct {
	operations, faults, crashes int
	outcomes                    [lineartest.Outcomes]int
	kinds                       map[lineartest.Kind]int // that were done
}

func (a *tellings) add(r *recording) {
	if a.kinds == nil {
		a.kinds = map[lineartest.Kind]int{}
	}
	for _, o := range r.history.Operations() {
		if o.Result.Outcome == lineartest.Done {
			a.kinds[o.Operation.Kind]++
		}
	}
	for o := range a.outcomes {
		a.outcomes[o] += r.history.Count(lineartest.Outcome(o))
	}
	a.operations += len(r.history.Operations())
	a.faults, a.crashes = a.faults+r.faults, a.crashes+r.crashes
}

// missing tells what no history shows.
func (a *tellings) missing() (list []string) {
	for o, n := range a.outcomes {
		if n == 0 {
			list = append(list, fmt.Sprintf("nothing is %v", lineartest.Outcome(o)))
		}
	}
	for kind := range lineartest.Restart + 1 {
		if a.kinds[kind] == 0 {
			list = append(list, fmt.Sprintf("no %v is done", kind))
		}
	}
	if a.faults == 0 || a.crashes == 0 {
		list = append(list, "the store never failed")
	}
	return list
}

// An error that is planted into a history of the real engine is found. A wrong history takes longer
// than a right one: where the checker does not come to an end, the test tries another operation.
func TestErrorsPlantedIntoARecordedHistoryAreFound(t *testing.T) {
	const most = 100
	onEachStore(t, func(t *testing.T, fresh places) {
		missing := allPlants()
		for seed := uint64(0); len(missing) > 0 && seed < most; seed++ {
			r := newRecording(t, fresh(t), seed)
			r.bursts = 6
			r.run()
			for what, plant := range missing {
				if r.finds(what, plant) {
					delete(missing, what)
				}
			}
		}
		for what := range missing {
			t.Errorf("%s is not found in any history", what)
		}
	})
}

// allPlants returns what is planted into a history, at one of its operations or events.
func allPlants() map[string]func(h *lineartest.History, at int) bool {
	all := maps.Clone(eventPlants)
	for _, list := range []map[string]func([]*lineartest.Recorded, *lineartest.Recorded) bool{
		plants, batchPlants} {
		for what, plant := range list {
			all[what] = func(h *lineartest.History, at int) bool {
				return plant(h.Operations(), h.Operations()[at])
			}
		}
	}
	return all
}

// judgeWithin is how many steps a history with a planted error may take.
const judgeWithin = 10_000

// finds plants one error into the history, in one place after another until it is found.
func (r *recording) finds(what string, plant func(h *lineartest.History, at int) bool) bool {
	r.t.Helper()
	tries := 3
	for i := range r.history.Operations() {
		h := r.history.Clone()
		if !plant(h, i) {
			continue
		}
		err := h.Judge(judgeWithin)
		switch {
		case errors.Is(err, lineartest.ErrNotLinearizable):
			return true
		case err == nil && what != lostEvent:
			r.t.Errorf("%s is not found in operation %d", what, i)
			return true
		}
		if tries--; tries == 0 {
			return false
		}
	}
	return false
}

// Each plant makes a right result wrong, no matter which operations overlapped, and reports whether
// it could.
var plants = map[string]func(all []*lineartest.Recorded, o *lineartest.Recorded) bool{
	"a lost order": func(all []*lineartest.Recorded, o *lineartest.Recorded) bool {
		if !isLook(all, o, lineartest.ReadOpen) || len(o.Result.Orders) == 0 {
			return false
		}
		o.Result.Orders = o.Result.Orders[1:]
		return true
	},
	"a stale book": func(_ []*lineartest.Recorded, o *lineartest.Recorded) bool {
		had := isDone(o, lineartest.ReadBook) && o.Result.UpdateID > 0
		o.Result.UpdateID--
		return had
	},
	"a double fill": func(_ []*lineartest.Recorded, o *lineartest.Recorded) bool {
		had := len(o.Result.Trades) > 0
		if had {
			o.Result.Trades = append(o.Result.Trades[:1:1], o.Result.Trades...)
		}
		return had
	},
	"a trade with itself": func(_ []*lineartest.Recorded, o *lineartest.Recorded) bool {
		had := len(o.Result.Trades) > 0
		if had {
			first := o.Result.Trades[0]
			first.Maker = o.Operation.Order
			o.Result.Trades = append([]lineartest.Trade{first}, o.Result.Trades[1:]...)
		}
		return had
	},
	"money from nowhere": func(_ []*lineartest.Recorded, o *lineartest.Recorded) bool {
		o.Result.Funds[1].Balance += 1
		return isDone(o, lineartest.ReadWallet)
	},
	"an id twice": func(all []*lineartest.Recorded, o *lineartest.Recorded) bool {
		for _, other := range all {
			if other != o && isDone(other, lineartest.Place) && isDone(o, lineartest.Place) {
				o.Result.ID = other.Result.ID
				return true
			}
		}
		return false
	},
	"a cancel that is told to have been refused": func(all []*lineartest.Recorded,
		o *lineartest.Recorded) bool {
		if !isDone(o, lineartest.Cancel) {
			return false
		}
		for _, other := range all { // another may have done it
			if mayCancel(other, o) && (other.Operation.Kind == lineartest.CancelAll ||
				other.Operation.Order == o.Operation.Order) {
				return false
			}
		}
		o.Result = lineartest.Result{Outcome: lineartest.RefusedState}
		return true
	},
	"a cancel of all that misses one": func(all []*lineartest.Recorded,
		o *lineartest.Recorded) bool {
		if !isDone(o, lineartest.CancelAll) || len(o.Result.Cancelled) == 0 {
			return false
		}
		missed := o.Result.Cancelled[0]
		o.Result.Cancelled = o.Result.Cancelled[1:]
		placed := false
		for _, other := range all { // another may have cancelled it, or it may have come later
			if other != o && mayCancel(other, o) && !o.Before(other) {
				return false
			}
			placed = placed || other.Result.ID == missed &&
				other.Operation.Kind == lineartest.Place && other.Before(o)
		}
		return placed
	},
	"an amend that changes another amount": func(_ []*lineartest.Recorded,
		o *lineartest.Recorded) bool {
		o.Result.Remains++
		return isDone(o, lineartest.Amend)
	},
	"an order filled in part that must not be": func(_ []*lineartest.Recorded,
		o *lineartest.Recorded) bool {
		had := isDone(o, lineartest.Place) && o.Operation.Force == lineartest.FOK &&
			o.Result.Remains > 1
		o.Result.Remains--
		return had
	},
	"an order that rests and must not": func(_ []*lineartest.Recorded,
		o *lineartest.Recorded) bool {
		for i := range o.Result.Orders {
			if row := &o.Result.Orders[i]; o.Operation.Kind == lineartest.ReadOrder &&
				row.Status == lineartest.Cancelled {
				row.Status = lineartest.Open
				return true
			}
		}
		return false
	},
	"a repeated id that is answered with another order": func(all []*lineartest.Recorded,
		o *lineartest.Recorded) bool {
		had := isRepeated(all, o)
		o.Result.ID++
		return had
	},
	"a repeated id that is taken": func(all []*lineartest.Recorded, o *lineartest.Recorded) bool {
		had := isRepeated(all, o)
		o.Result = lineartest.Result{Outcome: lineartest.Done, Remains: o.Operation.Amount}
		return had
	},
	"fees that are missing": func(all []*lineartest.Recorded, o *lineartest.Recorded) bool {
		fee := o.Result.Funds[0].Balance
		o.Result.Funds[0].Balance = 0
		return isDone(o, lineartest.ReadWallet) && o.Operation.Account == lineartest.FeeAccount &&
			fee > 0
	},
	"fees twice": func(all []*lineartest.Recorded, o *lineartest.Recorded) bool {
		fee := o.Result.Funds[0].Balance
		o.Result.Funds[0].Balance *= 2
		return isDone(o, lineartest.ReadWallet) && o.Operation.Account == lineartest.FeeAccount &&
			fee > 0
	},
	"a revoked key that trades": func(all []*lineartest.Recorded, o *lineartest.Recorded) bool {
		return o.Result.Outcome == lineartest.RefusedKey && isDoneInstead(all, o)
	},
	"a frozen account that trades": func(all []*lineartest.Recorded, o *lineartest.Recorded) bool {
		return o.Result.Outcome == lineartest.RefusedFrozen && isDoneInstead(all, o)
	},
	// A higher one of an operation that overlapped might have come behind it.
	"a nonce twice": func(all []*lineartest.Recorded, o *lineartest.Recorded) bool {
		return o.Result.Outcome == lineartest.RefusedNonce && isDoneInstead(all, o) &&
			slices.ContainsFunc(all, func(other *lineartest.Recorded) bool {
				return other.Result.Outcome == lineartest.Done && isCommand(other) &&
					other.Operation.Key == o.Operation.Key && other.Before(o) &&
					(other.Operation.Nonce == o.Operation.Nonce ||
						other.Operation.Nonce > o.Operation.Nonce &&
							o.Operation.Key != parallelKey)
			})
	},
	"a reserve that is released for both pairs": func(all []*lineartest.Recorded,
		o *lineartest.Recorded) bool {
		had := o.Result.Funds[0].Reserve > 0
		o.Result.Funds[0].Reserve = 0
		return had && isLook(all, o, lineartest.ReadWallet)
	},
	"a stale read": func(all []*lineartest.Recorded, o *lineartest.Recorded) bool {
		var before *lineartest.Recorded
		for _, other := range all {
			if isDone(other, lineartest.ReadWallet) &&
				other.Operation.Account == o.Operation.Account && other.Before(o) {
				before = other
			}
		}
		if !isLook(all, o, lineartest.ReadWallet) || before == nil ||
			before.Result.Funds == o.Result.Funds {
			return false
		}
		o.Result.Funds = before.Result.Funds
		return true
	},
}

// isRepeated reports whether an order was refused for the client order id of another one that is
// known to be in. Of two with unknown outcomes either may be in.
func isRepeated(all []*lineartest.Recorded, o *lineartest.Recorded) bool {
	return o.Result.Outcome == lineartest.RefusedRepeated &&
		slices.ContainsFunc(all, func(first *lineartest.Recorded) bool {
			return isDone(first, lineartest.Place) && first.Result.ID == o.Result.ID
		})
}

func isDone(o *lineartest.Recorded, kind lineartest.Kind) bool {
	return o.Operation.Kind == kind && o.Result.Outcome == lineartest.Done
}

// mayCancel reports whether an operation without an outcome may have cancelled an order of another
// one's account.
func mayCancel(o, of *lineartest.Recorded) bool {
	k := o.Operation.Kind
	return o.Result.Outcome == lineartest.Unknown && o.Operation.Account == of.Operation.Account &&
		(k == lineartest.Cancel || k == lineartest.CancelAll)
}

// isLook reports whether an operation is a read of the client that looks when all others rest.
func isLook(all []*lineartest.Recorded, o *lineartest.Recorded, kind lineartest.Kind) bool {
	return isDone(o, kind) && o.Client == all[len(all)-1].Client
}

// isDoneInstead makes a refused command one that its wallet has looked at, if no change of its key
// or of its account's freeze overlapped with it.
func isDoneInstead(all []*lineartest.Recorded, o *lineartest.Recorded) bool {
	for _, other := range all {
		k, is := &other.Operation, &o.Operation
		if (k.Kind == lineartest.Freeze && k.Account == is.Account ||
			(k.Kind == lineartest.CreateKey || k.Kind == lineartest.RevokeKey) &&
				k.Key == is.Key) && !other.Before(o) && !o.Before(other) {
			return false
		}
	}
	o.Result = lineartest.Result{Outcome: lineartest.RefusedState}
	if k := o.Operation.Kind; k == lineartest.Place || k == lineartest.Withdrawal {
		o.Result.Outcome = lineartest.RefusedFunds
	}
	return isCommand(o)
}

// isCommand reports whether an operation is signed, and no read.
func isCommand(o *lineartest.Recorded) bool {
	return o.Operation.Kind.Needs()&^lineartest.MayRead != 0
}
