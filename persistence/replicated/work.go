package replicated

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"exchange/persistence"
	"exchange/persistence/internal/machine"
	"exchange/persistence/internal/raftlog"
)

// setup holds a node's dependencies and options besides its log.
type setup struct {
	logger    *slog.Logger
	send      func(to string, frame []byte)
	random    func(n int) int // returns a number below n
	now       func() time.Time
	publish   func(view)
	onApply   func(index uint64, e *machine.Entry, a machine.Answer)
	index     *index
	formation *formation
	onMembers func([]machine.Member) // receives each new membership; may be nil
	minTrim   uint64                 // fewest entries that a checkpoint frees; 0: trimEntries
	logMax    uint64                 // see node
	maxFormat uint8                  // newest format that is read; 0: this program's
	market    *OwnMarket             // see Options.Market
	onMarket  func(market []byte)    // receives the applied market part; may be nil
	unfit     func() error           // why this node could not serve; nil: it always could
	cut       func(name string)      // ends a peer's connections; may be nil
}

// newNode makes a node on an open log.
func newNode(log *raftlog.Log, state []byte, s setup) (*node, error) {
	n := &node{id: log.Identity().Node, log: log, logger: s.logger, send: s.send,
		random: s.random, now: s.now, publish: s.publish, onApply: s.onApply, index: s.index,
		proposals: newProposals(), formation: s.formation, onMembers: s.onMembers,
		logMax: s.logMax, maxFormat: cmp.Or(s.maxFormat, machine.Newest), fileMarket: s.market,
		onMarket: s.onMarket, unfit: s.unfit, cut: s.cut, peerClocks: map[uint64]clockReading{},
		peerUnfits: map[uint64]uint64{}, lastFrame: map[uint64]uint64{},
		futureIDs: map[string]uint64{}, offeredAt: map[uint64]uint64{},
		peerFormats: map[uint64]uint8{}, peerMarkets: map[uint64]uint64{},
		cuts: map[string]uint64{}}
	if n.cut == nil {
		n.cut = func(string) {}
	}
	if n.unfit == nil {
		n.unfit = func() error { return nil }
	}
	if n.onMembers == nil {
		n.onMembers = func([]machine.Member) {}
	}
	if n.onMarket == nil {
		n.onMarket = func([]byte) {}
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
	n.trim = logTrim{replayer: replayer{n.machine.Clone(), n.applied}, droppedTo: n.applied,
		minTrim: cmp.Or(s.minTrim, trimEntries)}
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
	n.resetElection()
	if n.machine.Format() > n.maxFormat {
		n.formatRaised()
	}
	n.reportMarket()
	n.updatePeers()
	n.onMembers(n.machine.Members())
	if n.alone() {
		n.elections++
		return n, n.raw.Campaign()
	}
	return n, nil
}

// run is the one goroutine that uses the node.
func (s *store) run(n *node, ticks <-chan time.Time) {
	defer close(s.done)
	err := n.work()
	for err == nil {
		select {
		case <-s.stop:
			err = errClosed
		case r := <-s.frames:
			err = n.receive(r.from, r.frame)
		case r := <-s.proposed:
			n.propose(r.entry, r.caller)
		case q := <-s.confirms:
			n.confirm(q)
		case call := <-s.nodeCalls:
			call(n)
		case <-ticks:
			err = n.tick()
		}
		if err == nil {
			err = s.drain(n)
		}
		if err == nil {
			err = n.work()
		}
	}
	if !errors.Is(err, errClosed) {
		s.logger.Error("the node has ended", "store", s.name, "error", err)
	}
	s.failure = err
	n.proposals.failPending(err)
}

// drain processes further queued inputs, so that they share one sync.
func (s *store) drain(n *node) error {
	for range maxDrain {
		select {
		case r := <-s.frames:
			if err := n.receive(r.from, r.frame); err != nil {
				return err
			}
		case r := <-s.proposed:
			n.propose(r.entry, r.caller)
		case q := <-s.confirms:
			n.confirm(q)
		default:
			return nil
		}
	}
	return nil
}

// tick advances the node's time. Raft draws its election timeouts from a source that cannot be
// reproduced, so the node counts for itself.
func (n *node) tick() error {
	n.tickCount++
	n.updatePeers()
	// each tick at first, so that a wrong clock is found before the node can lead
	if n.tickCount%askTicks == 1 || n.tickCount < askTicks || n.muted() {
		n.askClocks()
	}
	n.notifyBehind()
	n.confirmRoundTick()
	n.transferTick()
	n.completeReplacement()
	n.proposeQueued()
	if n.raw.BasicStatus().RaftState == raft.StateLeader {
		n.proposeFormat()
		n.transferIfTooOld()
		n.raw.Tick()
		return n.trimStep()
	}
	n.raw.TickQuiesced()
	if n.silent++; n.mayCampaign() && n.isVoter() {
		n.resetElection()
		n.elections++
		if err := n.raw.Campaign(); err != nil {
			return err
		}
	}
	return n.trimStep()
}

// work processes all of raft's pending work.
func (n *node) work() error {
	if n.endedBy != nil {
		n.proposals.failPending(n.endedBy)
		return n.endedBy
	}
	var away []*pb.Message
	for n.advanceConfirmRound(); n.raw.HasReady(); n.advanceConfirmRound() {
		n.failStale()
		var store, apply *pb.Message
		away = away[:0]
		ready := n.raw.Ready()
		n.takeReadStates(ready.ReadStates)
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
		// Commits are visible here before messages make them visible elsewhere.
		if apply != nil {
			if err := n.apply(apply); err != nil {
				return err
			}
			n.publishView()
		}
		for _, m := range away {
			n.deliver(m)
		}
		// A leader's messages are in flight while it writes.
		if store != nil {
			if err := n.persist(store); err != nil {
				return err
			}
		}
	}
	n.failStale()
	n.finishTransfer()
	n.publishView()
	return nil
}

// persist makes a vote and entries durable, and then sends the responses that depend on them.
func (n *node) persist(m *pb.Message) error {
	if m.Snapshot != nil {
		return fmt.Errorf("%w: raft asks to store a snapshot", persistence.ErrInvalid)
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

// apply applies committed entries, and answers those proposed here. Once the applied format is too
// new for this program, it acknowledges no more to raft, which continues.
func (n *node) apply(m *pb.Message) error {
	for _, entry := range m.Entries {
		if n.formatErr != nil {
			return nil
		}
		if err := n.applyOne(entry); err != nil {
			return err
		}
	}
	if n.formatErr != nil {
		return nil
	}
	return n.respond(m)
}

func (n *node) applyOne(entry *pb.Entry) error {
	at := entry.GetIndex()
	if at != n.applied+1 {
		return fmt.Errorf("%w: entry %d cannot be applied after entry %d", persistence.ErrCorrupt,
			at, n.applied)
	}
	n.applied, n.appliedTerm = at, entry.GetTerm()
	e, err := decode(entry, n.maxFormat)
	if err != nil {
		return fmt.Errorf("entry %d: %w", at, err)
	} else if e == nil {
		return nil
	}
	before, joint := n.machine.Members(), n.machine.Joint()
	a := n.machine.Apply(e)
	if e.Kind.ChangesCluster() && a.Outcome == machine.Done {
		if e.Kind == machine.Join {
			n.lastBeforeJoin = n.proposals.number
		}
		if err := n.applyMembers(before, joint); err != nil {
			return fmt.Errorf("entry %d: %w", at, err)
		}
	}
	if e.Kind == machine.Format && a.Outcome == machine.Done {
		n.formatRaised()
	}
	if e.Kind == machine.Market && a.Outcome == machine.Done {
		n.reportMarket()
	}
	if e.Kind == machine.Append && a.Outcome == machine.Done {
		n.index.add(at, e)
	}
	if n.onApply != nil {
		n.onApply(at, e, a)
	}
	if e.ID.Node == n.id && e.ID.Boot == n.log.Own().Boot {
		n.publishView() // before the caller continues
		n.proposals.answer(e.ID.Number, a)
	}
	return nil
}
