//go:build prove

package processes

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/valyala/fasthttp"

	"exchange/actors/lineartest"
	"exchange/gateway/sign"
	"exchange/persistence/redistest"
	"exchange/prove/exchangetest"
)

// The answers to clients over HTTP, and the events of accounts at sockets, are those of a
// sequential exchange that is never killed.
func TestHistoriesThroughKillsAreLinearizable(t *testing.T) {
	for name, store := range map[string]func() string{
		"pebble": func() string { return "pebble:" + t.TempDir() },
		"redis":  func() string { return redistest.Start(t).URL() },
	} {
		t.Run(name, func(t *testing.T) {
			oneIsDecided(t, func() error { return throughKills(t, store()) })
		})
	}
}

// oneIsDecided records histories until one is decided, which must be linearizable.
func oneIsDecided(t *testing.T, record func() error) {
	t.Helper()
	for range mostUndecided {
		err := record()
		if !errors.Is(err, lineartest.ErrUndecided) {
			if err != nil {
				t.Error(err)
			}
			return
		}
		t.Logf("%v; there is another in its place", err)
	}
	t.Errorf("of %d histories none is decided", mostUndecided)
}

// throughKills records a history on a fresh store, and checks it.
func throughKills(t *testing.T, store string) error {
	s := exchangetest.New(t, store)
	succeeds(t, os.WriteFile(s.Args[2], []byte(recordedSettings), 0o600))
	s.Start()
	h := newHistory(t, s)
	h.subscribe()
	for range bursts {
		h.own[h.clients[0].Random.IntN(lineartest.Accounts)].leave()
		h.play(s.Kill, s.Start)
		h.look()
	}
	return h.judged()
}

// judged checks a complete history.
func (h *recorded) judged() error {
	t := h.t
	t.Helper()
	t.Logf("%d operations, by outcome:", len(h.history.Operations()))
	for o := range lineartest.Outcomes {
		t.Logf("%v: %d", o, h.history.Count(o))
	}
	for i, s := range h.own {
		if s != nil {
			s.mu.Lock()
			t.Logf("account %d: %d events, %d subscriptions resumed", i, s.events, s.resumed)
			s.mu.Unlock()
		}
	}
	if h.history.Count(lineartest.Unknown) == 0 {
		t.Error("no request was under way when the exchange was killed")
	}
	if err := h.s.Audit(); err != nil {
		t.Error(err)
	}
	return h.history.Check()
}

// recordedSettings are two pairs that share a currency, with fees.
const recordedSettings = `
currencies:
  - {code: BTC}
  - {code: USDT}
  - {code: EUR}
pairs:
  - {name: BTC_USDT, price_precision: 2, amount_precision: 8, minimum_order_size: 0.00001, maximum_order_size: 1000000, maker_fee: 0.001, taker_fee: 0.002}
  - {name: BTC_EUR, price_precision: 2, amount_precision: 8, minimum_order_size: 0.00001, maximum_order_size: 1000000, maker_fee: 0.0005, taker_fee: 0.003}
`

var (
	recordedCurrencies = []string{"BTC", "USDT", "EUR"}
	recordedPairs      = []string{"BTC_USDT", "BTC_EUR"}
	recordedRates      = [lineartest.Pairs]lineartest.Rates{{Maker: 10, Taker: 20},
		{Maker: 5, Taker: 30}}
)

// A recorded is a history of clients of the real program, while it is recorded.
type recorded struct {
	*lineartest.Workload // locked by mu

	t       *testing.T
	s       *exchangetest.Server
	nodes   []*exchangetest.Server // that clients turn to; nil: there is s alone
	clients []*recordedClient
	history lineartest.History
	// one of nodes that takes no operators' requests: these go to s
	observer *exchangetest.Server
	own      [lineartest.Accounts]*recordedOwn // nil: accounts have no subscribers

	mu      sync.Mutex
	keys    map[int]*trader // by number
	numbers map[string]int  // of keys, by name
	changes int             // deposits and adjustments
	ended   int             // operations
}

// A recordedClient sends one request after the other, mostly with a key of its own.
type recordedClient struct {
	lineartest.Client
	h      *recorded
	number int
	s      *exchangetest.Server // that it sends to
	// the newest request was turned away, or its answer is lost
	unserved bool
}

