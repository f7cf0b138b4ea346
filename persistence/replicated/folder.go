package replicated

import (
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
	"exchange/persistence/internal/machine"
	"exchange/persistence/internal/raftlog"
)

// foundedIndex is the index and term of the entry, never stored, that precedes a founded cluster's
// log. A log that begins at the first entry would wait for the other nodes of a new cluster.
const foundedIndex = 1

// Formed reports whether a node's data folder holds the log of a cluster.
func Formed(folder string) (bool, error) {
	return raftlog.Formed(vfs.Default, vfs.Default.PathJoin(folder, logFolder))
}

// Readable returns ErrVersion if another version of the program wrote a node's data folder. It
// changes nothing.
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

// Found creates the log of a new cluster in a node's data folder. The node is its only voter, and
// the others join it. seq is the end of the journal that the node's local store was restored from.
// After a crash there is no log, or a complete one. ErrInvalid: the folder holds a log.
func Found(folder, cluster, node string, seq uint64) error {
	return foundIn(vfs.Default, folder, cluster, node, seq)
}

func foundIn(files vfs.FS, folder, cluster, node string, seq uint64) error {
	state := machine.Restored(node, seq, foundedIndex, time.Now().UnixMilli())
	d := raftlog.Identity{Cluster: cluster, Name: node, Node: state.LastAssignedID()}
	return raftlog.Form(files, files.PathJoin(folder, logFolder), d,
		raftlog.Base{Index: foundedIndex, Term: foundedIndex, Machine: state.Encode()})
}
