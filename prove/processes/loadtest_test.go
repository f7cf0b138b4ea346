//go:build prove

package processes

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"exchange/loadtest"
	"exchange/prove/exchangetest"
)

// The load tester drives the real program on Pebble.

// patientWithDisks keeps an exchange from refusing requests while a disk is briefly slow.
const patientWithDisks = "EXCHANGE_TIMING_STALL_MS=9000"

func startedForLoad(t *testing.T, more ...string) *exchangetest.Server {
	s := exchangetest.New(t, "pebble:"+filepath.Join(t.TempDir(), "store"), more...)
	s.Env = append(s.Env, patientWithDisks)
	s.Start()
	return s
}

// testOf returns the options of a test of s for two seconds.
func testOf(s *exchangetest.Server) loadtest.Options {
	return loadtest.Options{Addresses: []string{s.Listen}, Operator: s.Operator, Token: s.Token(),
		Name: "loadtest", Accounts: 8, Connections: 4, Threads: 1, Duration: 2 * time.Second,
		Model: "random-walk", Timeout: 20 * time.Second,
		Subscribers: map[string]int{"diff": 1}}
}

func TestARunOfTheProgramIsReportedAndVerified(t *testing.T) {
	s := startedForLoad(t)
	dir := t.TempDir()
	file, page := filepath.Join(dir, "report.json"), filepath.Join(dir, "report.html")
	out, errOut, code := s.Command("loadtest", "--address", s.Listen, "--duration", "2s",
		"--accounts", "6", "--connections", "4", "--mix", "50,30,20", "--instructed", "50",
		"--allow-refused", "10", // post-only orders are, too
		"--subscribers", "diff=2,trades=1,ticker=1,orderbook.20=1,book=1,own=2", "--seed", "3",
		"--json", file, "--html", page)
	if code != 0 || !strings.Contains(out, "No difference was found.") ||
		!strings.Contains(out, "the audit is clean") || !strings.Contains(errOut, "s of 2s: ") {
		t.Fatalf("exit code %d:\n%s\n%s", code, out, errOut)
	}
	b := must[[]byte](t)(os.ReadFile(file))
	var r loadtest.Report
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	succeeds(t, d.Decode(&r))
	v := r.Verification
	if r.Requests == 0 || r.Done+r.Late+r.Refused+r.Unknown != r.Requests ||
		r.Unknown > 0 || r.Latency.Count != int64(r.Done) || r.Lates.Count != int64(r.Late) ||
		len(r.Timeline) < 2 || len(r.Pairs) != 1 || r.Options.Seed != 3 ||
		r.Options.Mix != "50,30,20" || r.Interrupted {
		t.Errorf("%+v", r)
	}
	if v == nil || v.Found > 0 || v.Orders == 0 || v.Cancels == 0 || v.Trades == 0 ||
		v.Accounts != 6 || v.Books != 1 || v.Updates == 0 || v.Audit != "clean" {
		t.Errorf("%+v", v)
	}
	if s := r.Server; s == nil || s.Version == "" || s.Store != "pebble" || s.Silent != "" ||
		s.Orders == 0 || s.CPU <= 0 || s.Append <= 0 || s.Batch <= 0 || s.Restarts != 0 {
		t.Errorf("%+v", s)
	}
	if len(r.Subscribers) != len(loadtest.Channels) || len(r.Operations) != 8 {
		t.Errorf("%+v %+v", r.Subscribers, r.Operations)
	}
	var sum int64
	for _, op := range r.Operations {
		h, err := hdrhistogram.Decode([]byte(op.HDR))
		if err != nil || h.TotalCount() != op.Latency.Count || op.Latency.P50 > op.Latency.P99 ||
			op.Latency.P99 > op.Latency.Max {
			t.Errorf("%+v: %v", op, err)
		}
		sum += op.Latency.Count
	}
	for _, c := range r.Subscribers {
		if c.Events == 0 || c.Lost > 0 {
			t.Errorf("%+v", c)
		}
	}
	if sum+r.Lates.Count+r.Refusals.Count != int64(r.Requests) {
		t.Errorf("operations have %d latencies, %d were late, %d refused, of %d requests", sum,
			r.Lates.Count, r.Refusals.Count, r.Requests)
	}
	comparedWithItself(t, s, file)
	html, err := os.ReadFile(page)
	if text := string(html); err != nil || !strings.Contains(text, "<svg") ||
		!strings.Contains(text, "BTC_USDT") || !strings.HasSuffix(text, "</html>\n") {
		t.Errorf("%v: %.500s", err, text)
	}
	nothingStays(t, s)
}

