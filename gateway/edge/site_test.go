package edge_test

import (
	"bytes"
	"errors"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"exchange/gateway/edge"
	"exchange/gateway/listen"
	"exchange/gateway/openapi"
	"exchange/prove/harness"
	"exchange/web"
)

// assets returns the addresses of all files that a page names.
func assets(page []byte) (list []string) {
	for _, m := range regexp.MustCompile(`(?:href|src)="(/web/[^"]+)"`).FindAllSubmatch(page, -1) {
		list = append(list, string(m[1]))
	}
	return list
}

func TestTheRootLeadsToTheTerminal(t *testing.T) {
	do := harness.Bare(edge.Options{})
	for _, method := range []string{"GET", "HEAD"} {
		a := do(method, "/")
		if a.StatusCode() != 302 || string(a.Header.Peek("Location")) != "/trade" ||
			len(a.Header.Peek("Access-Control-Allow-Origin")) > 0 {
			t.Errorf("%s /: %d\n%s", method, a.StatusCode(), &a.Header)
		}
	}
}

func TestEachPageHasTheHeadersThatGuardIt(t *testing.T) {
	plain := harness.Bare(edge.Options{})
	tls := harness.Bare(edge.Options{Certificate: new(listen.Certificate)})
	for _, address := range web.Addresses() {
		for _, path := range []string{address, address + "/", address + "?pair=ETH_USDT"} {
			for what, do := range map[string]func(string, string, ...string) *fasthttp.Response{
				"plain": plain, "TLS": tls} {
				a := do("GET", path, "Origin", "https://elsewhere.example")
				want := map[string]string{
					"Content-Type":  "text/html; charset=utf-8",
					"Cache-Control": "no-cache",
					"Vary":          "Accept-Encoding, Cookie",
					"Content-Security-Policy": "default-src 'none'; script-src 'self'; " +
						"style-src 'self'; img-src 'self' data:; font-src 'self'; " +
						"connect-src 'self'; base-uri 'none'; form-action 'none'; " +
						"frame-ancestors 'none'; require-trusted-types-for 'script'; " +
						"trusted-types lit-html",
					"X-Content-Type-Options":       "nosniff",
					"Referrer-Policy":              "no-referrer",
					"Cross-Origin-Opener-Policy":   "same-origin",
					"Cross-Origin-Resource-Policy": "same-origin",
					"Permissions-Policy": "camera=(), microphone=(), geolocation=(), " +
						"payment=()",
					"Strict-Transport-Security":     "",
					"Access-Control-Allow-Origin":   "",
					"Access-Control-Expose-Headers": "",
					"X-RateLimit-Limit":             "",
				}
				if what == "TLS" {
					want["Strict-Transport-Security"] = "max-age=31536000"
				}
				for name, value := range want {
					if got := harness.HeaderOf(a, name); got != value {
						t.Errorf("%s over %s: %s is %q, want %q", path, what, name, got, value)
					}
				}
				if a.StatusCode() != 200 || len(a.Header.Peek("ETag")) < 3 {
					t.Errorf("%s: %d, ETag %s", path, a.StatusCode(), a.Header.Peek("ETag"))
				}
			}
		}
	}
}

func TestAPageComesInTheLookThatItsCookiesAskFor(t *testing.T) {
	do := harness.Bare(edge.Options{})
	for cookie, look := range map[string]string{"": `data-theme="" data-palette=""`,
		"theme=dark":                         `data-theme="dark" data-palette=""`,
		"other=1; palette=blue; theme=light": `data-theme="light" data-palette="blue"`,
		`theme=x"><script>`:                  `data-theme="" data-palette=""`} {
		a := do("GET", "/trade", "Cookie", cookie)
		if !bytes.Contains(a.Body(), []byte(look)) {
			t.Errorf("with the cookie %q:\n%s", cookie, a.Body())
		}
		tag := string(a.Header.Peek("ETag"))
		again := do("GET", "/trade", "Cookie", cookie, "If-None-Match", tag)
		if again.StatusCode() != 304 || len(again.Body()) > 0 ||
			len(again.Header.Peek("Content-Security-Policy")) == 0 {
			t.Errorf("a page already cached by the client: %d", again.StatusCode())
		}
		other := do("GET", "/trade", "Cookie", "theme=dark; palette=blue", "If-None-Match", tag)
		if other.StatusCode() != 200 {
			t.Errorf("another look with the tag of %q: %d", cookie, other.StatusCode())
		}
	}
}

