package harness

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
	"exchange/gateway"
	"exchange/gateway/edge"
	"exchange/gateway/sign"
	"exchange/persistence"
	"exchange/persistence/memory"
	"exchange/persistence/pebble"
)

// An Exchange is a whole exchange in the test's process, behind an in-memory network. A test can
// stop it, crash it, and start it again on the same store.
type Exchange struct {
	T      testing.TB
	Open   func() persistence.Store
	Change func(*actors.Options)
	// of the gateway; without it there are no limits on requests a second
	Tune     func(*edge.Options)
	Store    persistence.Store
	Engine   *actors.Engine
	Gateway  *gateway.Gateway
	Listener *fasthttputil.InmemoryListener
	client   *fasthttp.Client
	Nonces   map[string]uint64
	dir      string    // for toPebble
	Observed *observed // that clients use; nil: they use the engine
}

// init starts what fasthttp never ends outside of all bubbles: its clock for the header Date, and
// its workers that compress.
func init() {
	new(fasthttp.ResponseHeader).Header()
	fasthttp.AppendGzipBytes(nil, []byte("a"))
}

// Bubble runs a test on a clock of its own. The pools are empty before and after it, because their
// timers and channels belong to one bubble; periodic goroutines end when nothing is left.
func Bubble(t *testing.T, f func(t *testing.T)) {
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

const OperatorToken = "operator-token-of-the-tests"

// NewOf starts an exchange that clients use themselves, or through an observer.
func NewOf(t testing.TB, observed bool, change func(*actors.Options)) *Exchange {
	if !observed {
		return New(t, change)
	}
	h := &Exchange{T: t, Change: change, Nonces: map[string]uint64{}}
	h.Observe(100 * time.Millisecond)
	h.Serve()
	t.Cleanup(h.Stop)
	return h
}

// New starts an exchange on a disk in memory; change may alter its options.
func New(t testing.TB, change func(*actors.Options)) *Exchange {
	disk := memory.NewDisk()
	h := &Exchange{T: t, Change: change, Nonces: map[string]uint64{}, dir: t.TempDir()}
	h.Open = func() persistence.Store { return memory.Open(disk, persistence.Retention{}) }
	h.Start()
	t.Cleanup(h.Stop)
	return h
}

// ToPebble starts an empty exchange on Pebble, which drops rows permanently and meters long
// queries.
func (h *Exchange) ToPebble(keep *persistence.Retention) {
	h.Stop()
	h.Open = func() persistence.Store {
		return Must(pebble.Open(h.dir, pebble.Options{Logger: Quiet(), Retention: *keep}))
	}
	h.Start()
}

func Quiet() *slog.Logger {
	if os.Getenv("EXCHANGE_TEST_LOG") != "" {
		return slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return slog.New(slog.NewTextHandler(io.Discard, nil))
}

// sealer is that of all engines of the tests.
func (h *Exchange) sealer() *seal.Sealer {
	return Must(seal.New(make([]byte, seal.KeyBytes)))
}

// Code is the mailed code of a pending withdrawal; for any other withdrawal it is a code that fits
// nothing.
func (h *Exchange) Code(id uint64) string {
	h.T.Helper()
	r := &committed.PendingWithdrawal{ID: id}
	Worked(h.T, h.Engine.Ask(r, nil, 0))
	if !r.Found {
		return "2222-2222-2222"
	}
	return h.Engine.Code(&r.Withdrawal)
}

// goroutines run each mailbox that wakes in a goroutine of its own: the ordinary ones outlive their
// engine.
type goroutines struct{ mailbox.Runners }

func (goroutines) Schedule(m *mailbox.Mailbox) { go m.Run() }

func (h *Exchange) Options() actors.Options {
	sealer := h.sealer()
	o := actors.Options{Store: h.Store, Owner: "test", Limits: actors.DefaultLimits,
		Timing: actors.DefaultTiming, Snapshot: actors.DefaultSnapshot,
		Withdrawal: actors.DefaultWithdrawal,
		Sealer:     func(bool) (*seal.Sealer, error) { return sealer, nil },
		Mail: func(context.Context, *actors.Mail) error {
			return errors.New("the mail server takes nothing")
		},
		KeyMaterial: gateway.KeyMaterial, Log: Quiet(),
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
	if _, ok := h.T.(*testing.B); !ok {
		o.Scheduler = goroutines{}
	}
	if h.Change != nil {
		h.Change(&o)
	}
	return o
}

func (h *Exchange) Start() {
	h.Store = h.Open()
	engine := Must(actors.Start(context.Background(), h.Options()))
	h.Engine = engine
	h.Serve()
}

// Serve opens the gateway.
func (h *Exchange) Serve() {
	o := edge.Options{Log: Quiet(), BodyBytes: 64 << 10, HeaderBytes: 8 << 10, Connections: 1000,
		IdleTimeout: time.Minute, ReadTimeout: time.Minute, WriteTimeout: time.Minute,
		OperatorToken: OperatorToken}
	if h.Tune != nil {
		h.Tune(&o)
	}
	if h.Observed != nil {
		o.Cluster = h.Observed.standing()
	}
	h.Gateway = gateway.New(o)
	h.Admits()
	h.Listener = fasthttputil.NewInmemoryListener()
	go h.Gateway.Serve(h.Listener) //nolint:errcheck // ends with the listener
	l := h.Listener
	h.client = &fasthttp.Client{Dial: func(string) (net.Conn, error) { return l.Dial() },
		MaxConnsPerHost: 1000}
}

// Admits opens the API and the stream.
func (h *Exchange) Admits() {
	if x := h.Observed; x != nil {
		h.Gateway.SetFollower(x.Follower.Public, x.Follower.Commands())
		return
	}
	h.Gateway.SetEngine(h.Engine)
}

// Stop ends the exchange in order; crash ends it in the middle of its work.
func (h *Exchange) Stop() {
	h.Halt()
	h.close()
}

// Halt stops the engine.
func (h *Exchange) Halt() {
	h.T.Helper()
	end := h.Engine.Stop
	if h.Observed != nil {
		end = h.Observed.end
	}
	Worked(h.T, end(context.Background()))
}

// Retune starts the exchange again with a gateway of other options.
func (h *Exchange) Retune(change func(*edge.Options)) {
	h.Tune = change
	h.Stop()
	h.Start()
}

func (h *Exchange) Crash() {
	h.Engine.Abandon()
	h.close()
}

func (h *Exchange) close() {
	h.client.CloseIdleConnections()
	h.Gateway.Shutdown(time.Minute)
	h.Listener.Close()
	Worked(h.T, h.Store.Close())
}

// Account opens an account with the key "key-NAME" of all permissions.
func (h *Exchange) Account(name string) {
	h.T.Helper()
	h.AccountAt(name, "")
}

// AccountAt is account with an e-mail address.
func (h *Exchange) AccountAt(name, email string) {
	h.T.Helper()
	h.Done(h.Engine.CreateAccount("test", name, email))
	h.Done(h.Engine.CreateKey("test", name, "key-"+name, "secret-"+name, event.AllPermissions, nil))
}

// Deposit pays in.
func (h *Exchange) Deposit(name, amount, currency, reference string) {
	h.T.Helper()
	a := Must(money.ParseAmount(amount))
	h.Done(h.Engine.Deposit("test", name, currency, a, reference))
}

// Done ends the test if a request to the engine has failed.
func (h *Exchange) Done(_ any, err error) {
	h.T.Helper()
	Worked(h.T, err)
}

// StillAt wants an unchanged state.
func (h *Exchange) StillAt(before [32]byte) {
	h.T.Helper()
	if h.Hash() != before {
		h.T.Error("a refused request changed the state")
	}
}

// Verify compares both sides of the engine.
func (h *Exchange) Verify() {
	h.T.Helper()
	if err := h.Engine.VerifyAtRest(); err != nil {
		h.T.Error(err)
	}
}

// An Answer is the reply to a request.
type Answer struct {
	Status int
	Header *fasthttp.ResponseHeader
	Body   string
}

// Is checks the status of an answer; what names the request.
func (a Answer) Is(t testing.TB, status int, what ...any) {
	t.Helper()
	if a.Status != status {
		t.Errorf("%v: %d %.300s, want %d", what, a.Status, a.Body, status)
	}
}

// Must is like is, and ends the test.
func (a Answer) Must(t testing.TB, status int, what ...any) {
	t.Helper()
	if a.Status != status {
		t.Fatalf("%v: %d %.300s, want %d", what, a.Status, a.Body, status)
	}
}

// Do sends one request as it is. An observer that lost its node, because the machine stalled for a
// moment, answers that nothing was done: such a request is repeated.
func (h *Exchange) Do(method, path, contentType, body string, headers ...string) (a Answer) {
	h.T.Helper()
	if h.Observed == nil {
		return h.once(method, path, contentType, body, headers...)
	}
	for a = h.once(method, path, contentType, body, headers...); a.Status == 503 &&
		len(a.Header.Peek("Retry-After")) > 0; runtime.Gosched() {
		a = h.once(method, path, contentType, body, headers...)
	}
	return a
}

// once sends one request once.
func (h *Exchange) once(method, path, contentType, body string, headers ...string) Answer {
	h.T.Helper()
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
		h.T.Fatalf("%s %s: %v", method, path, err)
	}
	return Answer{resp.StatusCode(), &resp.Header, string(resp.Body())}
}

func (h *Exchange) NextNonce(account string) uint64 {
	h.Nonces[account]++
	return h.Nonces[account]
}

// Signed are the headers of a request whose signed parameters are params ("a=1&b=2", sorted).
func Signed(account string, nonce uint64, params string) []string {
	key := "key-" + account
	mac := sign.New([]byte("secret-"+account)).Sign(nil, []byte(key+params))
	return []string{"X-KEY", key, "X-SIGN", string(mac), "X-NONCE", strconv.FormatUint(nonce, 10)}
}

// Post sends a signed form; params are sorted and need no escapes.
func (h *Exchange) Post(account, path, params string) Answer {
	h.T.Helper()
	return h.Do("POST", path, "application/x-www-form-urlencoded", params,
		Signed(account, h.NextNonce(account), params)...)
}

// Get sends a signed GET.
func (h *Exchange) Get(account, path string) Answer {
	h.T.Helper()
	return h.Do("GET", path, "", "", Signed(account, h.NextNonce(account), "")...)
}

// Order is the form of an order, sorted as it is signed.
func Order(side, pair, amount, price string) string {
	return "amount=" + amount + "&pair=" + pair + "&price=" + price + "&type=" + side
}

// Pretty indents JSON a little: one line for each element of a list.
func Pretty(body string) string {
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

// PerSecond is a limit on requests.
func PerSecond(n, burst int) edge.Rate { return edge.Rate{PerSecond: n, Burst: burst} }

// Media types of bodies.
const (
	JsonMedia = "application/json"
	FormMedia = "application/x-www-form-urlencoded"
)

// Must returns v, or panics at an error.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Worked ends the test at an error.
func Worked(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Receive waits for n answers.
func Receive(answers <-chan Answer, n int) (list []Answer) {
	for range n {
		list = append(list, <-answers)
	}
	return list
}

// Eventually waits for a condition, in a bubble.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for late := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		if synctest.Wait(); holds() {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("never true: %s", what)
		}
	}
}

// Spin waits for a condition that no clock brings about.
func Spin(holds func() bool) {
	for !holds() {
		runtime.Gosched()
	}
}

// AtRest returns the difference between both sides of an engine once all triggers are done: a stop
// order is executed after the answer to the order that triggers it, and its book counts as in
// flight until then.
func AtRest(e *actors.Engine) (err error) {
	for range 1000 { // each comparison waits for both sides
		Spin(func() bool { return e.Stats().CommandsInFlight == 0 })
		if err = e.VerifyAtRest(); err == nil {
			break
		}
	}
	return err
}
