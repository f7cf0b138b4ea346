package replicated

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
	"exchange/persistence/internal/link"
	"exchange/persistence/internal/machine"
	"exchange/persistence/internal/raftlog"
)

// A Node is a member of a cluster.
type Node struct {
	Name    string // 1 to 63 characters of a-z, 0-9 and '-'; it never changes
	Address string // host and port that the other nodes reach it at
}

// Options of Open.
type Options struct {
	// Cluster is the cluster's id, of the same form as a node's name.
	Cluster string
	Name    string // this node's
	Nodes   []Node // all of the cluster's, this one among them
	// Folder is the node's data folder. The log is in its folder raft.
	Folder string
	// Local keeps this node's images, projections and history. The store that Open returns closes
	// it, and so does an Open that fails.
	Local persistence.Store
	// Credentials are nil if all addresses are of the loopback.
	Credentials *Credentials
	// Tick is the time of one tick; 0: 50 ms. A node that has not heard of a leader for 10 to 19
	// ticks begins an election.
	Tick   time.Duration
	Logger *slog.Logger
	// Fatal is called when a sync has failed. It must end the process.
	Fatal func(error)
	// LogMax is how many bytes of the log this node keeps, about, for members that lack them; 0:
	// any number.
	LogMax uint64
	// Market is that of this node's file; nil: it has none. The others hear a digest: that of the
	// applied one if one of the texts is equal.
	Market *OwnMarket
	// Agreed is told of the market part that is applied, at the start and when another one is, by
	// the goroutine of the node; nil: nothing is.
	Agreed func(market []byte)
	// Copies makes and takes copies of the local store; nil: this node does neither.
	Copies Copies
	// Observers are the names of the observers whose connections this node takes.
	Observers []string
	// Listener is where the other nodes reach this one; nil: Open listens at its address.
	Listener net.Listener
	// Dial opens a connection to another node's address; nil: over TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	files vfs.FS // nil: those of the machine
}

const (
	usualTick = 50 * time.Millisecond
	logFolder = "raft"
	// sayTicks is how often a node that waits for others logs so.
	sayTicks = 100
)

// opening is a node on its way into its cluster.
type opening struct {
	Options
	dir     string // of the log
	former  *former
	frames  chan received // that come until there is a store
	refused persistence.Seldom
	store   atomic.Pointer[store]
	link    transport
	ticker  *time.Ticker
	adapt   func(*options) // of simulations: changes what the store is opened with; nil: nothing
}

// A transport takes frames, copies and connections between the nodes: a link.Link, or what a
// simulation has in its place.
type transport interface {
	Send(to string, frame []byte)
	Fetch(ctx context.Context, from string, q link.Want) (io.ReadCloser, error)
	Dial(ctx context.Context, name string) (net.Conn, error)
	Drop(name string)
	Check(p link.Peer) error
	Set(peers []link.Peer) error
	Close() error
}

// opened is a store with its link to the others.
type opened struct {
	*store
	link   transport
	ticker *time.Ticker
}

var _ persistence.Replica = (*opened)(nil)

