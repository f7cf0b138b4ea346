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
	Address string // host and port, as the other nodes reach it
}

// Options of Open.
type Options struct {
	// Cluster is the cluster's id, of the same form as a node's name.
	Cluster string
	Name    string // this node's
	Nodes   []Node // all of the cluster's, including this one
	// Folder is the node's data folder. Its subfolder raft holds the log.
	Folder string
	// Local stores this node's images, projections and history. The store that Open returns closes
	// it, and so does a failed Open.
	Local persistence.Store
	// Credentials are nil if all addresses are of the loopback.
	Credentials *Credentials
	// Tick is the length of one tick; 0: 50 ms. A node without a leader's frame for 10 to 19 ticks
	// starts an election.
	Tick   time.Duration
	Logger *slog.Logger
	// Fatal is called when a sync has failed. It must end the process.
	Fatal func(error)
	// LogMax is the approximate limit in bytes of the log kept for lagging members; 0: none.
	LogMax uint64
	// Market is that of this node's file; nil: none. The others receive its digest, in the format
	// of the applied one if they are equal.
	Market *OwnMarket
	// OnMarket receives the applied market part, at the start and after each change, from the
	// node's goroutine; may be nil.
	OnMarket func(market []byte)
	// Copies writes and installs copies of the local store; nil: this node does neither.
	Copies Copies
	// Observers are the names of the observers whose connections this node accepts.
	Observers []string
	// Listener accepts the other nodes' connections; nil: Open listens at the node's address.
	Listener net.Listener
	// Dial opens a connection to another node's address; nil: over TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	files vfs.FS // nil: those of the machine
}

const (
	usualTick = 50 * time.Millisecond
	logFolder = "raft"
	// logTicks is the interval of log lines about a wait.
	logTicks = 100
)

// A startup is a node that is joining its cluster.
type startup struct {
	Options
	dir        string // of the log
	formation  *formation
	frames     chan received // received before the store is open
	refusalLog persistence.Seldom
	store      atomic.Pointer[store]
	link       transport
	ticker     *time.Ticker
	adapt      func(*options) // for simulations: changes the store's options; may be nil
}

// A transport carries frames, copies and connections between nodes: a link.Link, or a simulated
// one.
type transport interface {
	Send(to string, frame []byte)
	Fetch(ctx context.Context, from string, q link.Want) (io.ReadCloser, error)
	Dial(ctx context.Context, name string) (net.Conn, error)
	Drop(name string)
	Check(p link.Peer) error
	Set(peers []link.Peer) error
	Close() error
}

// A replica is a store with its link to the other nodes.
type replica struct {
	*store
	link   transport
	ticker *time.Ticker
}

var _ persistence.Replica = (*replica)(nil)

// Open opens one node's store, and waits until the node may take part in its cluster. Without a log
// the node waits until all named nodes are present and none has begun: then they form the cluster.
// ctx ends the wait.
func Open(ctx context.Context, o Options) (_ persistence.Replica, err error) {
	w := &startup{Options: o, frames: make(chan received, maxFrames)}
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
		Address: o.Nodes[w.nodeIndex()].Address, Listener: o.Listener, Dial: o.Dial,
		Credentials: o.Credentials, Receive: w.receive, Copy: w.writeCopy, Admit: w.admit,
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
	return &replica{s, w.link, w.ticker}, nil
}

// nodeIndex returns this node's index in Nodes; -1: it is missing.
func (w *startup) nodeIndex() int {
	return slices.IndexFunc(w.Nodes, func(n Node) bool { return n.Name == w.Name })
}

// prepare validates the options, and returns the other nodes.
func (w *startup) prepare() (peers []link.Peer, err error) {
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
	if w.nodeIndex() < 0 || len(slices.Compact(slices.Clone(names))) < len(names) {
		return nil, fmt.Errorf("the nodes %q: node %q must be one of them, and none twice", names,
			w.Name)
	}
	for _, n := range w.Nodes {
		if n.Name != w.Name {
			peers = append(peers, link.Peer{Name: n.Name, Address: n.Address})
		}
	}
	w.formation = newFormation(w.Cluster, names, w.Name, persistence.NewID(), stageEmpty,
		func(to string, frame []byte) { w.link.Send(to, frame) }, w.Logger)
	return peers, nil
}

