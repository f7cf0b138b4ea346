package socketio

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/valyala/fasthttp"
)

func TestConnectionsAreBoundedInAllAndByAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{Connections: 5, ConnectionsPerAddress: 2,
			Address: func(ctx *fasthttp.RequestCtx) netip.Addr {
				a, _ := netip.ParseAddr(string(ctx.Request.Header.Peek("X-From")))
				return a
			}})
		f := func(from, refusal string) string {
			t.Helper()
			a := r.do("GET", "EIO=4&transport=polling", "", "X-From", from)
			switch {
			case refusal == "" && a.status == 200:
				return r.opening(a.body).Sid
			case refusal == "" || a.status != 403 || a.body != `{"code":4,"message":"`+refusal+`"}`:
				t.Errorf("%s: %d %s", from, a.status, a.body)
			}
			return ""
		}
		const all, one = "Too many connections", "Too many connections from this address"
		first := f("192.0.2.1", "")
		f("::ffff:192.0.2.1", "")
		f("192.0.2.1", one)
		f("2001:db8::1", "")
		f("2001:db8::2", "")
		f("2001:db8::3", one)
		last := f("2001:db8:0:100::3", "")
		f("192.0.2.2", all)
		polling{r, first}.leaves()
		f("192.0.2.1", "")
		f("192.0.2.1", all)
		polling{r, last}.leaves()
		f("192.0.2.1", one)
		if s := r.server.Stats(); s.Refused[all] != 2 || s.Refused[one] != 3 {
			t.Errorf("%v", s.Refused)
		}
	})
}

func TestWebSocketsThatComeAtOnceKeepTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, clients = 3, 40
		r := echo(t, Options{Connections: most})
		var wait sync.WaitGroup
		var mu sync.Mutex
		open := 0
		for range clients {
			wait.Go(func() {
				c, _, err := r.dialer.Dial("ws"+r.url("EIO=4&transport=websocket")[4:],
					nil)
				if err != nil {
					return
				}
				t.Cleanup(func() { c.Close() })
				if _, b, err := c.ReadMessage(); err == nil && b[0] == '0' {
					mu.Lock()
					defer mu.Unlock()
					open++
				}
			})
		}
		wait.Wait()
		if s := r.server.Stats(); open != most || s.WebSocket != most || s.Handshakes != most {
			t.Errorf("%d are open, %+v", open, s)
		}
	})
}

func TestAFloodOfPacketsClosesItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{MessagesPerSecond: 1, MessagesBurst: 10})
		f := func(n int, what []byte) {
			t.Helper()
			c := r.ws() // which is a packet
			for range 19 {
				c.raw(what)
			}
			c.send("3")
			c.closedWith(1008)
			r.closed(TooManyMessages, n)
		}
		f(1, masked(textFrame, "3"))
		f(2, masked(textFrame, `42["message"]`))
		f(3, masked(0x89, "ping"))
		f(4, masked(0x8a, "pong"))
		f(5, masked(textFrame, "40/random")) // which is refused each time
		p := r.polling()
		p.join()
		if a := p.post(strings.Repeat("3\x1e", 9) + "3"); a.status != 400 {
			t.Errorf("%d %s", a.status, a.body)
		}
		p.gone()
		r.closed(TooManyMessages, 6)
		c := r.ws()
		for range 9 {
			c.send(`42["message"]`)
			c.want(`42["message-back"]`)
		}
	})
}

func TestABucketFillsWithTime(t *testing.T) { synctest.Test(t, testABucketFillsWithTime) }

func testABucketFillsWithTime(t *testing.T) {
	r := echo(t, Options{MessagesPerSecond: 1000, MessagesBurst: 2})
	c := r.ws()
	for range 50 {
		// since the answer to the one before: no tick is caught up with
		<-time.After(5 * time.Millisecond)
		c.send(`42["message"]`)
		c.want(`42["message-back"]`)
	}
}

func TestShutdownClosesAllAndRefusesNew(t *testing.T) {
	both(t, func(t *testing.T, with ...func(net.Listener) net.Listener) {
		r := echo(t, Options{}, with...)
		c := r.ws()
		p := r.polling()
		p.join()
		held := p.hold()
		away := r.polling() // has no poll open
		q := r.polling()
		half := r.dial("EIO=4&transport=websocket&sid=" + q.sid)
		half.send("2probe")
		half.want("3probe")
		r.socket(0).emit("last words") //nolint:errcheck // read below
		start := time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.server.Shutdown()
		}()
		c.want(`42["last words"]`)
		c.closedWith(1001)
		c.Close()
		if a := <-held; a.body != "1" {
			t.Errorf("a poll: %q", a.body)
		}
		half.closedWith(0)
		half.Close()
		<-done
		if d := time.Since(start); d > 5*lingerTimeout {
			t.Errorf("it took %v", d)
		}
		p.gone()
		away.gone()
		for _, transport := range []string{"polling", "websocket"} {
			a := r.do("GET", "EIO=4&transport="+transport, "", "Connection", "Upgrade", "Upgrade",
				"websocket",
				"Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
			if a.status != 503 || a.body != `{"code":4,"message":"Server is shutting down"}` {
				t.Errorf("%s: %d %s", transport, a.status, a.body)
			}
		}
		if got := strings.Join(r.reasons(), ","); got != "server shutdown,server shutdown" {
			t.Error(got)
		}
		r.server.Shutdown() // again
	})
}

