package loadtest

import (
	"testing"
	"time"
)

func TestTheSearchComesCloseToTheHighestRate(t *testing.T) {
	for _, limit := range []float64{30, 990, 1000, 12_345, 400_000} {
		s := search{rate: 1000}
		steps := 1
		for s.tried(s.rate <= limit) {
			steps++
		}
		if s.highestHeld > limit || s.highestHeld < limit*0.94 || steps > 30 {
			t.Errorf("of %g it finds %g in %d steps", limit, s.highestHeld, steps)
		}
	}
	s := search{rate: 1000}
	for s.tried(false) {
	}
	if s.highestHeld != 0 {
		t.Errorf("%+v", s)
	}
}

func TestARateHoldsOnlyIfNearlyAllOfItIsAnsweredInTime(t *testing.T) {
	f := func(change func(x *stats)) bool {
		x := newStats(1, 1, 0)
		for range 1000 {
			record(x.all, time.Millisecond)
		}
		x.requests, x.done = 1000, 1000
		change(x)
		return judge(1000, x, time.Second, 10*time.Millisecond).Holds
	}
	if !f(func(*stats) {}) {
		t.Error("a good step does not hold")
	}
	if !f(func(x *stats) { x.done, x.late = 900, 100 }) {
		t.Error("cancels that came too late, and were answered, end a ramp")
	}
	for name, change := range map[string]func(x *stats){
		"late": func(x *stats) {
			for range 20 {
				record(x.all, time.Second)
			}
		},
		"unsent":  func(x *stats) { x.unsent = 50 },
		"few":     func(x *stats) { x.requests, x.done = 900, 900 },
		"refused": func(x *stats) { x.refused, x.done = 50, 950 },
		"unknown": func(x *stats) { x.unknown, x.done = 50, 950 },
	} {
		if f(change) {
			t.Errorf("%s: the step holds", name)
		}
	}
}