// Open opens one node's store, and waits until the node may take part in its cluster. A folder
// without a log makes its node wait until all named nodes are there and none of them has begun:
// then they form the cluster. ctx ends the wait.
func Open(ctx context.Context, o Options) (_ persistence.Replica, err error) {
	w := &opening{Options: o, frames: make(chan received, maxFrames)}
	defer func() {
		if err != nil && w.Local != nil {
			err = errors.Join(err, w.Local.Close())
		}
	}()
	peers, err := w.prepare()
	if err != nil {
		return nil, err
	}
	w.link, err = link.Open(link.Options{Cluster: o.Cluster, Name: o.Name, Peers: peers,
		Address: o.Nodes[w.place()].Address, Listener: o.Listener, Dial: o.Dial,
		Credentials: o.Credentials, Receive: w.receive, Copy: w.serve, Admit: w.admit,
		Accept: w.accept, AdmitObserver: w.admitObserver, AcceptObserver: w.acceptObserver,
		Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	w.ticker = time.NewTicker(w.Tick)
	s, err := w.open(ctx)
	if err != nil {
		w.ticker.Stop()
		return nil, errors.Join(err, w.link.Close())
	}
	return &opened{s, w.link, w.ticker}, nil
}

// place returns this node's place in Nodes, -1 if it has none.
func (w *opening) place() int {
	return slices.IndexFunc(w.Nodes, func(n Node) bool { return n.Name == w.Name })
}

// prepare checks the options, and returns the other nodes.
func (w *opening) prepare() (peers []link.Peer, err error) {
	if w.files == nil {
		w.files = vfs.Default
	}
	if w.Tick == 0 {
		w.Tick = usualTick
	}
	if w.Tick < 0 {
		return nil, fmt.Errorf("%w: a tick of %s", persistence.ErrInvalid, w.Tick)
	}
	w.dir = w.files.PathJoin(w.Folder, logFolder)
	var names []string
	for _, n := range w.Nodes {
		names = append(names, n.Name)
	}
	slices.Sort(names)
	if w.place() < 0 || len(slices.Compact(slices.Clone(names))) < len(names) {
		return nil, fmt.Errorf("the nodes %q: node %q must be one of them, and none twice", names,
			w.Name)
	}
	for _, n := range w.Nodes {
		if n.Name != w.Name {
			peers = append(peers, link.Peer{Name: n.Name, Address: n.Address})
		}
	}
	w.former = newFormer(w.Cluster, names, w.Name, persistence.NewID(), empty,
		func(to string, frame []byte) { w.link.Send(to, frame) }, w.Logger)
	return peers, nil
}

// peer returns how a node is reached: as the configuration says, or as the membership does.
func (w *opening) peer(name, address string) (link.Peer, error) {
	for _, n := range w.Nodes {
		if n.Name == name {
			address = n.Address
		}
	}
	p := link.Peer{Name: name, Address: address}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return p, fmt.Errorf("node %q has no address: neither the configuration names it, nor "+
			"the change that added it: %w", name, err)
	}
	return p, w.link.Check(p)
}

// members lets the link reach the members, and the other nodes that the configuration names: they
// may come to join, or hear that they were removed, and have no connections of callers.
func (w *opening) members(members []machine.Member) {
	joined := joinedOf(members)
	for _, n := range w.Nodes {
		members = append(slices.Clip(members), machine.Member{Name: n.Name})
	}
	var peers []link.Peer
	for _, m := range members {
		p, err := w.peer(m.Name, m.Address)
		switch {
		case err != nil:
			w.Logger.Error("a member cannot be reached", "node", m.Name, "error", err)
		case m.Name != w.Name && !slices.Contains(peers, p):
			peers = append(peers, p)
		}
	}
	if err := w.link.Set(peers); err != nil {
		w.Logger.Error("BUG: the peers are refused", "error", err)
	}
	for _, p := range peers {
		if !slices.Contains(joined, p.Name) {
			w.link.Drop(p.Name)
		}
	}
}

// receive takes a frame of a peer.
func (w *opening) receive(from string, frame []byte) {
	if s := w.store.Load(); s != nil {
		s.receive(from, frame)
		return
	}
	select {
	case w.frames <- received{from, frame}:
	default:
	}
}

// open forms the log if there is none, and starts the node.
func (w *opening) open(ctx context.Context) (*store, error) {
	there, err := raftlog.Formed(w.files, w.dir)
	if err != nil {
		return nil, err
	}
	if !there {
		if err := w.form(ctx); err != nil {
			return nil, err
		}
	}
	if err := w.unmark(); err != nil {
		return nil, err
	}
	o := options{dir: w.dir, files: w.files, local: w.Local, send: w.link.Send, dial: w.link.Dial,
		cut:   w.link.Drop,
		ticks: w.ticker.C, now: time.Now, random: rand.IntN, logger: w.Logger, fatal: w.Fatal,
		logMax: w.LogMax, market: w.Market, agreed: w.Agreed,
		former: w.former, await: func(log *raftlog.Log) error { return w.await(ctx, log) },
		changed: w.members, reach: func(name, address string) error {
			_, err := w.peer(name, address)
			return err
		}}
	if w.adapt != nil {
		w.adapt(&o)
	}
	s, err := open(o)
	if err == nil {
		w.store.Store(s)
	}
	return s, err
}

// form makes the log once all nodes are there. A local store that has data says that there was one,
// unless it is a copy.
func (w *opening) form(ctx context.Context) error {
	what, err := content(ctx, w.Local)
	if err != nil {
		return err
	}
	copied, err := w.marked()
	if err == nil && what != "" && !copied {
		err = fmt.Errorf("%s has no log, and %s has %s: a cluster is formed by empty nodes; bring "+
			"the log back, or replace this node", w.dir, w.Local, what)
	}
	if err == nil {
		err = w.wait(ctx)
	}
	if err != nil {
		return err
	}
	what = "the cluster is formed"
	if o := w.former.offer; o != nil {
		what = "this node joins the cluster"
		if end, err := o.end(); err != nil {
			return err
		} else if end > 0 || copied {
			if err := w.fill(ctx); err != nil {
				return err
			}
		}
	} else if copied {
		return fmt.Errorf("%w: %s: a copy of another node's store has not become this one's, and "+
			"no cluster is there that this node could join; empty the folders of both", ErrFolder,
			w.dir)
	}
	if err := w.former.form(w.files, w.dir); err != nil {
		return err
	}
	w.Logger.Info(what, "cluster", w.Cluster, "node", w.Name,
		"nodes", w.former.names)
	return nil
}

// content says what a store has, "" if it has nothing.
func content(ctx context.Context, local persistence.Store) (string, error) {
	beat, err := local.Beat(ctx)
	if err != nil {
		return "", err
	}
	watermark, err := local.Watermark(ctx)
	if err != nil {
		return "", err
	}
	_, r, err := local.LoadSnapshot(ctx, 0)
	switch {
	case err == nil:
		return "a snapshot", r.Close()
	case !errors.Is(err, persistence.ErrNoSnapshot):
		return "", err
	case watermark > 0:
		return fmt.Sprint("projections up to sequence ", watermark), nil
	case beat.End.Seq > 0:
		return fmt.Sprint("a journal up to sequence ", beat.End.Seq), nil
	}
	return "", nil
}

// await returns once the node may take part.
func (w *opening) await(ctx context.Context, log *raftlog.Log) error {
	if err := w.former.check(log.Identity()); err != nil {
		return fmt.Errorf("%s: %w", w.dir, err)
	}
	if log.Fresh() {
		w.former.stage = formed
		if err := w.wait(ctx); err != nil {
			return err
		}
	}
	w.former.stage = begun
	return nil
}

// wait returns once the node may go on to the next stage.
func (w *opening) wait(ctx context.Context) error {
	for ticks := 0; ; {
		may, why, err := w.former.next()
		if may || err != nil {
			return err
		}
		select {
		case r := <-w.frames:
			w.former.receive(r.from, r.frame)
		case <-w.ticker.C:
			w.former.tick()
			if ticks++; ticks%sayTicks == 0 {
				w.Logger.Warn("this node waits for the others to form the cluster", "for", why)
			}
		case <-ctx.Done():
			return fmt.Errorf("%w: the cluster is not formed: this node waited for %s", ctx.Err(),
				why)
		}
	}
}

// Close ends the node, frees its folders, and closes the local store.
func (o *opened) Close() error {
	o.ticker.Stop()
	return errors.Join(o.link.Close(), o.store.Close())
}
