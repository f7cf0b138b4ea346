package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/valyala/fasthttp"

	"exchange/actors"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/persistence"
)

// What operators do beside accounts, keys and deposits: the answers say what is so now, and
// Repeated that it was so already.

type onAnswer struct {
	Account  string `json:"account,omitempty"`
	Pair     string `json:"pair,omitempty"`
	On       bool   `json:"on"`
	Message  string `json:"message,omitempty"`
	Repeated bool   `json:"repeated,omitempty"`
}

func freeze(e *actors.Engine, ctx *fasthttp.RequestCtx) (any, error) {
	var q struct {
		Account string
		On      *bool
	}
	if err := parse(ctx, &q); err != nil {
		return nil, err
	}
	if q.On == nil {
		return nil, &badRequest{"on: true or false is required"}
	}
	a, err := e.Freeze(who(ctx), q.Account, *q.On)
	return onAnswer{Account: a.Account, On: a.On, Repeated: a.Repeated}, err
}

func halt(e *actors.Engine, ctx *fasthttp.RequestCtx) (any, error) {
	var q struct {
		Pair string
		On   *bool
	}
	if err := parse(ctx, &q); err != nil {
		return nil, err
	}
	if q.On == nil {
		return nil, &badRequest{"on: true or false is required"}
	}
	a, err := e.Halt(who(ctx), q.Pair, *q.On)
	return onAnswer{Pair: a.Pair, On: a.On, Repeated: a.Repeated}, err
}

// maintenancePatience bounds the wait for commands in flight.
const maintenancePatience = 10 * time.Second

func maintenance(e *actors.Engine, ctx *fasthttp.RequestCtx) (any, error) {
	var q struct {
		On      *bool
		Message string
	}
	if err := parse(ctx, &q); err != nil {
		return nil, err
	}
	if q.On == nil {
		return nil, &badRequest{"on: true or false is required"}
	}
	if err := line("message", q.Message); err != nil {
		return nil, err
	}
	patience, cancel := context.WithTimeout(context.Background(), maintenancePatience)
	defer cancel()
	a, err := e.SetMaintenance(patience, who(ctx), *q.On, q.Message)
	return onAnswer{On: a.On, Message: a.Message, Repeated: a.Repeated}, err
}

// line refuses what is more than a line of text.
func line(name, text string) error {
	if strings.ContainsFunc(text, unicode.IsControl) {
		return &badRequest{name + ": one line of text, without control characters"}
	}
	return nil
}

func operatorCancel(e *actors.Engine, ctx *fasthttp.RequestCtx) (any, error) {
	var q struct{ Order uint64 }
	if err := parse(ctx, &q); err != nil {
		return nil, err
	}
	c, err := e.OperatorCancel(who(ctx), q.Order)
	if err != nil {
		return nil, err
	}
	defer c.Free()
	if c.Outcome() != actors.Accepted {
		return nil, &badRequest{fmt.Sprintf("order %d is not open any more", q.Order)}
	}
	r := c.Record()
	return map[string]any{"order": r.Cancel.Order, "account": e.AccountName(r.Cancel.Account),
		"pair": e.Market(r.Pair).Name}, nil
}

func operatorCancelAll(e *actors.Engine, ctx *fasthttp.RequestCtx) (any, error) {
	var q struct{ Account, Pair string }
	if err := parse(ctx, &q); err != nil {
		return nil, err
	}
	orders, err := e.OperatorCancelAll(ctx, who(ctx), q.Account, q.Pair)
	if err != nil && len(orders) > 0 {
		return nil, &partlyCancelled{orders, err}
	}
	return map[string]any{"orders": append([]uint64{}, orders...)}, err
}

// partlyCancelled says which orders were cancelled, and why others were not. It is no other error:
// what was done is not undone by what that is.
type partlyCancelled struct {
	orders []uint64
	cause  error
}

