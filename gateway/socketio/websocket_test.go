package socketio

import (
	"bytes"
	"encoding/binary"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fasthttp/websocket"

	"exchange/gateway/socketio/sockettest"
)

// both runs a test on connections that are written to directly, and on others.
func both(t *testing.T, f func(t *testing.T, with ...func(net.Listener) net.Listener)) {
	for name, with := range map[string][]func(net.Listener) net.Listener{"direct": nil,
		"wrapped": {wrapped}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, with...) })
		})
	}
}

func TestAWebSocketCarriesPacketsBothWays(t *testing.T) {
	both(t, func(t *testing.T, with ...func(net.Listener) net.Listener) {
		r := echo(t, Options{}, with...)
		c := r.ws()
		c.send(`42["message","héllo €",{"a":[1]}]`)
		c.want(`42["message-back","héllo €",{"a":[1]}]`)
		c.send(`42[1,"two"]`)
		c.want(`42["1-back","two"]`)
		c.send(`42456["message-with-ack",1,"2",{"3":[false]}]`)
		c.want(`43456[1,"2",{"3":[false]}]`)
		c.send(`420["message-with-ack"]`)
		c.want(`430[]`)
		c.send(`452-["message",{"_placeholder":true,"num":0},{"_placeholder":true,"num":1}]`)
		c.sendBinary("\x01\x02\x03")
		c.sendBinary("")
		c.want(`452-["message-back",{"_placeholder":true,"num":0},{"_placeholder":true,"num":1}]`)
		c.wantBinary("\x01\x02\x03")
		c.wantBinary("")
		c.send(`451-789["message-with-ack",{"_placeholder":true,"num":0}]`)
		c.sendBinary("\x01")
		c.want(`461-789[{"_placeholder":true,"num":0}]`)
		c.wantBinary("\x01")
		c.send(`450-["message"]`)
		c.want(`42["message-back"]`)
		c.send(`431[]`) // an acknowledgement that was not asked for
		c.send(`6`)
		long := strings.Repeat("long ", 30_000)
		c.send(`42["message","` + long + `"]`)
		c.want(`42["message-back","` + long + `"]`)
		c.Close()
		r.closed(TransportClose, 1)
	})
}

func TestFragmentsAreOneMessageAndPingsAreAnsweredBetweenThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{})
		c := r.ws()
		var pong string
		c.SetPongHandler(func(s string) error { pong = s; return nil })
		c.raw(masked(0x01, `42["message","h`), masked(0x89, "are you there?"), masked(0x00, "\xc3"),
			masked(0x80, "\xa9\"]"))
		c.want(`42["message-back","hé"]`)
		if pong != "are you there?" {
			t.Errorf("pong %q", pong)
		}
	})
}

