package actors

import (
	"reflect"
	"testing"

	"exchange/actors/directory"
	"exchange/actors/metrics"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
)

// A command from the pool keeps nothing of its earlier use.
func TestAFreedCommandIsZero(t *testing.T) {
	id := must[event.ClientID](t)(event.NewClientID("mine"))
	c := newCommand(event.KindOrder)
	fresh := *c
	fresh.request, fresh.trace = request{}, metrics.Trace{}
	c.key, c.account, c.pair, c.operator = new(directory.Key), new(directory.Account),
		new(directory.Pair), "ops"
	c.order = orderRequest{nonce: 1, id: 2, side: 1, price: 3, amount: 4,
		clientID: id}
	c.withdrawal = withdrawalRequest{id: 1, address: "there", code: "code", despiteFreeze: true}
	c.admin = Admin{Account: "ann", Secret: "secret", Allow: []string{"10.0.0.0/8"}}
	c.partOf, c.holdsSlot, c.trace.Decided = new(cancelAll), true, 7
	c.decision = decision{outcome: Refused, ticket: 1, reserved: reservation{1, money.MaxSupply},
		shortfall: reservation{2, money.MaxSupply}, lastNonce: 3, cancelledOrders: []uint64{4},
		changedWithdrawal: state.Withdrawal{ID: 5}, adminErr: errNoFeeAccount}
	r := c.begin(event.KindOrder, 1)
	r.Order = event.Order{ID: 1, Account: 2, Side: 1, Trades: make([]event.Trade, 0, keptTrades)}
	r.Key.Sealed, r.Account.Name = []byte("sealed"), "ann"
	c.encode()
	c.reset()
	if cap(c.encoded) == 0 || cap(c.record.Order.Trades) != keptTrades {
		t.Error("the memory of its entry is not kept")
	}
	if len(c.encoded) != 0 || len(c.record.Order.Trades) != 0 {
		t.Error("the memory of its entry is not empty")
	}
	c.encoded, c.record.Order.Trades = fresh.encoded, fresh.record.Order.Trades
	if !reflect.DeepEqual(*c, fresh) {
		t.Errorf("a command is\n%+v, want\n%+v", *c, fresh)
	}

	c.record.Order.Trades = make([]event.Trade, 0, keptTrades+1)
	if c.reset(); c.record.Order.Trades != nil || c.encoded != nil {
		t.Error("the memory of a large order is kept")
	}
}
