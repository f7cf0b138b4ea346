//go:build prove

package processes

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shopspring/decimal"
	"github.com/valyala/fasthttp"

	"exchange/gateway/sign"
	"exchange/prove/exchangetest"
)

// A trader is one account that sends one request after the other, and stores each with its outcome.
type trader struct {
	s      *exchangetest.Server
	name   string
	key    string
	secret *sign.Keyed
	nonce  uint64
	rand   *rand.Rand

	orders map[string]*sentOrder // by client order id
	open   []*sentOrder          // acknowledged, and not known to be closed
	last   *sentRequest          // the newest acknowledged POST
	next   int

	backingUp *atomic.Bool // a backup has begun, or is there; nil: none is taken
	early     *sentRequest // as last, before the backup
}

type sentRequest struct {
	path, form string
	nonce      uint64
}

// The outcome of a request, from its client's view.
type outcome int

const (
	unknown outcome = iota
	acknowledged
	refused
)

type sentOrder struct {
	clientID, side string
	price, amount  decimal.Decimal
	outcome        outcome
	id             uint64
	filled         decimal.Decimal // when it was placed
	trades         []tradeInfo
	cancel         outcome // of the newest cancel, if one was sent
	cancelSent     bool

	late, cancelLate bool // it was acknowledged when a backup had begun, and may be missing in it
}

type tradeInfo struct {
	ID     uint64          `json:"tid"`
	Price  decimal.Decimal `json:"price"`
	Amount decimal.Decimal `json:"amount"`
}

type placed struct {
	Success bool            `json:"success"`
	ID      uint64          `json:"oid"`
	Amount  decimal.Decimal `json:"amount"`
	Filled  decimal.Decimal `json:"amount_filled"`
	Trades  []tradeInfo     `json:"trades"`
}

// at returns a user of another exchange with the same key.
func (t *trader) at(s *exchangetest.Server) *trader {
	return &trader{s: s, name: t.name, key: t.key, secret: t.secret}
}

// send signs and sends; an error means that the connection broke, and the outcome is unknown.
func (t *trader) send(method, path, form string, nonce uint64) (int, string, error) {
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.Header.SetMethod(method)
	req.SetRequestURI("http://" + t.s.Listen + path)
	req.Header.Set("X-KEY", t.key)
	req.Header.Set("X-NONCE", strconv.FormatUint(nonce, 10))
	req.Header.Set("X-SIGN", string(t.secret.Sign(nil, []byte(t.key+form))))
	if form != "" {
		req.Header.SetContentType("application/x-www-form-urlencoded")
		req.SetBodyString(form)
	}
	if err := t.s.Client.Do(req, resp); err != nil {
		return 0, "", err
	}
	return resp.StatusCode(), string(resp.Body()), nil
}

// demoSecret returns the documented secret of a demo account.
func demoSecret(name string) *sign.Keyed { return sign.New([]byte("demo-" + name + "-secret")) }

// act sends one random request. False: the exchange is gone.
func (t *trader) act() (goOn bool, err error) {
	t.nonce++
	if len(t.open) > 0 && t.rand.IntN(10) < 4 {
		return t.cancel()
	}
	return t.place()
}

func (t *trader) place() (bool, error) {
	t.next++
	o := &sentOrder{clientID: fmt.Sprintf("%s-%d", t.name, t.next), side: "buy",
		price:  decimal.New(int64(9_900+t.rand.IntN(200)), -2),
		amount: decimal.New(int64(1000+t.rand.IntN(2_000_000)), -8)}
	if t.rand.IntN(2) == 0 {
		o.side = "sell"
	}
	if t.rand.IntN(20) == 0 { // now and then more than any account has
		o.amount = decimal.NewFromInt(500_000)
	}
	t.orders[o.clientID] = o
	form := fmt.Sprintf("amount=%s&client_order_id=%s&pair=BTC_USDT&price=%s&type=%s", o.amount,
		o.clientID, o.price, o.side)
	status, body, err := t.send("POST", "/api/v1/order/", form, t.nonce)
	switch {
	case err != nil:
		return false, nil
	case status == 503 && strings.Contains(body, "outcome_unknown"):
		return true, nil
	case status == 201:
		var p placed
		if err := json.Unmarshal([]byte(body), &p); err != nil || !p.Success {
			return false, fmt.Errorf("answer to an order: %s: %v", body, err)
		}
		o.outcome, o.id, o.filled, o.trades = acknowledged, p.ID, p.Filled, p.Trades
		o.late = t.acknowledged(&sentRequest{"/api/v1/order/", form, t.nonce})
		if p.Amount.IsPositive() {
			t.open = append(t.open, o)
		}
	case status == 400 && strings.Contains(body, "Out of balance"), status == 503:
		o.outcome = refused
		beOff(status)
	default:
		return false, fmt.Errorf("order %s: %d %s", form, status, body)
	}
	return true, nil
}

