package actors

import (
	"sync/atomic"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
)

// FeeAccount is the name of the ordinary account that fees are credited to.
const FeeAccount = "fees"

// fees knows what a trade costs its two sides. Books ask it; the registry and the start change it.
type fees struct {
	dir     *directory
	account atomic.Uint32 // id of FeeAccount; 0: there is none, and no fees
	own     atomic.Bool   // some account has rates of its own
}

// rates are an account's in a pair.
func (f *fees) rates(p *Pair, a *Account) state.FeeRates {
	if own := a.fees.Load(); own != nil {
		if r, ok := (*own)[p.Number]; ok {
			return r
		}
	}
	return p.Fees
}

// charge writes the fees of an order's trades into its record: of what each side receives, rounded
// up.
func (f *fees) charge(p *Pair, taker *Account, o *event.Order) {
	if len(o.Trades) == 0 || p.Fees == (state.FeeRates{}) && !f.own.Load() {
		return
	}
	takerRate := f.rates(p, taker).Taker
	any := false
	for i := range o.Trades {
		t := &o.Trades[i]
		base, quote := t.Amount.Balance(), t.Price.Times(t.Amount).Balance()
		if o.Side == trading.Sell {
			base, quote = quote, base
		}
		t.TakerFee = takerRate.FeeRoundedUp(base)
		t.MakerFee = f.makerRate(p, t.MakerAccount).FeeRoundedUp(quote)
		any = any || !t.TakerFee.IsZero() || !t.MakerFee.IsZero()
	}
	if any {
		o.FeeAccount = f.account.Load()
	}
}

func (f *fees) makerRate(p *Pair, account uint32) money.Rate {
	if !f.own.Load() {
		return p.Fees.Maker
	}
	return f.rates(p, f.dir.account(account)).Maker
}
