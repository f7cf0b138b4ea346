package gateway

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/fasthttp/websocket"

	"exchange/gateway/edge"
)

// A crowded exchange has a number of places, and trades.
func crowded(t *testing.T, places int) (h *harness, l *network) {
	h = traded(t)
	h.retune(func(o *edge.Options) { o.Connections = places })
	h.gateway.public.Places.SetSpare(0) // all clients of the tests are on this machine
	return h, h.served()
}

// Even when subscribers hold all places, a supervisor on this machine is answered.
func TestASupervisorOfThisMachineFindsAPlace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h, l := crowded(t, 3)
		for i := range 3 {
			subscriber(t, fmt.Sprintf("127.0.0.%d", 11+i), l, "trades")
		}
		talk(t, dialedFrom(t, "127.0.0.1", l), "GET", alive).is(t, 503)
		h.gateway.public.Places.SetSpare(1)
		for range 5 { // the spare place has an idle connection afterwards
			talk(t, dialedFrom(t, "127.0.0.1", l), "GET", alive).is(t, 200)
			h.gateway.idle(t, 1)
		}
	})
}

func TestThePublicListenerHasSparePlaces(t *testing.T) {
	g := New(edge.Options{Log: quiet(), BodyBytes: 1 << 10, HeaderBytes: 1 << 10, Connections: 10})
	spare := [...]int{g.public.Places.SetSpare(0), g.operators.Places.SetSpare(0),
		g.watchers.Places.SetSpare(0)}
	if spare != [...]int{edge.SpareConnections, 0, 0} || edge.SpareConnections < 1 {
		t.Errorf("%d", spare)
	}
}

// occupiers take all places from eight addresses and hold them. Some send nothing, some a part of a
// request, some were answered, and some have a stream without a subscription.
func occupiers(t *testing.T, l *network, places int) {
	t.Helper()
	for i := range places {
		source := fmt.Sprintf("127.0.0.%d", 11+i%8)
		switch i / 8 % 4 {
		case 0:
			dialedFrom(t, source, l)
		case 1:
			c := dialedFrom(t, source, l)
			if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nX-A: "); err != nil {
				t.Fatal(err)
			}
		case 2:
			c := dialedFrom(t, source, l)
			talk(t, c, "GET", alive).must(t, 200)
		case 3:
			subscriber(t, source, l, "")
		}
	}
}

// subscriber has a stream, and a subscription if it names a channel.
func subscriber(t *testing.T, source string, l *network, channel string) *websocket.Conn {
	t.Helper()
	d := websocket.Dialer{NetDial: func(string, string) (net.Conn, error) {
		return dialedFrom(t, source, l), nil
	}}
	c, resp,
		err := d.Dial("ws://exchange"+edge.StreamPath+"?EIO=4&transport=websocket", http.Header{})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	receive := func(what string) {
		t.Helper()
		for {
			_, text, err := c.ReadMessage()
			if err != nil {
				t.Fatalf("before %s: %v", what, err)
			}
			if strings.HasPrefix(string(text), what) {
				return
			}
		}
	}
	say := func(text string) {
		t.Helper()
		worked(t, c.WriteMessage(websocket.TextMessage, []byte(text)))
	}
	receive("0{")
	say("40")
	receive("40{")
	if channel != "" {
		say(`42["subscribe","` + channel + `"]`)
		receive(`42["subscribe.success"`)
	}
	return c
}

func signedRequest(account string, nonce uint64) string {
	s := signed(account, nonce, "")
	return "GET /api/v1/wallets HTTP/1.1\r\nHost: x\r\n" + s[0] + ": " + s[1] + "\r\n" + s[2] +
		": " + s[3] + "\r\n" + s[4] + ": " + s[5] + "\r\n\r\n"
}

func TestIdleConnectionsKeepNoClientOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const places = 64
		h, l := crowded(t, places)
		ask := func(c net.Conn, text string) {
			t.Helper()
			talk(t, c, "GET", text).is(t, 200)
		}
		owner := dialedFrom(t, "127.0.0.1", l)
		ask(owner, signedRequest("alice", h.nextNonce("alice")))
		// shares an address with others
		watcher := subscriber(t, "127.0.0.11", l, "trades.BTC_USDT")
		poll := h.polled(edge.StreamPath) // in memory: its request goes over TCP
		poll.receives("40{")
		held := dialedFrom(t, "127.0.0.12", l)
		if _, err := io.WriteString(held,
			"GET "+poll.path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		g := h.gateway
		eventually(t, "a request is under way", func() bool {
			return g.public.Places.Busy(netip.MustParseAddr("127.0.0.12")) == 1
		})
		taken := g.public.Places.Open()
		occupiers(t, l, places-taken)
		eventually(t, "all places are taken",
			func() bool { return g.public.Places.Open() == places })
		for i := range 3 * places {
			c := dialedFrom(t, "127.0.0.2", l)
			ask(c, alive)
			if i%2 == 0 {
				ask(c, signedRequest("bob", h.nextNonce("bob")))
			}
			c.Close()
			dialedFrom(t, fmt.Sprintf("127.0.0.%d", 11+i%8), l) // and they come again
		}
		ask(owner, signedRequest("alice", h.nextNonce("alice")))
		poll.say(`42["subscribe","ticker.BTC_USDT"]`)
		ask(held, "")
		h.post("alice", "/api/v1/order/", order("sell", "BTC_USDT", "0.1", "100.5")).must(t, 201)
		h.post("bob", "/api/v1/order/", order("buy", "BTC_USDT", "0.1", "101")).must(t, 201)
		if _, text, err := watcher.ReadMessage(); err != nil ||
			!strings.HasPrefix(string(text), `42["trades"`) {
			t.Errorf("%s, %v", text, err)
		}
	})
}

// idle waits until n connections could be given up.
func (g *Gateway) idle(t *testing.T, n int) {
	t.Helper()
	eventually(t, "connections are idle", func() bool { return g.public.Places.Idle() == n })
}

// A client that gives a subscription up may lose its place again, and so may a client that never
// had one.
func TestAStreamWithoutASubscriptionGivesItsPlaceUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h, l := crowded(t, 3)
		once, never := subscriber(t, "127.0.0.11", l, "trades"),
			subscriber(t, "127.0.0.11", l, "")
		worked(t, once.WriteMessage(websocket.TextMessage, []byte(`421["unsubscribe","trades"]`)))
		_, text, err := once.ReadMessage()
		if err != nil || !strings.HasPrefix(string(text), "431") {
			t.Fatalf("%s, %v", text, err)
		}
		h.gateway.idle(t, 2)
		stays := subscriber(t, "127.0.0.12", l, "trades")
		for range 2 {
			talk(t, dialedFrom(t, "127.0.0.13", l), "GET",
				signedRequest("alice", h.nextNonce("alice"))).is(t, 200)
		}
		for _, c := range []*websocket.Conn{once, never} {
			if _, text, err := c.ReadMessage(); err == nil {
				t.Errorf("%s", text)
			}
		}
		c := dialedFrom(t, "127.0.0.14", l) // no connection is left to give a place up
		talk(t, c, "GET", "").is(t, 503)
		worked(t, stays.WriteMessage(websocket.TextMessage, []byte(`421["subscribe","ticker"]`)))
		if _, text, err := stays.ReadMessage(); err != nil {
			t.Errorf("%s, %v", text, err)
		}
	})
}