// Bounds of a history.
const (
	recordedAccounts = 3
	recordedClients  = 6
	operationsOfEach = 6 // of a client, in a burst
	bursts           = 5 // each with a kill
	mostUndecided    = 8 // histories, in one place
	// parallelKey is the number of the key for parallel use that both clients of the last account
	// share. It keeps keptNonces nonces.
	parallelKey = recordedAccounts
	keptNonces  = 8
)

func newHistory(t *testing.T, s *exchangetest.Server) *recorded {
	t.Helper()
	h := &recorded{Workload: lineartest.NewWorkload(parallelKey, true), t: t, s: s,
		keys: map[int]*trader{}, numbers: map[string]int{}}
	for pair := range h.history.Fees {
		for account := range h.history.Fees[pair] {
			h.history.Fees[pair][account] = recordedRates[pair]
		}
	}
	random := newRandom(t)
	w := &world{t: t, s: s}
	for i := range recordedClients {
		h.clients = append(h.clients, &recordedClient{h: h, number: i, s: s,
			Client: lineartest.Client{Workload: h.Workload, Account: i % recordedAccounts,
				Key: i + 1, Random: rand.New(rand.NewPCG(random.Uint64(), 0))}})
	}
	h.clients[2*recordedAccounts-1].Key = parallelKey
	for i := range lineartest.Accounts {
		if i != lineartest.FeeAccount { // which is there from the start
			w.must("/operator/v1/accounts",
				map[string]string{"name": h.name(i), "email": h.name(i) + "@example.org"}, nil)
		}
	}
	first := h.clients[0]
	for i := range recordedClients - 1 {
		o := lineartest.Operation{Kind: lineartest.CreateKey, Account: i % recordedAccounts,
			Key: i + 1, Permissions: lineartest.MayAll}
		if o.Key == parallelKey {
			o.Parallel = keptNonces
		}
		first.do(o)
	}
	first.do(lineartest.Operation{Kind: lineartest.CreateKey, Account: lineartest.FeeAccount,
		Key: feeKey, Permissions: lineartest.MayRead})
	for i := range recordedAccounts {
		for currency := range recordedCurrencies {
			amount := int64(900)
			if currency == 0 {
				amount = 12
			}
			first.do(lineartest.Operation{Kind: lineartest.Deposit, Account: i,
				Currency: currency, Amount: amount})
		}
	}
	h.history.Settle()
	return h
}

// feeKey is the number of the key that reads the income of fees.
const feeKey = recordedClients

// accountKey returns the number of an account's key that may read and is never revoked.
func accountKey(account int) int {
	if account == lineartest.FeeAccount {
		return feeKey
	}
	return account + 1
}

func (h *recorded) name(account int) string {
	if account == lineartest.FeeAccount {
		return "fees"
	}
	return fmt.Sprintf("h%d", account)
}

// play lets all clients act. The client that completes half of the actions causes the fault, while
// the others have requests in flight or still to send. When all have acted the fault is repaired.
func (h *recorded) play(fail, mend func()) {
	h.t.Helper()
	var acting sync.WaitGroup
	half := h.count() + recordedClients*operationsOfEach/2
	var killed *lineartest.Recorded
	kill := sync.OnceFunc(func() {
		killed = h.history.Begin(-1, lineartest.Operation{Kind: lineartest.Restart})
		fail()
	})
	for _, c := range h.clients {
		acting.Go(func() {
			for range operationsOfEach {
				if goOn := c.act(); c.unserved && h.nodes != nil {
					c.turn()
				} else if !goOn {
					return // the exchange is gone
				}
				if h.count() >= half {
					kill()
				}
			}
		})
	}
	// no request that the history records as sent earlier may reach the next exchange
	acting.Wait()
	kill() // the half was not reached: some secrets were not known
	mend()
	killed.End(lineartest.Result{Outcome: lineartest.Done})
	for _, c := range h.clients { // and again when it is back
		acting.Go(func() {
			for range operationsOfEach / 2 {
				c.act()
			}
		})
	}
	acting.Wait()
	h.thaw()
	h.receiveAll()
	h.history.Settle()
}

// looker returns a client that is distinct from the acting clients.
func (h *recorded) looker() *recordedClient {
	c := *h.clients[0]
	c.s, c.number = h.s, recordedClients
	return &c
}

// thaw ends the freezes. Of concurrent requests the one drawn first may have arrived last, so it
// also thaws accounts that should be thawed already. A subscriber of a frozen account cannot log
// in.
func (h *recorded) thaw() {
	c := h.looker()
	for account := range h.Frozen {
		c.do(lineartest.Operation{Kind: lineartest.Freeze, Account: account})
	}
	clear(h.Frozen)
}

