package operate

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"exchange/cmd/exchange/cli"
	"exchange/prove/clitest"
)

// An exampleCommand is a command that sends a request, and a possible answer.
type exampleCommand struct{ line, answer string }

// Idempotent changes, which are repeated.
var repeatable = []exampleCommand{
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
	{"deposit alice BTC 1 --reference R-9",
		`{"deposit":1,"account":"alice","currency":"BTC","amount":1,"balance":1,"reference":"R-9"}`},
}

// Changes made once. Their advice is how to find out whether they were made.
var once = []struct{ line, answer, advice string }{
	{"account create alice", `{"account":"alice","id":1,"email":""}`,
		"`exchange account list` shows"},
	{"key create alice", `{"key":"K","secret":"S","account":"alice","permissions":[],"allow":[]}`,
		"`exchange key list alice` shows"},
}

// Commands that change nothing.
var questions = []exampleCommand{
	{"account show alice", shownAlice},
	{"withdraw list", `{"withdraws":[]}`},
	{"actions", `{"actions":[]}`},
	{"cluster hash", `{"node":"a","sequence":7,"hash":"ab"}`},
}

// unlessRepeated returns the commands that are made once.
func unlessRepeated() []exampleCommand {
	list := slices.Clone(questions)
	for _, x := range streaming {
		list = append(list, exampleCommand{x.line, x.lines + end(x.end)})
	}
	for _, x := range once {
		list = append(list, exampleCommand{x.line, x.answer})
	}
	return list
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
		if r := runLine(f.environ, words(x.line)...); r.Code != 0 || r.ErrOut != "" {
			t.Errorf("%s: %+v", x.line, r)
		}
		if asked := f.requests(); len(asked) != 3 || asked[0] != asked[1] || asked[1] != asked[2] {
			t.Errorf("%s: asked %q", x.line, asked)
		}

		f = newFake(t, 503, `{"error":"Outcome unknown."}`)
		advice := "run the same command again until it answers"
		if _, reference, found := strings.Cut(x.line, " --reference "); found {
			advice = "repeat the command with --reference " + reference +
				": it is credited at most once"
		}
		runLine(f.environ, words(x.line)...).WantError(t, cli.ExitUnavailable,
			"exchange: Outcome unknown; whether it was done is unknown: "+advice+"\n")
		if n := len(f.requests()); n != len(pauses)+1 {
			t.Errorf("%s: asked %d times", x.line, n)
		}
	}
}

func TestTheOthersAreMadeOnce(t *testing.T) {
	for _, x := range unlessRepeated() {
		f := newFake(t, 0, "")
		f.before = hangUp
		r := runLine(f.environ, words(x.line)...)
		r.WantError(t, cli.ExitUnavailable, "did not answer")
		advice := ""
		for _, y := range once {
			if y.line == x.line {
				advice = "whether it was done is unknown: " + y.advice
			}
		}
		if n := len(f.requests()); n != 1 || !strings.Contains(r.ErrOut, advice) ||
			strings.Contains(r.ErrOut, "was done") != (advice != "") {
			t.Errorf("%s: asked %d times; %s", x.line, n, r.ErrOut)
		}
	}
}

func TestErrorMentionsPossiblySuccessfulTry(t *testing.T) {
	noPauses(t)
	for _, x := range []struct {
		line         string
		status       int
		answer       string
		code         int
		out, errText string
	}{
		{
			"account freeze alice", 200, `{"account":"alice","on":true,"repeated":true}`,
			cli.ExitDone,
			"account  alice\non       yes\n\nThe account is frozen.\n\nAlready done, " +
				"perhaps by an earlier try of this command.\n", "",
		},
		{
			"order cancel-all alice", 200, `{"orders":[]}`, cli.ExitDone,
			"orders  -\n\nEarlier tries of this command may have cancelled more: " +
				"`exchange actions` shows them.\n", "",
		},
		{"order cancel-all alice --json", 200, `{"orders":[]}`, cli.ExitDone,
			"{\"orders\":[],\"incomplete\":true}\n", ""},
		{
			"order cancel 7", 400, `{"error":"order 7 is not open"}`, cli.ExitUnavailable, "",
			"exchange: order 7 is not open; an earlier try of this command may have cancelled " +
				"it: `exchange actions` shows whether one did\n",
		},
		{"withdraw approve 7", 400, `{"error":"withdrawal 7 is canceled"}`, cli.ExitUsage, "",
			"exchange: withdrawal 7 is canceled\n"},
	} {
		f := newFake(t, 0, "")
		f.answer = func(n int) (int, string) {
			if n == 0 {
				return 503, `{"error":"outcome unknown"}`
			}
			return x.status, x.answer
		}
		runLine(f.environ, words(x.line)...).Want(t, x.code, x.out, x.errText)
		if n := len(f.requests()); n != 2 {
			t.Errorf("%s: asked %d times", x.line, n)
		}
	}
}

