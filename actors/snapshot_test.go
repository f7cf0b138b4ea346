package actors

import (
	"testing"

	"exchange/actors/committed"
	"exchange/core/money"
)

// A projection may be cut in the midst of a batch. An image there could not be followed by the
// journal, whose batches are read as a whole: the exchange would not start again.
func TestNoSnapshotIsInTheMidstOfABatch(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		for after := range uint64(7) { // records from now on, until a snapshot is due
			due := committed.SnapshotPolicy{MinRecords: 1 << 40, MaxRecords: 1 << 40}
			g := newGated(t, fresh, func(o *Options) { o.Tests.StepRows, o.Snapshot = 1, due })
			ben := fund(t, g.e, "ben", map[string]money.Amount{"USD": 1000 * coin})
			for range 5 {
				g.rest(g.sell(coin))
			}
			g.e.probe(g.e.work.Fold, func() {
				n := g.e.committed.State().Seq() + after
				committed.SetSnapshots(g.e.committed,
					committed.SnapshotPolicy{MinRecords: n, MaxRecords: n})
			})
			g.hold() // one goes, and what comes meanwhile is one batch
			var ends []<-chan string
			for nonce := range uint64(6) {
				ends = append(ends, g.begin(func() (*Command, error) {
					return g.e.Place(ben, nonce+1, g.buy(100e8, coin))
				}))
				g.decided(ben, len(ends))
			}
			g.letGo()
			for _, end := range ends {
				if got := <-end; got != accepted {
					t.Fatal(got)
				}
			}
			eventually(t, "a snapshot is tried", func() bool {
				succeeds(t, g.e.Ask(new(committed.Barrier), nil, 0))
				g.mu.Lock()
				defer g.mu.Unlock()
				return g.saves > 0
			})
			g.crash()
			g.again()
			g.end()
		}
	})
}
