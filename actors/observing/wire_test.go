package observing

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"exchange/persistence"
	"exchange/persistence/line"
	"exchange/persistence/memory"
	"exchange/prove/memnet"
)

// A member is a store followed by observers.
type member struct {
	persistence.Store
	persistence.Membership
	journal // of the feed; the store's own is the suite's

	mu     sync.Mutex
	reach  func(ctx context.Context) (uint64, error)
	leader string
	leads  bool
	asks   chan struct{} // receives one per call of Follow; nil: none
}

// A journal contains the applied batches of a member.
type journal struct {
	lock    sync.Mutex
	image   []byte // nil: there is none
	imageAt uint64
	batches []batch
	grown   chan struct{} // closed at the next batch
}

func (j *journal) Known() (uint64, bool) {
	j.lock.Lock()
	defer j.lock.Unlock()
	if n := len(j.batches); n > 0 {
		return j.batches[n-1].next, true
	}
	return j.imageAt, true
}

// append adds a batch.
func (j *journal) append(b batch) {
	j.lock.Lock()
	defer j.lock.Unlock()
	j.batches = append(j.batches, b)
	if j.grown != nil {
		close(j.grown)
		j.grown = nil
	}
}

func (m *member) Read(_ context.Context, after uint64,
	fn func(prev, next uint64, batch []byte) error) error {
	m.lock.Lock()
	list := m.batches
	m.lock.Unlock()
	if len(list) > 0 && list[0].prev > after {
		return persistence.ErrCorrupt
	}
	for _, b := range list {
		if b.next > after {
			if err := fn(b.prev, b.next, b.data); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *member) Follow(ctx context.Context, after uint64) (bool, error) {
	m.mu.Lock()
	leads, asks := m.leads, m.asks
	m.mu.Unlock()
	if asks != nil {
		asks <- struct{}{}
	}
	if leads {
		return true, nil
	}
	for {
		if end, _ := m.Known(); end > after {
			return false, nil
		}
		m.lock.Lock()
		if m.grown == nil {
			m.grown = make(chan struct{})
		}
		grown := m.grown
		m.lock.Unlock()
		select {
		case <-grown:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

func (m *member) Reach(ctx context.Context) (uint64, error) {
	m.mu.Lock()
	reach := m.reach
	m.mu.Unlock()
	if reach != nil {
		return reach(ctx)
	}
	end, _ := m.Known()
	return end, nil
}

func (m *member) Leads() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leads
}

func (m *member) Standing() persistence.Standing {
	m.mu.Lock()
	defer m.mu.Unlock()
	return persistence.Standing{Leader: m.leader}
}

func (m *member) Own() persistence.Token                        { return "" }
func (m *member) Hold(uint64)                                   {}
func (m *member) Unfit(error)                                   {}
func (m *member) Transfer(context.Context, string) error        { return nil }
func (m *member) Accept(func(string, net.Conn))                 {}
func (m *member) AcceptObservers(func(string, net.Conn))        {}
func (m *member) Market() ([]byte, []byte)                      { return []byte("next"), nil }
func (m *member) SetMarket(context.Context, []byte, bool) error { return nil }
func (m *member) Dial(context.Context, string) (net.Conn, error) {
	return nil, errors.New("unused")
}
func (m *member) Confirm(context.Context, persistence.Token) (uint64, error) { return 0, nil }

// host is the Host of a member.
type host struct {
	m    *member
	dead chan struct{}
	scan func(ctx context.Context) Scan // nil: all have turns

	mu        sync.Mutex
	watermark *uint64 // nil: the store's
}

func (h *host) Watermark() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watermark != nil {
		return *h.watermark
	}
	n, _ := h.m.Watermark(context.Background()) //nolint:errcheck // then it is 0
	return n
}

func (h *host) Scan(ctx context.Context) Scan {
	if h.scan != nil {
		return h.scan(ctx)
	}
	return ofCtx{ctx}
}

// Answer answers with the read, several pages long.
func (h *host) Answer(read []byte) ([]byte, error) { return bytes.Repeat(read, 3*pageBytes), nil }

// ofCtx grants all turns.
type ofCtx struct{ context.Context }

func (c ofCtx) TakeTurn() error { return c.Err() }
func (ofCtx) ReleaseTurn()      {}
func (ofCtx) End()              {}

func (h *host) Dead() <-chan struct{} { return h.dead }

// A realm holds members by name, and dials them.
type realm struct {
	t       *testing.T
	mu      sync.Mutex
	members map[string]*Server // guarded by mu
	conns   []net.Conn         // members' ends; guarded by mu
	net     memnet.Network
}

func newRealm(t *testing.T) *realm { return &realm{t: t, members: map[string]*Server{}} }

const silence = usualSilence

// add adds a member on an empty store, which is not that of the feed.
func (r *realm) add(name string, store persistence.Store) (*member, *host) {
	if store == nil {
		store = memory.Open(memory.NewDisk(), persistence.Retention{})
		r.t.Cleanup(func() { store.Close() })
	}
	m := &member{Store: store}
	h := &host{m: m, dead: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members[name] = NewServer(feedOf{m}, h, slog.New(slog.DiscardHandler), silence)
	return m, h
}

// feedOf is a member whose image is that of its feed.
type feedOf struct{ *member }

func (f feedOf) LoadSnapshot(context.Context, int) (uint64, io.ReadCloser, error) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.image == nil {
		return 0, nil, persistence.ErrNoSnapshot
	}
	return f.imageAt, io.NopCloser(bytes.NewReader(f.image)), nil
}

// remove ends a member.
func (r *realm) remove(name string) {
	r.mu.Lock()
	delete(r.members, name)
	conns := r.conns
	r.conns = nil
	r.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
}

// meets serves a connection of an observer.
func (s *Server) meets(from string, conn net.Conn) {
	g, err := line.Meet(conn, silence, map[byte]uint64{Call: Version})
	if err != nil {
		conn.Close()
		return
	}
	s.Serve(from, g)
}

func (r *realm) dial(_ context.Context, node string) (net.Conn, error) {
	r.mu.Lock()
	s := r.members[node]
	r.mu.Unlock()
	if s == nil {
		return nil, errors.New("it is down")
	}
	conn, other := r.net.Pipe()
	r.mu.Lock()
	r.conns = append(r.conns, other)
	r.mu.Unlock()
	go s.meets("o1", other)
	return conn, nil
}

// open has an observer follow the members.
func (r *realm) open(names ...string) *Store {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := Open(ctx, Options{Name: "o1", Nodes: names, Dial: r.dial,
		Log: slog.New(slog.DiscardHandler), Silence: silence})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { s.Close() })
	return s
}
