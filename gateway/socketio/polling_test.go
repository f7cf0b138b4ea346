package socketio

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestPollingCarriesPacketsBothWays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{})
		p := r.polling()
		a := p.post("40")
		if a.status != 200 || a.body != "ok" || a.header.Get("Content-Type") != "text/html" {
			t.Errorf("POST: %+v", a)
		}
		a = p.get()
		if a.status != 200 || a.header.Get("Content-Type") != "text/plain; charset=UTF-8" ||
			a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("GET: %+v", a)
		}
		held := p.hold()
		p.sent(`42["message","héllo €",1]`)
		if a := <-held; a.body != `42["message-back","héllo €",1]` {
			t.Errorf("a held poll: %q", a.body)
		}
		p.sent(strings.Join([]string{`42["message",1]`, `42["message",2]`,
			`421["message-with-ack",3]`}, "\x1e"))
		if a := p.get(); a.body != strings.Join(
			[]string{`42["message-back",1]`, `42["message-back",2]`, `431[3]`}, "\x1e") {
			t.Errorf("what waits: %q", a.body)
		}
	})
}

func TestPollingCarriesBinaryAsBase64(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{})
		p := r.polling()
		p.join()
		p.sent(`452-["message",{"_placeholder":true,"num":0},"x",{"_placeholder":true,"num":1}]` +
			"\x1ebAQIDBA==\x1ebAAE=")
		if a := p.get(); a.body !=
			`452-["message-back",{"_placeholder":true,"num":0},"x",{"_placeholder":true,"num":1}]`+
				"\x1ebAQIDBA==\x1ebAAE=" {
			t.Errorf("%q", a.body)
		}
		p.sent(`451-7["message-with-ack",{"_placeholder":true,"num":0}]`)
		p.sent(`bAQIDBA==`) // attachments may come in bodies of their own
		if a := p.get(); a.body != `461-7[{"_placeholder":true,"num":0}]`+"\x1ebAQIDBA==" {
			t.Errorf("%q", a.body)
		}
	})
}

func TestAPollHasNoMoreThanMaxPayloadButOnePacket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{MaxPayload: 100})
		p := r.polling()
		p.join()
		s := r.socket(0)
		long := strings.Repeat("x", 200)
		for _, x := range []string{"1", strings.Repeat("y", 60), "3", long, "5"} {
			worked(t, s.emit("e", x))
		}
		// Two in one delivery are two packets all the same.
		f := AppendFrame(AppendFrame(nil, "/", "e", []byte(`"`+strings.Repeat("z", 80)+`"`)), "/",
			"e", []byte(`"7"`))
		if _, ok := s.Deliver([]Delivery{{Frames: f}}, nil); !ok {
			t.Fatal("not delivered")
		}
		for _, want := range []string{
			`42["e","1"]` + "\x1e" + `42["e","` + strings.Repeat("y", 60) + `"]` + "\x1e" +
				`42["e","3"]`,
			`42["e","` + long + `"]`,
			`42["e","5"]`,
			`42["e","` + strings.Repeat("z", 80) + `"]`,
			`42["e","7"]`,
		} {
			if a := p.get(); a.body != want {
				t.Errorf("got %q, want %q", a.body, want)
			}
		}
	})
}

func TestASecondPollClosesTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{})
		p := r.polling()
		held := p.hold()
		if a := p.get(); a.status != 400 {
			t.Errorf("the second: %d %s", a.status, a.body)
		}
		if a := <-held; a.status != 200 || a.body != "1" {
			t.Errorf("the first: %d %s", a.status, a.body)
		}
		p.gone()
		r.closed(OverlappingPolls, 1)
	})
}

func TestASecondPostClosesTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{})
		p := r.polling()
		x := r.server.find([]byte(p.sid))
		x.in.Lock() // as a hook that takes its time
		first := make(chan answer, 1)
		go func() {
			a, _ := p.try("POST", p.query(), "3")
			first <- a
		}()
		eventually(t, "the first is there", func() bool {
			x.mu.Lock()
			defer x.mu.Unlock()
			return x.posting
		})
		if a := p.post("3"); a.status != 400 {
			t.Errorf("the second: %d %s", a.status, a.body)
		}
		x.in.Unlock()
		<-first
		p.gone()
		r.closed(OverlappingPolls, 1)
	})
}

func TestAClientThatSaysGoodbyeIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{})
		p := r.polling()
		p.join()
		held := p.hold()
		p.sent("1")
		if a := <-held; a.status != 200 || a.body != "6" {
			t.Errorf("its poll: %d %s", a.status, a.body)
		}
		p.gone()
		r.closed(ClientClose, 1)
		eventually(t, "Disconnect runs", func() bool { return r.reasons()[0] == "client close" })
	})
}

func TestABodyOverTheLimitIs413AndTheSessionStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{MaxPayload: 1000})
		p := r.polling()
		if a := p.post("4" + strings.Repeat("x", 1000)); a.status != 413 || a.body != "" {
			t.Errorf("%d %q", a.status, a.body)
		}
		p.join()
	})
}

func TestBadPostsCloseTheSession(t *testing.T) { synctest.Test(t, testBadPostsCloseTheSession) }

func testBadPostsCloseTheSession(t *testing.T) {
	r := echo(t, Options{})
	n := 0
	f := func(body string, header ...string) {
		t.Helper()
		p := r.polling()
		p.join()
		if a := r.do("POST", p.query(), body, header...); a.status != 400 ||
			a.body != `{"code":3,"message":"Bad request"}` {
			t.Errorf("%q: %d %s", body, a.status, a.body)
		}
		p.gone()
		n++
		r.closed(ParseError, n)
	}
	f("")
	f("\x1e")
	f("3\x1e")
	f("\x1e3")
	f("9")
	f("0{}")
	f("b")
	f("bAQ")
	f("b!!!!")
	f("bAQID") // not announced
	f("4\xff")
	f("3", "Content-Type", "application/octet-stream")
}

func TestAPollingClientThatDoesNotComeIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{StallTimeout: 50 * time.Millisecond})
		p := r.polling()
		p.sent("40") // the answer waits
		p.gone()
		r.closed(StalledClient, 1)
		q := r.polling() // nothing waits for this one
		if r.server.find([]byte(q.sid)) == nil {
			t.Error("a client for whom nothing waits is gone")
		}
	})
}

func TestAHeldPollIsCounted(t *testing.T) { synctest.Test(t, testAHeldPollIsCounted) }

func testAHeldPollIsCounted(t *testing.T) {
	r := echo(t, Options{})
	p := r.polling()
	held := p.hold()
	if s := r.server.Stats(); s.HeldPolls != 1 || s.Polling != 1 || s.QueuedBytes != 0 {
		t.Errorf("%+v", s)
	}
	p.sent("40")
	<-held
	if s := r.server.Stats(); s.HeldPolls != 0 || s.PacketsIn != 1 || s.bytesIn != 2 ||
		s.Writes != 1 {
		t.Errorf("%+v", s)
	}
}

// The deadline of a pong is set by the due time of its ping, and holds when it is over. A ping that
// is late, or a clock that ticks late, gives no more time.
func TestPongDeadlineStartsWhenPingIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{})
		p := r.polling()
		x := p.server.find([]byte(p.sid))
		due := func(ago time.Duration) {
			x.mu.Lock()
			x.pingAt = x.server.now() - int64(ago)
			at := x.pingAt
			x.mu.Unlock()
			x.wake()
			x.mu.Lock()
			defer x.mu.Unlock()
			if want := at + int64(x.server.opts.PingTimeout); x.pongBy != want {
				t.Errorf("the pong is awaited until %v after the ping was due",
					time.Duration(x.pongBy-at))
			}
		}
		due(10 * time.Second)
		if a := p.get(); a.body != "2" {
			t.Errorf("%q", a.body)
		}
		p.sent("3")
		due(20 * time.Second)
		if a := p.post("3"); a.status != 400 ||
			a.body != `{"code":1,"message":"Session ID unknown"}` {
			t.Errorf("a pong that is too late: %d %s", a.status, a.body)
		}
		r.closed(PingTimeout, 1)
		p.gone()

		p = r.polling()
		x = p.server.find([]byte(p.sid))
		due(20 * time.Second)
		if a := p.get(); a.status != 400 {
			t.Errorf("a poll that is too late: %d %s", a.status, a.body)
		}
		r.closed(PingTimeout, 2)
	})
}
