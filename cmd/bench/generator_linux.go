package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"exchange/gateway/sign"
)

// The generator is one thread over non-blocking sockets, so that it takes little of the two cores
// that it shares with what it measures. Places are signed before the clock starts (the nonce is not
// part of what is signed, so only its digits change); cancels are signed when they are sent.

// A user is an account with its API key, and the orders that it has.
type user struct {
	key    string
	secret *sign.Keyed
	places [][]byte // orders around the market, sent in turn, with room for the nonce
	deep   [][]byte // the same, far from the market
	kept   int      // how many orders stay open: while there are fewer, deep ones are sent
	next   int
	turn   int
	open   []uint64 // orders that rest, or were filled later; oldest first

	nonceAt int // where the nonce's digits are, in all of its orders
}

// templates is how many different orders a user sends in turn; with many users they are fewer, to
// save memory.
const (
	templates     = 64
	templatesMany = 8
)

// A connection has one request in flight, of each of its users in turn.
type connection struct {
	fd    int
	users []*user
	user  *user // whose request was last
	turn  int
	nonce uint64
	since time.Duration // when its request was due, in an open loop
	in    []byte        // what has arrived of an answer

	fixed      []byte // the request, if it is always the same
	placesOnly bool   // no cancels
	filling    bool   // only deep orders, until its user has all that are kept
}

// A result is what one run of the generator saw.
type result struct {
	requests int
	refused  int // answers that are neither 200 nor 201
	away     int // of them those with 503: turned away before anything was done
	took     time.Duration
}

func (r result) rate() float64 { return float64(r.requests) / r.took.Seconds() }

const nonceDigits = 17

func request(path, key, signature, form string) (head []byte, nonceAt int) {
	head = []byte("POST " + path +
		" HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nX-KEY: " + key +
		"\r\nX-SIGN: " + signature + "\r\nX-NONCE: ")
	nonceAt = len(head)
	head = append(head, bytes.Repeat([]byte{'0'}, nonceDigits)...)
	return append(head, "\r\nContent-Length: "+strconv.Itoa(len(form))+"\r\n\r\n"+form...), nonceAt
}

func putNonce(b []byte, n uint64) {
	for i := nonceDigits - 1; i >= 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
}

// order makes one order's request with room for the nonce.
func (u *user) order(form string) (b []byte) {
	b, u.nonceAt = request("/api/v1/order/", u.key, string(u.secret.Sign(nil, []byte(u.key+form))),
		form)
	return b
}

// dial makes so many connections, which share the users; the orders are seeded by the place in the
// list.
func dial(address string, n int, users []*user, pairOf func(user int) string) ([]*connection,
	error) {
	each := templates
	if len(users) > n {
		each = templatesMany
	}
	conns := make([]*connection, n)
	for i := range conns {
		fd, err := connect(address)
		if err != nil {
			return nil, err
		}
		conns[i] = &connection{fd: fd, nonce: uint64(time.Now().UnixMicro()),
			in: make([]byte, 0, 4096)}
	}
	for i, u := range users {
		for j := range each {
			side := "buy"
			if (i+j)%2 == 0 {
				side = "sell"
			}
			u.places = append(u.places, u.order(
				fmt.Sprintf("amount=0.0%d&pair=%s&price=%d&type=%s", 1+j%9, pairOf(i),
					49_990+(7*j+13*i)%20, side)))
		}
		c := conns[i%n]
		u.turn = len(c.users) // else all of them would place at one time, and cancel at another
		c.users = append(c.users, u)
		c.user = c.users[0]
	}
	return conns, nil
}

// deepen places orders far from the market until so many are open in all. From then on the mix
// keeps about as many: it places such orders where they become fewer, and its cancels take the
// oldest of all.
func deepen(conns []*connection, orders int) error {
	for i, c := range conns {
		u := c.user
		u.kept = (orders + len(conns) - 1) / len(conns)
		u.deep = nil
		for j := range templates {
			form := fmt.Sprintf("amount=0.001&pair="+tradedPair+"&price=%d.%02d&type=buy",
				1000+i*50+j, j)
			if j%2 == 0 {
				form = fmt.Sprintf("amount=0.001&pair="+tradedPair+"&price=%d.%02d&type=sell",
					100_000+i*50+j, j)
			}
			u.deep = append(u.deep, u.order(form))
		}
		c.filling = true
	}
	const most = 5 * time.Minute
	r, err := run(conns, most)
	for _, c := range conns {
		if err == nil && len(c.user.open) < c.user.kept {
			err = fmt.Errorf("not all orders of a deep book could be placed; %d of %d were refused",
				r.refused, r.requests)
		}
		c.filling = false
	}
	return err
}

