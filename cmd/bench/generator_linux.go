package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"exchange/gateway/sign"
)

// The generator is one thread over non-blocking sockets, so that it takes little of the two cores that
// it shares with what it measures. Places are signed before the clock starts (the nonce is not part of
// what is signed, so only its digits change); cancels are signed when they are sent.

// A user is an account's API key.
type user struct {
	key    string
	secret *sign.Keyed
}

// templates is how many different orders each connection sends in turn.
const templates = 64

type connection struct {
	fd     int
	user   *user
	places [templates][]byte // requests with room for the nonce
	at     int               // where the nonce's digits are, in all of them
	next   int
	turn   int
	nonce  uint64
	open   []uint64 // orders that rest, oldest first
	in     []byte   // what has arrived of an answer

	fixed      []byte // the request, if it is always the same
	placesOnly bool   // no cancels
}

// A result is what one run of the generator saw.
type result struct {
	requests int
	refused  int // answers that are neither 200 nor 201
	took     time.Duration
}

func (r result) rate() float64 { return float64(r.requests) / r.took.Seconds() }

const nonceDigits = 17

func request(path, key, signature, form string) (head []byte, nonceAt int) {
	head = []byte("POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nX-KEY: " + key + "\r\nX-SIGN: " + signature + "\r\nX-NONCE: ")
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

// dial connects once for each user; mix is the pattern of orders, seeded by the place in the list.
func dial(address string, users []*user) ([]*connection, error) {
	var conns []*connection
	for i, u := range users {
		fd, err := connect(address)
		if err != nil {
			return nil, err
		}
		c := &connection{fd: fd, user: u, nonce: uint64(time.Now().UnixMicro()), in: make([]byte, 0, 4096)}
		for j := range c.places {
			side := "buy"
			if (i+j)%2 == 0 {
				side = "sell"
			}
			form := fmt.Sprintf("amount=0.0%d&pair=BTC_USDT&price=%d&type=%s", 1+j%9, 49_990+(7*j+13*i)%20, side)
			c.places[j], c.at = request("/api/v1/order/", u.key, string(u.secret.Sign(nil, []byte(u.key+form))), form)
		}
		conns = append(conns, c)
	}
	return conns, nil
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
	return fd, errors.Join(unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1), unix.SetNonblock(fd, true))
}

// dialFixed makes connections that send one request again and again.
func dialFixed(address, path string, n int) ([]*connection, error) {
	var conns []*connection
	for range n {
		fd, err := connect(address)
		if err != nil {
			return nil, err
		}
		conns = append(conns, &connection{fd: fd, in: make([]byte, 0, 4096), fixed: []byte("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n")})
	}
	return conns, nil
}

// send writes the connection's next request: six orders, then four cancels of its oldest resting ones.
func (c *connection) send() error {
	if c.fixed != nil {
		return c.write(c.fixed)
	}
	c.nonce++
	c.turn++
	b := c.places[c.next]
	if c.turn%10 >= 6 && len(c.open) > 0 && !c.placesOnly {
		form := "order=" + strconv.FormatUint(c.open[0], 10)
		c.open = c.open[:copy(c.open, c.open[1:])]
		signature := c.user.secret.Sign(nil, []byte(c.user.key+form))
		var at int
		b, at = request("/api/v1/order-cancel/", c.user.key, string(signature), form)
		putNonce(b[at:], c.nonce)
	} else {
		c.next = (c.next + 1) % templates
		putNonce(b[c.at:], c.nonce)
	}
	return c.write(b)
}

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
		if i := bytes.Index(body, amount); i >= 0 && body[i+len(amount)] != '0' || i >= 0 && body[i+len(amount)+1] == '.' {
			c.open = append(c.open, number(body, oid))
		}
	case string(status) != "200":
		r.refused++
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
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return r, err
	}
	defer unix.Close(ep) //nolint:errcheck
	for i, c := range conns {
		if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, c.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}); err != nil {
			return r, err
		}
	}
	start := time.Now()
	busy := 0
	for _, c := range conns {
		if err := c.send(); err != nil {
			return r, err
		}
		busy++
	}
	events := make([]unix.EpollEvent, len(conns))
	for busy > 0 {
		n, err := unix.EpollWait(ep, events, 10_000)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return r, fmt.Errorf("no answer within ten seconds: %v", err)
		}
		over := time.Since(start) >= d
		for _, e := range events[:n] {
			c := conns[e.Fd]
			done, err := c.receive(&r)
			switch {
			case err != nil:
				return r, err
			case !done:
			case over:
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
