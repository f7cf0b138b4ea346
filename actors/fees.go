package actors

import (
	"sync/atomic"

	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
)

// fees has the cost of a trade for its two sides. Books ask it; the registry and the start change
// it.
type fees struct {
	dir     *directory.Directory
	account atomic.Uint32 // id of FeeAccount; 0: there is no such account, and no fees
	own     atomic.Bool   // some account has rates of its own
}

// rates returns the rates of an account in a pair with usual ones.
func rates(p *directory.Pair, usual state.FeeRates, a *directory.Account) state.FeeRates {
	if r, ok := a.Fees()[p.Number]; ok {
		return r
	}
	return usual
}

// charge writes the fees of an order's trades into its record. Each side pays in the currency that
// it receives, rounded up. All trades of an order have the same usual rates, and records have fees
// and no rates: so what comes of a record does not depend on the configuration.
func (f *fees) charge(p *directory.Pair, taker *directory.Account, o *event.Order) {
	if len(o.Trades) == 0 {
		return
	}
	usual := p.Rules().Fees
	if usual == (state.FeeRates{}) && !f.own.Load() {
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
		t.MakerFee = f.makerRate(p, usual, t.MakerAccount).FeeRoundedUp(quote)
		any = any || !t.TakerFee.IsZero() || !t.MakerFee.IsZero()
	}
	if any {
		o.FeeAccount = f.account.Load()
	}
}

func (f *fees) makerRate(p *directory.Pair, usual state.FeeRates, account uint32) money.Rate {
	if !f.own.Load() {
		return usual.Maker
	}
	return rates(p, usual, f.dir.Account(account)).Maker
}
