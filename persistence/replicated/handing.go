package replicated

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"

	"exchange/persistence"
	"exchange/persistence/internal/machine"
)

const (
	// handTicks is how long a node tries to hand the lead over.
	handTicks = 2 * electionTicks
	// maxLag is how many entries a node may lack that the lead is handed to.
	maxLag = 1024
)

var (
	errLags    = errors.New("the node lacks too much of the log, is not heard of, or is no voter")
	errHands   = errors.New("this node hands the lead over already")
	errNotDone = errors.New("this node leads on: the other one did not take the lead in time")
)

// handing is a lead that is handed over.
type handing struct {
	caller chan<- error // nil: none
	left   int          // ticks
}

// hand begins to hand the lead over to a node, 0: to any. The caller hears once of it.
func (n *node) hand(to uint64, caller chan<- error) {
	err := n.mayHand(&to)
	if err != nil {
		caller <- err
		return
	}
	n.handing = handing{caller, handTicks}
	n.raw.TransferLeader(to)
}

func (n *node) mayHand(to *uint64) error {
	switch {
	case n.raw.BasicStatus().RaftState != raft.StateLeader:
		return errNotLeading
	case n.handing.caller != nil:
		return errHands
	case *to == n.id:
		return fmt.Errorf("%w: the node that leads is to take the lead", persistence.ErrInvalid)
	}
	last, err := n.log.LastIndex()
	if err != nil {
		return err
	}
	best, most, fits := uint64(0), uint64(0), false
	n.raw.WithProgress(func(id uint64, t raft.ProgressType, p tracker.Progress) {
		if id == n.id || t == raft.ProgressTypeLearner || *to != 0 && id != *to ||
			p.Match+maxLag < last || n.ticks-n.heard[id] > electionTicks ||
			*to == 0 && (n.looksWrong(id) || n.told[id] < n.machine.Format()) {
			return
		}
		fit := !n.saysUnfit(id)
		if best == 0 || fit && !fits || fit == fits && p.Match > most {
			best, most, fits = id, p.Match, fit
		}
	})
	if best == 0 {
		return errLags
	}
	*to = best
	return nil
}

// handed tells the caller if this node leads no more.
func (n *node) handed() {
	if n.handing.caller != nil && n.raw.BasicStatus().RaftState != raft.StateLeader {
		n.handing.caller <- nil
		n.handing = handing{}
	}
}

// handTick tells the caller if it takes too long.
func (n *node) handTick() {
	if n.handing.caller == nil {
		return
	}
	if n.handing.left--; n.handing.left <= 0 {
		n.handing.caller <- errNotDone
		n.handing = handing{}
	}
}

// Transfer hands the lead to another node; "": to any.
func (s *store) Transfer(ctx context.Context, to string) error {
	id := uint64(0)
	for _, m := range s.seen.Load().members {
		if m.Name == to && m.Role == machine.Voter {
			id = m.ID
		}
	}
	if to != "" && id == 0 {
		return fmt.Errorf("%w: there is no voter %q", persistence.ErrInvalid, to)
	}
	c := make(chan error, 1)
	if err := s.call(ctx, func(n *node) { n.hand(id, c) }); err != nil {
		return err
	}
	err := s.told(ctx, c)
	if err != nil {
		return fmt.Errorf("the lead is not handed over to %q: %w", to, err)
	}
	return nil
}
