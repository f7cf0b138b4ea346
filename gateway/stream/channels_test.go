package stream

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/trading"
	"exchange/gateway/socketio"
)

// A client gets no state that may be older than anything another node has acknowledged.
func TestClientAtStaleNodeIsDisconnected(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		l := w.listen()
		l.subscribe("trades.BTC_USDT")
		w.stale.Store(true)
		l.say(`42["unsubscribe","trades.BTC_USDT"]`) // needs no state
		l.say(`42["subscribe","trades.BTC_USDT"]`)
		l.ended()
		if len(l.got) > 0 {
			t.Errorf("the client got %v", l.got)
		}
		w.stale.Store(false)
		w.listen().subscribe("diff.BTC_USDT")
	})
}

func TestEachChannelSendsItsEvents(t *testing.T) { bubble(t, testEachChannelSendsItsEvents) }

func testEachChannelSendsItsEvents(t *testing.T) {
	w := newWorld(t, nil)
	l := w.listen()
	first := w.place(0, "BTC_USDT", trading.Sell, 50000.5, 2)
	l.say(`42["subscribe","diff.BTC_USDT"]`)
	l.expect("subscribe.success", `{"channel":"diff.BTC_USDT","timestamp":*}`)
	l.expect("depth.diff",
		`{"pair":"BTC_USDT","update_id":1,"prev_update_id":null,"snapshot":true,"timestamp":*,"sell":[{"price":50000.5,"amount":2}],"buy":[]}`)
	l.say(`42["subscribe",["trades.BTC_USDT"]]`)
	l.expect("subscribe.success", `{"channel":"trades.BTC_USDT","timestamp":*}`)
	l.subscribe("book_BTC_USDT")

	var events map[string]string
	next := func(n int) {
		t.Helper()
		events = map[string]string{}
		for range n {
			s := l.next()
			events[s.name] += string(s.body)
		}
	}
	is := func(event, body string) {
		t.Helper()
		if !matches(body, events[event]) {
			t.Errorf("%s is\n%s, want\n%s", event, events[event], body)
		}
	}
	second := w.place(1, "BTC_USDT", trading.Buy, 50001, 3)
	next(3)
	is("depth.diff",
		`{"pair":"BTC_USDT","update_id":2,"prev_update_id":1,"timestamp":*,"sell":[{"price":50000.5,"amount":0}],"buy":[{"price":50001,"amount":1}]}`)
	is("trades", `{"id":1,"price":50000.5,"pair":"BTC_USDT","type":"buy","timestamp":*,"amount":2}`)
	is("book_BTC_USDT", fmt.Sprintf(
		`{"success":true,"date":*,"oid":%d,"type":"buy","price":50001,"amount":1,"trades":[{"tid":1,"type":"sell","price":"50000.5","amount":"2","o_id":%d}]}`,
		second, first))
	w.cancel(1, second)
	next(2)
	is("depth.diff",
		`{"pair":"BTC_USDT","update_id":3,"prev_update_id":2,"timestamp":*,"sell":[],"buy":[{"price":50001,"amount":0}]}`)
	is("book_BTC_USDT", fmt.Sprintf(
		`{"success":true,"date":*,"oid":%d,"cancel_order_id":%d,"price":50001,"type":"buy","amount":1,"pair":"BTC_USDT","cancelled":true}`,
		second+1, second))
	w.place(0, "ETH_USDT", trading.Sell, 3000, 1) // no client listens to this pair

	l.say(`42["unsubscribe","diff.BTC_USDT","trades.BTC_USDT","book_BTC_USDT"]`)
	l.say(`42["subscribe","orderbook.20.ETH_USDT"]`)
	l.expect("subscribe.success", `{"channel":"orderbook.20.ETH_USDT","timestamp":*}`)
	l.expect("orderbook.20",
		`{"pair":"ETH_USDT","update_id":1,"timestamp":*,"sell":[{"price":3000,"amount":1}],"buy":[]}`)
	w.place(2, "ETH_USDT", trading.Buy, 2999.5, 0.25)
	l.expect("orderbook.20",
		`{"pair":"ETH_USDT","update_id":2,"timestamp":*,"sell":[{"price":3000,"amount":1}],"buy":[{"price":2999.5,"amount":0.25}]}`)
	l.say(`42["unsubscribe","orderbook.20.ETH_USDT"]`)
	l.say(`42["subscribe","ticker.ETH_USDT"]`)
	l.expect("subscribe.success", `{"channel":"ticker.ETH_USDT","timestamp":*}`)
	l.expect("ticker",
		`{"timestamp":*,"pair":"ETH_USDT","last":0,"diff":0,"vol":0,"high":0,"low":0,"buy":2999.5,"sell":3000}`)
	w.place(1, "ETH_USDT", trading.Buy, 3000, 0.5)
	for s := l.next(); !strings.Contains(string(s.body), `"vol":0.5,`); s = l.next() {
		if s.name != "ticker" {
			t.Fatalf("%s %s", s.name, s.body)
		}
	}
}

