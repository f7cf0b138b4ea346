package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"exchange/gateway/sign"
	"exchange/loadtest/generator"
)

// The clients of the benchmark run on the load tester's generator. They do as little as they can,
// because they share two cores with the server. Places are signed before the clock starts: the
// nonce is not part of the signed text, so only its digits change. Cancels are signed when they are
// sent.

// A user is an account with its API key and orders.
type user struct {
	key    string
	text   string // the secret
	secret *sign.Keyed
	places [][]byte // orders around the market, sent in turn, with room for the nonce
	// the same as texts; a client order id goes between the two parts
	forms [][2]string
	deep  [][]byte // the same, far from the market
	kept  int      // how many orders stay open: with fewer, deep orders are sent
	next  int
	turn  int
	open  []uint64 // orders that rest, or were filled later; oldest first

	nonceAt int // where the nonce's digits are, in all of its orders
}

// templates is how many different orders a user sends in turn; with many users they are fewer, to
// save memory.
const (
	templates     = 64
	templatesMany = 8
)

// A connection sends for each of its users in turn.
type connection struct {
	users []*user
	user  *user // whose request was last
	turn  int
	nonce uint64

	fixed      []byte // the request, if it is always the same
	placesOnly bool   // no cancels
	filling    bool   // only deep orders, until its user has all that are kept
	// other makes its requests instead of the mix; nil: the mix does
	other func(u *user, nonce uint64) []byte
}

// clients are the connections of one generator.
type clients struct {
	*generator.Generator
	conns []*connection

	// of one run
	next      func(conn int) []byte
	result    result
	latencies *hdrhistogram.Histogram // microseconds; nil: they are not kept
}

// A result is the outcome of one run of the generator.
type result struct {
	requests int
	refused  int // answers that are neither 200 nor 201
	away     int // of the refused: answers 503, turned away before anything was done
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

// dial makes n connections, which share the users; the orders are seeded by the place in the list.
func dial(address string, n int, users []*user, pairOf func(user int) string) (*clients, error) {
	each := templates
	if len(users) > n {
		each = templatesMany
	}
	conns := make([]*connection, n)
	for i := range conns {
		conns[i] = &connection{nonce: uint64(time.Now().UnixMicro())}
	}
	for i, u := range users {
		for j := range each {
			side := "buy"
			if (i+j)%2 == 0 {
				side = "sell"
			}
			form := [2]string{fmt.Sprintf("amount=0.0%d", 1+j%9),
				fmt.Sprintf("&pair=%s&price=%d&type=%s", pairOf(i), 49_990+(7*j+13*i)%20, side)}
			u.forms = append(u.forms, form)
			u.places = append(u.places, u.order(form[0]+form[1]))
		}
		c := conns[i%n]
		u.turn = len(c.users) // otherwise all would place at one time and cancel at another
		c.users = append(c.users, u)
		c.user = c.users[0]
	}
	return connect(address, conns)
}

// dialFixed makes n connections that send one request again and again.
func dialFixed(address, path string, n int) (*clients, error) {
	conns := make([]*connection, n)
	for i := range conns {
		conns[i] = &connection{fixed: []byte("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n")}
	}
	return connect(address, conns)
}

// newGenerator is a variable for the tests.
var newGenerator = generator.New

func connect(address string, conns []*connection) (*clients, error) {
	c := &clients{conns: conns}
	var err error
	if c.Generator, err = newGenerator(c, generator.Options{Address: address,
		Connections: len(conns), Timeout: patienceWithServer}); err != nil {
		return nil, err
	}
	if err := c.Connect(); err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", address, err)
	}
	return c, nil
}

// patienceWithServer is the longest wait for an answer.
const patienceWithServer = 10 * time.Second

