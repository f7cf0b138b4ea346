package crash

import (
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"exchange/cmd/exchange/exchangetest"
	"exchange/persistence/redistest"
)

// A relay stands between the exchange and its Redis and can treat the traffic badly.
type relay struct {
	t        *testing.T
	listener net.Listener
	target   string
	mode     atomic.Int32
	mu       sync.Mutex
	conns    map[net.Conn]bool
	dropped  atomic.Int64 // answers that Redis gave and nobody got, in bytes
}

// What a relay does with what passes.
const (
	pass        int32 = iota
	delay             // every piece waits
	dropAnswers       // commands arrive and are carried out, answers are lost
	refuse            // connections are cut, and new ones too
	trickle           // so many bytes a second
	swallow           // nothing arrives, and nobody is told
)

const (
	relayDelay = 30 * time.Millisecond // how long a piece waits in a slow relay
	relayBytes = 200_000               // a second, of one that trickles
)

func newRelay(t *testing.T, target string) *relay {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{t: t, listener: l, target: target, conns: map[net.Conn]bool{}}
	go r.accept()
	t.Cleanup(func() {
		l.Close()
		r.cut()
	})
	return r
}

func (r *relay) url() string { return "redis://" + r.listener.Addr().String() + "/0" }

// set changes the mode; what is connected is cut where the mode says so.
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

// reset breaks what is connected, as a machine that has forgotten it: what was under way is lost.
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
		r.conns[c], r.conns[redis] = true, true
		r.mu.Unlock()
		go r.pump(c, redis, false)
		go r.pump(redis, c, true)
	}
}

func (r *relay) pump(from, to net.Conn, answers bool) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		switch r.mode.Load() {
		case delay:
			<-time.After(relayDelay)
		case trickle:
			<-time.After(time.Duration(n) * time.Second / relayBytes)
		case swallow:
			r.dropped.Add(int64(n))
			continue
		case dropAnswers:
			if answers {
				r.dropped.Add(int64(n))
				continue
			}
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// waitFor waits until a command whose nonce is used is answered in a certain way, while the store misbehaves.
func (w *world) waitFor(what string, status int, text string) {
	w.t.Helper()
	t := w.traders[0]
	probe := &trader{s: t.s, name: "probe", key: t.key, secret: t.secret}
	exchangetest.Eventually(w.t, what, func() bool {
		got, body, err := probe.send("POST", "/api/v1/order-cancel/", "order=1", 1) // its nonce is long used
		return err == nil && got == status && strings.Contains(body, text)
	})
}

func TestAStoreBehindABadNetworkLosesNothing(t *testing.T) {
	for _, c := range []struct {
		name string
		mode int32
	}{{"slow", delay}, {"cut off", refuse}, {"answers lost", dropAnswers}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := redistest.Start(t)
			relay := newRelay(t, r.Addr())
			s := exchangetest.New(t, relay.url())
			s.Env = append(s.Env, "EXCHANGE_TIMING_REQUEST_TIMEOUT_MS=1000") // so that outcomes become unknown
			campaign(t, s, networkRounds, func(w *world) {
				relay.set(c.mode)
				switch c.mode {
				case delay:
					w.waitFor("a slow store still answers", 401, "Wrong Nonce")
				default:
					w.waitFor("the store's absence is told", 503, "store is not available")
					for _, path := range []string{"orderbook/BTC_USDT", "exchanges", "pairs"} { // memory knows
						if status, body, err := s.Client.Get(nil, "http://"+s.Listen+"/api/v1/"+path); err != nil || status != 200 {
							t.Errorf("%s without a store: %d %s %v", path, status, body, err)
						}
					}
				}
				if c.mode == dropAnswers && relay.dropped.Load() == 0 {
					t.Error("no answer was lost")
				}
				relay.set(pass)
				w.waitFor("the exchange takes commands again", 401, "Wrong Nonce") // which is a record
				exchangetest.Eventually(t, "the history is exact up to it", func() bool {
					return s.Ready() == nil && w.auditor.get("/api/v1/exchanges/own/", new([]tradeRow)) == nil
				})
			})
		})
	}
}
