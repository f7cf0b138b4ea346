package ratelimit

import (
	"fmt"
	"testing"
	"time"
)

// A client owes the tokens that it has taken, whatever they cost after a change.
func TestAChangeOfALimitForgivesNoTokens(t *testing.T) {
	const now = int64(time.Hour)
	for _, x := range []struct {
		rate, burst int
		taken, left int // of 10 a second, 20 at once
		reset       int
	}{
		{10, 20, 5, 14, 1}, // 6 tokens in the end
		{1000, 20, 5, 14, 1},
		{1, 20, 5, 14, 6},
		{10, 40, 5, 34, 1},
		{10, 6, 5, 0, 1},
		{1, 1_000_000, 20, 999_979, 21},
		{1_000_000, 20, 0, 19, 1},
	} {
		name := fmt.Sprintf("%d a second, %d at once", x.rate, x.burst)
		before := New(10, 20, 4096)
		for range x.taken {
			before.Take(1, now)
		}
		after := before.Changed(x.rate, x.burst, 4096, now)
		if got := after.Take(1, now); !got.OK || got.Limit != x.burst || got.Remaining != x.left ||
			got.Reset != x.reset {
			t.Errorf("%s: %+v, want %d left and %d s", name, got, x.left, x.reset)
		}
		if got := after.Take(2, now); !got.OK || got.Remaining != x.burst-1 {
			t.Errorf("%s: a client that has taken nothing: %+v", name, got)
		}
		if got := before.Take(2, now); got.Remaining != 19 {
			t.Errorf("%s: the limiter before has changed: %+v", name, got)
		}
	}
	full := New(10, 20, 100)
	full.TakeMany(1, 20, now)
	if got := full.Changed(10, 5, 100, now).Take(1, now); got.OK || got.RetryAfter != 1 {
		t.Errorf("a client that owes more than a bucket now: %+v", got)
	}
	if got := full.Changed(0, 5, 100, now); got != nil {
		t.Error("there is a limiter of no limit")
	}
	if got := (*Limiter)(nil).Changed(10, 5, 100, now).Take(1, now); got.Remaining != 4 {
		t.Errorf("a limit where there was none: %+v", got)
	}
}

// A changed limiter forgets and finds as a new one does, and its shards are in order.
func TestAChangedLimiterKeepsItsOrder(t *testing.T) {
	r := newRandom(t)
	for range 50 {
		l, now := New(100, 200, 64), int64(time.Hour)
		for range 300 {
			l.TakeMany(r.Uint64N(100), 1+r.IntN(200), now)
			now += r.Int64N(int64(time.Second))
		}
		l = l.Changed(1+r.IntN(10_000), 1+r.IntN(500), 64, now)
		for range 300 {
			for i := range l.shards {
				if err := l.shards[i].check(); err != nil {
					t.Fatal(err)
				}
			}
			l.TakeMany(r.Uint64N(100), 1+r.IntN(200), now)
			now += r.Int64N(int64(time.Second))
		}
	}
}
