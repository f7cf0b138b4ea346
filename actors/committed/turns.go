package committed

import (
	"context"
	"runtime"
	"sync"
)

// turns bound how many long queries of clients work at once in a process, because they share its
// processors and must never have them all. A long query goes through thousands of rows. Long
// queries take turns, a piece each, and each account or address has one turn at a time. Short
// queries take no turn.
type turns struct {
	slots chan struct{} // an element for each query that works

	mu       sync.Mutex
	byClient map[scanClient]*clientTurn // accounts and addresses with long queries
}

type clientTurn struct {
	slot  chan struct{} // capacity 1
	count int           // that have the slot or wait for it
}

func newTurns() *turns {
	return &turns{slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)),
		byClient: map[scanClient]*clientTurn{}}
}

func (t *turns) join(c scanClient) *clientTurn {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.byClient[c]
	if own == nil {
		own = &clientTurn{slot: make(chan struct{}, 1)}
		t.byClient[c] = own
	}
	own.count++
	return own
}

func (t *turns) leave(c scanClient) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.byClient[c]
	if own.count--; own.count == 0 {
		delete(t.byClient, c)
	}
}

// A scan is one visit, whose queries may become long ones.
type scan struct {
	turns     *turns
	client    scanClient
	own       *clientTurn // nil: the scan was never long
	holdsSlot bool        // it has the slot of its owner
	hasTurn   bool        // it has one of all slots
}

// takeTurn waits for the scan's next turn.
func (s *scan) takeTurn(ctx context.Context) error {
	if !s.holdsSlot {
		if s.own == nil {
			s.own = s.turns.join(s.client)
		}
		if err := enter(ctx, s.own.slot); err != nil {
			return err
		}
		s.holdsSlot = true
	}
	s.releaseTurn() // the scans that wait go first
	if err := enter(ctx, s.turns.slots); err != nil {
		return err
	}
	s.hasTurn = true
	return nil
}

func enter(ctx context.Context, slots chan<- struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// releaseTurn gives the scan's turn back, if it has one.
func (s *scan) releaseTurn() {
	if s.hasTurn {
		s.hasTurn = false
		<-s.turns.slots
	}
}

// end gives back the slots of the scan.
func (s *scan) end() {
	s.releaseTurn()
	if s.own == nil {
		return
	}
	if s.holdsSlot {
		<-s.own.slot
	}
	s.turns.leave(s.client)
}

// An ObserverScan is a query for the client of an observer, which takes turns with the long queries of
// this process. The observer, which has its own turns, knows whose query it is.
type ObserverScan struct {
	scan
	ctx context.Context
}

// ObserverScan begins a query, which ctx ends. End follows.
func (c *Side) ObserverScan(ctx context.Context) *ObserverScan {
	return &ObserverScan{scan{turns: c.scans, holdsSlot: true}, ctx}
}

// TakeTurn waits for the query's next turn. It is for persistence.WithPace.
func (g *ObserverScan) TakeTurn() error { return g.takeTurn(g.ctx) }

// ReleaseTurn gives the turn back, if the query has one, until the next GoOn.
func (g *ObserverScan) ReleaseTurn() { g.releaseTurn() }

// End ends the query.
func (g *ObserverScan) End() { g.end() }

// A client is what long queries are counted for: an account, or the address of a public read.
type scanClient struct {
	account uint32 // 0: the address
	address uint64
}
