package actors

import (
	"fmt"
	"slices"
	"time"

	"exchange/core/state"
)

// overdue returns the due work that an engine at rest has not done: expired an order, triggered the
// next one of a queue, fired a switch. The clock may be wrong.
func (s *sim) overdue() string {
	if s.model.Maintenance.On {
		return ""
	}
	nowUs := time.Now().Add(min(0, s.skew)).UnixMicro() - overdueUs
	for _, p := range s.model.Pairs {
		if next := p.Next(); next != 0 && !p.IsHalted(s.model.Seq) {
			return fmt.Sprintf("order %d of %s was triggered, and waits", next, p.Name)
		}
		if o := p.Due(nowUs, 0); o != nil {
			return fmt.Sprintf("the time of order %d of %s was up at %d us", o.ID, p.Name,
				o.Says.ExpireUs)
		}
	}
	for _, l := range s.lives {
		if n := l.engine.lost.queue.Len(); n > 0 {
			return fmt.Sprintf("the wallets were not notified of %d lost sessions", n)
		}
	}
	return s.model.OverdueSwitch(nowUs)
}

const overdueUs = 1_000_000

// sameStops compares the waiting stops with the model's, and the order of the queue.
func (s *sim) sameStops(c *state.Pair) error {
	p := s.model.Pairs[c.Number-1]
	var waits, queue []uint64
	for stop := range c.Stops.All(nil) {
		waits = append(waits, stop.Order.ID)
		if stop.Queued {
			queue = append(queue, stop.Order.ID)
		}
	}
	slices.Sort(waits)
	if want := p.StopIDs(); !slices.Equal(waits, want) || !slices.Equal(queue, p.Queue()) {
		return fmt.Errorf("%s has stops %v and the queue %v, not %v, %v", p.Name, waits, queue,
			want, p.Queue())
	}
	return nil
}
