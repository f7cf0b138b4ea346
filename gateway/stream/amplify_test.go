package stream

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/trading"
	"exchange/gateway/socketio"
)

// Work that a client can cause by packets that cost it nothing.

// A deaf channel admits no client. It counts the joining clients.
type deaf struct{ joins chan struct{} }

func (d deaf) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*join); ok {
		d.joins <- struct{}{}
	}
}

// deafShard returns a shard whose messages are handled by the test, with a client in it, and
// channels that admit no client.
func deafShard(w *world) (*shard, *client, chan struct{}) {
	h := &Hub{public: w.engine.Public, commands: w.engine, names: newNames(w.engine.Pairs())}
	joins := make(chan struct{}, 100_000)
	h.channels = make([]atomic.Pointer[actor.PID], h.names.topics())
	for t := range h.channels {
		h.channels[t].Store(
			w.engine.SpawnChannel("deaf", func() actor.Actor { return deaf{joins} }))
	}
	s := newShard(h, 0)
	h.shards = []*shard{s}
	c := &client{socket: &socketio.Socket{}, shard: s, turn: make(chan struct{}, messagesAtOnce),
		pairChannels: h.names.newSet(), joining: h.names.newSet(), member: h.names.newSet()}
	s.handle(&connected{client: c})
	for range messagesAtOnce {
		<-c.turn
	}
	return s, c, joins
}

// frames counts the frames for a client that contain a text.
func (c *client) frames(what string) (n int) {
	for _, d := range c.out {
		n += bytes.Count(d.Frames, []byte(what))
	}
	return n
}

func TestClientWaitsOncePerName(t *testing.T) { bubble(t, testClientWaitsOncePerName) }

func testClientWaitsOncePerName(t *testing.T) {
	s, c, joins := deafShard(newWorld(t, nil))
	names := s.hub.names
	ask := func(subscribe bool, texts ...string) {
		list, _ := names.targets(texts)
		s.handle(&request{client: c, subscribe: subscribe, targets: list})
		<-c.turn
	}
	one, all := slices.Repeat([]string{"diff.BTC_USDT"}, maxNames),
		slices.Repeat([]string{"diff"}, maxNames)
	waits := func() (n int) {
		for _, w := range c.waits {
			n += len(w.requests)
		}
		return n
	}
	for range 500 {
		ask(true, one...)
	}
	if len(c.waits) != 1 || waits() != maxNames || c.openRequests != maxNames {
		t.Errorf("it waits for %d names of %d requests", len(c.waits), waits())
	}
	if n := c.frames("subscribe.error"); n != 500-maxNames ||
		n != c.frames("too many requests wait") {
		t.Errorf("%d requests were refused", n)
	}
	ask(false, one...)
	if waits() != 0 || c.openRequests != 0 {
		t.Errorf("it waits %d times for unwanted names", waits())
	}
	for range 60 {
		ask(true, all...)
		ask(true, one...)
	}
	if len(c.waits) != 2 || waits() != 120 || c.openRequests != 120 {
		t.Errorf("it waits for %d names of %d requests", len(c.waits), waits())
	}
	for place := range names.pairs {
		before := c.frames("subscribe.success")
		s.handle(&admitted{topic: names.topic(diff, place), clients: []*client{c}})
		want := 0
		if place == names.places["BTC_USDT"] {
			want += 60
		}
		if place == len(names.pairs)-1 {
			want += 60
		}
		if n := c.frames("subscribe.success") - before; n != want {
			t.Errorf("pair %d ends %d waits, want %d", place, n, want)
		}
	}
	if waits() != 0 || c.openRequests != 0 {
		t.Errorf("it still waits for %d names", waits())
	}
	for range names.pairs { // each pair was joined once, for all packets of the client
		<-joins
	}
	if len(joins) != 0 {
		t.Errorf("%d more joins", len(joins))
	}
}

