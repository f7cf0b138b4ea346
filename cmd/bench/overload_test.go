package main

import (
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// A closed loop of 1,000 orders a second has a whole core: 600 us of the exchange for each, and 400
// us of the generator. With 2,000 requests the generator takes 800 ms, and 150 us each for 1,000
// refusals leave 50 ms: 83 orders.
func TestTheCapacityThatRefusalsLeave(t *testing.T) {
	best := load{result{requests: 1000, took: time.Second}, 600 * time.Millisecond,
		400 * time.Millisecond}
	over := load{result{requests: 4000, refused: 2500, away: 2000, took: 2 * time.Second}, 0,
		1600 * time.Millisecond}
	refusals := load{result{requests: 10_000, refused: 10_000, away: 10_000, took: time.Second},
		1500 * time.Millisecond, 0}
	accepted, expected := shareOut(best, over, refusals)
	if accepted != 1000 || expected < 83 || expected > 84 {
		t.Errorf("%v were accepted of %v", accepted, expected)
	}
}

func TestOnlyWhatIsTurnedAwayCountsAsThat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		cl := served(t, 1, 1, func(w http.ResponseWriter, _ *http.Request) {
			status := []int{503, 400, 201}[n%3]
			n++
			w.Header().Set("Content-Length", "0")
			w.WriteHeader(status)
		})
		cl.conns[0].placesOnly = true
		r, err := cl.run(50 * time.Millisecond)
		if err != nil || r.away == 0 || r.away > r.refused || r.refused-r.away > r.away ||
			r.refused == r.requests && r.requests > 2 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestTheMemoryOfAProcess(t *testing.T) {
	if n, err := memoryOf(os.Getpid()); err != nil || n < 1<<20 {
		t.Errorf("this process has %d bytes (%v)", n, err)
	}
	if n, err := memoryOf(1 << 30); err == nil {
		t.Errorf("a process that there is not has %d bytes", n)
	}
}
