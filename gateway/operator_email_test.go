package gateway

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNewEmailHoldsWithdrawalsUntilAVisibleTime(t *testing.T) {
	h := moderated(t)
	ask := asOperator(t, h.gateway)
	const path = "/operator/v1/accounts/email"
	a := ask("POST", path, `{"account":"carol","email":"carol@new.example"}`)
	_, rest, found := strings.Cut(a.body, `"held_until":"`)
	until, _, _ := strings.Cut(rest, `"`)
	if a.status != 200 || !found || until == "" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	before := h.hash()
	again := ask("POST", path, `{"account":"carol","email":"carol@new.example"}`)
	if want := strings.TrimSuffix(strings.Replace(strings.TrimSpace(a.body), "carol@example.org",
		"carol@new.example", 1), "}") + `,"repeated":true}`; again.status != 200 ||
		strings.TrimSpace(again.body) != want || h.hash() != before {
		t.Errorf("once more: %d %s, want the same hold: %s", again.status, again.body, want)
	}
	for _, path := range []string{"/operator/v1/account?name=carol", "/operator/v1/accounts"} {
		if a := ask("GET", path, ""); !strings.Contains(a.body, `"held_until":"`+until+`"`) {
			t.Errorf("%s does not show the hold: %s", path, a.body)
		}
	}
	before = h.hash()
	held := h.post("carol", "/api/v1/withdraw", "address=x&amount=1&currency=BTC")
	end, err := time.Parse(time.RFC3339, until)
	if whole := end.Add(time.Second - 1).Truncate(time.Second).Format(time.RFC3339); err != nil ||
		held.status != 403 || !strings.Contains(held.body, "held until "+whole+".") {
		t.Errorf("a withdrawal: %d %s, want until %s", held.status, held.body, until)
	}
	if a := ask("POST", "/operator/v1/withdraws/approve", `{"withdraw":2}`); a.status != 400 ||
		!strings.Contains(a.body, "held until "+until) {
		t.Errorf("an approval: %d %s", a.status, a.body)
	}
	if h.hash() == before {
		t.Error("a refused withdraw has used no nonce")
	}
	page := decode[statusPage](t, ask("GET", "/operator/v1/status", ""))
	if page.Held.Accounts != 1 || !slices.Equal(page.Held.First, []string{"carol"}) {
		t.Errorf("the status shows %+v", page.Held)
	}
}

func TestAClosedAccountIsShownAsThatAndItsKeysHaveEnded(t *testing.T) {
	h := moderated(t)
	ask := asOperator(t, h.gateway)
	const path, dave = "/operator/v1/accounts/close", `{"account":"dave"}`
	h.account("dave")
	h.get("dave", "/api/v1/wallets/").must(t, 200, "before its end")
	before := h.hash()
	if a := ask("POST", path, `{"account":"alice"}`); a.status != 400 ||
		!strings.Contains(a.body, "so it is not closed") || h.hash() != before {
		t.Errorf("an account that has something: %d %s", a.status, a.body)
	}
	for _, repeated := range []string{"", `,"repeated":true`} {
		a := ask("POST", path, dave)
		if a.status != 200 || !strings.HasPrefix(a.body, `{"account":"dave","id":`) ||
			!strings.HasSuffix(strings.TrimSpace(a.body), `,"closed":true`+repeated+`}`) {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	h.get("dave", "/api/v1/wallets/").is(t, 401, "its key")
	for _, path := range []string{"/operator/v1/account?name=dave", "/operator/v1/accounts"} {
		if a := ask("GET", path, ""); strings.Count(a.body, `"closed":"2`) != 1 {
			t.Errorf("%s does not show the end: %s", path, a.body)
		}
	}
	if a := ask("GET", "/operator/v1/accounts?frozen=1", ""); strings.Contains(a.body, "dave") {
		t.Errorf("it is among the frozen ones: %s", a.body)
	}
	page := decode[statusPage](t, ask("GET", "/operator/v1/status", ""))
	if frozen := scraping(t, h.gateway)().value("exchange_frozen_accounts"); page.Closed != 1 ||
		page.Frozen.Accounts != 0 || frozen != 0 {
		t.Errorf("the status shows %d closed and %d frozen accounts, the metrics of %v frozen",
			page.Closed, page.Frozen.Accounts, frozen)
	}
}
