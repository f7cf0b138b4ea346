//go:build prove

package recorded

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/valyala/fasthttp"

	"exchange/gateway/sign"
	"exchange/persistence/redistest"
	"exchange/prove/exchangetest"
)

const settings = `
currencies:
  - {code: BTC, minimum_withdraw: 0.01}
  - {code: USDT, sign: $}
pairs:
  - {name: BTC_USDT, price_precision: 2, amount_precision: 8, minimum_order_size: 0.00001,
     maximum_order_size: 1000000, minimum_order_value: 1, maker_fee: 0.001, taker_fee: 0.002}
`

// A session is a running exchange and the list of its requests and answers.
type session struct {
	t     *testing.T
	s     *exchangetest.Server
	list  strings.Builder
	keys  map[string]string      // of each account
	signs map[string]*sign.Keyed // by the same
	nonce uint64
	plain bool // the list has no headers
}

func newSession(t *testing.T, store string, more ...string) *session {
	t.Helper()
	s := exchangetest.New(t, store, more...)
	configure(t, s)
	s.Start()
	return sessionOf(t, s)
}

// newSessionThroughObserver is newSession of a cluster. Clients use its observer, and operators the
// leader.
func newSessionThroughObserver(t *testing.T) *session {
	t.Helper()
	c := exchangetest.NewCluster(t)
	for _, s := range c.Processes {
		configure(t, s)
	}
	_, s := c.Start(exchangetest.Observer)
	return sessionOf(t, s)
}

func configure(t *testing.T, s *exchangetest.Server) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "exchange.yaml")
	succeeds(t, os.WriteFile(file, []byte(settings), 0o600))
	s.Args = slices.DeleteFunc(s.Args, func(a string) bool { return a == "--no-rate-limits" })
	s.Args[slices.Index(s.Args, "--config")+1] = file
	// a briefly slow disk, while a mail is removed from the outbox, causes no refusal
	s.Env = append(s.Env, "EXCHANGE_TIMING_STALL_MS=9000")
}

func sessionOf(t *testing.T, s *exchangetest.Server) *session {
	t.Helper()
	s.Env = append(s.Env, "EXCHANGE_LISTEN="+s.Listen) // the commands that ask this listener
	return &session{t: t, s: s, keys: map[string]string{}, signs: map[string]*sign.Keyed{}}
}

// play carries out the lines of a script. "$ARGUMENTS" is a command, and "$$ARGUMENTS" a command in
// text and then as JSON, where "{NAME}" is that account's key. "- METHOD PATH [FORM]" is a request
// to the API, and "operator METHOD PATH [JSON]" one to the operator's listener. Any other "NAME
// METHOD PATH [FORM]" is a signed request of that account.
func (s *session) play(script string) {
	s.t.Helper()
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		switch command, both := strings.CutPrefix(line, "$$"); {
		case line == "":
		case both:
			s.command(command)
			s.command(command + " --json")
		case line[0] == '$':
			s.command(line[1:])
		default:
			s.request(line)
		}
	}
}

var wordsOf = regexp.MustCompile(`'[^']*'|\S+`)

func (s *session) command(line string) {
	s.t.Helper()
	args := wordsOf.FindAllString(line, -1)
	for i := range args {
		args[i] = strings.Trim(args[i], "'")
		if name, ok := strings.CutPrefix(args[i], "{"); ok {
			args[i] = s.keys[strings.TrimSuffix(name, "}")]
		}
	}
	out, errOut, code := s.s.Command(append(args, "--as", "jane")...)
	if args[0] == "key" && args[1] == "create" {
		s.learn(args[2], out)
	}
	fmt.Fprintf(&s.list, "$ exchange %s\n%s", line, masked(out))
	if errOut != "" {
		fmt.Fprintf(&s.list, "stderr: %s", masked(errOut))
	}
	if code != 0 {
		fmt.Fprintf(&s.list, "exit code %d\n", code)
	}
	s.list.WriteString("\n")
}

// learn stores an account's key from the answer of a command that has created one.
func (s *session) learn(account, answer string) {
	s.t.Helper()
	var k struct{ Key, Secret string }
	if json.Unmarshal([]byte(answer), &k) != nil || k.Secret == "" {
		s.t.Fatalf("this is no new key: %s", answer)
	}
	s.keys[account], s.signs[account] = k.Key, sign.New([]byte(k.Secret))
}

