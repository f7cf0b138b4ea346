package loadtest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"exchange/loadtest/generator"
)

// Each item of a batch has its own answer; a batch answered as a whole, or in part, has one for
// each item, too.
func TestItemsOfABatchCountAsRequests(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := &strictServer{}
		address := serve(t, func(*fasthttp.RequestCtx) {})
		o := good()
		o.Addresses, o.Mix, o.Batch = []string{address}, Mix{60, 40, 0}, 10
		o.Connections, o.Accounts = 1, 1
		x, l := newSender(t, &o)
		var items []map[string]string
		request := func() {
			t.Helper()
			text := string(l.Request(0, 0))
			_, form, _ := strings.Cut(text, "\r\n\r\n")
			values, err := url.ParseQuery(form)
			if err == nil {
				err = json.Unmarshal([]byte(values.Get("orders")), &items)
			}
			if err != nil || len(items) != 10 || values.Encode() != form ||
				!strings.HasPrefix(text, "POST /api/v1/order-batch/ HTTP/1.1\r\n") {
				t.Fatalf("%s: %v", text, err)
			}
		}
		request()
		var answers []string
		for i, item := range items {
			server.id++
			answer := `{"status":201,"body":` + fmt.Sprintf(placedAnswer, server.id) + "}"
			switch {
			case item["do"] != "place":
				t.Errorf("%v: nothing is open yet", item)
			case i == 8:
				answer = `{"status":503,"body":{"detail":"x","code":"outcome_unknown"}}`
			case i == 9:
				answer = `{"status":400,"body":{"date":1.5,"error":"Out of balance -9.9 BTC"}}`
			}
			answers = append(answers, answer)
		}
		l.Answered(0, okAnswer(200, `{"results":[`+strings.Join(answers, ",")+`]}`), time.Millisecond)
		a := x.field.accounts[0]
		if s := l.stats; s.requests != 10 || s.done != 8 || s.unknown != 1 || s.refused != 1 ||
			len(a.open) != 8 || a.orders[7].id != 8 || a.orders[8].outcome != unknown ||
			a.orders[9].outcome != refused || len(a.trades) != 8 {
			t.Errorf("%+v %v %+v", s.counters, s.kinds, a.orders)
		}

		// A batch refused as a whole has no effect: its cancels may be repeated.
		request()
		cancels := 0
		for _, item := range items {
			if item["do"] == "cancel" {
				cancels++
			}
		}
		rest := l.Answered(0, generator.Answer{Status: 429, Later: true, Body: []byte("{}")}, 0)
		if s := l.stats; cancels == 0 || !rest || s.refused != 11 || len(a.open) != 8 {
			t.Errorf("%d cancels, rest %t: %+v, %d open", cancels, rest, s.counters, len(a.open))
		}

		// An answer that ends too soon leaves its missing items unknown.
		request()
		l.Answered(0, okAnswer(200, `{"results":[`+answers[0]+`]}`), 0)
		if s := l.stats; s.requests != 30 || s.unknown != 10 {
			t.Errorf("%+v %v", s.counters, s.kinds)
		}
		if err := l.Broken(0, "broken", true, 0); err != nil || l.stats.unknown != 20 {
			t.Errorf("%+v %v", l.stats.counters, err)
		}
	})
}

func TestEventsAndAnswersMatchInAnyOrder(t *testing.T) {
	l, now := newOwnLag(), time.Now()
	for order := range uint64(10) {
		l.noteAck(order, now)
		l.noteEvent(order+5, now.Add(time.Millisecond))
	}
	h := newHistogram()
	if before := l.addTo(h); before != 5 || h.TotalCount() != 5 || h.Max() != 1 {
		t.Errorf("%d of %d came before, the longest was late by %d us", before, h.TotalCount(),
			h.Max())
	}
	l.noteEvent(0, now.Add(time.Millisecond))
	if h := l.lags; len(l.acks) != 4 || len(l.events) != 5 || h.Max() != 1000 {
		t.Errorf("%d acknowledgements and %d events are alone, %d us", len(l.acks), len(l.events),
			h.Max())
	}
}

func TestEventsOfAnAccountAreDense(t *testing.T) {
	f := func(events string, wrong int) {
		t.Helper()
		u := &user{account: &account{name: "a", lag: newOwnLag()}}
		s := &subscriber{channel: ownChannel, user: u, last: map[string]uint64{}}
		for _, text := range strings.Split(events, " ") {
			var seq, prev int
			event := `["own",{"snapshot":true,"sequence":` + text + `,"prev":null}]`
			if n, _ := fmt.Sscanf(text, "%d<%d", &prev, &seq); n == 2 {
				event = fmt.Sprintf(`["own",{"sequence":%d,"prev":%d,"orders":[]}]`, seq, prev)
			}
			worked(t, s.event([]byte(event)[1:]))
		}
		if len(s.wrong) != wrong {
			t.Errorf("%s: %q", events, s.wrong)
		}
	}
	f("7 7<8 8<12 12<13", 0)
	f("7 7<8 7<8 8<9", 0) // two parts
	f("7 8<9", 1)
	f("7 7<9 12 12<13", 0) // after a loss
	f("0 0<3", 0)
}
