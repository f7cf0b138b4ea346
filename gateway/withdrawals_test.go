package gateway

import (
	"regexp"
	"testing"

	"exchange/actors"
	"exchange/gateway/api"
)

// Without a mail server a withdrawal is refused before its wallet sees it, so the refusal uses no
// nonce and leaves no record.
func TestWithdrawalsAreClosedWithoutAMailServer(t *testing.T) {
	h := newHarness(t, nil)
	h.accountAt("alice", "alice@example.com")
	h.account("bob")
	h.deposit("alice", "10", "BTC", "r")
	for range 2 {
		h.post("alice", "/api/v1/withdraw/", "address=x&amount=1&currency=BTC").must(t, 201)
	}
	code := h.code(1)
	h.stop()
	h.change = func(o *actors.Options) { o.Mail = nil }
	h.start()
	for _, form := range []string{"address=x&amount=1&currency=BTC", "amount=x&currency=EUR"} {
		before := holdings(t, h)
		h.nonces["alice"] += 10
		a := h.post("alice", "/api/v1/withdraw/", form)
		if retry := a.header.Peek("Retry-After"); a.status != 503 ||
			a.body != `{"detail":"Withdraws are closed."}` || len(retry) > 0 {
			t.Errorf("%s: %d %s, Retry-After %q", form, a.status, a.body, retry)
		}
		if after := holdings(t, h); after != before {
			t.Errorf("%s: there was %s and is %s", form, before, after)
		}
		h.nonces["alice"] -= 10 // they are not used
	}
	for path, form := range map[string]string{"withdraw-confirm": "code=" + code + "&withdraw=1",
		"withdraw-cancel": "withdraw=2"} {
		h.post("alice", "/api/v1/"+path+"/", form).is(t, 200, path)
	}
}

func TestAnAddressHasTheFormOfItsCurrency(t *testing.T) {
	h := newHarness(t, func(o *actors.Options) {
		o.Currencies[0].Addresses = regexp.MustCompile(`\A(?:^bc1[a-z0-9]+$)\z`)
	})
	h.accountAt("alice", "alice@example.com")
	for _, currency := range []string{"BTC", "ETH"} {
		h.deposit("alice", "10", currency, currency)
	}
	for form, want := range map[string]string{
		"address=0x1&amount=1&currency=BTC":   `{"address":["This is not an address of BTC."]}`,
		"address=xbc1q&amount=1&currency=BTC": `{"address":["This is not an address of BTC."]}`,
		"address=0x1&amount=1&currency=EUR":   `{"currency":["Unknown currency."]}`,
		"address=a b&amount=1&currency=BTC":   `{"address":["` + api.FieldAddress + `"]}`,
	} {
		if a := h.post("alice", "/api/v1/withdraw/", form); a.status != 400 || a.body != want {
			t.Errorf("%s: %d %s", form, a.status, a.body)
		}
	}
	for _, form := range []string{"address=bc1q0&amount=1&currency=BTC",
		"address=0x1&amount=1&currency=ETH"} {
		h.post("alice", "/api/v1/withdraw/", form).is(t, 201, form)
	}
}
