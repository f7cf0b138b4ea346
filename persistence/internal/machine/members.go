package machine

import "slices"

// A Role is how a member takes part.
type Role uint8

const (
	Voter   Role = iota + 1
	Learner      // has the log, or copies it, and has no vote
	Awaited      // has no ID yet: its node has not requested the log
	Leaving      // a voter that another one replaces, until the joint change is complete
	roles
)

// A Member is a node of the cluster. Its ID is raft's. An ID is assigned once, to one log of one
// node: a node whose log is lost gets another one, so that the new log need not have the lost log's
// acknowledged entries.
type Member struct {
	ID       uint64
	Name     string
	Address  string // "": that of the configuration
	Role     Role
	Nonce    string // of the start that requested the log; "" for the founding nodes
	Replaces uint64 // ID of the voter whose place a learner takes once it has the log; 0: of none
}

// maxMembers bounds the members.
const maxMembers = 9

// Formed returns the state of a new cluster. All nodes must pass the names in the same order.
func Formed(names []string) *State {
	s := &State{}
	for _, name := range names {
		s.lastID++
		s.members = append(s.members, Member{ID: s.lastID, Name: name, Role: Voter})
	}
	return s
}

// Restored returns the state of a cluster of one node after an entry of its log. Its journal ends
// at a sequence and has no batches. nowMs is the clock.
func Restored(name string, seq, entry uint64, nowMs int64) *State {
	s := Formed([]string{name})
	s.last, s.trimmed, s.floor = seq, seq, entry
	s.accepted = s.nextAccepted(&Entry{NowMs: nowMs})
	return s
}

// Members returns the members. The caller does not change them.
func (s *State) Members() []Member { return s.members }

// LastAssignedID returns the newest ID that was assigned to a member.
func (s *State) LastAssignedID() uint64 { return s.lastID }

// Joint reports whether a voter is being replaced: then each decision needs a majority of the
// voters with the leaving one, and one of those with the new one.
func (s *State) Joint() bool {
	return s.find(func(m Member) bool { return m.Role == Leaving }) >= 0
}

// ChangesCluster reports whether entries of a kind change the membership, or the format that its
// members read. They need no token.
func (k Kind) ChangesCluster() bool { return k >= Add && k <= Format }

// Try returns what an entry that changes the membership would do.
func (s *State) Try(e *Entry) (Answer, []Member) {
	next := &State{lastID: s.lastID, members: s.members, format: s.format}
	a := Answer{Outcome: next.change(e)}
	return a, next.members
}

func (s *State) find(is func(Member) bool) int { return slices.IndexFunc(s.members, is) }

// named returns the index of the member with a name and one of some roles; -1: none.
func (s *State) named(name string, roles ...Role) int {
	return s.find(func(m Member) bool { return m.Name == name && slices.Contains(roles, m.Role) })
}

// change applies an entry that changes the membership. It works on a copy of the list.
func (s *State) change(e *Entry) Outcome {
	s.members = slices.Clone(s.members)
	busy := s.find(func(m Member) bool { return m.Replaces != 0 })
	switch {
	case e.Kind == Leave:
		s.members = slices.DeleteFunc(s.members, func(m Member) bool { return m.Role == Leaving })
		return Done
	case e.Kind == Survive:
		return s.survive(e)
	case s.Joint():
		return changing
	case e.Kind == Format:
		return s.raiseFormat(e)
	case e.Kind == Join:
		return s.join(e)
	case busy >= 0 && (e.Kind == Add || s.members[busy].Name != e.Name):
		return changing
	case e.Kind == Add:
		return s.add(e)
	case e.Kind == Promote:
		return s.promote(e)
	}
	return s.remove(e)
}

// Format returns the newest format that entries and records may be written in.
func (s *State) Format() uint8 { return max(s.format, First) }

// raiseFormat applies an entry of the kind Format. The format never goes back.
func (s *State) raiseFormat(e *Entry) Outcome {
	if e.Next <= uint64(s.Format()) {
		return Already
	}
	s.format = uint8(e.Next)
	return Done
}

