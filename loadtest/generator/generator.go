package generator

import (
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Options configure the sockets of a generator.
type Options struct {
	Address     string        // host:port
	Connections int           // sockets
	Timeout     time.Duration // of an answer
	// Depth is the number of requests that a socket may have in flight: events of Socket.IO, each
	// with the number of its connection as the id of its acknowledgement. 0: one, over HTTP.
	Depth int
	// Dial makes a socket, in any goroutine; nil: over TCP. With Depth its websocket is open.
	Dial func(socket int) (net.Conn, error)
}

// A Generator is one thread over the sockets of its connections. The goroutine that calls Run owns
// all of it except the part guarded by mu.
type Generator struct {
	options Options
	client  Client
	poll    Poller
	links   []*link
	conns   []*conn
	free    []*conn // may send; the longest idle is first
	resting []*conn // paused by the server, in the order in which they resume
	ready   []int
	written []*link // have pending output
	base    time.Time
	stopped atomic.Bool

	phase    Phase
	begin    time.Duration // of the phase, since base
	end      time.Duration
	next     uint64        // requests of the phase that were sent or given up
	due      time.Duration // when the next request of an open loop is due, since base
	stage    int           // of the schedule, of that request
	inFlight int
	spent    int // connections that send no more in this phase
	checked  time.Duration
	failed   error // ends the phase

	// mu is held by Run except during its waits. It guards the client's state, waiting and dialed.
	mu      sync.Mutex
	waiting uint64 // requests that are due and not sent yet
	dialed  []dialed
	pace    Pace // since the last TakePace
}

// A link is a socket. Over HTTP it has one connection, otherwise Options.Depth of them.
type link struct {
	number   int
	conns    []*conn
	up       bool
	in       []byte // received and not processed
	out      []byte // pending output
	attempts int    // dials since it was last up
}

// A conn is a connection of the client: room for one request in flight.
type conn struct {
	number int
	link   *link
	idle   bool          // in free or resting
	busy   bool          // has a request in flight
	since  time.Duration // when the request was due, or sent in a closed loop
	sentAt time.Duration
	resume time.Duration // when a resting one may send
	freed  time.Duration // since when it may send
}

type dialed struct {
	link *link
	conn net.Conn
	err  error
}

// Timing of a generator.
const (
	checkEvery  = 100 * time.Millisecond // between two checks for late answers
	restFor     = 20 * time.Millisecond  // after a "retry later"
	dialTimeout = 5 * time.Second
	lateBy      = time.Millisecond // a later request counts as the generator's own delay
)

// New returns a generator that is not connected.
func New(client Client, o Options) (*Generator, error) {
	poll, err := NewPoller()
	if err != nil {
		return nil, err
	}
	return newGenerator(client, o, poll), nil
}

func newGenerator(client Client, o Options, poll Poller) *Generator {
	g := &Generator{options: o, client: client, poll: poll, base: time.Now()}
	for i := range o.Connections {
		g.links = append(g.links, &link{number: i, in: make([]byte, 0, 16<<10)})
	}
	for i := range o.Connections * max(1, o.Depth) {
		l := g.links[i%o.Connections]
		c := &conn{number: i, link: l}
		g.conns, l.conns = append(g.conns, c), append(l.conns, c)
	}
	return g
}

// Connect opens the connections, before the first Run.
func (g *Generator) Connect() error {
	for _, l := range g.links {
		conn, err := g.dial(l)
		if err != nil {
			return err
		}
		if err := g.poll.Add(l.number, conn); err != nil {
			return err
		}
		l.up = true
	}
	return nil
}

func (g *Generator) dial(l *link) (net.Conn, error) {
	if g.options.Dial != nil {
		return g.options.Dial(l.number)
	}
	return net.DialTimeout("tcp", g.options.Address, dialTimeout)
}

// Close closes the connections.
func (g *Generator) Close() { g.poll.Close() }

// Stop ends the running phase, and later ones, once everything in flight is answered.
func (g *Generator) Stop() { g.stopped.Store(true) }

// Inspect calls fn while the client is not called. It passes the number of requests in flight, and
// of those due and not sent yet.
func (g *Generator) Inspect(fn func(inFlight int, waiting uint64)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	fn(g.inFlight, g.waiting)
}

// TakePace returns the Pace since its last call.
func (g *Generator) TakePace() (p Pace) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p, g.pace = g.pace, Pace{}
	return p
}

