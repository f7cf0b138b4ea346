package machine

import "slices"

// A Member is a node of the cluster. Its ID is what raft knows it by. An ID is given once, to one
// log of one node: a node whose log is lost gets another one, so that nothing which the lost log
// has acknowledged is expected of the new one.
type Member struct {
	ID   uint64
	Name string
}

// Formed returns the state of a cluster that begins with some nodes. All nodes name them in the
// same order.
func Formed(names []string) *State {
	s := &State{}
	for _, name := range names {
		s.given++
		s.members = append(s.members, Member{ID: s.given, Name: name})
	}
	return s
}

// Members returns the members by their IDs. The caller does not change them.
func (s *State) Members() []Member { return s.members }

// encodeMembers adds the membership to an image.
func (s *State) encodeMembers(b []byte) []byte {
	b = append(u64(b, s.given), byte(len(s.members)))
	for _, m := range s.members {
		b = text(u64(b, m.ID), m.Name)
	}
	return b
}

func (s *State) decodeMembers(d *reader) {
	s.given = d.u64()
	for range d.byte() {
		m := Member{ID: d.u64(), Name: d.text()}
		d.failed = d.failed || m.ID == 0 || m.ID > s.given ||
			slices.ContainsFunc(s.members, func(o Member) bool { return o.ID >= m.ID })
		s.members = append(s.members, m)
	}
}