func (e *partlyCancelled) Error() string {
	return fmt.Sprintf(
		"%d orders were cancelled; of others that is not known, or they were not: %v",
		len(e.orders), e.cause)
}

type withdrawAnswer struct {
	Withdraw uint64       `json:"withdraw"`
	Account  string       `json:"account"`
	Currency string       `json:"currency"`
	Amount   money.Amount `json:"amount"`
	Status   uint8        `json:"status"`
	State    string       `json:"state"`
	Address  string       `json:"address"`
	Details  string       `json:"details,omitempty"`
	Time     string       `json:"time"`
	Frozen   bool         `json:"frozen,omitempty"` // its account is
}

func newWithdrawAnswer(e *actors.Engine, w *persistence.Withdraw) withdrawAnswer {
	return withdrawAnswer{w.ID, e.AccountName(w.Account), e.CurrencyCode(w.Currency), w.Amount,
		w.Status, event.WithdrawStatusName(w.Status), w.Address, w.Details, clock(w.TimeUs),
		e.AccountFrozen(w.Account)}
}

// clock is a time for people.
func clock(us int64) string {
	return time.UnixMicro(us).UTC().Format(
		"2006-01-02T15:04:05.000000Z")
}

// listWithdraws lists pending withdraws of all accounts, or all of one account, newest first.
func listWithdraws(e *actors.Engine, ctx *fasthttp.RequestCtx) (any, error) {
	list := []withdrawAnswer{}
	limit, err := limitArgument(ctx)
	if err != nil {
		return nil, err
	}
	q := actors.NewRead(actors.ReadWithdraws)
	q.Limit = limit
	name := string(ctx.QueryArgs().Peek("account"))
	if name != "" {
		if q.Account, err = accountID(e, name); err != nil {
			return nil, err
		}
	}
	if err := e.BeginRead(false); err != nil {
		return nil, err
	}
	defer e.EndRead(false)
	if err := e.AskWithin(q, nil, 0); err != nil {
		return nil, err
	}
	for i := range q.Withdraws {
		w := row(&q.Withdraws[i])
		list = append(list, newWithdrawAnswer(e, &w))
	}
	closed := persistence.WithdrawQuery{Account: q.Account, MaxSeq: q.Seq}
	q.Free()
	if name != "" && len(list) < limit {
		patience, cancel := context.WithTimeout(context.Background(), storeTimeout)
		defer cancel()
		err = e.History().Withdraws(patience, closed, func(w *persistence.Withdraw) bool {
			list = append(list, newWithdrawAnswer(e, w))
			return len(list) < limit
		})
	}
	return map[string]any{"withdraws": list}, err
}

// accountID finds an account by its name.
func accountID(e *actors.Engine, name string) (uint32, error) {
	q := actors.NewRead(actors.ReadAccount)
	q.Name = name
	if err := read(e, q); err != nil {
		return 0, err
	}
	id := q.Account
	q.Free()
	if id == 0 {
		return 0, &badRequest{fmt.Sprintf("there is no account %.80q", name)}
	}
	return id, nil
}

// Lists of the operator's listener.
const (
	defaultList = 1000
	maxList     = 100_000
)

func limitArgument(ctx *fasthttp.RequestCtx) (int, error) {
	text := ctx.QueryArgs().Peek("limit")
	if len(text) == 0 {
		return defaultList, nil
	}
	n, ok := integer(text)
	if !ok || n == 0 || n > maxList {
		return 0, &badRequest{"limit: 1 to " + strconv.Itoa(maxList)}
	}
	return int(n), nil
}

func approveWithdraw(e *actors.Engine, ctx *fasthttp.RequestCtx) (any, error) {
	return settleWithdraw(e, ctx, event.WithdrawApproved)
}

func refuseWithdraw(e *actors.Engine, ctx *fasthttp.RequestCtx) (any, error) {
	return settleWithdraw(e, ctx, event.WithdrawRefused)
}

