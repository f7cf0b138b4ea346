package matching

import "fmt"

// A Schedule orders ids by a time, such as that at which an order expires. Equal times are ordered
// by id. The zero Schedule is empty. One goroutine at a time may use it.
type Schedule struct{ entries sorted }

// Add inserts an id, due at a time in Unix microseconds, at least 0. It panics when the id is there
// with that time already.
func (s *Schedule) Add(timeUs int64, id uint64) {
	if timeUs < 0 || !s.entries.add(entry{uint64(timeUs), id}) {
		panic(fmt.Sprintf("BUG: id %d is due twice, or before all times, at %d us", id, timeUs))
	}
}

// Remove deletes an id due at a time, and reports false if it is not there.
func (s *Schedule) Remove(timeUs int64, id uint64) bool {
	return s.entries.remove(entry{uint64(timeUs), id})
}

// Due reports whether an id is due at a time.
func (s *Schedule) Due(nowUs int64) bool {
	return s.entries.count > 0 && int64(s.entries.first().key) <= nowUs
}

// First returns the earliest id and its time; false when the schedule is empty.
func (s *Schedule) First() (timeUs int64, id uint64, ok bool) {
	if s.entries.count == 0 {
		return 0, 0, false
	}
	e := s.entries.first()
	return int64(e.key), e.id, true
}

// Len returns the number of ids.
func (s *Schedule) Len() int { return s.entries.count }
