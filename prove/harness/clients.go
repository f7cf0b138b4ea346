package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/gateway/params"
	"exchange/gateway/sign"
	"exchange/persistence"
)

// The table of each path's methods and rules, written apart from the one in the code.
var ApiPaths = []struct {
	Path, Allow string
	Needs       string // permission of the key; "": the path is public
}{
	{"/api/v1/time", "GET, HEAD, OPTIONS", ""},
	{"/api/v1/exchange-info", "GET, HEAD, OPTIONS", ""},
	{"/api/v1/currencies", "GET, HEAD, OPTIONS", ""},
	{"/api/v1/pairs", "GET, HEAD, OPTIONS", ""},
	{"/api/v1/ticker", "GET, HEAD, OPTIONS", ""},
	{"/api/charts/BTC_USDT/60/chart", "GET, HEAD, OPTIONS", ""},
	{"/api/v1/orderbook/BTC_USDT", "GET, HEAD, OPTIONS", ""},
	{"/api/v1/exchanges", "GET, HEAD, OPTIONS", ""},
	{"/api/v1/wallets", "GET, HEAD, OPTIONS", "read"},
	{"/api/v1/orders/own", "GET, HEAD, OPTIONS", "read"},
	{"/api/v1/order/2", "GET, HEAD, OPTIONS", "read"},
	{"/api/v1/exchanges/own", "GET, HEAD, OPTIONS", "read"},
	{"/api/v1/deposits", "GET, HEAD, OPTIONS", "read"},
	{"/api/v1/withdraws", "GET, HEAD, OPTIONS", "read"},
	{"/api/v1/fees", "GET, HEAD, OPTIONS", "read"},
	{"/api/v1/trading-settings", "GET, HEAD, POST, OPTIONS", "read"},
	{"/api/v1/order-cancel-after", "GET, HEAD, POST, OPTIONS", "read"},
	{"/api/v1/order", "POST, OPTIONS", "trade"},
	{"/api/v1/order-amend", "POST, OPTIONS", "trade"},
	{"/api/v1/order-test", "POST, OPTIONS", "trade"},
	{"/api/v1/order-batch", "POST, OPTIONS", "trade"},
	{"/api/v1/order-cancel", "POST, OPTIONS", "trade"},
	{"/api/v1/order-cancel-all", "POST, OPTIONS", "trade"},
	{"/api/v1/withdraw", "POST, OPTIONS", "withdraw"},
	{"/api/v1/withdraw-confirm", "POST, OPTIONS", "withdraw"},
	{"/api/v1/withdraw-cancel", "POST, OPTIONS", "withdraw"},
	{"/healthz", "GET, HEAD, OPTIONS", ""},
	{"/readyz", "GET, HEAD, OPTIONS", ""},
	{"/leaderz", "GET, HEAD, OPTIONS", ""},
}

const exposed = "X-Update-Id, X-Request-Id, Retry-After, X-RateLimit-Limit, " +
	"X-RateLimit-Remaining, X-RateLimit-Reset, X-Leader"

// plainNumber is how the API writes numbers: no exponent, no sign of zero, no trailing zeros.
var plainNumber = regexp.MustCompile(`^(0|-?[1-9][0-9]*|-?(0|[1-9][0-9]*)\.[0-9]*[1-9])$`)

// WellFormed checks the common parts of every answer: the headers for browsers, JSON, plain
// numbers.
func WellFormed(t testing.TB, what string, a Answer) {
	t.Helper()
	if got := string(a.Header.Peek("Access-Control-Allow-Origin")); got != "*" {
		t.Errorf("%s: Access-Control-Allow-Origin is %q", what, got)
	}
	if got := string(a.Header.Peek("Access-Control-Expose-Headers")); got != exposed {
		t.Errorf("%s: Access-Control-Expose-Headers is %q", what, got)
	}
	if a.Status == 204 {
		if a.Body != "" {
			t.Errorf("%s: a body with 204: %s", what, a.Body)
		}
		return
	}
	if got := string(a.Header.ContentType()); got != "application/json" {
		t.Errorf("%s: Content-Type is %q", what, got)
	}
	d := json.NewDecoder(strings.NewReader(a.Body))
	d.UseNumber()
	var seconds bool
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Errorf("%s: not JSON: %v: %q", what, err, a.Body)
			return
		}
		switch v := token.(type) {
		case string:
			seconds = v == "timestamp" || v == "date"
		case json.Number:
			_, fraction, _ := strings.Cut(v.String(), ".")
			if !plainNumber.MatchString(v.String()) || seconds && len(fraction) > 6 {
				t.Errorf("%s: number %s in %s", what, v, a.Body)
			}
		}
	}
}

