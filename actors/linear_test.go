package actors

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"exchange/actors/lineartest"
)

// histories is the number recorded on each store, unless EXCHANGE_LINEAR_HISTORIES sets another.
// Until every kind of operation has occurred, others follow, up to four times the number.
const histories = 8

// With store faults and engine crashes, clients get the answers of one exchange that executes one
// operation after the other.
func TestConcurrentClientsSeeOneExchange(t *testing.T) {
	n, seed := histories, uint64(time.Now().UnixNano())
	for name, v := range map[string]func(uint64){
		"EXCHANGE_LINEAR_HISTORIES": func(u uint64) { n = int(u) },
		"EXCHANGE_LINEAR_SEED":      func(u uint64) { seed = u }} {
		if text := os.Getenv(name); text != "" {
			u := must[uint64](t)(strconv.ParseUint(text, 10, 64))
			v(u)
		}
	}
	t.Logf("EXCHANGE_LINEAR_SEED=%d", seed)
	forEachStore(t, func(t *testing.T, fresh places) {
		var all coverage
		undecided := undecidedHistories{most: 3 * n}
		missing := all.missing()
		for i := 0; i < n+undecided.n || len(missing) > 0 && i < 4*n; i++ {
			// a subtest removes its store at its end: all of them would fill a disk
			if !t.Run(strconv.Itoa(i), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					r := newRecording(t, fresh(t), seed+uint64(i))
					r.run()
					if err := undecided.check(&r.history); err != nil {
						t.Fatal(err)
					}
					all.add(r)
					missing = all.missing()
				})
			}) {
				return
			}
		}
		t.Logf("%d histories, %d undecided, %d operations, faults %d, crashes %d, outcomes %v", n,
			undecided.n, all.operations, all.faults, all.crashes, all.outcomes)
		if len(missing) > 0 {
			t.Errorf("the histories show too little: %s", strings.Join(missing, ", "))
		}
	})
}

// undecidedHistories counts the histories that the checker does not decide. They show nothing, so
// the test records up to a limit of others instead.
type undecidedHistories struct{ n, most int }

// check returns an error for a wrong history, and for one undecided history too many.
func (u *undecidedHistories) check(h *lineartest.History) error {
	err := h.Check()
	if errors.Is(err, lineartest.ErrUndecided) && u.n <= u.most {
		u.n++
		return nil
	}
	return err
}

// coverage counts the operations and outcomes that histories show.
type coverage struct {
	operations, faults, crashes int
	outcomes                    [lineartest.Outcomes]int
	kinds                       map[lineartest.Kind]int // that were done
}

func (a *coverage) add(r *recording) {
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

// missing lists what no history shows.
func (a *coverage) missing() (list []string) {
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

// judgeWithin bounds the steps of a check of a history with a planted error.
const judgeWithin = 10_000
