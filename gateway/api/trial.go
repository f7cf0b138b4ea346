package api

import (
	"time"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/core/ledger"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/gateway/encode"
)

// testOrder predicts the result of placing an order, as far as possible without its book.
func (c *Call) testOrder() {
	if err := c.commands.Writable(); err != nil {
		c.FailWith(err)
		return
	}
	w, ok := c.checkedOrder()
	if !ok {
		return
	}
	currency, need := needOf(&w)
	q := committed.Means{Pair: w.Pair.Number, Currency: currency, Most: c.mostOpen(&w),
		ClientID: w.ClientID, NowUs: time.Now().UnixMicro()}
	if err := c.public.Ask(&q, c.Key, c.Nonce); err != nil {
		c.readFailed(err)
		return
	}
	if !c.mayPlace(&w, &q) {
		return
	}
	if need.Cmp(q.Available) > 0 {
		c.outOfFunds(time.Now().UnixMicro(), currency, need.Sub(q.Available))
		return
	}
	if !c.inOwnBand(&w) {
		return
	}
	best, err := c.settlePrice(&w) // the wallet reserves the money before the book's turn
	if err != nil {
		c.readFailed(err)
		return
	}
	if !c.hasPlace(&w, &q.Book, best) {
		return
	}
	_, need = needOf(&w)
	b := w.Price.Append(append(c.body, `{"valid":true,"price":`...))
	b = encode.Text(append(b, `,"reserve":{"currency":`...), c.public.CurrencyCode(currency))
	b = appendBalance(b, "amount", need)
	b = appendBalance(append(b, '}'), "available", q.Available)
	if wouldTrade(&w, best) {
		c.body = append(b, `,"would_trade":true}`...)
	} else {
		c.body = append(b, `,"would_trade":false}`...)
	}
}

// settlePrice brings a derived price within the band of the last price, as the book does, and
// returns the best price on the other side; 0: none.
func (c *Call) settlePrice(w *actors.OrderRequest) (best money.Price, err error) {
	v, err := c.public.View(committed.ViewTicker, w.Pair, 0, 0, 0)
	if err != nil {
		return 0, err
	}
	if s := w.Special; s != nil && s.Derived && s.Trigger.When == 0 {
		w.Price = w.Pair.WithinBand(w.Side, w.Price, v.Ticker.Last)
	}
	return bestFor(w.Side, v), nil
}

// needOf returns the money that an order reserves, and its currency.
func needOf(w *actors.OrderRequest) (currency uint16, need money.Balance) {
	if w.Special != nil && w.Special.Quote != 0 {
		return w.Pair.QuoteNumber, w.Special.Quote.Balance()
	}
	return ledger.Need(w.Side, w.Price, w.Amount, w.Pair.BaseNumber, w.Pair.QuoteNumber)
}

// mayPlace does the wallet's checks before the money. False: the call is answered.
func (c *Call) mayPlace(w *actors.OrderRequest, q *committed.Means) bool {
	limits := c.public.Limits()
	switch {
	case q.TakenBy != 0:
		c.idTaken(q.TakenBy)
	case q.Open >= limits.OpenOrdersPerAccount:
		c.Fail(TooManyOpenOrders, "")
	case q.InPair.Orders >= q.Most.Orders:
		c.Fail(TooManyInBook, w.Pair.Name)
	case isStop(w) && q.InPair.Stops >= q.Most.Stops:
		c.forbid(TooManyStops, time.Now().UnixMicro(), w.Pair.Name)
	case expires(w) && q.InPair.GTD >= q.Most.GTD:
		c.forbid(TooManyGTD, time.Now().UnixMicro(), w.Pair.Name)
	default:
		return true
	}
	return false
}

// mostOpen returns the maximum of open orders of the order's kinds for its account in the pair.
func (c *Call) mostOpen(w *actors.OrderRequest) committed.OpenCount {
	limits := c.public.Limits()
	most := committed.OpenCount{Orders: limits.OpenOrdersPerAccountAndBook}
	if isStop(w) {
		most.Stops = limits.StopsPerAccountAndBook
	}
	if expires(w) {
		most.GTD = limits.GTDPerAccountAndBook
	}
	return most
}

// inOwnBand checks the price whose band is around a trigger price of the order itself: that of an
// order that waits, or of another half. Any other band is around the book's last price. False: the
// call is answered.
func (c *Call) inOwnBand(w *actors.OrderRequest) bool {
	if w.Special == nil {
		return true
	}
	price, reference := w.Price, w.Special.Trigger.Price
	if oco := w.Special.OCO; oco.Price != 0 {
		price, reference = oco.Price, oco.Trigger
	}
	bound := w.Pair.BeyondBand(w.Side, price, reference)
	if bound != 0 {
		c.beyondBand(time.Now().UnixMicro(), w.Side, bound)
	}
	return bound == 0
}

// hasPlace checks whether the pair's book has a place for an order, as far as known without the
// book's turn. best is the best price of the other side; 0: none. False: the call is answered.
func (c *Call) hasPlace(w *actors.OrderRequest, has *committed.OpenCount, best money.Price) bool {
	limits := c.public.Limits()
	switch {
	case isStop(w) && has.Stops >= limits.StopsPerBook:
		c.forbid(TooManyStops, time.Now().UnixMicro(), w.Pair.Name)
	case expires(w) && has.GTD >= limits.GTDPerBook:
		c.forbid(TooManyGTD, time.Now().UnixMicro(), w.Pair.Name)
	case has.Orders >= limits.OpenOrdersPerBook && needsPlace(w, best):
		c.Fail(BookFull, w.Pair.Name)
	default:
		return true
	}
	return false
}

// isStop reports whether an order would wait for a trigger, in the book or outside it.
func isStop(w *actors.OrderRequest) bool {
	s := w.Special
	return s != nil && (s.Trigger.When != 0 || s.OCO != trading.OCO{})
}

func expires(w *actors.OrderRequest) bool { return w.Special != nil && w.Special.ExpireUs != 0 }

// needsPlace reports whether an order would be open at once, without freeing a maker's place.
func needsPlace(w *actors.OrderRequest, best money.Price) bool {
	s := w.Special
	if s != nil && (s.Trigger.When != 0 || s.Market || s.IOC || s.FOK) {
		return s.Trigger.When != 0
	}
	return !wouldTrade(w, best)
}

// wouldTrade reports whether an order meets the best price of the other side; 0: none. An order
// that waits or slides does not.
func wouldTrade(w *actors.OrderRequest, best money.Price) bool {
	if best == 0 || w.Special != nil && (w.Special.Trigger.When != 0 || w.Special.Asked != 0) {
		return false
	}
	return w.Side == trading.Buy && w.Price >= best || w.Side == trading.Sell && w.Price <= best
}
