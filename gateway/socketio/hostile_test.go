package socketio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fasthttp/websocket"

	"exchange/gateway/socketio/sockettest"
)

// Attempts of single clients to have more than their share, and faults of one client alone.

func TestAHookThatPanicsEndsItsSessionAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{})
		var left atomic.Int32
		r.server.Namespace("/", Namespace{
			Connect: func(_ *Socket, auth json.RawMessage) error {
				if auth != nil {
					panic("Connect")
				}
				return nil
			},
			Event: func(s *Socket, e *Event) {
				if e.Name == "panic" {
					panic("Event")
				}
				s.emit("fine") //nolint:errcheck
			},
			Disconnect: func(*Socket, Reason) {
				left.Add(1)
				panic("Disconnect")
			},
		})
		other, _ := r.open()
		other.send("40")
		other.text()

		p := r.polling()
		p.sent("40")
		p.get()
		p.post(`42["panic"]`)
		p.gone()
		c, _ := r.open()
		c.send("40")
		c.text()
		c.send(`42["panic"]`)
		c.closedWith(1000)
		c, _ = r.open()
		c.send(`40{"token":1}`)
		c.want(`44{"message":"internal error"}`)
		c.closedWith(1000)

		r.closed(ServerClose, 3)
		eventually(t, "both were notified", func() bool { return left.Load() == 2 })
		other.send(`42["message"]`)
		other.want(`42["fine"]`)
	})
}

// A lines is a log that counts its lines.
type lines struct {
	mu   sync.Mutex
	list []string
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, string(line))
	return len(line), nil
}

// are expects that many lines, each with a panic's value and its stack.
func (l *lines) are(t *testing.T, n int, what string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.list {
		if !strings.Contains(line, what+" panicked") || !strings.Contains(line, "panic=boom") ||
			!strings.Contains(line, "goroutine ") {
			t.Error(line)
		}
	}
	if len(l.list) != n {
		t.Errorf("%d lines in the log, want %d", len(l.list), n)
	}
}

// A bomb is an error that panics when it is read, which is after the hook has returned.
type bomb struct{}

func (bomb) Error() string { panic("boom") }

func TestAPacketThatPanicsEndsItsSessionAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		r := echo(t, Options{Log: slog.New(slog.NewTextHandler(log, nil))})
		r.server.Namespace("/bomb", Namespace{
			Connect: func(*Socket, json.RawMessage) error { return bomb{} }})
		other := r.ws()
		c := r.ws()
		c.send("40/bomb")
		c.closedWith(1000)
		p := r.polling()
		p.join()
		if a := p.post("40/bomb\x1e" + `42["message"]`); a.status != 400 {
			t.Errorf("%d %s", a.status, a.body)
		}
		p.gone()
		r.closed(ServerClose, 2)
		log.are(t, 2, "the handling of a packet")
		other.send(`42["message"]`)
		other.want(`42["message-back"]`)
	})
}

// A bombed listener has connections that panic when a bomb is read from them.
type bombedListener struct{ net.Listener }

func bombed(l net.Listener) net.Listener { return bombedListener{l} }

func (l bombedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return bombedConn{c}, nil
}

type bombedConn struct{ net.Conn }

func (c bombedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if bytes.Contains(p[:n], []byte("bomb")) {
		panic("boom")
	}
	return n, err
}

func TestAReaderThatPanicsEndsItsSessionAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		r := echo(t, Options{Log: slog.New(slog.NewTextHandler(log, nil))}, bombed)
		other := r.ws()
		c := r.ws()
		c.raw(masked(textFrame, `42["bomb"]`))
		c.closedWith(0)
		r.closed(ServerClose, 1)
		p := r.polling()
		p.join()
		c = r.dial("EIO=4&transport=websocket&sid=" + p.sid)
		c.send("2probe")
		c.want("3probe")
		c.raw(masked(textFrame, `42["bomb"]`))
		p.gone()
		r.closed(ServerClose, 2)
		log.are(t, 2, "the reader of a websocket")
		other.send(`42["message"]`)
		other.want(`42["message-back"]`)
	})
}

// An error that is no violation ends the session as a fault of the server.
func TestAnUnknownErrorIsAFaultOfOurs(t *testing.T) {
	for err, want := range map[error]Reason{io.EOF: ServerClose, errPacket: ParseError,
		violation(ClientClose): ClientClose} {
		if got := reasonOf(err); got != want {
			t.Errorf("%v is %v, want %v", err, got, want)
		}
	}
}

func TestTheOwnersWorkForAPacketCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{MessagesPerSecond: 1, MessagesBurst: 1000})
		var spent atomic.Int32
		r.server.Namespace("/spend", Namespace{Event: func(s *Socket, e *Event) {
			parts, _ := strconv.Atoi(string(e.Args[0]))
			most, _ := strconv.Atoi(string(e.Args[1]))
			if s.Spend(parts, most) {
				spent.Add(1)
				s.emit("spent") //nolint:errcheck
			}
		}})
		closed := 0
		f := func(parts, most, packets int) {
			t.Helper()
			spent.Store(0)
			c, _ := r.open()
			c.send("40/spend")
			c.text()
			packet := fmt.Sprintf(`42/spend,["x",%d,%d]`, parts, most)
			for range packets {
				c.send(packet)
				c.want(`42/spend,["spent"]`)
			}
			c.send(packet)
			c.closedWith(1008)
			closed++
			r.closed(TooManyMessages, closed)
			if n := spent.Load(); n != int32(packets) {
				t.Errorf("%d packets were handled, want %d", n, packets)
			}
		}
		f(299, 400, 3) // 300 each, with the packet
		f(499, 500, 1)
		f(100_000, 100_000, 1) // all there is counts as a half
		f(60_000, 100_000, 3)
	})
}

func TestMessagesCountByTheirSizeToo(t *testing.T) {
	in(t, "empty fragments", func(t *testing.T) {
		r := echo(t, Options{MessagesPerSecond: 10})
		c := r.ws()
		c.raw(masked(textFrame&0x7f, "4"))
		for chunk := bytes.Repeat(masked(0x00, ""), 1000); ; {
			if _, err := c.NetConn().Write(chunk); err != nil {
				break
			}
			time.Sleep(time.Millisecond) // so that deadlines come
		}
		r.closed(TooManyMessages, 1)
	})
	in(t, "while probing", func(t *testing.T) {
		r := echo(t, Options{MessagesPerSecond: 10})
		p := r.polling()
		p.join()
		c := r.dial("EIO=4&transport=websocket&sid=" + p.sid)
		for chunk := bytes.Repeat(masked(0x8a, ""), 1000); ; {
			if _, err := c.NetConn().Write(chunk); err != nil {
				break
			}
			time.Sleep(time.Millisecond) // so that deadlines come
		}
	})
	in(t, "bodies", func(t *testing.T) {
		r := echo(t, Options{MessagesPerSecond: 10, MessagesBurst: 200})
		p := r.polling()
		p.join()
		large := `42["x","` + strings.Repeat("x", 900_000) + `"]` // counts as 90
		p.sent(large)
		p.get()
		if a := p.post(large + "\x1e" + large); a.status != 413 {
			t.Error(a.status)
		}
		p.sent(large)
		p.get()
		if a := p.post(large); a.status != 400 {
			t.Error(a.status)
		}
		r.closed(TooManyMessages, 1)
	})
	in(t, "the longest packet is never too much", func(t *testing.T) {
		r := echo(t, Options{MaxPayload: 64 << 10, MessagesPerSecond: 3})
		c := r.ws()
		c.send(`42["x","` + strings.Repeat("x", 64<<10-10) + `"]`)
		c.text()
	})
	t.Run("the burst follows the rate", func(t *testing.T) {
		for rate, burst := range map[int]int{0: 500, 7: 35, 1000: 5000} {
			if o := (Options{MessagesPerSecond: rate}).withDefaults(); o.MessagesBurst != burst {
				t.Errorf("at %d/s %d", rate, o.MessagesBurst)
			}
		}
	})
}

func TestEventArgumentsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{arguments: 3})
		c := r.ws()
		c.send(`42["message",1,2,3]`)
		c.want(`42["message-back",1,2,3]`)
		c.send(`42["message",1,2,3,4]`)
		c.closedWith(1002)

		for text, want := range map[string]error{"[1, [2] ,\"3\"]": nil, "[]": nil,
			"[1,2,3,4": errTooMany, "[1": ErrNoArray, "[1,]": ErrNoArray,
			"[1]x": ErrNoArray, "null": ErrNoArray, "{}": ErrNoArray, "": ErrNoArray,
			"[1}": ErrNoArray, "[1 2]": ErrNoArray} {
			list, err := Elements([]byte(text), 3)
			if !errors.Is(err, want) || errors.Is(err, errTooMany) && len(list) != 3 {
				t.Errorf("%s: %q, %v", text, list, err)
			}
			for _, one := range list {
				if !json.Valid(one) {
					t.Errorf("%s: %q", text, list)
				}
			}
		}
	})
}

func TestAttachmentsAreBoundedAndExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{StallTimeout: time.Second})
		c, _ := r.open()
		c.send(`451-["message",{"_placeholder":true,"num":0}]`)
		c.closedWith(1002)
		c = r.ws()
		c.send(`451-["message",{"_placeholder":true,"num":0}]`)
		c.sendBinary("in time")
		c.want(`451-["message-back",{"_placeholder":true,"num":0}]`)
		c.wantBinary("in time")
		c.send(`451-["message",{"_placeholder":true,"num":0}]`)
		c.closedWith(1002)
	})
}

func TestAMessageInPartsMustEnd(t *testing.T) { synctest.Test(t, testAMessageInPartsMustEnd) }

func testAMessageInPartsMustEnd(t *testing.T) {
	r := echo(t, Options{StallTimeout: time.Second})
	c := r.ws()
	c.raw(masked(0x01, `42["message",`), masked(0x80, `1]`))
	c.want(`42["message-back",1]`)
	c.raw(masked(0x01, `42["message",`))
	c.closedWith(1002)
	r.closed(ParseError, 1)
}

