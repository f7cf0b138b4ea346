package link

import (
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
	// Receive takes a frame, which it then owns, from the peer with that name. Several goroutines
	// call it.
	Receive func(from string, frame []byte)
	// Copy writes the copy that a peer requests with Fetch. One call is made at a time. The peer
	// receives its error. nil: no copies.
	Copy func(ctx context.Context, to string, q Want, w io.Writer) error
	// Accept takes a connection that a peer has opened with Dial. It is called on the connection's
	// own goroutine, and may return before the connection ends: Accept, or its delegate, closes it.
	// Close waits for Accept. nil: such connections are refused.
	Accept func(from string, conn net.Conn)
	// Admit returns why a peer's connection is refused, which the peer receives; nil: it is
	// accepted. It is called before Accept. nil: all are.
	Admit func(from string) error
	// AcceptObserver and AdmitObserver are Accept and Admit for observers. An observer is no peer,
	// and may have the name of one.
	AcceptObserver func(from string, conn net.Conn)
	AdmitObserver  func(from string) error
	// Observes: this process is an observer with that name. It does not listen, receives and sends
	// no frames, and only opens connections with Dial. Address, Listener, Receive, Copy and Accept
	// are ignored.
	Observes bool
	Logger   *slog.Logger
	// Listener replaces Address, also for the rule about the loopback.
	Listener net.Listener
	// Dial opens a connection to a peer's address; nil: over TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	within time.Duration // until a connection is identified; 0: handshake
}

const (
	// maxFrame is the largest frame in bytes: the largest batch, and room around it.
	maxFrame = 66 << 20
	// handshake is the longest time until a connection is identified.
	handshake = 5 * time.Second
)

// Kinds of connections. The greeting has the DNS name of the side that has dialled.
const (
	kindFrames   = 'f' // of frames
	kindCopy     = 'c' // on which the peer requests a copy, and nothing else
	kindCall     = 'd' // that a peer has opened with Dial: its content is not the link's
	kindObserver = 'o' // that an observer has opened with Dial
)

// version is that of the links' protocol.
const version = 2

var versions = map[byte]uint64{kindFrames: version, kindCopy: version, kindCall: version,
	kindObserver: version}

// A Link is a node's connections. Its methods may be called from any goroutine.
type Link struct {
	o        Options
	listener net.Listener
	arriving arriving
	refused  persistence.Seldom
	copySlot chan struct{}   // held by the one copy in progress
	ctx      context.Context // ends with Close
	stop     context.CancelFunc
	all      sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]bool // below TLS; guarded by mu
	peers  map[string]*peer  // by name; guarded by mu
	guests map[string]*peer  // observers with connections, by name; guarded by mu
}

// Open listens, and dials the peers until Close.
func Open(o Options) (*Link, error) {
	o.within = cmp.Or(o.within, handshake)
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: handshake}).DialContext
	}
	l := &Link{o: o, listener: o.Listener, peers: map[string]*peer{}, guests: map[string]*peer{},
		copySlot: make(chan struct{}, 1), open: map[net.Conn]bool{}}
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

// Set replaces the peers. The connections of a removed peer are closed, and so are those of one
// whose address has changed, which is dialled again.
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
			q := &peer{Peer: p, link: l}
			q.ctx, q.stop = context.WithCancel(l.ctx)
			l.peers[p.Name] = q
			if !l.o.Observes {
				l.all.Go(q.run)
			}
		}
	}
	return nil
}

// peer returns one of the peers, nil: there is none.
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

// hold registers an open connection, so that Close ends it.
func (l *Link) hold(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[socket(conn)] = true
	if l.ctx.Err() != nil {
		socket(conn).Close()
	}
}

// free closes and removes a connection. It does so without a TLS close, which a peer that does not
// read would delay for seconds: everything waits for mu.
func (l *Link) free(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, socket(conn))
	socket(conn).Close()
}

// serve takes a connection of a peer.
func (l *Link) serve(conn net.Conn) {
	l.hold(conn)
	p, g, err := l.identify(conn)
	if !l.arriving.leave(conn) && err != nil {
		err = errCrowd
	}
	switch {
	case err != nil:
		l.refused.Warn(l.o.Logger, "a connection is refused", hostOf(conn), err, "from",
			conn.RemoteAddr().String())
	case g.Kind != kindFrames:
		l.take(&call{Conn: g.Conn, peer: p}, g)
		return
	case g.Take(nil) == nil:
		p.replace(conn)
		l.endedBy(p, l.frames(g.Conn).Run(func(frame []byte) error {
			l.o.Receive(p.Name, frame)
			return nil
		}))
	}
	l.free(conn)
}

// frames makes a line for the frames of a connection.
func (l *Link) frames(conn net.Conn) *line.Line {
	return line.New(conn, line.Options{Longest: maxFrame, Takes: maxFrame, Own: true,
		Waiting: maxQueuedBytes, Beat: writeWithin / 4, Silence: writeWithin})
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

// identify reads which peer has dialled, and for which kind of connection.
func (l *Link) identify(conn net.Conn) (*peer, *line.Greeting, error) {
	var secure *tls.Conn
	end := time.Now().Add(l.o.within)
	if c := l.o.Credentials; c != nil {
		if err := conn.SetDeadline(end); err != nil {
			return nil, nil, err
		}
		secure = tls.Server(conn, c.config(""))
		if err := secure.HandshakeContext(l.ctx); err != nil {
			return nil, nil, err
		}
		conn = secure
	}
	g, err := line.Meet(conn, time.Until(end), versions)
	if err != nil {
		return nil, nil, err
	}
	role := roleVoter
	if g.Kind == kindObserver {
		role = roleObserver
	}
	name, ok := strings.CutSuffix(string(g.Body), identityOf(role, l.o.Cluster, ""))
	if !ok || checkLabel(name) != nil { // an observer's name is in no configuration
		return nil, nil, fmt.Errorf("it is not a node of this cluster: %.64q", g.Body)
	}
	if secure != nil && !named(secure, identityOf(role, l.o.Cluster, name)) {
		return nil, nil, fmt.Errorf("its certificate is not that of %s %s, which it says it is",
			role, name)
	}
	if role == roleObserver {
		p, err := l.guest(name)
		return p, g, err
	}
	p := l.peer(name)
	if p == nil {
		return nil, nil, fmt.Errorf("node %s is not a node of this cluster", name)
	}
	return p, g, nil
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
