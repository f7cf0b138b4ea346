package actors

import (
	"sync"

	"exchange/actors/directory"
	"exchange/core/matching"
)

// switches have the times at which switches are due. Wallets change them, and the ticker looks.
type switches struct {
	mu       sync.Mutex
	schedule matching.Schedule          // by switchID.number; guarded by mu
	set      map[uint64]scheduledSwitch // those in the schedule, by the same; guarded by mu
	graceUs  int64                      // until then none fires; guarded by mu
}

type scheduledSwitch struct {
	account *directory.Account
	id      switchID
	dueUs   int64
}

// due notes when a switch of an account is due; 0: never.
func (s *switches) due(a *directory.Account, id switchID, dueUs int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := id.number()
	if before, there := s.set[n]; there {
		s.schedule.Remove(before.dueUs, n)
		delete(s.set, n)
	}
	if dueUs == 0 {
		return
	}
	if s.set == nil {
		s.set = make(map[uint64]scheduledSwitch)
	}
	s.schedule.Add(dueUs, n)
	s.set[n] = scheduledSwitch{a, id, dueUs}
}

// ready reports whether a switch may fire at a time.
func (s *switches) ready(nowUs int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return nowUs >= s.graceUs && s.schedule.Due(nowUs)
}

// take takes the switch out that is due first; false if none is due.
func (s *switches) take(nowUs int64) (first scheduledSwitch, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if nowUs < s.graceUs || !s.schedule.Due(nowUs) {
		return first, false
	}
	dueUs, n, _ := s.schedule.First()
	first = s.set[n]
	s.schedule.Remove(dueUs, n)
	delete(s.set, n)
	return first, true
}

// firesAt returns when a switch fires that is due at a time.
func (s *switches) firesAt(dueUs int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(dueUs, s.graceUs)
}

// wait keeps all switches from firing before a time.
func (s *switches) wait(untilUs int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.graceUs = max(s.graceUs, untilUs)
}
