package gateway_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"exchange/prove/harness"
)

const tradingPage = "../docs/trading.md"

// The page for traders has examples: a line with an account's request, and the answer below it.
// They follow each other on one exchange, at pageTime, which is the page's present. Times may
// differ by less than the page's hours, but not in their unit. Run with -rewrite to rewrite the
// answers, and read the difference.
func TestTradingPageShowsRealAnswers(t *testing.T) {
	harness.Bubble(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Unix(pageTime, 0)))
		page := harness.Must(os.ReadFile(tradingPage))
		h := harness.New(t, nil)
		for _, name := range []string{"alice", "bob"} {
			h.Account(name)
			for _, money := range []string{"100 BTC", "10000000 USDT"} {
				amount, currency, _ := strings.Cut(money, " ")
				h.Deposit(name, amount, currency, name+currency)
			}
		}
		rewrite := flag.Lookup("rewrite").Value.String() == "true"
		examples := 0
		block := regexp.MustCompile("(?s)```text\n.*?```")
		written := block.ReplaceAllStringFunc(string(page), func(text string) string {
			text = strings.TrimSuffix(strings.TrimPrefix(text, "```text\n"), "```")
			rest := pageExamples.ReplaceAllString(text, "")
			if strings.TrimSpace(rest) != "" {
				t.Errorf("no request: %s", rest)
			}
			text = pageExamples.ReplaceAllStringFunc(text, func(example string) string {
				request, answer := example, ""
				if at := pageAnswer.FindStringIndex(example); at != nil {
					request, answer = example[:at[0]], example[at[0]+1:]
				}
				examples++
				got := pageExample(h, unwrapped(request), unwrapped(answer), rewrite)
				if answer == "" {
					return request
				}
				return request + "\n" + wrapped(got)
			})
			return "```text\n" + text + "```"
		})
		if examples < 20 {
			t.Errorf("the page has %d examples", examples)
		}
		if rewrite {
			harness.Worked(t, os.WriteFile(tradingPage, []byte(written), 0o644))
		}
	})
}

// pageTime is the present of the page, in Unix seconds.
const pageTime = 1_700_000_000

var (
	pageExamples = regexp.MustCompile(`(?m)^\w+: (GET|POST) .*(\n    .*)*` +
		`(\n[1-5][0-9]{2} .*(\n    .*)*)?`)
	pageRequest = regexp.MustCompile(`^(\w+): (GET|POST) (/\S+) ?(\S*)$`)
	pageAnswer  = regexp.MustCompile(`\n[1-5][0-9]{2} `)
	pageMoments = regexp.MustCompile(`=17000[0-9]{5}\b`)
	pageSeconds = regexp.MustCompile(`"(date|timestamp|time)":17000[0-9]{5}(\.[0-9]+)?\b`)
	pageMillis  = regexp.MustCompile(`"(date|timestamp|time)":17000[0-9]{8}\b`)
	pageEnds    = regexp.MustCompile(`"expire_time":[0-9.]+`)
	pageDue     = regexp.MustCompile(`"cancel_at":17000[0-9]{5}(\.[0-9]+)?\b`)
)

// pageExample sends an example's request, and returns the answer as the page should show it. A read
// may have to wait for triggered orders. A request without an answer on the page must be accepted.
func pageExample(h *harness.Exchange, request, want string, rewrite bool) (got string) {
	t := h.T.(*testing.T)
	t.Helper()
	m := pageRequest.FindStringSubmatch(request)
	if m == nil {
		t.Fatalf("no request: %s", request)
	}
	now := time.Now()
	form := pageMoments.ReplaceAllStringFunc(m[4], func(moment string) string {
		at, _ := strconv.ParseInt(moment[1:], 10, 64)
		return "=" + strconv.FormatInt(now.Unix()+at-pageTime, 10)
	})
	ask := func() {
		var a harness.Answer
		if m[2] == "POST" {
			a = h.Post(m[1], m[3], form)
		} else {
			a = h.Get(m[1], m[3])
		}
		got = fmt.Sprintf("%d %s", a.Status, a.Body)
		got = pageMillis.ReplaceAllString(got, `"$1":`+fmt.Sprint(pageTime)+"250")
		got = pageSeconds.ReplaceAllString(got, `"$1":`+fmt.Sprint(pageTime)+".25")
		got = pageDue.ReplaceAllString(got, `"cancel_at":`+fmt.Sprint(pageTime+60)+".25")
		got = pageEnds.ReplaceAllStringFunc(got, func(end string) string {
			name, at, _ := strings.Cut(end, ":")
			f, _ := strconv.ParseFloat(at, 64)
			return fmt.Sprintf("%s:%d", name, int64(f)-now.Unix()+pageTime)
		})
	}
	if ask(); m[2] == "GET" && got != want && !rewrite {
		harness.Eventually(t, request+" is answered with "+want,
			func() bool { ask(); return got == want })
	}
	if want == "" {
		if !strings.HasPrefix(got, "20") {
			t.Errorf("%s\n got %s", request, got)
		}
	} else if got != want && !rewrite {
		t.Errorf("%s\n got %s\nwant %s", request, got, want)
	}
	return got
}

// unwrapped joins the lines of a request or an answer on the page.
func unwrapped(answer string) string {
	lines := strings.Split(answer, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "    ")
	}
	return strings.Join(lines, "")
}

// wrapped breaks an answer after commas, into lines of the page's width.
func wrapped(answer string) string {
	var b strings.Builder
	width := 0
	for part := range strings.SplitAfterSeq(answer, ",") {
		if width > 0 && width+len(part) > 96 {
			b.WriteString("\n    ")
			width = 4
		}
		b.WriteString(part)
		width += len(part)
	}
	return b.String()
}
