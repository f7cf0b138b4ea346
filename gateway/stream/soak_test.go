package stream

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"exchange/gateway/socketio"
	"exchange/gateway/socketio/sockettest"
)

// Clients come, behave in every way there is, and go, for EXCHANGE_SOAK_SECONDS (10). Afterwards
// nothing of them is left, and a client that behaved well the whole time has missed nothing.
func TestDisconnectedClientsLeaveNothing(t *testing.T) {
	bubble(t, testDisconnectedClientsLeaveNothing)
}

func testDisconnectedClientsLeaveNothing(t *testing.T) {
	seconds := must(strconv.Atoi(cmp.Or(os.Getenv("EXCHANGE_SOAK_SECONDS"), "10")))
	w := newWorld(t, func(o *socketio.Options) {
		o.MessagesPerSecond, o.MessagesBurst = 50, 100
		o.QueueBytes, o.ConnectTimeout, o.UpgradeTimeout, o.PingInterval = 64<<10, time.Second,
			time.Second, time.Second
		o.StallTimeout, o.PingTimeout = 10*time.Second, 10*time.Second
	})
	const pair = "BTC_USDT"
	good := newKeeper(w, "depth", pair)
	stop := w.trade(pair)
	churn := func(d time.Duration) {
		var clients sync.WaitGroup
		until := time.Now().Add(d)
		for i := range 24 {
			clients.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), uint64(d)))
				for time.Now().Before(until) {
					w.misbehave(r)
				}
			})
		}
		for ; time.Now().Before(until); time.Sleep(time.Millisecond) {
			id, _ := shownBook(w, pair)
			good.until(id)
			good.book.history = map[uint64]string{}
		}
		clients.Wait()
	}
	// memory that is allocated once is allocated now
	churn(time.Duration(seconds) * time.Second / 6)
	goroutines, heap := w.measure(t)
	churn(time.Duration(seconds) * time.Second)
	eventually(t, "no goroutine is left of them", func() bool {
		n, _ := w.measure(t)
		return n <= goroutines+8
	})
	_, after := w.measure(t)
	// The traders continue meanwhile, and the engine keeps their newest trades and orders.
	if after > heap+64<<20 {
		t.Errorf("the heap had %d MiB, and now has %d", heap>>20, after>>20)
	}
	stop()
	id, want := shownBook(w, pair)
	if good.until(id); good.book.text() != want {
		t.Errorf("the client that behaved has another book: %s, want %s", good.book.text(), want)
	}
	s := w.hub.Stats()
	if s.Subscriptions["depth"] != 1 || total(s.Subscriptions) != 1 {
		t.Errorf("subscriptions are left: %v", s.Subscriptions)
	}
	t.Logf("%d goroutines, then %d; heap %d MiB, then %d; %+v", goroutines, runtime.NumGoroutine(),
		heap>>20, after>>20, w.server.Stats())
}

func total(counts map[string]int64) (n int64) {
	for _, of := range counts {
		n += of
	}
	return n
}

// measure waits until one client is left, and returns the goroutines and the bytes of the heap.
func (w *world) measure(t *testing.T) (goroutines int, heap uint64) {
	eventually(t, "all but one have gone", func() bool {
		s := w.server.Stats()
		return s.Polling+s.WebSocket == 1 && w.hub.Stats().clients == 1
	})
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine(), m.HeapAlloc
}

// misbehave runs one client.
func (w *world) misbehave(r *rand.Rand) {
	if r.IntN(6) == 0 { // a connection that never becomes one
		c, err := w.dialer.NetDial("", "")
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprint(c, []string{ //nolint:errcheck // the server may hang up
			"GET /socket.v2/?EIO=4&transport=websocket HTTP/1.1\r\nHost: x\r\n",
			"GET /socket.v2/?EIO=4&transport=polling HTTP/1.1\r\nHost: x\r\n\r\n",
			"\x00\x01"}[r.IntN(3)])
		return
	}
	conn, _, err := w.dial()
	if err != nil {
		return
	}
	defer conn.Close()
	if r.IntN(8) == 0 {
		return // it opens and sends nothing
	}
	say := func(text string) bool {
		return conn.WriteMessage(websocket.TextMessage, []byte(text)) == nil
	}
	say("40")
	all := []string{"ticker", "diff", "trades", "orderbook.20", "ticker.BTC_USDT", "diff.BTC_USDT",
		"trades.BTC_USDT", "orderbook.20.BTC_USDT", "book_BTC_USDT", "book_X", "x", "depth", "bbo",
		"trades.full", "depth.BTC_USDT", "bbo.BTC_USDT", "trades.full.BTC_USDT"}
	subscribe := func() bool {
		verb := []string{"subscribe", "subscribe", "unsubscribe"}[r.IntN(3)]
		return say(`42["` + verb + `","` + all[r.IntN(len(all))] + `","` + all[r.IntN(len(all))] +
			`"]`)
	}
	for range 1 + r.IntN(20) {
		subscribe()
	}
	switch r.IntN(8) {
	case 0: // a flood
		for range 1000 {
			if !subscribe() {
				return
			}
		}
	case 1: // no packet
		say([]string{"x", "42", `42{"a":1}`, `42["connect"]`, "40", "9", `45999-["a"]`,
			"42[" + strings.Repeat("[", 1000)}[r.IntN(8)])
	case 2: // text that is none
		conn.WriteMessage(websocket.TextMessage, []byte("42[\"\xff\xfe\"]")) //nolint:errcheck
	case 3: // it disconnects at once
		conn.NetConn().(*sockettest.Conn).SetLinger(0) //nolint:errcheck
		return
	case 4: // it reads nothing
		for range 50 {
			if !say("3") {
				return
			}
			time.Sleep(20 * time.Millisecond) // the client's own pace
		}
		return
	}
	for deadline := time.Now().Add(
		time.Duration(r.IntN(300)) * time.Millisecond); time.Now().Before(deadline); {
		conn.SetReadDeadline(deadline) //nolint:errcheck
		if _, b, err := conn.ReadMessage(); err != nil {
			return
		} else if string(b) == "2" {
			say("3")
		}
	}
}
