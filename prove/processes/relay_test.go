//go:build prove

package processes

import (
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"exchange/prove/exchangetest"
)

// A relay between the exchange and its Redis can disturb the traffic.
type relay struct {
	t        *testing.T
	listener net.Listener
	target   string
	mode     atomic.Int32
	mu       sync.Mutex
	conns    map[net.Conn]bool
	began    []byte // first bytes of the newest connection; guarded by mu
	asks     line
	answers  line
}

// A line is shared by all connections in one direction of a relay that trickles.
type line struct {
	mu   sync.Mutex
	free time.Time // when all accepted bytes have passed; guarded by mu
}

// reserve returns the time until bytes have passed, after those of other senders.
func (l *line) reserve(bytes int) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(time.Duration(bytes) * time.Second / relayBytes)
	return l.free.Sub(now)
}

// The modes of a relay.
const (
	pass        int32 = iota
	delay             // every piece waits
	dropAnswers       // commands arrive and are executed, answers are lost
	refuse            // connections are cut, and so are new ones
	trickle           // relayBytes a second, of all connections together
	swallow           // no byte arrives, and no side is notified
	halve             // the first half of a command arrives, and no answer
)

const (
	// minimum delay of a piece in a slow relay; a random half of it is added
	relayDelay = 300 * time.Millisecond
	// bytes a second in each direction of a trickling relay: polls and beats take most of it
	relayBytes = 16000
	relayPiece = 512 // bytes after which another connection has its turn on a line
)

func newRelay(t *testing.T, target string) *relay {
	l := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	r := &relay{t: t, listener: l, target: target, conns: map[net.Conn]bool{}}
	go r.accept()
	t.Cleanup(func() {
		l.Close()
		r.cut()
	})
	return r
}

func (r *relay) url() string { return "redis://" + r.listener.Addr().String() + "/0" }

// set changes the mode, and cuts connections where the mode says so.
func (r *relay) set(mode int32) {
	r.mode.Store(mode)
	if mode == refuse {
		r.cut()
	}
}

func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		c.Close()
	}
	clear(r.conns)
}

// reset breaks all connections like a rebooted machine: bytes in flight are lost.
func (r *relay) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		c.(*net.TCPConn).SetLinger(0) //nolint:errcheck // it may be closed already
	}
	for c := range r.conns {
		c.Close()
	}
	clear(r.conns)
}

func (r *relay) accept() {
	for {
		c, err := r.listener.Accept()
		if err != nil {
			return
		}
		if r.mode.Load() == refuse {
			c.Close()
			continue
		}
		redis, err := net.Dial("tcp", r.target)
		if err != nil {
			c.Close()
			continue
		}
		r.mu.Lock()
		r.conns[c], r.conns[redis], r.began = true, true, nil
		r.mu.Unlock()
		go r.pump(c, redis, &r.asks)
		go r.pump(redis, c, &r.answers)
	}
}

// pump forwards bytes according to the mode. After a loss no more bytes pass on the connection, in
// any mode: a stream has no holes.
func (r *relay) pump(from, to net.Conn, line *line) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 64<<10)
	for broken := false; ; {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if line == &r.asks {
			r.keep(buf[:n])
		}
		arrives := n
		switch mode := r.mode.Load(); {
		case broken, mode == swallow, line == &r.answers && (mode == dropAnswers || mode == halve):
			arrives = 0
		case mode == halve:
			arrives = n / 2
		}
		if arrives < n {
			broken = true
		}
		if !r.forward(to, buf[:arrives], line) {
			return
		}
	}
}

// keep stores the first bytes of a connection.
func (r *relay) keep(b []byte) {
	const most = 16 << 10
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began = append(r.began, b[:min(len(b), most-len(r.began))]...)
}

// recorded returns the first bytes of the newest connection.
func (r *relay) recorded() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.began)
}

// forward writes arriving bytes, delayed according to the mode. False: the connection is gone.
func (r *relay) forward(to net.Conn, what []byte, line *line) bool {
	for len(what) > 0 {
		n := len(what)
		switch r.mode.Load() {
		case delay:
			<-time.After(relayDelay + rand.N(relayDelay/2))
		case trickle:
			n = min(n, relayPiece)
			<-time.After(line.reserve(n))
		}
		if _, err := to.Write(what[:n]); err != nil {
			return false
		}
		what = what[n:]
	}
	return true
}

// slower returns the number of appends above a bound of the histogram, in seconds.
func slower(m map[string]float64, bound string) float64 {
	return m["exchange_store_append_duration_seconds_count"] -
		m[`exchange_store_append_duration_seconds_bucket{le="`+bound+`"}`]
}

// waitFor waits until a command with a used nonce gets a certain answer, while the store
// misbehaves.
func (w *world) waitFor(what string, status int, text string) {
	w.t.Helper()
	t := w.traders[0]
	probe := &trader{s: t.s, name: "probe", key: t.key, secret: t.secret}
	exchangetest.Eventually(w.t, what, func() bool {
		// its nonce was used long ago
		got, body, err := probe.send("POST", "/api/v1/order-cancel/", "order=1", 1)
		return err == nil && got == status && strings.Contains(body, text)
	})
}