func (s *session) request(line string) {
	s.t.Helper()
	parts := strings.SplitN(line, " ", 4)
	who, method, path, form := parts[0], parts[1], parts[2], ""
	if len(parts) > 3 {
		form = parts[3]
	}
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.Header.SetMethod(method)
	req.SetRequestURI("http://" + s.s.Listen + path)
	if form != "" {
		req.SetBodyString(form)
		req.Header.SetContentType("application/x-www-form-urlencoded")
	}
	switch {
	case who == "operator":
		req.SetRequestURI("http://" + s.s.Operator + path)
		req.Header.SetContentType("application/json")
		req.Header.Set("Authorization", "Bearer "+s.token())
		req.Header.Set("X-Operator", "jane")
	case who != "-":
		s.nonce++
		_, query, _ := strings.Cut(path, "?")
		req.Header.Set("X-KEY", s.keys[who])
		req.Header.Set("X-NONCE", strconv.FormatUint(s.nonce, 10))
		req.Header.Set("X-SIGN", string(s.signs[who].Sign(nil,
			[]byte(s.keys[who]+form+query))))
	}
	if err := s.s.Client.Do(req, resp); err != nil {
		s.t.Fatalf("%s: %v", line, err)
	}
	fmt.Fprintf(&s.list, "%s\n%d\n", line, resp.StatusCode())
	if s.plain {
		fmt.Fprintf(&s.list, "%s\n\n", masked(strings.TrimSpace(string(resp.Body()))))
		return
	}
	var headers []string
	for name, value := range resp.Header.All() {
		if n := string(name); n != "Date" && n != "Content-Length" {
			headers = append(headers, n+": "+maskedHeader(n, string(value)))
		}
	}
	slices.Sort(headers)
	fmt.Fprintf(&s.list, "%s\n%s\n\n", strings.Join(headers, "\n"),
		masked(strings.TrimSpace(string(resp.Body()))))
}

func (s *session) token() string {
	const name = "EXCHANGE_OPERATOR_TOKEN="
	i := slices.IndexFunc(s.s.Env, func(e string) bool { return strings.HasPrefix(e, name) })
	return s.s.Env[i][len(name):]
}

// masks replace texts that differ each time.
var masks = []struct {
	what *regexp.Regexp
	mask string
}{
	{regexp.MustCompile(`20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| UTC)?`), "TIME"},
	{regexp.MustCompile(`\b1[5-9]\d{8}(\d{3}|\d{6})?(\.\d+)?\b`), "SECONDS"},
	{regexp.MustCompile(`\b[0-9a-f]{16,}\b`), "HEX"},
	{regexp.MustCompile(`  +`), "  "}, // columns are as wide as the masked texts in them
	// Records that remove mails from the outbox depend on the mail server's answer.
	{regexp.MustCompile(`(sequence|records|rows[_ ]compared|paused[_ ]ms)` +
		`("?:? *)\d+`), "${1}${2}N"},
	{regexp.MustCompile(`(?m)^\d+(  TIME  jane)`), "N$1"},
}

func masked(text string) string {
	for _, m := range masks {
		text = m.what.ReplaceAllString(text, m.mask)
	}
	return text
}

func maskedHeader(name, value string) string {
	if strings.HasPrefix(name, "X-Ratelimit") || name == "X-Request-Id" {
		return "..."
	}
	return masked(value)
}

// opening creates three accounts with money.
const opening = `
$account create alice --email alice@example.org
$account create bob --json
$account create bob
$key create alice --permissions read,trade,withdraw --json
$key create bob --allow 127.0.0.0/8 --json
$$key list alice
$deposit alice BTC 10 --reference first
$deposit bob USDT 5000 --reference second --json
$deposit bob USDT 5000 --reference second
`

