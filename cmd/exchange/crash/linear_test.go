package crash

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/valyala/fasthttp"

	"exchange/actors/lineartest"
	"exchange/cmd/exchange/exchangetest"
	"exchange/persistence/redistest"
)

// What clients are told over HTTP is what one exchange would tell them that does one thing after the other, and that is
// never killed.
func TestHistoriesThroughKillsAreLinearizable(t *testing.T) {
	for name, store := range map[string]func() string{
		"pebble": func() string { return "pebble:" + t.TempDir() }, "redis": func() string { return redistest.Start(t).URL() },
	} {
		t.Run(name, func(t *testing.T) {
			err := throughKills(t, store())
			if errors.Is(err, lineartest.ErrUndecided) {
				t.Logf("%v; there is another in its place", err)
				err = throughKills(t, store())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// throughKills records a history on a fresh store, and checks it.
func throughKills(t *testing.T, store string) error {
	s := exchangetest.New(t, store)
	s.Start()
	h := newHistory(t, s)
	for n := 0; n < 2 || n < 6 && h.history.Count(lineartest.Unknown) == 0; n++ { // a slow killer may come too late
		h.play(func() { s.Kill(); s.Start() })
	}
	h.lastLook()
	t.Logf("%d done, %d refused, %d refused for funds, %d without an outcome", h.history.Count(lineartest.Done),
		h.history.Count(lineartest.RefusedState), h.history.Count(lineartest.RefusedFunds), h.history.Count(lineartest.Unknown))
	if h.history.Count(lineartest.Unknown) == 0 {
		t.Error("no request was under way when the exchange was killed")
	}
	if err := s.Audit(); err != nil {
		t.Error(err)
	}
	return h.history.Check()
}

// A recorded is a history of clients of the real program, while it is made.
type recorded struct {
	t       *testing.T
	s       *exchangetest.Server
	clients []*recordedClient
	history lineartest.History

	mu          sync.Mutex
	orders      map[int]uint64 // ids that were told, by the clients' numbers
	owners      map[int]int    // accounts of orders and of withdrawals
	orderCount  int
	withdrawals map[int]uint64
	drawOwners  map[int]int
	drawCount   int
	ended       int // operations
}

// A recordedClient sends one request after the other with a key of its own.
type recordedClient struct {
	*trader
	h       *recorded
	number  int
	account int
}

// Bounds of a history.
const (
	recordedAccounts = 3
	recordedClients  = 5
	operationsOfEach = 7 // of a client, between two kills
)

func newHistory(t *testing.T, s *exchangetest.Server) *recorded {
	t.Helper()
	h := &recorded{t: t, s: s, orders: map[int]uint64{}, owners: map[int]int{}, withdrawals: map[int]uint64{}, drawOwners: map[int]int{}}
	random := newRandom(t)
	w := &world{t: t, s: s}
	for i := range recordedAccounts {
		name := fmt.Sprintf("h%d", i)
		h.clients = append(h.clients, &recordedClient{trader: w.accountWith(name, name+"@example.org", []string{"read", "trade", "withdraw"}, random), h: h, number: i, account: i})
		for quote, amount := range map[bool]int64{false: 12, true: 900} {
			h.clients[i].do(lineartest.Operation{Kind: lineartest.Deposit, Account: i, Quote: quote, Amount: amount})
		}
	}
	for i := recordedAccounts; i < recordedClients; i++ { // further keys of accounts that are there
		first := h.clients[i-recordedAccounts]
		key := w.keyOf(first.name, []string{"read", "trade", "withdraw"})
		h.clients = append(h.clients, &recordedClient{trader: key, h: h, number: i, account: first.account})
		key.rand = rand.New(rand.NewPCG(random.Uint64(), 0))
	}
	return h
}

// play lets all clients act, and kills the exchange when half of it is done.
func (h *recorded) play(kill func()) {
	h.t.Helper()
	var acting sync.WaitGroup
	half := h.count() + recordedClients*operationsOfEach/2
	for _, c := range h.clients {
		acting.Go(func() {
			for range operationsOfEach {
				if !c.do(c.draw()) {
					return // the exchange is gone
				}
			}
		})
	}
	exchangetest.Eventually(h.t, "half of the operations are done", func() bool { return h.count() >= half || h.t.Failed() })
	kill()
	acting.Wait()
	for _, c := range h.clients { // and again when it is back
		acting.Go(func() { c.do(c.draw()) })
	}
	acting.Wait()
}

func (h *recorded) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended
}

// lastLook is of somebody who comes when everybody has left.
func (h *recorded) lastLook() {
	for _, sent := range h.history.Operations() { // what became of it
		if k := sent.Operation.Kind; sent.Result.Outcome == lineartest.Unknown && (k == lineartest.Place || k == lineartest.Cancel) {
			h.clients[sent.Operation.Account].do(lineartest.Operation{Kind: lineartest.ReadOrder, Account: sent.Operation.Account, Order: sent.Operation.Order})
		}
	}
	h.clients[0].do(lineartest.Operation{Kind: lineartest.ReadBook})
	for i, c := range h.clients[:recordedAccounts] {
		c.do(lineartest.Operation{Kind: lineartest.ReadOpen, Account: i})
		c.do(lineartest.Operation{Kind: lineartest.ReadWallet, Account: i})
	}
}

// draw chooses what to do.
func (c *recordedClient) draw() lineartest.Operation {
	h := c.h
	h.mu.Lock()
	defer h.mu.Unlock()
	o := lineartest.Operation{Account: c.account}
	newest := func(owners map[int]int, count int) int { // one of the account's that was told
		for n := count - c.rand.IntN(4); n > 0; n-- {
			if owner, known := owners[n]; known && owner == c.account {
				return n
			}
		}
		return 0
	}
	switch kind := c.rand.IntN(20); {
	case kind < 5:
		if o.Order = newest(h.owners, h.orderCount); o.Order > 0 {
			o.Kind = lineartest.Cancel
			if kind < 2 {
				o.Kind = lineartest.ReadOrder
			}
			return o
		}
	case kind == 5:
		o.Kind = lineartest.ReadOpen
		return o
	case kind < 8:
		o.Kind = lineartest.ReadWallet
		return o
	case kind == 8:
		o.Kind = lineartest.ReadBook
		return o
	case kind == 9:
		h.drawCount++
		o.Kind, o.Withdrawal, o.Quote, o.Amount = lineartest.Withdraw, h.drawCount, c.rand.IntN(2) == 0, 1+c.rand.Int64N(8)
		return o
	case kind < 13:
		if o.Withdrawal = newest(h.drawOwners, h.drawCount); o.Withdrawal > 0 {
			o.Kind = []lineartest.Kind{lineartest.ConfirmWithdraw, lineartest.ConfirmWithdraw, lineartest.CancelWithdraw, lineartest.ApproveWithdraw, lineartest.RefuseWithdraw}[c.rand.IntN(5)]
			if o.Kind == lineartest.ConfirmWithdraw &&
				c.s.Mails.Code(h.withdrawals[o.Withdrawal]) == "" {
				o.Kind = lineartest.ReadWallet // the code is on its way
			}
			return o
		}
	case kind == 13:
		o.Kind, o.Amount = lineartest.Deposit, 1+c.rand.Int64N(2)
		return o
	}
	h.orderCount++
	o.Kind, o.Order, o.Buy, o.Price, o.Amount = lineartest.Place, h.orderCount, c.rand.IntN(2) == 0, 98+c.rand.Int64N(5), 1+c.rand.Int64N(4)
	return o
}

// do sends one operation and notes its result. False: the exchange is gone.
func (c *recordedClient) do(o lineartest.Operation) bool {
	noted := c.h.history.Begin(c.number, o)
	c.nonce++
	status, body, err := c.request(&o)
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	c.h.ended++
	if status == 0 || status == 503 && strings.Contains(body, "outcome_unknown") {
		return status != 0
	}
	if status == 503 {
		noted.Forget()
		return true
	}
	var result lineartest.Result
	if err == nil {
		result, err = c.result(&o, status, body)
	}
	if err != nil {
		c.h.t.Errorf("%+v is answered with %d %s: %v", o, status, body, err)
		return true
	}
	noted.End(result)
	return true
}

// request sends it. A status of 0 says that nobody has answered.
func (c *recordedClient) request(o *lineartest.Operation) (status int, body string, err error) {
	c.h.mu.Lock()
	order, withdrawal := c.h.orders[o.Order], c.h.withdrawals[o.Withdrawal]
	c.h.mu.Unlock()
	currency := "BTC"
	if o.Quote {
		currency = "USDT"
	}
	form, path := "", ""
	switch o.Kind {
	case lineartest.Place:
		side := "sell"
		if o.Buy {
			side = "buy"
		}
		path, form = "/api/v1/order/", fmt.Sprintf("amount=%d&client_order_id=%d&pair=BTC_USDT&price=%d&type=%s", o.Amount, o.Order, o.Price, side)
	case lineartest.Cancel:
		path, form = "/api/v1/order-cancel/", fmt.Sprintf("order=%d", order)
	case lineartest.Withdraw:
		path, form = "/api/v1/withdraw/", fmt.Sprintf("address=somewhere&amount=%d&currency=%s", o.Amount, currency)
	case lineartest.ConfirmWithdraw:
		path, form = "/api/v1/withdraw-confirm/",
			fmt.Sprintf("code=%s&withdraw=%d", c.s.Mails.Code(withdrawal), withdrawal)
	case lineartest.CancelWithdraw:
		path, form = "/api/v1/withdraw-cancel/", fmt.Sprintf("withdraw=%d", withdrawal)
	case lineartest.ApproveWithdraw:
		return c.operator("/operator/v1/withdraws/approve", map[string]any{"withdraw": withdrawal})
	case lineartest.RefuseWithdraw:
		return c.operator("/operator/v1/withdraws/refuse", map[string]any{"withdraw": withdrawal, "details": "no"})
	case lineartest.Deposit:
		return c.operator("/operator/v1/deposits", map[string]any{"account": fmt.Sprintf("h%d", o.Account), "currency": currency,
			"amount": strconv.FormatInt(o.Amount, 10), "reference": fmt.Sprintf("%d-%d", c.number, c.nonce)})
	case lineartest.ReadOrder:
		if path = fmt.Sprintf("/api/v1/order/%d/", order); order == 0 {
			path = fmt.Sprintf("/api/v1/orders/own/?client_order_id=%d", o.Order)
		}
	case lineartest.ReadOpen:
		path = "/api/v1/orders/own/?status=1"
	case lineartest.ReadWallet:
		path = "/api/v1/wallets/"
	case lineartest.ReadBook:
		return c.book()
	}
	method := "POST"
	if form == "" {
		method = "GET"
	}
	status, body, err = c.send(method, path, form, c.nonce)
	return status, body, err
}

func (c *recordedClient) operator(path string, body map[string]any) (int, string, error) {
	status, err := c.s.Call("POST", path, body, nil)
	if status != 0 && status != 200 {
		return status, err.Error(), nil
	}
	return status, "", err
}

// book has the update id before the answer's body.
func (c *recordedClient) book() (int, string, error) {
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.SetRequestURI("http://" + c.s.Listen + "/api/v1/orderbook/BTC_USDT?group=1")
	if err := c.s.Client.Do(req, resp); err != nil {
		return 0, "", err
	}
	return resp.StatusCode(), fmt.Sprintf(`{"update":%s,"book":%s}`, resp.Header.Peek("X-Update-Id"), resp.Body()), nil
}

// result reads an answer; the history is locked.
func (c *recordedClient) result(o *lineartest.Operation, status int, body string) (r lineartest.Result, err error) {
	h := c.h
	r.Outcome = lineartest.Done
	ok := func(v any) error { return json.Unmarshal([]byte(body), v) }
	switch {
	case status == 400 && strings.Contains(body, "Out of balance"):
		r.Outcome = lineartest.RefusedFunds
	case (status == 400 || status == 404) && o.Kind >= lineartest.ConfirmWithdraw && o.Kind <= lineartest.RefuseWithdraw, status == 400 && o.Kind == lineartest.Cancel:
		r.Outcome = lineartest.RefusedState
	case status != 200 && status != 201:
		return r, fmt.Errorf("status %d", status)
	case o.Kind == lineartest.Place:
		var p placed
		if err = ok(&p); err != nil {
			return r, err
		}
		r.ID, r.Remains = p.ID, p.Amount.IntPart()
		for _, t := range p.Trades {
			r.Trades = append(r.Trades, lineartest.Trade{ID: t.ID, Price: t.Price.IntPart(), Amount: t.Amount.IntPart()})
		}
		h.orders[o.Order], h.owners[o.Order] = p.ID, o.Account
	case o.Kind == lineartest.Cancel:
		r.Remains = -1
	case o.Kind == lineartest.Withdraw:
		var row withdrawRow
		err = ok(&row)
		h.withdrawals[o.Withdrawal], h.drawOwners[o.Withdrawal] = row.ID, o.Account
	case o.Kind == lineartest.ReadOrder && strings.HasPrefix(body, "{"):
		var row orderRow
		err = ok(&row)
		r.Orders, err = orderRows([]orderRow{row}, err)
	case o.Kind == lineartest.ReadOrder, o.Kind == lineartest.ReadOpen:
		var rows []orderRow
		err = ok(&rows)
		r.Orders, err = orderRows(rows, err)
	case o.Kind == lineartest.ReadWallet:
		var wallet []walletRow
		err = ok(&wallet)
		for _, w := range wallet {
			funds := lineartest.Funds{Balance: w.Balance.IntPart(), Reserve: w.Reserve.IntPart()}
			if w.Currency == "BTC" {
				r.Base = funds
			} else {
				r.Quote = funds
			}
		}
	case o.Kind == lineartest.ReadBook:
		type level struct{ Price, Amount decimal.Decimal }
		var book struct {
			Update uint64
			Book   struct{ Buy, Sell []level }
		}
		err = ok(&book)
		r.UpdateID = book.Update
		for side, levels := range [][]level{book.Book.Buy, book.Book.Sell} {
			for _, l := range levels {
				r.Levels[side] = append(r.Levels[side], lineartest.Level{Price: l.Price.IntPart(), Amount: l.Amount.IntPart()})
			}
		}
	}
	return r, err
}

func orderRows(rows []orderRow, err error) (list []lineartest.OrderRow, _ error) {
	for _, row := range rows {
		number, convErr := strconv.Atoi(row.ClientID)
		if convErr != nil {
			return nil, convErr
		}
		status := map[int]lineartest.Status{1: lineartest.Open, 2: lineartest.Cancelled, 3: lineartest.Filled}[row.Status]
		list = append(list, lineartest.OrderRow{Order: number, ID: row.ID, Status: status, Remains: row.Amount.IntPart()})
	}
	return list, err
}
