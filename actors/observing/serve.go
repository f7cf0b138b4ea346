package observing

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"exchange/core/wire"
	"exchange/persistence"
	"exchange/persistence/line"
)

// A Host is the part of a member that its observers need. Its methods may be called from any
// goroutine.
type Host interface {
	// Watermark returns the sequence up to which the member's store has all rows.
	Watermark() uint64
	// Scan starts a query of the rows, which takes turns with long queries of the member's own
	// clients. ctx bounds it.
	Scan(ctx context.Context) Scan
	// Answer answers a client's signed read. It may wait.
	Answer(read []byte) ([]byte, error)
	// Dead is closed when the member no longer serves.
	Dead() <-chan struct{}
}

// A Scan is a query that may become a long one. One goroutine uses it.
type Scan interface {
	TakeTurn() error // waits for the next turn: see persistence.WithPace
	ReleaseTurn()    // releases the turn until the next TakeTurn
	End()
}

// A Server serves all observers of a member.
type Server struct {
	store    persistence.Replica
	host     Host
	log      *slog.Logger
	refused  persistence.Seldom
	silence  time.Duration
	patience imagePatience

	mu       sync.Mutex
	controls map[string]*control // by observer; guarded by mu
	transfer *imageTransfer      // nil: none; guarded by mu
	slow     map[string]bool     // observers whose transfer was aborted for slowness; guarded by mu
}

// A control is the entry of a connected observer. While it exists, no other process may use its
// name.
type control struct {
	process uint64
	conn    net.Conn // the newest
	logged  bool     // a second process was logged
}

// NewServer makes the server of a member. An observer is disconnected after silence without
// messages or reads; 0: usualSilence.
func NewServer(store persistence.Replica, host Host, log *slog.Logger,
	silence time.Duration) *Server {
	if silence == 0 {
		silence = usualSilence
	}
	return &Server{store: store, host: host, log: log, silence: silence, patience: usualPatience,
		controls: map[string]*control{}, slow: map[string]bool{}}
}

// An observer is a served observer.
type observer struct {
	*Server
	from   string
	conn   net.Conn
	slots  chan struct{}      // slots of running queries
	active [askReach + 1]bool // by kind: a request is running; guarded by Server.mu
}

// Serve serves a connection of an observer, and returns when that is closed. from is the
// authenticated name. A new connection of the observer closes the previous one. A second process
// with the same name is refused: the two would close each other's connections forever.
func (s *Server) Serve(from string, g *line.Greeting) {
	defer g.Conn.Close()
	p := wire.Read(g.Body)
	process := p.Fixed64()
	if !p.End() {
		s.disconnected(from, line.ErrMalformed)
		return
	}
	if err := s.register(from, process, g.Conn); err != nil {
		g.Refuse(err)
		return
	}
	defer s.unregister(from, g.Conn)
	if err := g.Take(nil); err != nil {
		return
	}
	x := &observer{Server: s, from: from, conn: g.Conn, slots: make(chan struct{}, maxRunning)}
	session := newSession(g.Conn, s.silence, x.answer)
	over := make(chan struct{})
	go func() {
		select {
		case <-s.host.Dead():
			g.Conn.Close()
		case <-over:
		}
	}()
	err := session.Run()
	close(over)
	if _, long := errors.AsType[line.LongMessage](err); long || errors.Is(err, line.ErrMalformed) {
		s.disconnected(from, err)
		return
	}
	s.log.Debug("the connection of an observer has ended", "observer", from, "error", err)
}

// disconnected logs that an observer was disconnected for a malformed message.
func (s *Server) disconnected(observer string, err error) {
	s.refused.Warn(s.log, "an observer was disconnected", observer, err, "observer", observer)
}

// register registers the newest connection of an observer, and closes the previous one. Another
// process with the name is refused.
func (s *Server) register(from string, process uint64, conn net.Conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.controls[from]
	switch {
	case at == nil:
		at = &control{process: process}
		s.controls[from] = at
	case at.process != process:
		err := fmt.Errorf("another process is observer %s: give each a name and a certificate of "+
			"its own", from)
		if !at.logged {
			at.logged = true
			s.log.Warn("an observer is refused: " + err.Error())
		}
		return err
	default:
		go at.conn.Close() // a TLS close may wait for a peer that does not read
	}
	at.conn = conn
	return nil
}

func (s *Server) unregister(from string, conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.controls[from]; at != nil && at.conn == conn { // else already replaced
		delete(s.controls, from)
	}
}

// answer answers a request of the observer.
func (x *observer) answer(q *line.Question) (last []byte, err error) {
	switch {
	case q.Kind == askRead:
		return x.read(q)
	case q.Kind > askRead:
		return x.rows(q)
	}
	if !x.claim(q.Kind) {
		return nil, fmt.Errorf("%w: two requests of kind %d", line.ErrMalformed, q.Kind)
	}
	defer x.release(q.Kind)
	switch p := wire.Read(q.Body); {
	case q.Kind == askFeed:
		return nil, x.feed(q, &p)
	case q.Kind == askControl && p.End():
		return nil, x.control(q)
	case q.Kind == askReach && p.End():
		ctx, cancel := context.WithTimeout(q.Ctx, x.silence)
		defer cancel()
		seq, err := x.store.Reach(ctx)
		return binary.AppendUvarint(nil, seq), err
	}
	return nil, line.ErrMalformed
}

// read answers a client's signed read, a page at a time.
func (x *observer) read(q *line.Question) (last []byte, err error) {
	last, err = x.host.Answer(q.Body)
	for ; err == nil && len(last) > pageBytes; last = last[pageBytes:] {
		err = q.Send(last[:pageBytes])
	}
	return last, err
}

// claim reports whether a request of a kind is the only one.
func (x *observer) claim(kind byte) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	first := !x.active[kind]
	x.active[kind] = true
	return first
}

func (x *observer) release(kind byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.active[kind] = false
}

// statusInterval is the interval at which a member checks for a changed status.
const statusInterval = 20 * time.Millisecond

// control sends changes of the status, until the connection is closed.
func (x *observer) control(q *line.Question) error {
	check := time.NewTicker(statusInterval)
	defer check.Stop()
	var last []byte
	var sent *market
	for {
		now := x.status()
		page := wire.AppendValue(nil, &now)
		m := market{}
		m.Next, m.Current = x.store.Market()
		changed := !bytes.Equal(page, last)
		last = page
		if sent == nil || !bytes.Equal(m.Next, sent.Next) ||
			!bytes.Equal(m.Current, sent.Current) {
			sent, changed = &m, true
			page = wire.AppendValue(page, &m)
		}
		if changed {
			if err := q.Send(page); err != nil {
				return err
			}
		}
		select {
		case <-check.C:
		case <-q.Ctx.Done():
			return nil
		}
	}
}

// status returns the member's status.
func (x *observer) status() status {
	at := x.store.Standing()
	s := status{x.host.Watermark(), persistence.Standing{Leader: at.Leader, Term: at.Term,
		Format: at.Format}}
	for _, p := range at.Peers {
		s.Peers = append(s.Peers, persistence.Peer{Name: p.Name, Address: p.Address, Role: p.Role})
	}
	return s
}
