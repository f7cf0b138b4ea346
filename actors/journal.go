package actors

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"exchange/actors/mailbox"
	"exchange/actors/metrics"
	"exchange/core/event"
	"exchange/persistence"
)

// A journal makes entries durable and releases them. It acts as an actor: any actor submits to its
// queue under a mutex, and one goroutine owns the sequence. That goroutine appends everything
// queued during its last write as one batch, and releases it. It has no protoactor mailbox because
// it must block on the store. Besides, books can thus put encoded entries straight into the forming
// batch, which saves each order a hop.
//
// There is no timer: a batch holds the entries that arrived during the previous append. While a
// client waits for several commands sent together, a batch also waits for the entries of their
// books.
type journal struct {
	store    persistence.Journal
	token    persistence.Token
	timing   *Timing
	log      *slog.Logger
	meter    *metrics.Engine
	out      journalOut
	limit    int    // batch size in bytes beyond which the next entry starts another
	last     uint64 // sequence of the newest durable record; owned by the writer, like deadline
	deadline sharedDeadline
	since    atomic.Int64 // start of the append in flight, in metrics.Now time; 0: none
	pending  atomic.Int64 // entries submitted and not released
	lists    atomic.Int64 // lists of commands, of one client each, awaiting outcomes
	stalled  atomic.Bool  // the store did not answer; logged

	mu      sync.Mutex
	queue   mailbox.FIFO[*batch] // forming; guarded by mu
	spare   []*batch             // empty batches; guarded by mu
	buffers [][]byte             // batch data buffers; guarded by mu
	closed  bool                 // guarded by mu: entries are dropped, with unknown outcome
	newest  uint64               // sequence of the newest entry submitted; guarded by mu

	wake       chan struct{} // capacity 1
	stop       chan struct{} // closed by close
	writerDone chan struct{} // closed at the writer's end
}

// journalOut receives durable batches, and the journal's failure.
type journalOut interface {
	release(b *batch) // settles, folds and answers a durable batch
	fail(err error)   // ends the engine
}

// A batch holds the entries of one append. At its release its data goes to the committed side, and
// the entries' commands are answered.
type batch struct {
	data       []byte
	entries    []*entry
	prev, next uint64

	appending, durable int64 // start and end of its append, in metrics.Now time
}

// Bounds of the writer's wait before it resends the same bytes.
const (
	retryLeast = 5 * time.Millisecond
	retryMost  = 200 * time.Millisecond
)

func newJournal(store persistence.Journal, token persistence.Token, last uint64, limit int,
	timing *Timing, log *slog.Logger, meter *metrics.Engine, out journalOut) *journal {
	return &journal{store: store, token: token, last: last, newest: last, limit: limit,
		timing: timing, log: log, meter: meter, out: out,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), writerDone: make(chan struct{})}
}

// submitted returns the sequence of the newest submitted entry, durable or not.
func (j *journal) submitted() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.newest
}