// A poll of a disconnected client gets no answer: its packets are lost, and so is the session.
func TestAPollThatCannotBeAnsweredEndsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{})
		p := r.polling()
		p.join()
		c := r.wire()
		fmt.Fprintf(c, "GET /socket.io/?%s HTTP/1.1\r\nHost: x\r\n\r\n", p.query())
		eventually(t, "the poll is held", func() bool { return r.server.Stats().HeldPolls == 1 })
		c.Close()
		x := r.socket(0)
		eventually(t, "the session has ended", func() bool {
			_, ok := x.Deliver([]Delivery{numbered(0, Keep, 1, 1)}, nil)
			return !ok
		})
		r.closed(TransportClose, 1)
		p.gone()
	})
}

// An empty poll may get lost: the client upgrades anyway.
func TestAPollWithoutContentMayBeGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{})
		p := r.polling()
		p.join()
		get := r.wire()
		fmt.Fprintf(get, "GET /socket.io/?%s HTTP/1.1\r\nHost: x\r\n\r\n", p.query())
		eventually(t, "the poll is held", func() bool { return r.server.Stats().HeldPolls == 1 })
		get.Close()
		c := r.dial("EIO=4&transport=websocket&sid=" + p.sid)
		c.send("2probe")
		c.want("3probe")
		c.send("5")
		c.send(`42["message"]`)
		c.want(`42["message-back"]`)
	})
}

// Packets not delivered by an owner drop nothing, because no owner could be notified.
func TestDropsAreReportedToTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{QueueBytes: 1000})
		p := r.polling()
		p.join()
		s := r.socket(0)
		if err := s.emit("first"); err != nil { // it does not count
			t.Fatal(err)
		}
		waits := func() int { return r.server.Stats().QueuedBytes }
		for n := 0; waits() <= 850; n++ {
			if dropped, ok := s.Deliver([]Delivery{numbered(5, Resync, n, 20)}, nil); !ok ||
				len(dropped) > 0 {
				t.Fatal(dropped, ok)
			}
		}
		if err := s.emit("answer", strings.Repeat("a", 100)); err != nil || waits() <= 1000 {
			t.Fatal(err, waits())
		}
		if n := r.server.Stats().Dropped[Resync]; n != 0 {
			t.Fatal(n)
		}
		dropped, ok := s.Deliver([]Delivery{numbered(5, Resync, 99, 20)}, nil)
		if !ok || len(dropped) != 1 || dropped[0] != 5 {
			t.Fatal(dropped, ok)
		}
		if body := p.get().body; !strings.Contains(body, "first") ||
			!strings.Contains(body, "answer") || strings.Contains(body, `"n"`) {
			t.Error(body)
		}

		s.emit("first") //nolint:errcheck
		for range 10 {
			s.emit("answer", strings.Repeat("a", 100)) //nolint:errcheck
		}
		r.closed(SlowClient, 1)
	})
}

// One event may be larger than the limit of waiting bytes: a client that reads is not to blame.
func TestAnEventSentAtOnceMayBeLargerThanTheQueue(t *testing.T) {
	both(t, func(t *testing.T, with ...func(net.Listener) net.Listener) {
		r := echo(t, Options{QueueBytes: 64 << 10}, with...)
		c, s := r.idle()
		const large = 8 << 20
		if _, ok := s.Deliver([]Delivery{numbered(1, Keep, 1, large), numbered(2, Keep, 2, large)},
			nil); !ok {
			t.Fatal("it is too large")
		}
		if _, ok := s.Deliver([]Delivery{numbered(1, Keep, 3, 10<<10)}, nil); !ok {
			t.Fatal("what follows is too much")
		}
		for want := 1; want <= 3; want++ {
			if _, n := number(t, c.text()); n != want {
				t.Fatal(n, want)
			}
		}
		for {
			if _, ok := s.Deliver([]Delivery{numbered(1, Keep, 4, 60<<10)}, nil); !ok {
				break
			}
		}
		r.closed(SlowClient, 1)
	})
}

func TestAProbeExcusesAStalledPollOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{StallTimeout: 200 * time.Millisecond})
		p := r.polling()
		p.join()
		worked(t, r.socket(0).emit("x"))
		for r.server.Stats().Closed[StalledClient] == 0 {
			c, _, err := r.dialer.Dial(
				"ws"+r.url("EIO=4&transport=websocket&sid=" + p.sid)[4:], nil)
			if err != nil {
				break
			}
			c.WriteMessage(websocket.TextMessage, []byte("no probe")) //nolint:errcheck
			c.ReadMessage()                                           //nolint:errcheck // refused
			c.Close()
			time.Sleep(time.Millisecond)
		}
		r.closed(StalledClient, 1)
	})
}

func TestAClientThatHalfClosesGetsNoCodeThatIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{})
		c := r.ws()
		worked(t, c.NetConn().(*sockettest.Conn).CloseWrite())
		if b, _ := io.ReadAll(c.NetConn()); bytes.Contains(b, []byte{0x88, 2, 0x03, 0xee}) { // 1006
			t.Errorf("% x", b)
		}
		r.closed(TransportClose, 1)
	})
}
