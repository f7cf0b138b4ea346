package node

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"exchange/actors"
	"exchange/actors/audit"
	"exchange/actors/committed"
	"exchange/actors/metrics"
	"exchange/actors/seal"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
	"exchange/persistence/archive"
)

// archives are those of the nodes of a cluster, in the nodes' order.
type archives struct {
	*cluster
	list  []*archive.Archive
	full  []atomic.Bool  // the disk of an archive is full
	found []atomic.Int64 // how often it was
	// stores record the calls of each node since the test started
	stores []*trims
	r      *termAt // the newest term
	nonce  uint64
}

// trims is a store that records Hold and Trim.
type trims struct {
	persistence.Replica
	mu   sync.Mutex
	held uint64 // by the newest Hold
	upTo uint64 // by the greatest Trim
}

func (s *trims) Hold(seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = seq
	s.Replica.Hold(seq)
}

func (s *trims) Trim(ctx context.Context, tok persistence.Token, upTo uint64) error {
	err := s.Replica.Trim(ctx, tok, upTo)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.upTo = max(s.upTo, upTo)
	return err
}

// calls returns the arguments of Hold and Trim.
func (s *trims) calls() (held, upTo uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held, s.upTo
}

var errFull = errors.New("no space left on device")

// newArchives is a cluster whose nodes take a snapshot with each projection, and archive before
// they trim.
func newArchives(t *testing.T) *archives {
	t.Helper()
	a := &archives{full: make([]atomic.Bool, 3), found: make([]atomic.Int64, 3),
		stores: make([]*trims, 3)}
	for range a.full {
		dir := filepath.Join(t.TempDir(), "archive")
		a.list = append(a.list, must[*archive.Archive](t)(archive.Open(dir)))
	}
	a.cluster = newCluster(t, func(i int, o *actors.Options) {
		o.Snapshot = committed.SnapshotPolicy{MinRecords: 1, MaxRecords: 1}
		o.Timing.Projection = 10 * time.Millisecond
		a.stores[i] = &trims{Replica: o.Store.(persistence.Replica)}
		o.Store = a.stores[i]
		o.Archive = func(ctx context.Context, store persistence.Store, by persistence.Authority,
			history persistence.HistoryID, upTo uint64) (uint64, error) {
			if a.full[i].Load() {
				a.found[i].Add(1)
				return 0, errFull
			}
			return a.list[i].Save(ctx, store, by, history, upTo)
		}
	})
	a.r = a.next()
	fund(t, a.r.Engine, "ann", map[string]money.Amount{"BTC": 1000 * coin})
	return a
}

func (a *archives) end(i int) uint64 {
	a.Helper()
	return must[uint64](a.T)(a.list[i].End())
}

// sells has ann place an order at the current leader. An order without an answer counts, too.
func (a *archives) sells() {
	a.Helper()
	select {
	case a.r = <-a.began:
	default:
	}
	a.nonce++
	c, err := a.r.Place(a.r.Key([]byte("key-of-ann")), a.nonce,
		orderOf(a.r.Engine, trading.Sell, 100e8, coin/1000))
	if err == nil {
		c.Free()
	}
}

// until has ann trade until a condition holds.
func (a *archives) until(what string, so func() bool) {
	a.Helper()
	eventually(a.T, what, func() bool {
		a.sells()
		return so()
	})
}

// archived has ann trade until the archives of some nodes contain everything so far.
func (a *archives) archived(at ...int) {
	a.Helper()
	now := a.nodes[a.r.at].Folded()
	a.until("the archives have come further", func() bool {
		return !slices.ContainsFunc(at, func(i int) bool { return a.end(i) < now })
	})
}

// leads has ann trade until a node leads.
func (a *archives) leads(at int) {
	a.Helper()
	a.until("a node leads", func() bool {
		if a.r.at != at { // a try that fails is made again
			_ = a.nodes[a.r.at].store.Transfer(a.Context(), a.cluster.list[at].Name)
		}
		return a.r.at == at
	})
}

// whole wants a node's archive to be the journal from the first record on, authentic part by part,
// and returns its batches.
func (a *archives) whole(i int, by *seal.Sealer) (batches []string) {
	a.Helper()
	last := uint64(0)
	begin := a.end(i) // it may grow meanwhile
	err := a.list[i].Under(by).Read(a.Context(), 0, func(prev, next uint64, b []byte) error {
		if prev != last {
			a.Errorf("the archive of node %d has a gap from %d to %d", i, last, prev)
		}
		batches, last = append(batches, string(b)), next
		return nil
	})
	if err != nil || last < begin || last > a.end(i) {
		a.Errorf("the archive of node %d is read up to %d, and ended at %d before: %v", i, last,
			begin, err)
	}
	return batches
}

