package replicated

import (
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
	"exchange/persistence/internal/machine"
	"exchange/persistence/internal/raftlog"
)

// foundedAt is the entry, and its term, that the log of a founded cluster begins behind. It is not
// there. A log that begins behind none would wait for the other nodes of a new cluster.
const foundedAt = 1

// Formed reports whether a node's data folder has the log of a cluster.
func Formed(folder string) (bool, error) {
	return raftlog.Formed(vfs.Default, vfs.Default.PathJoin(folder, logFolder))
}

// Readable returns the ErrVersion of a node's data folder that another version of the program has
// written. It changes nothing.
func Readable(folder string) error {
	base, err := raftlog.Readable(vfs.Default, vfs.Default.PathJoin(folder, logFolder))
	if base == nil || err != nil {
		return err
	}
	if _, err = machine.DecodeState(base); errors.Is(err, persistence.ErrVersion) {
		return err
	}
	return nil
}

// Found makes the log of a new cluster in a node's data folder. The node is its only voter, and the
// others join it. seq is where the journal ends that a restore has made the node's local store of.
// A crash leaves no log, or a whole one. ErrInvalid: the folder has a log.
func Found(folder, cluster, node string, seq uint64) error {
	return found(vfs.Default, folder, cluster, node, seq)
}

func found(files vfs.FS, folder, cluster, node string, seq uint64) error {
	state := machine.Restored(node, seq, foundedAt, time.Now().UnixMilli())
	d := raftlog.Identity{Cluster: cluster, Name: node, Node: state.Given()}
	return raftlog.Form(files, files.PathJoin(folder, logFolder), d,
		raftlog.Base{Index: foundedAt, Term: foundedAt, Machine: state.Encode()})
}
