//go:build prove

package recorded

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
)

func TestTheEventsOfTheStreamAreThoseRecorded(t *testing.T) {
	t.Run("exchange", func(t *testing.T) {
		compare(t, "stream.txt", streamed(t, newSession(t, "pebble:"+t.TempDir())))
	})
	t.Run("observer", func(t *testing.T) {
		same(t, "stream.txt", streamed(t, newSessionThroughObserver(t)))
	})
}

// streamed lists the events of the stream, and their members.
func streamed(t *testing.T, s *session) string {
	t.Helper()
	s.play(opening)
	var list strings.Builder
	c := dial(t, s)
	fmt.Fprintln(&list, "opened", shape(t, c.receive()[1:]))
	c.send("40")
	fmt.Fprintln(&list, "connected", shape(t, c.receive()[2:]))
	c.send(`420["subscribe","ticker","orderbook.20.BTC_USDT","diff","trades","book_BTC_USDT","x",` +
		`"depth","trades.full","candles.D","status"]`)
	seen := map[string]bool{}
	await := func(n int) {
		t.Helper()
		for len(seen) < n {
			text := c.receive()
			if name, body := event(t, text); name != "" {
				seen["event \""+name+"\" "+shape(t, body)] = true
			} else {
				seen["acknowledgement "+text[:3]+" "+shape(t, text[3:])] = true
			}
		}
	}
	const states, all = 8, 15
	await(states) // the answers and the first states
	s.play(`
		alice POST /api/v1/order/ amount=1&pair=BTC_USDT&price=100&type=sell
		alice POST /api/v1/order/ amount=1&pair=BTC_USDT&price=120&type=sell
		bob POST /api/v1/order/ amount=0.5&pair=BTC_USDT&price=100&type=buy
		alice POST /api/v1/order-cancel/ order=2
	`)
	await(all)
	own(t, s, &list)
	for _, e := range slices.Sorted(maps.Keys(seen)) {
		fmt.Fprintln(&list, e)
	}
	return list.String()
}

// own lists an account's requests at a socket, and the packets that it receives.
func own(t *testing.T, s *session, list *strings.Builder) {
	t.Helper()
	c := dial(t, s)
	c.receive()
	c.send("40")
	c.receive()
	tell := func(name string) string {
		t.Helper()
		text := c.receive()
		if event, body := event(t, text); event != "" {
			fmt.Fprintf(list, "event %q %s\n", event, shape(t, body))
		} else {
			text = strings.TrimPrefix(text, "430")
			fmt.Fprintf(list, "acknowledgement of %q %s\n", name, shape(t, text[1:len(text)-1]))
		}
		return text
	}
	c.send(`420["login",{}]`)
	tell("login")
	c.send(`420["challenge"]`)
	var challenge []struct{ Challenge string }
	succeeds(t, json.Unmarshal([]byte(tell("challenge")), &challenge))
	key := s.keys["alice"]
	c.send(fmt.Sprintf(`420["login",{"key":%q,"sign":%q}]`, key, s.signs["alice"].Sign(nil,
		[]byte("login\n"+key+"\n"+challenge[0].Challenge))))
	tell("login")
	c.send(`420["own.subscribe"]`)
	tell("own.subscribe")
	tell("") // the snapshot
	s.play(`
		bob POST /api/v1/order/ amount=0.1&pair=BTC_USDT&price=100&type=buy
		alice POST /api/v1/order-cancel-all/ all=1
	`)
	tell("")
	tell("")
	c.send(`420["logout"]`)
	tell("logout")
}

// A subscriber is a client of the stream.
type subscriber struct {
	t *testing.T
	c *websocket.Conn
}

// dial opens a socket that ends with the test.
func dial(t *testing.T, s *session) subscriber {
	t.Helper()
	c, _, err := websocket.DefaultDialer.Dial(
		"ws://"+s.s.Listen+"/socket.v2/?EIO=4&transport=websocket", nil)
	succeeds(t, err)
	t.Cleanup(func() { c.Close() })
	return subscriber{t, c}
}

func (s subscriber) send(text string) {
	s.t.Helper()
	succeeds(s.t, s.c.WriteMessage(websocket.TextMessage, []byte(text)))
}

// receive returns the next packet. It answers heartbeats.
func (s subscriber) receive() string {
	s.t.Helper()
	for {
		succeeds(s.t, s.c.SetReadDeadline(time.Now().Add(time.Minute)))
		_, text, err := s.c.ReadMessage()
		succeeds(s.t, err)
		if string(text) != "2" {
			return string(text)
		}
		s.send("3")
	}
}

// event returns the name and the payload of a packet; "": it is not an event.
func event(t *testing.T, packet string) (name, body string) {
	t.Helper()
	text, ok := strings.CutPrefix(packet, "42")
	if !ok {
		return "", ""
	}
	var parts []json.RawMessage
	if err := json.Unmarshal([]byte(text), &parts); err != nil || len(parts) < 2 {
		t.Fatal(packet, err)
	}
	if err := json.Unmarshal(parts[0], &name); err != nil {
		t.Fatal(packet, err)
	}
	return name, string(parts[1])
}

// shape returns the names of a JSON object's members, and of the members within.
func shape(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return shapeOf(v, false)
}

// shapeOf returns the shape of a decoded value; if deep, lists have the shape of their first entry.
func shapeOf(v any, deep bool) string {
	switch v := v.(type) {
	case map[string]any:
		var list []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			list = append(list, name+shapeOf(v[name], deep))
		}
		return "{" + strings.Join(list, " ") + "}"
	case []any:
		if deep && len(v) > 0 {
			return "[" + shapeOf(v[0], deep) + "]"
		}
		return "[]"
	}
	return ""
}
