package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"exchange/config"
	"exchange/gateway/api"
	"exchange/prove/memnet"
)

// network connects clients and servers in memory.
var network memnet.Network

func TestMain(m *testing.M) {
	dial = network.Dial
	os.Exit(m.Run())
}

// A result is the outcome of one run of the command line.
type result struct {
	code        int
	out, errOut string
}

func runLine(environ []string, args ...string) result {
	var out, errOut bytes.Buffer
	code := execute(context.Background(), args, environ, &out, &errOut)
	return result{code, out.String(), errOut.String()}
}

func (r result) want(t *testing.T, code int, out, errOut string) {
	t.Helper()
	if r.code != code || r.out != out || r.errOut != errOut {
		t.Errorf("got code %d, out\n%s\nerr\n%s\nwant code %d, out\n%s\nerr\n%s", r.code, r.out,
			r.errOut, code, out, errOut)
	}
}

// wantError expects no output, one line with text on stderr, and the code.
func (r result) wantError(t *testing.T, code int, text string) {
	t.Helper()
	if r.code != code || r.out != "" || !strings.Contains(r.errOut, text) {
		t.Errorf("got code %d, out %q, err %q; want code %d and %q", r.code, r.out, r.errOut, code,
			text)
	}
	if strings.Contains(r.errOut, "Usage:") || strings.Count(r.errOut, "\n") > 2 {
		t.Errorf("this is a wall of text: %s", r.errOut)
	}
}

const testToken = "a-token-of-the-test"

// startServer serves in memory until the test ends, over TLS if there is a certificate.
func startServer(t *testing.T, h http.Handler, cert *tls.Certificate) *httptest.Server {
	s := &httptest.Server{Listener: network.Listen(""), Config: &http.Server{Handler: h}}
	if t.Cleanup(s.Close); cert == nil {
		s.Start()
	} else {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{*cert}}
		s.StartTLS()
	}
	return s
}

// A fakeServer answers like the operator's listener and notes each request.
type fakeServer struct {
	t       *testing.T
	url     string // host:port
	environ []string

	mu     sync.Mutex                      // held while a request is answered
	asked  []string                        // "POST /path body"
	named  []string                        // X-Operator of each
	answer func(n int) (int, string)       // of the n-th request, from 0
	before func(http.ResponseWriter) error // may take the answer over
}

func newFake(t *testing.T, status int, body string) *fakeServer {
	f := &fakeServer{t: t, answer: func(int) (int, string) { return status, body }}
	s := startServer(t, f, nil)
	f.url = strings.TrimPrefix(s.URL, "http://")
	f.environ = []string{"EXCHANGE_OPERATOR=" + f.url, "EXCHANGE_OPERATOR_TOKEN=" + testToken}
	return f
}

func (f *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Error(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.asked)
	f.asked = append(f.asked, strings.TrimSpace(r.Method+" "+r.RequestURI+" "+string(body)))
	if got := r.Header.Get("Authorization"); got != "Bearer "+testToken {
		f.t.Errorf("authorization is %q", got)
	}
	f.named = append(f.named, r.Header.Get("X-Operator"))
	if r.Method == http.MethodPost && r.Header.Get("Content-Type") != "application/json" {
		f.t.Errorf("content type is %q", r.Header.Get("Content-Type"))
	}
	if f.before != nil && f.before(w) != nil {
		return
	}
	status, text := f.answer(n)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// requests returns the requests since the last call.
func (f *fakeServer) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := f.asked
	f.asked = nil
	return asked
}

// names returns the operators' names of all requests.
func (f *fakeServer) names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.named)
}

