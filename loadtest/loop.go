package loadtest

import (
	"bytes"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A loop is one generator: a thread over the sockets of its connections, each with one request in
// flight at most.
type loop struct {
	o       *Options
	model   *model
	poll    poller
	conns   []*conn
	free    []*conn // that may send, the longest idle first
	resting []*conn // that were told to come again, in the order in which they will
	ready   []int
	writer  *writer
	base    time.Time
	stop    *atomic.Bool

	// Of a phase.
	rate     float64 // requests a second, 0: closed loop
	end      time.Duration
	begin    time.Duration
	next     uint64 // number of the next request that is due
	inFlight int
	checked  time.Duration

	mu     sync.Mutex // what others look at: stats, and dialed
	stats  *stats
	dialed []dialed
}

// A conn is a connection with the users that send on it in turn.
type conn struct {
	number int
	users  []*user
	turn   int
	up     bool
	idle   bool // in free or resting

	op       operation
	user     *user
	pair     *pair
	order    int           // in the user's orders, of a place or a cancel; -1: none
	since    time.Duration // when it was due, or sent in a closed loop
	sent     time.Duration
	busy     bool
	reads    int
	in       []byte
	resume   time.Duration // of a resting one
	attempts int
}

type dialed struct {
	c    *conn
	conn net.Conn
	err  error
}

func (l *loop) now() time.Duration { return time.Since(l.base) }

// Timing of a loop.
const (
	lookEvery   = 100 * time.Millisecond // how often it looks at what is late
	restFor     = 20 * time.Millisecond  // after "come again later"
	dialTimeout = 5 * time.Second
)

// connect opens the connections; it is called before the first phase.
func (l *loop) connect() error {
	for _, c := range l.conns {
		conn, err := net.DialTimeout("tcp", l.o.Address, dialTimeout)
		if err != nil {
			return err
		}
		if err := l.poll.add(c.number, conn); err != nil {
			return err
		}
		c.up, c.in = true, make([]byte, 0, 16<<10)
	}
	return nil
}

// run sends for d and waits for the answers.
func (l *loop) run(rate float64, d time.Duration) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cpu := threadTime()
	l.mu.Lock()
	defer func() {
		l.stats.cpu += threadTime() - cpu
		l.stats.inFlight, l.stats.waiting = 0, 0
		l.mu.Unlock()
	}()
	l.begin = l.now()
	l.rate, l.next, l.end = rate, 0, l.begin+d
	l.free, l.resting = l.free[:0], l.resting[:0]
	for _, c := range l.conns {
		if c.up && !c.busy {
			c.idle = true
			l.free = append(l.free, c)
		}
	}
	for {
		now := l.now()
		sending := now < l.end && !l.stop.Load()
		if !sending {
			l.end = min(l.end, now)
			if l.inFlight == 0 {
				break
			}
		}
		if sending {
			l.send(now)
		}
		if now-l.checked >= lookEvery {
			l.look(now)
		}
		l.stats.inFlight, l.stats.waiting = l.inFlight, max(l.due(min(now, l.end)), l.next)-l.next
		d := l.patience(l.now(), sending)
		l.mu.Unlock()
		ready, err := l.poll.wait(d, l.ready[:0])
		l.mu.Lock()
		if l.ready = ready; err != nil {
			return err
		}
		for _, i := range ready {
			l.receive(l.byNumber(i))
		}
	}
	l.unsent()
	return nil
}

// byNumber finds a connection: a loop's numbers begin at 0.
func (l *loop) byNumber(i int) *conn { return l.conns[i] }

// due is how many requests of an open loop were due at a moment.
func (l *loop) due(at time.Duration) uint64 {
	if l.rate == 0 {
		return l.next
	}
	return uint64((at-l.begin).Seconds()*l.rate) + 1
}

// dueAt is when a request of an open loop is due.
func (l *loop) dueAt(k uint64) time.Duration {
	return l.begin + time.Duration(float64(k)/l.rate*float64(time.Second))
}

