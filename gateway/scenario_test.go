package gateway_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/prove/harness"
)

// The scenarios are the specification of the exchange in examples: scripts of what users and
// operators send and see, with the whole output compared. Each file is one exchange from its first
// start on. Times are shown as T. Sequences are shown as N, because sent mails increase them at any
// time.
//
//	open NAME[=EMAIL]...                              accounts with a key each
//	deposit NAME AMOUNT CURRENCY [reference=R]
//	place NAME buy|sell [pair=X] [id=CLIENT_ORDER_ID] FIELD=VALUE... [with=FORM]
//	test NAME buy|sell ...                            as place, but only asks
//	amend NAME ORDER|id=CLIENT_ORDER_ID FIELD=VALUE...
//	cancel NAME ORDER|id=CLIENT_ORDER_ID
//	batch NAME                                        an item on each line of its input
//	cancel-all NAME [pair=X] [type=T] [prefix=P]      all, if no filter is given
//	switch NAME [FIELD=VALUE...]                      shows the key's, if there is no field
//	settings NAME [FIELD=VALUE...]                    likewise
//	info
//	book [pair=X] [query=Q]     balances NAME     orders NAME [query=Q]
//	order NAME ID [until=FIELD:VALUE]                 waits until the row has the field
//	trades [query=Q]            own-trades NAME [query=Q]     ticker [pair=X]
//	withdraw NAME AMOUNT CURRENCY [to=ADDRESS]
//	confirm NAME WITHDRAW [code=C]                    the last mailed code, if it is not given
//	cancel-withdraw NAME WITHDRAW
//	withdrawals NAME [query=Q]    deposits NAME [query=Q]       fees NAME
//	mails                       that were sent since the last time
//	operator WHAT...            see operate
//	restart | crash             an orderly stop, or none, and a start on the same store
//	limits NAME=VALUE...        restart with other limits and fees
//
// A field is sent as it is named. The pair is BTC_USDT, and the amount is 1, unless the script says
// otherwise. A time +S is S seconds from now.
//
// Run with -rewrite to rewrite the output, and read the difference.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		harness.Bubble(t, func(t *testing.T) { scenario(t, path) })
	})
}

// scenario plays a script.
func scenario(t *testing.T, path string) {
	// the scripts have times of ours
	time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
	var change func(*actors.Options)
	post := &postman{}
	h := harness.New(t, func(o *actors.Options) {
		o.Mail = post.take
		if change != nil {
			change(o)
		}
	})
	datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
		s := script{h: h, d: d, post: post}
		switch d.Cmd {
		case "limits", "restart", "crash":
			s.delivered() // or a mail sent just now might be sent again
		}
		switch d.Cmd {
		case "open":
			for _, a := range d.CmdArgs {
				h.AccountAt(a.Key, strings.Join(a.Vals, ""))
			}
			return "ok"
		case "limits":
			change = s.limits()
			h.Stop()
			h.Start()
			return "ok"
		case "restart", "crash":
			if d.Cmd == "crash" {
				h.Crash()
			} else {
				h.Stop()
			}
			h.Start()
			return "ok"
		}
		out := s.run()
		s.rest()
		return out
	})
}

// rest waits until both sides are equal: triggered orders may be in flight.
func (s script) rest() {
	if err := harness.AtRest(s.h.Engine); err != nil {
		s.h.T.Fatalf("%s: after %s: %v", s.d.Pos, s.d.Cmd, err)
	}
}

// A postman keeps the mails of an engine.
type postman struct {
	mu    sync.Mutex
	mails []actors.Mail
	shown int
}

func (p *postman) take(_ context.Context, m *actors.Mail) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mails = append(p.mails, *m)
	return nil
}

// delivered waits until all mails are sent, and returns them.
func (s script) delivered() []actors.Mail {
	harness.Eventually(s.h.T.(*testing.T), "all mails are sent", func() bool {
		q := &committed.Outbox{Limit: 1}
		if err := s.h.Engine.Ask(q, nil, 0); err != nil {
			s.h.T.Fatal(err)
		}
		return len(q.Mails) == 0
	})
	s.post.mu.Lock()
	defer s.post.mu.Unlock()
	return slices.Clone(s.post.mails)
}

func (s script) mails() string {
	all, lines := s.delivered(), []string{}
	for _, m := range all[s.post.shown:] {
		line := fmt.Sprintf("to %s: withdraw %d of %v %s to %s, ", m.To, m.Withdrawal.ID,
			m.Withdrawal.Amount, m.Currency, m.Withdrawal.Address)
		if m.Code != "" {
			line += "a code" // of each run another one
		} else {
			line += "refused: " + m.Withdrawal.Details
		}
		lines = append(lines, line)
	}
	s.post.shown = len(all)
	return cmp.Or(strings.Join(lines, "\n"), "none")
}

