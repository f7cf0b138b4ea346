package gateway

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"exchange/actors"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/gateway/ratelimit"
	"exchange/persistence"
)

// The operator's listener: JSON in, JSON out. Over TCP every request carries the bearer token; over
// the operator's socket the system tells the user (socket.go). It is for the commands of the
// exchange program and for scripts of those who run it. Errors are {"error": "..."}. Beside that
// there are /metrics and /debug/pprof, in the forms that their tools want: see metrics.go.

const auditPath = "/operator/v1/audit"

// operatorRoute finds a handler.
func (g *Gateway) operatorRoute(method, path string) operatorHandler {
	route := method + " " + strings.TrimSuffix(path, "/")
	if route == "POST "+auditPath {
		return g.audit
	}
	return operatorRoutes[route]
}

// An operatorHandler answers with something that becomes JSON.
type operatorHandler = func(*actors.Engine, *fasthttp.RequestCtx) (any, error)

var operatorRoutes = map[string]operatorHandler{
	"GET /operator/v1/accounts":           listAccounts,
	"POST /operator/v1/accounts":          createAccount,
	"GET /operator/v1/account":            showAccount,
	"POST /operator/v1/accounts/freeze":   freeze,
	"GET /operator/v1/keys":               listKeys,
	"POST /operator/v1/keys":              createKey,
	"POST /operator/v1/keys/revoke":       revokeKey,
	"POST /operator/v1/deposits":          deposit,
	"GET /operator/v1/withdraws":          listWithdraws,
	"POST /operator/v1/withdraws/approve": approveWithdraw,
	"POST /operator/v1/withdraws/refuse":  refuseWithdraw,
	"POST /operator/v1/orders/cancel":     operatorCancel,
	"POST /operator/v1/orders/cancel-all": operatorCancelAll,
	"POST /operator/v1/pairs/halt":        halt,
	"POST /operator/v1/fees":              setFees,
	"POST /operator/v1/maintenance":       maintenance,
	"GET /operator/v1/actions":            listActions,
	"GET /operator/v1/statement":          statement,
	"GET /operator/v1/trades":             exportTrades,
	"GET /operator/v1/backup":             writeBackup,
}

// operatorName bounds what a client of the operator's listener may call itself.
var operatorName = regexp.MustCompile(`^[A-Za-z0-9._@+-]{1,64}$`)

// who is the operator for the log of actions: what the client calls itself, and where it is, or
// which user of this machine. The token or the user says that it may; the name is its own word.
func who(ctx *fasthttp.RequestCtx) string {
	name := ctx.Request.Header.Peek("X-Operator")
	if !operatorName.Match(name) {
		name = []byte("operator")
	}
	return string(name) + " from " + origin(ctx)
}

func (g *Gateway) handleOperator(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.SetCanonical(headerCacheControl, noStore)
	if !isSpoken(&ctx.Request.Header) {
		lingerAfter(ctx, placeOf(ctx.Conn()))
		operatorAnswer(ctx, MalformedRequest.Status,
			map[string]string{"error": MalformedRequest.Detail})
		g.operatorMeter.count(0, malformed, MalformedRequest.Status, 0)
		return
	}
	came, number := g.now(), g.operatorRouteNumber(ctx)
	defer func() {
		took := g.now() - came
		if p := recover(); p != nil {
			id := g.report(ctx, g.operatorMeter.routes[number], 500, took, "error",
				fmt.Errorf("a handler panicked: %v", p), "stack", string(debug.Stack()))
			operatorAnswer(ctx, 500, map[string]string{"error": "internal error, request id " + id})
		}
		g.operatorMeter.count(0, number, ctx.Response.StatusCode(), took)
	}()
	g.answerOperator(ctx, number, came)
}

