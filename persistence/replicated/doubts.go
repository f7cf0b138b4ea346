package replicated

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"exchange/persistence"
	"exchange/persistence/internal/machine"
)

// One peer ends no node. What would end it is a doubt until two voters say so: that it is removed,
// that its folder is an older copy, that it lacks what it has acknowledged. Of three voters they
// are a majority. More are not asked for, because an older copy counts voters that are gone since,
// and of a node that knows of no other voter one is enough.
// While there is a doubt of the last two kinds the node sends no messages of raft, so it neither
// votes nor acknowledges, and it asks the others. Others that know nothing of it do not end such a
// doubt: of three nodes the one that lags knows nothing of what the two others have acknowledged.
// So a peer that lies can silence a node until that one is started again, and no more.
//
// A node that leads is believed in what it appends, because raft has no proof of an election. Two
// entries are not: that another one goes on alone, which an operator writes into the log of that
// one, and a format that no other member reads.

// A doubt is what voters say of this node, by their names, which their certificates prove: a peer
// may say more than one ID.
type doubt struct {
	why     error
	index   uint64 // entry that the node would lack; 0: the doubt is about its start
	leads   uint64 // the one that says so, as the one that leads: it alone knows
	against map[string]bool
}

const (
	// cutTicks is for how long nothing is taken from a peer that has said what cannot be.
	cutTicks = 60 * electionTicks
	// mostTerms is by how much a term may be above this node's. At one election each half second it
	// is a lifetime; a node that was down for longer, or a peer that says more, is no one's.
	mostTerms = math.MaxUint32
)

var (
	errImpossible = errors.New("it cannot be true: the peer is cut off for a while")
	errAlone      = errors.New("an entry by which another member goes on alone, and this one is " +
		"none any more")
	errNoneReads = errors.New("an entry by which a format is written that no other member reads")
	errNoneHeard = errors.New("an entry by which a format is written that no other member reads, " +
		"of those that were heard of")
	errOneSays = errors.New("another voter has to say so, too")
)

// isVoter reports whether an ID is one of a voter, as far as is applied here, or one that was given
// later.
func (n *node) isVoter(id uint64) bool {
	if id > n.machine.Given() {
		return true
	}
	for _, m := range n.machine.Members() {
		if m.ID == id && (m.Role == machine.Voter || m.Role == machine.Leaving) {
			return true
		}
	}
	return false
}

// believed returns how many voters must say what ends this node: two, or one where it knows of no
// other voter. Then it leads as soon as it is opened, and the other one may be the only one.
func (n *node) believed() int {
	if n.alone() {
		return 1
	}
	return 2
}

// accuse notes what a peer says of this node. It reports whether enough voters say so.
func (n *node) accuse(d *doubt, peer string, id uint64, why error) bool {
	if !n.isVoter(id) {
		return false
	}
	if d.against == nil {
		d.against = map[string]bool{}
	}
	first := !d.against[peer]
	d.against[peer], d.why = true, why
	if len(d.against) >= n.believed() {
		return true
	}
	n.dropped.Warn(n.logger, "a peer doubts this node", peer, fmt.Errorf("%w: %w", why, errOneSays),
		"node", peer)
	if first {
		n.askClocks() // the answers say what the others know
	}
	return false
}

// muted reports whether this node may be one that must not vote.
func (n *node) muted() bool { return len(n.older.against)+len(n.short.against) > 0 }

// bearsOut takes the answer of a peer, which has the log up to an entry, and knows the one that
// leads; 0: none. That this node has acknowledged an entry is what the one that leads knows, and a
// peer bears it out that has the entry and follows that one.
func (n *node) bearsOut(peer string, id, last, lead uint64) error {
	if d := &n.short; n.isVoter(id) && len(d.against) > 0 && !d.against[peer] &&
		last >= d.index && lead == d.leads && n.accuse(d, peer, id, d.why) {
		return n.refuse(d.why)
	}
	return nil
}

// cutOff takes nothing from a peer for a while.
func (n *node) cutOff(name string, why error) {
	n.impossible++
	n.cuts[name] = n.ticks + cutTicks
	n.dropped.Warn(n.logger, "a peer is cut off", name, fmt.Errorf("%w: %w", why, errImpossible),
		"node", name)
	n.cut(name)
}

// isCut reports whether a peer is cut off.
func (n *node) isCut(name string) bool {
	at, cut := n.cuts[name]
	if cut && n.ticks >= at {
		delete(n.cuts, name)
		return false
	}
	return cut
}

