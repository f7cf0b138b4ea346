package edge_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"exchange/core/event"
	"exchange/gateway/edge"
	"exchange/prove/harness"
)

func TestALoginIsCheckedAsASignedRequest(t *testing.T) {
	h := harness.New(t, nil)
	h.Account("alice")
	h.Key("alice", "reader", event.PermissionRead)
	h.Key("alice", "elsewhere", event.AllPermissions, "10.0.0.0/8")
	h.Account("frozen")
	h.Done(h.Engine.Freeze("test", "frozen", true))
	p := h.Polled(edge.StreamPath)
	for _, c := range []struct{ key, secret, want string }{
		{"key-unknown", "secret", `{"status":401,"body":{"detail":"Incorrect authentication ` +
			`credentials."}}`},
		{"key-alice", "secret", `{"status":401,"body":{"detail":"Wrong signature"}}`},
		{"key-elsewhere", "secret-elsewhere", `{"status":403,"body":{"detail":"This key may not ` +
			`be used from this address."}}`},
		{"key-frozen", "wrong", `{"status":401,"body":{"detail":"Wrong signature"}}`},
		{"key-frozen", "secret-frozen", `{"status":403,"body":{"detail":"The account is ` +
			`frozen."}}`},
		{"key-reader", "secret-reader", `{"status":200,"body":{"permissions":["read"],` +
			`"account":"alice"}}`},
	} {
		if got := p.LogsIn(c.key, c.secret); got != c.want {
			t.Errorf("%s: %s", c.key, got)
		}
	}
	if got := p.Asks("logout", ""); got != `{"status":200,"body":{}}` {
		t.Error(got)
	}
	if got := p.Asks("login", `,{"key":"key-alice","sign":"zz"}`); got !=
		`{"status":401,"body":{"detail":"Incorrect authentication credentials."}}` {
		t.Error(got)
	}
}

func TestFailedLoginsCountAsFailedRequestsOfTheirAddress(t *testing.T) {
	h := harness.New(t, nil)
	var now int64
	h.Retune(func(o *edge.Options) {
		o.FailureRate, o.ReadRate, o.CancelRate = harness.PerSecond(1, 3), harness.PerSecond(1, 1),
			harness.PerSecond(1, 2)
		o.RateEntries, o.Clock = 1024, func() int64 { return now }
	})
	h.Account("alice")
	p := h.Polled(edge.StreamPath)
	const wrong = `{"status":401,"body":{"detail":"Wrong signature"}}`
	throttled := func(seconds int) string {
		return fmt.Sprintf(`{"status":429,"body":{"detail":"Request was throttled. Expected `+
			`available in %d seconds."},"retry_after":%d}`, seconds, seconds)
	}
	for range 3 {
		if got := p.LogsIn("key-alice", "wrong"); got != wrong {
			t.Error(got)
		}
	}
	if got := p.LogsIn("key-alice", "wrong"); got != throttled(1) {
		t.Error(got)
	}
	// REST has the same bucket, and a right signature needs none of it
	h.Do("GET", "/api/v1/wallets/", "", "", "X-KEY", "key-alice", "X-SIGN", strings.Repeat("0", 64),
		"X-NONCE", "1").Is(t, 429)
	for i := range 3 {
		got, want := p.LogsIn("key-alice", "secret-alice"),
			`{"status":200,"body":{"permissions":["read","trade","withdraw"],"account":"alice"}}`
		if i == 2 {
			want = throttled(1) // a login counts as a cancel
		}
		if got != want {
			t.Error(got)
		}
		p.Asks("logout", "")
	}
	h.Done(h.Engine.Freeze("test", "alice", true))
	for i := range 2 {
		got, want := p.LogsIn("key-alice", "secret-alice"),
			`{"status":403,"body":{"detail":"The account is frozen."}}`
		if i == 1 {
			want = throttled(1) // a refusal counts as a read of the key
		}
		if got != want {
			t.Error(got)
		}
	}
}

func TestALoginBehindATrustedProxyIsOfItsClient(t *testing.T) {
	h := harness.New(t, nil)
	h.Retune(func(o *edge.Options) {
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/32")}
	})
	h.Account("alice")
	h.Key("alice", "office", event.AllPermissions, "10.1.2.0/24")
	for from, want := range map[string]string{
		"10.1.2.3": `"status":200`, "10.1.3.3": `"status":403`} {
		p := &harness.Polled{H: h, Path: edge.StreamPath + "?EIO=4&transport=polling"}
		a := h.Do("GET", p.Path, "", "", "X-Forwarded-For", from)
		var open struct{ SID string }
		harness.Worked(t, json.Unmarshal([]byte(a.Body[1:]), &open))
		p.Path += "&sid=" + open.SID
		p.Say("40")
		if got := p.LogsIn("key-office", "secret-office"); !strings.Contains(got, want) {
			t.Errorf("from %s: %s", from, got)
		}
	}
}