func TestAFileIsKeptForEverAndAnotherVersionIsNotFound(t *testing.T) {
	do := harness.Bare(edge.Options{})
	list := assets(do("GET", "/trade").Body())
	if len(list) < 10 {
		t.Fatalf("the page names %q", list)
	}
	kinds := map[string]string{"js": "text/javascript; charset=utf-8", "svg": "image/svg+xml",
		"mjs": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}
	for _, path := range list {
		plain, packed := do("GET", path), do("GET", path, "Accept-Encoding", "gzip, br")
		for _, a := range []*fasthttp.Response{plain, packed} {
			if a.StatusCode() != 200 ||
				harness.HeaderOf(a, "Cache-Control") != "public, max-age=31536000, immutable" ||
				harness.HeaderOf(a,
					"Content-Type") != kinds[path[strings.LastIndexByte(path, '.')+1:]] ||
				harness.HeaderOf(a, "X-Content-Type-Options") != "nosniff" ||
				harness.HeaderOf(a, "Cross-Origin-Resource-Policy") != "same-origin" ||
				harness.HeaderOf(a, "Access-Control-Allow-Origin") != "" {
				t.Errorf("%s: %d\n%s", path, a.StatusCode(), &a.Header)
			}
		}
		body, err := packed.BodyUncompressed()
		if err != nil || !bytes.Equal(body, plain.Body()) ||
			harness.HeaderOf(packed, "ETag") == harness.HeaderOf(plain, "ETag") {
			t.Errorf("%s: packed it is another file: %v", path, err)
		}
	}
	old := regexp.MustCompile(`[0-9a-f]{16}`).ReplaceAllString(list[0], "0123456789abcdef")
	for _, path := range []string{old, "/web", "/web/", list[0] + "x", "/web/../trade",
		strings.Replace(list[0], "icon.svg", "trade.html", 1),
		strings.Replace(list[0], "icon.svg", "vendor/lit-html/LICENSE", 1),
		strings.Replace(list[0], "icon.svg", "web.go", 1), "/trade/x", "/Trade", "/trade.html"} {
		if a := do("GET", path); a.StatusCode() != 404 {
			t.Errorf("%s: %d", path, a.StatusCode())
		}
	}
	for _, path := range []string{"/", "/trade", list[0]} {
		for _, method := range []string{"POST", "DELETE", "OPTIONS"} {
			if a := do(method, path); a.StatusCode() != 405 ||
				harness.HeaderOf(a, "Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d", method, path, a.StatusCode())
			}
		}
	}
}

// Without pages their addresses are answered like any unknown one.
func TestThePagesMayBeSwitchedOff(t *testing.T) {
	files := assets(harness.Bare(edge.Options{})("GET", "/trade").Body())
	do := harness.Bare(edge.Options{NoPages: true,
		DemoMails: func() ([]web.Mail, error) { return nil, nil }})
	want := do("GET", "/nowhere")
	for _, path := range slices.Concat(web.Addresses(), files, []string{"/", web.MailsAddress,
		web.Folder}) {
		for _, method := range []string{"GET", "HEAD", "POST", "OPTIONS"} {
			if a, want := do(method, path), do(method, "/nowhere"); a.StatusCode() !=
				want.StatusCode() || !bytes.Equal(a.Body(), want.Body()) {
				t.Errorf("%s %s: %d %s", method, path, a.StatusCode(), a.Body())
			}
		}
	}
	if a := do("GET", "/docs"); want.StatusCode() != 404 || a.StatusCode() != 200 {
		t.Errorf("/nowhere: %d, /docs: %d", want.StatusCode(), a.StatusCode())
	}
}

// An office behind one address opens the pages, and its programs have all their requests still.
func TestPagesCountForThemselvesAlone(t *testing.T) {
	clock := new(harness.TestClock)
	do := harness.Bare(edge.Options{RateEntries: 10, ForTests: edge.ForTests{Clock: clock.Ns.Load},
		Limits: edge.Limits{PublicRate: edge.Rate{PerSecond: 1, Burst: 2},
			WebRate: edge.Rate{PerSecond: 1000, Burst: 10 * edge.LeastVisit}}})
	for i := range 10 {
		if a := do("HEAD", "/trade"); a.StatusCode() != 200 {
			t.Fatalf("visit %d: %d", i, a.StatusCode())
		}
	}
	for _, path := range []string{"/", "/trade", "/web/0/icon.svg"} {
		a := do("GET", path)
		if a.StatusCode() != 429 || harness.HeaderOf(a, "Retry-After") == "" ||
			harness.HeaderOf(a, "Cache-Control") != "no-store" {
			t.Errorf("%s: %d\n%s", path, a.StatusCode(), &a.Header)
		}
	}
	for range 2 {
		if a := do("GET", openapi.Path, "Accept-Encoding", "br"); a.StatusCode() != 200 {
			t.Errorf("the API: %d", a.StatusCode())
		}
	}
	if a := do("GET", openapi.Path); a.StatusCode() != 429 {
		t.Errorf("the API, a third time: %d", a.StatusCode())
	}
	sum := 0
	do = harness.Bare(edge.Options{})
	for _, path := range append(assets(do("GET", "/trade").Body()), "/trade") {
		sum += len(do("GET", path, "Accept-Encoding", "gzip").Body())
	}
	if visits := edge.DefaultWebRate.Burst / sum; visits < 200 {
		t.Errorf("%d browsers may open the page at once; it has %d bytes", visits, sum)
	}
}

