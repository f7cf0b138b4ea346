package replicated

import (
	"context"
	"slices"
	"strings"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"

	"exchange/persistence"
	"exchange/persistence/internal/machine"
)

// roles names the roles of the machine's members.
var roles = map[machine.Role]persistence.Role{machine.Voter: persistence.RoleVoter,
	machine.Leaving: persistence.RoleLeaving, machine.Learner: persistence.RoleLearner,
	machine.Awaited: persistence.RoleAwaited}

// updatePeers refreshes the peers' state in the view. It is called each tick.
func (n *node) updatePeers() {
	match := map[uint64]uint64{}
	if n.raw.BasicStatus().RaftState == raft.StateLeader {
		n.raw.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
			match[id] = p.Match
		})
	} else if last, err := n.log.LastIndex(); err == nil {
		match[n.id] = last
	}
	n.peers, n.logBytes = nil, n.log.Size()
	for _, m := range n.machine.Members() {
		p := persistence.Peer{Name: m.Name, Address: m.Address, Role: roles[m.Role],
			Newest:   m.Nonce != "" && m.ID == n.machine.LastAssignedID(),
			Replaces: n.nameOf(m.Replaces), Match: match[m.ID], Reads: n.peerFormats[m.ID],
			Market: n.peerMarkets[m.ID]}
		if m.ID == n.id {
			p.Reads, p.Market, p.Unfit = n.maxFormat, n.ownMarket(), n.unfit() != nil
		} else {
			p.SilentTicks, p.Unfit = n.tickCount-n.lastFrame[m.ID], n.peerUnfit(m.ID)
		}
		p.Differs = p.Market != 0 && n.marketDigest != 0 && p.Market != n.marketDigest
		n.peers = append(n.peers, p)
	}
	slices.SortStableFunc(n.peers, func(a, b persistence.Peer) int {
		return strings.Compare(a.Name, b.Name)
	})
}

// Standing returns this node's view of the cluster.
func (s *store) Standing() persistence.Standing {
	v := s.view.Load()
	t := persistence.Standing{Node: s.log.Identity().Name, Term: v.term, Elections: v.elections,
		Applied: v.applied, Committed: v.committed, LogBytes: v.logBytes, Peers: v.peers,
		Impossible: v.impossible, Format: v.format, ClockAhead: v.clockAhead,
		ClockWrong: v.clockWrong}
	for _, m := range v.members {
		if m.ID == v.leaderID && v.leaderID != 0 {
			t.Leader = m.Name
		}
	}
	return t
}

// Unfit sets the reason why this node cannot own the engine; nil: it can.
func (s *store) Unfit(why error) { s.unfit.Store(&why) }

func (s *store) whyUnfit() error {
	if why := s.unfit.Load(); why != nil {
		return *why
	}
	return nil
}

// Leads reports whether this node leads, by its newest view.
func (s *store) Leads() bool { return s.view.Load().leading }

// Follow waits until this node has a batch above after, or leads. ErrFormat: it cannot read more.
func (s *store) Follow(ctx context.Context, after uint64) (leads bool, err error) {
	s.batchWaiters.Add(1)
	defer s.batchWaiters.Add(-1)
	var formatErr error
	err = s.awaitView(ctx, func(v *view) bool {
		leads, formatErr = v.leading, v.formatErr
		if v.beat.End.Seq > after {
			formatErr = nil
		}
		return leads || v.beat.End.Seq > after || formatErr != nil
	})
	if err == nil {
		err = formatErr
	}
	return leads && err == nil, err
}

// awaitLead waits until this node leads.
func (s *store) awaitLead(ctx context.Context) error {
	return s.awaitView(ctx, func(v *view) bool { return v.leading })
}

// awaitView waits for a view that good accepts.
func (s *store) awaitView(ctx context.Context, good func(*view) bool) error {
	for {
		s.viewSignal.Lock()
		changed := s.viewSignal.c
		s.viewSignal.Unlock()
		select {
		case <-s.done:
			return s.failure
		default:
		}
		if good(s.view.Load()) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.done:
			return s.failure
		}
	}
}

// setView publishes a view, and wakes the callers that wait for another leader or batch.
func (s *store) setView(v view) {
	before := s.view.Swap(&v)
	if before.leading == v.leading && before.leaderID == v.leaderID &&
		before.formatErr == v.formatErr &&
		(before.beat.End == v.beat.End || s.batchWaiters.Load() == 0) {
		return
	}
	s.viewSignal.Lock()
	defer s.viewSignal.Unlock()
	close(s.viewSignal.c)
	s.viewSignal.c = make(chan struct{})
}
