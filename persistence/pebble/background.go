package pebble

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"exchange/persistence"
)

// Bounds of the work that Pebble does by itself. Without them Pebble would retry failed work at
// once, permanently.
const (
	// pause is the time between two tries. Pebble's lock is held meanwhile, so Applies and lists
	// wait for it, and appends do not.
	pause = 250 * time.Millisecond
	// patience is how long that work may fail before the process ends.
	patience = 10 * time.Second
	// logInterval is the least time between two log lines about failed work: on a disk that is
	// nearly full it fails and succeeds many times.
	logInterval = time.Minute
)

// The kinds of that work. Each is tracked separately: on a disk that is nearly full one small
// compaction after the other may succeed, while no flush does.
const (
	flushWork = iota
	compactionWork
	workKinds
)

// A background watches the flushes and compactions of Pebble. It logs failures once per
// logInterval, slows down further tries, and ends the process when one kind has not succeeded for
// long. During a start successes do not count, so a start that cannot succeed ends, too. Other
// errors, such as those of reading statistics or the free room on the disk, are logged and end
// nothing. Pebble calls a background from any goroutine, mostly with a lock of its own held.
type background struct {
	logger   *slog.Logger
	end      func(error) // ends the process: it does not return
	pause    time.Duration
	patience time.Duration

	mu            sync.Mutex
	work          [workKinds]work // guarded by mu
	started       bool            // guarded by mu
	loggedAt      time.Time       // time of the last logged failure; guarded by mu
	otherLoggedAt time.Time       // time of the last other logged error; guarded by mu
}

// A work is the state of one kind of work.
type work struct {
	// The time of the first failure since the last success, or zero. Time without tries does not
	// count: since is moved forward by as much.
	since   time.Time
	failure error     // error of the newest try, until Pebble reports it
	tried   time.Time // when the newest try ended
	running int       // how many tries are under way
}

// failed records an error of Pebble's own work, and returns when the next try may begin.
func (b *background) failed(err error) {
	if pebble.IsCorruptionError(err) || errors.Is(err, fs.ErrNotExist) {
		b.end(fmt.Errorf("%w: %w; move the store's folder away, and restore a backup",
			persistence.ErrCorrupt, err))
	}
	now := time.Now()
	b.mu.Lock()
	w := b.failing(err)
	last, text := &b.otherLoggedAt, "the store met an error that concerns none of its writes"
	var took time.Duration
	if w != nil {
		if w.since.IsZero() {
			w.since = now
		}
		took, last = now.Sub(w.since), &b.loggedAt
		text = "the store cannot write its tables: retrying for a while; then the process ends"
	}
	due := now.Sub(*last) >= logInterval
	if due {
		*last = now
	}
	b.mu.Unlock()
	if due {
		b.logger.Error(text, "at_most", b.patience, "error", err.Error())
	}
	if w != nil && took >= b.patience {
		b.end(fmt.Errorf("its tables could not be written for %v: %w; make room, and start again",
			took.Round(time.Second), err))
	}
	time.Sleep(b.pause)
	if w != nil {
		b.mu.Lock()
		w.tried = time.Now()
		b.mu.Unlock()
	}
}

// failing returns the work that has just ended with this error; nil if none has. The caller holds
// mu.
func (b *background) failing(err error) *work {
	for kind := range b.work {
		if w := &b.work[kind]; w.failure != nil && errors.Is(err, w.failure) {
			w.failure = nil
			return w
		}
	}
	return nil
}

// onBegin records that work of one kind begins.
func (b *background) onBegin(kind int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := &b.work[kind]
	if w.running++; w.running == 1 && !w.since.IsZero() {
		w.since = w.since.Add(time.Since(w.tried))
	}
}

// onEnd records how work of one kind ended. Pebble calls failed with an error next, with its lock
// still held. It does not do so for a flush without a table, or a cancelled compaction: these are
// neither failures nor successes.
func (b *background) onEnd(kind int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := &b.work[kind]
	w.failure, w.tried = err, time.Now()
	w.running = max(w.running-1, 0)
	if err == nil && b.started {
		w.since = time.Time{}
	}
}

// onOpened records that the start is complete.
func (b *background) onOpened() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.started = true
	for kind := range b.work {
		b.work[kind].since = time.Time{}
	}
}

// listener handles the events of Pebble.
func (b *background) listener() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: b.failed,
		FlushBegin:      func(pebble.FlushInfo) { b.onBegin(flushWork) },
		FlushEnd:        func(i pebble.FlushInfo) { b.onEnd(flushWork, i.Err) },
		CompactionBegin: func(pebble.CompactionInfo) { b.onBegin(compactionWork) },
		CompactionEnd:   func(i pebble.CompactionInfo) { b.onEnd(compactionWork, i.Err) },
		// The caller of a read receives the error, and failed that of a compaction.
		DataCorruption: func(i pebble.DataCorruptionInfo) {
			b.logger.Error("a file of the store is damaged", "file", i.Path, "error",
				i.Details.Error())
		},
	}
}

// damaged distinguishes an error of the stored data from one of the system, which may pass. Pebble
// does not mark most errors about damaged data.
func damaged(err error) bool {
	var system syscall.Errno
	return !errors.As(err, &system) || errors.Is(err, fs.ErrNotExist)
}
