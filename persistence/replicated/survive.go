package replicated

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"exchange/persistence"
	"exchange/persistence/internal/machine"
	"exchange/persistence/internal/raftlog"
)

// A Survivor describes a node that is to survive alone.
type Survivor struct {
	Gone    []string    // the other members, which the survivor removes
	Folders []FolderEnd // its own first
}

// A FolderEnd is the end of the log in a data folder, by the log's own checksums.
type FolderEnd struct {
	Folder, Node string
	Term, Index  uint64 // of its last entry
	Seq          uint64 // end of its journal
	Ended        string // why its node ended permanently; "": it did not
	Fault        error  // why it cannot be opened; nil: it can
}

// isShorterThan reports whether another folder holds more: a later term, or more entries of it.
func (f *FolderEnd) isShorterThan(other *FolderEnd) bool {
	return other.Fault == nil && (other.Term > f.Term || other.Term == f.Term &&
		other.Index > f.Index)
}

// A Survival makes a node survive alone, because the others' disks are permanently lost.
type Survival struct {
	Folder, Cluster, Node string
	// Others are data folders of other nodes, to compare with this one's. In them only the list of
	// starts changes.
	Others []string
	// Shorter is the node's name to accept its folder although another one holds more, or although
	// the node ended permanently; "": refuse it then.
	Shorter string
	// Sure writes the node's log; without it the log is only inspected.
	Sure bool
	// Fatal is called when a sync has failed. It must end the process.
	Fatal func(error)
}

// Survive makes a node the only voter, with IDs from a new range: the node ignores others that come
// back, because their IDs are never valid again. From then on all entries of its log are committed.
// No process may use the folder. After a crash the folder is unchanged, or complete. ErrInvalid:
// the node is no voter, is already alone, or has no log.
func Survive(s *Survival) (*Survivor, error) {
	return s.run(vfs.Default, vfs.Default.PathJoin(s.Folder, logFolder))
}

func (s *Survival) run(files vfs.FS, dir string) (_ *Survivor, err error) {
	log, base, err := s.open(files, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if err := (&formation{cluster: s.Cluster, name: s.Node}).check(log.Identity()); err != nil {
		return nil, err
	}
	state, last, err := endState(log, base)
	if err != nil {
		return nil, err
	}
	own := folderEnd(log, state, last)
	own.Folder = s.Folder
	v := &Survivor{Folders: []FolderEnd{own}}
	for _, folder := range s.Others {
		v.Folders = append(v.Folders, s.inspect(files, folder))
	}
	voter := false
	for _, m := range state.Members() {
		if m.ID != log.Identity().Node {
			v.Gone = append(v.Gone, m.Name)
		} else {
			voter = m.Role == machine.Voter
		}
	}
	switch {
	case log.Fresh():
		return nil, fmt.Errorf("%w: the cluster has not begun: empty the nodes' folders and form "+
			"it again", persistence.ErrInvalid)
	case !voter:
		return nil, fmt.Errorf("%w: node %q is no voter by its own log, so the log may lack the "+
			"newest committed entries", persistence.ErrInvalid, s.Node)
	case len(v.Gone) == 0:
		return nil, fmt.Errorf("%w: node %q is already the only member", persistence.ErrInvalid,
			s.Node)
	case !s.Sure:
		return v, nil
	}
	if err := s.checkLongest(v); err != nil {
		return v, err
	}
	return v, errors.Join(log.Restore(), appendSurvive(log, last+1))
}

func (s *Survival) open(files vfs.FS, dir string) (*raftlog.Log, []byte, error) {
	return raftlog.Open(dir, raftlog.Options{FS: files, Fatal: s.Fatal,
		Nonce: persistence.NewID(), AtNeed: true, Anyway: true})
}

// inspect returns the end of the log in another data folder.
func (s *Survival) inspect(files vfs.FS, folder string) (f FolderEnd) {
	log, base, err := s.open(files, files.PathJoin(folder, logFolder))
	if err != nil {
		return FolderEnd{Folder: folder, Fault: err}
	}
	defer log.Close() //nolint:errcheck // nothing was written
	state, last, err := endState(log, base)
	if err == nil {
		f = folderEnd(log, state, last)
	}
	f.Folder, f.Node, f.Fault = folder, log.Identity().Name, err
	return f
}

func folderEnd(log *raftlog.Log, state *machine.State, last uint64) FolderEnd {
	return FolderEnd{Node: log.Identity().Name, Term: log.EndTerm(), Index: last,
		Seq: state.Beat().End.Seq, Ended: log.Ended()}
}

// checkLongest returns why the folder must be named by Shorter; nil: it need not be.
func (s *Survival) checkLongest(v *Survivor) error {
	own := &v.Folders[0]
	if s.Shorter == s.Node {
		return nil
	}
	for i := range v.Folders[1:] {
		if other := &v.Folders[i+1]; own.isShorterThan(other) {
			return fmt.Errorf("%w: folder %s of node %q ends at entry %d of term %d, sequence %d, "+
				"and that of node %q at entry %d of term %d, sequence %d: let %q survive, or name "+
				"this node with --shorter", persistence.ErrInvalid, other.Folder, other.Node,
				other.Index, other.Term, other.Seq, s.Node, own.Index, own.Term, own.Seq,
				other.Node)
		}
	}
	if own.Ended != "" {
		return fmt.Errorf("%w: %s: if no other folder has more, name this node with --shorter",
			persistence.ErrInvalid, own.Ended)
	}
	return nil
}

// endState returns the state after the log's last entry, and its index.
func endState(log *raftlog.Log, base []byte) (state *machine.State, last uint64, err error) {
	if state, err = machine.DecodeState(base); err != nil {
		return nil, 0, err
	}
	first, err1 := log.FirstIndex()
	last, err2 := log.LastIndex()
	if err := errors.Join(err1, err2); err != nil {
		return nil, 0, err
	}
	err = log.Read(first-1, last, func(entry *pb.Entry) error {
		e, err := decode(entry, machine.Newest)
		if err == nil && e != nil {
			state.Apply(e)
		}
		return err
	})
	if err == nil && state.Format() > machine.Newest {
		err = fmt.Errorf("%w: format %d is applied, and this program reads formats up to %d",
			persistence.ErrFormat, state.Format(), machine.Newest)
	}
	return state, last, err
}

// appendSurvive adds the entry, committed, in a term of its own. After a crash before the append,
// the folder only holds a vote of the node for itself.
func appendSurvive(log *raftlog.Log, index uint64) error {
	own := log.Identity()
	e := machine.Entry{Kind: machine.Survive, Name: own.Name,
		ID: machine.ID{Node: own.Node, Boot: log.Own().Boot, Number: 1}}
	data, err := proto.Marshal(&pb.ConfChangeV2{Context: e.Encode()})
	if err != nil {
		return err
	}
	term := log.State().GetTerm() + 1
	if err := log.Vote(term, own.Node); err != nil {
		return err
	}
	return log.Append([]*pb.Entry{{Type: pb.EntryConfChangeV2.Enum(), Index: new(index),
		Term: new(term), Data: data}}, index)
}