// code is the newest code that was mailed for a withdrawal.
func (s script) code(withdrawal string) string {
	for _, m := range slices.Backward(s.delivered()) {
		if fmt.Sprint(m.Withdrawal.ID) == withdrawal && m.Code != "" {
			return m.Code
		}
	}
	return "none"
}

type script struct {
	h    *harness.Exchange
	d    *datadriven.TestData
	post *postman
}

func (s script) arg(i int) string {
	if i >= len(s.d.CmdArgs) {
		s.d.Fatalf(s.h.T.(*testing.T), "argument %d is missing", i+1)
	}
	return s.d.CmdArgs[i].Key
}

func (s script) option(name, unset string) string {
	for _, a := range s.d.CmdArgs {
		if a.Key == name {
			return strings.Join(a.Vals, ",")
		}
	}
	return unset
}

func (s script) query() string {
	if q := s.option("query", ""); q != "" {
		return "?" + q
	}
	return ""
}

func (s script) limits() func(*actors.Options) {
	args := s.d.CmdArgs
	return func(o *actors.Options) {
		for _, a := range args {
			n, _ := strconv.Atoi(a.Vals[0]) // a bad number is 0, and the script fails
			switch a.Key {
			case "pending_withdraws":
				o.Limits.PendingWithdrawals = n
			case "code_tries":
				o.Withdrawal.CodeTries = n
			case "code_valid_s":
				o.Withdrawal.CodeValid = time.Duration(n) * time.Second
			case "fees": // of BTC_USDT: the maker's, the taker's
				o.Pairs[0].Fees = state.FeeRates{Maker: s.rate(a.Vals[0]),
					Taker: s.rate(a.Vals[1])}
			case "max_fills":
				o.Limits.MaxFills = n
			case "price_tick": // of BTC_USDT
				tick, err := money.ParsePrice(a.Vals[0])
				if err != nil {
					s.h.T.Fatal(err)
				}
				o.Pairs[0].PriceTick = tick
			case "price_band": // of BTC_USDT, as are the collars
				o.Pairs[0].PriceBand = s.rate(a.Vals[0])
			case "market_collar":
				o.Pairs[0].MarketCollar = s.rate(a.Vals[0])
			case "stop_collar":
				o.Pairs[0].StopCollar = s.rate(a.Vals[0])
			case "switch_grace_s":
				o.Timing.SwitchGrace = time.Duration(n) * time.Second
			case "amount_step": // of BTC_USDT
				step, err := money.ParseAmount(a.Vals[0])
				if err != nil {
					s.h.T.Fatal(err)
				}
				o.Pairs[0].AmountStep = step
			case "open_orders_per_account":
				o.Limits.OpenOrdersPerAccount = n
			case "open_orders_per_account_and_book":
				o.Limits.OpenOrdersPerAccountAndBook = n
			case "open_orders_per_book":
				o.Limits.OpenOrdersPerBook = n
			case "stops_per_account":
				o.Limits.StopsPerAccountAndBook = n
			case "stops_per_book":
				o.Limits.StopsPerBook = n
			case "gtd_per_account":
				o.Limits.GTDPerAccountAndBook = n
			case "gtd_per_book":
				o.Limits.GTDPerBook = n
			}
		}
	}
}

func (s script) rate(text string) money.Rate {
	r, err := money.ParseRate(text)
	if err != nil {
		s.h.T.Fatal(err)
	}
	return r
}