const trading = `
- GET /healthz
- GET /readyz
- GET /api/v1/currencies/
- GET /api/v1/pairs/
- GET /api/v1/nothing/
- PUT /api/v1/order/
- OPTIONS /api/v1/order/
alice POST /api/v1/order/ amount=1&client_order_id=a1&pair=BTC_USDT&price=100&type=sell
alice POST /api/v1/order/ amount=1&client_order_id=a1&pair=BTC_USDT&price=100&type=sell
alice POST /api/v1/order/ amount=1&pair=BTC_USDT&price=101.001&type=sell
alice POST /api/v1/order/ amount=100&pair=BTC_USDT&price=100&type=sell
alice POST /api/v1/order/ amount=2&client_order_id=a2&pair=BTC_USDT&price=110&type=sell
bob POST /api/v1/order/ amount=0.5&pair=BTC_USDT&price=100&type=buy
bob POST /api/v1/order/ amount=2&client_order_id=b2&pair=BTC_USDT&price=90&type=buy
bob POST /api/v1/withdraw/ address=x&amount=1&currency=BTC
- GET /api/v1/wallets/
- GET /api/v1/orderbook/BTC_USDT/
- GET /api/v1/orderbook/BTC_USDT/?group=0
- GET /api/v1/exchanges/?pair=BTC_USDT
- GET /api/v1/ticker/
- GET /api/v1/ticker/?pair=BTC_USDT
- GET /api/charts/BTC_USDT/60/chart/
- GET /api/charts/BTC_USDT/7/chart/
alice GET /api/v1/wallets/
alice GET /api/v1/orders/own/
alice GET /api/v1/order/1/
alice GET /api/v1/order/99/
alice GET /api/v1/exchanges/own/
alice GET /api/v1/deposits/
alice GET /api/v1/fees/
alice POST /api/v1/order-cancel/ order=1
alice POST /api/v1/order-cancel/ order=1
bob POST /api/v1/order-cancel-all/ pair=BTC_USDT
alice POST /api/v1/withdraw/ address=bc1q&amount=0.001&currency=BTC
alice POST /api/v1/withdraw/ address=bc1q&amount=1&currency=BTC
alice POST /api/v1/withdraw/ address=bc1q&amount=2&currency=BTC
alice POST /api/v1/withdraw/ address=bc1q&amount=0.5&currency=BTC
alice POST /api/v1/withdraw-confirm/ code=000000&withdraw=1
alice POST /api/v1/withdraw-cancel/ withdraw=3
`

const operating = `
$$account list
$$account list --frozen --totals
$$order list
$$order list --pair BTC_USDT --limit 1
$$pair list
$$account show alice
$$withdraw list
$withdraw approve 1
$withdraw approve 1 --json
$withdraw refuse 2 --details 'Who is that?' --json
$withdraw refuse 2 --details 'Who is that?'
$$withdraw list --account alice
alice GET /api/v1/withdraws/
$fees set alice BTC_USDT --maker 0 --taker 0.0015
$fees set alice BTC_USDT --maker 0 --taker 0.0015 --json
$$fees list
$fees reset alice BTC_USDT
$account freeze bob
$$account list --frozen
bob GET /api/v1/wallets/
$account freeze bob --json
$account unfreeze bob
$pair halt BTC_USDT
bob POST /api/v1/order/ amount=2&pair=BTC_USDT&price=90&type=buy
$$pair list
$pair resume BTC_USDT --json
$pair halt --all
$pair resume --all --json
$$maintenance status
$maintenance on --message 'Back at 14:00.'
$$maintenance status
bob POST /api/v1/order/ amount=2&pair=BTC_USDT&price=90&type=buy
- GET /readyz
$maintenance on --cancels
$$maintenance status
- GET /api/v1/exchange-info/
bob POST /api/v1/order/ amount=2&pair=BTC_USDT&price=90&type=buy
bob POST /api/v1/order-cancel/ order=99
$maintenance off --json
bob POST /api/v1/order/ amount=2&pair=BTC_USDT&price=90&type=buy
bob POST /api/v1/order/ amount=2&pair=BTC_USDT&price=91&type=buy
$order cancel 99
$order cancel 5
$order cancel-all bob --json
$$export trades --pair BTC_USDT
$$export orders
$$export deposits
$$export withdraws
$export balances --json
$adjust alice BTC -0.25 --reason 'credited twice' --reference wire-7
$adjust alice BTC -0.25 --reason 'credited twice' --reference wire-7
$adjust alice BTC -0.2 --reason 'credited twice' --reference wire-7
$adjust alice BTC -1000 --reason 'credited twice' --json
$adjust alice BTC 1 --reason 'too little'
alice GET /api/v1/withdraws/?status=30
$$statement alice
$account create dave --email dave@home.example
$key create dave --permissions read --json
$account email dave dave@home.example
$account email dave dave@new.example
$account email dave nowhere --json
$account email nobody a@b.example --json
$account email alice alice@new.example --json
alice POST /api/v1/withdraw/ address=x&amount=1&currency=USDT
$account close alice
$account close fees --json
$account close dave
$account close dave --json
$deposit dave BTC 1 --reference late
$account unfreeze dave
$$account show dave
$$account list
$$audit
$key revoke {bob}
$key revoke {bob} --json
bob GET /api/v1/wallets/
$key revoke no-such-key
$health
operator GET /operator/v1/nothing
operator GET /operator/v1/accounts
operator GET /operator/v1/account?name=alice
operator GET /operator/v1/keys?account=alice
operator POST /operator/v1/deposits {"account":"alice"}
operator GET /operator/v1/withdraws?limit=1
operator GET /operator/v1/statement?account=alice
operator GET /operator/v1/trades?pair=BTC_USDT
$$actions
`

