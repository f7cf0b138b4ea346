package persistence

import (
	"context"
	"errors"
	"net"
	"time"
)

// ErrClock: the clock of a node differs too much from those of the others for it to own the engine.
var ErrClock = errors.New("the clock of this node is wrong")

// ErrFormat: the entries are of a format that this program does not read. The node votes, and has
// no more of the journal.
var ErrFormat = errors.New("this program is too old: start one that reads the cluster's format")

// ErrRemoved: the node is a member of its cluster no more. Its folder is useless to it.
var ErrRemoved = errors.New("this node was removed from its cluster, or its folder is an older " +
	"copy, and is not used any more; to let it take part again, empty the folder, and " +
	"`exchange cluster replace` the node if the cluster's status lists it, otherwise " +
	"`exchange cluster add` it")

// NewestFormat is the newest format of a cluster's log that this program reads.
const NewestFormat = 11

// A Replica is one node's store of an engine whose journal is on several nodes. One of them leads:
// only there an owner can claim the engine and append. Each node has the journal, and a local store
// for the data derived from it: images, projections, history.
type Replica interface {
	Store
	// Own returns the token of the node itself. Under it SaveSnapshot and Apply write to the local
	// store, whoever owns the engine. If this node's newest claim owns it, Apply also sends all
	// nodes the nonces that are marked as those of reads. Trim under it declares that this node no
	// longer needs the journal up to a sequence, and that the others may drop it, too, if this
	// node's newest claim owns the engine.
	Own() Token
	// Hold keeps the journal above a sequence on this node, for its fold and its archive: neither
	// this node's Trim nor another one's takes more, and Read finds it. A later Hold takes the
	// place of an earlier one. Without one nothing is held; call it before the first Read.
	Hold(seq uint64)
	// Follow waits until this node has a batch above after, or leads, or ctx ends. ErrFormat: it
	// has all batches that it reads, and gets no more.
	Follow(ctx context.Context, after uint64) (leads bool, err error)
	// Unfit sets why this node could not own the engine; nil: it could. A node that could not
	// campaigns last, and is handed the lead last. It does not wait, and the newest call counts.
	Unfit(why error)
	// Known returns the sequence up to which this node has the journal, and whether no other node
	// may hold more from this one, if this one leads. It does not wait.
	Known() (end uint64, all bool)
	// Leads reports whether this node leads, from its own view. It does not wait.
	Leads() bool
	// Confirm succeeds if tok owned the engine at some moment after the call: a majority of the
	// nodes has confirmed since that this node leads, and no later owner was applied. It returns a
	// sequence as Reach does. ErrFenced: another owner has followed. Another error: unknown.
	Confirm(ctx context.Context, tok Token) (seq uint64, err error)
	// Reach returns a sequence that covers every append acknowledged to any owner before the call.
	// This node has the journal up to there. It asks the leader, which asks a majority of the
	// nodes. Without an answer, only the context ends the wait.
	Reach(ctx context.Context) (seq uint64, err error)
	// Transfer hands the lead to another node that has the whole journal; "": to any. It returns
	// when this node leads no more.
	Transfer(ctx context.Context, to string) error
	// Dial opens a connection to the node with that name, another member as far as this node has
	// applied, and returns once that node has accepted it. Its content is up to the two nodes;
	// nothing of it is durable or repeated. The caller closes it. It fails when one of the nodes
	// ends, or is a member no more, and some seconds after a machine or the network between them
	// has gone. A process that stands still is not noticed: the caller sets deadlines. A nineteenth
	// connection that a node opens to another ends its oldest. An error means that there is no
	// connection, and holds the other node's reason. ctx bounds the wait, and not the connection.
	Dial(ctx context.Context, node string) (net.Conn, error)
	// Accept sets the function that takes the connections that other members open with Dial. Until
	// it is called they are refused. Each call of take has a goroutine of its own, and may last as
	// long as its connection, but not longer: Close waits for it. from is the node that has proved
	// its name. take, or its delegate, closes the connection. A later Accept takes the place of an
	// earlier one for the connections that come from then on; nil: they are refused.
	Accept(take func(from string, conn net.Conn))
	// AcceptObservers is Accept for the connections of observers, which are no members: from is the
	// name that the observer has proved.
	AcceptObservers(take func(from string, conn net.Conn))
	// Market returns the market part of the configuration that the nodes have agreed on for the
	// next term, as far as this node has applied, and the one that the newest term was built
	// with; nil: there is none. The caller does not change them.
	Market() (next, current []byte)
	// SetMarket lets the nodes agree on a market part, if this node's newest claim owns the engine:
	// on the one that its term is built with, or on one for the next term. The text is of the
	// format in Standing at most. ErrInvalid: the text is empty or too long. Another error leaves
	// the outcome unknown.
	SetMarket(ctx context.Context, text []byte, leads bool) error
	// Standing returns this node's view of the nodes. It does not wait.
	Standing() Standing
	Membership
}

