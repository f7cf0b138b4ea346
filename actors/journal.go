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

// A journal makes entries durable and releases them. It is an actor in all but name: a queue under
// a mutex that any actor submits to, and one goroutine that owns the sequence, takes what has
// gathered while it was writing, appends it as one batch, and releases it. It has no protoactor
// mailbox because it must block on the store, and because books may then put their encoded entries
// straight into the batch that is forming: one hop less for every order.
//
// There is no timer: a batch has the entries that arrived during the append before it. While a
// client waits for several commands that it sent together, a batch also has what their books are
// about to add.
type journal struct {
	store    persistence.Journal
	token    persistence.Token
	timing   *Timing
	log      *slog.Logger
	meter    *metrics.Engine
	out      journalOut
	limit    int    // size of a batch, in bytes, beyond which the next entry starts another
	last     uint64 // sequence of the newest durable record; the writer's, like deadline
	deadline sharedDeadline
	since    atomic.Int64 // start of the append in flight, as metrics.Now tells; 0: none is
	pending  atomic.Int64 // entries submitted and not released
	lists    atomic.Int64 // lists of commands, of one client each, whose outcomes are awaited
	stalled  atomic.Bool  // the store did not answer, and the log says so

	mu      sync.Mutex
	queue   mailbox.FIFO[*batch] // forming; guarded by mu
	spare   []*batch             // empty batches; guarded by mu
	buffers [][]byte             // buffers for data of batches; guarded by mu
	closed  bool                 // guarded by mu: entries are dropped, their outcome stays unknown
	newest  uint64               // sequence of the newest entry submitted; guarded by mu

	wake    chan struct{} // capacity 1
	stop    chan struct{} // closed by close
	stopped chan struct{} // closed when the writer has ended
}

// journalOut takes durable batches, and hears of the journal's end.
type journalOut interface {
	release(b *batch) // settles, folds and answers a durable batch
	fail(err error)   // ends the engine
}

// A batch has the entries of one append. At its release data goes to the committed side, and the
// commands of the entries are answered.
type batch struct {
	data       []byte
	entries    []*entry
	prev, next uint64

	appending, durable int64 // when its append began and ended, as metrics.Now tells
}

// Bounds of the writer's wait before it sends the same bytes again.
const (
	retryLeast = 5 * time.Millisecond
	retryMost  = 200 * time.Millisecond
)

func newJournal(store persistence.Journal, token persistence.Token, last uint64, limit int,
	timing *Timing, log *slog.Logger, meter *metrics.Engine, out journalOut) *journal {
	return &journal{store: store, token: token, last: last, newest: last, limit: limit,
		timing: timing, log: log, meter: meter, out: out,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{})}
}

// submitted returns the sequence of the newest entry that was submitted, durable or not.
func (j *journal) submitted() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.newest
}

// submit puts an encoded entry into the forming batch. Any actor may call it; it never waits for
// the store. The entries of one actor keep their order. An entry belongs to the journal from here
// to its release.
func (j *journal) submit(n *entry) {
	j.pending.Add(1)
	if n.trace.Sent != 0 {
		n.trace.Decided = metrics.Now()
	}
	j.mu.Lock()
	if j.closed { // the engine is dead: handlers know that the outcome is unknown
		j.mu.Unlock()
		j.pending.Add(-1)
		return
	}
	if j.queue.Len() == 0 || len((*j.queue.Last()).data)+len(n.encoded) > j.limit {
		j.queue.Push(j.fresh())
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

// fresh returns an empty batch; mu is held.
func (j *journal) fresh() *batch {
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

// spares is how many empty batches and buffers are kept.
const spares = 16

// recycleData takes a buffer back when the committed side is done with it.
func (j *journal) recycleData(data []byte) {
	if cap(data) > 4*j.limit {
		return // the memory of a burst is not kept
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

// take waits for the next batch. nil: the journal is closed.
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

// Bounds of gather. What one yield brings is often what makes the next goroutine ready to run.
const (
	quietYields = 2
	gatherMost  = 200 * time.Microsecond // about an append
)

// gather lets the goroutines that are ready to run go first, as long as entries come of it. The
// wallet has sent the commands of a list to their books at once, so the first entry has company on
// its way; in one batch all of them cost one sync, one release and one wake-up of their client. For
// commands that came alone this saves nothing, and costs their clients time when the processors are
// busy.
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

// next returns the oldest batch that waits, nil if there is none.
func (j *journal) next() *batch {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.queue.Len() == 0 {
		return nil
	}
	return j.queue.Pop()
}

// Run writes batches until the journal ends.
func (j *journal) Run() {
	defer close(j.stopped)
	defer j.deadline.release()
	for b := j.take(); b != nil && j.write(b); b = j.take() {
	}
}

// write makes a batch durable and releases it. It returns false if the journal has ended.
func (j *journal) write(b *batch) bool {
	b.prev, b.next = j.last, j.last+uint64(len(b.entries))
	b.data = event.EndBatch(b.data, j.token.Epoch(), b.prev, uint32(len(b.entries)))
	if err := j.append(b); err != nil {
		j.die(err)
		return false
	}
	if j.isClosed() {
		return false // it is durable without an answer: the next start finds it
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

// A sharedDeadline is the context of the appends that begin at about the same time. A context for
// each append would take a timer and six allocations, a thousand times a second.
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

// die ends the engine: the outcome of all entries in flight stays unknown.
func (j *journal) die(err error) {
	j.close()
	j.out.fail(err)
}

// close makes the journal drop the entries that come from now on, and ends its writer.
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

// stalledFor returns how long the append in flight has been waiting at a time of metrics.Now; 0 if
// none is. The wall clock may jump meanwhile.
func (j *journal) stalledFor(now int64) time.Duration {
	if since := j.since.Load(); since != 0 {
		return time.Duration(now - since)
	}
	return 0
}
