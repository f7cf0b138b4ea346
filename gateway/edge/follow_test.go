package edge_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"exchange/actors"
	"exchange/actors/directory"
	"exchange/gateway/edge"
	"exchange/prove/harness"
)

// begins checks an answer's status, and the begin of its body.
func begins(t *testing.T, what string, a harness.Answer, status int, text string) {
	t.Helper()
	if a.Status != status || !strings.HasPrefix(a.Body, text) {
		t.Errorf("%s: %d %s", what, a.Status, a.Body)
	}
}

// A follower with a destination for commands serves clients like the leader.
func TestFollowerAnswersPrivateRequests(t *testing.T) {
	h := harness.Follower(t)
	placed := h.Post("bob", "/api/v1/order/", harness.Order("sell", "BTC_USDT", "1", "100"))
	begins(t, "an order", placed, 201, `{"success":true,`)
	id := harness.Decode[struct{ OID uint64 }](t, placed).OID
	cancel, batch := fmt.Sprint("order=", id), `orders=[{"do":"place","pair":"BTC_USDT",`+
		`"type":"buy","amount":"1","price":"7"},{"do":"cancel","order":999}]`
	for _, c := range []struct {
		path, form string
		status     int
		text       string
	}{
		{"order-cancel/", cancel, 200, fmt.Sprintf(`{"order":%d}`, id)},
		{"order-cancel/", cancel, 400, `{"order":["Order already cancelled"]}`},
		{"order-batch/", batch, 200, `{"results":[{"status":201,"body":{"success":true,`},
		{"order-test/", harness.Order("sell", "BTC_USDT", "1", "7"), 200, `{"valid":true,`},
		{"order-cancel-after/", "timeout=60", 200, `{"timeout":60,`},
		{"trading-settings/", "self_trade=cancel_both", 200, `{"self_trade":"cancel_both"}`},
		{"withdraw/", "address=there&amount=1&currency=BTC", 201, `{"id":1,`},
		{"withdraw-confirm/", "code=wrong&withdraw=1", 400, `{"code":["Wrong code"]}`},
		{"withdraw-cancel/", "withdraw=1", 200, `{"id":1,`},
	} {
		begins(t, c.path+" "+c.form, h.Post("bob", "/api/v1/"+c.path, c.form), c.status, c.text)
	}
	begins(t, "the switch", h.Get("bob", "/api/v1/order-cancel-after/"), 200, `{"timeout":60,`)
	begins(t, "wallets", h.Get("bob", "/api/v1/wallets/?currency_id=BTC"), 200,
		`[{"currency":"BTC","balance":1000,"reserve":0}]`)
	open := h.Get("bob", "/api/v1/orders/own/?status=1")
	if list := harness.Decode[[]struct{ ID uint64 }](t, open); len(list) != 1 || list[0].ID <= id {
		t.Errorf("open are %+v", list)
	}
	begins(t, "an order of nobody", h.Do("POST", "/api/v1/order/",
		"application/x-www-form-urlencoded", harness.Order("buy", "BTC_USDT", "1", "7")), 401, "")
}

func TestFollowerTakesLoginsAndOrdersOverSockets(t *testing.T) {
	harness.Bubble(t, func(t *testing.T) {
		h := harness.Follower(t)
		p := h.LoggedIn("bob")
		if got := p.Asks("own.subscribe", ""); got != `{"status":200,"body":{"resumed":false}}` {
			t.Error(got)
		}
		p.Receives(`42["own",{"snapshot":true,`)
		p.Received = ""
		got := p.Asks("order", ","+jsonOf(harness.Order("buy", "BTC_USDT", "1", "8")))
		if !strings.HasPrefix(got, `{"status":201,"body":{"success":true,`) {
			t.Error(got)
		}
		p.Receives(`42["own",{"sequence":`)
		clients := h.Gateway.PollingClients()
		h.Gateway.SetFollower(nil, nil)
		harness.Eventually(t, "the sockets end", func() bool { return clients() == 0 })
	})
}

