package actors

import (
	"slices"

	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
)

// applySettings applies the account's self-trade mode to an order that names none. An order whose
// instructions add nothing becomes plain.
func (w *wallet) applySettings(c *Command) {
	if w.rare != nil && w.selfTrade != trading.SelfTradeNone {
		if c.special == nil {
			c.special = new(SpecialRequest)
		}
		if !c.special.SelfTradeGiven {
			c.special.SelfTrade = w.selfTrade
		}
	}
	if s := c.special; s != nil {
		s.SelfTradeOwn = s.SelfTradeGiven && s.SelfTrade != w.setting()
	}
	if s := c.special; s != nil && s.Trigger.When == 0 && s.Instructions.IsZero() {
		c.special = nil
	}
}

// setting returns the self-trade mode of an order that names none.
func (w *wallet) setting() trading.SelfTrade {
	if w.rare == nil {
		return trading.SelfTradeNone
	}
	return w.selfTrade
}

// need returns the money that an order reserves, and its currency.
func (c *Command) need() (uint16, money.Balance) {
	o, p := &c.order, c.pair
	if c.special != nil && c.special.Quote != 0 {
		return p.QuoteNumber, c.special.Quote.Balance()
	}
	return ledger.Need(o.side, o.price, o.amount, p.BaseNumber, p.QuoteNumber)
}

// changeSettings changes the account's setting for later orders.
func (w *wallet) changeSettings(c *Command) {
	w.rareParts().selfTrade = c.setting
	r := c.begin(event.KindSettings, 0)
	r.Settings = event.Settings{Account: c.account.ID, Key: c.keyNumber(), Nonce: c.order.nonce,
		SelfTrade: c.setting}
	w.accept(c)
}

// recoverOrders restores the account's open orders.
func (w *wallet) recoverOrders(a *state.Account, s *state.State) {
	w.open = ledger.NewOpenTerms(&a.Open, termsIn(s))
	for order := range w.open.Orders().Newest() {
		w.countInBook(order.Pair)
		w.setFlags(order.ID, flagsIn(s.Pair(order.Pair).Instructed(order.ID)))
	}
}

// termsIn returns the terms of the committed side's open order.
func termsIn(s *state.State) func(ledger.OpenOrder) ledger.Terms {
	return func(order ledger.OpenOrder) ledger.Terms {
		o, _ := s.Pair(order.Pair).Open(order.ID)
		return ledger.Terms{Price: o.Price, Amount: o.Amount}
	}
}

// recoverRare restores the account's settings, switches and client ids of withdrawals.
func (w *wallet) recoverRare(a *state.Account) {
	if mode := a.SelfTrade(); mode != trading.SelfTradeNone {
		w.rareParts().selfTrade = mode
	}
	if list := a.Switches(); len(list) > 0 {
		w.rareParts().switches = slices.Clone(list)
	}
	if ids := a.WithdrawalIDs(); ids.Len() > 0 {
		w.rareParts().withdrawalIDs = ids.Clone()
	}
	if until := a.Operated().HoldEndsUs; until != 0 {
		w.rareParts().holdEndsUs = until
	}
}
