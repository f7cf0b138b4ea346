package api

import (
	"exchange/actors/directory"
	"exchange/core/event"
)

// An Operation is one operation of the public API.
type Operation struct {
	Method string // GET of a query, POST of a command
	Path   string // `{x}` stands for one part of it
	Run    func(*Call)

	// Private operations need a signed call, by a key with this permission.
	Private    bool
	Permission uint8
	Signable   bool // public; a signed call is private, and its answer has more
	Reads      bool // a signed call changes nothing but its key's nonce
	Cancels    bool // rate-limited as a cancel
	// Tokens returns a call's tokens from the limits of commands and of cancels. nil: one token.
	Tokens func(*Call) (commands, cancels int)
	Probe  bool // rate-limited as a probe of this process
	Now    bool // the answer must not be cached
	Early  bool // served even while there is no API
	leads  bool // served only by the leader
}

// Operations is the table of all operations. A path has at most one of each method.
var Operations = []Operation{
	{Method: "GET", Path: "/api/v1/time", Run: (*Call).time, Now: true},
	{Method: "GET", Path: "/api/v1/exchange-info", Run: (*Call).exchangeInfo, Now: true,
		Signable: true, Reads: true, Permission: event.PermissionRead},
	{Method: "GET", Path: "/api/v1/currencies", Run: (*Call).currencies},
	{Method: "GET", Path: "/api/v1/pairs", Run: (*Call).pairs},
	{Method: "GET", Path: "/api/v1/orderbook/{pair}", Run: (*Call).orderBook},
	{Method: "GET", Path: "/api/v1/exchanges", Run: (*Call).trades},
	{Method: "GET", Path: "/api/v1/ticker", Run: (*Call).ticker},
	{Method: "GET", Path: "/api/charts/{pair}/{timeframe}/chart", Run: (*Call).chart},

	read("/api/v1/wallets", (*Call).wallets),
	read("/api/v1/orders/own", (*Call).ownOrders),
	read("/api/v1/order/{pk}", (*Call).order),
	read("/api/v1/exchanges/own", (*Call).ownTrades),
	read("/api/v1/fees", (*Call).fees),
	read("/api/v1/trading-settings", (*Call).tradingSettings),
	read("/api/v1/order-cancel-after", (*Call).cancelSwitch),
	read("/api/v1/deposits", (*Call).deposits),
	read("/api/v1/withdraws", (*Call).withdrawals),

	command("/api/v1/order", (*Call).placeOrder, event.PermissionTrade),
	command("/api/v1/order-amend", (*Call).amendOrder, event.PermissionTrade),
	{Method: "POST", Path: "/api/v1/order-test", Run: (*Call).testOrder, Private: true,
		Reads: true, Permission: event.PermissionTrade},
	batch("/api/v1/order-batch", (*Call).orderBatch, (*Call).batchTokens),
	command("/api/v1/trading-settings", (*Call).setTradingSettings, event.PermissionTrade),
	cancelOp("/api/v1/order-cancel", (*Call).cancelOrder, event.PermissionTrade),
	cancelOp("/api/v1/order-cancel-all", (*Call).cancelAllOrders, event.PermissionTrade),
	cancelOp("/api/v1/order-cancel-after", (*Call).cancelAfter, event.PermissionTrade),

	command("/api/v1/withdraw", (*Call).withdrawal, event.PermissionWithdraw),
	command("/api/v1/withdraw-confirm", (*Call).confirmWithdrawal, event.PermissionWithdraw),
	cancelOp("/api/v1/withdraw-cancel", (*Call).cancelWithdrawal, event.PermissionWithdraw),

	{Method: "GET", Path: "/healthz", Run: (*Call).health, Probe: true, Early: true},
	{Method: "GET", Path: "/readyz", Run: (*Call).readiness, Probe: true},
	{Method: "GET", Path: "/leaderz", Run: (*Call).leadership, Probe: true, leads: true},
}

func read(path string, run func(*Call)) Operation {
	return Operation{Method: "GET", Path: path, Run: run, Private: true, Reads: true,
		Permission: event.PermissionRead}
}

func command(path string, run func(*Call), permission uint8) Operation {
	return Operation{Method: "POST", Path: path, Run: run, Private: true, Permission: permission}
}

func cancelOp(path string, run func(*Call), permission uint8) Operation {
	o := command(path, run, permission)
	o.Cancels = true
	return o
}

func batch(path string, run func(*Call), tokens func(*Call) (int, int)) Operation {
	o := command(path, run, event.PermissionTrade)
	o.Tokens = tokens
	return o
}

// Refusal returns why a key may not use a private operation now, and the failure's about; nil: it
// may.
func (o *Operation) Refusal(key *directory.Key) (f *Failure, about string) {
	switch {
	case key.Permissions&o.Permission == 0:
		return NotPermitted, PermissionName(o.Permission)
	case key.Account.Frozen():
		return AccountFrozen, ""
	}
	return nil, ""
}

// RecheckRefusal waits until this node has every acknowledged change, and checks the key again. It
// returns true after writing an error response.
func (c *Call) RecheckRefusal(o *Operation) bool {
	if err := c.commands.AwaitCurrent(); err != nil {
		c.FailWith(err)
		return true
	}
	key := c.commands.Key([]byte(c.Key.Public))
	if key == nil {
		c.Fail(Unauthenticated, "")
		return true
	}
	f, about := o.Refusal(key)
	if f != nil {
		c.Fail(f, about)
	}
	return f != nil
}

func (c *Call) health() { c.body = append(c.body, `{"status":"alive"}`...) }

func (c *Call) readiness() { c.whileReady("ready") }

// leadership is readiness, served only by the leader.
func (c *Call) leadership() { c.whileReady("leads") }

// whileReady writes a status if the API is ready.
func (c *Call) whileReady(status string) {
	if err := c.api.Ready(); err != nil {
		c.FailWith(err)
		return
	}
	c.body = append(append(append(c.body, `{"status":"`...), status...), `"}`...)
}
