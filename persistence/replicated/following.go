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

// see notes what the node knows of all members. It is called each tick.
func (n *node) see() {
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
			Newest:   m.Nonce != "" && m.ID == n.machine.Given(),
			Replaces: n.nameOf(m.Replaces), Match: match[m.ID], Reads: n.told[m.ID],
			Market: n.markets[m.ID]}
		if m.ID == n.id {
			p.Reads, p.Market, p.Unfit = n.reads, n.ownMarket(), n.unfit() != nil
		} else {
			p.SilentTicks, p.Unfit = n.ticks-n.heard[m.ID], n.saysUnfit(m.ID)
		}
		p.Differs = p.Market != 0 && n.applies != 0 && p.Market != n.applies
		n.peers = append(n.peers, p)
	}
	slices.SortStableFunc(n.peers, func(a, b persistence.Peer) int {
		return strings.Compare(a.Name, b.Name)
	})
}

// Standing returns what this node knows of the nodes.
func (s *store) Standing() persistence.Standing {
	v := s.seen.Load()
	t := persistence.Standing{Node: s.log.Identity().Name, Term: v.term, Elections: v.elections,
		Applied: v.applied, Committed: v.committed, LogBytes: v.logBytes, Peers: v.peers,
		Impossible: v.impossible, Format: v.format, ClockAhead: v.ahead, ClockWrong: v.wrong}
	for _, m := range v.members {
		if m.ID == v.lead && v.lead != 0 {
			t.Leader = m.Name
		}
	}
	return t
}

// Unfit says that this node could not own the engine, and why; nil: it could.
func (s *store) Unfit(why error) { s.unfit.Store(&why) }

func (s *store) whyUnfit() error {
	if why := s.unfit.Load(); why != nil {
		return *why
	}
	return nil
}

// Leads reports whether this node leads, as far as it knows.
func (s *store) Leads() bool { return s.seen.Load().leading }

// Follow waits until this node has a batch above after, or leads. ErrFormat: it gets no more.
func (s *store) Follow(ctx context.Context, after uint64) (leads bool, err error) {
	s.followers.Add(1)
	defer s.followers.Add(-1)
	var unread error
	err = s.until(ctx, func(v *view) bool {
		leads, unread = v.leading, v.unread
		if v.beat.End.Seq > after {
			unread = nil
		}
		return leads || v.beat.End.Seq > after || unread != nil
	})
	if err == nil {
		err = unread
	}
	return leads && err == nil, err
}

// lead waits until this node leads.
func (s *store) lead(ctx context.Context) error {
	return s.until(ctx, func(v *view) bool { return v.leading })
}

// until waits for a view.
func (s *store) until(ctx context.Context, good func(*view) bool) error {
	for {
		s.changes.Lock()
		next := s.changes.next
		s.changes.Unlock()
		select {
		case <-s.done:
			return s.failure
		default:
		}
		if good(s.seen.Load()) {
			return nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.done:
			return s.failure
		}
	}
}

// show makes a view the newest, and tells those that wait for another leader or another batch.
func (s *store) show(v view) {
	before := s.seen.Swap(&v)
	if before.leading == v.leading && before.lead == v.lead && before.unread == v.unread &&
		(before.beat.End == v.beat.End || s.followers.Load() == 0) {
		return
	}
	s.changes.Lock()
	defer s.changes.Unlock()
	close(s.changes.next)
	s.changes.next = make(chan struct{})
}
