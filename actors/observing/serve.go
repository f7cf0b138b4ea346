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

// A Host is the member, as its observers need it. Its methods may be called from any goroutine.
type Host interface {
	// Watermark returns the sequence up to which the member's store has the rows.
	Watermark() uint64
	// Scan begins a query of the rows, which takes turns with the long ones of the member's own
	// clients. ctx ends it.
	Scan(ctx context.Context) Scan
	// Dead is closed when the member shows nothing any more.
	Dead() <-chan struct{}
}

// A Scan is a query that may become a long one. One goroutine uses it.
type Scan interface {
	TakeTurn() error // waits for the next turn: see persistence.WithPace
	ReleaseTurn()    // gives the turn back until the next GoOn
	End()
}

// A Server is a member's side of all its observers.
type Server struct {
	store    persistence.Replica
	host     Host
	log      *slog.Logger
	refused  persistence.Seldom
	silence  time.Duration
	patience imagePatience

	mu       sync.Mutex
	controls map[string]*control // by name; guarded by mu
	transfer *imageTransfer      // the only one; nil: none; guarded by mu
	slow     map[string]bool     // observers that lost their image for slowness; guarded by mu
}

// A seat is what an observer has here. While it has a connection, no other process gets one by its
// name.
type control struct {
	process uint64
	conn    net.Conn // the newest
	logged  bool     // that there is another process
}

// NewServer makes the server of a member. silence is after how long an observer that says or takes
// nothing is disconnected; 0: as usual.
func NewServer(store persistence.Replica, host Host, log *slog.Logger,
	silence time.Duration) *Server {
	if silence == 0 {
		silence = usualSilence
	}
	return &Server{store: store, host: host, log: log, silence: silence, patience: usualPatience,
		controls: map[string]*control{}, slow: map[string]bool{}}
}

// An observer is an observer that is served.
type observer struct {
	*Server
	from   string
	conn   net.Conn
	slots  chan struct{}      // held by queries that are under way
	active [askReach + 1]bool // a question of that kind is; guarded by Server.mu
}

// Serve takes a connection of an observer, and returns when that is over. from is the name that the
// observer has proved. Another connection of the observer ends the one before. A second process
// with the same name is refused: the two would end each other's connections for ever.
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
	s.log.Debug("the connection of an observer is over", "observer", from, "error", err)
}

// disconnected logs that an observer was disconnected for what it has said.
func (s *Server) disconnected(observer string, err error) {
	s.refused.Warn(s.log, "an observer was disconnected", observer, err, "observer", observer)
}

// register notes the newest connection of an observer, and ends the one before. Another process with
// the name is refused.
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
		go at.conn.Close() // TLS says so, and may wait for a peer that takes nothing
	}
	at.conn = conn
	return nil
}

func (s *Server) unregister(from string, conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.controls[from]; at != nil && at.conn == conn { // otherwise a newer one has its place
		delete(s.controls, from)
	}
}

// answer answers a question of the observer.
func (x *observer) answer(q *line.Question) (last []byte, err error) {
	if q.Kind > askReach {
		return x.rows(q)
	}
	if !x.claim(q.Kind) {
		return nil, fmt.Errorf("%w: two questions of kind %d", line.ErrMalformed, q.Kind)
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

// claim reports whether a question of a kind is the only one.
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

// statusInterval is how often a member looks whether there is something to tell.
const statusInterval = 20 * time.Millisecond

// control tells what has changed, until the connection is over.
func (x *observer) control(q *line.Question) error {
	look := time.NewTicker(statusInterval)
	defer look.Stop()
	var last []byte
	var shown *market
	for {
		now := x.status()
		page := wire.AppendValue(nil, &now)
		m := market{}
		m.Next, m.Current = x.store.Market()
		changed := !bytes.Equal(page, last)
		last = page
		if shown == nil || !bytes.Equal(m.Next, shown.Next) ||
			!bytes.Equal(m.Current, shown.Current) {
			shown, changed = &m, true
			page = wire.AppendValue(page, &m)
		}
		if changed {
			if err := q.Send(page); err != nil {
				return err
			}
		}
		select {
		case <-look.C:
		case <-q.Ctx.Done():
			return nil
		}
	}
}

// status is what the member tells of itself.
func (x *observer) status() status {
	at := x.store.Standing()
	s := status{x.host.Watermark(), persistence.Standing{Leader: at.Leader, Term: at.Term,
		Format: at.Format}}
	for _, p := range at.Peers {
		s.Peers = append(s.Peers, persistence.Peer{Name: p.Name, Address: p.Address, Role: p.Role})
	}
	return s
}