// send sends what may be sent now.
func (l *loop) send(now time.Duration) {
	for len(l.resting) > 0 && l.resting[0].resume <= now {
		l.free = append(l.free, l.resting[0])
		l.resting = l.resting[:copy(l.resting, l.resting[1:])]
	}
	n := 0
	for ; n < len(l.free); n++ {
		since := now
		if l.rate > 0 {
			if since = l.dueAt(l.next); since > now || since >= l.end {
				break
			}
			l.next++
		}
		c := l.free[n]
		c.idle = false
		l.request(c, since)
	}
	l.free = l.free[:copy(l.free, l.free[n:])]
}

// patience is how long to wait for answers.
func (l *loop) patience(now time.Duration, sending bool) time.Duration {
	d := lookEvery
	if !sending {
		return d
	}
	if l.rate > 0 && len(l.free) > 0 {
		d = min(d, l.dueAt(l.next)-now)
	}
	if len(l.resting) > 0 {
		d = min(d, l.resting[0].resume-now)
	}
	return max(min(d, l.end-now), 0)
}

// unsent counts the requests that were due and that no connection was free for, with the time that
// they had waited at the end. What they waited is a lower bound.
func (l *loop) unsent() {
	if l.rate == 0 {
		return
	}
	for ; l.dueAt(l.next) < l.end; l.next++ {
		waited := l.now() - l.dueAt(l.next)
		record(l.stats.all, waited)
		record(l.stats.recent, waited)
		l.stats.unsent++
		l.stats.lately.unsent++
	}
}

// request chooses and sends the next request of a connection.
func (l *loop) request(c *conn, since time.Duration) {
	c.turn++
	u := c.users[c.turn%len(c.users)]
	c.user, c.order, c.pair = u, -1, nil
	share := l.model.rand.IntN(100)
	var b []byte
	switch m := &l.o.Mix; {
	case share < m.Read:
		c.reads++
		c.op = reads[c.reads%len(reads)]
		c.pair = l.model.choose(u.pairs)
		b = l.writer.read(c.op, u, c.pair)
	case share < m.Read+m.Cancel && c.hasOpen(&u) || len(u.open) >= mostOpen:
		c.user = u
		o := u.open[0]
		u.open = u.open[1:]
		c.op, c.order = opCancel, o.index
		if c.order >= 0 {
			u.orders[c.order].canceled = true
			c.pair = l.model.pairOf(u.pairs, u.orders[c.order].pair)
		}
		b = l.writer.cancel(u, o.id)
	default:
		c.user = u
		w := l.model.next(u.pairs)
		u.placed++
		o := sent{price: priceOf(w), amount: amountOf(w), pair: uint16(w.pair.index), buy: w.buy,
			user: u.number, serial: u.placed}
		c.op, c.pair, c.order = opPlace, w.pair, len(u.orders)
		u.orders = append(u.orders, o)
		b = l.writer.place(u, &o, w.pair)
	}
	c.since, c.sent, c.busy = since, l.now(), true
	l.inFlight++
	if err := l.poll.write(c.number, b); err != nil {
		l.broken(c, "connection broken while sending")
	}
}

// hasOpen finds a user with an order to cancel: this one, else one of those whose turns come next.
func (c *conn) hasOpen(u **user) bool {
	for range min(len(c.users), 8) {
		if *u = c.users[c.turn%len(c.users)]; len((*u).open) > 0 {
			return true
		}
		c.turn++
	}
	return false
}

// mostOpen is how many resting orders an account keeps at most; then it cancels. With what is on
// its way that stays below the usual limit of an account's open orders in one book, 5,000.
const mostOpen = 4_000

