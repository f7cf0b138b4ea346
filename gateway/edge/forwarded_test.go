package edge_test

import (
	"errors"
	"net/netip"
	"testing"

	"exchange/actors"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/gateway/sign"
	"exchange/prove/harness"
)

// The leader runs its own clients' checks on requests forwarded by an observer. The observer names
// the client's address, and nothing else.
func TestLeaderChecksForwardedRequests(t *testing.T) {
	h := harness.New(t, func(o *actors.Options) {
		o.Pairs[0].MinimumOrderValue = money.Amount(1e8).Balance()
	})
	h.Account("bob")
	for name, may := range map[string]uint8{"reads": event.PermissionRead,
		"trades": event.PermissionTrade} {
		if _, err := h.Engine.CreateKey("op", "bob", name, "secret-bob", may, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Engine.CreateKey("op", "bob", "at-home", "secret-bob", event.AllPermissions,
		[]string{"10.0.0.0/8"}); err != nil {
		t.Fatal(err)
	}
	signature := func(text string) []byte {
		return sign.New([]byte("secret-bob")).Sign(nil, []byte(text))
	}
	const path = "/api/v1/order"
	good := harness.Order("sell", "BTC_USDT", "1", "100")
	for _, c := range []struct {
		what, key, method, path, text, signed, from string
		form                                        byte
		status                                      int // 0: it is taken
		unproven                                    bool
	}{
		{"an order", "trades", "POST", path, good, "trades" + good, "", directory.SignedForm, 0,
			false},
		{"of a key that reads", "reads", "POST", path, good, "reads" + good, "",
			directory.SignedForm, 403, false},
		{"signed by another key", "trades", "POST", path, good, "key-bob" + good, "",
			directory.SignedForm, 401, true},
		{"with the signature of a read", "trades", "POST", path, good, "trades", "",
			directory.SignedForm, 401, true},
		{"from elsewhere", "at-home", "POST", path, good, "at-home" + good, "192.0.2.1",
			directory.SignedForm, 403, true},
		{"from nowhere", "at-home", "POST", path, good, "at-home" + good, "",
			directory.SignedForm, 403, true},
		{"from the list", "at-home", "POST", path, good, "at-home" + good, "10.1.1.1",
			directory.SignedForm, 0, false},
		{"below the minimum value", "trades", "POST", path,
			harness.Order("sell", "BTC_USDT", "0.001", "100"),
			"trades" + harness.Order("sell", "BTC_USDT", "0.001", "100"), "", directory.SignedForm,
			400,
			false},
		{"without a field", "trades", "POST", path, "amount=1", "tradesamount=1", "",
			directory.SignedForm, 400, false},
		{"as a query", "trades", "POST", path, good, "trades", "", directory.SignedQuery, 401,
			true},
		{"of no operation", "trades", "POST", "/api/v1/nothing", good, "trades" + good, "",
			directory.SignedForm, 404, true},
		{"of a public one", "trades", "GET", "/api/v1/time", "", "trades", "",
			directory.SignedQuery, 404, true},
	} {
		s := &directory.Signed{Method: c.method, Path: c.path, Form: c.form, Text: []byte(c.text),
			Signature: signature(c.signed)}
		if c.from != "" {
			s.Address = netip.MustParseAddr(c.from)
		}
		list, err := h.Gateway.Commands(h.Engine, h.Engine.Key([]byte(c.key)), 1, s)
		a, refused := errors.AsType[*actors.RemoteAnswer](err)
		switch {
		case c.status == 0 && (err != nil || len(list) != 1):
			t.Errorf("%s: %v", c.what, err)
		case c.status != 0 && (!refused || a.Status != c.status || a.Unproven != c.unproven):
			t.Errorf("%s: %+v, %v", c.what, a, err)
		}
	}
	for _, c := range []struct {
		what, key, method, path, order, signed, from string
		status                                       int
		unproven                                     bool
	}{
		{"a read", "reads", "GET", "/api/v1/wallets", "", "reads", "", 200, false},
		{"again", "reads", "GET", "/api/v1/wallets", "", "reads", "", 401, false}, // its nonce
		{"of a key that trades", "trades", "GET", "/api/v1/wallets", "", "trades", "", 403, false},
		{"of no key", "nobody", "GET", "/api/v1/wallets", "", "nobody", "", 401, true},
		{"of no order", "key-bob", "GET", "/api/v1/order/{pk}", "x", "key-bob", "", 404, false},
		{"signed by another key", "key-bob", "GET", "/api/v1/wallets", "", "reads", "", 401, true},
		{"from elsewhere", "at-home", "GET", "/api/v1/wallets", "", "at-home", "192.0.2.1", 403,
			true},
		{"of a command", "key-bob", "GET", path, "", "key-bob", "", 404, true},
		{"that is a command", "trades", "POST", path, "", "trades" + good, "", 404, true},
		{"of a public one", "key-bob", "GET", "/api/v1/time", "", "key-bob", "", 404, true},
	} {
		s := &directory.Signed{Method: c.method, Path: c.path, Order: c.order, Reads: true,
			Form: directory.SignedQuery, Signature: signature(c.signed)}
		if c.method == "POST" {
			s.Form, s.Text = directory.SignedForm, []byte(good)
		}
		if c.from != "" {
			s.Address = netip.MustParseAddr(c.from)
		}
		a := h.Gateway.Answer([]byte(c.key), 7, s)
		if a.Status != c.status || a.Unproven != c.unproven || len(a.Body) == 0 {
			t.Errorf("%s: %d, %v: %s", c.what, a.Status, a.Unproven, a.Body)
		}
	}
}
