package pebble

import (
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// tries has flushes fail, and compactions between them end with an error or nil, until the process
// would end. It reports whether it did: the tries take many times the store's patience.
func tries(b *background, fatalErrs chan error, compaction error) bool {
	l := b.listener()
	for range 1000 {
		l.FlushBegin(pebble.FlushInfo{})
		l.FlushEnd(pebble.FlushInfo{Err: syscall.ENOSPC})
		l.BackgroundError(syscall.ENOSPC)
		if len(fatalErrs) > 0 {
			return true
		}
		l.CompactionBegin(pebble.CompactionInfo{})
		l.CompactionEnd(pebble.CompactionInfo{Err: compaction})
		if compaction != nil {
			l.BackgroundError(compaction)
		}
	}
	return false
}

func impatient() (*background, chan error) {
	fatalErrs := make(chan error, 1000)
	return &background{
		logger: quiet, end: func(err error) { fatalErrs <- err }, pause: time.Millisecond,
		patience: 20 * time.Millisecond,
	}, fatalErrs
}

// On a disk that is nearly full small compactions succeed without end, and no flush does.
func TestFailingFlushesEndProcessDespiteCompactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, compaction := range map[string]error{"succeed": nil,
			"fail, too": syscall.ENOSPC} {
			b, fatalErrs := impatient()
			b.onOpened()
			if !tries(b, fatalErrs, compaction) {
				t.Errorf("compactions %s: no flush succeeded, and the process continues", name)
			}
		}
	})
}

// A start whose flushes fail, now and then, ends. Flushes of an open store may fail later.
func TestStartWithOccasionalFailuresEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, starting := range []bool{true, false} {
			b, fatalErrs := impatient()
			b.patience = 200 * time.Millisecond
			if !starting {
				b.onOpened()
				b.patience = time.Hour
			}
			l := b.listener()
			for n := 0; n < 1000 && len(fatalErrs) == 0; n++ {
				l.FlushBegin(pebble.FlushInfo{})
				l.FlushEnd(pebble.FlushInfo{Err: syscall.ENOSPC})
				l.BackgroundError(syscall.ENOSPC)
				l.FlushEnd(pebble.FlushInfo{})
			}
			if ended := len(fatalErrs) > 0; ended != starting {
				t.Errorf("starting %v: it would have ended: %v", starting, ended)
			}
		}
	})
}

// Errors that are neither of flushes nor of compactions end no healthy exchange, no matter which
// events came before. Pebble reports errors of its statistics, and of reading a disk's free space.
func TestErrorsOutsideWritesAreNotFatal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, before := range map[string]func(l *pebble.EventListener){
			"nothing": func(*pebble.EventListener) {},
			"a flush that failed": func(l *pebble.EventListener) {
				l.FlushEnd(pebble.FlushInfo{Err: syscall.ENOSPC})
				l.BackgroundError(syscall.ENOSPC)
			},
			"a flush without a table": func(l *pebble.EventListener) {
				l.FlushEnd(pebble.FlushInfo{Err: errors.New("pebble: empty table")})
			},
			"a compaction that was called off": func(l *pebble.EventListener) {
				l.CompactionEnd(pebble.CompactionInfo{Err: pebble.ErrCancelledCompaction})
			},
		} {
			b, fatalErrs := impatient()
			b.patience = 0 // the first failure is one too many
			b.onOpened()
			l := b.listener()
			before(l)
			for len(fatalErrs) > 0 {
				<-fatalErrs
			}
			for range 10 {
				l.BackgroundError(syscall.EIO)
			}
			if len(fatalErrs) > 0 {
				t.Errorf("after %s the process ends: %v", name, <-fatalErrs)
			}
		}
	})
}

// Time without tries does not count: two flushes that fail, a day apart, end nothing.
func TestOnlyTimeOfTriesCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, fatalErrs := impatient()
		b.patience = time.Hour
		b.onOpened()
		l := b.listener()
		fail := func() {
			l.FlushBegin(pebble.FlushInfo{})
			l.FlushEnd(pebble.FlushInfo{Err: syscall.ENOSPC})
			l.BackgroundError(syscall.ENOSPC)
		}
		age := func() {
			w := &b.work[flushWork]
			w.since, w.tried = w.since.Add(-24*time.Hour), w.tried.Add(-24*time.Hour)
		}
		fail()
		age()
		fail()
		if len(fatalErrs) > 0 {
			t.Errorf("a flush that fails a day after another one ends the process: %v", <-fatalErrs)
		}
		l.FlushBegin(pebble.FlushInfo{}) // the try itself counts
		age()
		l.FlushEnd(pebble.FlushInfo{Err: syscall.ENOSPC})
		l.BackgroundError(syscall.ENOSPC)
		if len(fatalErrs) == 0 {
			t.Error("flushes that fail for a day do not end the process")
		}
	})
}