func (g *Gateway) answerOperator(ctx *fasthttp.RequestCtx, number int, came int64) {
	route := g.operatorRoute(string(ctx.Method()), string(ctx.Path()))
	watch := g.watchRoute(ctx)
	engine := g.engine.Load()
	if !g.mayOperate(ctx) {
		return
	}
	switch {
	case watch != nil: // whatever the engine and the store are doing: that is what one looks for
		watch(ctx)
		return
	case route == nil:
		operatorAnswer(ctx, 404, map[string]string{
			"error": "there is no " + string(ctx.Method()) + " " + string(ctx.Path())})
		return
	case engine == nil:
		g.operatorStarting(ctx)
		return
	}
	err := engine.Confirmed() // another process may own the store by now, and know more
	if err == nil {
		var answer any
		if answer, err = route(engine, ctx); err == nil {
			operatorAnswer(ctx, 200, answer)
			return
		}
		if errors.Is(err, errStreamed) {
			return
		}
	}
	status, text, f := 503, err.Error(), failureOf(err)
	var request *actors.RequestError
	var syntax *badRequest
	switch {
	case errors.As(err, &request), errors.As(err, &syntax):
		status = 400
	case errors.Is(err, actors.ErrTimeout) && ctx.IsPost():
		text = "outcome unknown: it may or may not have been done"
	case errors.Is(err, actors.ErrTimeout):
		f = StoreUnavailable
	}
	// With Retry-After, a 503 says that nothing was done: of POST only errors of admission and
	// ErrUnanswered have it.
	if f.RetryAfter > 0 {
		ctx.Response.Header.Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	if status >= 500 && f.Ours {
		g.report(ctx, g.operatorMeter.routes[number], status, g.now()-came, "error", err)
	}
	failure := map[string]any{"error": text}
	if errors.Is(err, persistence.ErrCorrupt) {
		failure["damaged"] = true // trying again does not help
	}
	var part *partlyCancelled
	if errors.As(err, &part) {
		failure["orders"] = part.orders
	}
	operatorAnswer(ctx, status, failure)
}

// operatorHead decides by the head of a request how much of the rest is read, and how long its
// answer may take: with the token as much as there is, and as long as the long answers take. Chunks
// are read either way, within the limits: of a body that breaks off the server does not know any
// more whose it was.
func (g *Gateway) operatorHead(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	switch {
	case g.local.Load(), g.bearer(h.Peek("Authorization")):
		return fasthttp.RequestConfig{WriteTimeout: streamTimeout}
	case h.ContentLength() > 0:
		return fasthttp.RequestConfig{MaxRequestBodySize: 1} // 0 would be no limit of its own
	}
	return fasthttp.RequestConfig{}
}

// operatorBody is the longest body that is read after a head, in bytes.
func (g *Gateway) operatorBody(h *fasthttp.RequestHeader) int {
	if most := g.operatorHead(h).MaxRequestBodySize; most > 0 {
		return most
	}
	return g.opts.BodyBytes
}

// How often one address may guess the operator's token, whatever the limits of the public API are,
// and of how many addresses that is known.
const (
	guessesPerSecond  = 1
	guessesAtOnce     = 10
	guessingAddresses = 10_000
)

// mayOperate answers for a client that is no operator: false. The right token always passes; wrong
// ones are counted by address, those of this machine, too. Over the operator's socket the user
// counts instead.
func (g *Gateway) mayOperate(ctx *fasthttp.RequestCtx) bool {
	if c := socketOf(ctx); c != nil {
		if c.mayOperate() {
			known(ctx.Conn())
			return true
		}
		ctx.SetConnectionClose()
		operatorAnswer(ctx, 403, map[string]string{
			"error": fmt.Sprintf(
				"user id %d may not operate this exchange: its own user (id %d) and root may",
				c.user, os.Geteuid())})
		return false
	}
	if g.bearer(ctx.Request.Header.Peek("Authorization")) {
		known(ctx.Conn())
		return true
	}
	ctx.SetConnectionClose() // and its place is free
	if rate := g.guesses.buckets.Take(ratelimit.AddressKey(g.address(ctx)), g.now()); !rate.OK {
		g.operatorThrottled(ctx, rate)
		return false
	}
	operatorAnswer(ctx, 401, map[string]string{"error": "the bearer token is missing or wrong"})
	return false
}

func (g *Gateway) operatorThrottled(ctx *fasthttp.RequestCtx, rate ratelimit.Answer) {
	g.guesses.refused.Add(1)
	wait := strconv.Itoa(rate.RetryAfter)
	ctx.Response.Header.Set("Retry-After", wait)
	operatorAnswer(ctx, Throttled.Status,
		map[string]string{"error": expand(Throttled.Detail, wait)})
}

// SetOperatorToken changes the bearer token: the one before ends with this call. With an empty one
// nobody is the operator.
func (g *Gateway) SetOperatorToken(token string) { setToken(&g.token, token) }

// A tokenHash is the hash of a bearer token; nil stands for none.
type tokenHash = atomic.Pointer[[sha256.Size]byte]

func setToken(to *tokenHash, token string) {
	if token == "" {
		to.Store(nil)
		return
	}
	hash := sha256.Sum256([]byte(token))
	to.Store(&hash)
}

// bearer compares the token in constant time, of hashes so that its length does not show either.
func (g *Gateway) bearer(header []byte) bool {
	token, ok := strings.CutPrefix(string(header), "Bearer ")
	got, want := sha256.Sum256([]byte(token)), g.token.Load()
	return ok && want != nil && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

func operatorAnswer(ctx *fasthttp.RequestCtx, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	ctx.Response.Header.SetCanonical(headerCacheControl, noStore)
	ctx.SetBody(append(b, '\n'))
}

// operatorStarting says why there is no engine yet.
func (g *Gateway) operatorStarting(ctx *fasthttp.RequestCtx) {
	f := *Starting
	if owner := g.standby.Load(); owner != nil {
		f.Detail = fmt.Sprintf(
			"This exchange is a standby: %q owns the store, and this one takes over when that "+
				"one has stopped or shows no sign of life.", *owner)
	}
	operatorUnavailable(ctx, &f)
}

// operatorUnavailable answers with a failure that passes by itself.
func operatorUnavailable(ctx *fasthttp.RequestCtx, f *Failure) {
	ctx.Response.Header.Set("Retry-After", strconv.Itoa(f.RetryAfter))
	operatorAnswer(ctx, f.Status, map[string]string{"error": f.Detail})
}

func (g *Gateway) brokenOperatorRequest(ctx *fasthttp.RequestCtx, err error) {
	f, about := g.classify(err)
	if c := socketOf(ctx); c != nil && !c.mayOperate() {
		g.mayOperate(ctx)
		g.operatorMeter.count(0, malformed, ctx.Response.StatusCode(), 0)
		return
	}
	// it was not read
	if f == BodyTooLarge && ctx.Request.Header.ContentLength() > 0 && !g.local.Load() &&
		!g.bearer(ctx.Request.Header.Peek("Authorization")) {
		g.mayOperate(ctx)
		g.operatorMeter.count(0, g.operatorRouteNumber(ctx), ctx.Response.StatusCode(), 0)
		return
	}
	operatorAnswer(ctx, f.Status, map[string]string{"error": expand(f.Detail, about)})
	g.operatorMeter.count(0, malformed, f.Status, 0)
}

// A badRequest is a body that says nothing we understand.
type badRequest struct{ text string }

func (e *badRequest) Error() string { return e.text }

// parse reads the body; unknown fields and repeated ones are refused, because an operator's slip
// must not pass unseen.
func parse(ctx *fasthttp.RequestCtx, into any) error {
	d := json.NewDecoder(strings.NewReader(string(ctx.PostBody())))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return &badRequest{"the body is not the JSON object that is expected: " + err.Error()}
	}
	if _, err := d.Token(); err != io.EOF {
		return &badRequest{"there is something behind the JSON object"}
	}
	return unique(ctx.PostBody())
}

// unique refuses a body, which is an object or null, that has a member twice: of these one would
// not count, and pass unseen.
func unique(body []byte) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.Token() //nolint:errcheck // it was read before
	seen := map[string]bool{}
	for d.More() {
		var value json.RawMessage
		token, err := d.Token()
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			return err
		}
		name := strings.ToLower(fmt.Sprint(token)) // case does not matter to names
		if seen[name] {
			return &badRequest{fmt.Sprintf("%q appears more than once", name)}
		}
		seen[name] = true
	}
	return nil
}