func connect(address string) (fd int, err error) {
	tcp, err := net.ResolveTCPAddr("tcp4", address)
	if err != nil {
		return 0, err
	}
	if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return 0, err
	}
	sa := &unix.SockaddrInet4{Port: tcp.Port}
	copy(sa.Addr[:], tcp.IP.To4())
	if err := unix.Connect(fd, sa); err != nil {
		return 0, fmt.Errorf("connecting to %s: %w", address, err)
	}
	return fd, errors.Join(unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
		unix.SetNonblock(fd, true))
}

// dialFixed makes connections that send one request again and again.
func dialFixed(address, path string, n int) ([]*connection, error) {
	var conns []*connection
	for range n {
		fd, err := connect(address)
		if err != nil {
			return nil, err
		}
		conns = append(conns, &connection{fd: fd, in: make([]byte, 0, 4096),
			fixed: []byte("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n")})
	}
	return conns, nil
}

// send writes the connection's next request. Of ten of a user six are orders, then come four
// cancels of its oldest ones.
func (c *connection) send() error {
	if c.fixed != nil {
		return c.write(c.fixed)
	}
	c.nonce++
	c.turn++
	u := c.users[c.turn%len(c.users)]
	c.user = u
	u.turn++
	if u.turn%10 >= 6 && len(u.open) > 0 && !c.placesOnly && !c.filling {
		form := "order=" + strconv.FormatUint(u.open[0], 10)
		u.open = u.open[1:]
		b, at := request("/api/v1/order-cancel/", u.key,
			string(u.secret.Sign(nil, []byte(u.key+form))), form)
		putNonce(b[at:], c.nonce)
		return c.write(b)
	}
	list := u.places
	if len(u.open) < u.kept {
		list = u.deep
	}
	u.next++
	b := list[u.next%len(list)]
	putNonce(b[u.nonceAt:], c.nonce)
	return c.write(b)
}

// filled is when a connection that places deep orders has no more to place.
func (c *connection) filled() bool { return c.filling && len(c.user.open) >= c.user.kept }

func (c *connection) write(b []byte) error {
	n, err := unix.Write(c.fd, b)
	if err == nil && n != len(b) {
		err = errors.New("a request was written in part")
	}
	return err
}

var (
	lengthHeader = []byte("\r\nContent-Length: ")
	headEnd      = []byte("\r\n\r\n")
	oid          = []byte(`"oid":`)
	amount       = []byte(`"amount":`)
)

