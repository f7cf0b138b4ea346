package observing

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"exchange/actors/duplex"
	"exchange/core/wire"
	"exchange/persistence"
)

// A Host is the member, as its observers need it. Its methods may be called from any goroutine.
type Host interface {
	// Watermark returns the sequence up to which the member's store has the rows.
	Watermark() uint64
	// Scan begins a query of the rows, which takes turns with the long ones of the member's own
	// clients. ctx ends it.
	Scan(ctx context.Context) Scan
	// Forward takes a connection for commands, and returns when that is over.
	Forward(from string, conn net.Conn)
	// Dead is closed when the member shows nothing any more.
	Dead() <-chan struct{}
}

// A Scan is a query that may become a long one. One goroutine uses it.
type Scan interface {
	GoOn() error // waits for the next turn: see persistence.WithPace
	Rest()       // gives the turn back until the next GoOn
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

	mu      sync.Mutex
	seats   map[string]*seat // by name; guarded by mu
	imaging *imaging         // the only one; nil: none; guarded by mu
	slow    map[string]bool  // observers that lost their image for slowness; guarded by mu
}

// A seat is what an observer has here. While it has a lane, no other process gets one by its name.
type seat struct {
	process uint64
	lanes   map[byte]net.Conn // the newest of each
	told    bool              // that there is another process
}

// NewServer makes the server of a member. silence is after how long an observer that says or takes
// nothing is disconnected; 0: as usual.
func NewServer(store persistence.Replica, host Host, log *slog.Logger,
	silence time.Duration) *Server {
	if silence == 0 {
		silence = usualSilence
	}
	return &Server{store: store, host: host, log: log, silence: silence, patience: usualPatience,
		seats: map[string]*seat{}, slow: map[string]bool{}}
}

// Serve takes a connection of an observer, and returns when that is over. from is the name that the
// observer has proved. A lane that an observer opens anew ends the one before, but for commands. A
// second process with the same name is refused: the two would end each other's lanes for ever.
func (s *Server) Serve(from string, conn net.Conn) {
	defer conn.Close()
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-s.host.Dead():
			conn.Close()
		case <-over:
		}
	}()
	var head [helloBytes]byte
	if _, err := io.ReadFull(patient{conn, s.silence}, head[:]); err != nil {
		return
	}
	lane := head[0]
	if err := wire.Version(uint64(head[1]), version); err != nil {
		err = fmt.Errorf("what observer %s says: %w", from, err)
		s.disconnected(from, err)
		f := &feed{conn: patient{conn, s.silence}}
		f.refuse(refusedBusy, err.Error()) //nolint:errcheck // the connection ends
		return
	}
	if lane < laneFeed || lane > laneCommands {
		s.disconnected(from, fmt.Errorf("%w: lane %d", errSense, lane))
		return
	}
	if lane == laneCommands { // of any process: those of two do not disturb each other
		s.host.Forward(from, conn)
		return
	}
	if !s.begin(from, binary.BigEndian.Uint64(head[2:]), lane, conn) {
		if lane == laneFeed {
			f := &feed{conn: patient{conn, s.silence}}
			f.refuse(refusedTwice, sameName(from)) //nolint:errcheck // the connection ends
		} else if conn.SetReadDeadline(time.Now().Add(s.silence)) == nil {
			io.Copy(io.Discard, conn) //nolint:errcheck // the refusal on the feed is heard first
		}
		return
	}
	defer s.end(from, lane, conn)
	var err error
	switch lane {
	case laneFeed:
		err = s.feed(from, conn)
	case laneTalk:
		err = s.talk(from, conn)
	case laneRows:
		err = s.rows(conn)
	}
	_, long := errors.AsType[duplex.LongMessage](err)
	if long || errors.Is(err, errSense) {
		s.disconnected(from, err)
		return
	}
	s.log.Debug("a connection of an observer is over", "observer", from, "lane", lane,
		"error", err)
}

// disconnected logs that an observer was disconnected for what it has said.
func (s *Server) disconnected(observer string, err error) {
	s.refused.Warn(s.log, "an observer was disconnected", observer, err, "observer", observer)
}

func sameName(observer string) string {
	return fmt.Sprintf("another process is observer %s: give each a name and a certificate of "+
		"its own", observer)
}