func TestEqualNamesOfARequestCountOnce(t *testing.T) {
	n := newNames([]*directory.Pair{aPair("BTC_USDT"), aPair("ETH_USDT"), aPair("ETH_BTC")})
	for text, want := range map[string]int{"": 0, "trades": 3, "trades trades trades": 3,
		"trades trades.BTC_USDT": 4, "x x": 1, "x y book_ETH_BTC": 3,
		"diff ticker trades orderbook.20": 12, strings.Repeat("diff ", 1000): 3 + 1} {
		list := strings.Fields(text)
		if _, touched := n.targets(list[:min(len(list), maxNames+1)]); touched != want {
			t.Errorf("%.40s touches %d channels, want %d", text, touched, want)
		}
	}
	for first, words := range map[topic][2]uint64{0: {^uint64(0), 3}, 5: {^uint64(31), 3},
		64: {0, 3}, 65: {0, 2}, 63: {1 << 63, 0}} {
		set := set{{words[0], words[1]}}
		for count := range 66 - int(first) {
			if set.hasAll(first, count+1) != (first != 63 || count == 0) {
				t.Errorf("%d from %d", count+1, first)
			}
		}
	}
	if (set{{^uint64(0), 1}}).hasAll(0, 66) || (set{{^uint64(2), 1}}).hasAll(1, 64) {
		t.Error("one is missing")
	}
}

// flood sends packets in turn until the connection ends.
func (l *listener) flood(packets ...string) {
	for {
		for _, p := range packets {
			if l.write(p) != nil {
				return
			}
		}
		time.Sleep(time.Microsecond) // so that deadlines come
	}
}

// A packet costs one for each pair of each channel that it names.
func TestPacketCostsItsChannels(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const burst = 1000
		for _, f := range []struct {
			silent  bool
			packets []string
			each    int // count of the names
		}{
			{false, []string{`42["subscribe","ticker"]`, `42["unsubscribe","ticker"]`}, 6},
			{false, []string{`42["subscribe","trades","diff","trades.BTC_USDT","x"]`}, 8},
			{false, []string{`42["subscribe","trades.BTC_USDT"]`}, 1},
			{false, []string{"41", "40"}, 2},
			{true, []string{"41", "40"}, 5},
		} {
			w := newWorld(t, func(o *socketio.Options) {
				o.MessagesPerSecond, o.MessagesBurst = 1, burst
			})
			w.silent = f.silent
			l := w.listen()
			begin := time.Now()
			l.flood(f.packets...)
			eventually(t, "the client has gone", func() bool {
				return w.server.Stats().Closed[socketio.TooManyMessages] == 1
			})
			most := (burst+int(time.Since(begin)/time.Second)+1)*len(f.packets)/f.each +
				len(f.packets) + 2
			if n := w.server.Stats().PacketsIn; n > uint64(most) ||
				n < uint64(burst*len(f.packets)/f.each-len(f.packets)-8) {
				t.Errorf("%d packets of %s, want at most %d", n, f.packets, most)
			}
		}
	})
}

func TestChurnDoesNotReachCommittedSide(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.hub.opts.Interval, w.hub.opts.BBOInterval = time.Hour, time.Hour
		for _, name := range []string{"trades.BTC_USDT", "book_BTC_USDT", "ticker.BTC_USDT",
			"bbo.BTC_USDT", "orderbook.20.BTC_USDT", "diff.BTC_USDT", "depth.BTC_USDT",
			"trades.full.BTC_USDT", "candles.60.BTC_USDT", "status"} {
			l := w.listen()
			before := w.hub.tokens.Load()
			for range 20 {
				l.say(`42["subscribe","` + name + `"]`)
				for l.next().name != "subscribe.success" {
				}
				l.say(`42["unsubscribe","` + name + `"]`)
			}
			if n := w.hub.tokens.Load() - before; n != 1 {
				t.Errorf("%s: the pair was requested %d times", name, n)
			}
		}
	})
}

func TestChannelWithoutSubscribersStopsWatching(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		for _, name := range []string{"trades.BTC_USDT", "ticker.BTC_USDT"} {
			l := w.listen()
			before := w.hub.tokens.Load()
			eventually(t, name+" has started again", func() bool {
				l.say(`42["subscribe","` + name + `"]`)
				for l.next().name != "subscribe.success" {
				}
				l.say(`42["unsubscribe","` + name + `"]`)
				return w.hub.tokens.Load() > before+1
			})
		}
	})
}

