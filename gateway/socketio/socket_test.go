package socketio

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

func TestANamespaceLetsInOrRefuses(t *testing.T) { synctest.Test(t, testANamespaceLetsInOrRefuses) }

func testANamespaceLetsInOrRefuses(t *testing.T) {
	r := echo(t, Options{})
	c, o := r.open()
	f := func(send string, want ...string) {
		t.Helper()
		c.send(send)
		for _, w := range want {
			if s := c.text(); s != w && (!strings.HasSuffix(w, "*") ||
				!strings.HasPrefix(s, w[:len(w)-1])) {
				t.Fatalf("%s: got %q, want %q", send, s, w)
			}
		}
	}
	f("40", `40{"sid":"*`, `42["auth",{}]`)
	f(`40/custom,{"token":"123"}`, `40/custom,{"sid":"*`, `42/custom,["auth",{"token":"123"}]`)
	f(`40/silent`, `40/silent,{"sid":"*`) // no comma, no hooks
	f(`42/silent,1["x"]`)
	f(`40/random`, `44/random,{"message":"Invalid namespace"}`)
	f(`40/admin,`, `44/admin,{"message":"who is there?"}`)
	f(`40/admin,{"token":"123"}`, `44/admin,{"message":"not you","data":{"status":7}}`)
	f(`40/admin,{"token":"secret"}`, `40/admin,{"sid":"*`, `42/admin,["auth",{"token":"secret"}]`)
	f(`42/admin,["message",1]`, `42/admin,["message-back",1]`)
	f(`42/custom,7["message-with-ack",{"a":1}]`, `43/custom,7[{"a":1}]`)
	f(`42["message",2]`, `42["message-back",2]`)
	f("41/custom") // leaves, the others stay
	f(`42["message",3]`, `42["message-back",3]`)
	f(`40/custom,`, `40/custom,{"sid":"*`, `42/custom,["auth",{}]`) // and comes back
	a, b := r.socket(0), r.socket(1)
	if a.id == b.id || a.id == o.Sid || len(a.id) != 20 || a.namespace != "/" ||
		b.namespace != "/custom" {
		t.Errorf("%s %s, %s %s, %s", a.namespace, a.id, b.namespace, b.id, o.Sid)
	}
	c.Close()
	eventually(t, "all Disconnect hooks were called", func() bool {
		return strings.Join(r.reasons(), ",") ==
			"transport close,client disconnect,transport close,transport close"
	})
}

func TestAClientThatIsPutOutOfANamespaceKeepsItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{})
		c := r.ws()
		c.send("40/custom,")
		c.text()
		c.text()
		c.raw(masked(textFrame, `42/custom,["leave"]`),
			masked(textFrame, `42/custom,["message","too late"]`))
		c.want("41/custom,")
		eventually(t, "Disconnect runs",
			func() bool { return r.reasons()[1] == "server disconnect" })
		if err := r.socket(1).emit("x"); err != ErrGone {
			t.Errorf("sending to a client that left: %v", err)
		}
		r.socket(1).disconnect() // again
		c.send(`42["message",1]`)
		c.want(`42["message-back",1]`)
		c.send(`40/custom,`)
		if s := c.text(); !strings.HasPrefix(s, `40/custom,{"sid"`) {
			t.Errorf("%q", s)
		}
	})
}

func TestEveryBadPacketClosesItsSessionAndNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{attachments: 2, attachmentBytes: 10})
		bystander := r.ws()
		for _, packets := range [][]string{
			{"abc"},
			{"8"},
			{"0"},
			{"2"}, // clients do not ping
			{"2probe"},
			{"5"},
			{"binary x"},
			{"4"},
			{"4abc"},
			{"49"},
			{"40"},   // twice
			{"40{}"}, // twice
			{"40/custom,[]"},
			{"40/custom,{"},
			{`40/custom,"x"`},
			{"40/custom,1{}"},
			{`42/custom,["message"]`}, // before joining
			{"41/custom"},
			{"41{}"},
			{"411"},
			{"42"},
			{"42{}"},
			{"42[]"},
			{"42null"},
			{`42"message"`},
			{`42["message"`},
			{`42["message"]]`},
			{`42[null]`},
			{`42[{}]`},
			{`42[["message"]]`},
			{`42[true]`},
			{`42abc["message"]`},
			{`42-1["message"]`},
			{`421.5["message"]`},
			{`429007199254740992["message"]`},
			{`4299999999999999999999["message"]`},
			{`42["connect"]`},
			{`42["connect_error"]`},
			{`42["disconnect"]`},
			{`42["disconnecting"]`},
			{`42["newListener"]`},
			{`42["removeListener"]`},
			{`42["connec\u0074"]`},
			{"43[]"}, // it acknowledges nothing
			{"431"},
			{"431{}"},
			{`44{"message":"x"}`},
			{`45["message"]`},
			{`45-["message"]`},
			{`451["message"]`},
			{`45x-["message"]`},
			{`453-["message"]`}, // over the limit
			{`451-["message"`},
			{`451-["message"]`, `42["message"]`},
			{`451-["message"]`, "binary x", "binary y"},
			{`461-[]`},
		} {
			r.refuses(t, ParseError, 1002, packets...)
		}
		r.refuses(t, PayloadTooLarge, 1009, `452-["message"]`, "binary 123456", "binary 12345")
		bystander.send(`42["message",1]`)
		bystander.want(`42["message-back",1]`)
	})
}

