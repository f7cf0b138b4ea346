package actors

import (
	"sync"

	"exchange/actors/directory"
	"exchange/core/matching"
)

// switches hold the due times of switches. Wallets change them, and the ticker polls.
type switches struct {
	mu       sync.Mutex
	schedule matching.Schedule          // by switchID.number; guarded by mu
	set      map[uint64]scheduledSwitch // those in the schedule, by the same; guarded by mu
	grace    Grace                      // guarded by mu
}

type scheduledSwitch struct {
	account *directory.Account
	id      switchID
	dueUs   int64
}

// due schedules a switch of an account; 0: never.
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

// hasDue reports whether a switch may fire at a time.
func (s *switches) hasDue(nowUs int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mayFire(nowUs)
}

// take removes the switch that is due first; false if none is due.
func (s *switches) take(nowUs int64) (first scheduledSwitch, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mayFire(nowUs) {
		return first, false
	}
	dueUs, n, _ := s.schedule.First()
	first = s.set[n]
	s.schedule.Remove(dueUs, n)
	delete(s.set, n)
	return first, true
}

// mayFire reports whether a switch may fire at a time; mu is held.
func (s *switches) mayFire(nowUs int64) bool {
	return nowUs >= s.grace.OverAt(nowUs) && s.schedule.Due(nowUs)
}

// firesAt returns when a switch due at dueUs fires, as predicted at nowUs.
func (s *switches) firesAt(dueUs, nowUs int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(dueUs, s.grace.OverAt(nowUs))
}

// wait keeps all switches from firing for a time after the end of a maintenance.
func (s *switches) wait(endUs, lengthUs int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grace = Grace{endUs: endUs, lengthUs: lengthUs}
}

// A Grace follows the end of a maintenance, in which clients could not renew their switches.
type Grace struct {
	endUs    int64 // of the maintenance, from its record
	lengthUs int64
	behindUs int64 // end of the grace for a clock before endUs; 0: no such clock was seen
}

// Begin starts the grace of the newest end of a maintenance, which may be the current one.
func (g *Grace) Begin(endUs, lengthUs int64) {
	if g.endUs != endUs {
		*g = Grace{endUs: endUs, lengthUs: lengthUs}
	}
}

// OverAt returns when the grace is over, by a clock at nowUs. The record of the end may be ahead of
// the clock: after a wrong clock, operators' records keep its time until that has come. No switch
// may wait for that, so the grace then counts from the first check.
func (g *Grace) OverAt(nowUs int64) int64 {
	if nowUs >= g.endUs {
		return g.endUs + g.lengthUs
	}
	if g.behindUs == 0 || g.behindUs-nowUs > g.lengthUs {
		g.behindUs = nowUs + g.lengthUs
	}
	return g.behindUs
}