// A settlement is what an operator sends to approve or refuse a withdraw.
type settlement struct {
	Withdraw      uint64
	Details       string
	DespiteFreeze bool `json:"despite_freeze"`
}

func (q *settlement) check(to uint8) error {
	switch {
	case to == event.WithdrawRefused && q.Details == "":
		return &badRequest{"details: say why, the owner is told"}
	case to == event.WithdrawApproved && q.Details != "":
		return &badRequest{"details: only of a refusal"}
	case to == event.WithdrawRefused && q.DespiteFreeze:
		return &badRequest{"despite_freeze: only of an approval"}
	case len(q.Details) > actors.MaxDetails:
		return &badRequest{fmt.Sprintf("details: at most %d bytes", actors.MaxDetails)}
	}
	return line("details", q.Details)
}

// settleWithdraw approves or refuses. A withdraw that has the status already is answered as if it
// had just got it, so a repeat is safe.
func settleWithdraw(e *actors.Engine, ctx *fasthttp.RequestCtx, to uint8) (any, error) {
	var q settlement
	if err := parse(ctx, &q); err != nil {
		return nil, err
	}
	if err := q.check(to); err != nil {
		return nil, err
	}
	type answer struct {
		withdrawAnswer
		Repeated bool `json:"repeated,omitempty"`
	}
	var c *actors.Command
	var err error
	if q.DespiteFreeze {
		c, err = e.ApproveDespiteFreeze(who(ctx), q.Withdraw)
	} else {
		c, err = e.MoveWithdraw(who(ctx), q.Withdraw, to, q.Details)
	}
	if err == nil {
		w, accepted, r := row(c.Withdraw()), c.Outcome() == actors.Accepted, c.Record()
		kind, refusal := r.Kind, r.Refusal
		switch c.Free(); {
		case accepted:
			return answer{newWithdrawAnswer(e, &w), false}, nil
		case kind == event.KindRefusal && refusal.Reason == event.RefusedFrozen:
			return nil, &badRequest{fmt.Sprintf(
				"account %s is frozen, so withdraw %d was not approved: unfreeze the "+
					"account, or approve with despite_freeze (--despite-freeze)",
				e.AccountName(refusal.Account), q.Withdraw)}
		}
	}
	var request *actors.RequestError
	if err != nil && !errors.As(err, &request) {
		return nil, err
	}
	w, err := withdrawRow(e, q.Withdraw)
	switch {
	case errors.Is(err, persistence.ErrNotFound):
		return nil, &badRequest{fmt.Sprintf("there is no withdraw %d", q.Withdraw)}
	case err != nil:
		return nil, err
	case w.Status != to:
		return nil, &badRequest{fmt.Sprintf("withdraw %d is %s", q.Withdraw,
			event.WithdrawStatusName(w.Status))}
	}
	return answer{newWithdrawAnswer(e, w), true}, nil
}

func setFees(e *actors.Engine, ctx *fasthttp.RequestCtx) (any, error) {
	var q struct {
		Account, Pair string
		Maker, Taker  numberText // fractions: 0.001 is 0.1 %
		Usual         bool       // the pair's rates count again
	}
	if err := parse(ctx, &q); err != nil {
		return nil, err
	}
	var own *state.FeeRates
	if q.Usual {
		if q.Maker != "" || q.Taker != "" {
			return nil,
				&badRequest{"usual: without maker and taker, which are rates of the account's own"}
		}
	} else {
		maker, err1 := rate("maker", q.Maker)
		taker, err2 := rate("taker", q.Taker)
		if err := cmp.Or(err1, err2); err != nil {
			return nil, err
		}
		own = &state.FeeRates{Maker: maker, Taker: taker}
	}
	a, err := e.SetFees(who(ctx), q.Account, q.Pair, own)
	if err != nil {
		return nil, err
	}
	rates := e.FeesOf(a.AccountID, a.Pair)
	return map[string]any{"account": a.Account, "pair": a.Pair, "own": own != nil,
		"maker": json.Number(rates.Maker.String()), "taker": json.Number(rates.Taker.String()),
		"repeated": a.Repeated}, nil
}

