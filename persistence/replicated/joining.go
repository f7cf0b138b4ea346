package replicated

import (
	"encoding/binary"
	"encoding/json"

	"go.etcd.io/raft/v3"

	"exchange/core/wire"
	"exchange/persistence/internal/machine"
	"exchange/persistence/internal/raftlog"
)

// An offer is what a node without a log begins with: an ID that no other log has, and the machine's
// state behind an entry above which all members keep the log for it.
type offer struct {
	id    uint64
	nonce string // of the start that it is for
	base  raftlog.Base
}

// append adds an offer to a frame: id, index, term, length and text of the nonce, the state.
func (o *offer) append(b []byte) []byte {
	for _, v := range []uint64{o.id, o.base.Index, o.base.Term} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	b = append(append(b, byte(len(o.nonce))), o.nonce...)
	return append(b, o.base.Machine...)
}

// end returns the sequence that the journal is at behind the offer's entry.
func (o *offer) end() (uint64, error) {
	s, err := machine.DecodeState(o.base.Machine)
	if err != nil {
		return 0, err
	}
	return s.Beat().End.Seq, nil
}

func parseOffer(b []byte, newest uint8) (*offer, error) {
	p := wire.Read(b)
	o := &offer{id: p.Fixed64()}
	o.base.Index, o.base.Term = p.Fixed64(), p.Fixed64()
	o.nonce = string(p.Take(int(p.Byte())))
	o.base.Machine = p.Rest()
	if s, err := machine.DecodeState(o.base.Machine); err != nil || p.Bad() ||
		s.Format() > newest || o.id == 0 || (o.base.Term == 0) != (o.base.Index == 0) {
		return nil, errFrame
	}
	return o, nil
}

// welcome answers the word of a node that takes no part. If it is awaited, or is a learner whose
// log is gone, the node that leads gives it an ID, and then what it begins with.
func (n *node) welcome(from string, b []byte) error {
	var w word
	if len(b) > maxWord || json.Unmarshal(b, &w) != nil || len(w.Nonce) > maxNonce ||
		w.Stage == begun || n.former == nil || w.Cluster != n.former.cluster {
		return nil
	}
	// What is committed is applied to the end where an entry of the term is: none that joins is
	// unknown here.
	status := n.raw.BasicStatus()
	leads := status.RaftState == raft.StateLeader && n.appliedTerm == status.GetTerm()
	var joins *machine.Member
	for _, m := range n.machine.Members() {
		if m.Name == from && (m.Role == machine.Awaited || m.Role == machine.Learner) {
			joins = &m
		}
	}
	n.former.nonces[from] = w.Nonce
	n.former.reply(from, word{Leads: leads, Awaited: joins != nil, Format: n.machine.Format()})
	switch {
	case !leads || joins == nil || w.Stage != empty, w.Reads < n.machine.Format(), n.unread != nil:
	case joins.Nonce != w.Nonce:
		n.attempt(&machine.Entry{Kind: machine.Join, Name: from, Unique: w.Nonce})
	default:
		return n.offer(from, joins)
	}
	return nil
}

// offer gives a learner the state behind the entry up to which all members have the log, and which
// is the highest one up to which any may have forgotten it. So each member can go on for the
// learner, and the learner for each member, whichever leads. That entry stays the same until the
// learner has one above it: trims that were proposed before it was a member are applied here.
func (n *node) offer(to string, m *machine.Member) error {
	if n.appliedTerm != n.raw.BasicStatus().GetTerm() {
		return nil
	}
	for number := range n.waiting {
		if number <= n.joins {
			return nil
		}
	}
	if n.ticks < n.offered[m.ID]+askTicks {
		return nil // it asks each tick, and the state may be large
	}
	at := n.machine.Floor()
	next := &n.offering
	if next.base == nil || next.behind < n.trim.begins || next.behind > at {
		*next = walk{n.trim.base.Clone(), n.trim.behind}
	}
	if err := next.step(n.log, at, n.reads); err != nil || next.behind < at {
		return err // it goes on with the next word
	}
	term, err := n.log.Term(at)
	if err != nil {
		return err
	}
	o := offer{id: m.ID, nonce: m.Nonce, base: raftlog.Base{Index: at, Term: term,
		Machine: next.base.Encode()}}
	f := n.frame(frameOffer)
	n.send(to, o.append(f.begin()))
	n.offered[m.ID] = n.ticks
	return nil
}
