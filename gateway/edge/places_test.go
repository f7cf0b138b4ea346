package edge_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/fasthttp/websocket"

	"exchange/gateway"
	"exchange/gateway/edge"
	"exchange/prove/harness"
)

// A crowded exchange has a number of places, and trades.
func crowded(t *testing.T, places int) (h *harness.Exchange, l *harness.Network) {
	h = harness.Traded(t)
	h.Retune(func(o *edge.Options) { o.Connections = places })
	h.Gateway.Public().Places.SetSpare(0) // all clients of the tests are on this machine
	return h, h.Served()
}

// Even when subscribers hold all places, a supervisor on this machine is answered.
func TestASupervisorOfThisMachineFindsAPlace(t *testing.T) {
	harness.Bubble(t, func(t *testing.T) {
		h, l := crowded(t, 3)
		for i := range 3 {
			subscriber(t, fmt.Sprintf("127.0.0.%d", 11+i), l, "trades")
		}
		harness.Talk(t, harness.DialedFrom(t, "127.0.0.1", l), "GET", alive).Is(t, 503)
		h.Gateway.Public().Places.SetSpare(1)
		for range 5 { // the spare place has an idle connection afterwards
			harness.Talk(t, harness.DialedFrom(t, "127.0.0.1", l), "GET", alive).Is(t, 200)
			idle(t, h.Gateway, 1)
		}
	})
}

func TestThePublicListenerHasSparePlaces(t *testing.T) {
	g := gateway.New(edge.Options{Log: harness.Quiet(), BodyBytes: 1 << 10, HeaderBytes: 1 << 10,
		Connections: 10})
	spare := [...]int{g.Public().Places.SetSpare(0), g.Operators().Places.SetSpare(0),
		g.Watchers().Places.SetSpare(0)}
	if spare != [...]int{edge.SpareConnections, 0, 0} || edge.SpareConnections < 1 {
		t.Errorf("%d", spare)
	}
}

// occupiers take all places from eight addresses and hold them. Some send nothing, some a part of a
// request, some were answered, and some have a stream without a subscription.
func occupiers(t *testing.T, l *harness.Network, places int) {
	t.Helper()
	for i := range places {
		source := fmt.Sprintf("127.0.0.%d", 11+i%8)
		switch i / 8 % 4 {
		case 0:
			harness.DialedFrom(t, source, l)
		case 1:
			c := harness.DialedFrom(t, source, l)
			if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nX-A: "); err != nil {
				t.Fatal(err)
			}
		case 2:
			c := harness.DialedFrom(t, source, l)
			harness.Talk(t, c, "GET", alive).Must(t, 200)
		case 3:
			subscriber(t, source, l, "")
		}
	}
}

// subscriber has a stream, and a subscription if it names a channel.
func subscriber(t *testing.T, source string, l *harness.Network, channel string) *websocket.Conn {
	t.Helper()
	d := websocket.Dialer{NetDial: func(string, string) (net.Conn, error) {
		return harness.DialedFrom(t, source, l), nil
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
		harness.Worked(t, c.WriteMessage(websocket.TextMessage, []byte(text)))
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
	s := harness.Signed(account, nonce, "")
	return "GET /api/v1/wallets HTTP/1.1\r\nHost: x\r\n" + s[0] + ": " + s[1] + "\r\n" + s[2] +
		": " + s[3] + "\r\n" + s[4] + ": " + s[5] + "\r\n\r\n"
}

func TestIdleConnectionsKeepNoClientOut(t *testing.T) {
	harness.Bubble(t, func(t *testing.T) {
		const places = 64
		h, l := crowded(t, places)
		ask := func(c net.Conn, text string) {
			t.Helper()
			harness.Talk(t, c, "GET", text).Is(t, 200)
		}
		owner := harness.DialedFrom(t, "127.0.0.1", l)
		ask(owner, signedRequest("alice", h.NextNonce("alice")))
		// shares an address with others
		watcher := subscriber(t, "127.0.0.11", l, "trades.BTC_USDT")
		poll := h.Polled(edge.StreamPath) // in memory: its request goes over TCP
		poll.Receives("40{")
		held := harness.DialedFrom(t, "127.0.0.12", l)
		if _, err := io.WriteString(held,
			"GET "+poll.Path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		g := h.Gateway
		harness.Eventually(t, "a request is under way", func() bool {
			return g.Public().Places.Busy(netip.MustParseAddr("127.0.0.12")) == 1
		})
		taken := g.Public().Places.Open()
		occupiers(t, l, places-taken)
		harness.Eventually(t, "all places are taken",
			func() bool { return g.Public().Places.Open() == places })
		for i := range 3 * places {
			c := harness.DialedFrom(t, "127.0.0.2", l)
			ask(c, alive)
			if i%2 == 0 {
				ask(c, signedRequest("bob", h.NextNonce("bob")))
			}
			c.Close()
			harness.DialedFrom(t, fmt.Sprintf("127.0.0.%d", 11+i%8), l) // and they come again
		}
		ask(owner, signedRequest("alice", h.NextNonce("alice")))
		poll.Say(`42["subscribe","ticker.BTC_USDT"]`)
		ask(held, "")
		h.Post("alice", "/api/v1/order/", harness.Order("sell", "BTC_USDT", "0.1", "100.5")).Must(t,
			201)
		h.Post("bob", "/api/v1/order/", harness.Order("buy", "BTC_USDT", "0.1", "101")).Must(t, 201)
		if _, text, err := watcher.ReadMessage(); err != nil ||
			!strings.HasPrefix(string(text), `42["trades"`) {
			t.Errorf("%s, %v", text, err)
		}
	})
}

// idle waits until n connections could be given up.
func idle(t *testing.T, g *gateway.Gateway, n int) {
	t.Helper()
	harness.Eventually(t, "connections are idle",
		func() bool { return g.Public().Places.Idle() == n })
}

// A client that gives a subscription up may lose its place again, and so may a client that never
// had one.
func TestAStreamWithoutASubscriptionGivesItsPlaceUp(t *testing.T) {
	harness.Bubble(t, func(t *testing.T) {
		h, l := crowded(t, 3)
		once, never := subscriber(t, "127.0.0.11", l, "trades"),
			subscriber(t, "127.0.0.11", l, "")
		harness.Worked(t,
			once.WriteMessage(websocket.TextMessage, []byte(`421["unsubscribe","trades"]`)))
		_, text, err := once.ReadMessage()
		if err != nil || !strings.HasPrefix(string(text), "431") {
			t.Fatalf("%s, %v", text, err)
		}
		idle(t, h.Gateway, 2)
		stays := subscriber(t, "127.0.0.12", l, "trades")
		for range 2 {
			harness.Talk(t, harness.DialedFrom(t, "127.0.0.13", l), "GET",
				signedRequest("alice", h.NextNonce("alice"))).Is(t, 200)
		}
		for _, c := range []*websocket.Conn{once, never} {
			if _, text, err := c.ReadMessage(); err == nil {
				t.Errorf("%s", text)
			}
		}
		c := harness.DialedFrom(t, "127.0.0.14", l) // no connection is left to give a place up
		harness.Talk(t, c, "GET", "").Is(t, 503)
		harness.Worked(t,
			stays.WriteMessage(websocket.TextMessage, []byte(`421["subscribe","ticker"]`)))
		if _, text, err := stays.ReadMessage(); err != nil {
			t.Errorf("%s, %v", text, err)
		}
	})
}
