package api

import (
	"context"
	"runtime"
	"sync"
)

// turns bound how many of the clients' long queries, those that go through thousands of rows, work
// at once: so they never have all processors. They go on one after the other, a piece each, and an
// account, or an address, has one of them at a time. Short queries know nothing of it.
type turns struct {
	places chan struct{} // has an element for each query that works

	mu     sync.Mutex
	owners map[asker]*ownTurn // of those that have long queries
}

type ownTurn struct {
	place   chan struct{} // capacity 1
	queries int           // that have it or want it
}

// longScans are those of the whole process, as its processors are.
var longScans = turns{places: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)),
	owners: map[asker]*ownTurn{}}

func (t *turns) join(a asker) *ownTurn {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.owners[a]
	if own == nil {
		own = &ownTurn{place: make(chan struct{}, 1)}
		t.owners[a] = own
	}
	own.queries++
	return own
}

func (t *turns) leave(a asker) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.owners[a]
	if own.queries--; own.queries == 0 {
		delete(t.owners, a)
	}
}

// A scan is one query that may become a long one.
type scan struct {
	turns   *turns
	ctx     context.Context
	asker   asker
	own     *ownTurn // nil: it was never long
	alone   bool     // it has its owner's place
	working bool     // and one of all
}

// goOn waits for the scan's next turn.
func (s *scan) goOn() error {
	if !s.alone {
		if s.own == nil {
			s.own = s.turns.join(s.asker)
		}
		if err := s.enter(s.own.place); err != nil {
			return err
		}
		s.alone = true
	}
	if s.working { // behind those that wait
		s.working = false
		<-s.turns.places
	}
	if err := s.enter(s.turns.places); err != nil {
		return err
	}
	s.working = true
	return nil
}

func (s *scan) enter(places chan<- struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// end gives back what the scan has.
func (s *scan) end() {
	if s.working {
		<-s.turns.places
	}
	if s.alone {
		<-s.own.place
	}
	if s.own != nil {
		s.turns.leave(s.asker)
	}
}

// An asker is the client that a call counts for: an account, or an address that asks for what is
// public.
type asker struct {
	account uint32 // 0: the address
	address uint64
}

func (c *Call) asker() asker {
	if c.Key != nil {
		return asker{account: c.Key.Account.ID}
	}
	return asker{address: c.Address}
}
