package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/actors/seal"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/gateway/edge"
	"exchange/gateway/sign"
	"exchange/persistence"
	"exchange/persistence/memory"
	"exchange/persistence/pebble"
)

// A harness is a whole exchange in the test's process, behind an in-memory network. A test can stop
// it, crash it, and start it again on the same store.
type harness struct {
	t      testing.TB
	open   func() persistence.Store
	change func(*actors.Options)
	// of the gateway; without it there are no limits on requests a second
	tune     func(*edge.Options)
	store    persistence.Store
	engine   *actors.Engine
	gateway  *Gateway
	listener *fasthttputil.InmemoryListener
	client   *fasthttp.Client
	nonces   map[string]uint64
	dir      string    // for toPebble
	observed *observed // that clients use; nil: they use the engine
}

// TestMain starts what fasthttp never ends outside of all bubbles: its clock for the header Date,
// and its workers that compress.
func TestMain(m *testing.M) {
	new(fasthttp.ResponseHeader).Header()
	fasthttp.AppendGzipBytes(nil, []byte("a"))
	os.Exit(m.Run())
}

// bubble runs a test on a clock of its own. The pools are empty before and after it, because their
// timers and channels belong to one bubble; periodic goroutines end when nothing is left.
func bubble(t *testing.T, f func(t *testing.T)) {
	emptyPools()
	defer emptyPools()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(5 * time.Minute) })
		f(t)
	})
}

// emptyPools empties all pools: the first collection keeps a second chance, which the second one
// ends.
func emptyPools() {
	runtime.GC()
	runtime.GC()
}

const operatorToken = "operator-token-of-the-tests"

// newHarnessOf starts an exchange that clients use themselves, or through an observer.
func newHarnessOf(t testing.TB, observed bool, change func(*actors.Options)) *harness {
	if !observed {
		return newHarness(t, change)
	}
	h := &harness{t: t, change: change, nonces: map[string]uint64{}}
	h.observe(100 * time.Millisecond)
	h.serve()
	t.Cleanup(h.stop)
	return h
}

// newHarness starts an exchange on a disk in memory; change may alter its options.
func newHarness(t testing.TB, change func(*actors.Options)) *harness {
	disk := memory.NewDisk()
	h := &harness{t: t, change: change, nonces: map[string]uint64{}, dir: t.TempDir()}
	h.open = func() persistence.Store { return memory.Open(disk, persistence.Retention{}) }
	h.start()
	t.Cleanup(h.stop)
	return h
}

// toPebble starts an empty exchange on Pebble, which drops rows permanently and meters long
// queries.
func (h *harness) toPebble(keep *persistence.Retention) {
	h.stop()
	h.open = func() persistence.Store {
		return must(pebble.Open(h.dir, pebble.Options{Logger: quiet(), Retention: *keep}))
	}
	h.start()
}

