package link

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"exchange/persistence"
	"exchange/persistence/line"
)

// A Peer is another node.
type Peer struct {
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
	// Receive takes a frame, which is its own from then on, from the peer with that name. It is
	// called by several goroutines.
	Receive func(from string, frame []byte)
	// Copy writes what a peer asks for with Fetch. One call is made at a time. The peer is told of
	// its error. nil: there is none.
	Copy func(ctx context.Context, to string, q Want, w io.Writer) error
	// Accept takes a connection that a peer has opened with Dial. It is called on the connection's
	// own goroutine, and may return before the connection ends: Accept, or what it hands it to,
	// closes it. Close waits for Accept. nil: such connections are refused.
	Accept func(from string, conn net.Conn)
	// Admit returns why a peer's connection is not to be taken, which the peer is told; nil: it is.
	// It is called before Accept. nil: all are.
	Admit func(from string) error
	// AcceptObserver and AdmitObserver are Accept and Admit for observers. An observer is no peer,
	// and may have the name of one.
	AcceptObserver func(from string, conn net.Conn)
	AdmitObserver  func(from string) error
	// Observes: this process is an observer with that name. It does not listen, takes and sends no
	// frames, and opens connections with Dial alone. Address, Listener, Receive, Copy and Accept
	// have no meaning.
	Observes bool
	Logger   *slog.Logger
	// Listener replaces Address, also for the rule about the loopback.
	Listener net.Listener
	// Dial opens a connection to a peer's address; nil: over TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	within time.Duration // until a connection is known; 0: handshake
	frame  time.Duration // until a frame that has begun is there; 0: frameWithin
}

const (
	// maxFrame is how many bytes a frame may have: those of the largest batch, and room around it.
	maxFrame = 66 << 20
	// handshake is the longest time until a connection is known.
	handshake = 5 * time.Second
	// frameWithin is the longest time that a frame takes to come. Its sender has writeWithin.
	frameWithin = 2 * writeWithin
	// maxHello bounds the bytes of the first frame.
	maxHello  = 256
	bufferAll = 64 << 10
	// hello begins the first frame.
	hello = "exLINK1 "
)

// A Link is a node's connections. Its methods may be called from any goroutine.
type Link struct {
	o        Options
	listener net.Listener
	arriving arriving
	refused  persistence.Seldom
	copying  chan struct{}   // held by the one copy that is written
	ctx      context.Context // ends with Close
	stop     context.CancelFunc
	all      sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]bool // below TLS; guarded by mu
	peers  map[string]*peer  // by name; guarded by mu
	guests map[string]*peer  // observers that have connections, by name; guarded by mu
}

// Open listens, and dials the peers until Close.
func Open(o Options) (*Link, error) {
	o.within, o.frame = cmp.Or(o.within, handshake), cmp.Or(o.frame, frameWithin)
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: handshake}).DialContext
	}
	l := &Link{o: o, listener: o.Listener, peers: map[string]*peer{}, guests: map[string]*peer{},
		copying: make(chan struct{}, 1), open: map[net.Conn]bool{}}
	if err := errors.Join(checkLabel(o.Cluster), checkLabel(o.Name),
		l.check(o.Peers...)); err != nil {
		return nil, err
	}
	l.ctx, l.stop = context.WithCancel(context.Background())
	if o.Observes {
		l.listener = nil
		return l, l.Set(o.Peers)
	}
	if err := l.listen(); err != nil {
		return nil, err
	}
	if err := l.Set(o.Peers); err != nil {
		return nil, errors.Join(err, l.listener.Close())
	}
	l.all.Go(l.accept)
	return l, nil
}

// listen begins to listen, unless there is a listener.
func (l *Link) listen() (err error) {
	own := l.o.Address
	if l.listener != nil {
		own = l.listener.Addr().String()
	}
	if err := l.check(Peer{l.o.Name, own}); err != nil {
		return err
	}
	if l.listener == nil {
		l.listener, err = net.Listen("tcp", l.o.Address)
	}
	return err
}

// Check refuses a peer that Set would refuse.
func (l *Link) Check(p Peer) error { return l.check(p) }

func (l *Link) check(peers ...Peer) error {
	for _, p := range peers {
		if err := checkLabel(p.Name); err != nil {
			return err
		}
		if l.o.Credentials != nil {
			continue
		}
		if err := loopback(p.Address); err != nil {
			return err
		}
	}
	return nil
}

// Set replaces the peers. The connections of one that is none any more end, and so do those of one
// whose address is another now, which is dialled anew.
func (l *Link) Set(peers []Peer) error {
	if err := l.check(peers...); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return nil
	}
	for name, p := range l.peers {
		if !slices.Contains(peers, p.Peer) {
			p.end()
			delete(l.peers, name)
		}
	}
	for _, p := range peers {
		if l.peers[p.Name] == nil {
			q := &peer{Peer: p, link: l, frames: make(chan []byte, maxQueued)}
			q.ctx, q.stop = context.WithCancel(l.ctx)
			l.peers[p.Name] = q
			if !l.o.Observes {
				l.all.Go(q.run)
			}
		}
	}
	return nil
}