// begin notes the newest connection of a lane, and ends the one before. It returns false if another
// process has lanes of an observer with that name.
func (s *Server) begin(from string, process uint64, lane byte, conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.seats[from]
	switch {
	case at == nil:
		at = &seat{process: process, lanes: map[byte]net.Conn{}}
		s.seats[from] = at
	case at.process != process:
		if !at.told {
			at.told = true
			s.log.Warn("an observer is refused: " + sameName(from))
		}
		return false
	}
	if before := at.lanes[lane]; before != nil {
		go before.Close() // TLS says so, and may wait for a peer that takes nothing
	}
	at.lanes[lane] = conn
	return true
}

func (s *Server) end(from string, lane byte, conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.seats[from]
	if at == nil || at.lanes[lane] != conn {
		return // a newer one has taken its place
	}
	if delete(at.lanes, lane); len(at.lanes) == 0 {
		delete(s.seats, from)
	}
	if feed := at.lanes[laneFeed]; feed != nil && lane == laneTalk {
		go feed.Close() // an observer that lives ends all with one; another one may have the name
	}
}

// tellEach is how often a member looks whether there is something to tell.
const tellEach = 20 * time.Millisecond

// A talker talks with one observer.
type talker struct {
	*Server
	from string
	line *duplex.Line
	ctx  context.Context // until the connection is over

	mu      sync.Mutex
	reaches bool // a question is under way; guarded by mu
}

// talk tells an observer what there is to know, and answers its questions.
func (s *Server) talk(from string, conn net.Conn) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	t := &talker{Server: s, from: from, ctx: ctx,
		line: duplex.New(conn, lineOptions(longestTalk, s.silence))}
	told := make(chan struct{})
	go func() {
		defer close(told)
		t.tell()
	}()
	err := t.line.Run(t.receive)
	cancel()
	<-told
	return err
}

// tell tells what has changed, until the connection is over.
func (t *talker) tell() {
	look := time.NewTicker(tellEach)
	defer look.Stop()
	var last []byte
	var shown *market
	for {
		now := t.status()
		if b := appendValue(nil, &now); !bytes.Equal(b, last) {
			last = b
			if t.send(talkStatus, b) != nil {
				return
			}
		}
		next, reigning := t.store.Market()
		if shown == nil || !bytes.Equal(next, shown.next) ||
			!bytes.Equal(reigning, shown.reigning) {
			shown = &market{next, reigning}
			if t.send(talkMarket, appendOptional(appendOptional(nil, next), reigning)) != nil {
				return
			}
		}
		select {
		case <-look.C:
		case <-t.ctx.Done():
			return
		}
	}
}

// send sends a message. If it cannot, the connection ends.
func (t *talker) send(kind byte, message []byte) error {
	err := t.line.Send(func(b []byte) []byte { return append(append(b, kind), message...) })
	if err != nil {
		t.line.Close()
	}
	return err
}

// status is what the member tells of itself.
func (t *talker) status() status {
	at := t.store.Standing()
	s := status{Watermark: t.host.Watermark(), Leader: at.Leader, Term: at.Term, Format: at.Format}
	for _, p := range at.Peers {
		s.Peers = append(s.Peers, peer{p.Name, p.Address, string(p.Role)})
	}
	return s
}

// receive begins what an observer asks for. It does not wait.
func (t *talker) receive(message []byte) error {
	p := parse(message)
	switch p.Byte() {
	case talkReach:
		if p.done() != nil || !t.begins(func() bool {
			first := !t.reaches
			t.reaches = true
			return first
		}) {
			return errSense
		}
		go t.reach()
	default:
		return errSense
	}
	return nil
}

func (t *talker) begins(is func() bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return is()
}

// reach answers the question for the sequence that is reached.
func (t *talker) reach() {
	ctx, cancel := context.WithTimeout(t.ctx, t.silence)
	defer cancel()
	seq, err := t.store.Reach(ctx)
	outcome, why := byte(answerGood), ""
	if err != nil {
		outcome, why = answerFailed, err.Error()
	}
	t.begins(func() bool { t.reaches = false; return true })
	b := binary.AppendUvarint([]byte{outcome}, seq)
	t.send(talkReach, appendText(b, why)) //nolint:errcheck // then the connection ends
}

func appendText(dst []byte, text string) []byte {
	return wire.AppendText(dst, text[:min(len(text), 1024)])
}
