package operator_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"exchange/prove/harness"
)

func TestNewEmailHoldsWithdrawalsUntilAVisibleTime(t *testing.T) {
	h := harness.Moderated(t)
	ask := harness.AsOperator(t, h.Gateway)
	const path = "/operator/v1/accounts/email"
	a := ask("POST", path, `{"account":"carol","email":"carol@new.example"}`)
	_, rest, found := strings.Cut(a.Body, `"held_until":"`)
	until, _, _ := strings.Cut(rest, `"`)
	if a.Status != 200 || !found || until == "" {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	before := h.Hash()
	again := ask("POST", path, `{"account":"carol","email":"carol@new.example"}`)
	if want := strings.TrimSuffix(strings.Replace(strings.TrimSpace(a.Body), "carol@example.org",
		"carol@new.example", 1), "}") + `,"repeated":true}`; again.Status != 200 ||
		strings.TrimSpace(again.Body) != want || h.Hash() != before {
		t.Errorf("once more: %d %s, want the same hold: %s", again.Status, again.Body, want)
	}
	for _, path := range []string{"/operator/v1/account?name=carol", "/operator/v1/accounts"} {
		if a := ask("GET", path, ""); !strings.Contains(a.Body, `"held_until":"`+until+`"`) {
			t.Errorf("%s does not show the hold: %s", path, a.Body)
		}
	}
	before = h.Hash()
	held := h.Post("carol", "/api/v1/withdraw", "address=x&amount=1&currency=BTC")
	end, err := time.Parse(time.RFC3339, until)
	if whole := end.Add(time.Second - 1).Truncate(time.Second).Format(time.RFC3339); err != nil ||
		held.Status != 403 || !strings.Contains(held.Body, "held until "+whole+".") {
		t.Errorf("a withdrawal: %d %s, want until %s", held.Status, held.Body, until)
	}
	if a := ask("POST", "/operator/v1/withdraws/approve", `{"withdraw":2}`); a.Status != 400 ||
		!strings.Contains(a.Body, "held until "+until) {
		t.Errorf("an approval: %d %s", a.Status, a.Body)
	}
	if h.Hash() == before {
		t.Error("a refused withdraw has used no nonce")
	}
	page := harness.Decode[harness.StatusPage](t, ask("GET", "/operator/v1/status", ""))
	if page.Held.Accounts != 1 || !slices.Equal(page.Held.First, []string{"carol"}) {
		t.Errorf("the status shows %+v", page.Held)
	}
}

func TestAClosedAccountIsShownAsThatAndItsKeysHaveEnded(t *testing.T) {
	h := harness.Moderated(t)
	ask := harness.AsOperator(t, h.Gateway)
	const path, dave = "/operator/v1/accounts/close", `{"account":"dave"}`
	h.Account("dave")
	h.Get("dave", "/api/v1/wallets/").Must(t, 200, "before its end")
	before := h.Hash()
	if a := ask("POST", path, `{"account":"alice"}`); a.Status != 400 ||
		!strings.Contains(a.Body, "so it is not closed") || h.Hash() != before {
		t.Errorf("an account that has something: %d %s", a.Status, a.Body)
	}
	for _, repeated := range []string{"", `,"repeated":true`} {
		a := ask("POST", path, dave)
		if a.Status != 200 || !strings.HasPrefix(a.Body, `{"account":"dave","id":`) ||
			!strings.HasSuffix(strings.TrimSpace(a.Body), `,"closed":true`+repeated+`}`) {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
	h.Get("dave", "/api/v1/wallets/").Is(t, 401, "its key")
	for _, path := range []string{"/operator/v1/account?name=dave", "/operator/v1/accounts"} {
		if a := ask("GET", path, ""); strings.Count(a.Body, `"closed":"2`) != 1 {
			t.Errorf("%s does not show the end: %s", path, a.Body)
		}
	}
	if a := ask("GET", "/operator/v1/accounts?frozen=1", ""); strings.Contains(a.Body, "dave") {
		t.Errorf("it is among the frozen ones: %s", a.Body)
	}
	page := harness.Decode[harness.StatusPage](t, ask("GET", "/operator/v1/status", ""))
	if frozen := harness.Scraping(t,
		h.Gateway)().Value("exchange_frozen_accounts"); page.Closed != 1 ||
		page.Frozen.Accounts != 0 || frozen != 0 {
		t.Errorf("the status shows %d closed and %d frozen accounts, the metrics of %v frozen",
			page.Closed, page.Frozen.Accounts, frozen)
	}
}