func quiet() *slog.Logger {
	if os.Getenv("EXCHANGE_TEST_LOG") != "" {
		return slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return slog.New(slog.NewTextHandler(io.Discard, nil))
}

// sealer is that of all engines of the tests.
func (h *harness) sealer() *seal.Sealer {
	return must(seal.New(make([]byte, seal.KeyBytes)))
}

// code is the mailed code of a pending withdrawal; for any other withdrawal it is a code that fits
// nothing.
func (h *harness) code(id uint64) string {
	h.t.Helper()
	r := &committed.PendingWithdrawal{ID: id}
	worked(h.t, h.engine.Ask(r, nil, 0))
	if !r.Found {
		return "2222-2222-2222"
	}
	return h.engine.Code(&r.Withdrawal)
}

// goroutines run each mailbox that wakes in a goroutine of its own: the ordinary ones outlive their
// engine.
type goroutines struct{ mailbox.Runners }

func (goroutines) Schedule(m *mailbox.Mailbox) { go m.Run() }

func (h *harness) options() actors.Options {
	sealer := h.sealer()
	o := actors.Options{Store: h.store, Owner: "test", Limits: actors.DefaultLimits,
		Timing: actors.DefaultTiming, Snapshot: actors.DefaultSnapshot,
		Withdrawal: actors.DefaultWithdrawal,
		Sealer:     func(bool) (*seal.Sealer, error) { return sealer, nil },
		Mail: func(context.Context, *actors.Mail) error {
			return errors.New("the mail server takes nothing")
		},
		KeyMaterial: KeyMaterial, Log: quiet(),
		Exit: func(code int) { panic(fmt.Sprintf("exit %d", code)) }}
	// a machine that stalls for a moment refuses nothing, unless a test is about it
	o.Timing.Request, o.Timing.Stall, o.Timing.OwnerStale = time.Minute, time.Minute, time.Minute
	for _, c := range []string{"BTC", "ETH", "USDT"} {
		o.Currencies = append(o.Currencies, directory.Currency{Code: c, Sign: c[:1]})
	}
	for _, p := range []struct {
		base, quote string
		precision   int
	}{{"BTC", "USDT", 2}, {"ETH", "USDT", 2}, {"ETH", "BTC", 6}} {
		o.Pairs = append(o.Pairs, directory.PairRules{Name: p.base + "_" + p.quote, Base: p.base,
			Quote: p.quote, PricePrecision: p.precision,
			AmountPrecision: 8, MinimumOrderSize: 1000, MaximumOrderSize: 1_000_000e8,
			MarketCollar: 5_000_000, StopCollar: 5_000_000})
	}
	if _, ok := h.t.(*testing.B); !ok {
		o.Scheduler = goroutines{}
	}
	if h.change != nil {
		h.change(&o)
	}
	return o
}

func (h *harness) start() {
	h.store = h.open()
	engine := must(actors.Start(context.Background(), h.options()))
	h.engine = engine
	h.serve()
}

// serve opens the gateway.
func (h *harness) serve() {
	o := edge.Options{Log: quiet(), BodyBytes: 64 << 10, HeaderBytes: 8 << 10, Connections: 1000,
		IdleTimeout: time.Minute, ReadTimeout: time.Minute, WriteTimeout: time.Minute,
		OperatorToken: operatorToken}
	if h.tune != nil {
		h.tune(&o)
	}
	if h.observed != nil {
		o.Cluster = h.observed.standing()
	}
	h.gateway = New(o)
	h.admits()
	h.listener = fasthttputil.NewInmemoryListener()
	go h.gateway.Serve(h.listener) //nolint:errcheck // ends with the listener
	l := h.listener
	h.client = &fasthttp.Client{Dial: func(string) (net.Conn, error) { return l.Dial() },
		MaxConnsPerHost: 1000}
}

// admits opens the API and the stream.
func (h *harness) admits() {
	if x := h.observed; x != nil {
		h.gateway.SetFollower(x.follower.Public, x.follower.Commands())
		return
	}
	h.gateway.SetEngine(h.engine)
}

// stop ends the exchange in order; crash ends it in the middle of its work.
func (h *harness) stop() {
	h.halt()
	h.close()
}

// halt stops the engine.
func (h *harness) halt() {
	h.t.Helper()
	end := h.engine.Stop
	if h.observed != nil {
		end = h.observed.end
	}
	worked(h.t, end(context.Background()))
}

// retune starts the exchange again with a gateway of other options.
func (h *harness) retune(change func(*edge.Options)) {
	h.tune = change
	h.stop()
	h.start()
}

func (h *harness) crash() {
	h.engine.Abandon()
	h.close()
}

func (h *harness) close() {
	h.client.CloseIdleConnections()
	h.gateway.Shutdown(time.Minute)
	h.listener.Close()
	worked(h.t, h.store.Close())
}

// account opens an account with the key "key-NAME" of all permissions.
func (h *harness) account(name string) {
	h.t.Helper()
	h.accountAt(name, "")
}

// accountAt is account with an e-mail address.
func (h *harness) accountAt(name, email string) {
	h.t.Helper()
	h.done(h.engine.CreateAccount("test", name, email))
	h.done(h.engine.CreateKey("test", name, "key-"+name, "secret-"+name, event.AllPermissions, nil))
}

// deposit pays in.
func (h *harness) deposit(name, amount, currency, reference string) {
	h.t.Helper()
	a := must(money.ParseAmount(amount))
	h.done(h.engine.Deposit("test", name, currency, a, reference))
}

// done ends the test if a request to the engine has failed.
func (h *harness) done(_ any, err error) {
	h.t.Helper()
	worked(h.t, err)
}

// stillAt wants an unchanged state.
func (h *harness) stillAt(before [32]byte) {
	h.t.Helper()
	if h.hash() != before {
		h.t.Error("a refused request changed the state")
	}
}

// verify compares both sides of the engine.
func (h *harness) verify() {
	h.t.Helper()
	if err := h.engine.VerifyAtRest(); err != nil {
		h.t.Error(err)
	}
}

// An answer is the reply to a request.
type answer struct {
	status int
	header *fasthttp.ResponseHeader
	body   string
}

// is checks the status of an answer; what names the request.
func (a answer) is(t testing.TB, status int, what ...any) {
	t.Helper()
	if a.status != status {
		t.Errorf("%v: %d %.300s, want %d", what, a.status, a.body, status)
	}
}

// must is like is, and ends the test.
func (a answer) must(t testing.TB, status int, what ...any) {
	t.Helper()
	if a.status != status {
		t.Fatalf("%v: %d %.300s, want %d", what, a.status, a.body, status)
	}
}

// do sends one request as it is. An observer that lost its node, because the machine stalled for a
// moment, answers that nothing was done: such a request is repeated.
func (h *harness) do(method, path, contentType, body string, headers ...string) (a answer) {
	h.t.Helper()
	if h.observed == nil {
		return h.once(method, path, contentType, body, headers...)
	}
	for a = h.once(method, path, contentType, body, headers...); a.status == 503 &&
		len(a.header.Peek("Retry-After")) > 0; runtime.Gosched() {
		a = h.once(method, path, contentType, body, headers...)
	}
	return a
}

// once sends one request once.
func (h *harness) once(method, path, contentType, body string, headers ...string) answer {
	h.t.Helper()
	req, resp := fasthttp.AcquireRequest(), &fasthttp.Response{}
	defer fasthttp.ReleaseRequest(req)
	req.Header.SetMethod(method)
	req.SetRequestURI("http://exchange" + path)
	if contentType != "" {
		req.Header.SetContentType(contentType)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	req.SetBodyString(body)
	resp.SkipBody = method == "HEAD"
	if err := h.client.Do(req, resp); err != nil {
		h.t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer{resp.StatusCode(), &resp.Header, string(resp.Body())}
}

func (h *harness) nextNonce(account string) uint64 {
	h.nonces[account]++
	return h.nonces[account]
}

// signed are the headers of a request whose signed parameters are params ("a=1&b=2", sorted).
func signed(account string, nonce uint64, params string) []string {
	key := "key-" + account
	mac := sign.New([]byte("secret-"+account)).Sign(nil, []byte(key+params))
	return []string{"X-KEY", key, "X-SIGN", string(mac), "X-NONCE", strconv.FormatUint(nonce, 10)}
}

// post sends a signed form; params are sorted and need no escapes.
func (h *harness) post(account, path, params string) answer {
	h.t.Helper()
	return h.do("POST", path, "application/x-www-form-urlencoded", params,
		signed(account, h.nextNonce(account), params)...)
}

// get sends a signed GET.
func (h *harness) get(account, path string) answer {
	h.t.Helper()
	return h.do("GET", path, "", "", signed(account, h.nextNonce(account), "")...)
}

// order is the form of an order, sorted as it is signed.
func order(side, pair, amount, price string) string {
	return "amount=" + amount + "&pair=" + pair + "&price=" + price + "&type=" + side
}

// pretty indents JSON a little: one line for each element of a list.
func pretty(body string) string {
	var list []json.RawMessage
	if json.Unmarshal([]byte(body), &list) != nil || len(list) == 0 {
		return body
	}
	var lines []string
	for _, element := range list {
		var line bytes.Buffer
		json.Compact(&line, element) //nolint:errcheck // it was valid a line before
		lines = append(lines, line.String())
	}
	return strings.Join(lines, "\n")
}

// perSecond is a limit on requests.
func perSecond(n, burst int) edge.Rate { return edge.Rate{PerSecond: n, Burst: burst} }

// Media types of bodies.
const (
	jsonMedia = "application/json"
	formMedia = "application/x-www-form-urlencoded"
)

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
