package operate

import (
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

	"github.com/spf13/cobra"

	"exchange/cmd/exchange/cli"
	"exchange/prove/clitest"
	"exchange/prove/memnet"
)

// network connects clients and servers in memory.
var network memnet.Network

func TestMain(m *testing.M) {
	dial = network.Dial
	os.Exit(m.Run())
}

// commandLine has the operator's commands alone.
var commandLine clitest.Line = func(p *cli.Program) *cobra.Command {
	root := &cobra.Command{Use: "exchange"}
	own := New(p, root.PersistentFlags())
	root.AddCommand(own.TopLevel()...)
	root.AddCommand(cli.Group("config", "", own.OfConfig()...),
		cli.Group("cluster", "", own.OfCluster()...))
	return root
}

// runLine runs one command line.
var runLine = commandLine.Run

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

// A fakeServer answers like the operator's listener and records each request.
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
		runLine(nil, args...).Want(t, 0, `{"account":"alice","id":1,"email":""}`+"\n", "")
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
	runLine([]string{at}, "account", "list").WantError(t, cli.ExitUsage,
		"data/operator.token: no such file or directory; `exchange serve` makes it")
	put("data/operator.token", "")
	runLine([]string{at}, "account", "list").WantError(t, cli.ExitUsage,
		"data/operator.token holds no operator's token: it is empty")
	put("data/operator.token", "two words")
	runLine([]string{at}, "account", "list").WantError(t, cli.ExitUsage, "a token is one word")
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
		if r := runLine(append(x.environ, at), append(x.args, "account", "list")...); r.Code != 0 {
			t.Errorf("%v %v: %+v", x.environ, x.args, r)
		}
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
	if r.Code != 0 || strings.Contains(r.Out, "repeated") ||
		!strings.Contains(r.Out, `"reference":"cli-`) {
		t.Errorf("%+v", r)
	}
	asked := f.requests()
	if len(asked) != 2 || asked[0] != asked[1] {
		t.Errorf("asked %q", asked)
	}
	first := asked[0]
	r = runLine(f.environ, "deposit", "a", "BTC", "1", "--reference", "R", "--json")
	if r.Code != 0 || !strings.Contains(r.Out, `"repeated":true`) {
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
	r := commandLine.RunUntil(ctx, f.environ, "deposit", "a", "BTC", "1", "--reference", "R")
	if n := len(f.requests()); r.Code != cli.ExitUnavailable || n != 1 ||
		!strings.Contains(r.ErrOut, "--reference R") {
		t.Errorf("code %d, asked %d times, %s", r.Code, n, r.ErrOut)
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
	runLine(nil, "health", "--listen", address).Want(t, 0, "ok\n", "")
	runLine(nil, "health", "--listen", "0.0.0.0:"+port, "--json").Want(t, 0, "{\"ok\":true}\n", "")
	runLine([]string{"EXCHANGE_LISTEN=:" + port}, "health").Want(t, 0, "ok\n", "")
	status = http.StatusInternalServerError
	runLine(nil, "health", "--listen", address).WantError(t, cli.ExitUnavailable,
		"unhealthy: HTTP 500 Internal Server Error")
	runLine(nil, "health", "--listen", closedPort).WantError(t, cli.ExitUnavailable,
		"does not answer")
}

// must returns v, or panics at an error.
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