// comparedWithItself compares a report with itself.
func comparedWithItself(t *testing.T, s *exchangetest.Server, file string) {
	t.Helper()
	out, errOut, code := s.Command("loadtest", "compare", file, file, "--worse", "0%")
	if code != 0 || !strings.Contains(out, "The settings are the same.") ||
		!strings.Contains(out, "records/append") {
		t.Errorf("exit code %d:\n%s\n%s", code, out, errOut)
	}
}

func TestOrdersGoInBatchesAndOverSockets(t *testing.T) {
	s := startedForLoad(t)
	s.Env = append(s.Env, "EXCHANGE_STREAM_MESSAGES_PER_SECOND=1000000")
	s.Kill()
	s.Start()
	for _, c := range []struct{ sockets, batch, reads int }{{0, 20, 20}, {9, 0, 0}, {8, 10, 0}} {
		o := testOf(s)
		o.Sockets, o.Batch, o.Instructed, o.Subscribers["own"] = c.sockets, c.batch, 40, 8
		o.Mix = loadtest.Mix{Place: 60 - c.reads, Cancel: 40, Read: c.reads}
		r := must[*loadtest.Report](t)(loadtest.Run(context.Background(), o))
		v := r.Verification
		if v == nil || v.Found > 0 || v.Orders < 100 || v.Cancels == 0 || v.Audit != "clean" ||
			r.Unknown > 0 || r.Done+r.Late+r.Refused != r.Requests {
			t.Errorf("%+v: %+v, %+v", c, r, v)
		}
		for _, x := range r.Subscribers {
			if x.Channel == "own" && (x.Lost > 0 || x.Subscribers != 8 ||
				x.Lag.Count < int64(v.Orders)*9/10) {
				t.Errorf("%+v: %+v %+v", c, x, x.Lag)
			}
		}
		nothingStays(t, s)
	}
}

// nothingStays checks that no order is in the book and no key works.
func nothingStays(t *testing.T, s *exchangetest.Server) {
	t.Helper()
	_, body, err := s.Client.Get(nil, "http://"+s.Listen+"/api/v1/orderbook/BTC_USDT/")
	if err != nil || string(body) != `{"sell":[],"buy":[]}` {
		t.Errorf("%s %v", body, err)
	}
	var keys struct{ Keys []struct{ Revoked bool } }
	if _, err := s.Call("GET", "/operator/v1/keys?account=loadtest-1", nil, &keys); err != nil {
		t.Fatal(err)
	}
	for _, k := range keys.Keys {
		if !k.Revoked {
			t.Errorf("a key was not revoked: %+v", keys)
		}
	}
}

