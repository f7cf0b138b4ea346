package socketio

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// A poll that crosses the close of its session is answered as if it had come before the close.
func TestPollCrossingCloseIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{crossingTime: time.Hour})
		for _, held := range []bool{true, false} {
			p := r.polling()
			p.join()
			var poll <-chan answer
			if held {
				poll = p.hold()
			}
			p.sent("1")
			var a answer
			if held {
				a = <-poll
			} else {
				a = p.get()
			}
			if a.status != 200 || a.body != "6" {
				t.Errorf("held: %v: %d %q", held, a.status, a.body)
			}
			p.gone()
		}
		p := r.polling()
		p.sent("1")
		// these are no polls
		for _, a := range []answer{p.post("3"), p.do("GET", "EIO=3&transport=polling&sid="+p.sid,
			"")} {
			if a.status != 400 {
				t.Errorf("%d %q", a.status, a.body)
			}
		}
		if a := p.get(); a.status != 200 || a.body != "6" {
			t.Errorf("%d %q", a.status, a.body)
		}
		p = r.polling()
		if a := p.post("abc"); a.status != 400 {
			t.Errorf("%d %q", a.status, a.body)
		}
		p.gone() // it did not close the session itself
	})
}

func TestCrossingsAreBoundedAndExpire(t *testing.T) {
	var c crossings
	id := func(n int) string { return fmt.Sprint("session-", n) }
	for i := range 3 * mostCrossings {
		c.add(id(i), 2)
		if n := min(i+1, mostCrossings); len(c.until) != n {
			t.Fatalf("%d are kept of %d", len(c.until), n)
		}
	}
	for i := range 3 * mostCrossings {
		if got := c.take(id(i), 1); got != (i >= 2*mostCrossings) {
			t.Errorf("%d: %v", i, got)
		}
		if c.take(id(i), 1) {
			t.Errorf("%d again", i)
		}
	}
	c.add("late", 5)
	if c.take("late", 5) {
		t.Error("it never ends")
	}
	if c.take("unknown", 0) {
		t.Error("an unknown one")
	}
}