// Dates are the times of orders, trades and money. The time of a candle is none: tests compute it.
var Dates = regexp.MustCompile(`"(date|timestamp)":[0-9.]+`)

// Want checks an answer as a whole; dates in it are shown as T.
func Want(t testing.TB, what string, a Answer, status int, body string) {
	t.Helper()
	WellFormed(t, what, a)
	if got := Dates.ReplaceAllString(a.Body, `"$1":T`); a.Status != status || got != body {
		t.Errorf("%s:\n got %d %s\nwant %d %s", what, a.Status, got, status, body)
	}
}

func Detail(text string) string {
	b, err := json.Marshal(map[string]string{"detail": text})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// Raw sends bytes on a connection of their own and reads one answer.
func (h *Exchange) Raw(method, text string) Answer {
	h.T.Helper()
	c := Must(h.Listener.Dial())
	defer c.Close()
	return Talk(h.T, c, method, text)
}

// Talk sends bytes on a connection and reads one answer.
func Talk(t testing.TB, c net.Conn, method, text string) Answer {
	t.Helper()
	if text != "" {
		//nolint:errcheck // the server may answer and hang up before it has read all
		go io.WriteString(c, text)
	}
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, &http.Request{Method: method})
	if err == nil && resp.StatusCode == http.StatusContinue {
		resp, err = http.ReadResponse(in, &http.Request{Method: method})
	}
	if err != nil {
		t.Fatalf("%.80q: %v", text, err)
	}
	defer resp.Body.Close()
	body := Must(io.ReadAll(resp.Body))
	a := Answer{Status: resp.StatusCode, Header: &fasthttp.ResponseHeader{}, Body: string(body)}
	for name, values := range resp.Header {
		a.Header.Set(name, strings.Join(values, ", "))
	}
	return a
}

// Traded is an exchange where bob has bought 1 of alice's 1.5 BTC and bids next to nothing for
// more.
func Traded(t *testing.T) *Exchange { return Trades(t, New(t, nil)) }

func Trades(t *testing.T, h *Exchange) *Exchange {
	h.Account("alice")
	h.Account("bob")
	for _, d := range [][3]string{{"alice", "2", "BTC"}, {"bob", "1000", "USDT"}} {
		h.Deposit(d[0], d[1], d[2], "to-"+d[0])
	}
	for i, a := range []Answer{
		h.Post("alice", "/api/v1/order/", Order("sell", "BTC_USDT", "1.5", "100.5")),
		h.Post("bob", "/api/v1/order/", Order("buy", "BTC_USDT", "1", "101")),
		h.Post("bob", "/api/v1/order/",
			"amount=0.00001&client_order_id=bid-1&pair=BTC_USDT&price=0.01&type=buy"),
	} {
		if a.Status != 201 {
			t.Fatalf("order %d: %d %s", i+1, a.Status, a.Body)
		}
	}
	return h
}

// Bobs are the headers of a request of bob's without parameters, if the path needs any.
func (h *Exchange) Bobs(private bool) []string {
	if !private {
		return nil
	}
	return Signed("bob", h.NextNonce("bob"), "")
}

const (
	JsonType = "application/json"
	FormType = "application/x-www-form-urlencoded"
)

