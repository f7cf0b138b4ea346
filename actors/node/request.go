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

// An accountQueue holds the requests of one account, which go to its wallet one at a time.
type accountQueue = mailbox.FIFO[*forwardedRequest]

// A forwardedRequest is the request of one message: commands, the end of a session, or a fence for
// earlier requests.
type forwardedRequest struct {
	by      *forwardingSession
	number  uint64
	list    []*actors.Command
	errs    []error
	err     error        // why none of the commands was sent
	keyless bool         // its key is unknown to this node
	pending atomic.Int64 // commands without an outcome, plus one until all are sent

	counted  int64 // in forwardingSession.open
	admitted bool
	meters   bool // it counts in forwardingSession.traffic

	// of a request without commands: the session that has ended; 0: it is a fence, which is
	// answered in order
	lost uint64
	of   *directory.Key

	signed signedRequest // its commands are made once it is verified
}

// forwardSlots is the share of the command slots, in quarters, that one node's clients may use at a
// time: the rest is reserved for other clients.
const forwardSlots = 3

// refuseAll refuses a request without sending its commands.
func (f *forwardingSession) refuseAll(x *forwardedRequest, err error) {
	f.open.Add(1)
	x.counted = 1
	x.refuse(err)
}

// begin executes a request, unless too many are in flight. A gated one is queued with the others of
// its account; account is nil for others.
func (f *forwardingSession) begin(x *forwardedRequest, account *directory.Account) {
	if !f.hasRoom(x) {
		f.traffic.Full.Add(1)
		x.refuse(f.CountRefusal(actors.ErrBusy))
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
	queue := f.queues[account.ID]
	switch {
	case queue != nil:
		queue.Push(x)
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

// bytesOfSlot is the number of signed bytes for which a request takes one more slot, up to a
// quarter of all: an observer may be hostile, and waiting requests must not fill the memory.
const bytesOfSlot = 4096

// hasRoom counts the commands of a request, unless that node's clients have too many in flight.
// Cancels may use all slots.
func (f *forwardingSession) hasRoom(x *forwardedRequest) bool {
	n, most := max(int64(len(x.list)+x.signed.answers), 1), f.slots
	if x.signed.Signed != nil {
		n += min(int64(len(x.signed.Text)/bytesOfSlot), most/4)
	}
	if x.signed.answers > 0 && !x.signed.back {
		most = most * forwardSlots / 4
	}
	for _, c := range x.list {
		if !c.MayUseCancelSlot() {
			most = most * forwardSlots / 4
			break
		}
	}
	if f.open.Add(n) <= most {
		x.counted = n
		return true
	}
	f.open.Add(-n)
	return len(x.list) == 0 && x.lost != 0 // ends of sessions are bounded by the sessions
}

// drainQueue sends a request, and those of its account that arrived meanwhile.
func (f *forwardingSession) drainQueue(x *forwardedRequest, account uint32) {
	for x != nil {
		f.send(x)
		f.mu.Lock()
		if queue := f.queues[account]; queue.Len() > 0 {
			x = queue.Pop()
		} else {
			x = nil
			delete(f.queues, account)
		}
		f.mu.Unlock()
	}
}

// isImmediate reports whether send does not wait.
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

// send admits the commands of a request, and sends them to their wallet; not after the end of the
// connection, because its clients are disconnected and its sessions have ended.
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
	// Commands with an outcome must not be touched any more, and Send reads all of its list.
	f.Send(x.list, x.errs)
	if session != 0 {
		f.sessionBegan(key, session)
	}
	for _, err := range x.errs { // for dropped commands
		if err != nil {
			x.Answered()
		}
	}
	x.Answered()
}

// unknownKeyError returns why a key of the other node is unknown here: it was revoked, or this node
// no longer leads, and lacks a key that was made since.
func (f *forwardingSession) unknownKeyError() error {
	if err := actors.AwaitCurrent(f.Door); err != nil {
		return err
	}
	return committed.ErrKeyRevoked
}

// refuse answers a request without sent commands; nil: it has no commands.
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

// Answered counts an outcome, and answers the request after the last one.
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

// free recycles the commands of an answered request.
func (x *forwardedRequest) free() {
	for _, c := range x.list {
		if c != nil {
			c.Free()
		}
	}
}

// sessionBegun returns the session that a request starts; 0: none.
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
