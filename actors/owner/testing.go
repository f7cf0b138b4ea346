package owner

import "time"

// Drive is Hold.Run, for tests of engines on a simulated clock: wait returns once its condition
// holds.
func Drive(w *Hold, wait func(until func() bool)) {
	defer close(w.stopped)
	over := func() bool {
		select {
		case <-w.stop:
			return true
		default:
			return false
		}
	}
	next := time.Now()
	for {
		next = next.Add(w.check)
		wait(func() bool { return over() || !time.Now().Before(next) })
		if over() || !w.beat() {
			return
		}
		if late := time.Now(); next.Before(late) {
			next = late
		}
	}
}
