package gateway

import (
	"strings"
	"testing"
	"time"

	"exchange/core/event"
	"exchange/gateway/edge"
)

func TestTheTimeIsThatOfTheExchange(t *testing.T) {
	h := newHarness(t, nil)
	before := time.Now()
	got := decode[struct{ Time float64 }](t, h.do("GET", "/api/v1/time", "", ""))
	after := time.Now()
	if at := time.UnixMicro(int64(got.Time * 1e6)); at.Before(before.Add(-time.Millisecond)) ||
		at.After(after.Add(time.Millisecond)) {
		t.Errorf("it is %v, between %v and %v", at, before, after)
	}
}

type exchangeInfo struct {
	Time        float64
	Maintenance *struct{ Message string }
	Limits      struct {
		Rates map[string]*struct {
			PerSecond int `json:"per_second"`
			Burst     int
		}
	}
	Pairs []struct{ Name, Status string }
	Demo  []struct{ Account, Key, Secret string }
}

func TestOnlyADemoShowsItsKeys(t *testing.T) {
	h := newHarness(t, nil)
	if b := h.do("GET", "/api/v1/exchange-info/", "", "").body; strings.Contains(b, "demo") {
		t.Errorf("an exchange that is no demo answers %s", b)
	}
	h.retune(func(o *edge.Options) {
		o.Demo = []edge.DemoKey{{Account: "alice", Key: "a", Secret: "s"},
			{Account: "bob", Key: "b", Secret: `"`}}
	})
	i := decode[exchangeInfo](t, h.do("GET", "/api/v1/exchange-info", "", ""))
	if len(i.Pairs) != 3 || len(i.Demo) != 2 || i.Demo[0].Account != "alice" ||
		i.Demo[0].Key != "a" || i.Demo[0].Secret != "s" || i.Demo[1].Secret != `"` {
		t.Errorf("it is %+v", i)
	}
}

// A signed request gets the deposit instructions, by an answer that no cache keeps; others do not.
func TestExchangeInfoHasDepositInstructionsForKeys(t *testing.T) {
	h := newHarness(t, nil)
	h.stop()
	const contact = "Ask <desk@example.org>.\nName your account."
	h.tune = func(o *edge.Options) {
		o.DepositInstructions = map[string]string{"BTC": contact, "USDT": "",
			"DOGE": "None of ours."}
	}
	h.start()
	h.account("alice")
	h.key("alice", "trader", event.PermissionTrade)
	const path = "/api/v1/exchange-info"
	if a := h.do("GET", path, "", ""); a.status != 200 || strings.Contains(a.body, "deposit") ||
		string(a.header.Peek("Cache-Control")) != "no-store" {
		t.Errorf("without a key: %s", a.body)
	}
	a := h.get("alice", path)
	if i := decode[struct {
		Pairs        []any
		Instructions map[string]string `json:"deposit_instructions"`
	}](t, a); len(i.Pairs) != 3 || len(i.Instructions) != 1 || i.Instructions["BTC"] != contact ||
		string(a.header.Peek("Cache-Control")) != "no-store" {
		t.Errorf("with a key: %s", a.body)
	}
	for what, x := range map[string]struct {
		status  int
		headers []string
	}{
		"a key that may not read": {403, signed("trader", 1, "")},
		"a nonce that was used":   {401, signed("alice", 1, "")},
		"another's signature":     {401, append(signed("trader", 2, "")[:3:3], "x")},
		"a key alone":             {401, []string{"X-KEY", "key-alice"}},
	} {
		if a := h.do("GET", path, "", "", x.headers...); a.status != x.status ||
			strings.Contains(a.body, "desk") {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	b := follower(t).get("bob", path)
	if b.status != 200 || !strings.HasSuffix(b.body, `,"deposit_instructions":{}}`) {
		t.Errorf("at a follower: %d %s", b.status, b.body)
	}
}

func TestExchangeInfoShowsPresentRules(t *testing.T) {
	h := newHarness(t, nil)
	h.retune(func(o *edge.Options) {
		o.CommandRate, o.RateEntries = edge.Rate{PerSecond: 7, Burst: 9}, 100
	})
	info := func() exchangeInfo {
		t.Helper()
		return decode[exchangeInfo](t, h.do("GET", "/api/v1/exchange-info", "", ""))
	}
	i := info()
	if r := i.Limits.Rates["commands"]; r == nil || r.PerSecond != 7 || r.Burst != 9 ||
		i.Limits.Rates["reads"] != nil || len(i.Limits.Rates) != 4 {
		t.Errorf("the rates are %+v", i.Limits.Rates)
	}
	if i.Maintenance != nil || len(i.Pairs) != 3 || i.Pairs[0].Status != "trading" {
		t.Errorf("it is %+v", i)
	}
	h.done(h.engine.Halt("test", "BTC_USDT", true))
	h.done(h.engine.SetMaintenance(t.Context(), "test", event.Maintenance{On: true,
		Message: "Back <soon>"}))
	i = info()
	if i.Maintenance == nil || i.Maintenance.Message != "Back <soon>" ||
		i.Pairs[0].Status != "halted" || i.Pairs[1].Status != "trading" {
		t.Errorf("it is %+v", i)
	}
}

// All of pairs/ is in it, to the byte.
func TestTheRulesBeginAsTheListOfPairs(t *testing.T) {
	h := newHarness(t, nil)
	pairs := strings.Trim(h.do("GET", "/api/v1/pairs/", "", "").body, "[]")
	rules := h.do("GET", "/api/v1/exchange-info/", "", "").body
	for _, p := range strings.Split(pairs, "},") {
		if p = strings.TrimSuffix(p, "}"); !strings.Contains(rules, p+`,"price_tick":`) {
			t.Errorf("%s is not in %s", p, rules)
		}
	}
}
