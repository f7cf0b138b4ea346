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
// them. Members that lack more than logMax do not count. The replayer holds the state at the log's
// next beginning.
type logTrim struct {
	replayer
	droppedTo  uint64 // last entry dropped from the log
	allowedSeq uint64 // sequence up to which neither local store nor archive needs the journal
	minTrim    uint64 // fewest entries that a checkpoint frees
}

// A replayer replays the log into a machine of its own, in small steps, because each delays raft.
type replayer struct {
	state *machine.State
	index uint64 // last entry applied to state
}

// step replays some of the applied entries, at most up to upTo.
func (r *replayer) step(log *raftlog.Log, upTo uint64, maxFormat uint8) error {
	to := min(upTo, r.index+trimAtOnce)
	err := log.Read(r.index, to, func(entry *pb.Entry) error {
		e, err := decode(entry, maxFormat)
		if err == nil && e != nil {
			r.state.Apply(e)
		}
		return err
	})
	if err == nil {
		r.index = max(r.index, to)
	}
	return err
}

// target returns the entry up to which the log may be dropped.
func (n *node) target() uint64 {
	seq := min(n.machine.Trimmed(), n.trim.allowedSeq)
	return min(n.machine.Floor(), n.applied, n.index.upTo(seq))
}

// trimStep replays some entries, and truncates the log once it has reached the target.
func (n *node) trimStep() error {
	t := &n.trim
	target := n.target()
	if target < t.droppedTo+t.minTrim {
		return nil
	}
	if err := t.step(n.log, target, n.maxFormat); err != nil || t.index < target {
		return err
	}
	if err := n.log.Truncate(target, t.state.Encode()); err != nil {
		return err
	}
	t.droppedTo = target
	n.index.dropUpTo(target)
	return nil
}
