package replicated

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"exchange/persistence/internal/machine"
	"exchange/persistence/internal/raftlog"
)

const (
	// trimEntries is how many entries the log has to lose for a checkpoint to be worth its syncs.
	trimEntries = 1024
	// trimAtOnce is how many entries one tick goes through.
	trimAtOnce = 256
)

// trimming lets the log forget entries that are not needed any more: each member has them, the
// owner has trimmed the journal above them, and neither the images of the local store nor this
// node's archive need them. A member that lacks more than the log may keep is not waited for. A
// second machine follows behind the first, up to where the log will begin.
type trimming struct {
	walk
	begins  uint64 // entry that the log begins behind
	allowed uint64 // sequence up to which neither the local store nor the archive needs the journal
	least   uint64 // entries that a checkpoint is worth
}

// A walk is a machine that goes through the log some entries at a time, because raft's time stands
// still meanwhile.
type walk struct {
	base   *machine.State
	behind uint64 // entry that base is behind
}

// step goes through some entries, which are applied here, up to one.
func (w *walk) step(log *raftlog.Log, upTo uint64, reads uint8) error {
	to := min(upTo, w.behind+trimAtOnce)
	err := log.Read(w.behind, to, func(entry *pb.Entry) error {
		e, err := decode(entry, reads)
		if err == nil && e != nil {
			w.base.Apply(e)
		}
		return err
	})
	if err == nil {
		w.behind = max(w.behind, to)
	}
	return err
}

// target returns the entry up to which the log may be forgotten.
func (n *node) target() uint64 {
	seq := min(n.machine.Trimmed(), n.trim.allowed)
	return min(n.machine.Floor(), n.applied, n.index.upTo(seq))
}

// trimStep goes through some entries, and cuts the log off below when it has come to the end.
func (n *node) trimStep() error {
	t := &n.trim
	target := n.target()
	if target < t.begins+t.least {
		return nil
	}
	if err := t.step(n.log, target, n.reads); err != nil || t.behind < target {
		return err
	}
	if err := n.log.Truncate(target, t.base.Encode()); err != nil {
		return err
	}
	t.begins = target
	n.index.forget(target)
	return nil
}
