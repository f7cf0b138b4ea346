package loadtest

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Events of an account, as received by one of its sockets.

const ownChannel = "own"

// An ownLag compares when orders of an account were acknowledged with when their events came.
// Either may come first.
type ownLag struct {
	mu     sync.Mutex
	acks   map[uint64]time.Time // by order, of those without an event yet
	events map[uint64]time.Time // the opposite
	lags   *hdrhistogram.Histogram
	before uint64 // events before their acknowledgements
}

func newOwnLag() *ownLag {
	return &ownLag{acks: map[uint64]time.Time{}, events: map[uint64]time.Time{},
		lags: newHistogram()}
}

// mostLone bounds the orders with only one of the two: the other may never come.
const mostLone = 10_000

func (l *ownLag) noteAck(order uint64, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.events[order]; ok {
		delete(l.events, order)
		record(l.lags, 0)
		l.before++
	} else if len(l.acks) < mostLone {
		l.acks[order] = at
	}
}

func (l *ownLag) noteEvent(order uint64, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ack, ok := l.acks[order]; ok {
		delete(l.acks, order)
		record(l.lags, at.Sub(ack))
	} else if len(l.events) < mostLone {
		l.events[order] = at
	}
}

// forget drops everything until now from the distribution.
func (l *ownLag) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lags, l.before = newHistogram(), 0
}

// addTo adds the distribution to another one, and returns how many events came before their
// acknowledgements.
func (l *ownLag) addTo(h *hdrhistogram.Histogram) (before uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h.Merge(l.lags)
	return l.before
}

// own processes an event of the subscriber's account. Each follows the one before.
func (s *subscriber) own(b []byte) error {
	now := time.Now()
	var sequence, prev, order uint64
	whole, placed := false, false
	if err := eachField(b, func(name, v []byte) bool {
		switch string(name) {
		case "snapshot":
			whole = true
		case "sequence":
			sequence = number(v)
		case "prev":
			prev = number(v)
		case "cause":
			placed = string(v) == "placed"
		case "order":
			order = number(v)
		}
		return string(name) != "orders" // the rows
	}); err != nil {
		return err
	}
	if placed {
		s.user.lag.noteEvent(order, now)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.last[ownChannel]
	s.last[ownChannel] = sequence
	switch {
	case whole || sequence == last: // a part
	case prev != last:
		s.noteLocked("event %d of %s follows event %d, and event %d came before it", sequence,
			s.user.title(), prev, last)
	}
	return nil
}