// deepen places orders far from the market until this many are open in all. From then on the mix
// keeps about that many. The mix places deep orders while some are missing, and cancels the oldest
// of all.
func deepen(cl *clients, orders int) error {
	for i, c := range cl.conns {
		u := c.user
		u.kept = (orders + len(cl.conns) - 1) / len(cl.conns)
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
	r, err := cl.run(most)
	for _, c := range cl.conns {
		if err == nil && len(c.user.open) < c.user.kept {
			err = fmt.Errorf("not all orders of a deep book could be placed; %d of %d were refused",
				r.refused, r.requests)
		}
		c.filling = false
	}
	return err
}

// request returns the connection's next request. Of ten requests of a user six are orders, and then
// come four cancels of the user's oldest orders. A connection that places deep orders has no more
// when its user has all that are kept.
func (c *connection) request() []byte {
	if c.fixed != nil {
		return c.fixed
	}
	if c.filling && len(c.user.open) >= c.user.kept {
		return nil
	}
	c.nonce++
	c.turn++
	u := c.users[c.turn%len(c.users)]
	c.user = u
	u.turn++
	if c.other != nil {
		return c.other(u, c.nonce)
	}
	if u.cancels() && !c.placesOnly && !c.filling {
		return u.cancel(c.nonce)
	}
	if len(u.open) < u.kept {
		return u.place(c.nonce, u.deep)
	}
	return u.place(c.nonce, u.places)
}

// cancels reports whether it is a cancel's turn in the mix.
func (u *user) cancels() bool { return u.turn%10 >= 6 && len(u.open) > 0 }

// cancel makes the cancel of the user's oldest order.
func (u *user) cancel(nonce uint64) []byte {
	form := "order=" + strconv.FormatUint(u.open[0], 10)
	u.open = u.open[1:]
	return u.signed("/api/v1/order-cancel/", form, nonce)
}

// place takes the next of a list of orders.
func (u *user) place(nonce uint64, list [][]byte) []byte {
	u.next++
	return u.stamp(list[u.next%len(list)], nonce)
}

// stamp writes the nonce into one of the user's orders.
func (u *user) stamp(order []byte, nonce uint64) []byte {
	putNonce(order[u.nonceAt:], nonce)
	return order
}

// signed makes a request that is signed now.
func (u *user) signed(path, form string, nonce uint64) []byte {
	b, at := request(path, u.key, string(u.secret.Sign(nil, []byte(u.key+form))), form)
	putNonce(b[at:], nonce)
	return b
}

var (
	oid    = []byte(`"oid":`)
	amount = []byte(`"amount":`)
)

// Request returns the next request of a connection.
func (cl *clients) Request(conn, _ int) []byte { return cl.next(conn) }

// Answered notes the orders that rest.
func (cl *clients) Answered(conn int, a generator.Answer, latency time.Duration) (rest bool) {
	switch a.Status {
	case 201:
		if i := bytes.Index(a.Body, amount); i >= 0 && a.Body[i+len(amount)] != '0' ||
			i >= 0 && a.Body[i+len(amount)+1] == '.' {
			u := cl.conns[conn].user
			u.open = append(u.open, number(a.Body, oid))
		}
	case 200:
	case 503:
		cl.result.away++
		fallthrough
	default:
		cl.result.refused++
	}
	cl.result.requests++
	if cl.latencies != nil {
		_ = cl.latencies.RecordValue(min(latency.Microseconds(), longestLatency)) // it is in range
	}
	return false
}

// Broken ends the run: a server that is measured keeps its connections.
func (cl *clients) Broken(_ int, reason string, _ bool, _ time.Duration) error {
	return errors.New(reason)
}

// Unsent does nothing, because all runs send late requests.
func (cl *clients) Unsent(int, time.Duration) {}

func number(b, name []byte) (n uint64) {
	for _, d := range b[bytes.Index(b, name)+len(name):] {
		if d < '0' || d > '9' {
			break
		}
		n = 10*n + uint64(d-'0')
	}
	return n
}

func (cl *clients) phase(p generator.Phase, next func(conn int) []byte) (result, error) {
	cl.next, cl.result = next, result{}
	start := time.Now()
	_, err := cl.Run(p)
	cl.result.took = time.Since(start)
	return cl.result, err
}

// run keeps one request in flight on each connection for d.
func (cl *clients) run(d time.Duration) (result, error) { return cl.runOf(len(cl.conns), d) }

// runOf runs with the first n connections only.
func (cl *clients) runOf(n int, d time.Duration) (result, error) {
	return cl.phase(generator.Phase{Length: d}, func(conn int) []byte {
		if conn >= n {
			return nil
		}
		return cl.conns[conn].request()
	})
}

// runOpen sends this many requests a second for d, however slow the exchange is. If all connections
// are busy when a request is due, the request waits for one. Latency counts from the due time, so
// no wait is left out.
func (cl *clients) runOpen(perSecond float64, d time.Duration,
	latencies *hdrhistogram.Histogram) (result, error) {
	cl.latencies = latencies
	defer func() { cl.latencies = nil }()
	return cl.phase(generator.Phase{Schedule: generator.Steady(perSecond, d), SendsLate: true},
		func(conn int) []byte { return cl.conns[conn].request() })
}

// once sends one request on one connection.
func (cl *clients) once(conn int, request []byte) (result, error) {
	return cl.phase(generator.Phase{Length: patienceWithServer}, func(i int) (b []byte) {
		if i == conn {
			b, request = request, nil
		}
		return b
	})
}

// place places one order on one connection.
func (cl *clients) place(conn int, form string) error {
	c := cl.conns[conn]
	c.nonce++
	b := c.user.order(form)
	putNonce(b[c.user.nonceAt:], c.nonce)
	r, err := cl.once(conn, b)
	if err == nil && (r.requests != 1 || r.refused > 0) {
		err = fmt.Errorf("the order %s was refused", form)
	}
	return err
}