func rate(name string, text numberText) (money.Rate, error) {
	r, err := money.ParseRate(string(text))
	if err != nil {
		return 0,
			&badRequest{name + ": a fraction from 0 to 1 with at most 8 digits, such as 0.001: " +
				err.Error()}
	}
	return r, nil
}

type holdingAnswer struct {
	Currency  string        `json:"currency"`
	Balance   money.Balance `json:"balance"`
	Reserve   money.Balance `json:"reserve"`
	Available money.Balance `json:"available"`
}

type orderAnswer struct {
	Order     uint64       `json:"order"`
	Pair      string       `json:"pair"`
	Type      string       `json:"type"`
	Price     money.Price  `json:"price"`
	Amount    money.Amount `json:"amount"`
	Remaining money.Amount `json:"remaining"`
	Time      string       `json:"time"`
}

// shownOrders is how many open orders an account is shown with.
const shownOrders = 20

// showAccount is what there is to know of an account at one moment.
func showAccount(e *actors.Engine, ctx *fasthttp.RequestCtx) (any, error) {
	q := actors.NewRead(actors.ReadAccount)
	q.Name, q.Limit = string(ctx.QueryArgs().Peek("name")), shownOrders
	if err := read(e, q); err != nil {
		return nil, err
	}
	defer q.Free()
	if q.Account == 0 {
		return nil, &badRequest{fmt.Sprintf("there is no account %.80q", q.Name)}
	}
	a := q.Accounts[0]
	holdings, orders := []holdingAnswer{}, []orderAnswer{}
	for _, h := range q.Holdings {
		holdings = append(holdings, holdingAnswer{e.CurrencyCode(h.Currency), h.Balance, h.Reserve,
			h.Available()})
	}
	for i := range q.Orders {
		o := &q.Orders[i]
		orders = append(orders, orderAnswer{o.ID, e.Market(o.Pair).Name, o.Side.String(), o.Price,
			o.Amount, o.Remaining, clock(o.TimeUs)})
	}
	pending := []withdrawAnswer{}
	for i := range q.Withdraws {
		w := row(&q.Withdraws[i])
		pending = append(pending, newWithdrawAnswer(e, &w))
	}
	return map[string]any{"account": a.Name, "id": a.ID, "email": a.Email, "frozen": a.Frozen,
		"sequence": q.Seq, "holdings": holdings,
		"open_orders": q.Open, "newest_orders": orders, "pending_withdraws": pending}, nil
}

type actionAnswer struct {
	Sequence uint64 `json:"sequence"`
	Time     string `json:"time"`
	Who      string `json:"who"`
	What     string `json:"what"`
}

// listActions is the log of what operators did, newest first.
func listActions(e *actors.Engine, ctx *fasthttp.RequestCtx) (any, error) {
	limit, err := limitArgument(ctx)
	if err != nil {
		return nil, err
	}
	var q persistence.ActionQuery
	if text := ctx.QueryArgs().Peek("before"); len(text) > 0 {
		var ok bool
		if q.Before, ok = integer(text); !ok || q.Before == 0 {
			return nil, &badRequest{"before: the sequence of an action"}
		}
	}
	if err := e.BeginRead(false); err != nil {
		return nil, err
	}
	defer e.EndRead(false)
	barrier := actors.NewRead(actors.ReadHistory)
	if err := e.AskWithin(barrier, nil, 0); err != nil {
		return nil, err
	}
	barrier.Free()
	patience, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	list := []actionAnswer{}
	err = e.History().Actions(patience, q, func(a *persistence.Action) bool {
		list = append(list, actionAnswer{a.Seq, clock(a.TimeUs), a.Who, a.What})
		return len(list) < limit
	})
	return map[string]any{"actions": list}, err
}
