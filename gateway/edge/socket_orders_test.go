package edge_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"exchange/actors"
	"exchange/core/event"
	"exchange/gateway/edge"
	"exchange/prove/harness"
)

// jsonOf is a form as an object of texts.
func jsonOf(form string) string {
	fields := map[string]string{}
	for pair := range strings.SplitSeq(form, "&") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			fields[name] = value
		}
	}
	b, _ := json.Marshal(fields)
	return string(b)
}

// The same at an observer, and in a maintenance with cancels, in which a socket may cancel, also in
// a batch.
func TestASocketIsAnsweredAsARequestIs(t *testing.T) {
	h := harness.Traded(t)
	for _, maintenance := range []bool{false, true} {
		on := event.Maintenance{On: maintenance, Cancels: maintenance}
		h.Done(h.Engine.SetMaintenance(t.Context(), "test", on))
		socketAnswers(t, h)
	}
	socketAnswers(t, harness.Trades(t, harness.NewOf(t, true, nil)))
}

// socketAnswers compares the answers to bob's commands over a socket with those to requests.
func socketAnswers(t *testing.T, h *harness.Exchange) {
	t.Helper()
	p := h.LoggedIn("bob")
	for _, c := range [][2]string{
		{"order", harness.Order("buy", "BTC_USDT", "1", "7")},
		{"order", harness.Order("buy", "BTC_USDT", "1", "7") + "&time_in_force=fok"},
		{"order", harness.Order("buy", "BTC_USDT", "x", "7")},
		{"order", harness.Order("buy", "BTC_USDT", "1000", "1000000")},
		{"order", ""},
		{"order-test", harness.Order("buy", "BTC_USDT", "1", "7")},
		{"order-test", "type=buy"},
		{"order-amend", "order=999&price=1"},
		{"order-cancel", "order=999"},
		{"order-cancel", "client_order_id=none"},
		{"order-cancel-all", ""},
		{"order-cancel-all", "all=1"},
		{"order-cancel-after", "timeout=0"},
		{"order-cancel-after", "timeout=1"},
		{"order-batch", `orders=[{"do":"cancel","order":999},{"do":"place"}]`},
		{"order-batch", ""},
	} {
		args := "," + jsonOf(c[1])
		if c[1] == "" {
			args = ""
		}
		rest := h.Post("bob", "/api/v1/"+c[0]+"/", c[1])
		want := fmt.Sprintf(`{"status":%d,"body":%s`, rest.Status, harness.Masked(rest.Body))
		if c[0] == "order-cancel-all" && c[1] == "all=1" {
			want = `{"status":200,"body":{"orders":[]}`
		}
		if retry := rest.Header.Peek("Retry-After"); len(retry) > 0 {
			want += `,"retry_after":` + string(retry)
		}
		if got := harness.Masked(p.Asks(c[0], args)); got != want+"}" {
			t.Errorf("%s %s:\n%s, by a request\n%s", c[0], c[1], got, want)
		}
	}
}

func TestASocketNeedsALoginAndThePermissionForOrders(t *testing.T) {
	h := harness.Traded(t)
	h.Key("bob", "reader", event.PermissionRead)
	p := h.Polled(edge.StreamPath)
	args := "," + jsonOf(harness.Order("buy", "BTC_USDT", "1", "7"))
	if got := p.Asks("order", args); got !=
		`{"status":401,"body":{"detail":"This socket is not logged in."}}` {
		t.Error(got)
	}
	p.LogsIn("key-reader", "secret-reader")
	if got := p.Asks("order", args); got !=
		`{"status":403,"body":{"detail":"This key lacks the permission trade."}}` {
		t.Error(got)
	}
	for _, args := range []string{`,7`, `,[]`, `,{"a":1,"a":2}`, `,"order"`, `,null`,
		`,{"order":{"_placeholder":true,"num":0}}`} {
		q := h.LoggedIn("bob")
		if got := q.Asks("order-cancel", args); !strings.HasPrefix(got, `{"status":400,`) {
			t.Errorf("%s: %s", args, got)
		}
	}
	frozen := h.LoggedIn("bob")
	h.Done(h.Engine.Freeze("test", "bob", true))
	frozen.Receives(`42["login.end",{"detail":"The account is frozen."}]`)
	if got := frozen.Asks("order", args); !strings.HasPrefix(got, `{"status":40`) {
		t.Error(got)
	}
}

