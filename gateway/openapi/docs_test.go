package openapi_test

import (
	"bytes"
	"mime"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"exchange/gateway/api"
	"exchange/gateway/edge"
	"exchange/gateway/openapi"
	"exchange/prove/harness"
)

var (
	linked = regexp.MustCompile(
		`(?i)(?:src|href|action|data|poster|srcset)\s*=\s*["']?([^"'\s>]+)`)
	cssLinks = regexp.MustCompile(`(?i)url\(\s*["']?([^"')]{0,60})|@import\s*(.{0,60})`)
)

func TestThePageOfTheAPIComesFromHereAlone(t *testing.T) {
	do := harness.Bare(edge.Options{})
	var files []string
	for _, path := range []string{"/docs", "/docs/", "/docs?proxy=http://elsewhere.example/",
		"/docs/?url=http://elsewhere.example/x.json"} {
		a := do("GET", path, "Accept", "text/html")
		if a.StatusCode() != 200 || string(a.Header.ContentType()) != "text/html; charset=utf-8" {
			t.Fatalf("%s: %d %s", path, a.StatusCode(), a.Header.ContentType())
		}
		for _, must := range []string{"default-src 'none'", "script-src 'self' 'unsafe-inline'",
			"connect-src 'self'"} {
			if policy := string(a.Header.Peek("Content-Security-Policy")); !strings.Contains(policy,
				must) {
				t.Errorf("%s: Content-Security-Policy is %q", path, policy)
			}
		}
		page := string(a.Body())
		if !strings.Contains(page, `"swaggerJsonUrl":"/api/openapi.json"`) ||
			strings.Contains(page, "elsewhere") || strings.Contains(page, "@import") {
			t.Errorf("%s:\n%s", path, page)
		}
		files = nil
		for _, m := range linked.FindAllStringSubmatch(page, -1) {
			if m[1] == "/trade" || m[1] == "/account" {
				continue
			}
			name, ok := strings.CutPrefix(m[1], "/docs/")
			if !ok {
				t.Errorf("%s: the page links to %s", path, m[1])
			}
			files = append(files, name)
		}
	}
	slices.Sort(files)
	want := slices.Clone(openapi.Files())
	if slices.Sort(want); !slices.Equal(files, want) {
		t.Errorf("the page links to %v, served are %v", files, want)
	}
}

