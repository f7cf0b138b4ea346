package socketio

import (
	"sync"
	"time"
)

// A wheel wakes sessions when something is due: pings, missing pongs, unjoined namespaces. It has
// one goroutine and one lock for all sessions, and a session needs only its links. It may wake a
// session late by a tick, or early if the due time has moved. So a session checks its times itself
// and sets the wheel again.
type wheel struct {
	tick int64 // nanoseconds

	mu    sync.Mutex // the innermost of all locks
	now   int64      // last tick that was handled
	slots [slots]*session
}

// slots is the number of slots, a power of two. With the default timings a turn of the wheel is
// 51 s, longer than all of them.
const slots = 1024

// Bounds of a tick. The default timings give 50 ms; tests use shorter ones.
const (
	minTick = time.Millisecond
	maxTick = 50 * time.Millisecond
)

// A timer is the entry of a session in the wheel.
type timer struct {
	due            int64 // tick; 0: none
	next, previous *session
}

func newWheel(o *Options) *wheel {
	shortest := min(o.PingInterval, o.PingTimeout, o.ConnectTimeout, o.UpgradeTimeout,
		o.StallTimeout)
	return &wheel{tick: int64(min(max(shortest/16, minTick), maxTick))}
}

// set wakes a session at a time, unless the wheel wakes it before.
func (w *wheel) set(s *session, at int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	due := max((at+w.tick-1)/w.tick, w.now+1)
	if s.timer.due != 0 {
		if s.timer.due <= due {
			return
		}
		w.unlink(s)
	}
	slot := &w.slots[due%slots]
	s.timer = timer{due: due, next: *slot}
	if *slot != nil {
		(*slot).timer.previous = s
	}
	*slot = s
}

// unset removes a session.
func (w *wheel) unset(s *session) {
	w.mu.Lock()
	if s.timer.due != 0 {
		w.unlink(s)
	}
	w.mu.Unlock()
}

func (w *wheel) unlink(s *session) {
	t := s.timer
	if t.previous != nil {
		t.previous.timer.next = t.next
	} else {
		w.slots[t.due%slots] = t.next
	}
	if t.next != nil {
		t.next.timer.previous = t.previous
	}
	s.timer = timer{}
}

// advance removes the due sessions, and appends them to list.
func (w *wheel) advance(now int64, list []*session) []*session {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := now / w.tick
	for i := max(w.now+1, last-slots+1); i <= last; i++ {
		for s := w.slots[i%slots]; s != nil; {
			next := s.timer.next
			if s.timer.due <= last {
				w.unlink(s)
				list = append(list, s)
			}
			s = next
		}
	}
	w.now = max(w.now, last)
	return list
}

// run wakes sessions until stop is closed.
func (w *wheel) run(clock func() int64, stop <-chan struct{}) {
	ticker := time.NewTicker(time.Duration(w.tick))
	defer ticker.Stop()
	var due []*session
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		due = w.advance(clock(), due[:0])
		for _, s := range due {
			s.wake()
		}
		clear(due)
	}
}
