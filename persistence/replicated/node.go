package replicated

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"exchange/persistence"
	"exchange/persistence/internal/machine"
	"exchange/persistence/internal/raftlog"
)

const (
	// electionTicks is how long a node hears nothing from a leader before it campaigns, at least.
	// The most is one less than twice as long.
	electionTicks = 10
	// lastTimes is how many times as long a node waits that campaigns last.
	lastTimes = 3
	// maxMessage is how many bytes of entries one message carries, unless one entry has more.
	maxMessage = 1 << 20
	// maxUncommitted is how many bytes of entries may wait for a majority.
	maxUncommitted = 256 << 20
	// maxInflight and maxInflightBytes bound what is on its way to one peer.
	maxInflight      = 256
	maxInflightBytes = 64 << 20
	// maxApply is how many bytes of entries are applied at once.
	maxApply = 16 << 20
	// askTicks is how often a node asks all peers for their clocks. So each hears of its start,
	// too: two that follow have nothing else to say to each other.
	askTicks = electionTicks
)

// A node is one voter: raft's state machine, its log on the disk, and the machine that applies the
// entries. It has no clock, goroutine or network of its own. One goroutine at a time calls it:
// tick, receive and propose change what is in memory, and work makes it durable, sends, applies,
// and answers. After an error of work the node is not to be used any more.
type node struct {
	id      uint64
	log     *raftlog.Log
	raw     *raft.RawNode
	logger  *slog.Logger
	send    func(to string, frame []byte)
	random  func(n int) int
	now     func() time.Time
	publish func(view)
	saw     func(index uint64, e *machine.Entry, a machine.Answer) // of simulations; nil: none
	dropped persistence.Seldom                                     // logs what is dropped

	machine *machine.State
	reads   uint8             // newest format that this program reads
	told    map[uint64]uint8  // and those of the others, by their IDs
	unread  error             // why this node applies no more; nil: it applies
	unfit   func() error      // see Replica.Unfit
	own     *OwnMarket        // nil: there is none
	markets map[uint64]uint64 // and those of the others, by their IDs
	applies uint64            // the applied one's digest; 0: there is none
	agreed  func(market []byte)
	applied uint64
	commit  uint64
	index   *index
	trim    trimming
	// offering is behind which state a node that joins begins, on its way to it
	offering walk
	offered  map[uint64]uint64 // the ticks of the newest offers
	// logMax is how many bytes of the log are kept for members that lack them; 0: any number.
	logMax uint64
	proposals
	queued    []request // changes of the membership that wait for their turn, the oldest first
	questions questions
	handing   handing
	former    *former // answers nodes without a log; nil: none does
	changed   func([]machine.Member)
	joins     uint64 // the last proposal of this node when another ID was applied here
	// later has the IDs that peers say, and that are not given yet as far as is applied here.
	later map[string]uint64
	// appliedTerm is the term of the newest applied entry; 0: none since the start.
	appliedTerm uint64

	silent     int    // ticks since a leader was heard
	patience   int    // ticks until this node campaigns, if it could serve
	saysBehind uint64 // the tick from which it may log again that it is behind
	refused    error
	// see doubt
	removals, older, short doubt
	cuts                   map[string]uint64 // the tick until which a peer is cut off
	cut                    func(name string)
	impossible             uint64            // what peers have said since the start, and cannot be
	ticks                  uint64            // since the start
	heard                  map[uint64]uint64 // the tick of each peer's newest frame
	clocks                 map[uint64]reading
	unfits                 map[uint64]uint64 // when each peer last said that it cannot serve, ticks
	median                 [2]time.Duration  // of all clocks, less this node's; of an even number 2
	ahead                  time.Duration     // of this node's clock, of the median of all
	wrong                  bool              // it is too much
	elections              uint64            // begun here
	logBytes               uint64            // at the newest tick
	peers                  []persistence.Peer
}

// A view is what a node shows of itself.
type view struct {
	applied uint64
	epoch   uint32
	beat    persistence.Beat
	trimmed uint64
	lost    bool // see machine.State.Lost
	format  uint8
	unread  error // see node
	market  []byte
	current []byte // see machine.State.Market
	chain   uint64
	term    uint64
	lead    uint64 // 0: none is known
	leading bool
	settled bool // an entry of the term is applied
	members []machine.Member

	committed uint64
	elections uint64
	peers     []persistence.Peer
	logBytes  uint64
	ahead     time.Duration
	wrong     bool

	impossible uint64 // see node
}

