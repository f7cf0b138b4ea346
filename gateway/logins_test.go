package gateway

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"exchange/core/event"
	"exchange/gateway/edge"
	"exchange/gateway/sign"
)

// asks emits an event and returns its acknowledgement.
func (p *polled) asks(name, args string) string {
	p.h.t.Helper()
	p.asked++
	p.say(fmt.Sprintf(`42%d["%s"%s]`, p.asked, name, args))
	head := fmt.Sprintf("43%d[", p.asked)
	p.receives(head)
	_, rest, _ := strings.Cut(p.received, "\n")
	ack, _, _ := strings.Cut(rest, "\x1e")
	p.received = strings.Replace(p.received, ack, "", 1)
	return strings.TrimSuffix(strings.TrimSpace(ack), "]")
}

// logsIn asks for a challenge and answers it.
func (p *polled) logsIn(key, secret string) string {
	p.h.t.Helper()
	var a struct{ Challenge string }
	if err := json.Unmarshal([]byte(p.asks("challenge", "")), &a); err != nil ||
		len(a.Challenge) != 64 {
		p.h.t.Fatal(a, err)
	}
	return p.asks("login", fmt.Sprintf(`,{"key":"%s","sign":"%s"}`, key,
		sign.New([]byte(secret)).Sign(nil, []byte("login\n"+key+"\n"+a.Challenge))))
}

func TestALoginIsCheckedAsASignedRequest(t *testing.T) {
	h := newHarness(t, nil)
	h.account("alice")
	h.key("alice", "reader", event.PermissionRead)
	h.key("alice", "elsewhere", event.AllPermissions, "10.0.0.0/8")
	h.account("frozen")
	h.done(h.engine.Freeze("test", "frozen", true))
	p := h.polled(edge.StreamPath)
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
		if got := p.logsIn(c.key, c.secret); got != c.want {
			t.Errorf("%s: %s", c.key, got)
		}
	}
	if got := p.asks("logout", ""); got != `{"status":200,"body":{}}` {
		t.Error(got)
	}
	if got := p.asks("login", `,{"key":"key-alice","sign":"zz"}`); got !=
		`{"status":401,"body":{"detail":"Incorrect authentication credentials."}}` {
		t.Error(got)
	}
}

func TestFailedLoginsCountAsFailedRequestsOfTheirAddress(t *testing.T) {
	h := newHarness(t, nil)
	var now int64
	h.retune(func(o *edge.Options) {
		o.FailureRate, o.ReadRate, o.CancelRate = perSecond(1, 3), perSecond(1, 1), perSecond(1, 2)
		o.RateEntries, o.Clock = 1024, func() int64 { return now }
	})
	h.account("alice")
	p := h.polled(edge.StreamPath)
	const wrong = `{"status":401,"body":{"detail":"Wrong signature"}}`
	throttled := func(seconds int) string {
		return fmt.Sprintf(`{"status":429,"body":{"detail":"Request was throttled. Expected `+
			`available in %d seconds."},"retry_after":%d}`, seconds, seconds)
	}
	for range 3 {
		if got := p.logsIn("key-alice", "wrong"); got != wrong {
			t.Error(got)
		}
	}
	if got := p.logsIn("key-alice", "wrong"); got != throttled(1) {
		t.Error(got)
	}
	// REST has the same bucket, and a right signature needs none of it
	h.do("GET", "/api/v1/wallets/", "", "", "X-KEY", "key-alice", "X-SIGN", strings.Repeat("0", 64),
		"X-NONCE", "1").is(t, 429)
	for i := range 3 {
		got, want := p.logsIn("key-alice", "secret-alice"),
			`{"status":200,"body":{"permissions":["read","trade","withdraw"],"account":"alice"}}`
		if i == 2 {
			want = throttled(1) // a login counts as a cancel
		}
		if got != want {
			t.Error(got)
		}
		p.asks("logout", "")
	}
	h.done(h.engine.Freeze("test", "alice", true))
	for i := range 2 {
		got, want := p.logsIn("key-alice", "secret-alice"),
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
	h := newHarness(t, nil)
	h.retune(func(o *edge.Options) {
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/32")}
	})
	h.account("alice")
	h.key("alice", "office", event.AllPermissions, "10.1.2.0/24")
	for from, want := range map[string]string{
		"10.1.2.3": `"status":200`, "10.1.3.3": `"status":403`} {
		p := &polled{h: h, path: edge.StreamPath + "?EIO=4&transport=polling"}
		a := h.do("GET", p.path, "", "", "X-Forwarded-For", from)
		var open struct{ SID string }
		worked(t, json.Unmarshal([]byte(a.body[1:]), &open))
		p.path += "&sid=" + open.SID
		p.say("40")
		if got := p.logsIn("key-office", "secret-office"); !strings.Contains(got, want) {
			t.Errorf("from %s: %s", from, got)
		}
	}
}