func TestWrongArgumentsAndAServerThatIsNotThere(t *testing.T) {
	s := startedForLoad(t)
	for _, c := range []struct {
		args []string
		say  string
		code int
	}{
		{[]string{"--mix", "1,2"}, "--mix", 64},
		{[]string{"--model", "up"}, "--model", 64},
		{[]string{"--instructed", "101"}, "--instructed", 64},
		{[]string{"--rate", "-1"}, "--rate", 64},
		{[]string{"--stages", "1s@1"}, "--duration and --stages", 64}, // all of these have one
		{[]string{"--rate", "many"}, "rate", 64},
		{[]string{"--subscribers", "news=1"}, "--subscribers", 64},
		{[]string{"--ramp"}, "--p99", 64},
		{[]string{"--batch", "51"}, "--batch", 64},
		{[]string{"--sockets", "63"}, "--sockets 64", 64},
		{[]string{"--sockets", "64", "--mix", "50,30,20"}, "--mix", 64},
		{[]string{"--subscribers", "own=65"}, "own", 64},
		{[]string{"--name", "UP"}, "--name", 64},
		{[]string{"--keys", filepath.Join(t.TempDir(), "none")}, "keys cannot be read", 64},
		{[]string{"--keys", "x", "--accounts", "3"}, "--accounts", 64},
		{[]string{"--json", filepath.Join(t.TempDir(), "none", "report.json")}, "report.json", 64},
		{[]string{"more"}, "one argument too many", 64},
		{[]string{"--pairs", "7"}, "--synthetic-pairs 7", 64},
		{[]string{"--address", exchangetest.FreeAddress(t)}, "was not answered", 75},
	} {
		args := c.args
		if c.args[0] != "--address" {
			args = append([]string{"--address", s.Listen}, args...)
		}
		out, errOut, code := s.Command(append([]string{"loadtest", "--duration", "1s"}, args...)...)
		if code != c.code || !strings.Contains(errOut, c.say) ||
			!strings.HasPrefix(errOut, "exchange: ") && c.code == 64 || out != "" {
			t.Errorf("%q: exit code %d: %s%s", c.args, code, out, errOut)
		}
	}
	for _, name := range []string{"--rate=0", "--ramp=false", "--duration=30s"} {
		_, errOut, code := s.Command("loadtest", "--stages", "1s@1", name)
		what, _, _ := strings.Cut(name, "=")
		if code != 64 || !strings.Contains(errOut, what+" and --stages exclude each other") {
			t.Errorf("%s: exit code %d: %s", name, code, errOut)
		}
	}
}

func TestKeysOfAFileTradeWithoutAnOperator(t *testing.T) {
	s := exchangetest.New(t, "pebble:"+filepath.Join(t.TempDir(), "store"))
	s.Demo()
	s.Start()
	o := testOf(s)
	o.Warmup = 500 * time.Millisecond
	o.Token, o.Operator, o.Keys, o.Rate = "", "",
		[]loadtest.Key{{Key: "demo-alice", Secret: "demo-alice-secret"},
			{Key: "demo-bob", Secret: "demo-bob-secret"}}, 100
	for range 2 { // the second finds the remains of the first
		o.LeaveOrders = true
		r := must[*loadtest.Report](t)(loadtest.Run(context.Background(), o))
		v := r.Verification
		if r.Differs() || r.Done == 0 || v.Orders == 0 || v.Accounts != 2 || v.Audit != "" ||
			v.Books != 3 || v.Incomplete != "" || r.Requests+r.Unsent != 200 ||
			r.Warmup.Requests+r.Warmup.Unsent != 50 {
			t.Errorf("%+v %+v", r, v)
		}
		if o.Seed++; o.Seed == 2 && len(v.NotChecked) == 0 {
			t.Error("it is not said that sums were not compared")
		}
	}
}

// Killed in the middle of a run, the server comes back. Requests without an outcome are looked up,
// and none counts as refused.
func TestAServerThatIsKilledMeanwhileIsVerified(t *testing.T) {
	s := startedForLoad(t)
	o := testOf(s)
	o.Mix = loadtest.Mix{Place: 100} // orders alone are found out about
	r := loaded(t, o, func() { s.Kill(); s.Start() })
	v := r.Verification
	if r.Unknown == 0 || r.Differs() || v.UnknownIn+v.UnknownOut == 0 || v.Audit != "clean" ||
		v.Books != 1 {
		t.Errorf("%+v %+v", r, v)
	}
	if c := r.Subscribers; len(c) != 1 || c[0].Lost == 0 {
		t.Errorf("%+v", c)
	}
}

