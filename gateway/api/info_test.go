package api_test

import (
	"strings"
	"testing"
	"time"

	"exchange/core/event"
	"exchange/gateway/edge"
	"exchange/prove/harness"
)

func TestTheTimeIsThatOfTheExchange(t *testing.T) {
	h := harness.New(t, nil)
	before := time.Now()
	got := harness.Decode[struct{ Time float64 }](t, h.Do("GET", "/api/v1/time", "", ""))
	after := time.Now()
	if at := time.UnixMicro(int64(got.Time * 1e6)); at.Before(before.Add(-time.Millisecond)) ||
		at.After(after.Add(time.Millisecond)) {
		t.Errorf("it is %v, between %v and %v", at, before, after)
	}
}

func TestOnlyADemoShowsItsKeys(t *testing.T) {
	h := harness.New(t, nil)
	if b := h.Do("GET", "/api/v1/exchange-info/", "", "").Body; strings.Contains(b, "demo") {
		t.Errorf("an exchange that is no demo answers %s", b)
	}
	h.Retune(func(o *edge.Options) {
		o.Demo = []edge.DemoKey{{Account: "alice", Key: "a", Secret: "s"},
			{Account: "bob", Key: "b", Secret: `"`}}
	})
	i := harness.Decode[harness.ExchangeInfo](t, h.Do("GET", "/api/v1/exchange-info", "", ""))
	if len(i.Pairs) != 3 || len(i.Demo) != 2 || i.Demo[0].Account != "alice" ||
		i.Demo[0].Key != "a" || i.Demo[0].Secret != "s" || i.Demo[1].Secret != `"` {
		t.Errorf("it is %+v", i)
	}
}

// A signed request gets the deposit instructions, by an answer that no cache keeps; others do not.
func TestExchangeInfoHasDepositInstructionsForKeys(t *testing.T) {
	h := harness.New(t, nil)
	h.Stop()
	const contact = "Ask <desk@example.org>.\nName your account."
	h.Tune = func(o *edge.Options) {
		o.DepositInstructions = map[string]string{"BTC": contact, "USDT": "",
			"DOGE": "None of ours."}
	}
	h.Start()
	h.Account("alice")
	h.Key("alice", "trader", event.PermissionTrade)
	const path = "/api/v1/exchange-info"
	if a := h.Do("GET", path, "", ""); a.Status != 200 || strings.Contains(a.Body, "deposit") ||
		string(a.Header.Peek("Cache-Control")) != "no-store" {
		t.Errorf("without a key: %s", a.Body)
	}
	a := h.Get("alice", path)
	if i := harness.Decode[struct {
		Pairs        []any
		Instructions map[string]string `json:"deposit_instructions"`
	}](t, a); len(i.Pairs) != 3 || len(i.Instructions) != 1 || i.Instructions["BTC"] != contact ||
		string(a.Header.Peek("Cache-Control")) != "no-store" {
		t.Errorf("with a key: %s", a.Body)
	}
	for what, x := range map[string]struct {
		status  int
		headers []string
	}{
		"a key that may not read": {403, harness.Signed("trader", 1, "")},
		"a nonce that was used":   {401, harness.Signed("alice", 1, "")},
		"another's signature":     {401, append(harness.Signed("trader", 2, "")[:3:3], "x")},
		"a key alone":             {401, []string{"X-KEY", "key-alice"}},
	} {
		if a := h.Do("GET", path, "", "", x.headers...); a.Status != x.status ||
			strings.Contains(a.Body, "desk") {
			t.Errorf("%s: %d %s", what, a.Status, a.Body)
		}
	}
	b := harness.Follower(t).Get("bob", path)
	if b.Status != 200 || !strings.HasSuffix(b.Body, `,"deposit_instructions":{}}`) {
		t.Errorf("at a follower: %d %s", b.Status, b.Body)
	}
}

func TestExchangeInfoShowsPresentRules(t *testing.T) {
	h := harness.New(t, nil)
	h.Retune(func(o *edge.Options) {
		o.CommandRate, o.RateEntries = edge.Rate{PerSecond: 7, Burst: 9}, 100
	})
	info := func() harness.ExchangeInfo {
		t.Helper()
		return harness.Decode[harness.ExchangeInfo](t, h.Do("GET", "/api/v1/exchange-info", "", ""))
	}
	i := info()
	if r := i.Limits.Rates["commands"]; r == nil || r.PerSecond != 7 || r.Burst != 9 ||
		i.Limits.Rates["reads"] != nil || len(i.Limits.Rates) != 4 {
		t.Errorf("the rates are %+v", i.Limits.Rates)
	}
	if i.Maintenance != nil || len(i.Pairs) != 3 || i.Pairs[0].Status != "trading" {
		t.Errorf("it is %+v", i)
	}
	h.Done(h.Engine.Halt("test", "BTC_USDT", true))
	h.Done(h.Engine.SetMaintenance(t.Context(), "test", event.Maintenance{On: true,
		Message: "Back <soon>"}))
	i = info()
	if i.Maintenance == nil || i.Maintenance.Message != "Back <soon>" ||
		i.Pairs[0].Status != "halted" || i.Pairs[1].Status != "trading" {
		t.Errorf("it is %+v", i)
	}
}

// All of pairs/ is in it, to the byte.
func TestTheRulesBeginAsTheListOfPairs(t *testing.T) {
	h := harness.New(t, nil)
	pairs := strings.Trim(h.Do("GET", "/api/v1/pairs/", "", "").Body, "[]")
	rules := h.Do("GET", "/api/v1/exchange-info/", "", "").Body
	for _, p := range strings.Split(pairs, "},") {
		if p = strings.TrimSuffix(p, "}"); !strings.Contains(rules, p+`,"price_tick":`) {
			t.Errorf("%s is not in %s", p, rules)
		}
	}
}
