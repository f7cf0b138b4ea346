package replicated

import (
	"fmt"

	"exchange/persistence"
	"exchange/persistence/internal/machine"
)

// frame returns a frame of this node, without its payload.
func (n *node) frame(kind byte) frame {
	return frame{kind: kind, reads: n.reads, id: n.id, start: n.log.Own()}
}

// raise lets the newest format be written that the programs of all members read, learners among
// them. A node that joins later is asked before it gets an ID: see welcome. Both are changes, of
// which one at a time is under way, so neither misses the other.
func (n *node) raise() {
	least := n.reads
	for _, m := range n.machine.Members() {
		if m.ID != n.id && m.ID != 0 {
			least = min(least, n.told[m.ID])
		}
	}
	if least > n.machine.Format() {
		n.attempt(&machine.Entry{Kind: machine.Format, Next: uint64(least)})
	}
}

// raised takes note of another applied format. A node that does not read it applies no more. It
// votes on, takes what others append, and campaigns last. If it leads it hands the lead over.
func (n *node) raised() {
	format := n.machine.Format()
	if format <= n.reads {
		n.logger.Info("all members read another format: it may be written", "format", format)
		return
	}
	n.unread = fmt.Errorf("%w: format %d is applied, and this program reads formats up to %d",
		persistence.ErrFormat, format, n.reads)
	n.logger.Error("this node votes, and neither serves nor leads, because its program is too old",
		"error", n.unread)
}

// handUnread hands the lead over, because this node does not apply what it would propose.
func (n *node) handUnread() {
	if n.unread != nil && n.handing.caller == nil {
		n.hand(0, make(chan error, 1))
	}
}
