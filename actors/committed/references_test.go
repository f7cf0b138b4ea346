package committed

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"exchange/actors/metrics"
	"exchange/persistence"
)

// Lookups are bounded, in number and time, and all finish.
func TestReferenceLookupsAreBounded(t *testing.T) {
	const n = 10 * referenceLookups
	back := make(chan *Lookup, n)
	ask := func(x *Index) {
		l := new(Lookup)
		x.Start(l, func() { back <- l })
	}
	store := &lookedFor{gone: make(chan struct{})}
	x := NewIndex(store, time.Hour, slog.New(slog.DiscardHandler), metrics.NewEngine())
	for range n {
		ask(x)
	}
	for end := time.Now().Add(time.Minute); store.at.Load() != referenceLookups; {
		if time.Now().After(end) {
			t.Fatal("fewer lookups than the limit are running")
		}
		runtime.Gosched()
	}
	close(store.gone)
	for range n {
		if l := <-back; l.Err != nil || l.Deposit.ID != 7 {
			t.Errorf("%+v", l)
		}
	}
	if most := store.most.Load(); most > referenceLookups {
		t.Errorf("%d lookups ran at once", most)
	}

	// A lookup without an answer is given up, and so are the queued ones.
	store.gone = make(chan struct{})
	x.patience = time.Millisecond
	for range n {
		ask(x)
	}
	for range n {
		if l := <-back; !errors.Is(l.Err, ErrUnanswered) ||
			!errors.Is(l.Err, context.DeadlineExceeded) || l.Deposit.ID != 0 {
			t.Errorf("%+v", l)
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.active < 0 || x.queue.Len() != 0 {
		t.Errorf("%d still running, and %d queued", x.active, x.queue.Len())
	}
}

// lookedFor is a history that answers when gone is closed.
type lookedFor struct {
	persistence.History
	gone     chan struct{}
	at, most atomic.Int64
}

func (s *lookedFor) Reference(ctx context.Context, _ uint64,
	_ string) (persistence.Deposit, error) {
	at := s.at.Add(1)
	defer s.at.Add(-1)
	for most := s.most.Load(); at > most && !s.most.CompareAndSwap(most, at); most = s.most.Load() {
	}
	select {
	case <-s.gone:
		return persistence.Deposit{ID: 7}, nil
	case <-ctx.Done():
		return persistence.Deposit{}, ctx.Err()
	}
}