// setup is what a node needs beside its log.
type setup struct {
	logger  *slog.Logger
	send    func(to string, frame []byte)
	random  func(n int) int // a number below n
	now     func() time.Time
	publish func(view)
	saw     func(index uint64, e *machine.Entry, a machine.Answer)
	index   *index
	former  *former
	changed func([]machine.Member) // is told of another membership; nil: nothing is
	least   uint64                 // entries that a checkpoint is worth; 0: the usual number
	logMax  uint64                 // see node
	reads   uint8                  // 0: what this program reads
	market  *OwnMarket             // see Options.Market
	agreed  func(market []byte)    // is told of the applied one; nil: nothing is
	unfit   func() error           // why this node could not serve; nil: it always could
	cut     func(name string)      // ends a peer's connections; nil: nothing does
}

// newNode makes a node of an open log.
func newNode(log *raftlog.Log, state []byte, s setup) (*node, error) {
	n := &node{id: log.Identity().Node, log: log, logger: s.logger, send: s.send,
		random: s.random, now: s.now, clocks: map[uint64]reading{}, unfits: map[uint64]uint64{},
		publish: s.publish, saw: s.saw, index: s.index,
		proposals: newProposals(), former: s.former, heard: map[uint64]uint64{},
		changed: s.changed, later: map[string]uint64{}, logMax: s.logMax,
		offered: map[uint64]uint64{}, told: map[uint64]uint8{},
		reads: cmp.Or(s.reads, machine.Newest), markets: map[uint64]uint64{}, own: s.market,
		agreed: s.agreed, unfit: s.unfit, cut: s.cut,
		cuts: map[string]uint64{}}
	if n.cut == nil {
		n.cut = func(string) {}
	}
	if n.unfit == nil {
		n.unfit = func() error { return nil }
	}
	if n.changed == nil {
		n.changed = func([]machine.Member) {}
	}
	if n.agreed == nil {
		n.agreed = func([]byte) {}
	}
	var err error
	if n.machine, err = machine.DecodeState(state); err != nil {
		return nil, err
	}
	first, err := log.FirstIndex()
	if err != nil {
		return nil, err
	}
	n.applied, n.commit = first-1, log.State().GetCommit()
	n.trim = trimming{walk: walk{n.machine.Clone(), n.applied}, begins: n.applied,
		least: cmp.Or(s.least, trimEntries)}
	log.Begin(configuration(n.machine.Members()))
	n.raw, err = raft.NewRawNode(&raft.Config{
		ID: n.id, ElectionTick: electionTicks, HeartbeatTick: 1, Storage: log, Applied: n.applied,
		AsyncStorageWrites: true, MaxSizePerMsg: maxMessage, MaxCommittedSizePerReady: maxApply,
		MaxUncommittedEntriesSize: maxUncommitted, MaxInflightMsgs: maxInflight,
		MaxInflightBytes: maxInflightBytes, CheckQuorum: true, PreVote: true,
		DisableProposalForwarding: true, StepDownOnRemoval: true, Logger: raftLogger{s.logger},
	})
	if err != nil {
		return nil, err
	}
	n.rest()
	if n.machine.Format() > n.reads {
		n.raised()
	}
	n.tellAgreed()
	n.see()
	n.changed(n.machine.Members())
	if n.alone() {
		n.elections++
		return n, n.raw.Campaign()
	}
	return n, nil
}

// rest begins another wait for a leader.
func (n *node) rest() {
	n.silent, n.patience = 0, electionTicks+n.random(electionTicks)
}

// waited reports whether this node has waited for a leader for as long as it is to. One that could
// not serve, as far as is known now, waits for longer than all others do, and then campaigns: if it
// alone has all of the log, no other one can be elected.
func (n *node) waited() bool {
	if n.unread != nil || n.wrong || n.unfit() != nil {
		return n.silent >= lastTimes*n.patience
	}
	return n.silent >= n.patience
}