// A numberText is the text of a number, or whatever else was sent in its place: whoever parses it
// knows the name of the field.
type numberText string

// UnmarshalJSON implements json.Unmarshaler.
func (n *numberText) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) != nil {
		text = string(b)
	}
	*n = numberText(text)
	return nil
}

type accountAnswer struct {
	Account string `json:"account"`
	ID      uint32 `json:"id"`
	Email   string `json:"email"`
}

func createAccount(e *actors.Engine, ctx *fasthttp.RequestCtx) (any, error) {
	var q struct{ Name, Email string }
	if err := parse(ctx, &q); err != nil {
		return nil, err
	}
	a, err := e.CreateAccount(who(ctx), q.Name, q.Email)
	return accountAnswer{a.Account, a.AccountID, a.Email}, err
}

// read asks the engine for something that is not private.
func read(e *actors.Engine, q *actors.Read) error {
	return e.Ask(q, nil, 0)
}

type accountsAnswer struct {
	Accounts []accountAnswer `json:"accounts"`
	// there may be more: ask for those after this one
	Next uint32 `json:"next,omitempty"`
}

// listAccounts is a page of the accounts in order of their ids: those above `after`.
func listAccounts(e *actors.Engine, ctx *fasthttp.RequestCtx) (any, error) {
	limit, err := limitArgument(ctx)
	if err != nil {
		return nil, err
	}
	q := actors.NewRead(actors.ReadAccounts)
	q.Limit = limit
	if text := ctx.QueryArgs().Peek("after"); len(text) > 0 {
		var ok bool
		if q.ID, ok = integer(text); !ok {
			return nil, &badRequest{"after: the id of an account"}
		}
	}
	if err := read(e, q); err != nil {
		return nil, err
	}
	page := accountsAnswer{Accounts: make([]accountAnswer, 0, len(q.Accounts))}
	for _, a := range q.Accounts {
		page.Accounts = append(page.Accounts, accountAnswer{a.Name, a.ID, a.Email})
	}
	if n := len(q.Accounts); n == limit {
		page.Next = q.Accounts[n-1].ID
	}
	q.Free()
	return page, nil
}

