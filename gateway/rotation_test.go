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

// serverKey is one of the server's keys.
func serverKey(b byte) []byte { return bytes.Repeat([]byte{b}, seal.KeyBytes) }

func TestTheServersKeyIsRotatedAndNoAPIKeyIsLost(t *testing.T) {
	server := [][]byte{serverKey(1)}
	h := newHarness(t, func(o *actors.Options) {
		o.Sealer = func(bool) (*seal.Sealer, error) { return seal.New(server...) }
		o.Limits.KeysPerAccount = 2000
	})
	h.accountAt("alice", "alice@example.org")
	h.deposit("alice", "10", "BTC", "r")
	const many = 1200 // more than one append takes
	for i := range many {
		h.key("alice", fmt.Sprint("many-", i), event.PermissionRead, "0.0.0.0/8")
	}
	h.key("alice", "ended", event.AllPermissions)
	h.done(h.engine.RevokeKey("test", "key-ended"))
	for range 2 {
		h.post("alice", "/api/v1/withdraw", "address=x&amount=1&currency=BTC").must(t, 201)
	}
	works := func(what string) {
		t.Helper()
		for _, name := range []string{"alice", "many-0", fmt.Sprint("many-", many-1)} {
			h.get(name, "/api/v1/wallets").is(t, 200, what, name)
		}
		want(t, what+": ended", h.get("ended", "/api/v1/wallets"), 401, credentials)
		if err := h.engine.VerifyAtRest(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
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
	confirm(1, codes[0]).is(t, 200, "a code that was mailed before")
	sealed := h.hash()
	h.crash() // without a snapshot: the records alone must contain it
	h.start()
	h.stillAt(sealed)
	works("after a crash")
	h.crash()
	server = [][]byte{serverKey(2)}
	h.start()
	works("with the new key alone")
	want(t, "a code of the key that is gone", confirm(2, codes[1]), 400, `{"code":["Wrong code"]}`)
	h.key("alice", "new", event.AllPermissions)
	h.get("new", "/api/v1/wallets").is(t, 200, "a new key")
	report, err := h.engine.Audit(context.Background(), nil, func(_, _ uint64) {})
	if err != nil || len(report.Differences) > 0 {
		t.Errorf("%+v, %v", report, err)
	}
}
