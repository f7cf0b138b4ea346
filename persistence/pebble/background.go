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

// Bounds of the work that Pebble does by itself and, when it fails, tries again at once and for
// ever.
const (
	// pause is the time between two tries. Pebble's lock is held meanwhile, so Applies and lists
	// wait for it, and appends do not.
	pause = 250 * time.Millisecond
	// patience is how long that work may fail before the process ends.
	patience = 10 * time.Second
	// sayAgain is the least time between two words about it: on a disk that is nearly full it
	// begins and ends many times.
	sayAgain = time.Minute
)

// The kinds of that work. Each fails and succeeds for itself: on a disk that is nearly full small
// compactions succeed, one after the other, while no flush does.
const (
	flushes = iota
	compactions
	workKinds
)

// A background watches the flushes and compactions of Pebble. It says once that they fail, slows
// down their tries, and ends the process when one kind does not succeed for long. During a start no
// success counts, so that the start has an end, too. Pebble calls it from any goroutine, mostly
// with a lock of its own held.
type background struct {
	logger   *slog.Logger
	end      func(error) // ends the process: it does not return
	pause    time.Duration
	patience time.Duration

	mu    sync.Mutex
	since [workKinds]time.Time // the first failure since the last success, or zero; guarded by mu
	// the kind of the work that ended with an error last; guarded by mu
	last    int
	started bool      // guarded by mu
	said    time.Time // when a failure was logged last; guarded by mu
}

// failed notes that a flush or compaction failed, and returns when the next may begin.
func (b *background) failed(err error) {
	if pebble.IsCorruptionError(err) || errors.Is(err, fs.ErrNotExist) {
		b.end(fmt.Errorf("%w: %w; restore a backup", persistence.ErrCorrupt, err))
	}
	now := time.Now()
	b.mu.Lock()
	since := &b.since[b.last]
	if since.IsZero() {
		*since = now
	}
	took, say := now.Sub(*since), now.Sub(b.said) >= sayAgain
	if say {
		b.said = now
	}
	b.mu.Unlock()
	if say {
		b.logger.Error(
			"the store cannot write its tables: trying again for a while; then the process ends",
			"at_most", b.patience, "error", err.Error())
	}
	if took >= b.patience {
		b.end(fmt.Errorf("its tables could not be written for %v: %w; make room, and start again",
			took.Round(time.Second), err))
	}
	time.Sleep(b.pause)
}

// done notes how work of one kind ended. Of an error Pebble tells failed next, with its lock still
// held.
func (b *background) done(kind int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err != nil:
		b.last = kind
	case b.started:
		b.since[kind] = time.Time{}
	}
}

// opened notes that the start has come to its end.
func (b *background) opened() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.started, b.since = true, [workKinds]time.Time{}
}

// listener is what Pebble tells.
func (b *background) listener() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: b.failed,
		FlushEnd:        func(i pebble.FlushInfo) { b.done(flushes, i.Err) },
		CompactionEnd:   func(i pebble.CompactionInfo) { b.done(compactions, i.Err) },
		// The caller of a read gets the error, and failed gets that of a compaction.
		DataCorruption: func(i pebble.DataCorruptionInfo) {
			b.logger.Error("a file of the store is damaged", "file", i.Path, "error",
				i.Details.Error())
		},
	}
}

// damaged tells an error of what is stored from one of the system, which may be over at the next
// try. Pebble finds most of the former without a mark of its own.
func damaged(err error) bool {
	var system syscall.Errno
	return !errors.As(err, &system) || errors.Is(err, fs.ErrNotExist)
}