func TestFramesRightAfterTheHandshakeAreRead(t *testing.T) {
	both(t, func(t *testing.T, with ...func(net.Listener) net.Listener) {
		r := echo(t, Options{}, with...)
		c := r.wire()
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		long := `42["message","` + strings.Repeat("x", 3000) + `"]`
		var b bytes.Buffer
		b.WriteString(
			"GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: x\r\nConnection: " +
				"Upgrade\r\nUpgrade: websocket\r\n" +
				"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
		b.Write(masked(textFrame, "40"))
		b.Write(masked(textFrame, long))
		if _, err := c.Write(b.Bytes()); err != nil {
			t.Fatal(err)
		}
		var got []byte
		want := []byte(`42["message-back","xxx`)
		for buffer := make([]byte, 4096); !bytes.Contains(got, want) ||
			!bytes.HasSuffix(got, []byte(`x"]`)); {
			n, err := c.Read(buffer)
			if err != nil {
				t.Fatalf("%v after %q", err, got)
			}
			got = append(got, buffer[:n]...)
		}
		if !bytes.Contains(got, []byte("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n")) {
			t.Errorf("%q", got)
		}
	})
}

func TestABadWebSocketFrameClosesItsSessionWithTheCodeOfTheProtocol(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{MaxPayload: 1000})
		bystander := r.ws()
		f := func(name string, code int, reason Reason, frames ...[]byte) {
			t.Log(name)
			before := r.server.Stats().Closed[reason]
			c := r.ws()
			c.raw(frames...)
			c.closedWith(code)
			r.closed(reason, int(before)+1)
		}
		unmasked := appendFrame(nil, textFrame, []byte("42"))
		huge := binary.BigEndian.AppendUint64([]byte{textFrame, 0x80 | 127}, 1<<40)
		negative := binary.BigEndian.AppendUint64([]byte{textFrame, 0x80 | 127}, 1<<63)
		f("text that is not UTF-8", 1007, InvalidText, masked(textFrame, "42[\"\xff\"]"))
		f("text that ends in the middle of a character", 1007, InvalidText, masked(0x01, `42["`),
			masked(0x80, "\xc3"))
		f("a message over the limit", 1009, PayloadTooLarge,
			masked(textFrame, "4"+strings.Repeat("x", 1000)))
		f("a binary message over the limit", 1009, PayloadTooLarge,
			masked(binaryFrame, strings.Repeat("x", 1001)))
		f("fragments over the limit", 1009, PayloadTooLarge, masked(0x01, strings.Repeat("x", 600)),
			masked(0x80, strings.Repeat("x", 600)))
		f("a header that announces too much", 1009, PayloadTooLarge, huge, []byte("1234"))
		f("a length that is negative", 1009, PayloadTooLarge, negative, []byte("1234"))
		f("no mask", 1002, ParseError, unmasked)
		f("a reserved bit", 1002, ParseError, masked(textFrame|0x40, "3"))
		f("an unknown kind", 1002, ParseError, masked(0x83, "3"))
		f("a fragment of nothing", 1002, ParseError, masked(0x80, "3"))
		f("a message between fragments", 1002, ParseError,
			masked(0x01, "4"), masked(textFrame, "3"))
		f("a ping in fragments", 1002, ParseError, masked(0x09, "3"))
		f("a long ping", 1002, ParseError, masked(0x89, strings.Repeat("x", 126)))
		f("a code that there is not", 1002, ParseError, masked(closeFrame, "\x03\xed")) // 1005
		f("a close", 1001, TransportClose, masked(closeFrame, "\x03\xe9"))
		f("a close with half a code", 1002, ParseError, masked(closeFrame, "\x03"))
		f("a close with half a code after others", 1002, ParseError, masked(textFrame, "40"),
			masked(0x89, strings.Repeat("x", 125)),
			masked(textFrame, `42["message","`+strings.Repeat("x", 500)+`"]`),
			masked(closeFrame, "\x03"))
		f("a close without a code before another", 1005, TransportClose, masked(closeFrame, ""),
			masked(closeFrame, "\x03"))
		f("a close without a code", 1005, TransportClose, masked(closeFrame, ""))
		bystander.send(`42["message",1]`)
		bystander.want(`42["message-back",1]`)
	})
}

func TestAnUpgradeKeepsTheSessionAndItsOrder(t *testing.T) {
	both(t, func(t *testing.T, with ...func(net.Listener) net.Listener) {
		r := echo(t, Options{}, with...)
		p := r.polling()
		p.join()
		held := p.hold()
		c := r.dial("EIO=4&transport=websocket&sid=" + p.sid)
		c.send("2probe")
		c.want("3probe")
		if a := <-held; a.body != "6" {
			t.Errorf("a poll that was held: %q", a.body)
		}
		if a := p.get(); a.body != "6" { // every 100 ms
			t.Errorf("the next poll: %q", a.body)
		}
		p.sent(`42["message","waits"]`) // polling continues until the upgrade is done
		c.send("5")
		c.want(`42["message-back","waits"]`)
		c.send(`42["message",2]`)
		c.want(`42["message-back",2]`)
		for _, a := range []answer{p.get(), p.post("3")} {
			if a.status != 400 || a.body != `{"code":3,"message":"Bad request"}` {
				t.Errorf("polling after the upgrade: %d %s", a.status, a.body)
			}
		}
		second := r.dial("EIO=4&transport=websocket&sid=" + p.sid)
		second.closedWith(1008)
		c.send(`42["message",3]`)
		c.want(`42["message-back",3]`)
		if s := r.server.Stats(); s.upgrades != 1 || s.WebSocket != 1 || s.Polling != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A poll that waits while the websocket takes over is let go. A client that polls while it has a
// websocket gets the same answer as for polls after the upgrade, in either order of arrival.
func TestAPollIsReleasedByTheUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// A shorter interval might release a late poll on a busy machine.
		r := echo(t, Options{noopInterval: time.Hour})
		for range 20 {
			for _, late := range []bool{false, true} {
				p := r.polling()
				var held <-chan answer
				if !late {
					held = p.hold()
				}
				c := r.dial("EIO=4&transport=websocket&sid=" + p.sid)
				if late {
					held = p.hold()
				}
				c.raw(masked(textFrame, "2probe"), masked(textFrame, "5"))
				c.want("3probe")
				if a := <-held; late && a.status != 400 ||
					!late && (a.status != 200 || a.body != "6") {
					t.Errorf("late: %v, %d %q", late, a.status, a.body)
				}
				c.join()
			}
		}
	})
}

func TestFramesOfAnUpgradeMayComeTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{})
		for range 50 {
			p := r.polling()
			p.join()
			c := r.dial("EIO=4&transport=websocket&sid=" + p.sid)
			c.raw(masked(textFrame, "2probe"), masked(textFrame, "5"),
				masked(textFrame, `42["message",1]`))
			c.want("3probe")
			c.want(`42["message-back",1]`)

			p = r.polling()
			p.join()
			c = r.dial("EIO=4&transport=websocket&sid=" + p.sid)
			c.send("2probe")
			c.want("3probe")
			c.raw(masked(textFrame, "5"), masked(textFrame, `42["message",2]`))
			c.want(`42["message-back",2]`)
		}
	})
}

func TestABadUpgradeClosesItsSocketOnlyAndPollingGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{})
		p := r.polling()
		p.join()
		f := func(frames ...[]byte) {
			t.Helper()
			c := r.dial("EIO=4&transport=websocket&sid=" + p.sid)
			c.raw(frames...)
			c.closedWith(1008)
			p.sent(`42["message",1]`)
			if a := p.get(); a.body != `42["message-back",1]` {
				t.Errorf("%q", a.body)
			}
		}
		text := func(s string) []byte { return masked(textFrame, s) }
		f(text("2"))
		f(text("5"))
		f(text("40"))
		f(text("2probe again"))
		f(masked(binaryFrame, "2probe"))
		f(text("2probe"), text("4hello"))
		f(text("2probe"), text("2probe"))
		f(text("2probe"), masked(0x89, ""))
		f(masked(closeFrame, ""))
		// One at a time.
		first := r.dial("EIO=4&transport=websocket&sid=" + p.sid)
		first.send("2probe")
		first.want("3probe")
		r.dial("EIO=4&transport=websocket&sid=" + p.sid).closedWith(1008)
		first.send("5")
		first.send(`42["message",2]`)
		first.want(`42["message-back",2]`)
	})
}

func TestAnUpgradeThatIsNotFinishedLeavesTheSessionOnPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// the probe is in time on a busy machine, too
		r := echo(t, Options{UpgradeTimeout: 500 * time.Millisecond})
		p := r.polling()
		p.join()
		r.dial("EIO=4&transport=websocket&sid=" + p.sid).closedWith(1008)
		c := r.dial("EIO=4&transport=websocket&sid=" + p.sid)
		c.send("2probe")
		c.closedWith(1008)
		p.sent(`42["message",1]`)
		if a := p.get(); a.body != `42["message-back",1]` {
			t.Errorf("%q", a.body)
		}
	})
}

func TestASessionThatEndsEndsItsUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{})
		p := r.polling()
		c := r.dial("EIO=4&transport=websocket&sid=" + p.sid)
		c.send("2probe")
		c.want("3probe")
		p.leaves()
		c.closedWith(0)
	})
}

func TestTheServerSaysGoodbyeAndThenCloses(t *testing.T) {
	both(t, func(t *testing.T, with ...func(net.Listener) net.Listener) {
		r := echo(t, Options{}, with...)
		c := r.ws()
		r.socket(0).emit("last words") //nolint:errcheck // read below
		r.socket(0).Close(ServerClose)
		c.want(`42["last words"]`)
		c.closedWith(1000)
		r.closed(ServerClose, 1)
		c = r.ws()
		c.send("1")
		c.closedWith(1000)
		r.closed(ClientClose, 1)
		eventually(t, "all Disconnect hooks were called", func() bool {
			return strings.Join(r.reasons(), ",") == "server close,client close"
		})
		if err := r.socket(0).emit("x"); err != ErrGone {
			t.Errorf("sending to a client that is gone: %v", err)
		}
	})
}

func TestAConnectionThatBreaksEndsItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{})
		c := r.ws()
		c.NetConn().(*sockettest.Conn).SetLinger(0) //nolint:errcheck // it is open
		c.Close()
		r.closed(TransportClose, 1)
		c = r.ws()
		c.raw(masked(textFrame, "42[1]")[:3])
		c.Close()
		r.closed(TransportClose, 2)
	})
}

func TestTheServerPingsAndClosesClientsThatDoNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// a client that answers does so in time
		r := echo(t, Options{PingInterval: 50 * time.Millisecond, PingTimeout: time.Second})
		start := time.Now()
		c, o := r.open()
		if o.PingInterval != 50 || o.PingTimeout != 1000 {
			t.Errorf("%+v", o)
		}
		for range 3 {
			c.want("2")
			c.send("3")
		}
		if d := time.Since(start); d < 3*49*time.Millisecond {
			t.Errorf("three pings in %v", d)
		}
		c.want("2")
		if _, _, err := c.ReadMessage(); err == nil {
			t.Error("the websocket is still open")
		}
		r.closed(PingTimeout, 1)

		p := r.polling()
		for range 3 {
			if a := p.get(); a.body != "2" {
				t.Fatalf("polling: %q", a.body)
			}
			p.sent("3")
		}
		if a := p.get(); a.body != "2" {
			t.Fatalf("polling: %q", a.body)
		}
		if a := p.get(); a.body != "1" {
			t.Errorf("the poll of a client that does not answer: %q", a.body)
		}
		p.gone()
		r.closed(PingTimeout, 2)
	})
}

func TestASessionWithoutANamespaceIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// a client that connects does so in time
		r := echo(t, Options{ConnectTimeout: 500 * time.Millisecond})
		stays := r.ws()
		c, _ := r.open()
		c.closedWith(1008)
		r.closed(ConnectTimeout, 1)
		p := r.polling()
		if a := p.get(); a.body != "1" {
			t.Errorf("%q", a.body)
		}
		p.gone()
		refused, _ := r.open()
		refused.send("40/admin,")
		refused.want(`44/admin,{"message":"who is there?"}`)
		refused.closedWith(1008)
		r.closed(ConnectTimeout, 3)
		stays.send(`42["message",1]`)
		stays.want(`42["message-back",1]`)
	})
}

func TestHandshakesThatAreNeverFinishedLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{})
		for _, text := range []string{"",
			"GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: x\r\nConn",
			"POST /socket.io/?EIO=4&transport=polling HTTP/1.1\r\nHost: x\r\nContent-Length: " +
				"100\r\n\r\n4"} {
			c := r.wire()
			c.Write([]byte(text)) //nolint:errcheck
			c.Close()
		}
		// The whole of it, and away.
		for range 20 {
			c := r.wire()
			c.SetLinger(0) //nolint:errcheck // it is open
			//nolint:errcheck // the server may hang up
			c.Write([]byte("GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: x\r\n" +
				"Connection: Upgrade\r\nUpgrade: websocket\r\n" +
				"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"))
			c.Close()
		}
		r.ws().Close()
		eventually(t, "all sessions are gone", func() bool {
			s := r.server.Stats()
			return s.WebSocket+s.Polling == 0
		})
	})
}

func TestAControlFrameNeverLandsInAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{QueueBytes: 16 << 20}) // all of it may have to wait for a slow reader
		c := r.ws()
		n := 0
		c.SetPongHandler(func(string) error { n++; return nil })
		const rounds = 200
		long := strings.Repeat("x", 20_000)
		s := r.socket(0)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range rounds {
				s.emit("long", long) //nolint:errcheck // counted below
			}
		}()
		go func() {
			for range rounds {
				//nolint:errcheck // the server may hang up
				c.WriteControl(websocket.PingMessage, []byte("?"), time.Now().Add(patience))
			}
		}()
		for range rounds {
			c.want(`42["long","` + long + `"]`)
		}
		<-done
		c.send(`42["message"]`)
		c.want(`42["message-back"]`)
	})
}
