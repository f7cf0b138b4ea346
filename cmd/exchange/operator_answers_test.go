package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// Every command that changes something, with an answer that the server may give.
var repeatable = []struct{ line, answer string }{
	{"account freeze alice", frozen},
	{"account unfreeze alice", `{"account":"alice","on":false}`},
	{"account close alice", `{"account":"alice","id":7,"closed":true}`},
	{"account email alice a@b.example", `{"account":"alice","id":7,"email":"a@b.example",` +
		`"before":"","held_until":"2026-11-30T09:00:00Z"}`},
	{"pair halt BTC_USDT", `{"pair":"BTC_USDT","on":true}`},
	{"pair resume BTC_USDT", `{"pair":"BTC_USDT","on":false}`},
	{"maintenance on", `{"on":true}`},
	{"maintenance off", `{"on":false}`},
	{"order cancel 7", `{"order":7,"account":"alice","pair":"BTC_USDT"}`},
	{"order cancel-all alice", `{"orders":[1]}`},
	{"withdraw approve 7", approved7},
	{"withdraw refuse 3 --details no", approved7},
	{"fees set alice BTC_USDT --maker 0 --taker 0", fees},
	{"fees reset alice BTC_USDT", fees},
}

var asking = []struct{ line, answer string }{
	{"account show alice", shown},
	{"withdraw list", `{"withdraws":[]}`},
	{"actions", `{"actions":[]}`},
	{"cluster hash", `{"node":"a","sequence":7,"hash":"ab"}`},
}

func TestChangesAreRepeatedUntilTheirOutcomeIsKnown(t *testing.T) {
	noPauses(t)
	for _, x := range repeatable {
		f := newFake(t, 0, "")
		f.before = func(w http.ResponseWriter) error {
			if len(f.asked) == 1 {
				return hangUp(w)
			}
			return nil
		}
		f.answer = func(n int) (int, string) {
			if n == 1 {
				return 503, `{"error":"outcome unknown"}`
			}
			return 200, x.answer
		}
		if r := runLine(f.environ, words(x.line)...); r.code != 0 || r.errOut != "" {
			t.Errorf("%s: %+v", x.line, r)
		}
		if asked := f.requests(); len(asked) != 3 || asked[0] != asked[1] || asked[1] != asked[2] {
			t.Errorf("%s: asked %q", x.line, asked)
		}

		f = newFake(t, 503, `{"error":"Outcome unknown."}`)
		r := runLine(f.environ, words(x.line)...)
		r.wantError(t, exitUnavailable,
			"exchange: Outcome unknown; whether it was done is unknown: run the same command "+
				"again until it answers\n")
		if n := len(f.requests()); n != len(pauses)+1 {
			t.Errorf("%s: asked %d times", x.line, n)
		}
	}
}

func TestTheErrorSaysThatAnEarlierTryMayHaveLanded(t *testing.T) {
	noPauses(t)
	for _, x := range []struct {
		line         string
		status       int
		answer       string
		code         int
		out, errText string
	}{
		{
			"account freeze alice", 200, `{"account":"alice","on":true,"repeated":true}`, exitDone,
			"The account alice is frozen.\n\nIt was so already, perhaps by an earlier try of " +
				"this command.\n", "",
		},
		{
			"order cancel-all alice", 200, `{"orders":[]}`, exitDone,
			"No order was open.\nEarlier tries of this command may have cancelled more: " +
				"`exchange actions` shows them.\n", "",
		},
		{"order cancel-all alice --json", 200, `{"orders":[]}`, exitDone,
			"{\"orders\":[],\"incomplete\":true}\n", ""},
		{
			"order cancel 7", 400, `{"error":"order 7 is not open"}`, exitUnavailable, "",
			"exchange: order 7 is not open; an earlier try of this command may have cancelled " +
				"it: `exchange actions` shows whether one did\n",
		},
		{"withdraw approve 7", 400, `{"error":"withdraw 7 is canceled"}`, exitUsage, "",
			"exchange: withdraw 7 is canceled\n"},
	} {
		f := newFake(t, 0, "")
		f.answer = func(n int) (int, string) {
			if n == 0 {
				return 503, `{"error":"outcome unknown"}`
			}
			return x.status, x.answer
		}
		runLine(f.environ, words(x.line)...).want(t, x.code, x.out, x.errText)
		if n := len(f.requests()); n != 2 {
			t.Errorf("%s: asked %d times", x.line, n)
		}
	}
}

func TestOperatorsSeeWhatTheServerRefuses(t *testing.T) {
	noPauses(t)
	for _, x := range append(repeatable, asking...) {
		for _, y := range []struct {
			status int
			body   string
			code   int
			want   string
		}{
			{400, `{"error":"there is no such thing"}`, exitUsage, "there is no such thing"},
			{401, `{"error":"the bearer token is missing or wrong"}`, exitUsage,
				"wrong (the token is from EXCHANGE_OPERATOR_TOKEN)"},
			{404, ``, exitUsage, "the exchange answered 404 Not Found: is "},
			{500, `oops`, exitUnavailable, "the exchange answered 500 Internal Server Error"},
			{200, `oops`, exitUnavailable, "is not one of an exchange's operator listener"},
			{200, `{}`, exitUnavailable, "is not one of an exchange's operator listener"},
		} {
			f := newFake(t, y.status, y.body)
			runLine(f.environ, words(x.line)...).wantError(t, y.code, y.want)
			wantJSONError(t, runLine(f.environ, words(x.line+" --json")...), y.code, y.want)
		}
		f := newFake(t, 503, `{"error":"Too many requests are in flight."}`)
		f.before = func(w http.ResponseWriter) error {
			w.Header().Set("Retry-After", "1")
			return nil
		}
		runLine(f.environ, words(x.line)...).want(t, exitUnavailable, "",
			"exchange: Too many requests are in flight.\n")
		if n := len(f.requests()); n != 1 {
			t.Errorf("%s: what was not taken in was asked %d times", x.line, n)
		}
		runLine([]string{"EXCHANGE_OPERATOR_TOKEN=x", "EXCHANGE_OPERATOR=" + closedPort},
			words(x.line)...).
			wantError(t, exitUnavailable,
				"connect: connection refused; is `exchange serve` running?")
	}
}

// An answer without one of its parts would be shown with another meaning: `on` left out is not
// `off`.
func TestAnAnswerThatLacksSomethingIsNotBelieved(t *testing.T) {
	noPauses(t)
	optional := map[string]bool{"email": true, "address": true, "time": true, "currency": true}
	for _, x := range append(repeatable, asking...) {
		var whole map[string]any
		d := json.NewDecoder(strings.NewReader(x.answer))
		d.UseNumber()
		if err := d.Decode(&whole); err != nil {
			t.Fatal(err)
		}
		for name, value := range whole {
			if optional[name] {
				continue
			}
			delete(whole, name)
			text, err := json.Marshal(whole)
			if err != nil {
				t.Fatal(err)
			}
			whole[name] = value
			f := newFake(t, 200, string(text))
			runLine(f.environ, words(x.line)...).wantError(t, exitUnavailable,
				"is not one of an exchange's operator listener")
		}
	}
}

func TestAReadIsNotRepeated(t *testing.T) {
	for _, x := range asking {
		f := newFake(t, 0, "")
		f.before = hangUp
		r := runLine(f.environ, words(x.line)...)
		r.wantError(t, exitUnavailable, "did not answer")
		if n := len(f.requests()); n != 1 || strings.Contains(r.errOut, "was done") {
			t.Errorf("%s: asked %d times; %s", x.line, n, r.errOut)
		}
	}
}
