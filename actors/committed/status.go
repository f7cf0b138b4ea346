package committed

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/core/event"
)

// A Status lists the current bars on orders: a maintenance, and halts of pairs.
type Status struct {
	TimeUs      int64 // time of the answer, in microseconds since the epoch
	Maintenance event.Maintenance
	Halted      []uint16 // numbers of pairs, ascending
}

// A StatusChange is the beginning or the end of a halt or of a maintenance.
type StatusChange struct {
	TimeUs      int64  // of its record, in microseconds since the epoch
	Pair        uint16 // number of the pair; 0: a maintenance
	Halted      bool
	Maintenance event.Maintenance
}

// StatusChanges is a message to a channel's actor: the changes of one batch, in record order.
// Shared: read only.
type StatusChanges struct{ List []StatusChange }

// A statusFeed holds the watchers of the status. The committed actor owns it.
type statusFeed struct {
	channels []*actor.PID
	forming  []StatusChange // of the batch being folded
}

// watchStatus answers a channel with the status, and sends it all later changes.
func (c *Side) watchStatus(w *Watch) {
	c.status.remove(w.Channel)
	c.status.channels = append(c.status.channels, w.Channel)
	c.out.Notify(w.Channel, &Watched{Token: w.Token, Status: c.statusNow()})
}

func (c *Side) statusNow() *Status {
	s := &Status{TimeUs: time.Now().UnixMicro(), Maintenance: c.state.Maintenance()}
	for _, p := range c.state.Pairs() {
		if p.Halted {
			s.Halted = append(s.Halted, p.Number)
		}
	}
	slices.Sort(s.Halted)
	return s
}

// StatusNow asks for the current status.
type StatusNow struct{ *Status }

func (q *StatusNow) from(c *Side) (needs uint64) {
	q.Status = c.statusNow()
	return 0
}

func (f *statusFeed) remove(channel *actor.PID) {
	f.channels = slices.DeleteFunc(f.channels, func(pid *actor.PID) bool { return pid == channel })
}

// noteStatus records the change of status by a record, if any.
func (c *Side) noteStatus(r *event.Record) {
	if len(c.status.channels) == 0 {
		return
	}
	x := StatusChange{TimeUs: r.TimeUs}
	switch r.Kind {
	case event.KindHalt:
		x.Pair, x.Halted = r.Pair, r.Halt.Halted
	case event.KindMaintenance:
		x.Maintenance = r.Maintenance
	default:
		return
	}
	c.status.forming = append(c.status.forming, x)
}

// notifyStatus sends the watchers the changes of the batch that ends.
func (c *Side) notifyStatus() {
	if len(c.status.forming) == 0 {
		return
	}
	m := &StatusChanges{c.status.forming}
	c.status.forming = nil
	for _, channel := range c.status.channels {
		c.out.Notify(channel, m)
	}
}
