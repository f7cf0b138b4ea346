package socketio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fasthttp/websocket"
)

// numbered returns a delivery of an event ["n", number, size bytes of padding].
func numbered(tag uint32, p Policy, n, size int) Delivery {
	payload := fmt.Sprintf(`%d,"%s"`, n, strings.Repeat("x", size))
	return Delivery{Tag: tag, Policy: p, Frames: AppendFrame(nil, "/", "n", []byte(payload))}
}

// number reads one, and its name.
func number(t testing.TB, text string) (string, int) {
	t.Helper()
	var list []any
	if !strings.HasPrefix(text, "42") || json.Unmarshal([]byte(text[2:]), &list) != nil {
		t.Fatalf("%.100q", text)
	}
	return list[0].(string), int(list[1].(float64))
}

// idle returns a client in the main namespace that reads only on demand.
func (r *rig) idle() (socket, *Socket) {
	r.t.Helper()
	s := r.dial("EIO=4&transport=websocket")
	r.opening(s.text())
	r.mu.Lock()
	n := len(r.joined)
	r.mu.Unlock()
	s.join()
	return s, r.socket(n)
}

func TestSlowKeepClientIsClosedAfterAnOrderedPrefix(t *testing.T) {
	both(t, func(t *testing.T, with ...func(net.Listener) net.Listener) {
		random := newRandom(t)
		r := echo(t, Options{QueueBytes: 64 << 10}, with...)
		arrived := 0
		for range 5 {
			c, s := r.idle()
			bystander, other := r.idle()
			stop := make(chan struct{})
			received, begun := readSlowly(c, stop)
			sent := 1
			_, ok := s.Deliver([]Delivery{numbered(0, Keep, 0, 1)}, nil)
			for <-begun; ok; {
				list := make([]Delivery, 1+random.IntN(80))
				for i := range list {
					list[i] = numbered(0, Keep, sent, random.IntN(20_000)/(1+random.IntN(100)))
					sent++
				}
				_, ok = s.Deliver(list, nil)
				time.Sleep(time.Duration(random.IntN(3)) * time.Millisecond)
			}
			close(stop)
			all := <-received
			next := 0
			for {
				kind, payload, rest, ok := nextFrame(all)
				if !ok {
					break
				}
				if _, n := number(t, string(payload)); kind != textFrame || n != next {
					t.Fatalf("got %d, want %d", n, next)
				}
				next++
				all = rest
			}
			arrived += next
			if next > sent {
				t.Errorf("%d of %d arrived", next, sent)
			}
			// The others do not notice.
			if _, ok := other.Deliver([]Delivery{numbered(0, Keep, 1, 1)}, nil); !ok {
				t.Error("another client is gone")
			}
			bystander.want(`42["n",1,"x"]`)
		}
		r.closed(SlowClient, 5)
		if arrived == 0 {
			t.Error("nothing arrived: this proves nothing")
		}
		if s := r.server.Stats(); s.overflows != 5 || s.Dropped != [policies]uint64{} {
			t.Errorf("%+v", s)
		}
	})
}

// readSlowly reads now and then, as if by a bad line, and without a pause once stop is closed.
// begun is closed when something was read; received gets everything at the end.
func readSlowly(c socket, stop chan struct{}) (received chan []byte, begun chan struct{}) {
	received, begun = make(chan []byte), make(chan struct{})
	go func() {
		all, begin := []byte(nil), sync.OnceFunc(func() { close(begun) })
		buffer := make([]byte, 3000)
		for tick := time.NewTicker(time.Millisecond); ; {
			select {
			case <-tick.C:
			case <-stop:
			}
			n, err := c.NetConn().Read(buffer)
			all = append(all, buffer[:n]...)
			begin()
			if err != nil {
				received <- all
				return
			}
		}
	}()
	return received, begun
}

// fill delivers until something stays queued.
func fill(t testing.TB, s *Socket) {
	t.Helper()
	filler := AppendFrame(nil, "/", "fill", bytes.Repeat([]byte("1"), 10_000))
	last, still := 0, 0
	eventually(t, "something stays queued", func() bool {
		for {
			s.session.mu.Lock()
			waits := s.session.out.bytes
			s.session.mu.Unlock()
			if still++; waits != last {
				last, still = waits, 0
			}
			if waits >= 30_000 {
				return still > 250 // the system takes some more, late
			}
			if _, ok := s.Deliver([]Delivery{{Frames: filler}}, nil); !ok {
				t.Fatal("closed while it was being filled")
			}
		}
	})
}

