package replicated

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"exchange/persistence/internal/machine"
	"exchange/persistence/internal/raftlog"
)

const (
	// trimEntries is the number of freed entries that justifies a checkpoint's syncs.
	trimEntries = 1024
	// trimAtOnce bounds the entries replayed in one tick.
	trimAtOnce = 256
)

// A logTrim drops log entries that are no longer needed: each member has them, the owner has
// trimmed the journal above them, and neither the local store's images nor this node's archive need
// them. Members that lack more than logMax do not count. A second machine lags behind the first, at
// the future beginning of the log.
type logTrim struct {
	walk
	forgotten uint64 // last entry dropped from the log
	allowed   uint64 // sequence up to which neither local store nor archive needs the journal
	least     uint64 // entries that a checkpoint must free
}

// A walk is a machine that replays the log in small steps, because each one delays raft.
type walk struct {
	base  *machine.State
	index uint64 // last entry applied to base
}

// step replays some of the applied entries, at most up to upTo.
func (w *walk) step(log *raftlog.Log, upTo uint64, reads uint8) error {
	to := min(upTo, w.index+trimAtOnce)
	err := log.Read(w.index, to, func(entry *pb.Entry) error {
		e, err := decode(entry, reads)
		if err == nil && e != nil {
			w.base.Apply(e)
		}
		return err
	})
	if err == nil {
		w.index = max(w.index, to)
	}
	return err
}

// target returns the entry up to which the log may be dropped.
func (n *node) target() uint64 {
	seq := min(n.machine.Trimmed(), n.trim.allowed)
	return min(n.machine.Floor(), n.applied, n.index.upTo(seq))
}

// trimStep replays some entries, and truncates the log once it has reached the target.
func (n *node) trimStep() error {
	t := &n.trim
	target := n.target()
	if target < t.forgotten+t.least {
		return nil
	}
	if err := t.step(n.log, target, n.reads); err != nil || t.index < target {
		return err
	}
	if err := n.log.Truncate(target, t.base.Encode()); err != nil {
		return err
	}
	t.forgotten = target
	n.index.forget(target)
	return nil
}
