package replicated

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const (
	// maxSpans bounds a node's connections to another one, as a link does.
	maxSpans = 2 * (1 + 8)
	// spanChunks of spanChunk bytes are in flight in one direction; more wait.
	spanChunks, spanChunk = 64, 4 << 10
)

// A span is a connection that one node has opened to another. Bytes written at one end reach the
// other in order, late, and not while one of the nodes stands still. The span breaks when the link
// is cut, or one of the nodes crashes.
type span struct {
	r      *liveCluster
	ends   [2]*nodeLife // which has dialled, and which has accepted
	ours   [2]net.Conn  // the nodes'
	inner  [2]net.Conn  // the network's sides of the same pipes
	broken chan struct{}
	breaks sync.Once
}

// Dial implements transport.
func (w cable) Dial(ctx context.Context, name string) (net.Conn, error) {
	r, at := w.l.r, slices.Index(nodeNames, name)
	if err := w.l.pause(ctx); err != nil {
		return nil, err
	}
	if at < 0 {
		return nil, errors.New("there is no such node")
	}
	peer := r.nodes[at].life.Load()
	if peer == nil {
		return nil, errors.New("it is down")
	}
	if !peer.awaitMoving(ctx.Done()) {
		return nil, ctx.Err()
	}
	s := r.span(w.l, peer)
	if s == nil {
		return nil, errors.New("it cannot be reached")
	}
	if err := peer.opening.admit(nodeNames[w.l.at]); err != nil {
		s.close()
		return nil, err
	}
	go peer.opening.accept(nodeNames[w.l.at], s.ours[1])
	return s.ours[0], nil
}

// Drop implements transport.
func (w cable) Drop(name string) {
	w.l.r.breakSpans(func(s *span) bool {
		return s.ends[0] == w.l && nodeNames[s.ends[1].at] == name ||
			s.ends[1] == w.l && nodeNames[s.ends[0].at] == name
	})
}

// span opens a connection; nil: the link is cut.
func (r *liveCluster) span(from, to *nodeLife) *span {
	s := &span{r: r, ends: [2]*nodeLife{from, to}, broken: make(chan struct{})}
	for i := range s.ours {
		s.ours[i], s.inner[i] = net.Pipe()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if from.dead.Load() || to.dead.Load() || r.cut[from.at][to.at] || r.cut[to.at][from.at] {
		return nil
	}
	older := slices.DeleteFunc(slices.Clone(r.open),
		func(o *span) bool { return o.ends != s.ends })
	if len(older) >= maxSpans {
		go older[0].close()
	}
	r.open = append(r.open, s)
	for i := range s.ends {
		go s.carry(i)
	}
	return s
}

// carry copies one end's writes to the other.
func (s *span) carry(from int) {
	queue := make(chan []byte, spanChunks)
	go func() {
		defer close(queue)
		for {
			b := make([]byte, spanChunk)
			n, err := s.inner[from].Read(b)
			if err != nil {
				return
			}
			select {
			case queue <- b[:n]:
			case <-s.broken: // writes are lost until the end notices
			}
		}
	}()
	for b := range queue {
		s.r.mu.Lock()
		late := s.r.late
		s.r.mu.Unlock()
		select {
		case <-time.After(s.r.wait(100*time.Microsecond, late)):
		case <-s.broken:
		}
		for _, l := range s.ends {
			l.awaitMoving(s.broken)
		}
		select {
		case <-s.broken:
			return
		default:
		}
		if s.ends[from].dead.Load() {
			return
		}
		if _, err := s.inner[1-from].Write(b); err != nil {
			break
		}
	}
	select {
	case <-s.broken: // each end notices after a delay of its own
	default:
		s.close()
	}
}

// close ends the connection at both ends.
func (s *span) close() { s.end(func(*nodeLife) time.Duration { return 0 }) }

// end ends the connection, at each end after a delay. Bytes in flight are lost.
func (s *span) end(after func(*nodeLife) time.Duration) {
	s.breaks.Do(func() {
		close(s.broken)
		s.r.mu.Lock()
		s.r.open = slices.DeleteFunc(s.r.open, func(o *span) bool { return o == s })
		s.r.mu.Unlock()
		for i, l := range s.ends {
			time.AfterFunc(after(l), func() { s.inner[i].Close() })
		}
	})
}

// breakSpans breaks connections. Each end notices after a delay of its own, a crashed one at once.
func (r *liveCluster) breakSpans(which func(*span) bool) {
	r.mu.Lock()
	list := slices.DeleteFunc(slices.Clone(r.open), func(s *span) bool { return !which(s) })
	r.mu.Unlock()
	for _, s := range list {
		s.end(func(l *nodeLife) time.Duration {
			if l.dead.Load() {
				return 0
			}
			return r.wait(20*time.Millisecond, stallMax)
		})
	}
}

// awaitMoving waits until the node does not stand still. It reports false if done is closed before.
func (l *nodeLife) awaitMoving(done <-chan struct{}) bool {
	l.mu.Lock()
	moves, still := l.moves, l.still
	l.mu.Unlock()
	if !still {
		return true
	}
	select {
	case <-moves:
		return true
	case <-done:
		return false
	}
}

// echoes checks a connection whose other end echoes.
func echoes(conn net.Conn) error {
	text := bytes.Repeat([]byte("text"), 64<<10)
	wrote := make(chan error, 1)
	go func() {
		_, err := conn.Write(text)
		wrote <- err
	}()
	got := make([]byte, len(text))
	_, err := io.ReadFull(conn, got)
	if err == nil && !bytes.Equal(got, text) {
		err = errors.New("another text comes back")
	}
	return errors.Join(err, <-wrote)
}

// The simulated network's connections end as a link's do.
func TestSimulatedConnectionsEndWithTheirLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &liveCluster{T: t, rng: rand.New(rand.NewPCG(1, 5)), late: time.Millisecond}
		t.Cleanup(func() { time.Sleep(2 * stallMax) }) // until each end has noticed
		var a, b nodeLife
		b.at = 1
		dial := func() net.Conn {
			s := r.span(&a, &b)
			go func() {
				defer s.ours[1].Close()
				io.Copy(s.ours[1], s.ours[1]) //nolint:errcheck // the other end checks
			}()
			t.Cleanup(s.close)
			must(t, echoes(s.ours[0]))
			return s.ours[0]
		}
		ended := func(what string, conn net.Conn) {
			t.Helper()
			if _, err := conn.Read(make([]byte, 1)); err == nil {
				t.Errorf("%s: there is an answer", what)
			}
		}
		oldest, conn := dial(), dial()
		for range maxSpans - 1 {
			dial()
		}
		ended("one connection too many", oldest)
		must(t, echoes(conn))

		b.mu.Lock()
		b.still, b.moves = true, make(chan struct{})
		b.mu.Unlock()
		echoed := make(chan error, 1)
		go func() { echoed <- echoes(conn) }()
		time.Sleep(10 * time.Second) // of the bubble
		if len(echoed) > 0 {
			t.Fatal("a node that stands still answers:", <-echoed)
		}
		b.mu.Lock()
		b.still = false
		close(b.moves)
		b.mu.Unlock()
		must(t, <-echoed)

		r.cutOffWay(&clusterNode{at: 1}, 1)
		ended("a cut", conn)
		if r.span(&a, &b) != nil {
			t.Error("a node is reached that is cut off")
		}
		r.heal()
		conn = dial()
		b.dead.Store(true)
		r.breakSpans(func(s *span) bool { return s.ends[1] == &b })
		ended("a crash", conn)
		if r.span(&a, &b) != nil {
			t.Error("a node is reached that is down")
		}
	})
}