// A client registers for events when it gets the answer that it has joined. No event of a name
// comes before that, for any pair, also if events happen meanwhile.
func TestSuccessPrecedesFirstEventOfAName(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.place(0, "BTC_USDT", trading.Sell, 50000, 1)
		stop := make(chan struct{})
		defer func() { <-stop }()
		go func() {
			defer close(stop)
			for range 100 {
				w.cancel(0, w.place(0, "BTC_USDT", trading.Sell, 50001, 1))
			}
		}()
		events := map[string]string{"depth.diff": "diff", "ticker": "ticker",
			"orderbook.20": "orderbook.20", "bbo": "bbo"}
		for range 20 {
			l := w.listen()
			l.say(`42["subscribe","diff","ticker","orderbook.20","bbo"]`)
			named, first, updates := map[string]bool{}, map[string]int{}, map[string]uint64{}
			pairs := len(w.engine.Pairs())
			for first["diff"] < pairs || first["ticker"] < pairs || first["orderbook.20"] < pairs ||
				first["bbo"] < pairs {
				s := l.next()
				var m struct {
					Channel, Pair string
					UpdateID      uint64  `json:"update_id"`
					Previous      *uint64 `json:"prev_update_id"`
					Timestamp     float64
				}
				worked(t, json.Unmarshal(s.body, &m))
				if s.name == "subscribe.success" {
					named[m.Channel] = true
					continue
				}
				name := events[s.name]
				if !named[name] {
					t.Fatalf("%s %s comes before its name's success", s.name, s.body)
				}
				if m.Timestamp < 1e9 {
					t.Fatalf("%s has no time: %s", s.name, s.body)
				}
				switch {
				case name != "diff":
					first[name]++
				case m.Previous == nil:
					first[name]++
					updates[m.Pair] = m.UpdateID
				case *m.Previous != updates[m.Pair]:
					t.Fatalf("update %d of %s follows update %d", *m.Previous, m.Pair,
						updates[m.Pair])
				default:
					updates[m.Pair] = m.UpdateID
				}
			}
			l.say(`42["unsubscribe","diff","ticker","orderbook.20","bbo"]`)
		}
	})
}

func TestNamesOfChannels(t *testing.T) { bubble(t, testNamesOfChannels) }

func testNamesOfChannels(t *testing.T) {
	w := newWorld(t, nil)
	l := w.listen()
	l.say(
		`42["subscribe","x","ticker.X_Y","orderbook.20","orderbook.20.","orderbook.200","book_","book_X","diffs","status.BTC_USDT",7,{"a":1}]`)
	for _, want := range []string{`{"channel":"x","message":"unknown channel"}`,
		`{"channel":"ticker.X_Y","message":"unknown pair"}`,
		`{"channel":"orderbook.20.","message":"unknown pair"}`,
		`{"channel":"orderbook.200","message":"unknown channel"}`,
		`{"channel":"book_","message":"unknown pair"}`,
		`{"channel":"book_X","message":"unknown pair"}`,
		`{"channel":"diffs","message":"unknown channel"}`,
		`{"channel":"status.BTC_USDT","message":"unknown channel"}`,
		`{"channel":"7","message":"unknown channel"}`,
		`{"channel":"{\"a\":1}","message":"unknown channel"}`} {
		l.expect("subscribe.error", want)
	}
	// For a channel of all pairs, states arrive as each pair admits the client; after all, the
	// success.
	received := map[string]int{}
	for range 4 {
		received[l.next().name]++
	}
	if received["orderbook.20"] != 3 || received["subscribe.success"] != 1 {
		t.Error(received)
	}
	// Unsubscribing is answered to the client alone. It is idempotent, and no more events arrive.
	l.say(`421["unsubscribe","orderbook.20","trades"]`)
	l.say(`422["unsubscribe",["orderbook.20"]]`)
	l.say(`423["subscribe",["trades","x","trades"],"trades","x"]`) // two names, answered once each
	l.expect("subscribe.error", `{"channel":"x","message":"unknown channel"}`)
	l.expect("subscribe.success", `{"channel":"trades","timestamp":*}`)
	l.say(`424["subscribe"]`)
	l.say(`42["subscribe","diff.ETH_BTC"]`)
	l.expect("subscribe.success", `{"channel":"diff.ETH_BTC","timestamp":*}`)
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, want := range map[string]string{"1": `[{"channels":["orderbook.20","trades"]}]`,
		"2": `[{"channels":["orderbook.20"]}]`, "3": `[{"channels":["trades","trades","trades"]}]`,
		"4": `[{"channels":[]}]`} {
		if string(l.acks[id]) != want {
			t.Errorf("ack %s is %s, want %s", id, l.acks[id], want)
		}
	}
}