func (f *fakeServer) wantAsked(want ...string) {
	f.t.Helper()
	if got := strings.Join(f.requests(), "\n"); got != strings.Join(want, "\n") {
		f.t.Errorf("asked\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func noPauses(t *testing.T) {
	old := pauses
	pauses = make([]time.Duration, len(old))
	t.Cleanup(func() { pauses = old })
}

func TestFlagsStandBeforeOrAfterTheArguments(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	worked(t, os.WriteFile(file, []byte(testToken+"\n"), 0o600))
	f := newFake(t, 200, `{"account":"alice","id":1,"email":""}`)
	flags := []string{"--operator", f.url, "--operator-token-file=" + file, "--json", "--email",
		"a@b.c"}
	for _, args := range [][]string{
		append([]string{"account", "create", "alice"}, flags...),
		append(append([]string{"account", "create"}, flags...), "alice"),
		append(append([]string{"--json", "--operator", f.url, "--operator-token-file", file,
			"account", "create"}, flags[4:]...), "alice"),
		append(append([]string{"account", "--json", "--operator", f.url, "create",
			"--operator-token-file", file}, flags[4:]...), "alice"),
	} {
		runLine(nil, args...).want(t, 0, `{"account":"alice","id":1,"email":""}`+"\n", "")
	}
	if n := len(f.requests()); n != 4 {
		t.Errorf("asked %d times", n)
	}
}

func TestWhereTheTokenIsFound(t *testing.T) {
	t.Chdir(t.TempDir())
	f := newFake(t, 200, `{"accounts":[]}`)
	at := "EXCHANGE_OPERATOR=" + f.url
	put := func(name, token string) {
		t.Helper()
		worked(t, os.MkdirAll(filepath.Dir(name), 0o700))
		worked(t, os.WriteFile(name, []byte(token), 0o600))
	}
	runLine([]string{at}, "account", "list").wantError(t, exitUsage,
		"data/operator.token: no such file or directory; `exchange serve` makes it")
	put("data/operator.token", "")
	runLine([]string{at}, "account", "list").wantError(t, exitUsage,
		"data/operator.token holds no operator's token: it is empty")
	put("data/operator.token", "two words")
	runLine([]string{at}, "account", "list").wantError(t, exitUsage, "a token is one word")
	put("data/operator.token", testToken+"\n")
	put("other/operator.token", "wrong")
	put("named", testToken)
	for _, x := range []struct {
		environ []string
		args    []string
	}{
		{nil, nil},
		{[]string{"EXCHANGE_OPERATOR_TOKEN="}, nil},
		{[]string{"EXCHANGE_OPERATOR_TOKEN=" + testToken,
			"EXCHANGE_OPERATOR_TOKEN_FILE=other/operator.token"}, nil},
		{[]string{"EXCHANGE_OPERATOR_TOKEN_FILE=named", "EXCHANGE_DATA=other"}, nil},
		{[]string{"EXCHANGE_DATA=data"}, nil},
		{[]string{"EXCHANGE_OPERATOR_TOKEN=wrong"}, []string{"--operator-token-file", "named"}},
	} {
		if r := runLine(append(x.environ, at), append(x.args, "account", "list")...); r.code != 0 {
			t.Errorf("%v %v: %+v", x.environ, x.args, r)
		}
	}
}

// wantJSONError expects exactly one object {"error"} on stderr.
func wantJSONError(t *testing.T, r result, code int, text string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(r.errOut))
	d.DisallowUnknownFields()
	var e struct{ Error string }
	if err := d.Decode(&e); err != nil || d.More() || r.out != "" || r.code != code ||
		!strings.Contains(e.Error, text) {
		t.Errorf("got code %d, out %q, err %q; want code %d and %q", r.code, r.out, r.errOut, code,
			text)
	}
}

// closedPort is an address without a listener.
const closedPort = "127.0.0.1:1"

// hangUp closes the connection without an answer.
func hangUp(w http.ResponseWriter) error {
	c, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		err = errors.Join(errors.New("closed"), c.Close())
	}
	return err
}

