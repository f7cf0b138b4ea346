package node

import (
	"exchange/actors"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/core/event"
	"exchange/core/wire"
	"sync/atomic"
)

// An accountQueue has the requests of one account, which go to its wallet one after the other.
type accountQueue = mailbox.FIFO[*forwardedRequest]

// A forwardedRequest is what one message asks for: commands that travel together, the end of a
// session, or only that those before it are done.
type forwardedRequest struct {
	by      *forwardingSession
	number  uint64
	list    []*actors.Command
	errs    []error
	err     error        // why none of the commands was sent
	keyless bool         // its key is not known here
	pending atomic.Int64 // commands without an outcome, and one until all are sent

	counted  int64 // in forwardingSession.open
	admitted bool
	meters   bool // it counts in forwardingSession.does

	// of a request without commands: the session that has ended; 0: it is a fence, which is
	// answered in its turn
	lost uint64
	of   *directory.Key

	signed signedRequest // without commands that it asks for, until it is verified
}

// forwardSlots is the part of the slots of commands, in quarters, that one node's clients may have
// at a time: the rest is a floor for those of the others.
const forwardSlots = 3

// refuseAll answers a request whose commands must not be sent.
func (f *forwardingSession) refuseAll(x *forwardedRequest, err error) {
	f.open.Add(1)
	x.counted = 1
	x.refuse(err)
}

// begin carries out a request, unless too many are on their way. One that came through a gate
// takes turns with the others of its account; nil: it did not.
func (f *forwardingSession) begin(x *forwardedRequest, account *directory.Account) {
	if !f.hasRoom(x) {
		f.traffic.Full.Add(1)
		x.refuse(f.TurnAway(actors.ErrBusy))
		return
	}
	if x.meters = x.lost == 0; x.meters {
		f.traffic.InFlight.Add(1)
	}
	if account == nil {
		if f.isImmediate(x) {
			f.send(x)
		} else {
			go f.send(x)
		}
		return
	}
	f.mu.Lock()
	row := f.queues[account.ID]
	switch {
	case row != nil:
		row.Push(x)
	case !f.isImmediate(x):
		f.queues[account.ID] = new(accountQueue)
		go f.drainQueue(x, account.ID)
	default:
		f.mu.Unlock()
		f.send(x)
		return
	}
	f.mu.Unlock()
}

// bytesOfSlot is for how many bytes of what a client has signed a request takes one slot more, up
// to a quarter of all: an observer may be hostile, and what waits here must not fill the memory.
const bytesOfSlot = 4096

// hasRoom counts the commands of a request, unless this node's clients have too many in flight.
// What takes something back may have all slots.
func (f *forwardingSession) hasRoom(x *forwardedRequest) bool {
	n, most := max(int64(len(x.list)+x.signed.answers), 1), f.slots
	if x.signed.Signed != nil {
		n += min(int64(len(x.signed.Text)/bytesOfSlot), most/4)
	}
	if x.signed.answers > 0 && !x.signed.back {
		most = most * forwardSlots / 4
	}
	for _, c := range x.list {
		if !c.TakesBack() {
			most = most * forwardSlots / 4
			break
		}
	}
	if f.open.Add(n) <= most {
		x.counted = n
		return true
	}
	f.open.Add(-n)
	return len(x.list) == 0 && x.lost != 0 // there are no more of those than sessions
}

// drainQueue sends a request, and those of its account that have come meanwhile.
func (f *forwardingSession) drainQueue(x *forwardedRequest, account uint32) {
	for x != nil {
		f.send(x)
		f.mu.Lock()
		if row := f.queues[account]; row.Len() > 0 {
			x = row.Pop()
		} else {
			x = nil
			delete(f.queues, account)
		}
		f.mu.Unlock()
	}
}

// isImmediate reports whether send waits for nothing.
func (f *forwardingSession) isImmediate(x *forwardedRequest) bool {
	if x.keyless || x.signed.Signed != nil || !f.HasReleased() {
		return false
	}
	for _, c := range x.list {
		if c.Kind() == event.KindAmended {
			return false
		}
	}
	return true
}

// send admits the commands of a request, and sends them to their wallet. Behind the end of the
// connection it does not: its clients are gone, and sessions have ended.
func (f *forwardingSession) send(x *forwardedRequest) {
	if x.lost != 0 {
		f.endSession(x.of, x.lost)
		f.open.Add(-x.counted)
		return
	}
	var err error
	switch {
	case x.keyless:
		err = f.unknownKeyError()
	case x.signed.Signed != nil:
		err = f.countPassed(f.derive(x))
	}
	n := int64(len(x.list))
	if err == nil && n > 0 {
		err = f.admitRequest(x)
	}
	if err != nil || n == 0 {
		x.refuse(err)
		return
	}
	x.pending.Store(n + 1)
	key, session := x.sessionBegun()
	// What has an outcome is not touched any more, and Send looks at all of its list.
	f.Send(x.list, x.errs)
	if session != 0 {
		f.sessionBegan(key, session)
	}
	for _, err := range x.errs { // of those that were dropped
		if err != nil {
			x.Answered()
		}
	}
	x.Answered()
}

// unknownKeyError returns why a key that the other node knows is not known here: it has ended by now, or
// this node leads no more, and cannot know of a key that was made since.
func (f *forwardingSession) unknownKeyError() error {
	if err := actors.AwaitKnown(f.Door); err != nil {
		return err
	}
	return committed.ErrKeyRevoked
}

// refuse answers a request none of whose commands was sent; nil: it has none.
func (x *forwardedRequest) refuse(err error) {
	for i, c := range x.list {
		c.Free()
		x.list[i] = nil
	}
	x.err = err
	x.pending.Store(1)
	x.Answered()
}

// admitRequest admits the commands of a request.
func (f *forwardingSession) admitRequest(x *forwardedRequest) error {
	f.mu.Lock()
	over := f.sessions == nil
	f.mu.Unlock()
	if over {
		return actors.ErrStopping
	}
	err := f.Admit(x.list)
	x.admitted = err == nil
	return err
}

// Answered counts an outcome, and has the request answered behind the last one.
func (x *forwardedRequest) Answered() {
	if x.pending.Add(-1) > 0 {
		return
	}
	f := x.by
	f.open.Add(-x.counted)
	if x.admitted {
		f.Sent(x.list)
	}
	f.mu.Lock()
	f.finished = append(f.finished, x)
	over := f.sessions == nil
	f.mu.Unlock()
	if x.meters {
		f.meter(!over)
	}
	select {
	case f.answers <- struct{}{}:
	default:
	}
}

// append writes the answer to a request.
func (x *forwardedRequest) append(b []byte, released uint64) []byte {
	b = append(b, forwardOutcomes)
	b = wire.AppendUints(b, x.number, released)
	b = actors.AppendError(b, x.err)
	if x.err != nil {
		return b
	}
	for i, c := range x.list {
		b = actors.AppendError(b, x.errs[i])
		if x.errs[i] == nil {
			b = actors.AppendOutcome(b, c)
		}
	}
	return b
}

// free gives the commands of an answered request back.
func (x *forwardedRequest) free() {
	for _, c := range x.list {
		if c != nil {
			c.Free()
		}
	}
}

// sessionBegun returns the session that a request begins; 0: none.
func (x *forwardedRequest) sessionBegun() (*directory.Key, uint64) {
	c := x.list[0]
	if c == nil {
		return nil, 0
	}
	if session, change := c.Session(); change == actors.SessionBegins {
		return c.Key(), session
	}
	return nil, 0
}