func (t *trader) cancel() (bool, error) {
	i := t.rand.IntN(len(t.open))
	o := t.open[i]
	t.open[i] = t.open[len(t.open)-1]
	t.open = t.open[:len(t.open)-1]
	o.cancelSent = true
	form := "order=" + strconv.FormatUint(o.id, 10)
	status, body, err := t.send("POST", "/api/v1/order-cancel/", form, t.nonce)
	switch {
	case err != nil:
		return false, nil
	case status == 503 && strings.Contains(body, "outcome_unknown"):
		return true, nil
	case status == 200:
		o.cancel = acknowledged
		o.cancelLate = t.acknowledged(&sentRequest{"/api/v1/order-cancel/", form, t.nonce})
	case status == 400 && strings.Contains(body, "already done"), status == 503,
		// its row could not be read, at an observer whose member has just died
		status == 400 && strings.Contains(body, "Order is not open"):
		o.cancel = refused
		beOff(status)
	default:
		return false, fmt.Errorf("cancel of %d: %d %s", o.id, status, body)
	}
	return true, nil
}

// acknowledged records a request, and reports whether a backup had begun by then.
func (t *trader) acknowledged(r *sentRequest) (late bool) {
	t.last = r
	if late = t.backingUp != nil && t.backingUp.Load(); !late {
		t.early = r
	}
	return late
}

// refusesTheLast sends the bytes of the newest acknowledged request again: their nonce is used,
// also after a crash.
func (t *trader) refusesTheLast() error {
	if t.last == nil {
		return nil
	}
	status, body, err := t.patient("POST", t.last.path, t.last.form,
		func() uint64 { return t.last.nonce })
	if err != nil || status != 401 || !strings.Contains(body, "Wrong Nonce") {
		return fmt.Errorf("a used nonce is answered with %d %s (%v)", status, body, err)
	}
	return nil
}

// patient repeats a request while it is turned away, for up to readPatience: an exchange turns
// requests away on a machine that stalls briefly. nonce returns the nonce of each try.
func (t *trader) patient(method, path, form string, nonce func() uint64) (status int, body string,
	err error) {
	for deadline := time.Now().Add(readPatience); ; beOff(status) {
		status, body, err = t.send(method, path, form, nonce())
		if err != nil || status != 503 || time.Now().After(deadline) {
			return status, body, err
		}
	}
}

// beOff waits after a 503, though for less than Retry-After.
func beOff(status int) {
	if status == 503 {
		<-time.After(20 * time.Millisecond)
	}
}

// get reads one page. For a second after a failed dial the client library reports that there is no
// store.
func (t *trader) get(path string, v any) error {
	status, body, err := t.patient("GET", path, "", func() uint64 { t.nonce++; return t.nonce })
	if err != nil {
		return err
	}
	if status != 200 {
		return fmt.Errorf("GET %s: %d %s", path, status, body)
	}
	return json.Unmarshal([]byte(body), v)
}

const readPatience = 20 * time.Second

type orderRow struct {
	ID       uint64          `json:"id"`
	Side     string          `json:"type"`
	Status   int             `json:"status"`
	Price    decimal.Decimal `json:"price"`
	Amount   decimal.Decimal `json:"amount"`
	Filled   decimal.Decimal `json:"amount_filled"`
	Original decimal.Decimal `json:"amount_original"`
	ClientID string          `json:"client_order_id"`
}

type tradeRow struct {
	ID     uint64          `json:"id"`
	Price  decimal.Decimal `json:"price"`
	Amount decimal.Decimal `json:"amount"`
	MySide string          `json:"my_side"`
}

type walletRow struct {
	Currency string          `json:"currency"`
	Balance  decimal.Decimal `json:"balance"`
	Reserve  decimal.Decimal `json:"reserve"`
}

// pages reads a complete list, page by page below the last id seen.
func pages[T any](t *trader, path string, limit int, id func(T) uint64) ([]T, error) {
	var all []T
	before := ""
	for {
		var page []T
		if err := t.get(fmt.Sprintf("%s?limit=%d%s", path, limit, before), &page); err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) < limit {
			return all, nil
		}
		before = fmt.Sprintf("&before=%d", id(page[len(page)-1]))
	}
}
