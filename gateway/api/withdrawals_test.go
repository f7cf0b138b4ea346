package api_test

import (
	"regexp"
	"testing"

	"exchange/actors"
	"exchange/gateway/api"
	"exchange/prove/harness"
)

// Without a mail server a withdrawal is refused before its wallet sees it, so the refusal uses no
// nonce and leaves no record.
func TestWithdrawalsAreClosedWithoutAMailServer(t *testing.T) {
	h := harness.New(t, nil)
	h.AccountAt("alice", "alice@example.com")
	h.Account("bob")
	h.Deposit("alice", "10", "BTC", "r")
	for range 2 {
		h.Post("alice", "/api/v1/withdraw/", "address=x&amount=1&currency=BTC").Must(t, 201)
	}
	code := h.Code(1)
	h.Stop()
	h.Change = func(o *actors.Options) { o.Mail = nil }
	h.Start()
	for _, form := range []string{"address=x&amount=1&currency=BTC", "amount=x&currency=EUR"} {
		before := harness.Holdings(t, h)
		h.Nonces["alice"] += 10
		a := h.Post("alice", "/api/v1/withdraw/", form)
		if retry := a.Header.Peek("Retry-After"); a.Status != 503 ||
			a.Body != `{"detail":"Withdraws are closed."}` || len(retry) > 0 {
			t.Errorf("%s: %d %s, Retry-After %q", form, a.Status, a.Body, retry)
		}
		if after := harness.Holdings(t, h); after != before {
			t.Errorf("%s: there was %s and is %s", form, before, after)
		}
		h.Nonces["alice"] -= 10 // they are not used
	}
	for path, form := range map[string]string{"withdraw-confirm": "code=" + code + "&withdraw=1",
		"withdraw-cancel": "withdraw=2"} {
		h.Post("alice", "/api/v1/"+path+"/", form).Is(t, 200, path)
	}
}

func TestAnAddressHasTheFormOfItsCurrency(t *testing.T) {
	h := harness.New(t, func(o *actors.Options) {
		o.Currencies[0].Addresses = regexp.MustCompile(`\A(?:^bc1[a-z0-9]+$)\z`)
	})
	h.AccountAt("alice", "alice@example.com")
	for _, currency := range []string{"BTC", "ETH"} {
		h.Deposit("alice", "10", currency, currency)
	}
	for form, want := range map[string]string{
		"address=0x1&amount=1&currency=BTC":   `{"address":["This is not an address of BTC."]}`,
		"address=xbc1q&amount=1&currency=BTC": `{"address":["This is not an address of BTC."]}`,
		"address=0x1&amount=1&currency=EUR":   `{"currency":["Unknown currency."]}`,
		"address=a b&amount=1&currency=BTC":   `{"address":["` + api.FieldAddress + `"]}`,
	} {
		if a := h.Post("alice", "/api/v1/withdraw/", form); a.Status != 400 || a.Body != want {
			t.Errorf("%s: %d %s", form, a.Status, a.Body)
		}
	}
	for _, form := range []string{"address=bc1q0&amount=1&currency=BTC",
		"address=0x1&amount=1&currency=ETH"} {
		h.Post("alice", "/api/v1/withdraw/", form).Is(t, 201, form)
	}
}