// turn lets a client send to the next node that serves, or whose state is unknown.
func (c *recordedClient) turn() {
	for range 500 {
		c.s = c.h.nodes[(slices.Index(c.h.nodes, c.s)+1)%len(c.h.nodes)]
		if c.s.Ready() == nil {
			return
		}
		beOff(503)
	}
}

func (h *recorded) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended
}

// look reads everything while all rest, also the outcome of each order that may be open.
func (h *recorded) look() {
	c := h.looker()
	signed := func(o lineartest.Operation) {
		o.Key = accountKey(o.Account)
		o.Nonce = h.Nonce(o.Key)
		c.do(o)
	}
	for pair := range recordedPairs {
		c.do(lineartest.Operation{Kind: lineartest.ReadBook, Pair: pair})
	}
	for i := range lineartest.Accounts {
		c.do(lineartest.Operation{Kind: lineartest.ReadKeys, Account: i})
		for _, kind := range []lineartest.Kind{lineartest.ReadWallet, lineartest.ReadOpen,
			lineartest.ReadPending} {
			signed(lineartest.Operation{Kind: kind, Account: i})
		}
	}
	for _, o := range h.Sent {
		if !h.Closed[o.Number] {
			signed(lineartest.Operation{Kind: lineartest.ReadOrder, Account: o.Account,
				Order: o.Number})
		}
	}
	h.history.Settle()
}

// draw chooses what to do next: an operator's request now and then.
func (c *recordedClient) draw() []lineartest.Operation {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	if c.Random.IntN(6) == 0 {
		return []lineartest.Operation{c.Operate()}
	}
	list := c.Draw()
	if o := &list[0]; o.Kind == lineartest.ConfirmWithdrawal &&
		c.h.s.Mails.Code(lineartest.IDOf(c.h.Withdrawals, o.Withdrawal)) == "" {
		o.Kind = lineartest.CancelWithdrawal // the code is in flight
	}
	return list
}

// do sends one operation and records its result. False: the exchange is gone.
func (c *recordedClient) do(o lineartest.Operation) bool {
	c.h.mu.Lock()
	known := o.Key == 0 || o.Kind == lineartest.CreateKey || c.h.keys[o.Key] != nil
	noted := c.h.history.Begin(c.number, o)
	c.h.mu.Unlock()
	if !known { // its name and its secret are not, or not yet
		noted.Forget()
		return true
	}
	status, body, err := c.request(&o)
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	c.h.ended++
	return c.note(noted, status, body, err)
}

// note records an answer; the history is locked. False: the exchange is gone.
func (c *recordedClient) note(noted *lineartest.Recorded, status int, body string,
	err error) bool {
	o := &noted.Operation
	c.unserved = status == 0 || status == 503
	switch ofOperator := o.Kind.Needs() == 0; {
	case status == 0:
		return false
	case status == 400 && strings.Contains(body, "not all nodes of the cluster"):
		noted.Forget()
		return true
	case status != 503:
	case ofOperator && !turnedAway(status, errors.New(body)),
		!ofOperator && strings.Contains(body, "outcome_unknown"):
		return true
	default:
		noted.Forget()
		return true
	}
	var result lineartest.Result
	if err == nil {
		result, err = c.result(o, status, body)
	}
	if err != nil {
		c.h.t.Errorf("%+v is answered with %d %s: %v", *o, status, body, err)
		return true
	}
	noted.End(result)
	return true
}

