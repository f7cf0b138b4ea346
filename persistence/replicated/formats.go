package replicated

import (
	"fmt"

	"exchange/persistence"
	"exchange/persistence/internal/machine"
)

// proposeFormat enables the newest format that the programs of all members read, including
// learners. A joining node's format is checked before it gets an ID: see answerJoiner. Joins and
// formats are changes, made one at a time, so neither overlooks the other.
func (n *node) proposeFormat() {
	lowest := n.maxFormat
	for _, m := range n.machine.Members() {
		if m.ID != n.id && m.ID != 0 {
			lowest = min(lowest, n.peerFormats[m.ID])
		}
	}
	if lowest > n.machine.Format() {
		n.tryPropose(&machine.Entry{Kind: machine.Format, Next: uint64(lowest)})
	}
}

// formatRaised handles a newly applied format. A node that cannot read it stops applying. It
// continues to vote and append, campaigns last, and hands over a lead that it holds.
func (n *node) formatRaised() {
	format := n.machine.Format()
	if format <= n.maxFormat {
		n.logger.Info("all members read another format: it may be written", "format", format)
		return
	}
	n.formatErr = fmt.Errorf("%w: format %d is applied, and this program reads formats up to %d",
		persistence.ErrFormat, format, n.maxFormat)
	n.logger.Error("this node only votes, because its program is too old",
		"error", n.formatErr)
}

// transferIfTooOld hands the lead over if this node cannot apply its own proposals.
func (n *node) transferIfTooOld() {
	if n.formatErr != nil && n.transfer.caller == nil {
		n.transferLead(0, make(chan error, 1))
	}
}