func TestEventIsSentOnceUnderTwoNames(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		l := w.listen()
		l.subscribe("trades.BTC_USDT", "trades")
		w.place(0, "BTC_USDT", trading.Sell, 100, 1)
		w.place(1, "BTC_USDT", trading.Buy, 100, 0.25)
		// before the next: pairs do not wait for each other
		l.expect("trades",
			`{"id":1,"price":100,"pair":"BTC_USDT","type":"buy","timestamp":*,"amount":0.25}`)
		w.place(0, "ETH_BTC", trading.Sell, 1, 1)
		w.place(1, "ETH_BTC", trading.Buy, 1, 1)
		l.expect("trades",
			`{"id":2,"price":1,"pair":"ETH_BTC","type":"buy","timestamp":*,"amount":1}`)
		l.say(`425["unsubscribe","trades"]`)
		l.subscribe("trades.ETH_USDT")
		w.place(0, "ETH_BTC", trading.Sell, 1, 1)
		w.place(1, "ETH_BTC", trading.Buy, 1, 1)
		w.place(1, "BTC_USDT", trading.Buy, 100, 0.25)
		// the name it still has
		l.expect("trades",
			`{"id":4,"price":100,"pair":"BTC_USDT","type":"buy","timestamp":*,"amount":0.25}`)
		l.say(`425["unsubscribe","trades.BTC_USDT"]`)
		l.subscribe("book_ETH_USDT")
		w.place(1, "BTC_USDT", trading.Buy, 100, 0.25)
		order := w.place(1, "ETH_USDT", trading.Buy, 100, 0.25)
		l.expect("book_ETH_USDT", fmt.Sprintf(
			`{"success":true,"date":*,"oid":%d,"type":"buy","price":100,"amount":0.25,"trades":[]}`,
			order))
	})
}

func TestSilentClientReceivesAllOrders(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.silent = true
		l := w.listen()
		eventually(t, "it listens to every pair", func() bool {
			return w.hub.counts.subscriptions[book].Load() == 3
		})
		w.place(0, "BTC_USDT", trading.Sell, 100, 1)
		w.place(0, "ETH_BTC", trading.Sell, 100, 1)
		if a, b := l.next(), l.next(); a.name+b.name != "book_BTC_USDTbook_ETH_BTC" &&
			a.name+b.name != "book_ETH_BTCbook_BTC_USDT" {
			t.Fatal(a, b)
		}
		l.subscribe("book_ETH_USDT")
		w.place(0, "BTC_USDT", trading.Sell, 100, 1)
		w.place(0, "ETH_USDT", trading.Sell, 100, 1)
		if a := l.next(); a.name != "book_ETH_USDT" {
			t.Fatal(a)
		}
		l.say(`42["unsubscribe","book_ETH_USDT"]`)
		l.subscribe("trades")
		eventually(t, "it listens to no orders", func() bool {
			return w.hub.counts.subscriptions[book].Load() == 0
		})
	})
}

func TestNamesPerClientAreBounded(t *testing.T) { bubble(t, testNamesPerClientAreBounded) }