// request sends the operation. A status of 0 means no answer.
func (c *recordedClient) request(o *lineartest.Operation) (status int, body string, err error) {
	h := c.h
	h.mu.Lock()
	order, withdrawal, key := lineartest.IDOf(h.Orders, o.Order),
		lineartest.IDOf(h.Withdrawals, o.Withdrawal), h.keys[o.Key]
	h.mu.Unlock()
	if o.Kind.Needs() == 0 {
		return c.unsigned(o, withdrawal, key)
	}
	form, path := "", ""
	switch o.Kind {
	case lineartest.Place:
		side := "sell"
		if o.Buy {
			side = "buy"
		}
		path, form = "/api/v1/order/",
			fmt.Sprintf("amount=%d&client_order_id=%d&pair=%s&price=%d&type=%s", o.Amount, o.Order,
				recordedPairs[o.Pair], o.Price, side)
	case lineartest.Cancel:
		path, form = "/api/v1/order-cancel/", fmt.Sprintf("order=%d", order)
	case lineartest.CancelAll:
		if path, form = "/api/v1/order-cancel-all/", "all=1"; o.Pair != lineartest.AllPairs {
			form = "pair=" + recordedPairs[o.Pair]
		}
	case lineartest.Withdrawal:
		path, form = "/api/v1/withdraw/",
			fmt.Sprintf("address=%d&amount=%d&currency=%s", o.Withdrawal, o.Amount,
				recordedCurrencies[o.Currency])
	case lineartest.ConfirmWithdrawal:
		path, form = "/api/v1/withdraw-confirm/",
			fmt.Sprintf("code=%s&withdraw=%d", c.h.s.Mails.Code(withdrawal), withdrawal)
	case lineartest.CancelWithdrawal:
		path, form = "/api/v1/withdraw-cancel/", fmt.Sprintf("withdraw=%d", withdrawal)
	case lineartest.ReadOrder:
		if path = fmt.Sprintf("/api/v1/order/%d/", order); order == 0 {
			path = fmt.Sprintf("/api/v1/orders/own/?client_order_id=%d", o.Order)
		}
	case lineartest.ReadOpen:
		path = "/api/v1/orders/own/?status=1"
	case lineartest.ReadWallet:
		path = "/api/v1/wallets/"
	case lineartest.ReadPending:
		path = "/api/v1/withdraws/?limit=1000"
	}
	method := "POST"
	if form == "" {
		method = "GET"
	}
	return key.at(c.s).send(method, path, form, o.Nonce)
}

// unsigned returns an operator's request, or a read of a book.
func (c *recordedClient) unsigned(o *lineartest.Operation, withdrawal uint64,
	key *trader) (int, string, error) {
	name := c.h.name(o.Account)
	switch o.Kind {
	case lineartest.ApproveWithdrawal:
		return c.moves("approve", map[string]any{"withdraw": withdrawal})
	case lineartest.RefuseWithdrawal:
		return c.moves("refuse", map[string]any{"withdraw": withdrawal, "details": "no"})
	case lineartest.Deposit, lineartest.Adjustment:
		c.h.mu.Lock()
		c.h.changes++
		asked := map[string]any{"account": name, "currency": recordedCurrencies[o.Currency],
			"amount": strconv.FormatInt(o.Amount, 10), "reference": fmt.Sprint("r-", c.h.changes)}
		c.h.mu.Unlock()
		path := "/operator/v1/deposits"
		if o.Kind == lineartest.Adjustment {
			path, asked["amount"], asked["reason"] = "/operator/v1/adjustments",
				strconv.FormatInt(-o.Amount, 10), "why"
		}
		return c.operator(path, asked, nil)
	case lineartest.CreateKey:
		asked := map[string]any{"account": name, "permissions": permissionNames(o.Permissions),
			// the second address identifies the key, should its answer be lost
			"allow": []string{"127.0.0.1/32", fmt.Sprintf("10.0.0.%d/32", o.Key)}}
		if o.Parallel > 0 {
			asked["parallel"] = o.Parallel
		}
		var made struct{ Key, Secret string }
		status, body, err := c.operator("/operator/v1/keys", asked, &made)
		if status == 200 {
			c.h.mu.Lock()
			c.h.keys[o.Key] = &trader{s: c.s, name: name, key: made.Key,
				secret: sign.New([]byte(made.Secret))}
			c.h.numbers[made.Key] = o.Key
			c.h.mu.Unlock()
		}
		return status, body, err
	case lineartest.RevokeKey:
		return c.operator("/operator/v1/keys/revoke", map[string]any{"key": key.key}, nil)
	case lineartest.Freeze:
		return c.operator("/operator/v1/accounts/freeze",
			map[string]any{"account": name, "on": o.On}, nil)
	case lineartest.ReadKeys:
		return c.readKeys(name)
	}
	return c.book(o.Pair)
}

var allPermissions = []string{"read", "trade", "withdraw"}