// SignedJSON are the headers of a JSON body. A body that cannot be parsed is signed by the key
// alone.
func SignedJSON(account string, nonce uint64, body string) []string {
	var set params.Set
	if err := set.ParseJSON([]byte(body)); err != nil {
		set.Reset()
	}
	return Signed(account, nonce, string(sign.AppendMessage(nil, nil, &set, false)))
}

func (h *Exchange) PostJSON(account string, nonce uint64, path, body string) Answer {
	h.T.Helper()
	return h.Do("POST", path, JsonType, body, SignedJSON(account, nonce, body)...)
}

// Hash is the digest of the whole committed state, whose invariants hold.
func (h *Exchange) Hash() [32]byte {
	h.T.Helper()
	q := new(committed.Hash)
	Worked(h.T, h.Engine.Ask(q, nil, 0))
	return q.Hash
}

// Key makes an API key "key-NAME" with the secret "secret-NAME".
func (h *Exchange) Key(account, name string, permissions uint8, allow ...string) {
	h.T.Helper()
	h.Done(h.Engine.CreateKey("test", account, "key-"+name, "secret-"+name, permissions, allow))
}

var (
	Credentials = Detail("Incorrect authentication credentials.")
	WrongSign   = Detail("Wrong signature")
)

// UsedNonce is the refusal of a nonce when the key's last one was another.
func UsedNonce(last uint64) string {
	return `{"detail":"Wrong Nonce","code":"nonce","last":` + strconv.FormatUint(last, 10) + `}`
}

// Batch sends a batch as a form, and returns its results one on a line.
func (h *Exchange) Batch(account string, items ...string) Answer {
	h.T.Helper()
	return h.BatchText(account, "["+strings.Join(items, ",")+"]")
}

func (h *Exchange) BatchText(account, text string) Answer {
	h.T.Helper()
	form := "orders=" + strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
	return h.Do("POST", "/api/v1/order-batch/", FormType, form,
		Signed(account, h.NextNonce(account), form)...)
}

// Results are the statuses and bodies of a batch.
func Results(t testing.TB, a Answer) (list []struct {
	Status int
	Body   json.RawMessage
}) {
	t.Helper()
	var all struct {
		Results []struct {
			Status int
			Body   json.RawMessage
		}
	}
	if a.Status != 200 || json.Unmarshal([]byte(a.Body), &all) != nil {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	return all.Results
}

// volatile matches the texts that differ from run to run.
var volatile = regexp.MustCompile(`("date":|"oid":|"order":|order |balance -)[0-9][0-9.]*`)

func Masked(body string) string { return volatile.ReplaceAllString(body, "${1}N") }

// Answered returns an answered request whose answer no client has taken yet.
func Answered(h *Exchange, path string, headers ...string) *fasthttp.RequestCtx {
	var request fasthttp.Request
	request.SetRequestURI("http://exchange" + path)
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	ctx := new(fasthttp.RequestCtx)
	ctx.Init(&request, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}, nil)
	h.Gateway.Public().Route(ctx)
	return ctx
}

// Sell lets an account sell a little, without a request.
func (h *Exchange) Sell(account string) {
	h.T.Helper()
	c, err := h.Engine.Place(h.Engine.Key([]byte("key-"+account)), h.NextNonce(account),
		&actors.OrderRequest{Pair: h.Engine.Pairs()[0], Side: trading.Sell, Price: 100e8,
			Amount: 1e5})
	if err != nil || c.Outcome() != actors.Accepted {
		h.T.Fatal(c, err)
	}
	c.Free()
}

// Journal restarts the exchange with more records than the exchange has written. These records have
// their own times.
func (h *Exchange) Journal(records ...event.Record) {
	h.T.Helper()
	h.Stop()
	store, ctx := h.Open(), context.Background()
	token, last, err := store.Acquire(ctx, persistence.Claim{Owner: "test"})
	if err != nil {
		h.T.Fatal(err)
	}
	batch := event.BeginBatch(nil)
	for i := range records {
		batch = records[i].Append(batch)
	}
	batch = event.EndBatch(batch, token.Epoch(), last, uint32(len(records)))
	Worked(h.T, errors.Join(store.Append(ctx, token, last, last+uint64(len(records)), batch),
		store.Close()))
	h.Start()
}

