package replicated

import (
	"encoding/binary"
	"encoding/json"

	"go.etcd.io/raft/v3"

	"exchange/core/wire"
	"exchange/persistence/internal/machine"
	"exchange/persistence/internal/raftlog"
)

// An offer is what the log of a joining node starts from: an ID that no other log has, and the
// machine's state at the floor.
type offer struct {
	id    uint64
	nonce string // of the start that it is for
	base  raftlog.Base
}

// append encodes an offer: id, index, term, length and text of the nonce, the state.
func (o *offer) append(b []byte) []byte {
	for _, v := range []uint64{o.id, o.base.Index, o.base.Term} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	b = append(append(b, byte(len(o.nonce))), o.nonce...)
	return append(b, o.base.Machine...)
}

// endSeq returns the journal's sequence after the offer's entry.
func (o *offer) endSeq() (uint64, error) {
	s, err := machine.DecodeState(o.base.Machine)
	if err != nil {
		return 0, err
	}
	return s.Beat().End.Seq, nil
}

func parseOffer(b []byte, maxFormat uint8) (*offer, error) {
	p := wire.Read(b)
	o := &offer{id: p.Fixed64()}
	o.base.Index, o.base.Term = p.Fixed64(), p.Fixed64()
	o.nonce = string(p.Take(int(p.Byte())))
	o.base.Machine = p.Rest()
	if s, err := machine.DecodeState(o.base.Machine); err != nil || p.Bad() ||
		s.Format() > maxFormat || o.id == 0 || (o.base.Term == 0) != (o.base.Index == 0) {
		return nil, errFrame
	}
	return o, nil
}

// answerJoiner answers a node that does not take part yet. If the node is awaited, or is a learner
// whose log is lost, the leader assigns it an ID, and then offers it a state.
func (n *node) answerJoiner(from string, b []byte) error {
	var w formingMessage
	if len(b) > maxFormingBytes || json.Unmarshal(b, &w) != nil || len(w.Nonce) > maxNonce ||
		w.Stage == stageActive || n.formation == nil || w.Cluster != n.formation.cluster {
		return nil
	}
	// Once an entry of its term is applied, a leader has applied all earlier joins.
	status := n.raw.BasicStatus()
	leads := status.RaftState == raft.StateLeader && n.appliedTerm == status.GetTerm()
	var joins *machine.Member
	for _, m := range n.machine.Members() {
		if m.Name == from && (m.Role == machine.Awaited || m.Role == machine.Learner) {
			joins = &m
		}
	}
	n.formation.nonces[from] = w.Nonce
	n.formation.sendMessage(from, formingMessage{Leads: leads, Awaited: joins != nil,
		Format: n.machine.Format()})
	switch {
	case !leads || joins == nil || w.Stage != stageEmpty, w.MaxFormat < n.machine.Format(),
		n.formatErr != nil:
	case joins.Nonce != w.Nonce:
		n.tryPropose(&machine.Entry{Kind: machine.Join, Name: from, Unique: w.Nonce})
	default:
		return n.offer(from, joins)
	}
	return nil
}

// offer sends a learner the state at the floor. Every member has the log up to the floor, and none
// has dropped entries above it. So any later leader can serve the learner, and the learner any
// member. The floor does not move until the learner has an entry above it: before the offer, this
// node applies the trims that it proposed before the join.
func (n *node) offer(to string, m *machine.Member) error {
	if n.appliedTerm != n.raw.BasicStatus().GetTerm() {
		return nil
	}
	for number := range n.proposals.pending {
		if number <= n.lastBeforeJoin {
			return nil
		}
	}
	if n.tickCount < n.offeredAt[m.ID]+askTicks {
		return nil // the node asks each tick, and the state may be large
	}
	at := n.machine.Floor()
	next := &n.offerReplayer
	if next.state == nil || next.index < n.trim.droppedTo || next.index > at {
		*next = replayer{n.trim.state.Clone(), n.trim.index}
	}
	if err := next.step(n.log, at, n.maxFormat); err != nil || next.index < at {
		return err // resumed by the node's next message
	}
	term, err := n.log.Term(at)
	if err != nil {
		return err
	}
	o := offer{id: m.ID, nonce: m.Nonce, base: raftlog.Base{Index: at, Term: term,
		Machine: next.state.Encode()}}
	f := n.frame(frameOffer)
	n.send(to, o.append(f.begin()))
	n.offeredAt[m.ID] = n.tickCount
	return nil
}
