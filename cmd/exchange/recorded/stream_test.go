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
	s := newSession(t, "pebble:"+t.TempDir())
	s.play(opening)
	c, _, err := websocket.DefaultDialer.Dial(
		"ws://"+s.s.Listen+"/socket.v2/?EIO=4&transport=websocket", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var list strings.Builder
	send := func(text string) {
		t.Helper()
		if err := c.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	receive := func() string {
		t.Helper()
		if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		_, text, err := c.ReadMessage()
		if err != nil {
			t.Fatalf("%v, after\n%s", err, list.String())
		}
		return string(text)
	}
	fmt.Fprintln(&list, "opened", shape(t, receive()[1:]))
	send("40")
	fmt.Fprintln(&list, "connected", shape(t, receive()[2:]))
	send(`420["subscribe","ticker","orderbook.20.BTC_USDT","diff","trades","book_BTC_USDT","x"]`)
	seen := map[string]bool{}
	await := func(n int) {
		t.Helper()
		for len(seen) < n {
			switch text := receive(); {
			case text == "2":
				send("3")
			case strings.HasPrefix(text, "42"):
				var event []json.RawMessage
				if err := json.Unmarshal([]byte(text[2:]), &event); err != nil || len(event) < 2 {
					t.Fatal(text, err)
				}
				seen["event "+string(event[0])+" "+shape(t, string(event[1]))] = true
			default:
				seen["acknowledgement "+text[:3]+" "+shape(t, text[3:])] = true
			}
		}
	}
	const states, all = 6, 10
	await(states) // the answers and the first states
	s.play(`
		alice POST /api/v1/order/ amount=1&pair=BTC_USDT&price=100&type=sell
		alice POST /api/v1/order/ amount=1&pair=BTC_USDT&price=120&type=sell
		bob POST /api/v1/order/ amount=0.5&pair=BTC_USDT&price=100&type=buy
		alice POST /api/v1/order-cancel/ order=2
	`)
	await(all)
	for _, e := range slices.Sorted(maps.Keys(seen)) {
		fmt.Fprintln(&list, e)
	}
	compare(t, "stream.txt", list.String())
}

// shape is the names of a JSON object's members, and of those within.
func shape(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return shapeOf(v, false)
}

// shapeOf is the shape of a decoded value; deep, lists are as their first entries.
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