// No request of this file may reach a wallet: all carry one nonce, which is still good at the end.
const FieldsNonce = 1_000_000

// BadFieldsOf are the names under which a 400 lists the faults, each with a list of sentences.
func BadFieldsOf(t testing.TB, what string, a Answer) []string {
	t.Helper()
	WellFormed(t, what, a)
	var fields map[string][]string
	if err := json.Unmarshal([]byte(a.Body), &fields); err != nil || a.Status != 400 {
		t.Errorf("%s: %d %s", what, a.Status, a.Body)
		return nil
	}
	var names []string
	for name, texts := range fields {
		names = append(names, name)
		for _, text := range texts {
			if len(text) < 10 || !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %s: not a sentence: %q", what, name, text)
			}
		}
	}
	slices.Sort(names)
	return names
}

func Quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// NamesEach wants a path to name each of its bad parameters, alone and all together.
func (h *Exchange) NamesEach(path string, private bool, bad map[string][]string) {
	t := h.T
	t.Helper()
	separator := "?"
	if strings.Contains(path, separator) {
		separator = "&"
	}
	ask := func(query string) Answer {
		if private {
			return h.Do("GET", path+separator+query, "", "", Signed("bob", FieldsNonce, "")...)
		}
		return h.Do("GET", path+separator+query, "", "")
	}
	var all, names []string
	for name, values := range bad {
		for _, v := range values {
			for _, query := range []string{name + "=" + v,
				"unknown=1&" + name + "=1&" + name + "=" + v} {
				if got := BadFieldsOf(t, path+"?"+query, ask(query)); !slices.Equal(got,
					[]string{name}) {
					t.Errorf("%s?%s: names %v", path, query, got)
				}
			}
		}
		all, names = append(all, name+"="+values[0]), append(names, name)
	}
	slices.Sort(names)
	if got := BadFieldsOf(t, path, ask(strings.Join(all, "&"))); !slices.Equal(got, names) {
		t.Errorf("%s: names %v, want all of %v", path, got, names)
	}
}

// Holdings are all balances and open orders, as text.
func Holdings(t testing.TB, h *Exchange) string {
	t.Helper()
	var text strings.Builder
	for account := range uint32(2) {
		r := &committed.Wallet{Account: account + 1}
		Worked(t, h.Engine.Ask(r, nil, 0))
		for _, held := range r.Holdings {
			text.WriteString(held.Balance.String() + "/" + held.Reserve.String() + " ")
		}
	}
	return text.String()
}

type ExchangeInfo struct {
	Maintenance *struct{ Message string }
	Limits      struct {
		Rates map[string]*struct {
			PerSecond int `json:"per_second"`
			Burst     int
		}
	}
	Pairs []struct{ Name, Status string }
	Demo  []struct{ Account, Key, Secret string }
}

// InstructionForm returns the form of an order with some instructions.
func InstructionForm(says string) string {
	fields := map[string]string{"pair": "BTC_USDT", "type": "buy", "amount": "1", "price": "100"}
	for field := range strings.SplitSeq(says, "&") {
		name, value, _ := strings.Cut(field, "=")
		fields[name] = value
	}
	var form []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if value := fields[name]; value != "-" {
			form = append(form, name+"="+value)
		}
	}
	return Soon(strings.Join(form, "&"))
}

// Soon puts a time soon into a form in the place of SOON.
func Soon(form string) string {
	return strings.ReplaceAll(form, "SOON", strconv.FormatInt(time.Now().Unix()+1000, 10))
}

// RuledHarness is an exchange whose pair has all rules.
func RuledHarness(t testing.TB, changes ...func(*actors.Options)) *Exchange {
	return RuledHarnessOf(t, false, changes...)
}

