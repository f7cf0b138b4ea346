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

// No single peer can end a node. A reason to end remains a doubt until two voters confirm it: that
// the node was removed, that its folder is an older copy, or that its log lacks acknowledged
// entries. Two are a majority of three voters. More are not required, because an older copy may
// count voters that have left since. For a node without another voter in its membership, one is
// enough. Under a doubt of the last two kinds the node sends no raft messages, so it neither votes
// nor acknowledges, and it polls the others. Peers without evidence do not clear such a doubt: of
// three nodes, a lagging one has none of the entries that the other two acknowledged. So a lying
// peer can only silence a node, until that node's next start.
//
// A leader's entries are trusted, because raft carries no proof of an election. Two kinds are not:
// one by which another member survives alone, which an operator writes into that member's log, and
// a format that no other member reads.

// A doubt collects accusations of voters, by their certified names, because a peer may claim more
// than one ID.
type doubt struct {
	why      error
	index    uint64          // of the entry that the node seems to lack; 0: another doubt
	leaderID uint64          // of the accusing leader: no other node tracks acknowledgements
	against  map[string]bool // names of the accusing voters
}

const (
	// cutTicks is the time for which a peer is ignored after an impossible message.
	cutTicks = 60 * electionTicks
	// maxTermJump bounds a received term above this node's: decades of elections each half second.
	maxTermJump = math.MaxUint32
)

var (
	errImpossible     = errors.New("impossible: the peer is cut off for a while")
	errSurvivor       = errors.New("an entry by which another member survives alone")
	errUnreadFormat   = errors.New("a format entry that no other member reads")
	errFormatsUnknown = errors.New("a format entry that no other member is known to read")
	errOneAccuser     = errors.New("a second voter must confirm it")
)

// mayBeVoter reports whether an ID is a voter's in the applied membership, or newer than any there.
func (n *node) mayBeVoter(id uint64) bool {
	if id > n.machine.LastAssignedID() {
		return true
	}
	for _, m := range n.machine.Members() {
		if m.ID == id && (m.Role == machine.Voter || m.Role == machine.Leaving) {
			return true
		}
	}
	return false
}

// accusersNeeded returns how many voters can end this node: two, or one if this node is the only
// voter in its membership. Such a node leads as soon as it is opened, and the accuser may be the
// only voter since.
func (n *node) accusersNeeded() int {
	if n.alone() {
		return 1
	}
	return 2
}

// accusedBy adds a peer's accusation of this node. It reports whether enough voters agree.
func (n *node) accusedBy(d *doubt, peer string, id uint64, why error) bool {
	if !n.mayBeVoter(id) {
		return false
	}
	if d.against == nil {
		d.against = map[string]bool{}
	}
	first := !d.against[peer]
	d.against[peer], d.why = true, why
	if len(d.against) >= n.accusersNeeded() {
		return true
	}
	n.dropLog.Warn(n.logger, "a peer doubts this node", peer,
		fmt.Errorf("%w: %w", why, errOneAccuser), "node", peer)
	if first {
		n.askClocks() // the answers may confirm it
	}
	return false
}

// muted reports whether this node must not vote until its doubts are settled.
func (n *node) muted() bool {
	return len(n.olderCopyDoubt.against)+len(n.truncatedDoubt.against) > 0
}

// corroborate evaluates the last index and the leader (0: none) that a peer reports. Only the
// leader tracks acknowledgements; a peer that holds the entry and follows that leader confirms its
// accusation.
func (n *node) corroborate(peer string, id, last, lead uint64) error {
	if d := &n.truncatedDoubt; n.mayBeVoter(id) && len(d.against) > 0 && !d.against[peer] &&
		last >= d.index && lead == d.leaderID && n.accusedBy(d, peer, id, d.why) {
		return n.retire(d.why)
	}
	return nil
}

// cutOff ignores a peer for cutTicks, and ends its connections.
func (n *node) cutOff(name string, why error) {
	n.impossible++
	n.cuts[name] = n.tickCount + cutTicks
	n.dropLog.Warn(n.logger, "a peer is cut off", name, fmt.Errorf("%w: %w", why, errImpossible),
		"node", name)
	n.cut(name)
}

// isCut reports whether a peer is cut off.
func (n *node) isCut(name string) bool {
	at, cut := n.cuts[name]
	if cut && n.tickCount >= at {
		delete(n.cuts, name)
		return false
	}
	return cut
}

