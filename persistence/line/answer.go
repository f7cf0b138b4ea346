package line

import (
	"context"
	"encoding/binary"
	"fmt"
)

// An Answer is the other side's answer to a question. One goroutine uses it, and calls End.
type Answer struct {
	s      *Session
	number uint64
	window uint64
	more   chan struct{} // capacity 1: a page or the end has come

	pages   [][]byte // that have come, and were not returned; guarded by Session.mu
	waiting uint64   // bytes of pages that are not done with; guarded by Session.mu
	done    uint64   // bytes of the page that Next has returned; guarded by Session.mu
	over    bool     // nothing more comes; guarded by Session.mu
	why     error    // io.EOF: the answer is whole; guarded by Session.mu
}

// Ask asks a question. About window bytes of the answer's pages, or one page, are in flight or wait
// here at a time. errBusy, ErrLost: nothing was asked.
func (s *Session) Ask(kind byte, window int, body []byte) (*Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.outgoing == nil:
		return nil, ErrLost
	case len(s.outgoing) >= s.q.Open:
		return nil, errBusy
	}
	s.number++
	a := &Answer{s: s, number: s.number, window: uint64(window), more: make(chan struct{}, 1)}
	err := s.send(askMessage, a.number, func(b []byte) []byte {
		return append(binary.AppendUvarint(append(b, kind), a.window), body...)
	})
	if err != nil {
		return nil, ErrLost
	}
	s.outgoing[a.number] = a
	return a, nil
}

// Call asks a question that has one page, and returns that.
func (s *Session) Call(ctx context.Context, kind byte, body []byte) ([]byte, error) {
	a, err := s.Ask(kind, 1, body)
	if err != nil {
		return nil, err
	}
	defer a.End()
	return a.Next(ctx)
}

// Next returns the next page, which is valid until Next is called again. io.EOF: there is none.
// ErrLost: the connection was over before the last one came. An error of the other side is one of
// Questions.Errors, with its text, or that text alone.
func (a *Answer) Next(ctx context.Context) ([]byte, error) {
	s := a.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := a.done; n > 0 && !a.over {
		a.waiting -= n
		s.send(ackMessage, a.number, func(b []byte) []byte { //nolint:errcheck // then it ends
			return binary.AppendUvarint(b, n)
		})
	}
	a.done = 0
	for {
		switch {
		case len(a.pages) > 0:
			page := a.pages[0]
			a.pages, a.done = a.pages[1:], uint64(len(page))
			return page, nil
		case a.over:
			return nil, a.why
		}
		s.mu.Unlock()
		var err error
		select {
		case <-a.more:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if s.mu.Lock(); err != nil {
			return nil, err
		}
	}
}

// More reports whether more pages may follow those that Next has returned.
func (a *Answer) More() bool {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	return len(a.pages) > 0 || !a.over
}

// addPage queues a page. The caller holds mu.
func (a *Answer) addPage(page []byte) error {
	if len(page) == 0 || a.waiting >= a.window {
		return fmt.Errorf("%w: a page of %d bytes that was not asked for", ErrMalformed, len(page))
	}
	a.waiting += uint64(len(page))
	a.pages = append(a.pages, page)
	wake(a.more)
	return nil
}

// finish notes that nothing more comes. The caller holds mu.
func (a *Answer) finish(why error) {
	a.over, a.why = true, why
	wake(a.more)
}

// End stops the answer.
func (a *Answer) End() {
	s := a.s
	s.mu.Lock()
	_, open := s.outgoing[a.number]
	delete(s.outgoing, a.number)
	s.mu.Unlock()
	if open {
		//nolint:errcheck // then it ends
		s.send(stopMessage, a.number, func(b []byte) []byte { return b })
	}
}
