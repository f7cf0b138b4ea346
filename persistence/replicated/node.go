package replicated

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"go.etcd.io/raft/v3"

	"exchange/persistence"
	"exchange/persistence/internal/machine"
	"exchange/persistence/internal/raftlog"
)

const (
	// electionTicks is the minimum silence of a leader before a node campaigns. The maximum is one
	// tick less than twice as long.
	electionTicks = 10
	// unfitFactor multiplies the wait of a node that is unfit to serve.
	unfitFactor = 3
	// maxMessage bounds the bytes of entries in one message, unless a single entry is larger.
	maxMessage = 1 << 20
	// maxUncommitted bounds the bytes of entries that wait for a majority.
	maxUncommitted = 256 << 20
	// maxInflight and maxInflightBytes bound the messages in flight to one peer.
	maxInflight      = 256
	maxInflightBytes = 64 << 20
	// maxApply bounds the bytes of entries applied at once.
	maxApply = 16 << 20
	// askTicks is the interval of clock requests to all peers. They also announce the node's start:
	// two followers exchange no other frames.
	askTicks = electionTicks
)

// A node is one member: raft's state machine, its log on disk, and the machine that applies the
// entries. It has no clock, goroutine or network of its own. One goroutine at a time calls it:
// tick, receive and propose change memory only; work makes the changes durable, sends, applies, and
// answers. After an error of work the node must not be used.
type node struct {
	id      uint64
	log     *raftlog.Log
	raw     *raft.RawNode
	logger  *slog.Logger
	send    func(to string, frame []byte)
	random  func(n int) int
	now     func() time.Time
	publish func(view)
	onApply func(index uint64, e *machine.Entry, a machine.Answer) // for simulations; nil: unused
	dropLog persistence.Seldom                                     // log lines about dropped frames

	machine      *machine.State
	maxFormat    uint8             // newest format that this program reads
	peerFormats  map[uint64]uint8  // newest format that each peer's program reads, by ID
	formatErr    error             // why this node applies no more entries; nil: it applies
	unfit        func() error      // see Replica.Unfit
	fileMarket   *OwnMarket        // market part of this node's file; nil: none
	peerMarkets  map[uint64]uint64 // digests of the parts in the peers' files, by ID
	marketDigest uint64            // of the applied market part; 0: none
	onMarket     func(market []byte)
	applied      uint64
	commit       uint64
	index        *index
	trim         logTrim
	// offerReplayer computes the state that is offered to a joining node.
	offerReplayer replayer
	offeredAt     map[uint64]uint64 // ticks of the newest offers, by ID
	// logMax bounds the bytes of the log kept for lagging members; 0: unbounded.
	logMax         uint64
	proposals      proposals
	queued         []request // deferred membership changes, oldest first
	confirms       confirmQueue
	transfer       leadTransfer
	formation      *formation // answers nodes without a log; nil: they get no answer
	onMembers      func([]machine.Member)
	lastBeforeJoin uint64 // number of this node's last proposal when the newest join was applied
	// futureIDs are IDs in peers' frames above any that is assigned here, by the peer's name.
	futureIDs map[string]uint64
	// appliedTerm is the term of the newest applied entry; 0: none since the start.
	appliedTerm uint64

	silent         int    // ticks since the last frame of a leader
	electionAt     int    // ticks of silence until this node campaigns, if it could serve
	logBehindAt    uint64 // tick of the next log line that this node is behind
	endedBy        error
	removedDoubt   doubt             // that this node was removed
	olderCopyDoubt doubt             // that its folder is an older copy
	truncatedDoubt doubt             // that its log lacks acknowledged entries
	cuts           map[string]uint64 // tick until which a peer is cut off
	cut            func(name string)
	impossible     uint64            // count of impossible messages since the start
	tickCount      uint64            // since the start
	lastFrame      map[uint64]uint64 // tick of each peer's newest frame
	peerClocks     map[uint64]clockReading
	peerUnfits     map[uint64]uint64 // tick at which each peer last reported unfit
	clockMedian    [2]time.Duration  // the middle two of all clocks, relative to this node's
	clockAhead     time.Duration     // of this node's clock, relative to the median
	clockWrong     bool              // clockAhead exceeds maxClockSkew
	elections      uint64            // started by this node
	logBytes       uint64            // at the newest tick
	peers          []persistence.Peer
}

// A view is a node's published state.
type view struct {
	applied    uint64
	epoch      uint32
	beat       persistence.Beat
	trimmed    uint64
	lost       bool // see machine.State.Lost
	format     uint8
	formatErr  error // see node
	market     []byte
	termMarket []byte // see machine.State.Market
	chain      uint64
	term       uint64
	leaderID   uint64 // 0: none known
	leading    bool
	settled    bool // an entry of the term is applied
	members    []machine.Member

	committed  uint64
	elections  uint64
	peers      []persistence.Peer
	logBytes   uint64
	clockAhead time.Duration
	clockWrong bool

	impossible uint64 // see node
}