// tick tells the node that time has passed. raft draws its own time of an election from a source
// that cannot be repeated, so the node counts for itself.
func (n *node) tick() error {
	n.ticks++
	n.see()
	// at first each tick: a wrong clock is known before the node may lead
	if n.ticks%askTicks == 1 || n.ticks < askTicks || n.muted() {
		n.askClocks()
	}
	n.tellBehind()
	n.askTick()
	n.handTick()
	n.replace()
	n.proposeQueued()
	if n.raw.BasicStatus().RaftState == raft.StateLeader {
		n.raise()
		n.handUnread()
		n.raw.Tick()
		return n.trimStep()
	}
	n.raw.TickQuiesced()
	if n.silent++; n.waited() && n.votes() {
		n.rest()
		n.elections++
		if err := n.raw.Campaign(); err != nil {
			return err
		}
	}
	return n.trimStep()
}

// propose adds an entry to the log, if this node leads. The caller hears once of it; its channel
// has room for one result. A change of the membership waits for one that is under way, and for the
// beginning of this node's lead.
func (n *node) propose(e *machine.Entry, caller chan<- result) {
	switch err := n.enter(e, caller); {
	case err == nil:
	case waits(err) && len(n.queued) < maxQueued:
		n.queued = append(n.queued, request{e, caller})
	default:
		caller <- result{err: err}
	}
}

// proposeQueued tries once more to propose the changes that wait, the oldest first.
func (n *node) proposeQueued() {
	for len(n.queued) > 0 {
		r := n.queued[0]
		err := n.enter(r.entry, r.caller)
		if waits(err) {
			return
		}
		if n.queued = n.queued[1:]; err != nil {
			r.caller <- result{err: err}
		}
	}
	n.queued = nil
}

// attempt makes a change that this node makes by itself, unless it must wait: then the next tick
// brings it again.
func (n *node) attempt(e *machine.Entry) {
	_ = n.enter(e, make(chan result, 1)) // what becomes of it is seen in the membership
}

func (n *node) enter(e *machine.Entry, caller chan<- result) error {
	n.current()
	status := n.raw.BasicStatus()
	if status.RaftState != raft.StateLeader {
		return errNotLeading
	}
	switch {
	case n.unread != nil:
		return fmt.Errorf("%w: %w", errNotLeading, n.unread)
	case e.Format > n.machine.Format():
		return fmt.Errorf("%w: format %d is written before all members read it",
			persistence.ErrInvalid, e.Format)
	case e.Kind.Changes():
		return n.enterChange(e, caller)
	}
	if err := n.rightClock(); err != nil && e.Kind == machine.Acquire {
		return err
	}
	if n.again(e, caller) {
		return nil
	}
	if e.Kind == machine.Trim {
		// a node that joins begins behind the floor, with an image that is as new as an owner's
		e.Floor = min(n.floor(), n.index.upTo(e.Next))
	}
	n.identify(e)
	if err := n.raw.Propose(e.Encode()); err != nil {
		return fmt.Errorf("the proposal was dropped: %w", err)
	}
	n.term = status.GetTerm()
	n.add(e, caller)
	return nil
}

// identify gives a proposal its number.
func (n *node) identify(e *machine.Entry) {
	n.number++
	e.ID = machine.ID{Node: n.id, Boot: n.log.Own().Boot, Number: n.number}
}

// floor returns the index up to which all members have the log. A member that lacks more than the
// log may keep is not waited for.
func (n *node) floor() uint64 {
	least := n.applied
	for _, p := range n.raw.Status().Progress {
		least = min(least, p.Match)
	}
	if n.logMax > 0 {
		least = max(least, min(n.applied, n.log.Newest(n.logMax)))
	}
	return least
}

// current gives up what was proposed in another term than that in which this node leads.
func (n *node) current() {
	if len(n.waiting) == 0 {
		return
	}
	status := n.raw.BasicStatus()
	if status.RaftState != raft.StateLeader || status.GetTerm() != n.term {
		n.drop(errUnknown)
	}
}

// work does all that raft asks for.
func (n *node) work() error {
	if n.refused != nil {
		n.drop(n.refused)
		return n.refused
	}
	var away []*pb.Message
	for n.ask(); n.raw.HasReady(); n.ask() {
		n.current()
		var store, apply *pb.Message
		away = away[:0]
		ready := n.raw.Ready()
		n.confirmed(ready.ReadStates)
		for _, m := range ready.Messages {
			switch m.GetTo() {
			case raft.LocalAppendThread:
				store = m
			case raft.LocalApplyThread:
				apply = m
			default:
				away = append(away, m)
			}
		}
		// What the messages say is committed is seen here before others can show it.
		if apply != nil {
			if err := n.apply(apply); err != nil {
				return err
			}
			n.show()
		}
		for _, m := range away {
			n.deliver(m)
		}
		// A leader's messages are on their way while it writes.
		if store != nil {
			if err := n.store(store); err != nil {
				return err
			}
		}
	}
	n.current()
	n.handed()
	n.show()
	return nil
}

