package loadtest

import (
	"context"
	"fmt"
	"time"
)

// A Step is one rate tried by a ramp.
type Step struct {
	Rate     float64 `json:"rate"`     // requested
	Achieved float64 `json:"achieved"` // done
	P99      float64 `json:"p99_ms"`   // of done requests
	Errors   float64 `json:"errors"`   // share refused or without an outcome
	Holds    bool    `json:"holds"`
}

// The search: rates grow by rampFactor until one does not hold, then the gap is halved rampHalvings
// times.
const (
	rampFactor   = 1.5
	rampHalvings = 4
	rampSteps    = 60 // at most
	// A rate holds if at least the share enough of it is answered, and at most the share mostErrors
	// fails.
	enough     = 0.98
	mostErrors = 0.01
)

// A search is the state of a ramp, apart from the measuring.
type search struct {
	rate                      float64 // to try next
	highestHeld, lowestFailed float64 // highest that held and lowest that did not; 0: none yet
	halvings                  int
}

// tried records the outcome of the rate and is false when the search is over.
func (s *search) tried(holds bool) bool {
	if holds {
		s.highestHeld = s.rate
	} else {
		s.lowestFailed = s.rate
	}
	switch {
	case s.lowestFailed == 0:
		s.rate *= rampFactor
		return s.rate <= maxRate
	case s.highestHeld == 0: // not even the first one
		s.rate /= 2
		return s.rate >= 10
	}
	s.rate = (s.highestHeld + s.lowestFailed) / 2
	s.halvings++
	return s.halvings <= rampHalvings
}

// ramp finds the highest rate that holds the bound of p99. Its stats are of the steps that hold:
// the others measure an overload, which is a different thing.
func (t *test) ramp(ctx context.Context, report *Report) (sum *stats, took time.Duration,
	err error) {
	sum = t.newStats()
	r := &Ramp{Bound: float64(t.o.P99.Microseconds()) / 1000, Steps: []Step{}}
	report.Ramp = r
	s := search{rate: t.o.Rate}
	for range rampSteps {
		x, d, err := t.phase(steady(s.rate, t.o.Duration), t.o.Duration,
			always(fmt.Sprintf("%s/s asked: ", thousands(uint64(s.rate)))))
		if err != nil {
			return nil, 0, err
		}
		if ctx.Err() != nil { // an interrupted step proves nothing
			sum.leave(x)
			break
		}
		step := judge(s.rate, x, t.o.Duration, t.o.P99)
		if step.Holds {
			took += d
			sum.merge(x)
		} else {
			sum.leave(x)
		}
		r.Steps = append(r.Steps, step)
		t.prog.line(step.String())
		more := s.tried(step.Holds)
		if r.Highest = s.highestHeld; !more {
			break
		}
	}
	return sum, took, nil
}

// judge decides whether a rate holds: nearly all of it was answered without errors, in time. A
// cancel that came too late was answered.
func judge(rate float64, x *stats, d, bound time.Duration) Step {
	p99 := time.Duration(x.all.ValueAtQuantile(99)) * time.Microsecond
	all := max(float64(x.requests+x.unsent), 1)
	step := Step{Rate: rate, Achieved: float64(x.done) / d.Seconds(),
		P99: milliseconds(p99.Microseconds()), Errors: float64(x.refused+x.unknown) / all}
	step.Holds = p99 <= bound && float64(x.requests) >= enough*all &&
		float64(x.done+x.late)/d.Seconds() >= enough*rate-1/d.Seconds() && step.Errors <= mostErrors
	return step
}

func (s Step) String() string {
	word := "does not hold"
	if s.Holds {
		word = "holds"
	}
	return fmt.Sprintf("%s/s asked: %s/s done, p99 %s, %.2f %% errors: %s",
		thousands(uint64(s.Rate)), thousands(uint64(s.Achieved)), ms(s.P99), 100*s.Errors, word)
}
