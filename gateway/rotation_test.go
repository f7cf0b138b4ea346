package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"exchange/actors"
	"exchange/actors/seal"
	"exchange/core/event"
	"exchange/prove/harness"
)

// serverKey is one of the server's keys.
func serverKey(b byte) []byte { return bytes.Repeat([]byte{b}, seal.KeyBytes) }

func TestTheServersKeyIsRotatedAndNoAPIKeyIsLost(t *testing.T) {
	server := [][]byte{serverKey(1)}
	h := harness.New(t, func(o *actors.Options) {
		o.Sealer = func(bool) (*seal.Sealer, error) { return seal.New(server...) }
		o.Limits.KeysPerAccount = 2000
	})
	h.AccountAt("alice", "alice@example.org")
	h.Deposit("alice", "10", "BTC", "r")
	const many = 1200 // more than one append takes
	for i := range many {
		h.Key("alice", fmt.Sprint("many-", i), event.PermissionRead, "0.0.0.0/8")
	}
	h.Key("alice", "ended", event.AllPermissions)
	h.Done(h.Engine.RevokeKey("test", "key-ended"))
	for range 2 {
		h.Post("alice", "/api/v1/withdraw", "address=x&amount=1&currency=BTC").Must(t, 201)
	}
	works := func(what string) {
		t.Helper()
		for _, name := range []string{"alice", "many-0", fmt.Sprint("many-", many-1)} {
			h.Get(name, "/api/v1/wallets").Is(t, 200, what, name)
		}
		harness.Want(t, what+": ended", h.Get("ended", "/api/v1/wallets"), 401, harness.Credentials)
		if err := h.Engine.VerifyAtRest(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	confirm := func(id uint64, code string) harness.Answer {
		return h.Post("alice", "/api/v1/withdraw-confirm",
			fmt.Sprintf("code=%s&withdraw=%d", code, id))
	}
	works("at first")
	codes := []string{h.Code(1), h.Code(2)}
	h.Stop()
	server = [][]byte{serverKey(2), serverKey(1)}
	h.Start()
	works("with both keys")
	confirm(1, codes[0]).Is(t, 200, "a code that was mailed before")
	sealed := h.Hash()
	h.Crash() // without a snapshot: the records alone must contain it
	h.Start()
	h.StillAt(sealed)
	works("after a crash")
	h.Crash()
	server = [][]byte{serverKey(2)}
	h.Start()
	works("with the new key alone")
	harness.Want(t, "a code of the key that is gone", confirm(2, codes[1]), 400,
		`{"code":["Wrong code"]}`)
	h.Key("alice", "new", event.AllPermissions)
	h.Get("new", "/api/v1/wallets").Is(t, 200, "a new key")
	report, err := h.Engine.Audit(context.Background(), nil, func(_, _ uint64) {})
	if err != nil || len(report.Differences) > 0 {
		t.Errorf("%+v, %v", report, err)
	}
}
