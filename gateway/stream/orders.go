package stream

import (
	"fmt"
	"path"
	"runtime"
	"runtime/debug"
	"sync"

	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/gateway/api"
	"exchange/gateway/socketio"
)

// Orders over the socket. Each client has a lane. Its commands go to the wallet in the order in
// which they came, and none waits for the answer to the one before: a goroutine carries one command
// out, and as soon as that is in the wallet's mailbox the next goroutine may begin. Answers go out
// as they come, all that are there in one write.

// commands are the operations that a socket may use, by the name of the event: the last part of the
// operation's path.
var commands = func() map[string]*api.Operation {
	all := map[string]*api.Operation{}
	for i := range api.Operations {
		o := &api.Operations[i]
		if o.Method == "POST" && o.Permission == event.PermissionTrade &&
			o.Path != "/api/v1/trading-settings" {
			all[path.Base(o.Path)] = o
		}
	}
	return all
}()

// maxWaiting is how many commands of a client wait while as many as may be are in flight. For
// further ones the server reads nothing more from the client.
const maxWaiting = 64

// A lane has the commands of one client. It begins with the client's first command.
type commandQueue struct {
	client *client
	most   int // commands in flight

	mu      sync.Mutex
	queued  []*order // commands that wait; guarded by mu, as all below
	open    int      // commands that have begun and have no answer
	sending bool     // a goroutine is on its way to the wallet with one of them
	acks    []byte   // answers that are not sent
	acking  bool     // a goroutine sends them

	room chan struct{} // capacity 1: a command has begun
}

// An order is a command of a lane, on its way through one goroutine.
type order struct {
	queue     *commandQueue
	login     *login
	operation *api.Operation
	event     *socketio.Event
	passed    bool // the next command may go
}

var calls = sync.Pool{New: func() any {
	c := new(api.Call)
	c.Reset()
	return c
}}

// orders answers a command of the client. The hook waits while too many commands wait, so the
// session reads nothing more, and its heartbeat stands still.
func (c *client) orders(o *api.Operation, e *socketio.Event) {
	l := c.login.Load()
	if l == nil || !l.begin() {
		call := new(api.Call)
		c.shard.hub.opts.Guard.Begin(call)
		call.Fail(api.NotLoggedIn, "")
		e.AckJSON(acknowledgement(call, 0)) //nolint:errcheck // it may be gone
		return
	}
	if c.queue == nil {
		c.queue = &commandQueue{client: c, most: c.shard.hub.opts.OrdersInFlight,
			room: make(chan struct{}, 1)}
	}
	c.queue.push(&order{queue: c.queue, login: l, operation: o, event: e})
}

// push adds a command. It waits for a place; a command in flight has an outcome in time, known or
// not.
func (n *commandQueue) push(o *order) {
	n.mu.Lock()
	for len(n.queued) >= maxWaiting {
		n.mu.Unlock()
		n.client.socket.Rest(func() { <-n.room })
		n.mu.Lock()
	}
	n.queued = append(n.queued, o)
	next := n.next()
	n.mu.Unlock()
	if next != nil {
		go next.run()
	}
}

// next takes the command that may go to the wallet now, nil if none may. mu is held.
func (n *commandQueue) next() *order {
	if n.sending || len(n.queued) == 0 || n.open >= n.most {
		return nil
	}
	o := n.queued[0]
	n.queued = n.queued[:copy(n.queued, n.queued[1:])]
	n.sending = true
	n.open++
	select {
	case n.room <- struct{}{}:
	default:
	}
	return o
}

// run carries out one command, and after it those that may go then.
func (o *order) run() {
	for o != nil {
		o.carryOut()
		n := o.queue
		n.mu.Lock()
		n.open--
		if !o.passed {
			n.sending = false
		}
		o = n.next()
		n.mu.Unlock()
	}
}

// carryOut runs the command's operation, after the checks that a request has, and answers.
func (o *order) carryOut() {
	guard := o.login.client.shard.hub.opts.Guard
	call := calls.Get().(*api.Call)
	guard.Begin(call)
	call.Key, call.Gate = o.login.key, o
	o.use(guard, call)
	guard.Report(call, o.event.Name)
	if call.Failure == api.NotLoggedIn {
		o.login.client.shard.post(&loginEnded{o.login, api.NotLoggedIn.Detail})
	}
	if !o.passed {
		o.login.finish()
	}
	o.queue.client.shard.hub.counts.commands.Add(1)
	o.answer(acknowledgement(call, 0))
	call.Reset()
	calls.Put(call)
}

// use checks and runs the operation. A panic in it answers 500, as in a request.
func (o *order) use(guard Guard, call *api.Call) {
	defer func() {
		if p := recover(); p != nil {
			call.Cause = fmt.Errorf("a command of the stream panicked: %v\n%s", p, debug.Stack())
			call.Fail(api.InternalError, "")
		}
	}()
	var fields []byte
	if len(o.event.Args) > 0 {
		fields = o.event.Args[0]
	}
	switch {
	case !call.Parsed(call.Form.ParseJSON(fields)):
	case o.login.key.Revoked():
		call.Fail(api.Unauthenticated, "")
	case guard.Permit(call, o.operation):
		// its account's rates have counted it, and are its bounds
		o.queue.client.socket.GiveBack(len(fields) + len(o.event.Name))
		if call.Key.Material == nil {
			call.Key = call.Key.With(&directory.Signed{Method: o.operation.Method,
				Path: o.operation.Path, Form: directory.SignedJSON,
				Address: o.queue.client.socket.Address(), Text: fields})
		}
		o.operation.Run(call)
	}
}

// Pass implements actors.Gate: the command goes to its wallet, and the next one of the lane may
// follow.
func (o *order) Pass(give func()) bool {
	ok := o.login.Pass(give)
	o.login.finish()
	n := o.queue
	n.mu.Lock()
	o.passed, n.sending = true, false
	next := n.next()
	n.mu.Unlock()
	if next != nil {
		go next.run()
	}
	return ok
}

// answer sends an answer, with others that are there at the same time.
func (o *order) answer(json []byte) {
	n := o.queue
	n.mu.Lock()
	defer n.mu.Unlock()
	n.acks = o.event.AppendAck(n.acks, json)
	if n.acking {
		return
	}
	n.acking = true
	for len(n.acks) > 0 {
		n.mu.Unlock()
		runtime.Gosched() // answers of the same batch of the journal are about to come
		n.mu.Lock()
		frames := n.acks
		n.acks = nil
		n.mu.Unlock()
		n.client.socket.Deliver([]socketio.Delivery{ //nolint:errcheck // it may be gone
			{Tag: answers, Policy: socketio.Keep, Frames: frames}}, nil)
		n.mu.Lock()
	}
	n.acking = false
}
