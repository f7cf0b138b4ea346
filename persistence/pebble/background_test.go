package pebble

import (
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// tries has flushes fail, and compactions between them end as told, until the process would end. It
// reports whether that came: the tries take many times as long as the store is patient.
func tries(b *background, told chan error, compaction error) bool {
	l := b.listener()
	for range 1000 {
		l.FlushEnd(pebble.FlushInfo{Err: syscall.ENOSPC})
		l.BackgroundError(syscall.ENOSPC)
		if len(told) > 0 {
			return true
		}
		l.CompactionEnd(pebble.CompactionInfo{Err: compaction})
		if compaction != nil {
			l.BackgroundError(compaction)
		}
	}
	return false
}

func impatient() (*background, chan error) {
	told := make(chan error, 1000)
	return &background{
		logger: quiet, end: func(err error) { told <- err }, pause: time.Millisecond,
		patience: 20 * time.Millisecond,
	}, told
}

// On a disk that is nearly full small compactions succeed for ever, and no flush does.
func TestFlushesThatFailEndTheProcessThoughCompactionsSucceed(t *testing.T) {
	for name, compaction := range map[string]error{"succeed": nil, "fail, too": syscall.ENOSPC} {
		b, told := impatient()
		b.opened()
		if !tries(b, told, compaction) {
			t.Errorf("compactions %s: no flush succeeded, and the process goes on", name)
		}
	}
}

// A start whose flushes fail, now and then, ends: later ones of an open store may.
func TestAStartThatFailsNowAndThenEnds(t *testing.T) {
	for _, starting := range []bool{true, false} {
		b, told := impatient()
		b.patience = 200 * time.Millisecond
		if !starting {
			b.opened()
			b.patience = time.Hour
		}
		l := b.listener()
		for n := 0; n < 1000 && len(told) == 0; n++ {
			l.FlushEnd(pebble.FlushInfo{Err: syscall.ENOSPC})
			l.BackgroundError(syscall.ENOSPC)
			l.FlushEnd(pebble.FlushInfo{})
		}
		if ended := len(told) > 0; ended != starting {
			t.Errorf("starting %v: it would have ended: %v", starting, ended)
		}
	}
}
