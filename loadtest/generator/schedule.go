package generator

import (
	"math"
	"sort"
	"time"
)

// A Stage is a part of a schedule. Its rate is constant, or changes linearly.
type Stage struct {
	Length   time.Duration
	From, To float64 // requests a second
}

// A Schedule defines when the requests of an open loop are due. The number of requests due within a
// time is the integral of the rate over it. Requests are numbered from 0: request k is due when the
// integral begins to exceed k. So the first request of a constant rate is due at once.
type Schedule struct {
	pieces []piece
	length time.Duration
	total  count
}

// A piece is a stage with its position.
type piece struct {
	Stage
	begin  time.Duration
	before count   // requests due before it
	size   float64 // requests due in it
}

// A count is a number of requests. Its whole part is exact, so that a schedule of days is as exact
// as one of seconds.
type count struct {
	whole uint64
	part  float64 // of a request, below 1
}

func (c count) plus(n float64) count {
	whole, part := math.Modf(c.part + n)
	return count{c.whole + uint64(whole), part}
}

// up returns the number of requests that are at least partly due.
func (c count) up() uint64 {
	if c.part > 0 {
		return c.whole + 1
	}
	return c.whole
}

// exceeds reports whether request k is among them.
func (c count) exceeds(k uint64) bool { return c.up() > k }

// NewSchedule returns the schedule of consecutive stages.
func NewSchedule(stages ...Stage) *Schedule {
	s := &Schedule{}
	for _, x := range stages {
		p := piece{Stage: x, begin: s.length, before: s.total,
			size: (x.From + x.To) / 2 * float64(x.Length) / float64(time.Second)}
		s.pieces = append(s.pieces, p)
		s.length += x.Length
		s.total = s.total.plus(p.size)
	}
	return s
}

// Steady returns a schedule of one constant rate.
func Steady(rate float64, length time.Duration) *Schedule {
	return NewSchedule(Stage{length, rate, rate})
}

// Length returns how long the schedule lasts.
func (s *Schedule) Length() time.Duration { return s.length }

// due returns when a request is due, since the schedule began, and the number of its stage. A
// request beyond the schedule is due at its end.
func (s *Schedule) due(k uint64) (at time.Duration, stage int) {
	i := sort.Search(len(s.pieces), func(i int) bool {
		return i+1 == len(s.pieces) || s.pieces[i+1].before.exceeds(k)
	})
	if !s.total.exceeds(k) {
		return s.length, i
	}
	p := &s.pieces[i]
	return p.begin + p.due(float64(k-p.before.whole)-p.before.part), i
}

// Integral returns the number of requests due within the time, with the fraction of the next one.
func (s *Schedule) Integral(within time.Duration) float64 {
	c := s.within(within)
	return float64(c.whole) + c.part
}

// Before returns how many requests are due before a time.
func (s *Schedule) Before(at time.Duration) uint64 { return s.within(at).up() }

func (s *Schedule) within(t time.Duration) count {
	switch {
	case t <= 0:
		return count{}
	case t >= s.length:
		return s.total
	}
	p := &s.pieces[s.StageAt(t)]
	return p.before.plus(p.within(t - p.begin))
}

// StageAt returns the number of the stage at a time; the last one after the end.
func (s *Schedule) StageAt(t time.Duration) int {
	return max(sort.Search(len(s.pieces), func(i int) bool { return s.pieces[i].begin > t })-1, 0)
}

// slope is the absolute change of the rate in a second.
func (p *piece) slope() float64 { return math.Abs(p.To-p.From) / p.Length.Seconds() }

// within returns how many requests of the piece are due within a time from its start. It counts
// from the end with the lower rate: then all terms are positive, and no digits are lost.
func (p *piece) within(t time.Duration) float64 {
	area := func(t time.Duration) float64 {
		return (min(p.From, p.To) + p.slope()/2*t.Seconds()) * t.Seconds()
	}
	if p.From > p.To {
		return min(max(p.size-area(p.Length-t), 0), p.size)
	}
	return min(area(t), p.size)
}

// due returns when n requests of the piece were due. It solves
//
//	low t + slope t^2 / 2 = n
//
// for the time from the end with the lower rate. The root with the square root in the denominator
// has positive terms only, and holds for a slope of 0, too.
func (p *piece) due(n float64) time.Duration {
	falls := p.From > p.To
	if falls {
		n = p.size - n
	}
	low, t := min(p.From, p.To), 0.0
	if n > 0 {
		t = 2 * n / (low + math.Sqrt(low*low+2*p.slope()*n))
	}
	at := time.Duration(t * float64(time.Second))
	if falls {
		at = p.Length - at
	}
	return min(max(at, 0), p.Length-1) // a rounding moves no request into another stage
}