// RuledHarnessOf is ruledHarness with clients that may use an observer.
func RuledHarnessOf(t testing.TB, observed bool, changes ...func(*actors.Options)) *Exchange {
	h := NewOf(t, observed, func(o *actors.Options) {
		for _, change := range changes {
			change(o)
		}
		p := &o.Pairs[0]
		p.PriceTick, p.AmountStep = 5_000_000, 100_000
		p.MinimumOrderSize, p.MaximumOrderSize = 1_000_000, 1_000e8
		p.MinimumOrderValue = money.Amount(1e8).Balance()
	})
	for _, name := range []string{"alice", "bob"} {
		h.Account(name)
		for _, currency := range []string{"BTC", "USDT"} {
			h.Deposit(name, "100000", currency, name+currency)
		}
	}
	return h
}

var ListPairs = []string{"BTC_USDT", "ETH_USDT", "ETH_BTC"}

func Decode[T any](t testing.TB, a Answer) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.Body), &v); err != nil || a.Status >= 300 {
		t.Fatalf("%d %s: %v", a.Status, a.Body, err)
	}
	return v
}

// Seeded logs its seed, and takes the one of a failure to repeat.
func Seeded(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	if text := os.Getenv("EXCHANGE_TEST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal("EXCHANGE_TEST_SEED:", err)
		}
	}
	t.Logf("EXCHANGE_TEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// Happens makes one random event of an account. withdrawals counts the withdrawals so far, and i
// numbers references of deposits.
func (h *Exchange) Happens(random *rand.Rand, owner string, i int, withdrawals *int) {
	h.T.Helper()
	switch random.IntN(12) {
	case 0:
		h.Deposit(owner, decimal(random, 5), ListPairs[0][:3], fmt.Sprint("more ", i))
	case 1, 2:
		if owner == directory.FeeAccount {
			return // without an e-mail address
		}
		h.Post(owner, "/api/v1/withdraw",
			"address=x&amount="+decimal(random, 5)+"&currency=USDT").Must(h.T, 201)
		*withdrawals++
		h.Post(owner, "/api/v1/withdraw-confirm",
			fmt.Sprintf("code=%s&withdraw=%d", h.Code(uint64(*withdrawals)), *withdrawals))
		to := []uint8{event.WithdrawalApproved, event.WithdrawalApproved,
			event.WithdrawalRefused}[random.IntN(3)]
		c := Must(h.Engine.SetWithdrawalStatus("test", uint64(*withdrawals), to,
			map[uint8]string{event.WithdrawalRefused: "no"}[to]))
		c.Free()
	default:
		side := []string{"buy", "sell"}[random.IntN(2)]
		price := strconv.Itoa(10+random.IntN(3)) + "." + strconv.Itoa(random.IntN(100))
		h.Post(owner, "/api/v1/order",
			Order(side, ListPairs[random.IntN(3)], decimal(random, 3), price)).Must(h.T, 201)
	}
}

// decimal is a number with all its digits.
func decimal(random *rand.Rand, most int) string {
	return fmt.Sprintf("%d.%08d", random.IntN(most), 1+random.IntN(99_999_999))
}

var (
	Times     = regexp.MustCompile(`"(date|timestamp|time|expire_time|cancel_at)":[0-9.]+`)
	Clocks    = regexp.MustCompile(`"time":"[^"]+"`)
	Sequences = regexp.MustCompile(
		`"(sequence|records|replayed_from|rows_compared|paused_ms)":[0-9]+`)
	Progress = regexp.MustCompile(`\{"at":[0-9]+,"of":[0-9]+\}\n`)
	// of an object's list each element has a line
	Listed = strings.NewReplacer(`":[{`, "\":[\n  {", `},{`, "},\n  {")
)

// BobSends sends fields of bob, as JSON or as a form.
func (h *Exchange) BobSends(path, fields string) Answer {
	h.T.Helper()
	if strings.HasPrefix(fields, "{") {
		return h.PostJSON("bob", h.NextNonce("bob"), path, fields)
	}
	return h.Post("bob", path, fields)
}
