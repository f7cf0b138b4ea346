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

// Bounds of the work that Pebble does by itself and, when it fails, tries again at once and for ever.
const (
	// pause is the time between two tries. Pebble's lock is held meanwhile, so Applies and lists
	// wait for it, and appends do not.
	pause = 250 * time.Millisecond
	// patience is how long that work may fail before the process ends.
	patience = 10 * time.Second
	// sayAgain is the least time between two words about it: on a disk that is nearly full it begins and
	// ends many times.
	sayAgain = time.Minute
)

// A background watches the flushes and compactions of Pebble. It says once that they fail, slows
// down their tries, and ends the process when none succeeds for long. Pebble calls it from any
// goroutine, mostly with a lock of its own held.
type background struct {
	logger   *slog.Logger
	end      func(error) // ends the process: it does not return
	pause    time.Duration
	patience time.Duration

	mu    sync.Mutex
	since time.Time // the first failure since the last success; zero: there is none; guarded by mu
	said  time.Time // when that was logged last; guarded by mu
}

// failed notes that a flush or compaction failed, and returns when the next may begin.
func (b *background) failed(err error) {
	if pebble.IsCorruptionError(err) || errors.Is(err, fs.ErrNotExist) {
		b.end(fmt.Errorf("%w: %w; restore a backup", persistence.ErrCorrupt, err))
	}
	now := time.Now()
	b.mu.Lock()
	if b.since.IsZero() {
		b.since = now
	}
	took, say := now.Sub(b.since), now.Sub(b.said) >= sayAgain
	if say {
		b.said = now
	}
	b.mu.Unlock()
	if say {
		b.logger.Error("the store cannot write its tables: trying again for a while; then the process ends",
			"at_most", b.patience, "error", err.Error())
	}
	if took >= b.patience {
		b.end(fmt.Errorf("its tables could not be written for %v: %w; make room, and start again",
			took.Round(time.Second), err))
	}
	time.Sleep(b.pause)
}

// done notes how a flush or compaction ended.
func (b *background) done(err error) {
	if err != nil {
		return // failed hears of it, too
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.since = time.Time{}
}

// listener is what Pebble tells.
func (b *background) listener() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: b.failed,
		FlushEnd:        func(i pebble.FlushInfo) { b.done(i.Err) },
		CompactionEnd:   func(i pebble.CompactionInfo) { b.done(i.Err) },
		// The caller of a read gets the error, and failed gets that of a compaction.
		DataCorruption: func(i pebble.DataCorruptionInfo) {
			b.logger.Error("a file of the store is damaged", "file", i.Path, "error", i.Details.Error())
		},
	}
}

// damaged tells an error of what is stored from one of the system, which may be over at the next try.
// Pebble finds most of the former without a mark of its own.
func damaged(err error) bool {
	var system syscall.Errno
	return !errors.As(err, &system) || errors.Is(err, fs.ErrNotExist)
}