// publishView publishes the node's current view.
func (n *node) publishView() {
	s := n.raw.BasicStatus()
	market, termMarket := n.machine.Market()
	n.publish(view{applied: n.applied, epoch: n.machine.Epoch(), beat: n.machine.Beat(),
		trimmed: n.machine.Trimmed(), lost: n.machine.Lost(), chain: n.machine.Chain(),
		format: n.machine.Format(), formatErr: n.formatErr, market: market, termMarket: termMarket,
		term: s.GetTerm(), leaderID: s.Lead, leading: s.RaftState == raft.StateLeader,
		committed: s.GetCommit(), settled: n.appliedTerm == s.GetTerm(), elections: n.elections,
		peers: n.peers, logBytes: n.logBytes, clockAhead: n.clockAhead, clockWrong: n.clockWrong,
		impossible: n.impossible, members: n.machine.Members()})
}

// resetElection restarts the wait for a leader.
func (n *node) resetElection() {
	n.silent, n.electionAt = 0, electionTicks+n.random(electionTicks)
}

// mayCampaign reports whether this node has waited long enough for a leader. A node that is unfit
// to serve waits longer than all others, but does campaign: if it alone holds the whole log, no
// other one can be elected.
func (n *node) mayCampaign() bool {
	if n.formatErr != nil || n.clockWrong || n.unfit() != nil {
		return n.silent >= unfitFactor*n.electionAt
	}
	return n.silent >= n.electionAt
}

// propose adds an entry to the log, if this node leads. The caller gets one result; its channel has
// room for it. A membership change waits for a pending one, and until this leader has applied an
// entry of its term.
func (n *node) propose(e *machine.Entry, caller chan<- result) {
	switch err := n.proposeNow(e, caller); {
	case err == nil:
	case isDeferred(err) && len(n.queued) < maxQueued:
		n.queued = append(n.queued, request{e, caller})
	default:
		caller <- result{err: err}
	}
}

// proposeQueued retries the queued changes, oldest first.
func (n *node) proposeQueued() {
	for len(n.queued) > 0 {
		r := n.queued[0]
		err := n.proposeNow(r.entry, r.caller)
		if isDeferred(err) {
			return
		}
		if n.queued = n.queued[1:]; err != nil {
			r.caller <- result{err: err}
		}
	}
	n.queued = nil
}

// tryPropose proposes a change without a caller. If it must wait, the node proposes it again later.
func (n *node) tryPropose(e *machine.Entry) {
	_ = n.proposeNow(e, make(chan result, 1)) // its outcome shows in the membership
}

func (n *node) proposeNow(e *machine.Entry, caller chan<- result) error {
	n.failStale()
	status := n.raw.BasicStatus()
	if status.RaftState != raft.StateLeader {
		return errNotLeading
	}
	switch {
	case n.formatErr != nil:
		return fmt.Errorf("%w: %w", errNotLeading, n.formatErr)
	case e.Format > n.machine.Format():
		return fmt.Errorf("%w: cannot write format %d: not all members are known to read it",
			persistence.ErrInvalid, e.Format)
	case e.Kind.ChangesCluster():
		return n.enterChange(e, caller)
	}
	if err := n.rightClock(); err != nil && e.Kind == machine.Acquire {
		return err
	}
	if n.proposals.attachToPending(e, caller) {
		return nil
	}
	if e.Kind == machine.Trim {
		// a joining node's log begins after the floor, so its image must reach there
		e.Floor = min(n.floor(), n.index.upTo(e.Next))
	}
	n.identify(e)
	if err := n.raw.Propose(e.Encode()); err != nil {
		return fmt.Errorf("the proposal was dropped: %w", err)
	}
	n.proposals.term = status.GetTerm()
	n.proposals.add(e, caller)
	return nil
}

// identify assigns a proposal its ID.
func (n *node) identify(e *machine.Entry) {
	n.proposals.number++
	e.ID = machine.ID{Node: n.id, Boot: n.log.Own().Boot, Number: n.proposals.number}
}

// floor returns the index up to which all members have the log, except members that lack more than
// logMax.
func (n *node) floor() uint64 {
	lowest := n.applied
	for _, p := range n.raw.Status().Progress {
		lowest = min(lowest, p.Match)
	}
	if n.logMax > 0 {
		lowest = max(lowest, min(n.applied, n.log.Newest(n.logMax)))
	}
	return lowest
}

// failStale fails the proposals of a term in which this node no longer leads.
func (n *node) failStale() {
	if len(n.proposals.pending) == 0 {
		return
	}
	status := n.raw.BasicStatus()
	if status.RaftState != raft.StateLeader || status.GetTerm() != n.proposals.term {
		n.proposals.failPending(errUnknown)
	}
}

// nameOf returns the name of the member with an ID; "": there is none.
func (n *node) nameOf(id uint64) string {
	for _, m := range n.machine.Members() {
		if m.ID == id && id != 0 {
			return m.Name
		}
	}
	return ""
}

// alone reports whether this node is the only voter.
func (n *node) alone() bool {
	c := configuration(n.machine.Members())
	return len(c.Voters) == 1 && c.Voters[0] == n.id && len(c.VotersOutgoing) == 0
}

// isVoter reports whether this node is a voter.
func (n *node) isVoter() bool {
	return slices.ContainsFunc(n.machine.Members(), func(m machine.Member) bool {
		return m.ID == n.id && (m.Role == machine.Voter || m.Role == machine.Leaving)
	})
}

// frame returns a frame of this node, without its payload.
func (n *node) frame(kind byte) frame {
	return frame{kind: kind, maxFormat: n.maxFormat, id: n.id, start: n.log.Own()}
}
