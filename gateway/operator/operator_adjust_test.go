package operator_test

import (
	"strings"
	"testing"

	"exchange/prove/harness"
)

// Of carol's 10 BTC two withdraws hold 1 each, so 8 are available.
func TestAdjustmentTakesAvailableMoneyAndIsShownEverywhere(t *testing.T) {
	h := harness.Moderated(t)
	ask := harness.AsOperator(t, h.Gateway)
	const path = "/operator/v1/adjustments"
	refused := func(body, want string) {
		t.Helper()
		before := h.Hash()
		if a := ask("POST", path, body); a.Status != 400 || !strings.Contains(a.Body, want) {
			t.Errorf("%s: %d %s, want %q", body, a.Status, a.Body, want)
		}
		if !strings.Contains(want, "available") && !strings.Contains(want, "belongs") &&
			h.Hash() != before {
			t.Errorf("%s: it changed the state", body)
		}
	}
	const good = `"account":"carol","currency":"BTC","reason":"credited twice"`
	refused(`{`+good+`,"amount":"1"}`, "use a deposit")
	refused(`{`+good+`,"amount":1}`, "use a deposit")
	refused(`{`+good+`,"amount":"-0"}`, "amount")
	refused(`{`+good+`,"amount":"--1"}`, "amount")
	refused(`{`+good+`}`, "amount")
	refused(`{"account":"carol","currency":"BTC","amount":"-1"}`, "reason")
	refused(`{"account":"nobody","currency":"BTC","amount":"-1","reason":"x"}`, "nobody")
	refused(`{"account":"carol","currency":"DOGE","amount":"-1","reason":"x"}`, "DOGE")
	refused(`{`+good+`,"amount":"-1","reference":"a b"}`, "reference")
	refused(`{`+good+`,"amount":"-8.00000001"}`,
		"account carol has 8 BTC available, and 8.00000001 were to be taken")

	const first = `{"adjustment":3,"account":"carol","currency":"BTC","amount":-2.5,` +
		`"balance":7.5,"reference":"wire-7","reason":"credited twice"`
	harness.Says(t, "an adjustment",
		ask("POST", path, `{`+good+`,"amount":-2.5,"reference":"wire-7"}`), 200, first+"}")
	harness.Says(t, "its repeat",
		ask("POST", path, `{`+good+`,"amount":"-2.50","reference":"wire-7"}`),
		200, first+`,"repeated":true}`)
	refused(`{`+good+`,"amount":"-2","reference":"wire-7"}`, "belongs to 3 of account carol")

	if got := statementOf(t, ask, "carol"); got !=
		"BTC -2.5 7.5 adjustment\nBTC 10 10 deposit\n" {
		t.Errorf("the statement is\n%s", got)
	}
	if a := ask("GET", "/operator/v1/statement?account=carol", ""); !strings.Contains(a.Body,
		`"reason":"credited twice"`) {
		t.Errorf("the statement has no reason: %s", a.Body)
	}
	showsAdjustment(t, h)
	if a := ask("GET", "/operator/v1/actions?limit=10", ""); !strings.Contains(a.Body,
		"took 2.5 BTC from carol: credited twice, reference wire-7 (adjustment 3)") {
		t.Errorf("the actions are %s", a.Body)
	}
	a := ask("POST", "/operator/v1/audit", "{}")
	if !strings.Contains(a.Body, `"differences":[]`) ||
		!strings.Contains(a.Body, `"withdrawn":0,"adjusted":2.5,`) {
		t.Errorf("the audit: %s", a.Body)
	}
	h.Done(h.Engine.Freeze("test", "carol", true))
	harness.Says(t, "all that is available of a frozen account", ask("POST", path,
		`{`+good+`,"amount":"-5.5","reference":"wire-8"}`), 200, `{"adjustment":4,`+
		`"account":"carol","currency":"BTC","amount":-5.5,"balance":2,"reference":"wire-8",`+
		`"reason":"credited twice"}`)
	h.Crash()
	h.Start()
	ask = harness.AsOperator(t, h.Gateway)
	harness.Says(t, "its repeat after a crash", ask("POST", path,
		`{`+good+`,"amount":"-2.5","reference":"wire-7"}`), 200,
		strings.Replace(first, "7.5", "2", 1)+`,"repeated":true}`)
}

// showsAdjustment wants the totals to contain the adjustment, and carol to see it as money that has
// left her balance.
func showsAdjustment(t *testing.T, h *harness.Exchange) {
	t.Helper()
	if a := harness.AsOperator(t, h.Gateway)("GET", "/operator/v1/totals",
		""); !strings.Contains(a.Body, `"withdrawn":0,"adjusted":2.5,`) {
		t.Errorf("the totals: %s", a.Body)
	}
	const shown = `"amount":2.5,"status":30,"address":"","adjustment":true,` +
		`"details":"credited twice","client_id":"wire-7"}`
	for _, query := range []string{"", "?status=30", "?status=30&currency_id=BTC&limit=1"} {
		a := h.Get("carol", "/api/v1/withdraws/"+query)
		if strings.Count(a.Body, shown) != 1 {
			t.Errorf("%s: the account is shown %s", query, a.Body)
		}
	}
	if a := h.Get("carol", "/api/v1/withdraws/?status=20"); strings.Contains(a.Body, "wire-7") {
		t.Errorf("with the pending withdrawals it is shown %s", a.Body)
	}
	h.Get("carol", "/api/v1/withdraws/?status=60").Is(t, 400, "a status that clients do not know")
	if a := h.Post("carol", "/api/v1/withdraw-cancel/", "withdraw=3"); a.Status != 400 ||
		!strings.Contains(a.Body, "Withdraw is adjusted") {
		t.Errorf("a cancel of it: %d %s", a.Status, a.Body)
	}
	if a := h.Post("carol", "/api/v1/withdraw/", "address=x&amount=1&client_id=wire-7&"+
		"currency=BTC"); a.Status != 400 ||
		!strings.Contains(a.Body, "Already used by withdraw 3") {
		t.Errorf("a withdrawal with its reference: %d %s", a.Status, a.Body)
	}
}