func testNamesPerClientAreBounded(t *testing.T) {
	var pairs []*directory.Pair
	for i := range 200 {
		pairs = append(pairs, &directory.Pair{Name: fmt.Sprint("P", i)})
	}
	n := newNames(pairs)
	if n.topics() != int(status)*200+1 {
		t.Fatal(n.topics())
	}
	c := &client{pairChannels: n.newSet()}
	for i := range maxNames {
		x, err := n.parse(fmt.Sprint("book_P", i))
		if err != nil || c.has(&x) || c.count() != i {
			t.Fatal(err, c.count())
		}
		if c.set(&x, true); !c.has(&x) || !c.wants(x.topic, n) {
			t.Fatal(x)
		}
	}
	many := make([]string, 0, 1000)
	for i := range 1000 {
		many = append(many, fmt.Sprintf(`"ticker.P%d"`, i))
	}
	if got := channelNames([]json.RawMessage{
		json.RawMessage("[" + strings.Join(many, ",") + "]")}); len(got) != maxNames+1 {
		t.Error(len(got))
	}

	w := newWorld(t, nil)
	l := w.listen()
	writes := w.server.Stats().Writes
	text := `42["subscribe"`
	for i := range maxNames + 10 {
		text += fmt.Sprintf(`,"x%d"`, i)
	}
	l.say(text + "]")
	for i := range maxNames + 1 {
		want := "unknown channel"
		if i == maxNames {
			want = "were ignored"
		}
		if s := l.next(); s.name != "subscribe.error" ||
			!strings.Contains(string(s.body), fmt.Sprintf(`"x%d"`, i)) ||
			!strings.Contains(string(s.body), want) {
			t.Fatalf("%s %s", s.name, s.body)
		}
	}
	if n := w.server.Stats().Writes - writes; n > 10 {
		t.Errorf("the answers to one request took %d writes", n)
	}
	l.say(`42["subscribe",null]`)
	for s := l.next(); s.name != "subscribe.error"; s = l.next() {
	}
}

// A client that requests a channel by another name gets the state as for a new channel.
func TestEachNameStartsWithTheState(t *testing.T) { bubble(t, testEachNameStartsWithTheState) }

func testEachNameStartsWithTheState(t *testing.T) {
	w := newWorld(t, nil)
	w.place(0, "BTC_USDT", trading.Sell, 100, 1)
	for plain, event := range map[string]string{"diff": "depth.diff", "ticker": "ticker",
		"orderbook.20": "orderbook.20", "depth": "depth", "bbo": "bbo"} {
		for _, names := range [][2]string{{plain, plain + ".BTC_USDT"},
			{plain + ".BTC_USDT", plain}} {
			l := w.listen()
			l.subscribe(names[0])
			pairs := 1
			if names[0] == plain {
				pairs = 3
			}
			for range pairs {
				l.next()
			}
			l.say(`42["subscribe","` + names[1] + `"]`)
			for got := false; !got; {
				s := l.next()
				got = s.name == event && strings.Contains(string(s.body), `"BTC_USDT"`) &&
					(plain != "diff" && plain != "depth" ||
						strings.Contains(string(s.body), `"snapshot":true`))
			}
		}
	}
}

// A silent client that receives the orders of all pairs, and then subscribes to some of them,
// misses none.
func TestSilentClientKeepsRequestedChannels(t *testing.T) {
	bubble(t, func(t *testing.T) {
		// it may lag behind for a while
		w := newWorld(t, func(o *socketio.Options) {
			o.QueueBytes, o.StallTimeout = 64<<20, time.Minute
		})
		w.silent = true
		all := w.listen() // silent
		place := map[string]int{}
		at := func(body string) int {
			for {
				if n, ok := place[body]; ok {
					return n
				}
				place[string(all.next().body)] = len(place)
			}
		}
		eventually(t, "it has received all pairs", func() bool {
			return w.hub.counts.subscriptions[book].Load() == 3
		})
		for range 20 {
			stop := w.trade("BTC_USDT")
			l := w.listen()
			l.next()
			l.say(`42["subscribe","book_BTC_USDT"]`)
			last := -1
			for after := 0; after < 5; {
				s := l.next()
				if s.name == "subscribe.success" || after > 0 {
					after++
				}
				if s.name == "subscribe.success" {
					continue
				}
				n := at(string(s.body))
				if last >= 0 && n != last+1 {
					t.Fatalf("after order %d comes order %d", last, n)
				}
				last = n
			}
			l.conn.Close()
			stop()
			// No trade occurs until the client has received everything.
			newest := fmt.Sprintf(`"oid":%d,`, w.place(0, "BTC_USDT", trading.Buy, 1, 1))
			for caughtUp := false; !caughtUp; {
				s := all.next()
				place[string(s.body)] = len(place)
				caughtUp = strings.Contains(string(s.body), newest)
			}
		}
	})
}

// Whole books are made once per interval, however many clients join and leave.
func TestBooksAreMadeOncePerInterval(t *testing.T) { bubble(t, testBooksAreMadeOncePerInterval) }

