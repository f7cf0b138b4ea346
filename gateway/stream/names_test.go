package stream

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A set in parts is a set, and allocates only used parts.
func TestSetContainsItsTopics(t *testing.T) {
	const topics = 4 * setPart
	r := rand.New(rand.NewPCG(1, 2))
	s, want := make(set, topics/setPart), map[topic]bool{}
	s.remove(5) // it has none
	for range 2000 {
		n := topic(r.IntN(3 * setPart)) // the last part stays unused
		if r.IntN(2) == 0 {
			s.add(n)
			want[n] = true
		} else {
			s.remove(n)
			delete(want, n)
		}
	}
	for n := range topic(topics) {
		if s.has(n) != want[n] {
			t.Fatalf("%d: %v", n, s.has(n))
		}
	}
	all := slices.Collect(s.all)
	if s.len() != len(want) || len(all) != len(want) || !slices.IsSorted(all) {
		t.Errorf("%d topics, %d yielded, want %d", s.len(), len(all), len(want))
	}
	for i, part := range s {
		if (part == nil) != (i == 3) {
			t.Errorf("part %d has memory: %v", i, part != nil)
		}
	}
	for n := range topic(setPart) {
		s.add(setPart/2 + n)
	}
	if !s.hasAll(setPart/2, setPart) {
		t.Error("over the end of a part some are missing")
	}
	if s.remove(setPart); s.hasAll(setPart/2, setPart) || !s.hasAll(setPart/2, setPart/2) {
		t.Error("the first of a part is missing, and not noticed")
	}
}