// The wait for a server that is killed permanently, or stands still, is bounded and logged, and
// Ctrl-C ends it; the measurements are reported.
func TestAServerThatDoesNotComeBackEndsTheTest(t *testing.T) {
	for name, wait := range map[string]time.Duration{"in time": 2 * time.Second,
		"by Ctrl-C": time.Hour, "stopped": 2 * time.Second, "stopped, by Ctrl-C": time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := startedForLoad(t)
			o := testOf(s)
			o.Wait, o.Timeout = wait, 3*time.Second
			ctx, end := context.WithCancel(context.Background())
			defer end()
			killed, waits := make(chan struct{}), make(chan struct{})
			loads := &watched{text: "s of 2s: ", seen: killed}
			waiting := &watched{text: "waiting up to " + wait.String() + " (--wait)", seen: waits}
			o.Progress = io.MultiWriter(loads, waiting)
			go func() {
				<-killed
				if strings.HasPrefix(name, "stopped") {
					s.Signal(syscall.SIGSTOP)
				} else {
					s.Kill()
				}
				if <-waits; wait == time.Hour {
					end()
				}
			}()
			began := time.Now()
			r, err := loadtest.Run(ctx, o)
			if r == nil || r.Verification == nil || r.Verification.Incomplete == "" ||
				r.Requests == 0 || r.Differs() {
				t.Errorf("%v %+v", err, r)
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("it ends after %v", took)
			}
		})
	}
}

func TestARampSaysWhichRateHeld(t *testing.T) {
	s := startedForLoad(t)
	o := testOf(s)
	o.Duration, o.Ramp, o.P99, o.Rate = 200*time.Millisecond, true, time.Hour, 50
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	seen := make(chan struct{})
	o.Progress = &watched{text: "50/s asked: ", seen: seen}
	go func() { <-seen; cancel() }() // one rate is enough
	r := must[*loadtest.Report](t)(loadtest.Run(ctx, o))
	if r.Ramp == nil || r.Ramp.Bound != 3_600_000 || r.Differs() {
		t.Errorf("%+v %+v", r.Ramp, r.Verification)
	}
}

func TestSyntheticPairsAreTradedAndAreNotForgotten(t *testing.T) {
	s := startedForLoad(t, "--synthetic-pairs", "5")
	o := testOf(s)
	o.Duration, o.Model, o.Rate = time.Second, "hot-pair", 600
	r := must[*loadtest.Report](t)(loadtest.Run(context.Background(), o))
	v := r.Verification
	if r.Differs() || len(r.Pairs) != 6 || v.Books != 6 || v.Accounts != 8 || v.Audit != "clean" ||
		v.Incomplete != "" {
		t.Errorf("%+v %+v", r, v)
	}
	hot, synthetic := uint64(0), uint64(0) // together: on a slow machine one may have none
	for _, p := range r.Pairs {
		if p.Pair == "BTC_USDT" {
			hot = p.Requests
		} else {
			synthetic += p.Requests
		}
	}
	if synthetic == 0 || hot < synthetic {
		t.Errorf("%+v", r.Pairs)
	}
	if code := s.Terminate(); code != 0 {
		t.Fatal(code)
	}
	for i, arg := range s.Args {
		if arg == "--synthetic-pairs" {
			s.Args[i+1] = "2"
		}
	}
	s.Refuses(64, "SYN0003", "is not configured, but accounts hold", "put it back")
}

// A watched writer signals when a text has been written.
type watched struct {
	text string
	seen chan struct{}
	all  bytes.Buffer
}

func (w *watched) Write(b []byte) (int, error) {
	w.all.Write(b)
	if w.seen != nil && strings.Contains(w.all.String(), w.text) {
		close(w.seen)
		w.seen = nil
	}
	return len(b), nil
}