func (s script) run() string {
	h := s.h
	switch s.d.Cmd {
	case "deposit":
		amount := harness.Must(money.ParseAmount(s.arg(1)))
		a, err := h.Engine.Deposit("test", s.arg(0), s.arg(2), amount,
			s.option("reference", s.d.Pos))
		switch {
		case err != nil:
			return "error: " + err.Error()
		case a.Repeated:
			return fmt.Sprintf("deposit %d, repeated", a.Deposit)
		}
		return fmt.Sprintf("deposit %d", a.Deposit)
	case "place", "test", "amend", "cancel", "cancel-all":
		return s.trade()
	case "batch":
		return s.batch()
	case "switch":
		return s.setting("/api/v1/order-cancel-after/")
	case "settings":
		return s.setting("/api/v1/trading-settings/")
	case "info":
		return show(h.Do("GET", "/api/v1/exchange-info/", "", ""))
	case "book":
		a := h.Do("GET", "/api/v1/orderbook/"+s.option("pair", "BTC_USDT")+"/"+s.query(), "", "")
		out := strings.NewReplacer(`{"sell":[`, "sell: ", `],"buy":[`, "\nbuy:  ", `]}`, "", `},{`,
			"}\n      {").Replace(show(a))
		return out + "\nX-Update-Id: " + string(a.Header.Peek("X-Update-Id"))
	case "balances":
		return show(h.Get(s.arg(0), "/api/v1/wallets/"+s.query()))
	case "orders":
		return show(h.Get(s.arg(0), "/api/v1/orders/own/"+s.query()))
	case "order":
		return s.order()
	case "trades":
		return show(h.Do("GET", "/api/v1/exchanges/"+s.query(), "", ""))
	case "own-trades":
		return show(h.Get(s.arg(0), "/api/v1/exchanges/own/"+s.query()))
	case "ticker":
		return show(h.Do("GET", "/api/v1/ticker/?pair="+s.option("pair", "BTC_USDT"), "", ""))
	case "withdraw":
		form := "address=" + s.option("to", "somewhere") + "&amount=" + s.arg(1)
		if id := s.option("id", ""); id != "" {
			form += "&client_id=" + id
		}
		return show(h.Post(s.arg(0), "/api/v1/withdraw/", form+"&currency="+s.arg(2)))
	case "confirm":
		code := s.option("code", s.code(s.arg(1)))
		if code == "plain" {
			code = strings.ToLower(strings.ReplaceAll(s.code(s.arg(1)), "-", ""))
		}
		return show(h.Post(s.arg(0), "/api/v1/withdraw-confirm/",
			"code="+code+"&withdraw="+s.arg(1)))
	case "cancel-withdraw":
		return show(h.Post(s.arg(0), "/api/v1/withdraw-cancel/", "withdraw="+s.arg(1)))
	case "withdraws", "deposits", "fees":
		return show(h.Get(s.arg(0), "/api/v1/"+s.d.Cmd+"/"+s.query()))
	case "mails":
		return s.mails()
	case "operator":
		return s.operate()
	}
	s.d.Fatalf(h.T.(*testing.T), "unknown command %s", s.d.Cmd)
	return ""
}

// trade places, changes or cancels orders.
func (s script) trade() string {
	path, given := "/api/v1/order-"+s.d.Cmd+"/", s.fields()
	if s.d.Cmd == "amend" || s.d.Cmd == "cancel" {
		if order := s.arg(1); len(s.d.CmdArgs[1].Vals) == 0 {
			given["order"] = order
		}
	}
	switch s.d.Cmd {
	case "place":
		path = "/api/v1/order/"
		s.complete(given)
	case "test":
		s.complete(given)
	case "cancel-all":
		if len(given) == 0 {
			given["all"] = "1"
		}
	}
	return show(s.h.Post(s.arg(0), path, s.form(given)))
}

// batch sends the lines of the input as items, and shows a result a line.
func (s script) batch() string {
	a := s.h.Batch(s.arg(0), strings.Split(s.d.Input, "\n")...)
	if a.Status != 200 {
		return show(a)
	}
	var lines []string
	for _, r := range harness.Results(s.h.T, a) {
		lines = append(lines, show(harness.Answer{Status: r.Status, Body: string(r.Body)}))
	}
	return strings.Join(lines, "\n")
}

// complete adds the default fields of an order.
func (s script) complete(given map[string]string) {
	_, quote := given["quote_amount"]
	_, cost := given["cost"]
	if _, ok := given["amount"]; !ok && !quote && !cost {
		given["amount"] = "1"
	}
	given["pair"] = cmp.Or(given["pair"], "BTC_USDT")
	given["type"] = s.arg(1)
}

// fields are the arguments NAME=VALUE of a command, as its form has them.
func (s script) fields() map[string]string {
	given := map[string]string{}
	for _, a := range s.d.CmdArgs {
		name, value := a.Key, strings.Join(a.Vals, ",")
		switch name {
		case "id":
			name = "client_order_id"
		case "prefix":
			name = "client_order_id_prefix"
		}
		if after, ok := strings.CutPrefix(value, "+"); ok {
			seconds, err := strconv.ParseFloat(after, 64)
			if err != nil {
				s.d.Fatalf(s.h.T.(*testing.T), "%s: %v", name, err)
			}
			at := time.Now().Add(time.Duration(seconds * float64(time.Second)))
			value = fmt.Sprintf("%d.%06d", at.Unix(), at.Nanosecond()/1000)
		}
		if len(a.Vals) > 0 && name != "with" {
			given[name] = value
		}
	}
	return given
}