func TestTheFilesOfThePageAreServed(t *testing.T) {
	do := harness.Bare(
		edge.Options{Limits: edge.Limits{PublicRate: edge.Rate{PerSecond: 1, Burst: 1000}},
			RateEntries: 10})
	kinds := map[string][]string{"css": {"text/css"},
		"js": {"text/javascript", "application/javascript"}, "png": {"image/png"}}
	for _, name := range openapi.Files() {
		path := "/docs/" + name
		plain := do("GET", path)
		kind, _, err := mime.ParseMediaType(string(plain.Header.ContentType()))
		if extension := name[strings.LastIndexByte(name, '.')+1:]; err != nil ||
			!slices.Contains(kinds[extension], kind) {
			t.Errorf("%s: Content-Type %q", path, plain.Header.ContentType())
		}
		if plain.StatusCode() != 200 || len(plain.Body()) < 100 ||
			harness.HeaderOf(plain, "X-RateLimit-Limit") != "1000" ||
			string(plain.Header.Peek("Cache-Control")) != "no-cache" ||
			string(plain.Header.Peek("Access-Control-Allow-Origin")) != "*" {
			t.Errorf("%s: %d, %d bytes\n%s", path, plain.StatusCode(), len(plain.Body()),
				&plain.Header)
		}
		packed := do("GET", path+"/", "Accept-Encoding", "gzip, br")
		body := harness.Must(packed.BodyUncompressed())
		if packed.StatusCode() != 200 || !bytes.Equal(body, plain.Body()) {
			t.Errorf("%s: %d, gzip has other content", path, packed.StatusCode())
		}
		etag := string(plain.Header.Peek("ETag"))
		if len(etag) < 3 || etag[0] != '"' || etag[len(etag)-1] != '"' ||
			strings.Count(etag, `"`) != 2 {
			t.Errorf("%s: ETag %s is no quoted text", path, etag)
		}
		for _, known := range []string{etag, `"other", ` + etag, "W/" + etag} {
			again := do("GET", path, "If-None-Match", known)
			if again.StatusCode() != 304 || len(again.Body()) > 0 ||
				string(again.Header.Peek("ETag")) != etag {
				t.Errorf("%s with %s: %d, ETag %s", path, known, again.StatusCode(),
					again.Header.Peek("ETag"))
			}
		}
		if again := do("GET", path, "If-None-Match", `"other"`); again.StatusCode() != 200 ||
			!bytes.Equal(again.Body(), plain.Body()) {
			t.Errorf("%s with another ETag: %d", path, again.StatusCode())
		}
		if strings.HasSuffix(name, ".css") {
			for _, m := range cssLinks.FindAllStringSubmatch(string(plain.Body()), -1) {
				if !strings.HasPrefix(m[1], "data:") {
					t.Errorf("%s loads %s", path, m[0])
				}
			}
		}
	}
	for _, path := range []string{"/docs/x", "/docs/swagger-ui.js", "/docs/embed.go",
		"/docs/swagger-ui.css.gz", "/docs/%zz", "/docs/..", "/docs/../docs", "/docs/x/y",
		"/docs//"} {
		if a := do("GET", path); a.StatusCode() != 404 ||
			string(a.Body()) != harness.Detail(api.NotFound.Detail) ||
			string(a.Header.ContentType()) != "application/json" {
			t.Errorf("%s: %d %s", path, a.StatusCode(), a.Body())
		}
	}
	if a := do("POST", "/docs"); a.StatusCode() != 405 ||
		string(a.Header.Peek("Allow")) != "GET, HEAD, OPTIONS" {
		t.Errorf("POST: %d", a.StatusCode())
	}
}

func TestPagesAreSentPackedAsTheClientTakesThem(t *testing.T) {
	do := harness.Bare(edge.Options{})
	for _, path := range []string{"/docs", "/docs/swagger-ui-bundle.js", "/docs/swagger-ui.css",
		"/api/openapi.json"} {
		plain, vary := do("GET", path), "Accept-Encoding"
		if path == "/docs" {
			vary += ", Cookie" // for the theme
		}
		for accept, coding := range map[string]string{"gzip, deflate, br": "br", "gzip": "gzip",
			"br;q=0, gzip": "gzip", "*": "br", "deflate": "", "gzip;q=0": ""} {
			a := do("GET", path, "Accept-Encoding", accept)
			if got := string(a.Header.ContentEncoding()); got != coding ||
				string(a.Header.Peek("Vary")) != vary ||
				string(a.Header.Peek("Cache-Control")) != "no-cache" {
				t.Errorf("%s for %q is in %q, want %q\n%s", path, accept, got, coding, &a.Header)
			}
			tag := string(a.Header.Peek("ETag"))
			if same := do("GET", path, "Accept-Encoding", accept, "If-None-Match",
				tag); same.StatusCode() != 304 {
				t.Errorf("%s in %q with its own tag %q: %d", path, coding, tag, same.StatusCode())
			}
			body, err := a.BodyUncompressed()
			if err != nil || !bytes.Equal(body, plain.Body()) ||
				coding != "" && len(a.Body())*2 > len(body) {
				t.Errorf("%s in %q: %d bytes of %d, %v", path, coding,
					len(a.Body()), len(body), err)
			}
		}
	}
}