func TestServerRefusalsAreShown(t *testing.T) {
	noPauses(t)
	backups := t.TempDir()
	list := append(slices.Concat(repeatable, unlessRepeated()),
		exampleCommand{"backup " + backups, ""})
	for _, x := range list {
		for _, y := range []struct {
			status int
			body   string
			code   int
			want   string
		}{
			{400, `{"error":"there is no such thing"}`, cli.ExitUsage, "there is no such thing"},
			{401, `{"error":"The bearer token is wrong."}`, cli.ExitUsage,
				"wrong (the token is from EXCHANGE_OPERATOR_TOKEN)"},
			{404, `{"detail":"Not found."}`, cli.ExitUsage,
				"the exchange answered 404 Not Found: is "},
			{302, ``, cli.ExitUsage, "the exchange answered 302 Found: is "},
			{500, `oops`, cli.ExitUnavailable, "the exchange answered 500 Internal Server Error"},
			{503, `{"error":"it is damaged","damaged":true}`, cli.ExitBroken, "it is damaged\n"},
		} {
			f := newFake(t, y.status, y.body)
			r := runLine(f.environ, words(x.line)...)
			r.WantError(t, y.code, y.want)
			if n := len(f.requests()); n != 1 && y.status != 500 ||
				strings.Contains(r.ErrOut, "for help") {
				t.Errorf("%s: %d requests, and the error %s", x.line, n, r.ErrOut)
			}
			runLine(f.environ, words(x.line+" --json")...).WantJSONError(t, y.code,
				strings.TrimSpace(y.want))
		}
		f := newFake(t, 503, `{"error":"Too many requests are in flight."}`)
		f.before = func(w http.ResponseWriter) error {
			w.Header().Set("Retry-After", "1")
			return nil
		}
		runLine(f.environ, words(x.line)...).Want(t, cli.ExitUnavailable, "",
			"exchange: Too many requests are in flight.\n")
		if n := len(f.requests()); n != 1 {
			t.Errorf("%s: %d requests, none of them accepted", x.line, n)
		}
		r := runLine([]string{"EXCHANGE_OPERATOR_TOKEN=x", "EXCHANGE_OPERATOR=" + closedPort},
			words(x.line)...)
		r.WantError(t, cli.ExitUnavailable,
			"connect: connection refused; is `exchange serve` running?")
		if strings.Contains(r.ErrOut, "unknown") {
			t.Errorf("nothing was sent, so the outcome is certain: %s", r.ErrOut)
		}
	}
	clitest.WantFiles(t, backups)
}

// An answer without one of its parts would have another meaning: a missing `on` is not `off`.
func TestAnAnswerThatLacksSomethingIsNotBelieved(t *testing.T) {
	noPauses(t)
	optional := map[string]bool{"held_until": true}
	others := unlessRepeated()[len(questions)+len(streaming):]
	for _, x := range slices.Concat(repeatable, questions, others) {
		var whole map[string]any
		d := json.NewDecoder(strings.NewReader(x.answer))
		d.UseNumber()
		worked(t, d.Decode(&whole))
		answers := []string{"oops"}
		for name, value := range whole {
			if optional[name] {
				continue
			}
			delete(whole, name)
			answers = append(answers, string(must(json.Marshal(whole))))
			whole[name] = map[string]any{} // of another kind
			answers = append(answers, string(must(json.Marshal(whole))))
			if name == "closed" {
				whole[name] = false
				answers = append(answers, string(must(json.Marshal(whole))))
			}
			whole[name] = value
		}
		for _, text := range answers {
			f := newFake(t, 200, text)
			runLine(f.environ, words(x.line)...).WantError(t, cli.ExitUnavailable,
				"is not one of an exchange's operator listener")
		}
	}
}
