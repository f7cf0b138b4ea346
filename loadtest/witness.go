package loadtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"exchange/core/money"
)

// A witness reads acknowledged orders at other addresses, while the load runs: an order
// acknowledged at one address must be visible at all others from then on. It has a goroutine for
// each address, and takes an order when one is idle.
type witness struct {
	rest   *rest
	queues []chan seen // by the number of an address
	stop   context.CancelFunc
	group  sync.WaitGroup

	mu    sync.Mutex
	read  uint64 // orders read as expected
	wrong []string
}

// A seen is an order with the number of the address that acknowledged it.
type seen struct {
	account *account
	id      uint64
	filled  money.Amount
	at      int
}

// witnessEvery is the least time between two orders read at an address: the test's own reads must
// not distort its measurements.
const witnessEvery = 20 * time.Millisecond

// startWitness starts reading; nil with one address, or if accounts have no key to read with.
func startWitness(ctx context.Context, t *test) *witness {
	if n := len(t.o.Addresses); n < 2 || t.o.NoVerify || len(t.o.Keys) > 0 {
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	w := &witness{rest: t.rest, stop: stop}
	for at := range t.o.Addresses {
		asks := make(chan seen)
		w.queues = append(w.queues, asks)
		w.group.Go(func() {
			for pause(ctx, witnessEvery) {
				select {
				case x := <-asks:
					w.check(ctx, x, at)
				case <-ctx.Done():
				}
			}
		})
	}
	return w
}

// offer has an order read at an address after that of its acknowledgement, unless all are busy.
func (w *witness) offer(x seen) {
	if w == nil {
		return
	}
	for i := range len(w.queues) - 1 {
		select {
		case w.queues[(x.at+1+i)%len(w.queues)] <- x:
			return
		default:
		}
	}
}

// check reads an order at an address. An address that does not answer, as in a fail-over, proves
// nothing.
func (w *witness) check(ctx context.Context, x seen, at int) {
	a, r := x.account, w.rest.at(at)
	a.witnessMu.Lock()
	defer a.witnessMu.Unlock()
	var id uint64
	var filled money.Amount
	var bad error
	path := fmt.Sprintf("/api/v1/order/%d/", x.id)
	err := r.get(ctx, a.witnessUser, path, func(body []byte) error {
		return eachField(body, func(name, v []byte) bool {
			switch string(name) {
			case "id":
				id = number(v)
			case "amount_filled":
				filled, bad = money.ParseAmount(v)
			}
			return true
		})
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	var status *statusError
	switch {
	case errors.As(err, &status) && status.status == 404:
		w.wrong = append(w.wrong, fmt.Sprintf("%s: order %d was acknowledged at %s, and then it "+
			"was not there at %s", a.title(), x.id, w.rest.apis[x.at].Addr, r.api.Addr))
	case err != nil:
	case bad != nil || id != x.id || filled < x.filled:
		w.wrong = append(w.wrong, fmt.Sprintf("%s: order %d, of which %s were filled at %s, was "+
			"then order %d at %s, with %s filled", a.title(), x.id, x.filled,
			w.rest.apis[x.at].Addr, id, r.api.Addr, filled))
	default:
		w.read++
	}
	w.wrong = w.wrong[:min(len(w.wrong), mostDifferences)]
}

// end stops the reading.
func (w *witness) end() {
	if w != nil {
		w.stop()
		w.group.Wait()
	}
}

// addTo adds the witness's results to a verification.
func (w *witness) addTo(v *verifier) {
	if w == nil {
		return
	}
	v.result.Witnessed = w.read
	for _, text := range w.wrong {
		v.flag("%s", text)
	}
}