// peer returns one of the peers, nil: it is none.
func (l *Link) peer(name string) *peer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.peers[name]
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
			l.refused.Warn(l.o.Logger, "a connection of a peer failed", "", err)
			pause(l.ctx, leastPause)
			continue
		}
		l.arriving.enter(conn)
		l.all.Go(func() { l.serve(conn) })
	}
}

// hold notes an open connection, so that Close ends it.
func (l *Link) hold(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[socket(conn)] = true
	if l.ctx.Err() != nil {
		socket(conn).Close()
	}
}

// free ends a connection and forgets it. It does so without a word of TLS, which a peer that takes
// nothing would hold up for seconds: everything waits for mu.
func (l *Link) free(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, socket(conn))
	socket(conn).Close()
}

// serve reads the frames of a peer.
func (l *Link) serve(conn net.Conn) {
	l.hold(conn)
	p, k, err := l.know(conn)
	if !l.arriving.leave(conn) && err != nil {
		err = errCrowd
	}
	if err == nil && k.kind != hello {
		l.take(&call{Conn: k.conn, r: k.r, peer: p}, k.kind)
		return
	}
	defer l.free(conn)
	if err != nil {
		l.refused.Warn(l.o.Logger, "a connection is refused", hostOf(conn), err, "from",
			conn.RemoteAddr().String())
		return
	}
	p.replace(conn)
	for {
		frame, err := l.next(k)
		if err != nil {
			l.endedBy(p, err)
			return
		}
		l.o.Receive(p.Name, frame)
	}
}

// next waits for a frame. Once it has begun, it must come.
func (l *Link) next(k *known) ([]byte, error) {
	if _, err := k.r.Peek(1); err != nil {
		return nil, err
	}
	if err := k.conn.SetReadDeadline(time.Now().Add(l.o.frame)); err != nil {
		return nil, err
	}
	frame, err := line.ReadFrame(k.r, maxFrame)
	if err != nil {
		return nil, err
	}
	return frame, k.conn.SetReadDeadline(time.Time{})
}

// endedBy logs why the frames of a peer have ended.
func (l *Link) endedBy(p *peer, err error) {
	_, long := errors.AsType[line.LongMessage](err)
	switch {
	case l.ctx.Err() != nil || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed):
	case long || errors.Is(err, os.ErrDeadlineExceeded):
		l.refused.Warn(l.o.Logger, "the connection of a node was ended", p.Name, err, "node",
			p.Name)
	default:
		l.o.Logger.Debug("a connection has ended", "node", p.Name, "error", err)
	}
}

// known is a connection of a peer that is known.
type known struct {
	conn net.Conn
	r    *bufio.Reader // conn, behind its first frame
	kind string        // hello, copyHello, callHello or observeHello
}

// know finds out which peer has dialled.
func (l *Link) know(conn net.Conn) (*peer, *known, error) {
	if err := conn.SetDeadline(time.Now().Add(l.o.within)); err != nil {
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
	b, err := line.ReadFrame(r, maxHello)
	if err != nil {
		return nil, nil, err
	}
	name, k, err := l.greeted(string(b))
	if err != nil {
		return nil, nil, err
	}
	role := k.role()
	if secure != nil && !named(secure, identityOf(role, l.o.Cluster, name)) {
		return nil, nil, fmt.Errorf("its certificate is not that of %s %s, which it says it is",
			role, name)
	}
	k.conn, k.r = conn, r
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, nil, err
	}
	if role == roleObserver {
		p, err := l.guest(name)
		return p, k, err
	}
	p := l.peer(name)
	if p == nil {
		return nil, nil, fmt.Errorf("node %s is not a node of this cluster", name)
	}
	return p, k, nil
}

// role returns what the other end has to prove.
func (k *known) role() string {
	if k.kind == observeHello {
		return roleObserver
	}
	return roleVoter
}

// greeted returns the name in a first frame, and what else it says of its connection.
func (l *Link) greeted(first string) (name string, k *known, err error) {
	k = &known{}
	var ok bool
	for _, k.kind = range []string{hello, copyHello, callHello, observeHello} {
		if name, ok = strings.CutPrefix(first, k.kind); ok {
			break
		}
	}
	if ok {
		name, ok = strings.CutSuffix(name, identityOf(k.role(), l.o.Cluster, ""))
	}
	if ok && k.kind == observeHello { // no configuration has checked it
		ok = checkLabel(name) == nil
	}
	if !ok {
		return "", nil, fmt.Errorf("it is not a node of this cluster: %.64q", first)
	}
	return name, k, nil
}

// identified returns a first frame of this node.
func (l *Link) identified(kind string) string { return kind + identity(l.o.Cluster, l.o.Name) }

// callsAs returns the first frame of a connection that this process opens.
func (l *Link) callsAs() string {
	if l.o.Observes {
		return observeHello + identityOf(roleObserver, l.o.Cluster, l.o.Name)
	}
	return l.identified(callHello)
}

// Close ends all connections.
func (l *Link) Close() error {
	l.stop()
	var err error
	if l.listener != nil {
		err = l.listener.Close()
	}
	l.mu.Lock()
	for conn := range l.open {
		conn.Close()
	}
	l.mu.Unlock()
	l.all.Wait()
	return err
}
