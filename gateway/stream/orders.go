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

// Orders over the socket. Each client has a queue. Its commands go to the wallet in order of
// arrival, without waiting for earlier answers: a goroutine executes one command, and as soon as
// that is in the wallet's mailbox the next goroutine may start. Available answers are sent in one
// write.

// commands are the operations of a socket, by event name: the last part of the operation's path.
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

// maxWaiting is the maximum number of a client's queued commands, beyond those in flight. Above it
// the server stops reading from the client.
const maxWaiting = 64

// A commandQueue holds the commands of one client. It is created for the client's first command.
type commandQueue struct {
	client *client
	most   int // maximum commands in flight

	mu      sync.Mutex
	queued  []*order // guarded by mu, as all below
	open    int      // started commands without an answer
	sending bool     // a goroutine is sending a command to the wallet
	acks    []byte   // unsent answers
	acking  bool     // a goroutine sends acks

	room chan struct{} // capacity 1: a command has started
}

// An order is a command of a queue, executed by one goroutine.
type order struct {
	queue     *commandQueue
	login     *login
	operation *api.Operation
	event     *socketio.Event
	passed    bool // the next command may start
}

var calls = sync.Pool{New: func() any {
	c := new(api.Call)
	c.Reset()
	return c
}}

// orders handles a command of the client. The hook waits while the queue is full, so the session
// reads nothing more, and its heartbeat pauses.
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

// push adds a command, and waits while the queue is full; commands in flight time out at the
// latest.
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

// next takes the next command for the wallet, nil if none may start. mu is held.
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

// run executes one command, and then further ones that may start.
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

// carryOut runs the command's operation, after the checks of a request, and answers.
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

// use checks and runs the operation. A panic answers 500, as in a request.
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
	case !call.CheckParse(call.Form.ParseJSON(fields)):
	case o.login.key.Revoked():
		call.Fail(api.Unauthenticated, "")
	case guard.Permit(call, o.operation):
		// limited by its account's rates instead
		o.queue.client.socket.GiveBack(len(fields) + len(o.event.Name))
		if call.Key.Material == nil {
			call.Key = call.Key.With(&directory.Signed{Method: o.operation.Method,
				Path: o.operation.Path, Reads: o.operation.Reads, Form: directory.SignedJSON,
				Address: o.queue.client.socket.Address(), Text: fields})
		}
		o.operation.Do(call)
	}
}

// Pass implements actors.Gate: the command goes to its wallet, and the next one of the queue may
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

// answer sends an answer, together with others available at the same time.
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
		runtime.Gosched() // answers of the same journal batch follow at once
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