type keyAnswer struct {
	Key         string   `json:"key"`
	Secret      string   `json:"secret,omitempty"` // of a new key only, never again
	Account     string   `json:"account"`
	Permissions []string `json:"permissions"`
	Allow       []string `json:"allow"`
	Revoked     *bool    `json:"revoked,omitempty"`
}

func newKeyAnswer(key, account string, permissions uint8, allow []string) keyAnswer {
	a := keyAnswer{Key: key, Account: account, Permissions: []string{},
		Allow: append([]string{}, allow...)}
	for p := event.PermissionRead; p <= event.PermissionWithdraw; p <<= 1 {
		if permissions&p != 0 {
			a.Permissions = append(a.Permissions, permissionName(p))
		}
	}
	return a
}

func createKey(e *actors.Engine, ctx *fasthttp.RequestCtx) (any, error) {
	var q struct {
		Account     string
		Permissions []string
		Allow       []string
	}
	if err := parse(ctx, &q); err != nil {
		return nil, err
	}
	var permissions uint8
	for _, name := range q.Permissions {
		p := event.PermissionRead
		for p <= event.PermissionWithdraw && permissionName(p) != name {
			p <<= 1
		}
		if p > event.PermissionWithdraw {
			return nil, &badRequest{fmt.Sprintf(
				"there is no permission %.80q: there are read, trade and withdraw", name)}
		}
		permissions |= p
	}
	a, err := e.CreateKey(who(ctx), q.Account, random(16), random(32), permissions, q.Allow)
	if err != nil {
		return nil, err
	}
	answer := newKeyAnswer(a.Key, a.Account, a.Permissions, a.Allow)
	answer.Secret = a.Secret
	return answer, nil
}

// random is text of n random bytes: hexadecimal digits, so that a key never looks like a flag.
func random(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return hex.EncodeToString(b)
}

func listKeys(e *actors.Engine, ctx *fasthttp.RequestCtx) (any, error) {
	account, err := accountID(e, string(ctx.QueryArgs().Peek("account")))
	if err != nil {
		return nil, err
	}
	q := actors.NewRead(actors.ReadKeys)
	q.Account = account
	if err := read(e, q); err != nil {
		return nil, err
	}
	list := make([]keyAnswer, 0, len(q.Keys))
	for _, k := range q.Keys {
		a := newKeyAnswer(k.Key, k.Account, k.Permissions, k.Allow)
		a.Revoked = &k.Revoked
		list = append(list, a)
	}
	q.Free()
	return map[string]any{"keys": list}, nil
}

func revokeKey(e *actors.Engine, ctx *fasthttp.RequestCtx) (any, error) {
	var q struct{ Key string }
	if err := parse(ctx, &q); err != nil {
		return nil, err
	}
	a, err := e.RevokeKey(who(ctx), q.Key)
	return map[string]any{"key": a.Key, "account": a.Account, "revoked": true}, err
}

type depositAnswer struct {
	Deposit   uint64        `json:"deposit"`
	Account   string        `json:"account"`
	Currency  string        `json:"currency"`
	Amount    money.Amount  `json:"amount"`
	Balance   money.Balance `json:"balance"`
	Reference string        `json:"reference"`
	Repeated  bool          `json:"repeated,omitempty"`
}

func deposit(e *actors.Engine, ctx *fasthttp.RequestCtx) (any, error) {
	var q struct {
		Account, Currency, Reference string
		Amount                       numberText
	}
	if err := parse(ctx, &q); err != nil {
		return nil, err
	}
	amount, err := money.ParseAmount(string(q.Amount))
	if err != nil {
		return nil, &badRequest{"amount: " + err.Error()}
	}
	if q.Reference == "" {
		q.Reference = random(18)
	}
	a, err := e.Deposit(who(ctx), q.Account, q.Currency, amount, q.Reference)
	if errors.Is(err, actors.ErrTimeout) {
		// The reference may be ours: without it the operator could not ask again without paying
		// twice.
		return nil,
			fmt.Errorf(
				"outcome unknown: the deposit may or may not have been made; repeat it with the "+
					"reference %q, which is safe", q.Reference)
	}
	if err != nil {
		return nil, err
	}
	w := actors.NewRead(actors.ReadWallet)
	w.Account = a.AccountID
	if err := read(e, w); err != nil {
		return nil, fmt.Errorf("deposit %d was made, with the reference %q, but its balance cannot be told: %v", a.Deposit, a.Reference, err) //nolint:errorlint // what was made is not undone by what this is
	}
	answer := depositAnswer{Deposit: a.Deposit, Account: a.Account, Currency: a.Currency,
		Amount: amount, Reference: a.Reference, Repeated: a.Repeated}
	answer.Balance = holding(w.Holdings, e.Currency([]byte(a.Currency)).Number).Balance
	w.Free()
	return answer, nil
}