func TestADepositIsRepeatedUnderItsReferenceUntilItsOutcomeIsKnown(t *testing.T) {
	noPauses(t)
	f := newFake(t, 0, "")
	f.answer = func(n int) (int, string) {
		if n == 0 {
			return 503, `{"error":"The outcome is unknown."}`
		}
		var in struct{ Reference string }
		if err := json.Unmarshal([]byte(f.asked[n][strings.Index(f.asked[n], "{"):]),
			&in); err != nil || in.Reference == "" {
			t.Errorf("%q has no reference", f.asked[n])
		}
		return 200,
			fmt.Sprintf(
				`{"deposit":1,"account":"a","currency":"BTC","amount":1,"balance":1,"reference":%q,"repeated":true}`,
				in.Reference)
	}
	r := runLine(f.environ, "deposit", "a", "BTC", "1", "--json")
	if r.code != 0 || strings.Contains(r.out, "repeated") ||
		!strings.Contains(r.out, `"reference":"cli-`) {
		t.Errorf("%+v", r)
	}
	asked := f.requests()
	if len(asked) != 2 || asked[0] != asked[1] {
		t.Errorf("asked %q", asked)
	}
	first := asked[0]
	r = runLine(f.environ, "deposit", "a", "BTC", "1", "--reference", "R", "--json")
	if r.code != 0 || !strings.Contains(r.out, `"repeated":true`) {
		t.Errorf("a reference of the user's own may have been credited by somebody else: %+v", r)
	}
	f.requests()
	if runLine(f.environ, "deposit", "a", "BTC", "1"); f.requests()[0] == first {
		t.Error("two deposits got the same reference")
	}
}

func TestAnInterruptEndsTheRepeating(t *testing.T) {
	f := newFake(t, 0, "")
	ctx, cancel := context.WithCancel(context.Background())
	f.before = func(w http.ResponseWriter) error { cancel(); return hangUp(w) }
	var out, errOut bytes.Buffer
	code := execute(ctx, []string{"deposit", "a", "BTC", "1", "--reference", "R"}, f.environ, &out,
		&errOut)
	if n := len(f.requests()); code != exitUnavailable || n != 1 ||
		!strings.Contains(errOut.String(), "--reference R") {
		t.Errorf("code %d, asked %d times, %s", code, n, errOut.String())
	}
}

func TestHealth(t *testing.T) {
	status := http.StatusOK
	s := startServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			t.Errorf("asked %s", r.URL.Path)
		}
		w.WriteHeader(status)
	}), nil)
	address := strings.TrimPrefix(s.URL, "http://")
	_, port, _ := net.SplitHostPort(address)
	runLine(nil, "health", "--listen", address).want(t, 0, "ok\n", "")
	runLine(nil, "health", "--listen", "0.0.0.0:"+port, "--json").want(t, 0, "{\"ok\":true}\n", "")
	runLine([]string{"EXCHANGE_LISTEN=:" + port}, "health").want(t, 0, "ok\n", "")
	status = http.StatusInternalServerError
	runLine(nil, "health", "--listen", address).wantError(t, exitUnavailable,
		"it answers 500 Internal Server Error")
	runLine(nil, "health", "--listen", closedPort).wantError(t, exitUnavailable,
		"does not answer")
}

func TestConfigExampleIsAcceptedByConfigCheck(t *testing.T) {
	example := runLine(nil, "config", "example")
	example.want(t, 0, config.Example(), "")
	file := filepath.Join(t.TempDir(), "exchange.yaml")
	worked(t, os.WriteFile(file, []byte(example.out), 0o600))
	r := runLine([]string{"EXCHANGE_LIMIT=1"}, "config", "check", "--config", file)
	if r.code != 0 || !strings.HasPrefix(r.out,
		"The configuration is good: listen 127.0.0.1:8080,") ||
		!strings.Contains(r.errOut, "EXCHANGE_LIMIT names no option") {
		t.Errorf("%+v", r)
	}
	if r := runLine([]string{"EXCHANGE_CONFIG=" + file}, "config", "check",
		"--json"); r.code != 0 || !strings.HasPrefix(r.out, `{"ok":true,"summary":"listen`) {
		t.Errorf("%+v", r)
	}
	runLine(nil, "config", "check", "--config", file, "--listen", "x", "--log-level", "y").want(t,
		exitUsage, "",
		"exchange: the configuration has 2 problems:\n"+
			"  - log.level is \"y\" (--log-level): write one of debug, info, warn, error.\n"+
			"  - listen is \"x\" (--listen): write host:port with a port from 0 to 65535, such "+
			"as 127.0.0.1:8080.\n")
}

