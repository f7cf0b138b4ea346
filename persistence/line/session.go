package line

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"exchange/core/wire"
)

// Messages of a session. Each has its question's number after its kind.
const (
	askMessage  = iota + 1 // kind of question, window, body
	pageMessage            // of the answer
	endMessage             // why, text, last page
	ackMessage             // bytes of pages that the other side is done with
	stopMessage            // no more pages are wanted
)

// Questions of a session.
type Questions struct {
	Open     int           // questions of either side, at most
	Patience time.Duration // for the other side to take a page
	// Errors are those that the other side can match, the same list on both sides.
	Errors []error
	// Answer answers a question on a goroutine of its own, with the pages that it sends and a last
	// one. nil: the other side asks nothing. An error that is ErrMalformed ends the session.
	Answer func(q *Question) (last []byte, err error)
}

// Errors of questions.
var (
	errBusy = errors.New("too many questions are open") // nothing was asked
	ErrLost = errors.New("the connection to the other side is over")
	errDone = errors.New("the answer is not wanted any more")
	errSlow = errors.New("the other side takes too little of an answer")
)

// leftOpen is how many stopped questions per open one the answering side may not have noticed yet.
const leftOpen = 8

// A Session is a line of questions and answers. Its methods may be called from any goroutine, Run
// once.
type Session struct {
	line *Line
	q    Questions
	ctx  context.Context // until the connection is over
	stop context.CancelCauseFunc
	all  sync.WaitGroup // answers

	mu       sync.Mutex
	number   uint64               // of the newest own question; guarded by mu
	outgoing map[uint64]*Answer   // nil: the connection is over; guarded by mu
	incoming map[uint64]*Question // unanswered ones of the other side; guarded by mu
}

// NewSession makes a session of a connection, which is its own from then on. Run follows.
func NewSession(conn net.Conn, o Options, q Questions) *Session {
	o.Own = true
	s := &Session{line: New(conn, o), q: q, outgoing: map[uint64]*Answer{},
		incoming: map[uint64]*Question{}}
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	return s
}

// Run returns why the session has ended, once no answer is under way any more.
func (s *Session) Run() error {
	err := s.line.Run(s.receive)
	if cause := context.Cause(s.ctx); cause != nil {
		err = cause
	}
	s.stop(err)
	s.mu.Lock()
	for _, a := range s.outgoing {
		a.finish(ErrLost)
	}
	s.outgoing = nil
	s.mu.Unlock()
	s.all.Wait()
	return err
}

// Close ends the session, for a reason, as Line's Close does.
func (s *Session) Close(why error) {
	s.stop(why)
	s.line.Close()
}

// A Question is one of the other side.
type Question struct {
	Kind byte
	Body []byte
	Ctx  context.Context // until the answer is not wanted any more

	s        *Session
	number   uint64
	window   uint64 // bytes of pages in flight from which on the next page waits
	stop     context.CancelCauseFunc
	room     chan struct{} // capacity 1: the other side took some
	inFlight uint64        // bytes; guarded by Session.mu
}

// send sends a message about a question. A session that cannot ends.
func (s *Session) send(kind byte, number uint64, add func(b []byte) []byte) error {
	err := s.line.Send(func(b []byte) []byte {
		return add(binary.AppendUvarint(append(b, kind), number))
	})
	if err != nil {
		s.Close(err)
	}
	return err
}

// Send sends a page, and waits until the other side has room for the next.
func (q *Question) Send(page []byte) error {
	s := q.s
	s.mu.Lock()
	q.inFlight += uint64(len(page))
	s.mu.Unlock()
	if err := s.send(pageMessage, q.number, func(b []byte) []byte {
		return append(b, page...)
	}); err != nil {
		return err
	}
	var late <-chan time.Time
	for {
		s.mu.Lock()
		full := q.inFlight >= q.window
		s.mu.Unlock()
		if !full {
			return nil
		}
		if late == nil {
			late = time.After(s.q.Patience)
		}
		select {
		case <-q.room:
		case <-q.Ctx.Done():
			return context.Cause(q.Ctx)
		case <-late:
			return errSlow
		}
	}
}

