//go:build prove

package clients

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"exchange/prove/exchangetest"
)

// A keyProgram is one of several programs that use the plain key of the demo's alice in turn.
type keyProgram struct {
	name string
	uses func(t *testing.T, s *exchangetest.Server) (output string, err error)
	// each text is in its output
	says []string
}

var keyPrograms = []keyProgram{
	{"README, shell", func(t *testing.T, s *exchangetest.Server) (string, error) {
		text, _, _ := strings.Cut(asking(t, s, example(t, "sh", "call()")), "\ncall ")
		return run(text+"\ncall alice /api/v1/wallets/\n", "sh", "-e")
	}, []string{`"currency":"BTC"`}},
	{"traders, Python", func(t *testing.T, s *exchangetest.Server) (string, error) {
		text, _, _ := strings.Cut(asking(t, s, example(t, "python", "def call")), "\norder =")
		return run(text+"\nprint(call('/api/v1/wallets/'))\n", "python3", "-")
	}, []string{"'currency': 'BTC'"}},
	{"the demo's first text", func(t *testing.T, s *exchangetest.Server) (string, error) {
		_, text, _ := strings.Cut(s.Log(), "  call() {")
		text, _, _ = strings.Cut(text, "\nBob sells")
		return run("call() {"+text, "sh", "-e")
	}, []string{`"oid":`}},
	{"exchange call", func(_ *testing.T, s *exchangetest.Server) (string, error) {
		out, faults, code := s.Command("call", "alice", "/api/v1/wallets/", "--demo", "--address",
			s.Listen)
		if code != 0 {
			return out, fmt.Errorf("exit code %d: %s", code, faults)
		}
		return out, nil
	}, []string{"200 OK", `"currency": "BTC"`}},
	{"page", func(_ *testing.T, s *exchangetest.Server) (string, error) {
		return run("", "node", "page.mjs", "http://"+s.Listen, "demo-alice", "demo-alice-secret")
	}, []string{"3 200"}},
	{"page of the API", func(_ *testing.T, s *exchangetest.Server) (string, error) {
		return run("", "node", "docs.mjs", "http://"+s.Listen, "--ahead")
	}, []string{"signed"}},
	ccxtProgram,
}

var ccxtProgram = keyProgram{"ccxt", func(_ *testing.T, s *exchangetest.Server) (string, error) {
	return run(`import { connect } from "./connect.mjs";
const { client } = await connect("http://`+s.Listen+`", "ccxt");
console.log((await client("demo-alice", "demo-alice-secret").fetchBalance()).BTC.total > 0);
`, "node", "--input-type=module", "-")
}, []string{"true"}}

// run runs a third-party program, with a text as its input.
func run(text, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Stdin = strings.NewReader(text)
	out, err := c.CombinedOutput()
	return string(out), err
}

// works fails the test unless the program has succeeded.
func (p *keyProgram) works(t *testing.T, s *exchangetest.Server, after string) {
	t.Helper()
	out, err := p.uses(t, s)
	if err != nil {
		t.Errorf("%s after %s: %v\n%s", p.name, after, err, out)
	}
	for _, text := range p.says {
		if !strings.Contains(out, text) {
			t.Errorf("%s after %s lacks %q:\n%s", p.name, after, text, out)
		}
	}
}

// One plain key serves all programs of our examples in any order: all use milliseconds. After a
// program with nanoseconds ours still work, and ccxt is refused, as docs/trading.md says.
func TestAPlainKeyServesProgramsInAnyOrder(t *testing.T) {
	needs(t, "sh", "openssl", "curl", "python3", "node")
	installed(t, "ccxt")
	s := demo(t, "pebble:"+t.TempDir())
	last := "nothing"
	next := func(p keyProgram) {
		p.works(t, s, last)
		last = p.name
	}
	for i, a := range keyPrograms { // all pairs of neighbours, each once
		next(a)
		for _, b := range keyPrograms[i+1:] {
			next(a)
			next(b)
		}
	}
	next(keyPrograms[0])

	for _, p := range keyPrograms {
		signed(t, s, http.MethodGet, "/api/v1/wallets/", "", time.Now().UnixNano())
		if last = "nanoseconds"; p.name == ccxtProgram.name {
			if out, err := p.uses(t, s); err == nil ||
				!strings.Contains(out, "AuthenticationError") ||
				!strings.Contains(out, "Wrong Nonce") {
				t.Errorf("ccxt after nanoseconds: %v\n%s", err, out)
			}
			continue
		}
		next(p)
	}
}
