package link

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"
)

// A Peer is another node.
type Peer struct {
	ID      uint64
	Name    string
	Address string
}

// Options of Open.
type Options struct {
	Cluster string // at most 63 characters of a-z, 0-9 and '-', like Name
	Name    string
	Address string // to listen on, unless Listener is set
	Peers   []Peer
	// Credentials are nil if all addresses are of the loopback.
	Credentials *Credentials
	// Receive takes a frame, which is its own from then on, from a peer. It is called by several
	// goroutines.
	Receive func(from uint64, frame []byte)
	Logger  *slog.Logger
	// Listener replaces Address, also for the rule about the loopback.
	Listener net.Listener
}

const (
	// maxFrame is how many bytes a frame may have: those of the largest batch, and room around it.
	maxFrame = 66 << 20
	// maxWaiting is how many connections may wait to be known.
	maxWaiting = 32
	// handshake is the longest time until a connection is known.
	handshake = 5 * time.Second
	// maxHello bounds the bytes of the first frame.
	maxHello = 256
	// growBytes is how much of a frame is believed to come at once: memory grows with what does.
	growBytes = 1 << 20
	bufferAll = 64 << 10
	// hello begins the first frame.
	hello = "exLINK1 "
)

// A Link is a node's connections. Its methods may be called from any goroutine.
type Link struct {
	o        Options
	listener net.Listener
	peers    map[string]*peer // by name
	byID     map[uint64]*peer
	waiting  chan struct{}
	ctx      context.Context // ends with Close
	stop     context.CancelFunc
	all      sync.WaitGroup

	mu   sync.Mutex
	open map[net.Conn]bool // guarded by mu
}

// Open listens, and dials the peers until Close.
func Open(o Options) (*Link, error) {
	l := &Link{o: o, listener: o.Listener, peers: map[string]*peer{}, byID: map[uint64]*peer{},
		waiting: make(chan struct{}, maxWaiting), open: map[net.Conn]bool{}}
	if err := l.check(); err != nil {
		return nil, err
	}
	if l.listener == nil {
		var err error
		if l.listener, err = net.Listen("tcp", o.Address); err != nil {
			return nil, err
		}
	}
	l.ctx, l.stop = context.WithCancel(context.Background())
	for _, p := range o.Peers {
		q := &peer{Peer: p, link: l, frames: make(chan []byte, maxQueued)}
		l.peers[p.Name], l.byID[p.ID] = q, q
		l.all.Go(q.run)
	}
	l.all.Go(l.accept)
	return l, nil
}

func (l *Link) check() error {
	names := []string{l.o.Cluster, l.o.Name}
	addresses := []string{l.o.Address}
	if l.listener != nil {
		addresses[0] = l.listener.Addr().String()
	}
	for _, p := range l.o.Peers {
		names, addresses = append(names, p.Name), append(addresses, p.Address)
	}
	for _, n := range names {
		if err := checkLabel(n); err != nil {
			return err
		}
	}
	for _, a := range addresses {
		if l.o.Credentials != nil {
			break
		}
		if err := loopback(a); err != nil {
			return err
		}
	}
	return nil
}

// accept takes connections of peers that dial.
func (l *Link) accept() {
	for {
		conn, err := l.listener.Accept()
		if l.ctx.Err() != nil {
			if err == nil {
				conn.Close()
			}
			return
		}
		if err != nil {
			l.o.Logger.Warn("a connection of a peer failed", "error", err)
			l.pause(leastPause)
			continue
		}
		select {
		case l.waiting <- struct{}{}:
			l.all.Go(func() { l.serve(conn) })
		default:
			conn.Close()
		}
	}
}

// hold notes an open connection, so that Close ends it.
func (l *Link) hold(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[conn] = true
	if l.ctx.Err() != nil {
		conn.Close()
	}
}

func (l *Link) free(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, conn)
	conn.Close()
}

// serve reads the frames of a peer.
func (l *Link) serve(conn net.Conn) {
	l.hold(conn)
	defer func() { l.free(conn) }()
	p, r, err := l.know(conn)
	<-l.waiting
	if err != nil {
		l.o.Logger.Warn("a connection is refused", "from", conn.RemoteAddr().String(), "error", err)
		return
	}
	p.replace(conn)
	for {
		frame, err := readFrame(r, maxFrame)
		if err != nil {
			if l.ctx.Err() == nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				l.o.Logger.Debug("a connection has ended", "node", p.Name, "error", err)
			}
			return
		}
		l.o.Receive(p.ID, frame)
	}
}

// know finds out which peer has dialled.
func (l *Link) know(conn net.Conn) (*peer, io.Reader, error) {
	if err := conn.SetDeadline(time.Now().Add(handshake)); err != nil {
		return nil, nil, err
	}
	var secure *tls.Conn
	if c := l.o.Credentials; c != nil {
		secure = tls.Server(conn, c.config(""))
		if err := secure.HandshakeContext(l.ctx); err != nil {
			return nil, nil, err
		}
		conn = secure
	}
	r := bufio.NewReaderSize(conn, bufferAll)
	b, err := readFrame(r, maxHello)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range l.peers {
		if string(b) != l.hello(p.Name) {
			continue
		}
		if secure != nil && !named(secure, identity(l.o.Cluster, p.Name)) {
			return nil, nil, fmt.Errorf("it says that it is node %s, and its certificate does not",
				p.Name)
		}
		return p, r, conn.SetDeadline(time.Time{})
	}
	return nil, nil, fmt.Errorf("it is not a node of this cluster: %.64q", b)
}

// hello returns the first frame that a node sends.
func (l *Link) hello(name string) string { return hello + identity(l.o.Cluster, name) }

// readFrame reads the length of a frame, and then the frame.
func readFrame(r io.Reader, most uint32) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > most {
		return nil, fmt.Errorf("a frame of %d bytes: at most %d are possible", n, most)
	}
	if n <= growBytes {
		b := make([]byte, n)
		_, err := io.ReadFull(r, b)
		return b, err
	}
	var b bytes.Buffer
	b.Grow(growBytes)
	if _, err := io.CopyN(&b, r, int64(n)); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Close ends all connections.
func (l *Link) Close() error {
	l.stop()
	err := l.listener.Close()
	l.mu.Lock()
	for conn := range l.open {
		conn.Close()
	}
	l.mu.Unlock()
	l.all.Wait()
	return err
}