// A returning client starts with a state that contains all changes of its absence.
func TestReturningClientMissesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.hub.opts.Interval = 20 * time.Millisecond
		k := newKeeper(w, "diff", "BTC_USDT")
		k.until(0)
		id := uint64(0)
		for i := range 20 {
			if i%2 == 1 { // otherwise the newest book was sent last
				w.place(0, "BTC_USDT", trading.Buy, 100, 1)
				id++
				k.until(id)
			}
			k.say(`42["unsubscribe","diff.BTC_USDT","x"]`)
			k.expect("subscribe.error", `{"channel":"x","message":"unknown channel"}`)
			w.place(0, "BTC_USDT", trading.Buy, 100, 1)
			id++
			k.subscribe("diff.BTC_USDT")
			if k.until(id); k.book.snapshots != i+2 {
				t.Fatalf("%d whole books, want %d", k.book.snapshots, i+2)
			}
		}
	})
}

// stop blocks a shard until the returned function is called.
func (s *shard) stop() (unpark func()) {
	names := s.hub.names
	held := &client{turn: make(chan struct{}), pairChannels: names.newSet(),
		joining: names.newSet(),
		member:  names.newSet()}
	s.post(&connected{client: held})
	return func() {
		for range messagesAtOnce {
			<-held.turn
		}
	}
}

func TestMessagesPerClientInShardAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		clients := []*listener{w.listen(), w.listen(), w.listen(), w.listen()}
		var unpark []func()
		for _, s := range w.hub.shards {
			unpark = append(unpark, s.stop())
		}
		var saying sync.WaitGroup
		for i, l := range clients {
			saying.Go(func() {
				for n := range 500 {
					text := []string{"41", "40"}[n%2]
					if i < 2 {
						text = fmt.Sprintf(`42%d["subscribe","trades.BTC_USDT"]`, n)
					}
					l.write(text) //nolint:errcheck // one is closed meanwhile
				}
			})
		}
		synctest.Wait() // the system's buffers are full
		// While others come and go, these get no further.
		for range 50 {
			w.listen().conn.Close()
		}
		waiting := 0
		for _, s := range w.hub.shards {
			s.mu.Lock()
			for _, m := range s.in {
				switch m := m.(type) {
				case *connected, *request, *disconnected:
					waiting++
				default:
					t.Errorf("%T waits", m)
				}
			}
			s.mu.Unlock()
		}
		if most := messagesAtOnce*len(clients) + 50; waiting > most {
			t.Errorf("%d messages wait, want at most %d", waiting, most)
		}
		clients[1].conn.Close() // with a hook that waits
		for _, f := range unpark {
			f()
		}
		saying.Wait()
		l := clients[0]
		l.mu.Lock()
		l.wait("every request is answered", func() bool { return len(l.acks) == 500 })
		l.mu.Unlock()
		eventually(t, "the others have gone", func() bool { return w.hub.Stats().clients == 3 })
	})
}

// Commands within the account's rates are limited by these alone; others count as packets.
func TestRateLimitedCommandsDoNotCountAsPackets(t *testing.T) {
	bubble(t, testRateLimitedCommandsDoNotCountAsPackets)
}

func testRateLimitedCommandsDoNotCountAsPackets(t *testing.T) {
	w := newWorld(t, func(o *socketio.Options) { o.MessagesPerSecond, o.MessagesBurst = 1, 20 })
	w.must(w.engine.CreateKey("test", "trader-0", "reader", "secret", event.PermissionRead, nil))
	l := w.listen()
	l.in("key-trader-0")
	long := strings.Repeat("x", 3000)
	for range 200 {
		if got := l.ask("order-cancel", map[string]string{"order": "1", "more": long}); !strings.
			HasPrefix(got, `{"status":404`) && !strings.HasPrefix(got, `{"status":400`) {
			t.Fatal(got)
		}
	}
	refused := w.listen()
	if got := refused.login("reader"); !strings.HasPrefix(got, `{"status":200`) {
		t.Fatal(got)
	}
	refused.flood(`42["order-cancel",{"order":"1"}]`)
	refused.ended()
	eventually(t, "one socket is closed for too many packets", func() bool {
		return w.server.Stats().Closed[socketio.TooManyMessages] == 1
	})
}