// lateCommands are those of a node that receives the begin or end of a key, or of an account, only
// when it asks for missing records, or that cannot ask.
type lateCommands struct {
	actors.Commands
	begins, ends, frees bool
	alone               bool
	asked               *atomic.Bool
}

func (c lateCommands) AwaitCurrent() error {
	if c.alone {
		return actors.ErrNotConfirmed
	}
	if c.frees {
		c.Commands.Key([]byte("key-bob")).Account.Freeze(false)
	}
	c.asked.Store(true)
	return c.Commands.AwaitCurrent()
}

func (c lateCommands) Key(public []byte) *directory.Key {
	if c.begins && !c.asked.Load() || c.ends && c.asked.Load() {
		return nil
	}
	return c.Commands.Key(public)
}

// Records acknowledged elsewhere, and not yet received here, decide on a login, and before a
// request is refused. A node that cannot ask for them refuses no client: it is unavailable.
func TestLaggingNodeDecidesByNewestState(t *testing.T) {
	h := harness.Follower(t)
	account := h.Engine.Key([]byte("key-bob")).Account
	for _, c := range []struct {
		what   string
		is     lateCommands
		frozen bool
		read   int
		login  int
	}{
		{"a key that is new", lateCommands{begins: true}, false, 200, 200},
		{"a key that has ended", lateCommands{ends: true}, true, 401, 401},
		{"an account that is free again", lateCommands{frees: true}, true, 200, 200},
		{"an account that is frozen", lateCommands{}, true, 403, 403},
		{"a key that an isolated node does not have", lateCommands{begins: true, alone: true},
			false, 503, 503},
		{"a frozen account at a node that is alone", lateCommands{alone: true}, true, 503, 503},
	} {
		for _, login := range []bool{false, true} {
			c.is.Commands, c.is.asked = h.Engine, new(atomic.Bool)
			h.Gateway.SetFollower(h.Engine.Public, c.is)
			account.Freeze(c.frozen)
			if !login {
				begins(t, c.what, h.Get("bob", "/api/v1/wallets/"), c.read, "")
				continue
			}
			got := h.Polled(edge.StreamPath).LogsIn("key-bob", "secret-bob")
			if !strings.HasPrefix(got, fmt.Sprintf(`{"status":%d,`, c.login)) {
				t.Errorf("a login: %s: %s", c.what, got)
			}
		}
	}
	account.Freeze(false)
}

// Only the leader answers operators, and the probe for leadership.
func TestFollowerServesClientsOnly(t *testing.T) {
	h := harness.Follower(t)
	begins(t, "ready", h.Get("bob", "/readyz"), 200, `{"status":"ready"}`)
	const refuses = "This node is a follower and does not serve this request. Node b leads."
	lead := h.Get("bob", "/leaderz")
	begins(t, "leads", lead, 503, harness.Detail(refuses))
	operate := harness.AsOperator(t, h.Gateway)
	asked := operate("GET", "/operator/v1/accounts", "")
	begins(t, "an operator", asked, 503, `{"error":"`+refuses)
	for _, a := range []harness.Answer{lead, asked} {
		if got := string(a.Header.Peek("X-Leader")); got != "https://b.example.org" {
			t.Errorf("X-Leader is %q", got)
		}
	}
	begins(t, "the cluster", operate("GET", "/operator/v1/cluster", ""), 200,
		`{"node":"a","role":"follower","serves":true,`)
	s := harness.Scraping(t, h.Gateway)()
	if s.Value("exchange_ready") != 1 || s.Value("exchange_standby") != 1 {
		t.Errorf("ready %v, standby %v", s["exchange_ready"], s["exchange_standby"])
	}
	h.Gateway.SetFollower(nil, nil)
	begins(t, "too little state", h.Get("bob", "/api/v1/wallets/"), 503, harness.Detail(refuses))
	begins(t, "and is not ready", h.Get("bob", "/readyz"), 503, harness.Detail(refuses))
	h.Gateway.SetEngine(h.Engine)
	begins(t, "it leads", h.Get("bob", "/leaderz"), 200, `{"status":"leads"}`)
	begins(t, "and serves", h.Get("bob", "/api/v1/wallets/"), 200, "[")
}
