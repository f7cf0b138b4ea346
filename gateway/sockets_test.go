package gateway

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"exchange/gateway/edge"
)

// A polled client speaks Engine.IO by polling.
type polled struct {
	h        *harness
	path     string // with its session
	received string // not waited for yet
	asked    int    // questions until now
}

func (h *harness) polled(path string) *polled {
	h.t.Helper()
	p := &polled{h: h, path: path + "?EIO=4&transport=polling"}
	a := h.do("GET", p.path, "", "")
	var open struct{ SID string }
	if a.status != 200 || !strings.HasPrefix(a.body, "0{") ||
		json.Unmarshal([]byte(a.body[1:]), &open) != nil {
		h.t.Fatalf("%d %s", a.status, a.body)
	}
	p.path += "&sid=" + open.SID
	p.say("40")
	return p
}

func (p *polled) say(packets string) {
	p.h.t.Helper()
	if a := p.h.do("POST", p.path, "text/plain", packets); a.status != 200 || a.body != "ok" {
		p.h.t.Fatalf("%d %s", a.status, a.body)
	}
}

// receives polls until each of these words arrived. Words that came with the last of them count for
// the next call.
func (p *polled) receives(words ...string) {
	p.h.t.Helper()
	for {
		words = slices.DeleteFunc(words, func(w string) bool {
			before, after, ok := strings.Cut(p.received, w)
			if ok {
				p.received = before + "\n" + after
			}
			return ok
		})
		if len(words) == 0 {
			return
		}
		a := p.h.do("GET", p.path, "", "")
		if a.status != 200 {
			p.h.t.Fatalf("%d %s, after %s", a.status, a.body, p.received)
		}
		if a.body == "2" {
			p.say("3")
		}
		p.received += a.body
	}
}

func TestBothAddressesHaveAllChannels(t *testing.T) {
	h := newHarness(t, nil)
	h.account("alice")
	h.deposit("alice", "10", "BTC", "r")
	for _, path := range []string{edge.StreamPath, edge.BookPath} {
		p := h.polled(path)
		p.say(`42["subscribe","ticker.BTC_USDT","book_BTC_USDT","nothing"]`)
		p.receives(`40{"sid":"`, `subscribe.error",{"channel":"nothing"`)
		p.receives(`42["ticker",{"timestamp"`)
	}
	silent, early := h.polled(edge.BookPath), h.polled(edge.StreamPath)
	early.say(`42["subscribe","trades"]`)
	early.receives("subscribe.success")
	h.post("alice", "/api/v1/order/", order("sell", "BTC_USDT", "1", "100")).must(t, 201)
	silent.receives(`42["book_BTC_USDT",{"success":true,"date":`)
}

func TestTheStreamBeforeThereIsAnEngineAndAfterwards(t *testing.T) {
	h := newHarness(t, nil)
	h.gateway.ForgetStream()
	if a := h.do("GET", edge.StreamPath+"?EIO=4&transport=polling", "", ""); a.status != 503 ||
		string(a.header.Peek("Retry-After")) == "" ||
		string(a.header.Peek("Access-Control-Allow-Origin")) != "*" {
		t.Errorf("%d %s %s", a.status, a.body, a.header)
	}
	h.gateway.SetEngine(h.engine)
	h.polled(edge.StreamPath)
	h.gateway.CloseStream()
	h.do("GET", edge.StreamPath+"?EIO=4&transport=polling", "", "").is(t, 503)
}

func TestHandshakesAreLimitedByAddress(t *testing.T) {
	h := newHarness(t, nil)
	var now int64
	h.retune(func(o *edge.Options) {
		o.PublicRate, o.RateEntries, o.Clock = perSecond(1, 3), 1024, func() int64 { return now }
		o.Stream.ConnectionsPerAddress = 4
	})
	shake := func() answer {
		return h.do("GET", edge.StreamPath+"?EIO=4&transport=polling", "",
			"")
	}
	for range 3 {
		h.polled(edge.StreamPath) // packets and polls do not count
	}
	if a := shake(); a.status != 403 ||
		a.body != `{"code":4,"message":"too many requests, come back later"}` {
		t.Errorf("%d %s", a.status, a.body)
	}
	h.do("GET", "/api/v1/currencies/", "", "").is(t, 429,
		"public requests have a limit of their own")
	now += int64(10 * time.Second)
	h.polled(edge.StreamPath)
	if a := shake(); a.status != 403 || !strings.Contains(a.body, "connections from this address") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// A body that is too large is refused with the protocol's answer, and the session stays.
func TestAStreamBodyThatIsTooLarge(t *testing.T) {
	h := newHarness(t, nil)
	p := h.polled(edge.StreamPath)
	n := h.gateway.Options().BodyBytes + 1 // the server hangs up before it has read all
	a := h.raw("POST", fmt.Sprintf(
		"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s",
		p.path, n, strings.Repeat("x", n)))
	if a.status != 413 || a.body != "" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a = h.do("GET", p.path, "", ""); a.status != 200 || !strings.HasPrefix(a.body, "40{") {
		t.Errorf("%d %s", a.status, a.body)
	}
}