func TestRequestsAndCommandsAreAnsweredAsRecorded(t *testing.T) {
	server := redistest.Start(t)
	for _, store := range []string{"pebble:" + t.TempDir(), server.URL()} {
		name, folder, _ := strings.Cut(store, ":")
		t.Run(name, func(t *testing.T) {
			archive := t.TempDir()
			s := newSession(t, store, "--archive", archive)
			s.plays()
			compare(t, "session.txt", s.list.String())
			compare(t, "metrics.txt", s.metrics())
			compare(t, "openapi.json", s.document())
			compare(t, "operator.json", s.operatorDocument())
			backup := filepath.Join(t.TempDir(), "backup")
			s.command("backup " + backup)
			if code := s.s.Terminate(); code != 0 {
				t.Fatalf("it ends with %d", code)
			}
			if name != "pebble" {
				compare(t, "keys.txt", keysOf(t, store))
				return
			}
			compare(t, "files.txt", "store\n"+files(t, folder)+"\ndata folder\n"+
				files(t, s.s.Data(""))+"\nbackup\n"+files(t, backup)+"\narchive\n"+
				files(t, archive))
		})
	}
}

func TestAnObserverAnswersAsRecorded(t *testing.T) {
	s := newSessionThroughObserver(t)
	s.plays()
	same(t, "session.txt", s.list.String())
	same(t, "openapi.json", s.document())
}

// plays carries out the whole script.
func (s *session) plays() {
	s.t.Helper()
	s.play(opening)
	s.play(trading)
	exchangetest.Eventually(s.t, "a code is mailed", func() bool {
		return s.s.Mails.Code(1) != "" && s.s.Mails.Code(2) != ""
	})
	for id := range uint64(2) {
		s.confirm(id + 1)
	}
	s.play(operating)
}

// confirm confirms a withdrawal by the mailed code.
func (s *session) confirm(id uint64) {
	s.t.Helper()
	before, code := s.list.Len(), s.s.Mails.Code(id)
	s.request(fmt.Sprintf("alice POST /api/v1/withdraw-confirm/ code=%s&withdraw=%d", code, id))
	text := s.list.String()
	s.list.Reset()
	s.list.WriteString(text[:before] + strings.ReplaceAll(text[before:], code, "CODE"))
}

var snapshotID = regexp.MustCompile(`:s:[0-9a-f.]+`)

// keysOf lists the keys of a Redis, with their types.
func keysOf(t *testing.T, url string) string {
	t.Helper()
	options, err := redis.ParseURL(url)
	succeeds(t, err)
	c := redis.NewClient(options)
	defer c.Close()
	keys, err := c.Keys(t.Context(), "*").Result()
	succeeds(t, err)
	for i, k := range keys {
		kind, err := c.Type(t.Context(), k).Result()
		succeeds(t, err)
		k = snapshotID.ReplaceAllString(k, ":s:ID")
		keys[i] = digits.ReplaceAllString(k, "N") + " " + kind
	}
	slices.Sort(keys)
	return strings.Join(slices.Compact(keys), "\n") + "\n"
}

// get returns the body of an answer.
func (s *session) get(address, path string, headers ...string) []byte {
	s.t.Helper()
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	req.SetRequestURI("http://" + address + path)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	if err := s.s.Client.Do(req, resp); err != nil || resp.StatusCode() != 200 {
		s.t.Fatal(path, resp.StatusCode(), err)
	}
	return resp.Body()
}

func (s *session) document() string {
	return indented(s.t, s.get(s.s.Listen, "/api/openapi.json"))
}

func (s *session) operatorDocument() string {
	return indented(s.t, s.get(s.s.Operator, "/operator/v1/openapi.json", "Authorization",
		"Bearer "+s.token()))
}

var series = regexp.MustCompile(`^(exchange_[a-z0-9_]+)(?:\{(.*)\})? `)
var label = regexp.MustCompile(`([a-z_]+)="`)

// metrics lists the exchange's own metrics: help, type, and the names of the labels.
func (s *session) metrics() string {
	s.t.Helper()
	var list []string
	var text []byte
	exchangetest.Eventually(s.t, "the scrape has what takes longer", func() bool {
		text = s.get(s.s.Operator, "/metrics", "Authorization", "Bearer "+s.token())
		return bytes.Contains(text, []byte("\nexchange_halted_pairs ")) &&
			bytes.Contains(text, []byte("\nexchange_disk_free_bytes{"))
	})
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "# ") {
			if strings.Contains(line, " exchange_") {
				list = append(list, strings.TrimSpace(line))
			}
			continue
		}
		if m := series.FindStringSubmatch(line); m != nil {
			for _, l := range label.FindAllStringSubmatch(m[2], -1) {
				m[1] += " " + l[1]
			}
			list = append(list, m[1])
		}
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), "\n") + "\n"
}
