package operator

import (
	"fmt"

	"exchange/actors/committed"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/gateway/api"
)

// Lists of accounts' open orders, and of their dead man's switches.

// An openOrder is an orderAnswer with its instructions.
type openOrder struct {
	orderAnswer
	Account       string `json:"account"`
	ClientOrderID string `json:"client_order_id,omitempty" doc:"The client's name for it"`
	Waiting       bool   `json:"waiting" doc:"Whether it waits outside the book for its trigger"`

	OrderType    string       `json:"order_type,omitempty" doc:"Type, if it has instructions"`
	TimeInForce  string       `json:"time_in_force,omitempty" doc:"How long it stays"`
	Expires      string       `json:"expires,omitempty" doc:"When it ends"`
	PostOnly     bool         `json:"post_only,omitempty" doc:"It is never the taker"`
	Display      money.Amount `json:"display_amount,omitempty" doc:"Amount that the book shows"`
	TriggerPrice money.Price  `json:"trigger_price,omitempty" doc:"Price of its trigger"`
	TriggerWhen  string       `json:"trigger_when,omitempty" doc:"Direction of its trigger"`
	OCOTrigger   money.Price  `json:"oco_trigger_price,omitempty" doc:"Price of the other trigger"`
	OCOPrice     money.Price  `json:"oco_price,omitempty" doc:"Limit after the other trigger"`
}

type openOrdersAnswer struct {
	Orders []openOrder `json:"orders" doc:"The page"`
	Next   uint64      `json:"next,omitempty"`
	After  *uint64     `json:"after,omitempty" doc:"Account after which to continue"`
}

// An OrdersQuery chooses open orders.
type ordersQuery struct {
	accountPage
	Account *string `json:"account"`
	Pair    *string `json:"pair" doc:"Only of this pair"`
	Before  uint64  `json:"before" min:"1" is:"the id of an order"`
}

// listOrders returns a page of an account's open orders, newest first: those below `before`.
// Without an account it returns a page of all accounts' orders.
func listOrders(c *call, q *ordersQuery) (*openOrdersAnswer, error) {
	if q.Pair != nil && *q.Pair == "" {
		q.Pair = nil
	}
	pair, err := c.everPair(q.Pair)
	if err != nil {
		return nil, err
	}
	limit := int(q.Limit)
	if q.Account == nil {
		return c.allOrders(q, pair, limit)
	}
	orders := &committed.OpenOrders{Limit: limit}
	orders.Before, orders.Pair = q.Before, pair
	if orders.Account, err = c.account(*q.Account); err != nil {
		return nil, err
	}
	if err := c.ask(orders); err != nil {
		return nil, err
	}
	page := &openOrdersAnswer{Orders: make([]openOrder, 0, len(orders.Orders))}
	for i := range orders.Orders {
		page.Orders = append(page.Orders, c.openOrder(&orders.Orders[i]))
	}
	if n := len(orders.Orders); n == limit {
		page.Next = orders.Orders[n-1].ID
	}
	return page, nil
}

// ordersAtOnce is the number of orders of all accounts looked up in one turn, which takes about a
// millisecond.
const ordersAtOnce = 2000

// allOrders returns a page of the orders of all accounts, account by account: those of the accounts
// above `after`, of the first of these below `before`.
func (c *call) allOrders(query *ordersQuery, pair uint16, limit int) (*openOrdersAnswer, error) {
	q := &committed.AllOrders{Pair: pair, Before: query.Before, After: query.After}
	more := true
	for ; more && len(q.List) < limit; more = q.After != 0 || q.Before != 0 {
		q.Limit = min(limit, len(q.List)+ordersAtOnce)
		if err := c.ask(q); err != nil {
			return nil, err
		}
	}
	page := &openOrdersAnswer{Orders: make([]openOrder, 0, len(q.List))}
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
	Key     string `json:"key" doc:"Key that armed it"`
	Seconds uint32 `json:"seconds" doc:"Time without a refresh after which it cancels"`
	Due     string `json:"due" doc:"When it cancels; \"\": when the key's last session ends"`
	Session bool   `json:"session" doc:"Whether the key's sessions armed it, and not its calls"`
	Pair    string `json:"pair,omitempty" doc:"Only orders of this pair"`
	Type    string `json:"type,omitempty" doc:"Only orders that do this"`
	Prefix  string `json:"client_order_id_prefix,omitempty" doc:"Only orders whose name begins so"`
}

type switchesAnswer struct {
	Switches []keySwitchAnswer `json:"switches" doc:"The switches"`
}

// A SwitchesQuery chooses switches.
type switchesQuery struct {
	Account string `json:"account" doc:"Only of this account"`
}

// listSwitches returns all armed dead man's switches, or those of one account.
func listSwitches(c *call, q *switchesQuery) (*switchesAnswer, error) {
	armed := &committed.Switches{}
	if q.Account != "" {
		var err error
		if armed.Account, err = c.account(q.Account); err != nil {
			return nil, err
		}
	}
	if err := c.ask(armed); err != nil {
		return nil, err
	}
	list := make([]keySwitchAnswer, 0, len(armed.List))
	for i := range armed.List {
		s := &armed.List[i]
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
