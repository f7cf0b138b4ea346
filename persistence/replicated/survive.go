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

// A Survivor is what the log of a node has that is to go on alone.
type Survivor struct {
	Seq  uint64   // where its journal ends
	Gone []string // the other members, which are counted no more
}

// A Survival is a node that is to go on alone, because the disks of the others are gone for good.
type Survival struct {
	Folder, Cluster, Node string
	// Sure lets the node's log be written; otherwise it is only looked at.
	Sure bool
	// Fatal is called when a sync has failed. It must end the process.
	Fatal func(error)
}

// Survive makes a node the only voter, in another epoch of the membership: should the others come
// back, they are told that they are removed, because their IDs are never counted again. All entries
// of its log count from then on, committed or not. No process may use the folder. After a crash the
// folder is as before, or all is done. ErrInvalid: the node is no voter, is alone already, or has
// no log.
func Survive(s *Survival) (*Survivor, error) {
	return s.in(vfs.Default, vfs.Default.PathJoin(s.Folder, logFolder))
}

func (s *Survival) in(files vfs.FS, dir string) (_ *Survivor, err error) {
	log, base, err := raftlog.Open(dir, raftlog.Options{FS: files, Fatal: s.Fatal,
		Nonce: persistence.NewID(), AtNeed: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if err := (&former{cluster: s.Cluster, own: s.Node}).check(log.Identity()); err != nil {
		return nil, err
	}
	state, last, err := end(log, base)
	if err != nil {
		return nil, err
	}
	v := &Survivor{Seq: state.Beat().End.Seq}
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
			"it anew", persistence.ErrInvalid)
	case !voter:
		return nil, fmt.Errorf("%w: node %q is no voter as far as its log says, so it may lack "+
			"the end of what it was to get", persistence.ErrInvalid, s.Node)
	case len(v.Gone) == 0:
		return nil, fmt.Errorf("%w: node %q is the only one already", persistence.ErrInvalid,
			s.Node)
	case !s.Sure:
		return v, nil
	}
	return v, survive(log, last+1)
}

// end returns the state behind the log's last entry.
func end(log *raftlog.Log, base []byte) (state *machine.State, last uint64, err error) {
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

// survive adds the entry, committed, in a term of its own. Without the entry, the term is one in
// which the node has voted for itself.
func survive(log *raftlog.Log, index uint64) error {
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
