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
	// transferTicks is the time limit of a transfer.
	transferTicks = 2 * electionTicks
	// maxLag bounds the entries that the next leader may lack.
	maxLag = 1024
)

var (
	errNoTarget = errors.New("the node lacks too much of the log, does not respond, " +
		"or is no voter")
	errTransferring    = errors.New("this node is already handing the lead over")
	errTransferTimeout = errors.New("this node still leads: the other one did not take the lead " +
		"in time")
)

// A leadTransfer is a pending transfer of the lead.
type leadTransfer struct {
	caller    chan<- error // nil: none
	ticksLeft int          // until it fails
}

// transferLead starts a transfer of the lead to a node; 0: to any. The caller gets one result.
func (n *node) transferLead(to uint64, caller chan<- error) {
	err := n.pickTransferTarget(&to)
	if err != nil {
		caller <- err
		return
	}
	n.transfer = leadTransfer{caller, transferTicks}
	n.raw.TransferLeader(to)
}

func (n *node) pickTransferTarget(to *uint64) error {
	switch {
	case n.raw.BasicStatus().RaftState != raft.StateLeader:
		return errNotLeading
	case n.transfer.caller != nil:
		return errTransferring
	case *to == n.id:
		return fmt.Errorf("%w: this node already leads", persistence.ErrInvalid)
	}
	last, err := n.log.LastIndex()
	if err != nil {
		return err
	}
	best, most, fits := uint64(0), uint64(0), false
	n.raw.WithProgress(func(id uint64, t raft.ProgressType, p tracker.Progress) {
		if id == n.id || t == raft.ProgressTypeLearner || *to != 0 && id != *to ||
			p.Match+maxLag < last || n.tickCount-n.lastFrame[id] > electionTicks ||
			*to == 0 && (n.peerClockWrong(id) || n.peerFormats[id] < n.machine.Format()) {
			return
		}
		fit := !n.peerUnfit(id)
		if best == 0 || fit && !fits || fit == fits && p.Match > most {
			best, most, fits = id, p.Match, fit
		}
	})
	if best == 0 {
		return errNoTarget
	}
	*to = best
	return nil
}

// finishTransfer answers the caller once this node no longer leads.
func (n *node) finishTransfer() {
	if n.transfer.caller != nil && n.raw.BasicStatus().RaftState != raft.StateLeader {
		n.transfer.caller <- nil
		n.transfer = leadTransfer{}
	}
}

// transferTick fails a transfer that takes too long.
func (n *node) transferTick() {
	if n.transfer.caller == nil {
		return
	}
	if n.transfer.ticksLeft--; n.transfer.ticksLeft <= 0 {
		n.transfer.caller <- errTransferTimeout
		n.transfer = leadTransfer{}
	}
}

// Transfer hands the lead to another node; "": to any.
func (s *store) Transfer(ctx context.Context, to string) error {
	id := uint64(0)
	for _, m := range s.view.Load().members {
		if m.Name == to && m.Role == machine.Voter {
			id = m.ID
		}
	}
	if to != "" && id == 0 {
		return fmt.Errorf("%w: there is no voter %q", persistence.ErrInvalid, to)
	}
	c := make(chan error, 1)
	if err := s.onNode(ctx, func(n *node) { n.transferLead(id, c) }); err != nil {
		return err
	}
	err := s.awaitResult(ctx, c)
	if err != nil {
		return fmt.Errorf("the lead is not handed over to %q: %w", to, err)
	}
	return nil
}