// A page is served before there is an engine, on a follower, and while the exchange stops.
func TestPagesNeedNoEngine(t *testing.T) {
	h, _ := harness.ANode(t)
	pages := func(when string, status int) {
		t.Helper()
		a := h.Do("GET", "/trade", "", "")
		api := h.Do("GET", "/api/v1/time/", "", "")
		if a.Status != 200 || api.Status != status {
			t.Errorf("%s: the page has %d, the API %d", when, a.Status, api.Status)
		}
		for _, path := range assets([]byte(a.Body)) {
			h.Do("GET", path, "", "").Is(t, 200, when, path)
		}
	}
	pages("leads", 200)
	h.Gateway.SetFollower(nil, nil)
	pages("follows", 503)
	h.Gateway.SetEngine(h.Engine)
	if a := harness.Bare(edge.Options{})("GET", "/trade"); a.StatusCode() != 200 {
		t.Errorf("before there is an engine: %d", a.StatusCode())
	}
}

// Scripts in a page of the operator's address could call the operator's API.
func TestTheOperatorsListenerServesNoPage(t *testing.T) {
	h := harness.New(t, nil)
	ask := harness.AsOperator(t, h.Gateway)
	for _, path := range append(web.Addresses(), "/", "/docs") {
		if a := ask("GET", path, ""); a.Status != 404 || strings.Contains(a.Body, "<") {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
	}
}

// A page in a sandbox has an origin of its own. So the page at /docs makes cross-origin requests,
// which the API must allow.
func TestThePageOfTheAPIHasAnOriginOfItsOwn(t *testing.T) {
	do := harness.Bare(edge.Options{})
	if got := harness.HeaderOf(do("GET", "/docs"),
		"Content-Security-Policy"); !strings.HasSuffix(got,
		"; sandbox allow-scripts allow-forms allow-popups") {
		t.Errorf("its policy is %q", got)
	}
	for _, path := range append(openapi.Files(), "") {
		if a := do("GET", "/docs/"+path, "Origin", "null"); a.StatusCode() != 200 ||
			harness.HeaderOf(a, "Access-Control-Allow-Origin") != "*" {
			t.Errorf("/docs/%s: %d", path, a.StatusCode())
		}
	}
	if a := do("GET", openapi.Path, "Origin", "null"); harness.HeaderOf(a,
		"Access-Control-Allow-Origin") != "*" {
		t.Error("the page cannot read the document")
	}
}

// The demo's mails are shown as text, in the demo alone.
func TestTheDemoAloneShowsItsMails(t *testing.T) {
	if a := harness.Bare(edge.Options{})("GET", web.MailsAddress); a.StatusCode() != 404 {
		t.Errorf("an exchange that is no demo: %d %s", a.StatusCode(), a.Body())
	}
	var list []web.Mail
	var fails error
	do := harness.Bare(edge.Options{Log: slog.New(slog.DiscardHandler),
		DemoMails: func() ([]web.Mail, error) { return list, fails }})
	shows := func(want string) {
		t.Helper()
		a := do("GET", web.MailsAddress, "Cookie", "theme=dark")
		if a.StatusCode() != 200 || !bytes.Contains(a.Body(), []byte(want)) ||
			!bytes.Contains(a.Body(), []byte(`data-theme="dark"`)) ||
			harness.HeaderOf(a, "Cache-Control") != "no-store" ||
			harness.HeaderOf(a, "Content-Security-Policy") != edge.PagePolicy {
			t.Errorf("%d %s\n%s", a.StatusCode(), a.Header.String(), a.Body())
		}
	}
	shows("There are none yet")
	list = []web.Mail{{Time: time.Unix(1_700_000_000, 0), To: "bob@demo.example",
		Subject: "Your <code>", Text: "</pre><script>{{web}}</script>"}}
	shows("<h2>Your &lt;code&gt;</h2>\n<p>To bob@demo.example, " +
		"<time>2023-11-14 22:13:20 UTC</time>" +
		"</p>\n<pre tabindex=\"0\">&lt;/pre&gt;&lt;script&gt;{{web}}&lt;/script&gt;</pre>")
	fails = errors.New("no folder")
	if a := do("GET", web.MailsAddress); a.StatusCode() != 500 ||
		bytes.Contains(a.Body(), []byte("folder")) {
		t.Errorf("without a folder: %d %s", a.StatusCode(), a.Body())
	}
}