// A Standing is a node's view of itself and of the others.
type Standing struct {
	Node      string // its name
	Leader    string // node that leads, in raft's current view; "": none
	Term      uint64
	Elections uint64 // that this node has begun since its start
	// Impossible counts the messages since its start that cannot be true: each time the sending
	// member was cut off.
	Impossible uint64
	Applied    uint64 // index of the newest entry that is applied here
	Committed  uint64 // index of the newest entry seen here as held by a majority
	LogBytes   uint64 // of this node's log on its disk
	Peers      []Peer // all members, this node among them, in the order of their names
	// Format is the newest that entries and records may be written in, and each member reads it.
	Format uint8
	// ClockAhead is this node's clock less the median of all that it receives, beyond the
	// uncertainty of the network delay. ClockWrong: it is so much that the node must not own the
	// engine.
	ClockAhead time.Duration
	ClockWrong bool
}

// A Role is how a member takes part.
type Role string

// The roles. A voter that leaves counts until the change is complete. A learner copies the log, and
// has no vote. A node that is awaited has not joined yet.
const (
	RoleVoter   Role = "voter"
	RoleLeaving Role = "leaving"
	RoleLearner Role = "learner"
	RoleAwaited Role = "awaited"
)

// A Peer is a member as another one sees it.
type Peer struct {
	Name     string
	Address  string // where it listens; "": from each node's configuration
	Role     Role
	Replaces string // voter whose place it takes once it has the log; "": it takes none
	// Newest: it joined with an empty folder, and no other member has joined since.
	Newest bool
	// Match is the index up to which it has the log. Only the leader has it for others.
	Match uint64
	// SilentTicks is for how many ticks nothing has come from it; 0 of the node itself.
	SilentTicks uint64
	// Reads is the newest format that its program reads; 0: not received.
	Reads uint8
	// Unfit: it could not own the engine, as it reported lately: see Replica.Unfit.
	Unfit bool
	// Market is the digest of its own file's market part, and that of the applied one if they are
	// equal as far as that goes; 0: not received. Differs: the market part that is applied here is
	// another one.
	Market  uint64
	Differs bool
}

// A Membership changes the nodes of a cluster. Only the node that leads can. A change is durable
// when its method returns. ErrInvalid: the change is refused; the error says why. A context that
// ends, or a node that stops leading meanwhile, leaves it unknown whether the change is made: see
// the Standing.
type Membership interface {
	// Add lets a node with an empty folder join as a learner, which has no vote. address is where
	// it listens; "": from each node's configuration.
	Add(ctx context.Context, name, address string) error
	// Promote makes a learner that has the log a voter.
	Promote(ctx context.Context, name string) error
	// Remove removes a learner or a voter; of two with the same name, the learner. It also ends a
	// replacement by the node. Not: the node that leads, and a voter without which the reachable
	// ones would be no majority.
	Remove(ctx context.Context, name string) error
	// Replace adds a node like Add, which takes the place of a voter in one step once it has the
	// log. Until then other changes are refused. A voter with a new disk is replaced by itself:
	// both names are equal. It returns when the replacement has begun. If the node that leads is
	// replaced, it hands the lead over in time.
	Replace(ctx context.Context, old, name, address string) error
}