func TestOrdersOfASocketUseNoNonce(t *testing.T) {
	h := harness.Traded(t)
	p := h.LoggedIn("bob")
	args := "," + jsonOf(harness.Order("buy", "BTC_USDT", "1", "7"))
	for range 3 {
		if got := p.Asks("order", args); !strings.HasPrefix(got, `{"status":201,`) {
			t.Fatal(got)
		}
	}
	last := h.Nonces["bob"]
	form := harness.Order("buy", "BTC_USDT", "1", "7")
	again := h.Do("POST", "/api/v1/order/", harness.FormType, form,
		harness.Signed("bob", last, form)...)
	if want := fmt.Sprintf(`{"detail":"Wrong Nonce","code":"nonce","last":%d}`, last); again.
		Status != 401 || again.Body != want {
		t.Errorf("%d %s, want %s", again.Status, again.Body, want)
	}
	h.Post("bob", "/api/v1/order/", form).Is(t, 201)
	h.Do("POST", "/api/v1/order/", harness.FormType, form, harness.Signed("bob", 0, form)...).Is(t,
		401, "a request with nonce 0")
}

// Commands that come together reach the wallet in their order, more than may be in flight, and each
// has its answer.
func TestCommandsOfASocketKeepTheirOrder(t *testing.T) {
	h := harness.Traded(t)
	p := h.LoggedIn("bob")
	var packets []string
	const n = 120
	for i := range n {
		packets = append(packets, fmt.Sprintf(`42%d["order",%s]`, 1000+i,
			jsonOf(harness.Order("buy", "BTC_USDT", fmt.Sprintf("0.%03d", i+1), "7"))))
	}
	p.Say(strings.Join(packets, "\x1e"))
	last := 0
	for i := range n {
		head := fmt.Sprintf("43%d[", 1000+i)
		p.Receives(head)
		_, rest, _ := strings.Cut(p.Received, "\n")
		p.Received = strings.Replace(p.Received, "\n", "", 1)
		var a struct {
			Status int
			Body   struct {
				OID    int     `json:"oid"`
				Amount float64 `json:"amount"`
			}
		}
		if err := json.NewDecoder(strings.NewReader(rest)).Decode(&a); err != nil ||
			a.Status != 201 {
			t.Fatalf("order %d: %v %.200s", i, err, rest)
		}
		if a.Body.OID <= last || a.Body.Amount != float64(i+1)/1000 {
			t.Fatalf("order %d is %+v, after %d", i, a, last)
		}
		last = a.Body.OID
	}
}

// While the store hangs, the outcome of commands in flight is unknown in time, and the rest is
// refused; afterwards the socket works as before. Its heartbeat was suspended meanwhile.
func TestASocketWithMoreCommandsThanMayWaitLivesThroughAStoreThatHangs(t *testing.T) {
	harness.Bubble(t, func(t *testing.T) {
		h, store := harness.NewStubborn(t, func(o *actors.Options) {
			o.Timing.Stall, o.Timing.Request = time.Minute, time.Second
			o.Limits.InFlight, o.Limits.InFlightCancels, o.Limits.InFlightPerAccount = 1000, 10, 500
		})
		h.Retune(func(o *edge.Options) {
			o.Stream.OrdersInFlight, o.Stream.PingInterval, o.Stream.PingTimeout = 4,
				50*time.Millisecond, 5*time.Second
			o.Stream.MessagesPerSecond = -1
		})
		p := h.LoggedIn("alice")
		release := store.Block()
		var packets []string
		for i := range 200 {
			packets = append(packets, fmt.Sprintf(`42%d["order",%s]`, 1000+i,
				jsonOf(harness.Order("buy", "BTC_USDT", "1", "1"))))
		}
		said := make(chan harness.Answer, 1)
		go func() { said <- h.Do("POST", p.Path, "text/plain", strings.Join(packets, "\x1e")) }()
		for began := time.Now(); !strings.Contains(p.Received, `"code":"outcome_unknown"`) ||
			time.Since(began) < 6*time.Second; { // longer than a pong may take
			a := h.Do("GET", p.Path, "", "") // pings have no answer: the last POST is not taken yet
			if a.Status != 200 {
				t.Fatalf("%d %s, after %s", a.Status, a.Body, p.Received)
			}
			p.Received += "\x1e" + a.Body
		}
		release()
		(<-said).Must(t, 200)
		p.Say("3")
		p.Receives("431199[")
		p.Received = ""
		var got string
		harness.Eventually(t, "a command has an outcome in time", func() bool {
			got = p.Asks("order-cancel-all", `,{"all":1}`)
			return !strings.Contains(got, `"code":"outcome_unknown"`)
		})
		if !strings.HasPrefix(got, `{"status":200,`) {
			t.Error(got)
		}
	})
}