// checkMessage returns why no correct peer sends such a message, though it is well-formed.
func (n *node) checkMessage(m *pb.Message) error {
	status := n.raw.BasicStatus()
	last, err := n.log.LastIndex()
	from, same := m.GetFrom(), m.GetTerm() == status.GetTerm()
	switch kind := m.GetType(); {
	case err != nil:
		return err
	case m.GetTerm() > status.GetTerm() && m.GetTerm()-status.GetTerm() > maxTermJump:
		return fmt.Errorf("term %d, and this node is in term %d", m.GetTerm(), status.GetTerm())
	case (kind == pb.MsgApp || kind == pb.MsgHeartbeat) && same && status.Lead != 0 &&
		status.Lead != from:
		return fmt.Errorf("it claims to lead term %d, which node %q leads", m.GetTerm(),
			n.nameOf(status.Lead))
	case kind == pb.MsgAppResp && same && status.RaftState == raft.StateLeader &&
		(m.GetIndex() > last || m.GetRejectHint() > last):
		return fmt.Errorf("it has entry %d, and this node, which leads, has %d",
			max(m.GetIndex(), m.GetRejectHint()), last)
	case kind == pb.MsgApp:
		for i, entry := range m.Entries {
			e, err := decode(entry, n.maxFormat)
			switch {
			case err != nil && (errors.Is(err, persistence.ErrCorrupt) || !n.mayBeNewer(m, i)):
				return err
			case e == nil, entry.GetIndex() <= status.GetCommit(): // already in the log
			default:
				if err := n.checkEntry(e, from); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// checkEntry returns why an entry is rejected, whichever node leads.
func (n *node) checkEntry(e *machine.Entry, leads uint64) error {
	switch {
	case e.Kind == machine.Survive && n.id <= n.machine.NextEpoch():
		return errSurvivor // a node that joins after it has a higher ID
	case e.Kind != machine.Format || e.Next <= uint64(n.maxFormat):
		return nil
	}
	others, why := 0, errUnreadFormat
	for _, m := range n.machine.Members() {
		if m.ID == 0 || m.ID == n.id || m.ID == leads {
			continue
		}
		others++
		switch reads, ok := n.peerFormats[m.ID]; {
		case !ok:
			why = errFormatsUnknown
		case uint64(reads) >= e.Next:
			return nil
		}
	}
	if others == 0 {
		return nil
	}
	return why
}

// mayBeNewer reports whether an entry of a message may use a format that this program does not
// read. A Format entry announces it: applied, in the log, or earlier in the message. If the message
// does not follow on this node's log, that entry may be missing here, and raft rejects the message.
func (n *node) mayBeNewer(m *pb.Message, at int) bool {
	announces := func(entry *pb.Entry) bool {
		e, err := decode(entry, n.maxFormat)
		return err == nil && e != nil && e.Kind == machine.Format && e.Next > uint64(n.maxFormat)
	}
	newer := n.formatErr != nil || slices.ContainsFunc(m.Entries[:at], announces)
	term, err := n.log.Term(m.GetIndex())
	if newer || err != nil || term != m.GetLogTerm() || m.GetIndex() <= n.applied {
		return newer || err != nil || term != m.GetLogTerm()
	}
	err = n.log.Read(n.applied, m.GetIndex(), func(entry *pb.Entry) error {
		newer = newer || announces(entry)
		return nil
	})
	return newer || err != nil
}

// fitsKnownLeader reports whether a message fits the leader known here: only that one sends a
// TimeoutNow or a ReadIndexResp, and only it receives a ReadIndex. Others are late or forged, and
// dropped. Raft would forward a ReadIndex under its sender's name, which the leader rejects; the
// sender repeats it.
func (n *node) fitsKnownLeader(m *pb.Message) bool {
	status := n.raw.BasicStatus()
	switch m.GetType() {
	case pb.MsgTimeoutNow, pb.MsgReadIndexResp:
		return m.GetTerm() == status.GetTerm() && m.GetFrom() == status.Lead
	case pb.MsgReadIndex:
		return status.RaftState == raft.StateLeader
	}
	return true
}

// retire ends the node. Its folder is not opened again.
func (n *node) retire(why error) error {
	n.endedBy = why
	return n.log.Retire()
}