// Run sends for the length of the phase and waits for the answers. It returns the CPU time of its
// thread, 0 if unknown.
func (g *Generator) Run(p Phase) (cpu time.Duration, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := threadTime()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.start(p)
	for now := g.begin; ; now = g.now() { // so the shortest phase sends once
		sending := g.maySend(now)
		if !sending {
			g.end = min(g.end, now)
			if g.inFlight == 0 {
				break
			}
		}
		if sending {
			g.send(now)
		}
		if now-g.checked >= checkEvery {
			g.checkTimeouts(now)
		}
		g.waiting = max(g.dueBefore(min(now, g.end)), g.next) - g.next
		if err = g.wait(g.patience(g.now(), sending)); err != nil {
			break
		}
	}
	g.unsent()
	g.waiting = 0
	return threadTime() - before, err
}

func (g *Generator) now() time.Duration { return time.Since(g.base) }

func (g *Generator) start(p Phase) {
	g.phase, g.begin, g.next, g.spent, g.failed = p, g.now(), 0, 0, nil
	if !p.Begin.IsZero() {
		g.begin = p.Begin.Sub(g.base)
	}
	g.end = g.begin + p.length()
	g.plan()
	g.free, g.resting = g.free[:0], g.resting[:0]
	for _, c := range g.conns {
		if c.link.up && !c.busy {
			g.release(c, g.begin)
		}
	}
}

// open reports whether the loop is an open one.
func (g *Generator) open() bool { return g.phase.Schedule != nil }

// plan computes when the next request of an open loop is due.
func (g *Generator) plan() {
	g.due, g.stage = g.end, 0
	if g.open() {
		at, stage := g.phase.Schedule.due(g.phase.number(g.next))
		g.due, g.stage = g.begin+at, stage
	}
}

// maySend reports whether something may have to be sent at this moment.
func (g *Generator) maySend(now time.Duration) bool {
	late := g.phase.SendsLate && g.open() && g.due < g.end
	return (now < g.end || late) && g.spent < len(g.conns) && !g.stopped.Load()
}

// dueBefore returns how many requests of an open loop were due before a moment.
func (g *Generator) dueBefore(at time.Duration) uint64 {
	if !g.open() {
		return g.next
	}
	return g.phase.share(g.phase.Schedule.Before(at - g.begin))
}

// send sends all requests that may be sent now.
func (g *Generator) send(now time.Duration) {
	for len(g.resting) > 0 && g.resting[0].resume <= now {
		g.release(g.resting[0], g.resting[0].resume)
		g.resting = g.resting[:copy(g.resting, g.resting[1:])]
	}
	n := 0
	for ; n < len(g.free); n++ {
		since, stage := now, g.stage
		if g.open() {
			if since = g.due; since > now || since >= g.end {
				break
			}
			g.next++
			g.plan()
		}
		c := g.free[n]
		c.idle = false
		if g.open() {
			g.keptPace(now - max(since, c.freed))
		}
		g.request(c, stage, since)
	}
	g.free = g.free[:copy(g.free, g.free[n:])]
}

// release lets a connection send, since that moment.
func (g *Generator) release(c *conn, since time.Duration) {
	c.idle, c.freed = true, since
	g.free = append(g.free, c)
}

// keptPace counts a request of an open loop that the generator itself delayed.
func (g *Generator) keptPace(delay time.Duration) {
	g.pace.Sent++
	g.pace.Longest = max(g.pace.Longest, delay)
	if delay > lateBy {
		g.pace.Late++
	}
}

// patience returns the time to wait for answers.
func (g *Generator) patience(now time.Duration, sending bool) time.Duration {
	d := checkEvery
	if !sending {
		return d
	}
	if g.open() && len(g.free) > 0 {
		d = min(d, g.due-now)
	}
	if len(g.resting) > 0 {
		d = min(d, g.resting[0].resume-now)
	}
	if now < g.end || !g.phase.SendsLate {
		d = min(d, g.end-now)
	}
	return max(d, 0)
}

// wait writes the pending output, waits for answers without the lock, and processes those that
// arrived.
func (g *Generator) wait(d time.Duration) (err error) {
	g.flush()
	g.mu.Unlock()
	g.ready, err = g.poll.Wait(d, g.ready[:0])
	g.mu.Lock()
	if err != nil {
		return err
	}
	for _, i := range g.ready {
		g.receive(g.links[i])
	}
	return g.failed
}

// unsent reports the requests that were due without a free connection to the client. The waiting
// time of such a request at the end is a lower bound of its latency.
func (g *Generator) unsent() {
	if !g.open() {
		return
	}
	for g.due < g.end {
		g.client.Unsent(g.stage, g.now()-g.due)
		g.next++
		g.plan()
	}
}