// submit adds an encoded entry to the forming batch. Any actor may call it; it never waits for the
// store. The entries of one actor keep their order. An entry belongs to the journal until its
// release.
func (j *journal) submit(n *entry) {
	j.pending.Add(1)
	if n.trace.Sent != 0 {
		n.trace.Decided = metrics.Now()
	}
	j.mu.Lock()
	if j.closed { // the engine is dead: handlers report an unknown outcome
		j.mu.Unlock()
		j.pending.Add(-1)
		return
	}
	if j.queue.Len() == 0 || len((*j.queue.Last()).data)+len(n.encoded) > j.limit {
		j.queue.Push(j.newBatch())
	}
	b := *j.queue.Last()
	b.data = append(b.data, n.encoded...)
	b.entries = append(b.entries, n)
	j.newest++
	j.mu.Unlock()
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// newBatch returns an empty batch; mu is held.
func (j *journal) newBatch() *batch {
	b := &batch{}
	if n := len(j.spare); n > 0 {
		b, j.spare = j.spare[n-1], j.spare[:n-1]
	}
	if n := len(j.buffers); n > 0 {
		b.data, j.buffers = j.buffers[n-1], j.buffers[:n-1]
	}
	b.data = event.BeginBatch(b.data)
	return b
}

// spares is the number of empty batches and buffers to keep.
const spares = 16

// recycleData takes back a buffer that the committed side no longer needs.
func (j *journal) recycleData(data []byte) {
	if cap(data) > 4*j.limit {
		return // do not keep a burst's memory
	}
	j.mu.Lock()
	if len(j.buffers) < spares {
		j.buffers = append(j.buffers, data[:0])
	}
	j.mu.Unlock()
}

// recycle takes a released batch back. The committed side owns its data by now.
func (j *journal) recycle(b *batch) {
	clear(b.entries)
	b.entries, b.data = b.entries[:0], nil
	j.mu.Lock()
	if len(j.spare) < spares {
		j.spare = append(j.spare, b)
	}
	j.mu.Unlock()
}

// take waits for the next batch; nil: the journal is closed.
func (j *journal) take() *batch {
	for {
		j.gather()
		if b := j.next(); b != nil {
			return b
		}
		select {
		case <-j.wake:
		case <-j.stop:
			return nil
		}
	}
}

// Bounds of gather. One yield often makes the next goroutine ready to run.
const (
	quietYields = 2
	gatherMost  = 200 * time.Microsecond // about an append
)

// gather yields to ready goroutines as long as that brings entries. The wallet sends a list's
// commands to their books at once, so more entries follow the first. In one batch all of them cost
// one sync, one release and one wake-up of their client. Single commands gain nothing from it, and
// wait longer on busy processors.
func (j *journal) gather() {
	if j.lists.Load() == 0 {
		return
	}
	begin, quiet := time.Now(), 0
	for newest := j.submitted(); quiet < quietYields && time.Since(begin) < gatherMost; {
		runtime.Gosched()
		if n := j.submitted(); n != newest {
			newest, quiet = n, 0
		} else {
			quiet++
		}
	}
}

// next returns the oldest waiting batch, nil if there is none.
func (j *journal) next() *batch {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.queue.Len() == 0 {
		return nil
	}
	return j.queue.Pop()
}

// Run writes batches until the journal closes.
func (j *journal) Run() {
	defer close(j.writerDone)
	defer j.deadline.release()
	for b := j.take(); b != nil && j.write(b); b = j.take() {
	}
}

// write makes a batch durable and releases it. It returns false if the journal has closed.
func (j *journal) write(b *batch) bool {
	b.prev, b.next = j.last, j.last+uint64(len(b.entries))
	b.data = event.EndBatch(b.data, j.token.Epoch(), b.prev, uint32(len(b.entries)))
	if err := j.append(b); err != nil {
		j.die(err)
		return false
	}
	if j.isClosed() {
		return false // durable but unanswered: the next start recovers it
	}
	j.last = b.next
	n := len(b.entries)
	j.out.release(b)
	j.recycle(b)
	j.pending.Add(int64(-n))
	return true
}

// append writes the batch until its outcome is known. An error means that this process will never
// know it.
func (j *journal) append(b *batch) error {
	start := time.Now()
	j.since.Store(metrics.At(start))
	defer j.since.Store(0)
	ctx := j.deadline.context(start, j.timing.StallMax)
	for wait := retryLeast; ; wait = min(2*wait, retryMost) {
		err := j.store.Append(ctx, j.token, b.prev, b.next, b.data)
		switch {
		case err == nil:
			now := time.Now()
			b.appending, b.durable = metrics.At(start), metrics.At(now)
			if j.stalled.Swap(false) {
				j.log.Info("the store takes writes again", "after",
					now.Sub(start).Round(time.Millisecond))
			}
			return nil
		case persistence.Definite(err):
			return err
		}
		j.meter.Failures[metrics.OperationAppend].Add(1)
		if !j.stalled.Swap(true) {
			j.log.Warn("the store does not take writes, trying again", "error", err, "records",
				len(b.entries))
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w after %v: %w", ErrStalled, j.timing.StallMax, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// A sharedDeadline is the context of appends that begin at about the same time. One context per
// append would cost a timer and six allocations, a thousand times a second.
type sharedDeadline struct {
	ctx    context.Context
	cancel context.CancelFunc
	from   time.Time
}

// context returns one that ends least after now, or up to a sixteenth of least later.
func (d *sharedDeadline) context(now time.Time, least time.Duration) context.Context {
	if slack := least / 16; d.ctx == nil || now.Sub(d.from) > slack {
		d.release()
		d.ctx, d.cancel = context.WithDeadline(context.Background(), now.Add(least+slack))
		d.from = now
	}
	return d.ctx
}

func (d *sharedDeadline) release() {
	if d.cancel != nil {
		d.cancel()
	}
}

// die fails the engine: the outcome of all entries in flight stays unknown.
func (j *journal) die(err error) {
	j.close()
	j.out.fail(err)
}

// close makes the journal drop later entries, and ends its writer.
func (j *journal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.closed {
		j.closed = true
		close(j.stop)
		j.queue = mailbox.FIFO[*batch]{}
	}
}

func (j *journal) isClosed() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.closed
}

// stalledFor returns the age of the append in flight at a time of metrics.Now, immune to wall clock
// jumps; 0: none.
func (j *journal) stalledFor(now int64) time.Duration {
	if since := j.since.Load(); since != 0 {
		return time.Duration(now - since)
	}
	return 0
}