func (s *State) add(e *Entry) Outcome {
	m := Member{Name: e.Name, Address: e.Address, Role: Awaited}
	if e.Replaces != "" {
		i := s.named(e.Replaces, Voter)
		if i < 0 {
			return unknownMember
		}
		m.Replaces = s.members[i].ID
	}
	switch {
	case s.named(e.Name, Learner, Awaited) >= 0,
		e.Name != e.Replaces && s.named(e.Name, Voter) >= 0:
		return alreadyMember
	case len(s.members) >= maxMembers:
		return tooMany
	}
	s.members = append(s.members, m)
	return Done
}

// join assigns an ID to a start of a node without a log. Each start gets another ID; a repeated
// request of one changes nothing.
func (s *State) join(e *Entry) Outcome {
	i := s.named(e.Name, Learner, Awaited)
	if i < 0 {
		return unknownMember
	}
	m := &s.members[i]
	if m.Nonce == e.Unique {
		return Already
	}
	s.lastID++
	m.ID, m.Role, m.Nonce = s.lastID, Learner, e.Unique
	return Done
}

func (s *State) promote(e *Entry) Outcome {
	i := s.named(e.Name, Learner)
	switch {
	case i >= 0:
	case s.named(e.Name, Awaited) >= 0:
		return notJoined
	case s.named(e.Name, Voter) >= 0:
		return alreadyMember
	default:
		return unknownMember
	}
	m := &s.members[i]
	if old := s.find(func(o Member) bool { return o.ID == m.Replaces }); m.Replaces != 0 {
		s.members[old].Role = Leaving
	}
	m.Role, m.Replaces = Voter, 0
	return Done
}

// remove removes a member. If a learner replaces the voter of its own name, that is the learner.
func (s *State) remove(e *Entry) Outcome {
	i := s.named(e.Name, Learner, Awaited)
	if i < 0 {
		i = s.named(e.Name, Voter)
	}
	if i < 0 {
		return unknownMember
	}
	s.members = slices.Delete(s.members, i, i+1)
	if s.find(func(m Member) bool { return m.Role == Voter }) < 0 {
		return lastVoter
	}
	return Done
}

// epochIDs is the size of an epoch's range of IDs: more than are ever assigned in one.
const epochIDs = 1 << 32

// NextEpoch returns the ID above which new IDs are assigned after one voter has survived alone.
func (s *State) NextEpoch() uint64 { return (s.lastID/epochIDs + 1) * epochIDs }

// survive leaves one voter, and begins another epoch of the membership: its IDs are above all that
// the lost members may have assigned without an entry in this log.
func (s *State) survive(e *Entry) Outcome {
	i := s.named(e.Name, Voter)
	if i < 0 {
		return unknownMember
	}
	s.members = s.members[i : i+1]
	s.lastID = s.NextEpoch()
	s.lost = true
	return Done
}

// encodeMembers adds the membership to an image.
func (s *State) encodeMembers(b []byte) []byte {
	b = append(u64(b, s.lastID), byte(len(s.members)))
	for _, m := range s.members {
		b = text(text(u64(b, m.ID), m.Name), m.Address)
		b = u64(text(append(b, byte(m.Role)), m.Nonce), m.Replaces)
	}
	return b
}

func (s *State) decodeMembers(d *reader) {
	s.lastID = d.Fixed64()
	for range d.Byte() {
		m := Member{ID: d.Fixed64(), Name: d.text(), Address: d.text(), Role: Role(d.Byte())}
		m.Nonce, m.Replaces = d.text(), d.Fixed64()
		d.Check((m.ID == 0) == (m.Role == Awaited) && m.ID <= s.lastID &&
			m.Role > 0 && m.Role < roles &&
			(m.ID == 0 || s.find(func(o Member) bool { return o.ID == m.ID }) < 0))
		s.members = append(s.members, m)
	}
}