// show publishes what others may see of the node.
func (n *node) show() {
	s := n.raw.BasicStatus()
	market, current := n.machine.Market()
	n.publish(view{applied: n.applied, epoch: n.machine.Epoch(), beat: n.machine.Beat(),
		trimmed: n.machine.Trimmed(), lost: n.machine.Lost(), chain: n.machine.Chain(),
		format: n.machine.Format(), unread: n.unread, market: market, current: current,
		term: s.GetTerm(), lead: s.Lead,
		leading: s.RaftState == raft.StateLeader, committed: s.GetCommit(),
		settled:   n.appliedTerm == s.GetTerm(),
		elections: n.elections, peers: n.peers, logBytes: n.logBytes,
		ahead: n.ahead, wrong: n.wrong,
		impossible: n.impossible,
		members:    n.machine.Members()})
}

// store makes a vote and entries durable, and then lets those hear of it that wait for it.
func (n *node) store(m *pb.Message) error {
	if m.Snapshot != nil {
		return fmt.Errorf("%w: raft has a snapshot to be stored", persistence.ErrInvalid)
	}
	if m.Term != nil && m.GetTerm() > 0 {
		n.commit = max(n.commit, m.GetCommit())
		if err := n.log.Vote(m.GetTerm(), m.GetVote()); err != nil {
			return err
		}
	}
	if err := n.log.Append(m.Entries, n.commit); err != nil {
		return err
	}
	return n.respond(m)
}

func (n *node) respond(m *pb.Message) error {
	for _, r := range m.Responses {
		if r.GetTo() != n.id {
			n.deliver(r)
		} else if err := n.raw.Step(r); err != nil {
			return err
		}
	}
	return nil
}

// apply applies committed entries, and answers those that were proposed here. raft is not told of
// those that this node does not read, and goes on without.
func (n *node) apply(m *pb.Message) error {
	for _, entry := range m.Entries {
		if n.unread != nil {
			return nil
		}
		if err := n.applyOne(entry); err != nil {
			return err
		}
	}
	if n.unread != nil {
		return nil
	}
	return n.respond(m)
}

func (n *node) applyOne(entry *pb.Entry) error {
	at := entry.GetIndex()
	if at != n.applied+1 {
		return fmt.Errorf("%w: entry %d is to be applied behind entry %d", persistence.ErrCorrupt,
			at, n.applied)
	}
	n.applied, n.appliedTerm = at, entry.GetTerm()
	e, err := decode(entry, n.reads)
	if err != nil {
		return fmt.Errorf("entry %d: %w", at, err)
	} else if e == nil {
		return nil
	}
	before, joint := n.machine.Members(), n.machine.Joint()
	a := n.machine.Apply(e)
	if e.Kind.Changes() && a.Outcome == machine.Done {
		if e.Kind == machine.Join {
			n.joins = n.number
		}
		if err := n.change(before, joint); err != nil {
			return fmt.Errorf("entry %d: %w", at, err)
		}
	}
	if e.Kind == machine.Format && a.Outcome == machine.Done {
		n.raised()
	}
	if e.Kind == machine.Market && a.Outcome == machine.Done {
		n.tellAgreed()
	}
	if e.Kind == machine.Append && a.Outcome == machine.Done {
		n.index.add(at, e)
	}
	if n.saw != nil {
		n.saw(at, e, a)
	}
	if e.ID.Node == n.id && e.ID.Boot == n.log.Own().Boot {
		n.show() // what is answered is seen
		n.answer(e.ID.Number, a)
	}
	return nil
}

// deliver sends a message to a peer.
func (n *node) deliver(m *pb.Message) {
	to := n.route(m.GetTo())
	if to == "" || n.muted() {
		return
	}
	f := n.frame(frameMessage)
	b, err := proto.MarshalOptions{}.MarshalAppend(f.begin(), m)
	if err != nil {
		n.logger.Error("a message of raft cannot be encoded", "error", err)
		return
	}
	n.send(to, b)
}
