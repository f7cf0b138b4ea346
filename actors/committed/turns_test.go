package committed

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"exchange/persistence"
)

func TestLongQueriesTakeTurnsOnePerAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &turns{slots: make(chan struct{}, 1), byClient: map[scanClient]*clientTurn{}}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		ann, ben := scanClient{account: 1}, scanClient{address: 1}
		step := func(s *scan) <-chan error {
			done := make(chan error, 1)
			go func() { done <- s.takeTurn(ctx) }()
			return done
		}
		first, second, other := &scan{turns: all, client: ann}, &scan{turns: all, client: ann},
			&scan{turns: all, client: ben}
		if err := <-step(first); err != nil {
			t.Fatal(err)
		}
		if err := <-step(first); err != nil { // no other query wants its slot
			t.Fatal(err)
		}
		hers := step(second)
		synctest.Wait()
		if n := all.queryCount(); n != 2 {
			t.Errorf("her second waits for her first, and %d wait or work", n)
		}
		bens := step(other)
		synctest.Wait()
		if n := all.queryCount(); n != 3 {
			t.Errorf("his waits for its turn, and %d wait or work", n)
		}
		first.end()
		if err := <-bens; err == nil {
			other.end()
		} else {
			t.Error(err)
		}
		if err := <-hers; err != nil {
			t.Error(err)
		}
		last := &scan{turns: all}
		late := step(last)
		cancel()
		if err := <-late; err == nil {
			t.Error("a cancelled scan continues")
		}
		last.end()
		second.end()
		if len(all.byClient) != 0 || len(all.slots) != 0 {
			t.Errorf("%d owners and %d slots are left", len(all.byClient), len(all.slots))
		}
	})
}

// Queries of observers' clients take turns with those of the process's own, and hold none between
// turns.
func TestObserverQueriesTakeTurns(t *testing.T) {
	c := &Side{scans: newTurns()}
	d := &Door{side: c}
	free := OccupyLongQueries(d)
	ctx, cancel := context.WithCancel(t.Context())
	g := c.ObserverScan(ctx)
	went := make(chan error, 1)
	go func() { went <- g.TakeTurn() }()
	select {
	case err := <-went:
		t.Fatalf("it works beside the others: %v", err)
	default:
	}
	free()
	if err := <-went; err != nil {
		t.Fatal(err)
	}
	if len(c.scans.slots) != 1 {
		t.Errorf("%d queries work", len(c.scans.slots))
	}
	g.ReleaseTurn()
	g.ReleaseTurn()
	if n := len(c.scans.slots); n > 0 {
		t.Fatalf("it holds its turn after the release: %d are taken", n)
	}
	if err := g.TakeTurn(); err != nil {
		t.Fatal(err)
	}
	g.End()
	free = OccupyLongQueries(d)
	g = c.ObserverScan(ctx)
	cancel()
	if err := g.TakeTurn(); err == nil {
		t.Error("it runs after the end of its client")
	}
	g.End()
	free()
}

// A visit that asks while its query is under way would wait for the turn that it may have.
func TestVisitRunsOneQueryAtATime(t *testing.T) {
	for name, second := range map[string]func(v *visit) error{
		"a query":    func(v *visit) error { return v.query(nil) },
		"a question": func(v *visit) error { return v.ask(new(Position)) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if p, _ := recover().(string); !strings.HasPrefix(p, "BUG: ") {
					t.Errorf("panic %q", p)
				}
			}()
			v := visit{door: new(Door)}
			err := v.query(func(context.Context, persistence.History) error { return second(&v) })
			t.Error(err)
		})
	}
}