// possible returns why a message that is sound cannot be one of a peer that works; nil: it can.
func (n *node) possible(m *pb.Message) error {
	status := n.raw.BasicStatus()
	last, err := n.log.LastIndex()
	from, same := m.GetFrom(), m.GetTerm() == status.GetTerm()
	switch kind := m.GetType(); {
	case err != nil:
		return err
	case m.GetTerm() > status.GetTerm() && m.GetTerm()-status.GetTerm() > mostTerms:
		return fmt.Errorf("term %d, and this node is in term %d", m.GetTerm(), status.GetTerm())
	case (kind == pb.MsgApp || kind == pb.MsgHeartbeat) && same && status.Lead != 0 &&
		status.Lead != from:
		return fmt.Errorf("it leads term %d, and node %q does", m.GetTerm(),
			n.nameOf(status.Lead))
	case kind == pb.MsgAppResp && same && status.RaftState == raft.StateLeader &&
		(m.GetIndex() > last || m.GetRejectHint() > last):
		return fmt.Errorf("it has entry %d, and this node, which leads, has %d",
			max(m.GetIndex(), m.GetRejectHint()), last)
	case kind == pb.MsgApp:
		for i, entry := range m.Entries {
			e, err := decode(entry, n.reads)
			switch {
			case err != nil && (errors.Is(err, persistence.ErrCorrupt) || !n.mayBeNewer(m, i)):
				return err
			case e == nil, entry.GetIndex() <= status.GetCommit(): // it is there already
			default:
				if err := n.believes(e, from); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// believes returns why an entry is not believed, whoever leads.
func (n *node) believes(e *machine.Entry, leads uint64) error {
	switch {
	case e.Kind == machine.Survive && n.id <= n.machine.NextEpoch():
		return errAlone // one that joins behind it has a higher ID
	case e.Kind != machine.Format || e.Next <= uint64(n.reads):
		return nil
	}
	others, why := 0, errNoneReads
	for _, m := range n.machine.Members() {
		if m.ID == 0 || m.ID == n.id || m.ID == leads {
			continue
		}
		others++
		switch reads, heard := n.told[m.ID]; {
		case !heard:
			why = errNoneHeard
		case uint64(reads) >= e.Next:
			return nil
		}
	}
	if others == 0 {
		return nil
	}
	return why
}

// mayBeNewer reports whether an entry of a message may be of a format that this program does not
// read: that is written behind an entry which says so, in what is applied, the log or the message.
// Where that entry is not known, because the message does not follow on this node's log, raft takes
// nothing of it.
func (n *node) mayBeNewer(m *pb.Message, place int) bool {
	says := func(entry *pb.Entry) bool {
		e, err := decode(entry, n.reads)
		return err == nil && e != nil && e.Kind == machine.Format && e.Next > uint64(n.reads)
	}
	newer := n.unread != nil || slices.ContainsFunc(m.Entries[:place], says)
	term, err := n.log.Term(m.GetIndex())
	if newer || err != nil || term != m.GetLogTerm() || m.GetIndex() <= n.applied {
		return newer || err != nil || term != m.GetLogTerm()
	}
	err = n.log.Read(n.applied, m.GetIndex(), func(entry *pb.Entry) error {
		newer = newer || says(entry)
		return nil
	})
	return newer || err != nil
}

// forgetLater forgets an ID that a peer has said before it was given, and that was given to another
// one, or is another one's now.
func (n *node) forgetLater(id uint64) error {
	delete(n.heard, id)
	delete(n.told, id)
	delete(n.markets, id)
	delete(n.clocks, id)
	delete(n.unfits, id)
	return n.log.Forget(id)
}

// inPlace reports whether a message goes from the one that leads, or to it, if it is one that does,
// as far as is known here. Another one of the kind is late, or a lie: either way it is dropped. A
// question whose asker follows this node while this one follows another would be passed on under
// the asker's name, which no node takes from this one; the asker asks again.
func (n *node) inPlace(m *pb.Message) bool {
	status := n.raw.BasicStatus()
	switch m.GetType() {
	case pb.MsgTimeoutNow, pb.MsgReadIndexResp:
		return m.GetTerm() == status.GetTerm() && m.GetFrom() == status.Lead
	case pb.MsgReadIndex:
		return status.RaftState == raft.StateLeader
	}
	return true
}