// peer returns a node's address: the configured one, or else that of the membership.
func (w *startup) peer(name, address string) (link.Peer, error) {
	for _, n := range w.Nodes {
		if n.Name == name {
			address = n.Address
		}
	}
	p := link.Peer{Name: name, Address: address}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return p, fmt.Errorf("node %q has no address, neither in the configuration nor in "+
			"the change that added it: %w", name, err)
	}
	return p, w.link.Check(p)
}

// members sets the link's peers: the members, and the other configured nodes. The latter may join,
// or be notified of their removal, but open no connections.
func (w *startup) members(members []machine.Member) {
	joined := joinedNames(members)
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

// receive passes a peer's frame to the store, or queues it until the store is open.
func (w *startup) receive(from string, frame []byte) {
	if s := w.store.Load(); s != nil {
		s.receive(from, frame)
		return
	}
	select {
	case w.frames <- received{from, frame}:
	default:
	}
}

// open creates the log if none exists, and starts the node.
func (w *startup) open(ctx context.Context) (*store, error) {
	there, err := raftlog.Formed(w.files, w.dir)
	if err != nil {
		return nil, err
	}
	if !there {
		if err := w.form(ctx); err != nil {
			return nil, err
		}
	}
	if err := w.clearCopyMark(); err != nil {
		return nil, err
	}
	o := options{dir: w.dir, files: w.files, local: w.Local, send: w.link.Send, dial: w.link.Dial,
		cut: w.link.Drop, tickC: w.ticker.C, now: time.Now, random: rand.IntN, logger: w.Logger,
		fatal: w.Fatal, logMax: w.LogMax, market: w.Market, onMarket: w.OnMarket,
		formation:   w.formation,
		waitToStart: func(log *raftlog.Log) error { return w.waitToStart(ctx, log) },
		onMembers:   w.members, checkPeer: func(name, address string) error {
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

// form creates the log once all nodes are present. A local store with data implies a lost log,
// unless the store is a copy.
func (w *startup) form(ctx context.Context) error {
	what, err := content(ctx, w.Local)
	if err != nil {
		return err
	}
	copied, err := w.hasCopyMark()
	if err == nil && what != "" && !copied {
		err = fmt.Errorf("%s has no log, and %s has %s: a cluster is formed by empty nodes; bring "+
			"the log back, or replace this node", w.dir, w.Local, what)
	}
	if err == nil {
		err = w.awaitStage(ctx)
	}
	if err != nil {
		return err
	}
	what = "the cluster is formed"
	if o := w.formation.offer; o != nil {
		what = "this node joins the cluster"
		if end, err := o.endSeq(); err != nil {
			return err
		} else if end > 0 || copied {
			if err := w.fetchStore(ctx); err != nil {
				return err
			}
		}
	} else if copied {
		return fmt.Errorf("%w: %s: the copy of another node's store is unfinished, and there is "+
			"no cluster to join; empty the folders of both", ErrFolder, w.dir)
	}
	if err := w.formation.form(w.files, w.dir); err != nil {
		return err
	}
	w.Logger.Info(what, "cluster", w.Cluster, "node", w.Name,
		"nodes", w.formation.names)
	return nil
}

// content names a store's content; "": it is empty.
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

// waitToStart returns once the node may take part.
func (w *startup) waitToStart(ctx context.Context, log *raftlog.Log) error {
	if err := w.formation.check(log.Identity()); err != nil {
		return fmt.Errorf("%s: %w", w.dir, err)
	}
	if log.Fresh() {
		w.formation.stage = stageFormed
		if err := w.awaitStage(ctx); err != nil {
			return err
		}
	}
	w.formation.stage = stageActive
	return nil
}

// awaitStage returns once the node may enter the next stage.
func (w *startup) awaitStage(ctx context.Context) error {
	for ticks := 0; ; {
		may, why, err := w.formation.next()
		if may || err != nil {
			return err
		}
		select {
		case r := <-w.frames:
			w.formation.receive(r.from, r.frame)
		case <-w.ticker.C:
			w.formation.tick()
			if ticks++; ticks%logTicks == 0 {
				w.Logger.Warn("this node waits for the others to form the cluster", "for", why)
			}
		case <-ctx.Done():
			return fmt.Errorf("%w: the cluster is not formed: this node waited for %s", ctx.Err(),
				why)
		}
	}
}

// Close ends the node, frees its folders, and closes the local store.
func (o *replica) Close() error {
	o.ticker.Stop()
	return errors.Join(o.link.Close(), o.store.Close())
}