func testBooksAreMadeOncePerInterval(t *testing.T) {
	w := newWorld(t, nil)
	w.hub.opts.Interval = 50 * time.Millisecond
	w.hub.opts.BBOInterval = w.hub.opts.Interval
	for _, name := range []string{"diff", "depth", "orderbook.20", "ticker", "bbo"} {
		l := w.listen()
		before, begin := w.hub.tokens.Load(), time.Now()
		for n := range 40 {
			w.place(0, "BTC_USDT", trading.Sell, 100+float64(n), 1)
			l.say(`42["subscribe","` + name + `.BTC_USDT"]`)
			for l.next().name != "subscribe.success" {
			}
			if n%2 == 1 {
				l.say(`42["unsubscribe","` + name + `.BTC_USDT"]`)
			}
		}
		n, most := w.hub.tokens.Load()-before, uint64(time.Since(begin)/w.hub.opts.Interval)+2
		if n == 0 || n > most {
			t.Errorf("%s: %d states were asked for, %d are allowed", name, n, most)
		}
	}
}

// A batch larger than the queue's limit does not disconnect a client that can get the book instead.
func TestLargeBatchIsReplacedByTheBook(t *testing.T) {
	bubble(t, testLargeBatchIsReplacedByTheBook)
}

func testLargeBatchIsReplacedByTheBook(t *testing.T) {
	w := newWorld(t, func(o *socketio.Options) {
		o.QueueBytes, o.StallTimeout = 256<<10, time.Minute
	})
	l := w.listen()
	l.subscribe("diff.BTC_USDT")
	l.next()
	w.listen().subscribe("trades.BTC_USDT") // on the other shard, before the next one connects
	beside := w.listen()
	send := func(n uint64) {
		var list []committed.BookUpdate
		for i := range n {
			list = append(list, committed.BookUpdate{UpdateID: i + 1,
				Levels: []committed.LevelChange{{Side: trading.Sell, Price: 1e10}}})
		}
		channel := w.hub.channel(w.hub.names.topic(diff, 0))
		w.engine.Notify(channel, &committed.BookUpdates{List: list})
	}
	// Deliveries to an empty queue do not count, so another batch is queued first: some 170 kB,
	// which is more than the system's buffers, and less than the limit. A client of the same shard
	// that joins after it is answered after it, and the channel then starts at 0 again.
	l.hold(true)
	send(1200)
	beside.subscribe("diff.BTC_USDT")
	beside.say(`42["unsubscribe","diff.BTC_USDT"]`)
	eventually(t, "one client is left", func() bool {
		return w.hub.counts.subscriptions[diff].Load() == 1
	})
	if n := w.hub.counts.resyncs.Load(); n != 0 {
		t.Errorf("the book is owed %d times already", n)
	}
	send(10_000)
	eventually(t, "the book is owed", func() bool { return w.hub.counts.resyncs.Load() == 1 })
	if n := w.server.Stats().Closed[socketio.SlowClient]; n != 0 {
		t.Error(n)
	}
}

func TestFailedChannelDisconnectsSubscribers(t *testing.T) {
	bubble(t, testFailedChannelDisconnectsSubscribers)
}

func testFailedChannelDisconnectsSubscribers(t *testing.T) {
	w := newWorld(t, nil)
	other := w.listen()
	other.subscribe("trades.BTC_USDT")
	channel := w.hub.channel(w.hub.names.topic(diff, 0))
	l := w.listen()
	l.subscribe("diff.BTC_USDT")
	for i := range uint64(20) {
		// nothing fits before it
		w.engine.Notify(channel,
			&committed.BookUpdates{List: []committed.BookUpdate{{UpdateID: 777}}})
		l.ended()
		// A client that returns at once is separate from the clients still being removed, unless
		// its shard has not received the failure yet: then it is disconnected with them.
		for back := false; !back; {
			l = w.listen()
			l.write(`42["subscribe","diff.BTC_USDT"]`) //nolint:errcheck // it may be gone again
			var s streamEvent
			if s, back = l.tryNext(); back && s.name != "subscribe.success" {
				t.Fatalf("%s %s", s.name, s.body)
			}
		}
		if s := l.next(); !strings.Contains(string(s.body),
			fmt.Sprintf(`"update_id":%d,"prev_update_id":null,"snapshot":true`, 2*i)) {
			t.Fatalf("%s", s.body)
		}
		w.place(0, "BTC_USDT", trading.Sell, 100, 1)
		w.place(1, "BTC_USDT", trading.Buy, 100, 1)
		l.expect("depth.diff", fmt.Sprintf(
			`{"pair":"BTC_USDT","update_id":%d,"prev_update_id":%d,"timestamp":*,"sell":[{"price":100,"amount":1}],"buy":[]}`,
			2*i+1, 2*i))
		other.expect("trades", fmt.Sprintf(
			`{"id":%d,"price":100,"pair":"BTC_USDT","type":"buy","timestamp":*,"amount":1}`, i+1))
	}
	if n := w.hub.Stats().Subscriptions["diff"]; n != 1 {
		t.Errorf("there are %d subscribers", n)
	}
}
