package committed

import (
	"fmt"
	"math"
	"testing"
	"time"

	"exchange/core/event"
)

func nameOf(n int) event.ClientID {
	id, err := event.NewClientID(fmt.Sprint("order-", n))
	if err != nil {
		panic(err)
	}
	return id
}

// excluded counts the ids from..to-1 of which the filter says that there is none.
func (f *idFilter) excluded(from, to int, placedAfterUs int64) (n int) {
	for i := from; i < to; i++ {
		if f.excludes(1, nameOf(i), placedAfterUs) {
			n++
		}
	}
	return n
}

func TestAFilterKnowsEachIDAndFewOthers(t *testing.T) {
	const ids = 100_000
	const size = 2 * ids * 10 / 8 // 10 bits an id in one generation
	f := newFilter(size, 0, 0)
	for i := range ids {
		f.add(1, nameOf(i).String())
	}
	f.filled(f.holdsFrom(0))
	if n := f.excluded(0, ids, Always); n > 0 {
		t.Errorf("of %d ids that it has %d are excluded", ids, n)
	}
	if n := f.excluded(ids, 2*ids, Always); n < ids*97/100 {
		t.Errorf("of %d ids that it does not have only %d are excluded", ids, n)
	}
	others := 0
	for i := range 1000 {
		if f.excludes(2, nameOf(i), Always) {
			others++
		}
	}
	if others < 970 {
		t.Errorf("of 1,000 ids that another account has only %d are excluded", others)
	}
	f.age(math.MaxInt64)
	if n := f.excluded(0, ids, Always); n > 0 {
		t.Errorf("of ids that are taken for good %d are forgotten", n)
	}
}

func TestAFullFilterExcludesNothing(t *testing.T) {
	f := newFilter(1<<10, 0, 0)
	f.filled(f.holdsFrom(0))
	for i := range 10_000 {
		f.add(1, nameOf(i).String())
	}
	if n := f.excluded(0, 10_000, Always); n > 0 {
		t.Errorf("%d ids that it has are excluded", n)
	}
	if n := f.excluded(10_000, 20_000, Always); n > 100 {
		t.Errorf("a full filter excludes %d ids of 10,000", n)
	}
}

func TestAFilterExcludesNothingUntilItIsFilled(t *testing.T) {
	f := newFilter(1<<16, time.Hour, 0)
	hour := time.Hour.Microseconds()
	if f.excludes(1, nameOf(1), 1000*hour) {
		t.Error("it does before it was filled")
	}
	f.age(3 * hour)
	if f.excludes(1, nameOf(1), 3*hour) {
		t.Error("a new generation makes it valid")
	}
	f.filled(f.holdsFrom(4 * hour))
	if f.excludes(1, nameOf(1), 3*hour-2) || !f.excludes(1, nameOf(1), 3*hour-1) {
		t.Error("it has the orders that were placed from the third hour on, and no earlier ones")
	}
	if newFilter(0, time.Hour, 0).excludes(1, nameOf(1), 1000*hour) {
		t.Error("without a filter an id is excluded")
	}
}

// An id stays in the filter for as long as it is taken, and then goes.
func TestAFilterForgetsInTime(t *testing.T) {
	hour := time.Hour.Microseconds()
	f := newFilter(1<<16, time.Hour, 0)
	f.filled(f.holdsFrom(0))
	const step = 10 // minutes
	for minute := 0; minute < 600; minute += step {
		now := int64(minute) * time.Minute.Microseconds()
		f.age(now)
		f.add(1, nameOf(minute).String()) // placed and closed now
		for placed := max(0, minute-60+step); placed <= minute; placed += step {
			if f.excludes(1, nameOf(placed), now-hour) {
				t.Fatalf("after %d minutes the id of minute %d is excluded", minute, placed)
			}
		}
		if !f.excludes(1, nameOf(-1), now-hour) {
			t.Fatalf("after %d minutes nothing is excluded", minute)
		}
		if minute >= 200 && !f.excludes(1, nameOf(minute-200), now-hour) {
			t.Fatalf("after %d minutes the id of minute %d is still there", minute, minute-200)
		}
		if minute >= 130 && f.excludes(1, nameOf(-1), now-3*hour) {
			t.Fatalf("after %d minutes it is excluded for the last three hours", minute)
		}
	}
}

// A clock that goes back asks for more than the filter holds.
func TestAFilterDoesNotAnswerForATimeThatItHasForgotten(t *testing.T) {
	hour := time.Hour.Microseconds()
	f := newFilter(1<<16, time.Hour, 0)
	f.filled(f.holdsFrom(0))
	f.add(1, nameOf(1).String())
	f.age(2 * hour)
	f.age(4 * hour) // what closed up to the second hour is forgotten
	for _, now := range []int64{0, hour, 2 * hour} {
		if f.excludes(1, nameOf(1), now-hour) {
			t.Errorf("at hour %d it answers", now/hour)
		}
	}
	if !f.excludes(1, nameOf(1), 2*hour) {
		t.Error("it does not answer for what it holds")
	}
}
