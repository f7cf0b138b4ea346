package generator

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestRequestsAreDueWhenTheirNumberIsReached(t *testing.T) {
	const second = time.Second
	s := NewSchedule(Stage{30 * second, 1000, 1000}, Stage{20 * second, 0, 0},
		Stage{10 * second, 0, 1000}, Stage{10 * second, 1000, 0}, Stage{5 * second, 0, 0})
	if n := s.Before(s.Length()); n != 40_000 || s.Length() != 75*second {
		t.Fatalf("%d requests in %v", n, s.Length())
	}
	for _, x := range []struct {
		number uint64
		at     time.Duration
		stage  int
	}{{0, 0, 0}, {1, time.Millisecond, 0}, {29_999, 29_999 * time.Millisecond, 0},
		{30_000, 50 * second, 2}, // the stage without requests has none
		{31_250, 55 * second, 2}, {35_000, 60 * second, 3}, {38_750, 65 * second, 3},
		{39_950, 69 * second, 3}, {40_000, 75 * second, 4}, {math.MaxUint64, 75 * second, 4}} {
		if at, stage := s.due(x.number); at != x.at || stage != x.stage {
			t.Errorf("request %d is due at %v in stage %d, want %v in stage %d", x.number, at,
				stage, x.at, x.stage)
		}
	}
	for at, stage := range map[time.Duration]int{-1: 0, 0: 0, 30*second - 1: 0, 30 * second: 1,
		70 * second: 4, 75 * second: 4, math.MaxInt64: 4} {
		if got := s.StageAt(at); got != stage {
			t.Errorf("at %v it is stage %d, want %d", at, got, stage)
		}
	}
	none := NewSchedule(Stage{second, 0, 0})
	if at, _ := none.due(0); at != second || none.Before(second) != 0 {
		t.Errorf("without a rate a request is due at %v", at)
	}
}

// Together several generators send each request of the schedule once.
func TestGeneratorsShareASchedule(t *testing.T) {
	s := NewSchedule(Stage{time.Second, 0, 777}, Stage{time.Second, 100, 100})
	for generators := uint64(1); generators < 6; generators++ {
		for batch := uint64(1); batch < 4; batch++ {
			taken := map[uint64]bool{}
			for i := range generators {
				p := Phase{Schedule: s, First: i * batch, Step: generators * batch}
				n := uint64(0)
				for ; p.number(n) < s.Before(s.Length()); n++ {
					taken[p.number(n)] = true
				}
				if got := p.share(s.Before(s.Length())); got != n {
					t.Errorf("generator %d of %d has %d requests, share says %d", i, generators, n,
						got)
				}
			}
			if want := (s.Before(s.Length()) + batch - 1) / batch; uint64(len(taken)) != want {
				t.Errorf("%d generators send %d batches of %d, want %d", generators, len(taken),
					batch, want)
			}
		}
	}
	if p := (Phase{}); p.number(7) != 7 || p.share(7) != 7 {
		t.Error("one generator does not send all")
	}
}

// exactly is the integral of the stages until a time, without any rounding.
func exactly(stages []Stage, until time.Duration) *big.Rat {
	sum := new(big.Rat)
	for _, x := range stages {
		t := min(max(until, 0), x.Length)
		until -= x.Length
		from, to := new(big.Rat).SetFloat64(x.From), new(big.Rat).SetFloat64(x.To)
		at := big.NewRat(int64(t), int64(x.Length)) // the rate at t is from + (to-from) at
		to.Sub(to, from).Mul(to, at).Mul(to, big.NewRat(1, 2))
		from.Add(from, to)
		sum.Add(sum, from.Mul(from, big.NewRat(int64(t), int64(time.Second))))
	}
	return sum
}

func TestTheMomentOfARequestIsTheInverseOfTheIntegral(t *testing.T) {
	rate := rapid.OneOf(rapid.SampledFrom([]float64{0, 0, 0.001, 0.1, 1, 1000, 1e7}),
		rapid.Float64Range(0, 10), rapid.Map(rapid.IntRange(1, 1e7),
			func(n int) float64 { return float64(n) }))
	length := rapid.Map(rapid.OneOf(rapid.Int64Range(1, 1e6), rapid.Int64Range(1e6, 1e10),
		rapid.Int64Range(1e9, 36e12)), func(n int64) time.Duration { return time.Duration(n) })
	stage := rapid.Custom(func(t *rapid.T) Stage {
		x := Stage{Length: length.Draw(t, "length"), From: rate.Draw(t, "from")}
		if x.To = x.From; rapid.Bool().Draw(t, "line") {
			x.To = rate.Draw(t, "to")
		}
		return x
	})
	rapid.Check(t, func(t *rapid.T) {
		stages := rapid.SliceOfN(stage, 1, 12).Draw(t, "stages")
		s := NewSchedule(stages...)
		total := s.Before(s.Length())
		sum, _ := exactly(stages, s.Length()).Float64()
		got, most := s.Integral(s.Length()), roundings(total)
		if math.Abs(got-sum) > most || float64(total) < got-most || float64(total) > got+1 {
			t.Fatalf("%d requests, the integral is %g and not %g", total, got, sum)
		}
		number := rapid.OneOf(rapid.Uint64Range(0, total), rapid.Map(rapid.Uint64Range(0, 100),
			func(n uint64) uint64 { return total - min(n, total) }))
		for range 20 {
			k := number.Draw(t, "number")
			fits(t, s, stages, k, total)
		}
		at := time.Duration(rapid.Int64Range(0, int64(s.Length())).Draw(t, "time"))
		want, _ := exactly(stages, at).Float64()
		if got := s.Integral(at); math.Abs(got-want) > roundings(total) {
			t.Fatalf("the integral until %v is %g, want %g", at, got, want)
		}
		// Requests due before the time are the first ones.
		if k := s.Before(at); k > 0 && k < total {
			before, _ := s.due(k - 1)
			after, _ := s.due(k)
			if before > at || after < at-2 {
				t.Fatalf("%d requests are due before %v, at %v and %v", k, at, before, after)
			}
		}
	})
}

// roundings is the rounding error of a number of requests computed from that many.
func roundings(total uint64) float64 { return 1e-11 + 1e-15*float64(total) }

// fits checks when one request is due, against the integral around that moment.
func fits(t *rapid.T, s *Schedule, stages []Stage, k, total uint64) {
	at, stage := s.due(k)
	if k >= total {
		if at != s.Length() {
			t.Fatalf("request %d of %d is due at %v", k, total, at)
		}
		return
	}
	if at < 0 || at >= s.Length() || s.StageAt(at) != stage {
		t.Fatalf("request %d of %d is due at %v in stage %d, which is stage %d", k, total, at,
			stage, s.StageAt(at))
	}
	if next, _ := s.due(k + 1); next < at {
		t.Fatalf("request %d is due at %v and the next one at %v", k, at, next)
	}
	// A moment before, no more than k requests were due; a moment later, no fewer.
	const moment = 2 * time.Nanosecond
	number := new(big.Rat).SetInt(new(big.Int).SetUint64(k))
	below, _ := new(big.Rat).Sub(exactly(stages, at-moment), number).Float64()
	above, _ := new(big.Rat).Sub(exactly(stages, at+moment), number).Float64()
	if most := roundings(total); below > most || above < -most {
		t.Fatalf("request %d is due at %v, around which the integral is %g to %g more", k, at,
			below, above)
	}
}