func TestServeRefusesAWrongConfiguration(t *testing.T) {
	runLine(nil, "serve").wantError(t, exitUsage,
		"`exchange config example > exchange.yaml` makes a sample")
	runLine(nil, "serve", "--demo", "--operator", "0.0.0.0:8081").wantError(t, exitUsage,
		"bearer token would cross the network without TLS")
	runLine(nil, "serve", "--demo=maybe").wantError(t, exitUsage,
		`demo is "maybe" (--demo): write true or false.`)
	runLine([]string{"EXCHANGE_DEMO=1"}, "serve", "--listen", "0.0.0.0:1").wantError(t, exitUsage,
		"with demo only a loopback address")
	wantJSONError(t, runLine(nil, "serve", "--json"), exitUsage,
		"nothing is said about what to trade")
	r := runLine(nil, "serve", "--demo", "--store", "redis://:hunter2@h:1/x")
	r.wantError(t, exitUsage, "the database must be a number")
	if strings.Contains(r.errOut, "hunter2") {
		t.Errorf("the password is shown: %s", r.errOut)
	}
}

// What serve refuses without a look at its store, config check refuses, and both say all of it.
func TestConfigCheckRefusesTheFilesThatServeRefuses(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cluster := filepath.Join(dir, "cluster")
	if r := runLine(nil, "cluster", "init", cluster, "a=127.0.0.1:1",
		"b=127.0.0.1:2", "c=127.0.0.1:3"); r.code != 0 {
		t.Fatal(r)
	}
	const three = "CLUSTER_NODE=a CLUSTER_NODES=a=127.0.0.1:1,b=127.0.0.1:2,c=127.0.0.1:3 " +
		"CLUSTER_FOLDER="
	missing, short := filepath.Join(dir, "missing"), file("short", "x\n", 0o600)
	wide := file("wide", strings.Repeat("ab", 32), 0o644)
	for given, want := range map[string][]string{
		"TLS_CERT_FILE=" + missing + " TLS_KEY_FILE=" + missing +
			" METRICS_LISTEN=127.0.0.1:0 METRICS_TOKEN_FILE=" + short +
			" SECRET_KEY_FILE=" + wide: {"TLS: ", missing, short + " has 1 characters",
			wide + " has mode 0644"},
		"OPERATOR=unix:" + strings.Repeat("x", 200):        {"its path has 2"},
		"OPERATOR=127.0.0.1:0 OPERATOR_TOKEN_FILE=" + wide: {"wide has mode 0644"},
		three + missing:                     {"cluster: ", "cluster.id"},
		three + filepath.Join(cluster, "b"): {"cluster: ", "the certificate is of b.voter"},
	} {
		environ := []string{"EXCHANGE_DEMO=1", "EXCHANGE_LISTEN=127.0.0.1:0",
			"EXCHANGE_DATA=" + filepath.Join(dir, "data")}
		for _, x := range strings.Fields(given) {
			environ = append(environ, "EXCHANGE_"+x)
		}
		for _, command := range [][]string{{"config", "check"}, {"serve"}} {
			r := runLine(environ, command...)
			for _, text := range want {
				if r.code != exitUsage || !strings.Contains(r.errOut, text) {
					t.Errorf("%s: code %d, %s; want %q", given, r.code, r.errOut, text)
				}
			}
		}
	}
}