// The page has the colours of the other pages, and links to them if there are any.
func TestThePageOfTheAPIIsLikeTheOthers(t *testing.T) {
	for _, without := range []bool{false, true} {
		do := harness.Bare(edge.Options{NoPages: without})
		for theme, want := range map[string]string{"dark": "dark", "light": "light", "x": "",
			`"><script>`: ""} {
			page := string(do("GET", "/docs", "Cookie", "theme="+theme).Body())
			if !strings.Contains(page, `<html data-theme="`+want+`" lang="en">`) ||
				!strings.Contains(page, `<meta name="viewport"`) ||
				strings.Contains(page, `href="/trade"`) == without {
				t.Errorf("%q, without pages %v:\n%s", theme, without, page)
			}
		}
	}
}

// One address gets a bounded number of bytes of pages a second, in all its requests together.
func TestPagesAreCountedByTheirBytes(t *testing.T) {
	clock := new(harness.TestClock)
	rate := edge.Rate{PerSecond: 1_000_000, Burst: 3_000_000}
	do := harness.Bare(
		edge.Options{Limits: edge.Limits{DocsRate: rate, PublicRate: harness.PerSecond(1, 1000)},
			RateEntries: 10, ForTests: edge.ForTests{Clock: clock.Ns.Load}})
	const large = "/docs/swagger-ui-bundle.js"
	size := len(do("GET", large).Body())
	if size < 1_000_000 || size > rate.Burst {
		t.Fatalf("the largest page has %d bytes", size)
	}
	sent := size
	for sent+size <= rate.Burst {
		if a := do("GET", large); a.StatusCode() != 200 {
			t.Fatalf("%d after %d bytes", a.StatusCode(), sent)
		}
		sent += size
	}
	refused := do("GET", large)
	if after := string(refused.Header.Peek("Retry-After")); refused.StatusCode() != 429 ||
		after == "" || harness.HeaderOf(refused, "X-RateLimit-Limit") != strconv.Itoa(rate.Burst) ||
		len(refused.Header.ContentEncoding()) > 0 || len(refused.Header.Peek("ETag")) > 0 ||
		string(refused.Header.Peek("Cache-Control")) != "no-store" {
		t.Errorf("%d after %d bytes\n%s", refused.StatusCode(), sent, &refused.Header)
	}
	packed := do("GET", large, "Accept-Encoding", "br")
	if n := len(packed.Body()); packed.StatusCode() != 200 && sent+n <= rate.Burst {
		t.Errorf("packed: %d", packed.StatusCode())
	}
	for range 100 { // neither costs more than a request
		if a := do("HEAD", large); a.StatusCode() != 200 {
			t.Fatalf("HEAD: %d", a.StatusCode())
		}
		if a := do("GET", large, "If-None-Match",
			harness.HeaderOf(do("HEAD", large), "ETag")); a.StatusCode() != 304 {
			t.Fatalf("a page already cached by the client: %d", a.StatusCode())
		}
	}
	clock.Pass(3 * time.Second)
	if a := do("GET", large); a.StatusCode() != 200 {
		t.Errorf("after a pause: %d", a.StatusCode())
	}
	if edge.DefaultDocsRate.PerSecond != 4_000_000 || edge.DefaultDocsRate.Burst < size {
		t.Errorf("%+v, the largest page has %d bytes", edge.DefaultDocsRate, size)
	}
}

func TestThePageMayBeSwitchedOff(t *testing.T) {
	do := harness.Bare(edge.Options{NoDocs: true})
	for _, path := range []string{"/docs", "/docs/", "/docs/swagger-ui.css"} {
		if a := do("GET", path); a.StatusCode() != 404 {
			t.Errorf("%s: %d", path, a.StatusCode())
		}
	}
	if a := do("GET", "/api/openapi.json"); a.StatusCode() != 200 ||
		bytes.Contains(a.Body(), []byte("/docs")) {
		t.Errorf("the document: %d, it describes /docs: %v", a.StatusCode(),
			bytes.Contains(a.Body(), []byte("/docs")))
	}
}