// drain reads until an event comes that is not a filler, and is it.
func (c socket) drain() (string, int) {
	c.rig.t.Helper()
	for {
		if s := c.text(); !strings.HasPrefix(s, `42["fill"`) {
			return number(c.rig.t, s)
		}
	}
}

func TestSlowClientGetsLatest(t *testing.T) {
	both(t, func(t *testing.T, with ...func(net.Listener) net.Listener) {
		r := echo(t, Options{QueueBytes: 128 << 10}, with...)
		c, s := r.idle()
		fill(t, s)
		for n := range 10_000 {
			if _, ok := s.Deliver([]Delivery{numbered(1, Latest, n, 100),
				numbered(2, Latest, n, 100)}, nil); !ok {
				t.Fatal("closed")
			}
		}
		s.Deliver([]Delivery{numbered(0, Keep, -1, 0)}, nil)
		last, total := 0, 0
		for {
			_, n := c.drain()
			if n < 0 {
				break
			}
			if n < last {
				t.Fatalf("%d after %d", n, last)
			}
			last = n
			total++
		}
		dropped := r.server.Stats().Dropped[Latest]
		if last != 9999 || total+int(dropped) != 20_000 || dropped < 10_000 {
			t.Errorf("the last is %d, %d came, %d were replaced", last, total, dropped)
		}
	})
}

// An owner of a Resync channel keeps a client right after any drop.
func TestResyncReplacesDroppedDeliveries(t *testing.T) {
	both(t, func(t *testing.T, with ...func(net.Listener) net.Listener) {
		random := newRandom(t)
		r := echo(t, Options{QueueBytes: 128 << 10}, with...)
		c, s := r.idle()
		fill(t, s)
		const tags = 3
		var state [tags]int
		losses := 0
		deliver := func(size int) {
			tag := random.Uint32N(tags)
			state[tag]++
			d := Delivery{Tag: tag, Policy: Resync,
				Frames: AppendFrame(nil, "/", fmt.Sprint("diff", tag),
					fmt.Appendf(nil, `%d,"%s"`, state[tag], strings.Repeat("x", size)))}
			dropped, ok := s.Deliver([]Delivery{d}, nil)
			if !ok {
				t.Fatal("closed")
			}
			for _, tag := range dropped {
				losses++
				snapshot := Delivery{Tag: tag, Policy: Resync, Shared: true,
					Frames: AppendFrame(nil, "/", fmt.Sprint("snapshot", tag),
						fmt.Appendf(nil, `%d,"%s"`, state[tag], strings.Repeat("s", 500_000)))}
				if more, ok := s.Deliver([]Delivery{snapshot}, nil); !ok || len(more) != 0 {
					t.Fatalf("the snapshot: %v, %v", more, ok)
				}
			}
		}
		for losses < 10 {
			deliver(random.IntN(5000))
		}
		var wait sync.WaitGroup
		var held [tags]int
		wait.Go(func() {
			for { // while more is delivered
				name, n := c.drain()
				if name == "n" {
					return
				}
				tag := name[len(name)-1] - '0'
				if strings.HasPrefix(name, "diff") && n != held[tag]+1 || n < held[tag] {
					t.Errorf("%s %d after %d", name, n, held[tag])
				}
				held[tag] = n
			}
		})
		for range 2000 {
			deliver(random.IntN(2000))
		}
		eventually(t, "there is room for one that must not drop others", func() bool {
			s.session.mu.Lock()
			defer s.session.mu.Unlock()
			return s.session.out.bytes < 64<<10
		})
		s.Deliver([]Delivery{numbered(0, Keep, 0, 0)}, nil)
		wait.Wait()
		if held != state {
			t.Errorf("the client holds %v, want %v", held, state)
		}
		if s := r.server.Stats(); s.Dropped[Resync] == 0 || s.overflows == 0 ||
			s.Dropped[Keep]+s.Dropped[Latest] != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestARestOfTheListOfADroppedTagIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{QueueBytes: 1000})
		p := r.polling()
		p.join()
		s := r.socket(0)
		s.emit("first") //nolint:errcheck // events count only while others wait
		dropped, ok := s.Deliver([]Delivery{
			numbered(5, Resync, 1, 100), numbered(6, Latest, 2, 100), numbered(5, Resync, 3, 700),
			numbered(5, Resync, 4, 100), numbered(0, Keep, 5, 100)}, []uint32{77})
		if !ok || len(dropped) != 2 || dropped[1] != 5 {
			t.Fatalf("%v, %v", dropped, ok)
		}
		if n := strings.Count(p.get().body, `"n"`); n != 2 {
			t.Errorf("%d came", n)
		}
		if s := r.server.Stats(); s.Dropped != [policies]uint64{Resync: 3} || s.overflows != 1 {
			t.Errorf("%+v", s)
		}
		// An event that cannot be dropped closes the session.
		s.emit("first") //nolint:errcheck
		if _, ok := s.Deliver([]Delivery{numbered(5, Resync, 1, 100), numbered(0, Keep, 2, 1000)},
			nil); ok {
			t.Error("it fits")
		}
		p.gone()
		r.closed(SlowClient, 1)
	})
}

func TestASharedSnapshotIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{QueueBytes: 1000})
		p := r.polling()
		p.join()
		for n := range 3 {
			d := numbered(5, Resync, n, 100_000)
			d.Shared = true
			dropped, ok := r.socket(0).Deliver([]Delivery{d, numbered(0, Keep, n, 10)}, nil)
			if !ok || len(dropped) > 0 {
				t.Fatal("not delivered")
			}
		}
		if n := r.server.Stats().QueuedBytes; n > 1000 {
			t.Errorf("%d bytes", n)
		}
		if body := p.get().body; strings.Count(body, "xxx") < 10_000 ||
			strings.Count(body, "\x1e") != 3 {
			t.Errorf("%d bytes, %d packets", len(body), strings.Count(body, "\x1e")+1)
		}
	})
}

func TestAClientThatTakesNothingIsClosed(t *testing.T) {
	both(t, func(t *testing.T, with ...func(net.Listener) net.Listener) {
		r := echo(t, Options{StallTimeout: 100 * time.Millisecond}, with...)
		_, s := r.idle()
		other, _ := r.idle()
		filler := AppendFrame(nil, "/", "fill", bytes.Repeat([]byte("1"), 10_000))
		for range 60 { // far more than the system holds
			s.Deliver([]Delivery{{Frames: filler}}, nil)
		}
		r.closed(StalledClient, 1)
		eventually(t, "Disconnect runs", func() bool { return r.reasons()[0] == "stalled client" })
		other.send(`42["message",1]`)
		other.want(`42["message-back",1]`)
	})
}

func TestAClientThatReadsSlowlyIsNotStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const stall = time.Second
		r := echo(t, Options{StallTimeout: stall, QueueBytes: 8 << 20})
		c, s := r.idle()
		const n = 400
		for i := range n {
			if _, ok := s.Deliver([]Delivery{numbered(0, Keep, i, 10_000)}, nil); !ok {
				t.Fatal("closed")
			}
		}
		start := time.Now()
		tick := time.NewTicker(4 * time.Millisecond)
		for i := range n {
			if _, got := c.drain(); got != i {
				t.Fatalf("%d, want %d", got, i)
			}
			<-tick.C
		}
		if time.Since(start) < 3*stall/2 {
			t.Error("this proves nothing")
		}
	})
}

func TestAFloodOfAnswersIsBounded(t *testing.T) { synctest.Test(t, testAFloodOfAnswersIsBounded) }

func testAFloodOfAnswersIsBounded(t *testing.T) {
	r := echo(t, Options{QueueBytes: 64 << 10, MessagesPerSecond: -1})
	c, _ := r.idle()
	ask := []byte(`420["message-with-ack","` + strings.Repeat("x", 4000) + `"]`)
	go func() {
		for c.WriteMessage(websocket.TextMessage, ask) == nil {
			time.Sleep(time.Millisecond) // so that deadlines come
		}
	}()
	r.closed(SlowClient, 1)
}