// permissionNames returns the names of a history's permissions, whose bits are in the same order.
func permissionNames(of uint8) (names []string) {
	for i, name := range allPermissions {
		if of&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// office returns the server for a client's operator.
func (c *recordedClient) office() *exchangetest.Server {
	if c.s == c.h.observer {
		return c.h.s
	}
	return c.s
}

func (c *recordedClient) operator(path string, body map[string]any,
	answer any) (int, string, error) {
	status, err := c.office().Call("POST", path, body, answer)
	if status != 0 && status != 200 {
		return status, err.Error(), nil
	}
	return status, "", err
}

// moves approves or refuses a withdrawal. A repeat is answered as such: like a refusal, it changes
// nothing.
func (c *recordedClient) moves(to string, body map[string]any) (int, string, error) {
	var moved struct{ Repeated bool }
	status, text, err := c.operator("/operator/v1/withdraws/"+to, body, &moved)
	if status == 200 && moved.Repeated {
		return 400, "repeated", err
	}
	return status, text, err
}

// readKeys joins the operator's reports of an account and of its keys.
func (c *recordedClient) readKeys(name string) (int, string, error) {
	var account struct{ Frozen bool }
	var list struct{ Keys []keyRow }
	at := c.office()
	status, err := at.Call("GET", "/operator/v1/account?name="+name, nil, &account)
	if err == nil {
		status, err = at.Call("GET", "/operator/v1/keys?account="+name, nil, &list)
	}
	if err != nil {
		return status, err.Error(), nil
	}
	b, err := json.Marshal(map[string]any{"Frozen": account.Frozen, "Keys": list.Keys})
	return status, string(b), err
}

// book puts the update id before the answer's body.
func (c *recordedClient) book(pair int) (int, string, error) {
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.SetRequestURI("http://" + c.s.Listen + "/api/v1/orderbook/" + recordedPairs[pair] +
		"?group=1")
	if err := c.s.Client.Do(req, resp); err != nil {
		return 0, "", err
	}
	return resp.StatusCode(), fmt.Sprintf(`{"update":%s,"book":%s}`,
		resp.Header.Peek("X-Update-Id"), resp.Body()), nil
}

// alreadyUsed matches the order that holds a client order id.
var alreadyUsed = regexp.MustCompile(`Already used by order ([0-9]+)`)

// refusal reads a refusal; ok is false if the answer is none.
func refusal(o *lineartest.Operation, status int, body string) (r lineartest.Result, ok bool) {
	moves := o.Kind >= lineartest.ConfirmWithdrawal && o.Kind <= lineartest.RefuseWithdrawal
	switch repeated := alreadyUsed.FindStringSubmatch(body); {
	case status == 401 && strings.Contains(body, `"nonce"`):
		r.Outcome = lineartest.RefusedNonce
		var answer struct{ Last uint64 }
		if json.Unmarshal([]byte(body), &answer) != nil {
			return r, false
		}
		r.LastNonce = answer.Last
	case status == 401 && strings.Contains(body, "Incorrect authentication credentials"):
		r.Outcome = lineartest.RefusedKey
	case status == 403 && strings.Contains(body, "The account is frozen"):
		r.Outcome = lineartest.RefusedFrozen
	case status == 403:
		r.Outcome = lineartest.RefusedPermission
	case status == 400 && repeated != nil:
		r.Outcome = lineartest.RefusedRepeated
		r.ID, _ = strconv.ParseUint(repeated[1], 10, 64)
	case status == 400 && (strings.Contains(body, "Out of balance") ||
		o.Kind == lineartest.Adjustment && strings.Contains(body, "were to be taken")):
		r.Outcome = lineartest.RefusedFunds
	case status == 400 && o.Kind == lineartest.ApproveWithdrawal &&
		strings.Contains(body, "despite_freeze"):
		r.Outcome = lineartest.RefusedFrozen
	case (status == 400 || status == 404) && moves,
		status == 400 && (o.Kind == lineartest.Cancel || o.Kind == lineartest.RevokeKey):
		r.Outcome = lineartest.RefusedState
	default:
		return r, false
	}
	return r, true
}

// result reads an answer; the history is locked.
func (c *recordedClient) result(o *lineartest.Operation, status int,
	body string) (r lineartest.Result, err error) {
	if r, ok := refusal(o, status, body); ok {
		return r, nil
	}
	missing := o.Kind == lineartest.ReadOrder && status == 404
	if status != 200 && status != 201 && !missing {
		return r, fmt.Errorf("status %d", status)
	}
	var id uint64
	r.Outcome = lineartest.Done
	ok := func(v any) error { return json.Unmarshal([]byte(body), v) }
	switch o.Kind {
	case lineartest.Place:
		var p placed
		if err = ok(&p); err != nil {
			return r, err
		}
		r.ID, r.Remains = p.ID, p.Amount.IntPart()
		for _, t := range p.Trades {
			r.Trades = append(r.Trades, lineartest.Trade{ID: t.ID, Price: t.Price.IntPart(),
				Amount: t.Amount.IntPart()})
		}
		id = p.ID
	case lineartest.Cancel:
		r.Remains = -1
	case lineartest.CancelAll:
		var answer struct{ Orders []uint64 }
		err = ok(&answer)
		r.Cancelled = answer.Orders
	case lineartest.Withdrawal:
		var row withdrawalRow
		err = ok(&row)
		id = row.ID
	case lineartest.ReadOrder, lineartest.ReadOpen:
		var rows []orderRow
		switch {
		case missing:
		case strings.HasPrefix(body, "{"):
			rows = make([]orderRow, 1)
			err = ok(&rows[0])
		default:
			err = ok(&rows)
		}
		r.Orders, err = orderRows(rows, err)
	case lineartest.ReadPending, lineartest.ReadWallet, lineartest.ReadKeys:
		err = c.h.rows(o.Kind, ok, &r)
	case lineartest.ReadBook:
		err = bookRows(ok, &r)
	}
	if err == nil {
		c.h.Acknowledge(o, &r, id)
	}
	return r, err
}

// rows reads the lists of withdrawals, of money and of keys.
func (h *recorded) rows(kind lineartest.Kind, ok func(any) error, r *lineartest.Result) error {
	switch kind {
	case lineartest.ReadPending:
		var list []withdrawalRow
		err := ok(&list)
		for _, w := range list {
			if w.Status >= 30 {
				continue
			}
			number, convErr := strconv.Atoi(w.Address)
			if convErr != nil {
				return convErr
			}
			r.Pending = append(r.Pending, lineartest.Pending{Withdrawal: number,
				Confirmed: w.Status == 20})
		}
		return err
	case lineartest.ReadWallet:
		var wallet []walletRow
		err := ok(&wallet)
		for _, w := range wallet {
			m := moneyOf(w)
			r.Funds[m.Currency] = m.Funds
		}
		return err
	}
	var report struct {
		Frozen bool
		Keys   []keyRow
	}
	err := ok(&report)
	r.Frozen = report.Frozen
	for _, k := range report.Keys {
		row := lineartest.KeyRow{Key: h.numbers[k.Key], Revoked: k.Revoked}
		if row.Key == 0 { // its name is unknown
			if _, err := fmt.Sscanf(k.Allow[len(k.Allow)-1], "10.0.0.%d/32", &row.Key); err != nil {
				return err
			}
		}
		for i, name := range allPermissions {
			if slices.Contains(k.Permissions, name) {
				row.Permissions |= 1 << i
			}
		}
		r.Keys = append(r.Keys, row)
	}
	slices.SortFunc(r.Keys, func(a, b lineartest.KeyRow) int { return a.Key - b.Key })
	return err
}

// moneyOf returns a row of a wallet in the history's form.
func moneyOf(w walletRow) lineartest.Money {
	units := func(d decimal.Decimal) int64 { return d.Shift(4).IntPart() }
	return lineartest.Money{Currency: slices.Index(recordedCurrencies, w.Currency),
		Funds: lineartest.Funds{Balance: units(w.Balance), Reserve: units(w.Reserve)}}
}

func bookRows(ok func(any) error, r *lineartest.Result) error {
	type level struct{ Price, Amount decimal.Decimal }
	var book struct {
		Update uint64
		Book   struct{ Buy, Sell []level }
	}
	err := ok(&book)
	r.UpdateID = book.Update
	for side, levels := range [][]level{book.Book.Buy, book.Book.Sell} {
		for _, l := range levels {
			r.Levels[side] = append(r.Levels[side],
				lineartest.Level{Price: l.Price.IntPart(), Amount: l.Amount.IntPart()})
		}
	}
	return err
}

func orderRows(rows []orderRow, err error) (list []lineartest.OrderRow, _ error) {
	for _, row := range rows {
		number, convErr := strconv.Atoi(row.ClientID)
		if convErr != nil {
			return nil, convErr
		}
		status := map[int]lineartest.Status{1: lineartest.Open, 2: lineartest.Cancelled,
			3: lineartest.Filled}[row.Status]
		list = append(list, lineartest.OrderRow{Order: number, ID: row.ID, Status: status,
			Remains: row.Amount.IntPart()})
	}
	return list, err
}