// answer answers a question.
func (q *Question) answer() {
	s := q.s
	last, err := s.q.Answer(q)
	if errors.Is(err, ErrMalformed) {
		s.Close(err)
	}
	s.mu.Lock()
	delete(s.incoming, q.number)
	s.mu.Unlock()
	if q.Ctx.Err() != nil {
		return
	}
	q.stop(errDone)
	index, text := 0, ""
	if err != nil {
		index = slices.IndexFunc(s.q.Errors, func(e error) bool { return errors.Is(err, e) }) + 2
		text, last = err.Error(), nil
	}
	s.send(endMessage, q.number, func(b []byte) []byte { //nolint:errcheck // then it ends
		b = wire.AppendText(append(b, byte(index)), text[:min(len(text), maxGreeting)])
		return append(b, last...)
	})
}

// A remote is an error that answer has sent.
type remote struct {
	kind error // of Questions.Errors; nil: none of them
	text string
}

func (r *remote) Error() string { return "the other side reports: " + r.text }

func (r *remote) Unwrap() error { return r.kind }

// reason returns why an answer has ended.
func (s *Session) reason(index int, text string) error {
	switch index {
	case 0:
		return io.EOF
	case 1:
		return &remote{text: text}
	}
	return &remote{s.q.Errors[index-2], text}
}

// receive takes a message. It does not wait.
func (s *Session) receive(message []byte) error {
	p := wire.Read(message)
	kind, number := p.Byte(), p.Uint()
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	a := s.outgoing[number]
	switch kind {
	case askMessage:
		q := &Question{Kind: p.Byte(), window: p.Uint(), s: s, number: number,
			room: make(chan struct{}, 1)}
		q.Body = p.Rest()
		if s.q.Answer == nil || s.incoming[number] != nil || s.isFull() {
			p.Fail("a question that is not allowed")
			break
		}
		q.Ctx, q.stop = context.WithCancelCause(s.ctx)
		s.incoming[number] = q
		s.all.Go(q.answer)
	case ackMessage, stopMessage:
		n := uint64(0)
		if kind == ackMessage {
			n = p.Uint()
		}
		p.End()
		if q := s.incoming[number]; q != nil { // otherwise it is over by now
			err = q.onControl(kind, n)
		}
	case pageMessage:
		p.Check(number <= s.number)
		if page := p.Rest(); a != nil {
			err = a.addPage(page)
		}
	case endMessage:
		p.Check(number <= s.number)
		index, text := int(p.Byte()), p.Text(maxGreeting)
		p.Check(index <= len(s.q.Errors)+1)
		if last := p.Rest(); a != nil && !p.Bad() {
			delete(s.outgoing, number)
			if len(last) > 0 {
				a.pages = append(a.pages, last)
			}
			a.finish(s.reason(index, text))
		}
	default:
		p.Fail("no kind of message")
	}
	if p.Bad() {
		err = fmt.Errorf("%w: kind %d of question %d: %s", ErrMalformed, kind, number, p.Fault())
	}
	return err
}

// onControl applies an acknowledgement or a stop of the other side. The caller holds mu.
func (q *Question) onControl(kind byte, n uint64) error {
	switch {
	case kind == stopMessage:
		q.stop(errDone)
	case n > q.inFlight:
		return fmt.Errorf("%w: it took %d bytes of %d", ErrMalformed, n, q.inFlight)
	default:
		q.inFlight -= n
		wake(q.room)
	}
	return nil
}

// isFull reports whether more questions are open than the other side may ask. The caller holds mu.
func (s *Session) isFull() bool {
	wanted := 0
	for _, q := range s.incoming {
		if q.Ctx.Err() == nil {
			wanted++
		}
	}
	return wanted >= s.q.Open || len(s.incoming) >= leftOpen*s.q.Open
}

// wake fills a channel of capacity 1.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
