package operator

import (
	"fmt"

	"exchange/actors/committed"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/gateway/api"
)

// Lists of what accounts have in the books, and of what would cancel it.

// An openOrder is an order as orderAnswer shows it, and its instructions.
type openOrder struct {
	orderAnswer
	Account       string `json:"account"`
	ClientOrderID string `json:"client_order_id,omitempty"`
	Waiting       bool   `json:"waiting"` // outside the book, for its trigger

	OrderType    string       `json:"order_type,omitempty"`
	TimeInForce  string       `json:"time_in_force,omitempty"`
	Expires      string       `json:"expires,omitempty"`
	PostOnly     bool         `json:"post_only,omitempty"`
	Display      money.Amount `json:"display_amount,omitempty"`
	TriggerPrice money.Price  `json:"trigger_price,omitempty"`
	TriggerWhen  string       `json:"trigger_when,omitempty"`
	OCOTrigger   money.Price  `json:"oco_trigger_price,omitempty"`
	OCOPrice     money.Price  `json:"oco_price,omitempty"`
}

type openOrdersAnswer struct {
	Orders []openOrder `json:"orders"`
	// id of the last order, if more orders may follow it
	Next uint64 `json:"next,omitempty"`
	// Of all accounts' orders, where the next page goes on: behind this account, or, if Next is
	// there, in the account behind it.
	After *uint64 `json:"after,omitempty"`
}

// listOrders returns a page of an account's open orders, newest first: those below `before`. If no
// account is named, it returns a page of all accounts' orders.
func listOrders(c *call) (any, error) {
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	q := &committed.OpenOrders{Limit: limit}
	if text := c.query("before"); len(text) > 0 {
		var ok bool
		if q.Before, ok = api.Integer(text); !ok || q.Before == 0 {
			return nil, &badRequest{"before: the id of an order"}
		}
	}
	if len(c.query("pair")) > 0 {
		if q.Pair, err = c.everPair(); err != nil {
			return nil, err
		}
	}
	if !c.ctx.QueryArgs().Has("account") {
		return c.allOrders(q, limit)
	}
	if q.Account, err = c.account(string(c.query("account"))); err != nil {
		return nil, err
	}
	if err := c.read(q); err != nil {
		return nil, err
	}
	page := openOrdersAnswer{Orders: make([]openOrder, 0, len(q.Orders))}
	for i := range q.Orders {
		page.Orders = append(page.Orders, c.openOrder(&q.Orders[i]))
	}
	if n := len(q.Orders); n == limit {
		page.Next = q.Orders[n-1].ID
	}
	return page, nil
}

// ordersAtOnce is how many orders of all accounts are looked up in one turn, which takes about a
// millisecond.
const ordersAtOnce = 2000

// allOrders returns a page of the orders of all accounts, account by account: those of the accounts
// above `after`, of the first of these below `before`.
func (c *call) allOrders(of *committed.OpenOrders, limit int) (any, error) {
	q, err := &committed.AllOrders{Pair: of.Pair, Before: of.Before}, error(nil)
	if q.After, err = c.after(); err != nil {
		return nil, err
	}
	more := true
	for ; more && len(q.List) < limit; more = q.After != 0 || q.Before != 0 {
		q.Limit = min(limit, len(q.List)+ordersAtOnce)
		if err := c.read(q); err != nil {
			return nil, err
		}
	}
	page := openOrdersAnswer{Orders: make([]openOrder, 0, len(q.List))}
	for i := range q.List {
		page.Orders = append(page.Orders, c.openOrder(&q.List[i]))
	}
	if more {
		page.Next, page.After = q.Before, &q.After
	}
	return page, nil
}

func (c *call) openOrder(o *committed.Order) openOrder {
	row := openOrder{orderAnswer: orderAnswer{o.ID, c.engine.Market(o.Pair).Name, o.Side.String(),
		o.Price, o.Amount, o.Remaining, clock(o.TimeUs)}, Account: c.engine.AccountName(o.Account),
		ClientOrderID: o.ClientID}
	if o.Instructed == "" {
		return row
	}
	x, ok := o.Instructed.Open()
	if !ok {
		panic(fmt.Sprintf("BUG: the instructions of order %d cannot be read", o.ID))
	}
	row.OrderType, row.TimeInForce = api.OrderTypeName(&x.Instructions),
		api.TimeInForceName(&x.Instructions)
	row.PostOnly, row.Display = x.PostOnly, x.Display
	if x.ExpireUs != 0 {
		row.Expires = clock(x.ExpireUs)
	}
	if x.Trigger.When != 0 {
		row.Waiting = !x.Triggered
		row.TriggerPrice, row.TriggerWhen = x.Trigger.Price, api.DirectionName(x.Trigger.When)
	}
	if x.OCO != (trading.OCO{}) {
		row.OCOTrigger, row.OCOPrice = x.OCO.Trigger, x.OCO.Price
	}
	return row
}

type keySwitchAnswer struct {
	Account string `json:"account"`
	Key     string `json:"key"`
	Seconds uint32 `json:"seconds"`
	Due     string `json:"due"`     // "": when the last session of the key ends
	Session bool   `json:"session"` // armed by the key's sessions, not by its calls
	Pair    string `json:"pair,omitempty"`
	Type    string `json:"type,omitempty"`
	Prefix  string `json:"client_order_id_prefix,omitempty"`
}

type switchesAnswer struct {
	Switches []keySwitchAnswer `json:"switches"`
}

// listSwitches returns all armed dead man's switches, those of one account if it names one.
func listSwitches(c *call) (any, error) {
	q := &committed.Switches{}
	if name := string(c.query("account")); name != "" {
		var err error
		if q.Account, err = c.account(name); err != nil {
			return nil, err
		}
	}
	if err := c.read(q); err != nil {
		return nil, err
	}
	list := make([]keySwitchAnswer, 0, len(q.List))
	for i := range q.List {
		s := &q.List[i]
		row := keySwitchAnswer{Account: s.AccountName, Key: s.KeyName, Seconds: s.Seconds,
			Session: s.Session, Prefix: s.Prefix.String()}
		if s.DueUs != 0 {
			row.Due = clock(s.DueUs)
		}
		if s.Pair != 0 {
			row.Pair = c.engine.Market(s.Pair).Name
		}
		if s.Side != 0 {
			row.Type = s.Side.String()
		}
		list = append(list, row)
	}
	return &switchesAnswer{list}, nil
}
