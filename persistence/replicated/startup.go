package replicated

import (
	"context"
	"fmt"
	"io"
	"log/slog"
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

// Copies writes and installs copies of the local store. A joining node needs one if the journal's
// beginning has been trimmed. A copy proves its own completeness.
type Copies interface {
	// Write writes a copy of a local store that is in use. Without a copy at or above sequence
	// least, Write returns an error before the first byte.
	Write(ctx context.Context, local persistence.Store, least uint64, w io.Writer) error
	// Fill reads a copy to its end into a store beside the local one, in place of an earlier
	// Fill's. It returns the copy's sequence. When it returns, the store is complete and durable.
	Fill(ctx context.Context, r io.Reader) (seq uint64, err error)
	// Swap closes the local store, replaces it atomically by the newest Fill's, and opens it.
	Swap(ctx context.Context, local persistence.Store) (persistence.Store, error)
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

// options of open.
type options struct {
	dir   string // the log's folder, which raftlog.Form has created
	files vfs.FS
	// local stores images, projections and history. Its journal is unused. The store closes it.
	local persistence.Store
	// send sends a frame to a peer, or drops it. It does not block.
	send func(to string, frame []byte)
	// cut ends the connections of a peer; may be nil.
	cut func(name string)
	// dial opens a connection to a peer.
	dial func(ctx context.Context, name string) (net.Conn, error)
	// tickC delivers ticks; electionTicks of them without a leader start an election.
	tickC  <-chan time.Time
	now    func() time.Time
	random func(n int) int
	logger *slog.Logger
	// fatal is called when a sync has failed. It must end the process.
	fatal           func(error)
	minTrim, logMax uint64              // see setup
	maxFormat       uint8               // see setup
	market          *OwnMarket          // see setup
	onMarket        func(market []byte) // see setup
	// waitToStart returns once the node may take part; nil: it may at once.
	waitToStart func(*raftlog.Log) error
	formation   *formation // see node
	// onMembers receives each new membership, from the node's goroutine.
	onMembers func([]machine.Member)
	// checkPeer refuses a node that cannot be reached; nil: all can.
	checkPeer func(name, address string) error
	onApply   func(index uint64, e *machine.Entry, a machine.Answer) // see setup
}
