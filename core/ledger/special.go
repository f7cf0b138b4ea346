package ledger

import (
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// special settles records of orders with instructions. Each record names the reserve that it
// releases, so no settlement needs the previous order. An order with a budget never rests: its
// record releases the money reserved by its wallet, as for any order.
func (s *Settler) special(r *event.Record, base, quote uint16) {
	o := &r.Order
	switch r.Kind {
	case event.KindInstructed:
		s.order(o, base, quote)
		s.prevented(r, base, quote)
	case event.KindStop: // it has no trades, and waits as another one rests
		s.order(o, base, quote)
	case event.KindTriggered:
		s.resettle(r, &r.Triggered.Was, base, quote)
	case event.KindAmended:
		s.resettle(r, &r.Amended.Was, base, quote)
	case event.KindExpired:
		for i := range r.Expired {
			x := &r.Expired[i]
			s.cancel(x.Account, x.Order, x.Side, x.Price, x.Open, base, quote)
		}
	}
}

// resettle settles an open order that is decided again: release its reserve, settle it as a new
// order.
func (s *Settler) resettle(r *event.Record, was *event.Was, base, quote uint16) {
	o := &r.Order
	currency, held := Need(o.Side, was.Price, was.Open, base, quote)
	s.of(o.Account).in(currency).Unlock = held
	s.order(o, base, quote)
	s.prevented(r, base, quote)
	if !o.Rests() {
		t := s.of(o.Account)
		t.Closed = append(t.Closed, o.ID)
	}
}

// prevented settles the taker's own orders that the taker met and removed from the book. It traded
// with none of its own then, so their place among the trades makes no difference.
func (s *Settler) prevented(r *event.Record, base, quote uint16) {
	for i := range r.Instructions.Prevented {
		p := &r.Instructions.Prevented[i]
		s.cancel(r.Order.Account, p.Order, r.Order.Side.Opposite(), p.Price, p.Amount, base, quote)
	}
}

// NeedOfAmend returns the most money that an amend of an open order can need beside its reserve,
// and its currency. The order may be filled meanwhile: with f of it filled, a buy holds the old
// price x (old amount - f), and needs the new price x (new amount - f). The difference is linear in
// f, so it is largest where f is 0 or the smaller amount.
func NeedOfAmend(side trading.Side, was, is Terms, base, quote uint16) (uint16, money.Balance) {
	if side == trading.Sell {
		return base, (is.Amount - min(was.Amount, is.Amount)).Balance()
	}
	filled := min(was.Amount, is.Amount)
	return quote, max128(extraNeed(was, is, 0), extraNeed(was, is, filled))
}

// extraNeed returns the money that a buy needs beside its reserve for other terms, or 0.
func extraNeed(was, is Terms, filled money.Amount) money.Balance {
	held, need := was.Price.Times(was.Amount-filled), is.Price.Times(is.Amount-filled)
	if need.Balance().Cmp(held.Balance()) <= 0 {
		return money.Balance{}
	}
	return need.Balance().Sub(held.Balance())
}

func max128(a, b money.Balance) money.Balance {
	if a.Cmp(b) >= 0 {
		return a
	}
	return b
}
