package committed

import (
	"maps"
	"slices"
	"sync"
	"time"

	"exchange/core/market"
	"exchange/core/state"
	"exchange/persistence"
)

// Snapshotting reports whether a snapshot is in flight: for tests of package actors, on its turn.
func Snapshotting(c *Side) bool { return c.snapshotting }

// Waiting returns the number of reads that wait for the history: for tests of package actors, on
// its turn.
func Waiting(c *Side) int { return len(c.waiting) }

// Callbacks returns the number of callbacks waiting for their records: for tests of package actors,
// on its turn.
func Callbacks(c *Side) int { return len(c.callbacks) }

// References returns the references of deposits in memory, sorted: for tests of package actors, on
// its turn.
func References(c *Side) []string { return slices.Sorted(maps.Keys(c.references)) }

// ReadNonces returns the number of keys with nonces used by reads: for tests of package actors, on
// its turn.
func ReadNonces(c *Side) int { return len(c.readNonces) }

// OpenRows returns the rows of an account's open orders, by their ids: for tests of package actors.
func OpenRows(s *state.State, a *state.Account) map[uint64]Order {
	rows := map[uint64]Order{}
	for open := range a.Open.Newest() {
		o, p, _ := s.OpenOrder(a, open.ID)
		rows[open.ID] = openRow(a, o, p)
	}
	return rows
}

// PendingRows returns the rows of an account's pending withdrawals, by their ids: for tests of
// package actors.
func PendingRows(a *state.Account) map[uint64]Withdrawal {
	rows := map[uint64]Withdrawal{}
	for _, w := range a.Withdrawals() {
		rows[w.ID] = WithdrawalRow(w)
	}
	return rows
}

// SetSnapshots sets the snapshot policy: for tests of package actors, on its turn.
func SetSnapshots(c *Side, p SnapshotPolicy) { c.snapshot = p }

// SetPatience sets how long reads wait: for tests of package actors.
func SetPatience(d *Door, patience time.Duration) { d.patienceNs.Store(int64(patience)) }

// NormalReads returns the number of reads in flight that complete no command: for tests of package
// actors.
func NormalReads(d *Door) int64 { return d.normalReads.Load() }

// EmptyPools forgets pooled reads: for tests of package actors, whose simulation lives in bubbles.
func EmptyPools() { reads = sync.Pool{New: reads.New} }

// Of views: for tests of package actors.
const (
	ShownLevels = shownLevels
	ShownOrders = shownOrders
	DeepAge     = deepAge
)

// SetMinute changes the minute of a ticker: for tests of package actors.
func SetMinute(v *View, minute int64) { v.minute = minute }

// SetAge changes the age of a view: for tests of package actors.
func SetAge(v *View, age time.Duration) { v.at = time.Now().Add(-age) }

// RecentTrades returns the trades of a pair (0: of all) in memory, and whether the store has older
// ones: for tests of package actors, on the committed side's turn.
func RecentTrades(c *Side, pair uint16) (list []persistence.Trade, older bool) {
	r := c.tradesOf(pair)
	return r.rows, r.older
}

// RecentCandles returns the candles of a pair's chart in memory, and whether the store has older
// ones: for tests of package actors, on the committed side's turn.
func RecentCandles(c *Side, pair uint16, f market.Frame) (list []market.Candle, older bool) {
	k := &c.charts[pair-1][f]
	return k.list, k.older
}

// DriveProjector is Run with waits controlled by wait: for tests of package actors, whose
// simulation chooses when.
func DriveProjector(p *Projector, wait func(until func() bool)) {
	defer close(p.finished)
	defer p.upload.Wait()
	stopped := func() bool {
		select {
		case <-p.o.Stop:
			return true
		default:
			return false
		}
	}
	for {
		wait(func() bool { return len(p.in) > 0 || stopped() })
		if stopped() {
			return
		}
		if w := <-p.in; !p.write(&w) {
			return
		}
	}
}

// StepRows is the usual size of a projection: for tests of package actors.
const StepRows = stepRows

// History returns the lists of the store: for tests of package actors, which read whole lists.
func History(d *Door) persistence.History { return d.history }

// BeginFollowUp takes a slot for follow-up reads: for tests of package actors.
func BeginFollowUp(d *Door) error {
	_, err := d.beginRead(true)
	return err
}

// OccupyLongQueries takes all turns of long queries, and free releases them: for tests of package
// gateway that make queries wait.
func OccupyLongQueries(d *Door) (free func()) {
	slots := d.side.scans.slots
	for range cap(slots) {
		slots <- struct{}{}
	}
	return func() {
		for range cap(slots) {
			<-slots
		}
	}
}

// LongQueries returns the number of long queries: for tests of package gateway that make queries
// wait.
func LongQueries(d *Door) int { return d.side.scans.queryCount() }

func (t *turns) queryCount() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, own := range t.byClient {
		n += own.count
	}
	return n
}