// receive reads what is there; done when a whole answer has arrived.
func (c *connection) receive(r *result) (done bool, err error) {
	room := c.in[len(c.in):cap(c.in)]
	n, err := unix.Read(c.fd, room)
	if err == unix.EAGAIN {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if n == 0 {
		return false, errors.New("the server closed a connection")
	}
	c.in = c.in[:len(c.in)+n]
	head := bytes.Index(c.in, headEnd)
	if head < 0 {
		return false, nil
	}
	at := bytes.Index(c.in[:head], lengthHeader)
	if at < 0 {
		return false, fmt.Errorf("an answer without a length: %q", c.in)
	}
	length := 0
	for _, d := range c.in[at+len(lengthHeader):] {
		if d < '0' || d > '9' {
			break
		}
		length = 10*length + int(d-'0')
	}
	if len(c.in) < head+len(headEnd)+length {
		if cap(c.in) < head+len(headEnd)+length {
			c.in = append(make([]byte, 0, 2*(head+length)), c.in...)
		}
		return false, nil
	}
	body := c.in[head+len(headEnd):]
	switch status := c.in[9:12]; {
	case string(status) == "201":
		if i := bytes.Index(body, amount); i >= 0 && body[i+len(amount)] != '0' ||
			i >= 0 && body[i+len(amount)+1] == '.' {
			c.user.open = append(c.user.open, number(body, oid))
		}
	case string(status) != "200":
		r.refused++
		if string(status) == "503" {
			r.away++
		}
	}
	r.requests++
	c.in = c.in[:0]
	return true, nil
}

func number(b, name []byte) (n uint64) {
	for _, d := range b[bytes.Index(b, name)+len(name):] {
		if d < '0' || d > '9' {
			break
		}
		n = 10*n + uint64(d-'0')
	}
	return n
}

// run keeps one request in flight on each connection for d.
func run(conns []*connection, d time.Duration) (r result, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p, err := newPoller(conns)
	if err != nil {
		return r, err
	}
	defer p.close()
	start := time.Now()
	busy := 0
	for _, c := range conns {
		if err := c.send(); err != nil {
			return r, err
		}
		busy++
	}
	for busy > 0 {
		ready, err := p.wait(patienceWithServer)
		if err != nil {
			return r, err
		}
		over := time.Since(start) >= d
		for _, e := range ready {
			c := conns[e.Fd]
			done, err := c.receive(&r)
			switch {
			case err != nil:
				return r, err
			case !done:
			case over || c.filled():
				busy--
			default:
				if err := c.send(); err != nil {
					return r, err
				}
			}
		}
	}
	r.took = time.Since(start)
	return r, nil
}

// patienceWithServer is how long no answer may come.
const patienceWithServer = 10 * time.Second

// A poller waits for answers on many connections.
type poller struct {
	epoll  int
	events []unix.EpollEvent // Fd is a connection's place in the list
}

func newPoller(conns []*connection) (p *poller, err error) {
	p = &poller{events: make([]unix.EpollEvent, len(conns))}
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	for i, c := range conns {
		if err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, c.fd,
			&unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}); err != nil {
			p.close()
			return nil, err
		}
	}
	return p, nil
}

func (p *poller) close() { unix.Close(p.epoll) } //nolint:errcheck

// wait waits until something can be read; it fails when that takes d.
func (p *poller) wait(d time.Duration) ([]unix.EpollEvent, error) {
	for {
		n, err := unix.EpollWait(p.epoll, p.events, int(d/time.Millisecond))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return nil, err
		case n == 0:
			return nil, fmt.Errorf("no answer within %v", d)
		default:
			return p.events[:n], nil
		}
	}
}

// waitUntilDue is a wait that ends, with nothing, after d at the latest, which is finer than
// epoll's milliseconds.
func (p *poller) waitUntilDue(d time.Duration) ([]unix.EpollEvent, error) {
	if d > 0 {
		due := unix.NsecToTimespec(int64(d))
		if _, err := unix.Ppoll([]unix.PollFd{{Fd: int32(p.epoll), Events: unix.POLLIN}}, &due,
			nil); err != nil && err != unix.EINTR {
			return nil, err
		}
	}
	n, err := unix.EpollWait(p.epoll, p.events, 0)
	if err == unix.EINTR {
		err = nil
	}
	return p.events[:max(n, 0)], err
}

// runOpen sends so many requests a second for d, whatever the server does: one that is due while
// all connections are busy waits for one, and its latency counts from when it was due, so none is
// left out.
func runOpen(conns []*connection, perSecond float64, d time.Duration,
	latencies *hdrhistogram.Histogram) (r result, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p, err := newPoller(conns)
	if err != nil {
		return r, err
	}
	defer p.close()
	idle := slices.Clone(conns)
	interval := float64(time.Second) / perSecond
	due, sent := time.Duration(0), 0
	start := time.Now()
	for due < d || len(idle) < len(conns) {
		for due < d && len(idle) > 0 && due <= time.Since(start) {
			c := idle[0]
			idle = idle[1:]
			c.since = due
			if err := c.send(); err != nil {
				return r, err
			}
			sent++
			due = time.Duration(float64(sent) * interval)
		}
		var ready []unix.EpollEvent
		if due < d && len(idle) > 0 {
			ready, err = p.waitUntilDue(due - time.Since(start))
		} else {
			ready, err = p.wait(patienceWithServer)
		}
		if err != nil {
			return r, err
		}
		for _, e := range ready {
			c := conns[e.Fd]
			done, err := c.receive(&r)
			if err != nil {
				return r, err
			}
			if done {
				if err := latencies.RecordValue(
					(time.Since(start) - c.since).Microseconds()); err != nil {
					return r, err
				}
				idle = append(idle, c)
			}
		}
	}
	r.took = time.Since(start)
	return r, nil
}
