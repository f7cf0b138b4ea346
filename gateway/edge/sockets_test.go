package edge_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"exchange/gateway/edge"
	"exchange/prove/harness"
)

func TestBothAddressesHaveAllChannels(t *testing.T) {
	h := harness.New(t, nil)
	h.Account("alice")
	h.Deposit("alice", "10", "BTC", "r")
	for _, path := range []string{edge.StreamPath, edge.BookPath} {
		p := h.Polled(path)
		p.Say(`42["subscribe","ticker.BTC_USDT","book_BTC_USDT","nothing"]`)
		p.Receives(`40{"sid":"`, `subscribe.error",{"channel":"nothing"`)
		p.Receives(`42["ticker",{"timestamp"`)
	}
	silent, early := h.Polled(edge.BookPath), h.Polled(edge.StreamPath)
	early.Say(`42["subscribe","trades"]`)
	early.Receives("subscribe.success")
	h.Post("alice", "/api/v1/order/", harness.Order("sell", "BTC_USDT", "1", "100")).Must(t, 201)
	silent.Receives(`42["book_BTC_USDT",{"success":true,"date":`)
}

func TestTheStreamBeforeThereIsAnEngineAndAfterwards(t *testing.T) {
	h := harness.New(t, nil)
	h.Gateway.ForgetStream()
	if a := h.Do("GET", edge.StreamPath+"?EIO=4&transport=polling", "", ""); a.Status != 503 ||
		string(a.Header.Peek("Retry-After")) == "" ||
		string(a.Header.Peek("Access-Control-Allow-Origin")) != "*" {
		t.Errorf("%d %s %s", a.Status, a.Body, a.Header)
	}
	h.Gateway.SetEngine(h.Engine)
	h.Polled(edge.StreamPath)
	h.Gateway.CloseStream()
	h.Do("GET", edge.StreamPath+"?EIO=4&transport=polling", "", "").Is(t, 503)
}

func TestHandshakesAreLimitedByAddress(t *testing.T) {
	h := harness.New(t, nil)
	var now int64
	h.Retune(func(o *edge.Options) {
		o.PublicRate, o.RateEntries, o.Clock = harness.PerSecond(1, 3), 1024,
			func() int64 { return now }
		o.Stream.ConnectionsPerAddress = 4
	})
	shake := func() harness.Answer {
		return h.Do("GET", edge.StreamPath+"?EIO=4&transport=polling", "",
			"")
	}
	for range 3 {
		h.Polled(edge.StreamPath) // packets and polls do not count
	}
	if a := shake(); a.Status != 403 ||
		a.Body != `{"code":4,"message":"too many requests, come back later"}` {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	h.Do("GET", "/api/v1/currencies/", "", "").Is(t, 429,
		"public requests have a limit of their own")
	now += int64(10 * time.Second)
	h.Polled(edge.StreamPath)
	if a := shake(); a.Status != 403 || !strings.Contains(a.Body, "connections from this address") {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// A body that is too large is refused with the protocol's answer, and the session stays.
func TestAStreamBodyThatIsTooLarge(t *testing.T) {
	h := harness.New(t, nil)
	p := h.Polled(edge.StreamPath)
	n := h.Gateway.Options().BodyBytes + 1 // the server hangs up before it has read all
	a := h.Raw("POST", fmt.Sprintf(
		"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s",
		p.Path, n, strings.Repeat("x", n)))
	if a.Status != 413 || a.Body != "" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if a = h.Do("GET", p.Path, "", ""); a.Status != 200 || !strings.HasPrefix(a.Body, "40{") {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}
