package gateway

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"exchange/actors"
	"exchange/actors/seal"
	"exchange/core/event"
)

// The effect on API keys when the server's key, or one of them, is changed.

// serverKey is one of the server's keys.
func serverKey(b byte) []byte { return bytes.Repeat([]byte{b}, seal.KeyBytes) }

// keysWork wants the keys of some names to work, and the key of ended, which was revoked, not to.
func (h *harness) keysWork(what string, names ...string) {
	t := h.t
	t.Helper()
	for _, name := range names {
		if a := h.get(name, "/api/v1/wallets"); a.status != 200 {
			t.Errorf("%s: %s is answered with %d %s", what, name, a.status, a.body)
		}
	}
	want(t, what+": ended", h.get("ended", "/api/v1/wallets"), 401, credentials)
	if err := h.engine.VerifyAtRest(); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

func TestTheServersKeyIsRotatedAndNoAPIKeyIsLost(t *testing.T) {
	server := [][]byte{serverKey(1)}
	h := newHarness(t, func(o *actors.Options) {
		o.Sealer = func(bool) (*seal.Sealer, error) { return seal.New(server...) }
		o.Limits.KeysPerAccount = 2000
	})
	h.accountAt("alice", "alice@example.org")
	if _, err := h.deposit("alice", "10", "BTC", "r"); err != nil {
		t.Fatal(err)
	}
	const many = 1200 // more than one append takes
	for i := range many {
		h.key("alice", fmt.Sprint("many-", i), event.PermissionRead, "0.0.0.0/8")
	}
	h.key("alice", "ended", event.AllPermissions)
	if _, err := h.engine.RevokeKey("test", "key-ended"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if a := h.post("alice", "/api/v1/withdraw",
			"address=x&amount=1&currency=BTC"); a.status != 201 {
			t.Fatal(a.body)
		}
	}
	works := func(what string) {
		t.Helper()
		h.keysWork(what, "alice", "many-0", fmt.Sprint("many-", many-1))
	}
	confirm := func(id uint64, code string) answer {
		return h.post("alice", "/api/v1/withdraw-confirm",
			fmt.Sprintf("code=%s&withdraw=%d", code, id))
	}
	works("at first")
	codes := []string{h.code(1), h.code(2)}
	h.stop()
	server = [][]byte{serverKey(2), serverKey(1)}
	h.start()
	works("with both keys")
	if a := confirm(1, codes[0]); a.status != 200 {
		t.Errorf("a code that was mailed before: %d %s", a.status, a.body)
	}
	sealed := h.hash()
	h.crash() // without a snapshot: the records alone have to know it
	h.start()
	if h.hash() != sealed {
		t.Error("what is sealed by the first key was sealed again")
	}
	works("after a crash")
	h.crash()
	server = [][]byte{serverKey(2)}
	h.start()
	works("with the new key alone")
	want(t, "a code of the key that is gone", confirm(2, codes[1]), 400, `{"code":["Wrong code"]}`)
	h.key("alice", "new", event.AllPermissions)
	if a := h.get("new", "/api/v1/wallets"); a.status != 200 {
		t.Errorf("a new key: %d %s", a.status, a.body)
	}
	report, err := h.engine.Audit(context.Background(), nil, func(_, _ uint64) {})
	if err != nil || len(report.Differences) > 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestAnAccountsKeyIsReplacedWithoutAGap(t *testing.T) {
	h := traded(t)
	ask := asOperator(t, h.gateway)
	made := madeKey.FindStringSubmatch(
		ask("POST", "/operator/v1/keys", `{"account":"bob","permissions":["read","trade"]}`).body)
	if made == nil {
		t.Fatal("no key")
	}
	sign := KeyMaterial([]byte(made[2])).(interface {
		Sign(dst, message []byte) []byte
	})
	nonce := 0
	cancel := func(id string) answer {
		nonce++
		p := "order=" + id
		return h.do("POST", "/api/v1/order-cancel", formType, p, "X-KEY", made[1], "X-SIGN",
			string(sign.Sign(nil, []byte(made[1]+p))), "X-NONCE", fmt.Sprint(nonce))
	}
	want(t, "both work: the new one", cancel("99"), 400, `{"order":["Order not found"]}`)
	if a := h.get("bob", "/api/v1/orders/own"); a.status != 200 {
		t.Errorf("both work: the old one: %d %s", a.status, a.body)
	}
	says(t, "the old one ends", ask("POST", "/operator/v1/keys/revoke", `{"key":"key-bob"}`), 200,
		`{"account":"bob","key":"key-bob","revoked":true}`)
	for range 2 {
		want(t, "the old one", h.get("bob", "/api/v1/orders/own"), 401, credentials)
		want(t, "the new one", cancel("99"), 400, `{"order":["Order not found"]}`)
		h.crash()
		h.start()
	}
	want(t, "an order of the old one", cancel("3"), 200, `{"order":3}`)
	says(t, "for ever", asOperator(t, h.gateway)("POST", "/operator/v1/keys/revoke",
		`{"key":"key-bob"}`), 400, refusal("key key-bob is revoked already"))
}