// receive reads what is there of an answer.
func (l *loop) receive(c *conn) {
	if !c.up {
		return
	}
	if len(c.in) == cap(c.in) {
		c.in = append(make([]byte, 0, 2*cap(c.in)), c.in...)
	}
	n, err := l.poll.read(c.number, c.in[len(c.in):cap(c.in)])
	if err == errAgain {
		return
	}
	if err != nil {
		l.broken(c, "connection closed by the server")
		return
	}
	c.in = c.in[:len(c.in)+n]
	a, ok, err := readAnswer(c.in)
	switch {
	case err != nil || ok && !c.busy:
		l.broken(c, "answer not understood")
	case ok:
		if a.last { // nothing more is sent on it
			l.poll.remove(c.number)
			c.up = false
		}
		l.answered(c, a)
		c.in = c.in[:0]
		if a.last {
			l.reconnect(c)
		}
	}
}

// An answer is a whole answer over HTTP.
type answer struct {
	status int
	body   []byte
	last   bool // the server closes the connection
	later  bool // it asks to come again
}

var (
	headEnd     = []byte("\r\n\r\n")
	lengthField = []byte("\r\nContent-Length: ")
	closeField  = []byte("\r\nConnection: close")
	laterField  = []byte("\r\nRetry-After: ")
)

// readAnswer is false if more is to come.
func readAnswer(b []byte) (a answer, whole bool, err error) {
	head := bytes.Index(b, headEnd)
	if head < 0 {
		return a, false, nil
	}
	at := bytes.Index(b[:head], lengthField)
	if at < 0 || head < 12 {
		return a, false, errJSON
	}
	length := int(number(b[at+len(lengthField):]))
	body := b[head+len(headEnd):]
	if len(body) < length {
		return a, false, nil
	}
	if len(body) > length {
		return a, false, errJSON
	}
	a.status, a.body = int(number(b[9:12])), body
	a.last = bytes.Contains(b[:head], closeField)
	a.later = a.status >= 400 && bytes.Contains(b[:head], laterField)
	return a, true, nil
}

// finish ends the request in flight and gives the connection back.
func (l *loop) finish(c *conn, what, lately *uint64, rest bool) {
	now := l.now()
	l.stats.note(c.op, c.pair, now-c.since, what, lately)
	c.busy = false
	l.inFlight--
	switch {
	case !c.up:
	case rest:
		c.idle, c.resume = true, now+restFor
		l.resting = append(l.resting, c)
	case l.rate == 0 && now < l.end && !l.stop.Load():
		l.request(c, now)
	default:
		c.idle = true
		l.free = append(l.free, c)
	}
}

// broken ends a connection. Of what was in flight nothing is known.
func (l *loop) broken(c *conn, why string) {
	l.poll.remove(c.number)
	c.up = false
	l.drop(c)
	if c.busy {
		l.stats.kind(why)
		l.finish(c, &l.stats.unknown, &l.stats.lately.unknown, false)
	}
	l.reconnect(c)
}

// drop takes a connection out of those that may send.
func (l *loop) drop(c *conn) {
	if !c.idle {
		return
	}
	c.idle = false
	for _, list := range []*[]*conn{&l.free, &l.resting} {
		for i, d := range *list {
			if d == c {
				*list = append((*list)[:i], (*list)[i+1:]...)
				break
			}
		}
	}
}

// reconnect dials again, elsewhere: that may take its time.
func (l *loop) reconnect(c *conn) {
	c.in = c.in[:0]
	wait := min(time.Duration(c.attempts)*100*time.Millisecond, time.Second)
	c.attempts++
	time.AfterFunc(wait, func() {
		conn, err := net.DialTimeout("tcp", l.o.Address, dialTimeout)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.dialed = append(l.dialed, dialed{c, conn, err})
	})
}

// look takes up new connections and gives up answers that are too late.
func (l *loop) look(now time.Duration) {
	l.checked = now
	for _, d := range l.dialed {
		err := d.err
		if err == nil {
			err = l.poll.add(d.c.number, d.conn)
		}
		if err != nil {
			l.stats.kind("connection refused or not made")
			l.reconnect(d.c)
			continue
		}
		d.c.up, d.c.idle, d.c.attempts = true, true, 0
		l.free = append(l.free, d.c)
	}
	l.dialed = l.dialed[:0]
	for _, c := range l.conns {
		if c.busy && now-c.sent > l.o.Timeout {
			l.broken(c, "no answer in time")
		}
	}
}