// form returns the fields in their order, followed by the script's literal addition.
func (s script) form(given map[string]string) string {
	var form []string
	for _, name := range slices.Sorted(maps.Keys(given)) {
		form = append(form, name+"="+given[name])
	}
	if with := s.option("with", ""); with != "" {
		form = append(form, with)
	}
	return strings.Join(form, "&")
}

// setting shows a setting of an account or its key, or changes it.
func (s script) setting(path string) string {
	if given := s.fields(); len(given) > 0 {
		return show(s.h.Post(s.arg(0), path, s.form(given)))
	}
	return show(s.h.Get(s.arg(0), path))
}

// order shows an order's row, once the script's condition holds.
func (s script) order() (row string) {
	ask := func() { row = show(s.h.Get(s.arg(0), "/api/v1/order/"+s.arg(1)+"/")) }
	ask()
	if name, value, ok := strings.Cut(s.option("until", ""), ":"); ok {
		harness.Eventually(s.h.T.(*testing.T), s.d.Pos+": the row has "+name+" "+value,
			func() bool {
				ask()
				return strings.Contains(row, `"`+name+`":`+value) ||
					strings.Contains(row, `"`+name+`":"`+value+`"`)
			})
	}
	return row
}

// operate runs a command of the operator olga:
//
//	maintenance on|off [message=M] [cancels]
//	halt PAIR on|off                    freeze NAME on|off
//	fees NAME PAIR maker=R taker=R      usual-fees NAME PAIR
//	cancel ORDER                        cancel-all [account=NAME] [pair=X]
//	approve WITHDRAW [despite-freeze]   refuse WITHDRAW details=D     withdrawals [account=NAME]
//	account NAME                        statement NAME                actions
//	trades PAIR                         audit
func (s script) operate() string {
	what, on := s.arg(0), s.d.HasArg("on")
	option := func(name string) string { return s.option(name, "") }
	number := func() json.Number { return json.Number(s.arg(1)) }
	switch what {
	case "maintenance":
		in := map[string]any{"on": on, "message": option("message")}
		if s.d.HasArg("cancels") {
			in["cancels"] = true
		}
		return s.send("maintenance", in)
	case "halt":
		return s.send("pairs/halt", map[string]any{"pair": s.arg(1), "on": on})
	case "freeze":
		return s.send("accounts/freeze", map[string]any{"account": s.arg(1), "on": on})
	case "fees":
		return s.send("fees", map[string]any{"account": s.arg(1), "pair": s.arg(2),
			"maker": option("maker"), "taker": option("taker")})
	case "usual-fees":
		return s.send("fees", map[string]any{"account": s.arg(1), "pair": s.arg(2), "usual": true})
	case "cancel":
		return s.send("orders/cancel", map[string]any{"order": number()})
	case "cancel-all":
		return s.send("orders/cancel-all",
			map[string]any{"account": option("account"), "pair": option("pair")})
	case "approve":
		body := map[string]any{"withdraw": number()}
		if s.d.HasArg("despite-freeze") {
			body["despite_freeze"] = true
		}
		return s.send("withdraws/approve", body)
	case "refuse":
		return s.send("withdraws/refuse",
			map[string]any{"withdraw": number(), "details": option("details")})
	case "audit":
		return s.send("audit", struct{}{})
	case "withdraws":
		return s.send("withdraws?account="+option("account"), nil)
	case "account":
		return s.send("account?name="+s.arg(1), nil)
	case "statement":
		return s.send("statement?account="+s.arg(1), nil)
	case "trades":
		return s.send("trades?pair="+s.arg(1), nil)
	case "actions":
		return s.send("actions", nil)
	}
	s.d.Fatalf(s.h.T.(*testing.T), "an operator does not %s", what)
	return ""
}

// send makes a request to the operator's listener: a POST if there is a body.
func (s script) send(path string, body any) string {
	method, text := "GET", ""
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			s.h.T.Fatal(err)
		}
		method, text = "POST", string(b)
	}
	a := harness.AsOperator(s.h.T.(*testing.T), s.h.Gateway)(method, "/operator/v1/"+path, text,
		"Authorization: Bearer "+harness.OperatorToken, "X-Operator: olga")
	a.Body = harness.Progress.ReplaceAllString(a.Body, "") // a slow audit has some
	a.Body = harness.Listed.Replace(strings.TrimSuffix(a.Body, "\n"))
	return show(a)
}

func show(a harness.Answer) string {
	body := harness.Clocks.ReplaceAllString(
		harness.Sequences.ReplaceAllString(harness.Pretty(a.Body), `"$1":N`), `"time":"T"`)
	return fmt.Sprintf("%d %s", a.Status, harness.Times.ReplaceAllString(body, `"$1":T`))
}