// refuses wants the last of some packets to close its session, over both transports.
func (r *rig) refuses(t *testing.T, reason Reason, code int, packets ...string) {
	t.Logf("%.40q", packets)
	before := int(r.server.Stats().Closed[reason])
	c := r.ws()
	for _, p := range packets {
		if b, ok := strings.CutPrefix(p, "binary "); ok {
			c.sendBinary(b)
		} else {
			c.send(p)
		}
	}
	c.closedWith(code)
	r.closed(reason, before+1)

	t.Log("the same, polling")
	p := r.polling()
	p.join()
	for i, text := range packets {
		if b, ok := strings.CutPrefix(text, "binary "); ok {
			text = string(appendPoll(nil, binaryFrame, []byte(b)))
		}
		if a := p.post(text); i == len(packets)-1 && a.status != 400 {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	p.gone()
	r.closed(reason, before+2)
}

func TestAnEventIsAcknowledgedOnceIfAtAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{})
		type result struct{ bare, first, second error }
		results := make(chan result, 1)
		var bare error
		r.server.Namespace("/acks", Namespace{Event: func(s *Socket, e *Event) {
			if !e.WantsAck() {
				bare = e.Ack()
				return
			}
			if e.Ack(func() {}) == nil {
				t.Error("a function was sent")
			}
			go func() { results <- result{bare, e.Ack("later", []byte{7}), e.Ack()} }()
		}})
		c, _ := r.open()
		c.send("40/acks,")
		c.text()
		c.send(`42/acks,["x"]`)
		c.send(`42/acks,3["x"]`)
		c.want(`461-/acks,3["later",{"_placeholder":true,"num":0}]`)
		c.wantBinary("\x07")
		if got := <-results; got != (result{errNoAck, nil, errAcked}) {
			t.Errorf("%+v", got)
		}
	})
}

func TestEventsSentDuringConnectComeAfterTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{QueueBytes: 1000})
		r.server.Namespace("/early", Namespace{Connect: func(s *Socket,
			auth json.RawMessage) error {
			s.emit("one") //nolint:errcheck // read below
			s.Deliver([]Delivery{{Frames: AppendFrame(nil, "/early", "two", nil)}}, nil)
			var mode struct{ Do string }
			json.Unmarshal(auth, &mode) //nolint:errcheck // nothing to do
			switch mode.Do {
			case "refuse":
				return errors.New("no")
			case "leave":
				s.disconnect()
			case "close":
				s.Close(0)
			case "flood":
				for s.emit("flood", strings.Repeat("x", 100)) == nil {
				}
			}
			return nil
		}})
		join := func(m string) socket {
			c, _ := r.open()
			c.send(`40/early,{"do":"` + m + `"}`)
			if m == "" || m == "leave" {
				if s := c.text(); !strings.HasPrefix(s, `40/early,{"sid":"`) {
					t.Fatalf("%s: %q", m, s)
				}
				c.want(`42/early,["one"]`)
				c.want(`42/early,["two"]`)
			}
			return c
		}
		join("")
		join("refuse").want(`44/early,{"message":"no"}`)
		join("leave").want("41/early,")
		join("close").closedWith(1000)
		join("flood").closedWith(0)
		r.closed(SlowClient, 1)
	})
}

func TestDataThatAreNoJSONRefuseWithoutThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := echo(t, Options{})
		r.server.Namespace("/odd", Namespace{Connect: func(*Socket, json.RawMessage) error {
			return fmt.Errorf("wrapped: %w", &refusal{message: "odd", data: func() {}})
		}})
		c, _ := r.open()
		c.send("40/odd")
		c.want(`44/odd,{"message":"odd"}`)
	})
}

func TestFramesAreWhatEmitSends(t *testing.T) {
	f := func(namespace, event, payload, want string) {
		t.Helper()
		kind, got, rest, ok := nextFrame(AppendFrame([]byte{}, namespace, event, []byte(payload)))
		if kind != textFrame || string(got) != want || len(rest) != 0 || !ok {
			t.Errorf("got %x %q %q %v, want %q", kind, got, rest, ok, want)
		}
	}
	long := `"` + strings.Repeat("x", 70_000) + `"`
	f("/", "trade", `{"a":1}`, `42["trade",{"a":1}]`)
	f("/x", "trade", `1,2`, `42/x,["trade",1,2]`)
	f("/", "trade", ``, `42["trade"]`)
	f("/", "a\"b\\é\x1e", `1`, `42["a\"b\\é\u001e",1]`)
	f("/", "x", long[:120], `42["x",`+long[:120]+`]`)
	f("/", "x", long[:1000], `42["x",`+long[:1000]+`]`)
	f("/", "x", long, `42["x",`+long+`]`)
}