// balanced audits a term, from the first record of its node's archive. If the term ends meanwhile,
// the next one is audited.
func (a *archives) balanced() {
	a.Helper()
	var report *audit.Report
	a.until("a term is audited", func() (done bool) {
		from := a.list[a.r.at].Under(a.nodes[a.r.at].sealer)
		var err error
		report, err = a.r.Audit(a.Context(), from, func(uint64, uint64) {})
		if errors.Is(err, persistence.ErrCorrupt) {
			a.Fatal(err)
		}
		return err == nil
	})
	if len(report.Differences) > 0 || report.From != 0 || report.Records != report.Sequence {
		a.Errorf("%+v", report)
	}
}

// Each node archives its own journal, whether it leads or follows. So after a crash of the leader,
// and after a hand-over, no archive has a gap, and all have the same batches.
func TestArchivesContinueThroughFailOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newArchives(t)
		a.archived(0, 1, 2)
		a.balanced()
		killed := a.r.at
		a.kill(killed)
		for a.r.at == killed {
			a.r = a.next()
		}
		a.archived((killed+1)%3, (killed+2)%3)
		a.balanced()
		succeeds(t, a.start(killed))
		a.archived(0, 1, 2)
		a.leads(killed)
		a.archived(0, 1, 2)
		a.balanced()
		sealer := a.nodes[killed].sealer
		first := a.whole(0, sealer)
		for i := range a.list {
			if held, _ := a.stores[i].calls(); held == 0 || held > a.end(i) {
				t.Errorf("node %d keeps its journal above %d, and its archive ends at %d", i, held,
					a.end(i))
			}
			more := a.whole(i, sealer)
			n := min(len(first), len(more))
			if n == 0 || !slices.Equal(first[:n], more[:n]) {
				t.Errorf("the archive of node %d has other batches than that of node 0", i)
			}
		}
	})
}

// A node whose archive is full keeps its journal, and stops nothing: the others keep archiving, and
// all trim, even while it leads. When there is room again its archive continues, without a gap.
func TestFullArchiveAffectsOnlyItsNode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := newArchives(t)
		a.archived(0, 1, 2)
		full := (a.r.at + 1) % 3
		a.full[full].Store(true)
		failures := &a.nodes[full].meter.Failures[metrics.OperationTrim]
		a.until("the full archive is noticed", func() bool {
			return a.found[full].Load() > 0 && failures.Load() > 0
		})
		end := a.end(full)
		a.archived((full+1)%3, (full+2)%3)
		a.leads(full)
		_, before := a.stores[full].calls()
		a.archived((full+1)%3, (full+2)%3)
		a.until("the node trims, but for what its archive lacks", func() bool {
			held, upTo := a.stores[full].calls()
			if held > end {
				t.Fatalf("its archive ends at %d, and it keeps its journal above %d", end, held)
			}
			return upTo > max(before, end)
		})
		if now := a.end(full); now != end {
			t.Fatalf("a full archive has grown from %d to %d", end, now)
		}
		a.leads(full)
		a.balanced() // the journal contains the rest
		a.full[full].Store(false)
		a.archived(0, 1, 2)
		a.whole(full, a.nodes[full].sealer)
		a.balanced()
	})
}

// A node that has no snapshot yet was down while the others took theirs, and trimmed the journal.
// It folds all of the journal from its own log.
func TestNodeWithoutSnapshotFoldsItsOwnLog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const late = 2
		stores := make([]*trims, 3)
		c := newCluster(t, func(i int, o *actors.Options) {
			o.Timing.Projection = 10 * time.Millisecond
			if i != late {
				o.Snapshot = committed.SnapshotPolicy{MinRecords: 1, MaxRecords: 1}
			}
			stores[i] = &trims{Replica: o.Store.(persistence.Replica)}
			o.Store = stores[i]
		})
		a := &archives{cluster: c, r: c.next()}
		fund(t, a.r.Engine, "ann", map[string]money.Amount{"BTC": 1000 * coin})
		a.leads(0)
		c.caughtUp(a.r)
		c.kill(late)
		at := a.r.Released()
		a.until("the journal is trimmed where the node is not yet", func() bool {
			_, upTo := stores[0].calls()
			return a.r.at == 0 && upTo > at
		})
		succeeds(t, c.start(late))
		eventually(t, "the node has folded the journal", func() bool {
			succeeds(t, c.nodes[late].Err())
			return c.nodes[late].Folded() > at
		})
		c.caughtUp(a.r)
	})
}
