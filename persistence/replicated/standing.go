package replicated

import (
	"context"

	"exchange/persistence"
)

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