func TestShutdownDoesNotWaitForClientsThatDoNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{})
		_, s := r.idle()
		fill(t, s)
		start := time.Now()
		r.server.Shutdown()
		if d := time.Since(start); d > 5*lingerTimeout {
			t.Errorf("it took %v", d)
		}
	})
}

// All actions run at once, so that the race detector sees them, and in the end nothing may be left.
func TestConcurrentChurnLeavesNothing(t *testing.T) {
	random := newRandom(t)
	seeds := make([]uint64, 8)
	for i := range seeds {
		seeds[i] = random.Uint64()
	}
	in(t, "churn", func(t *testing.T) { // which ends with the last goroutine
		r := echo(t, Options{QueueBytes: 32 << 10, PingInterval: 5 * time.Millisecond,
			PingTimeout:       500 * time.Millisecond,
			MessagesPerSecond: -1})
		stop := make(chan struct{})
		var owners, clients sync.WaitGroup
		for i := range 3 { // as the shards of a hub
			owners.Go(func() {
				random := rand.New(rand.NewPCG(seeds[0], uint64(i)))
				var dropped []uint32
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					time.Sleep(100 * time.Microsecond)
					r.mu.Lock()
					sockets := r.joined[max(0, len(r.joined)-30):]
					r.mu.Unlock()
					for _, s := range sockets {
						switch random.IntN(200) {
						case 0:
							s.Close(ServerClose)
						case 1:
							s.disconnect()
						case 2:
							s.emit("emitted", n, []byte{1}) //nolint:errcheck // it may be gone
						default:
							dropped, _ = s.Deliver([]Delivery{numbered(1, Keep, n, 10),
								numbered(2, Latest, n, 500),
								numbered(3, Resync, n, 500)}, dropped[:0])
						}
					}
				}
			})
		}
		for i := range seeds {
			clients.Go(func() {
				random := rand.New(rand.NewPCG(seeds[i], 1))
				for range 25 {
					r.visit(random)
				}
			})
		}
		clients.Wait()
		close(stop)
		owners.Wait()
		r.server.Shutdown()
		t.Logf("%+v", r.server.Stats())
	})
}

// visit is a client that comes, does something and goes in one of several ways. It wants nothing.
func (r *rig) visit(random *rand.Rand) {
	ws := func(query string) *websocket.Conn {
		c, _, err := r.dialer.Dial("ws"+r.url(query)[4:], nil)
		if err != nil {
			return nil
		}
		c.SetReadDeadline(time.Now().Add(patience))
		return c
	}
	talk := func(c *websocket.Conn) {
		for range random.IntN(50) {
			if _, b, err := c.ReadMessage(); err != nil {
				break
			} else if string(b) == "2" {
				c.WriteMessage(websocket.TextMessage, []byte("3")) //nolint:errcheck
			}
			c.WriteMessage(websocket.TextMessage, []byte(`42["message",1]`)) //nolint:errcheck
		}
		if random.IntN(2) == 0 {
			text := []string{"1", "41", "bad", "40"}[random.IntN(4)]
			//nolint:errcheck // it may be closed
			c.WriteMessage(websocket.TextMessage, []byte(text))
		}
		c.Close()
	}
	if random.IntN(2) == 0 {
		if c := ws("EIO=4&transport=websocket"); c != nil {
			c.WriteMessage(websocket.TextMessage, []byte("40")) //nolint:errcheck
			talk(c)
		}
		return
	}
	a, err := r.try("GET", "EIO=4&transport=polling", "")
	if err != nil || a.status != 200 {
		return
	}
	p := polling{r, r.opening(a.body).Sid}
	p.try("POST", p.query(), "40") //nolint:errcheck
	for range random.IntN(5) {
		a, err := p.try("GET", p.query(), "")
		if err != nil || a.status != 200 {
			return
		}
		if strings.Contains(a.body, "2") {
			p.try("POST", p.query(), "3") //nolint:errcheck
		}
	}
	if random.IntN(2) == 0 {
		p.try("POST", p.query(), "1") //nolint:errcheck
		return
	}
	if c := ws("EIO=4&transport=websocket&sid=" + p.sid); c != nil {
		c.WriteMessage(websocket.TextMessage, []byte("2probe")) //nolint:errcheck
		if random.IntN(3) > 0 {
			c.WriteMessage(websocket.TextMessage, []byte("5")) //nolint:errcheck
		}
		talk(c)
	}
}