// The same of folders, names and addresses. What a disk that is mounted late can mend is 75.
func TestConfigCheckRefusesTheFoldersThatServeRefuses(t *testing.T) {
	dir := t.TempDir()
	file, none := filepath.Join(dir, "file"), filepath.Join(dir, "none")
	worked(t, os.WriteFile(file, nil, 0o600))
	example := filepath.Join(t.TempDir(), "example.yaml")
	worked(t, os.WriteFile(example, []byte(config.Example()), 0o600))
	isFile, noFolder := "mkdir "+file+": not a directory", "there is no folder "+none
	for given, want := range map[string]struct {
		code int
		text string
	}{
		"ARCHIVE=" + file:                       {64, isFile},
		"ARCHIVE=" + file + "/a":                {64, "not a directory"},
		"STORE=pebble:" + file:                  {64, isFile},
		"STORE=pebble:/dev/null":                {64, "not a directory"},
		"DATA=" + file:                          {64, isFile},
		"OPERATOR=unix:" + file:                 {64, "something else under this name"},
		"OPERATOR=unix:" + none + "/s":          {64, "the operator's socket cannot listen: "},
		"CONFIG=" + example + " LISTEN=a..b:80": {64, "the API cannot listen: listen tcp: "},
		"DATA=" + none + "/d":                   {75, noFolder},
		"STORE=pebble:" + none + "/s":           {75, noFolder},
		"ARCHIVE=" + none + "/a":                {75, noFolder},
		"SECRET_KEY_FILE=" + none + "/k":        {75, noFolder},

		"ARCHIVE=" + none + "/a STORE=pebble:" + file: {64, noFolder},
	} {
		environ := []string{"EXCHANGE_DATA=" + filepath.Join(dir, "data")}
		if !strings.HasPrefix(given, "CONFIG=") {
			environ = append(environ, "EXCHANGE_DEMO=1", "EXCHANGE_LISTEN=127.0.0.1:0")
		}
		for _, x := range strings.Fields(given) {
			environ = append(environ, "EXCHANGE_"+x)
		}
		var said [2]string
		for i, command := range [][]string{{"config", "check"}, {"serve"}} {
			r := runLine(environ, append(command, "--log-level", "error")...)
			if said[i] = r.errOut; r.code != want.code || !strings.Contains(r.errOut, want.text) {
				t.Errorf("%s %s: code %d, %s; want %v", command, given, r.code, r.errOut, want)
			}
		}
		if said[0] != said[1] {
			t.Errorf("config check says %q, and serve %q", said[0], said[1])
		}
		wantNames(t, dir, "file")
	}
}

func TestVersion(t *testing.T) {
	if r := runLine(nil, "version"); r.code != 0 || !strings.HasPrefix(r.out, "exchange ") ||
		strings.Count(r.out, "\n") != 1 {
		t.Errorf("%+v", r)
	}
	var v map[string]any
	if r := runLine(nil, "version", "--json"); json.Unmarshal([]byte(r.out), &v) != nil ||
		v["version"] != api.Version || v["commit"] == nil || v["go"] == "" {
		t.Errorf("%+v", r)
	}
}

// The document of the API names this version, too: recorded/testdata/openapi.json has it.
func TestTheChangelogHasTheProgramsVersion(t *testing.T) {
	text := must(os.ReadFile("../../CHANGELOG.md"))
	if !strings.Contains(string(text), "\n## "+api.Version+"\n") {
		t.Errorf("CHANGELOG.md has no entry of version %s", api.Version)
	}
}

func TestExitCodes(t *testing.T) {
	plain := errors.New("x")
	for _, x := range []struct {
		err  error
		want int
	}{
		{nil, exitDone},
		{plain, exitBroken},
		{withExit(exitFenced, plain), exitFenced},
		{fmt.Errorf("more: %w", withExit(exitUnavailable, plain)), exitUnavailable},
		{withExit(exitBroken, withExit(exitUnavailable, plain)), exitUnavailable},
		{withExit(exitBroken, nil), exitDone},
	} {
		if got := exitCode(x.err); got != x.want {
			t.Errorf("%v: %d, want %d", x.err, got, x.want)
		}
	}
}

// must returns what came without an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// worked ends the test at an error.
func worked(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
