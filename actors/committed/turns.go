package committed

import (
	"context"
	"runtime"
	"sync"
)

// turns limit the concurrent long queries of clients in a process, because these must never use all
// processors. A long query reads thousands of rows. Long queries take turns, a piece each, and each
// account or address has one turn at a time. Short queries take no turn.
type turns struct {
	slots chan struct{} // an element for each running query

	mu       sync.Mutex
	byClient map[scanClient]*clientTurn // accounts and addresses with long queries
}

type clientTurn struct {
	slot  chan struct{} // capacity 1
	count int           // queries that hold the slot or wait for it
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

// A scan paces the queries of one visit, which may become long ones.
type scan struct {
	turns     *turns
	client    scanClient
	own       *clientTurn // nil: never a long query
	holdsSlot bool        // holds the slot of its client
	hasTurn   bool        // holds one of the shared slots
}

// takeTurn releases the scan's turn and waits for the next one.
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
	s.releaseTurn() // waiting scans go first
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

// releaseTurn releases the scan's turn, if it has one.
func (s *scan) releaseTurn() {
	if s.hasTurn {
		s.hasTurn = false
		<-s.turns.slots
	}
}

// end releases the slots of the scan.
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

// An ObserverScan is a query for a client of an observer. It takes turns with the long queries of
// this process; the observer limits the turns of each client.
type ObserverScan struct {
	scan
	ctx context.Context
}

// ObserverScan starts a query, bounded by ctx. The caller must call End.
func (c *Side) ObserverScan(ctx context.Context) *ObserverScan {
	return &ObserverScan{scan{turns: c.scans, holdsSlot: true}, ctx}
}

// TakeTurn waits for the query's next turn. It is for persistence.WithPace.
func (g *ObserverScan) TakeTurn() error { return g.takeTurn(g.ctx) }

// ReleaseTurn releases the turn, if the query has one, until the next TakeTurn.
func (g *ObserverScan) ReleaseTurn() { g.releaseTurn() }

// End ends the query.
func (g *ObserverScan) End() { g.end() }

// A scanClient is the unit that long queries are limited by: an account, or the address of a public
// read.
type scanClient struct {
	account uint32 // 0: the address
	address uint64
}
