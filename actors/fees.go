package actors

import (
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
)

// rates returns an account's rates in a pair, with defaults in usual.
func rates(p *directory.Pair, usual state.FeeRates, a *directory.Account) state.FeeRates {
	if r, ok := a.Fees()[p.Number]; ok {
		return r
	}
	return usual
}

// charge writes the fees of an order's trades into its record. Each side pays in the currency that
// it receives, rounded up. All trades of an order share the usual rates. Records contain fees and
// no rates, so their effect does not depend on the configuration.
func charge(d *directory.Directory, p *directory.Pair, taker *directory.Account, o *event.Order) {
	if len(o.Trades) == 0 {
		return
	}
	usual := p.Rules().Fees
	if usual == (state.FeeRates{}) && !d.OwnFees() {
		return
	}
	takerRate := rates(p, usual, taker).Taker
	any := false
	for i := range o.Trades {
		t := &o.Trades[i]
		base, quote := t.Amount.Balance(), t.Price.Times(t.Amount).Balance()
		if o.Side == trading.Sell {
			base, quote = quote, base
		}
		t.TakerFee = takerRate.FeeRoundedUp(base)
		t.MakerFee = makerRate(d, p, usual, t.MakerAccount).FeeRoundedUp(quote)
		any = any || !t.TakerFee.IsZero() || !t.MakerFee.IsZero()
	}
	if any {
		o.FeeAccount = d.FeeAccount()
	}
}

func makerRate(d *directory.Directory, p *directory.Pair, usual state.FeeRates,
	account uint32) money.Rate {
	if !d.OwnFees() {
		return usual.Maker
	}
	return rates(p, usual, d.Account(account)).Maker
}
