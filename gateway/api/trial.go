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
	req, ok := c.readOrder()
	if !ok {
		return
	}
	currency, need := needOf(&req)
	q := committed.Means{Pair: req.Pair.Number, Currency: currency, Most: c.mostOpen(&req),
		ClientID: req.ClientID, NowUs: time.Now().UnixMicro()}
	if err := c.public.Ask(&q, c.Key, c.Nonce); err != nil {
		c.failRead(err)
		return
	}
	if !c.checkWalletLimits(&req, &q) {
		return
	}
	if need.Cmp(q.Available) > 0 {
		c.failOutOfFunds(time.Now().UnixMicro(), currency, need.Sub(q.Available))
		return
	}
	if !c.checkOwnBand(&req) {
		return
	}
	best, err := c.settlePrice(&req) // the wallet reserves the money before the book's turn
	if err != nil {
		c.failRead(err)
		return
	}
	if !c.checkBookLimits(&req, &q.Book, best) {
		return
	}
	_, need = needOf(&req)
	b := req.Price.Append(append(c.body, `{"valid":true,"price":`...))
	b = encode.Text(append(b, `,"reserve":{"currency":`...), c.public.CurrencyCode(currency))
	b = appendBalance(b, "amount", need)
	b = appendBalance(append(b, '}'), "available", q.Available)
	if wouldTrade(&req, best) {
		c.body = append(b, `,"would_trade":true}`...)
	} else {
		c.body = append(b, `,"would_trade":false}`...)
	}
}

// settlePrice limits a derived price to the band around the last price, as the book does. It
// returns the best price of the other side; 0: none.
func (c *Call) settlePrice(req *actors.OrderRequest) (best money.Price, err error) {
	v, err := c.public.View(committed.ViewTicker, req.Pair, 0, 0, 0)
	if err != nil {
		return 0, err
	}
	if s := req.Special; s != nil && s.Derived && s.Trigger.When == 0 {
		req.Price = req.Pair.WithinBand(req.Side, req.Price, v.Ticker.Last)
	}
	return bestFor(req.Side, v), nil
}

// needOf returns the money that an order reserves, and its currency.
func needOf(req *actors.OrderRequest) (currency uint16, need money.Balance) {
	if req.Special != nil && req.Special.Quote != 0 {
		return req.Pair.QuoteNumber, req.Special.Quote.Balance()
	}
	return ledger.Need(req.Side, req.Price, req.Amount, req.Pair.BaseNumber, req.Pair.QuoteNumber)
}

// checkWalletLimits makes the checks that the wallet makes before those of funds. It returns false
// after writing an error response.
func (c *Call) checkWalletLimits(req *actors.OrderRequest, q *committed.Means) bool {
	limits := c.public.Limits()
	switch {
	case q.TakenBy != 0:
		c.failIDTaken(q.TakenBy)
	case q.Open >= limits.OpenOrdersPerAccount:
		c.Fail(TooManyOpenOrders, "")
	case q.InPair.Orders >= q.Most.Orders:
		c.Fail(TooManyInBook, req.Pair.Name)
	case isStop(req) && q.InPair.Stops >= q.Most.Stops:
		c.forbid(TooManyStops, time.Now().UnixMicro(), req.Pair.Name)
	case expires(req) && q.InPair.GTD >= q.Most.GTD:
		c.forbid(TooManyGTD, time.Now().UnixMicro(), req.Pair.Name)
	default:
		return true
	}
	return false
}

// mostOpen returns the limits of the account's open orders in the pair, for the order's kinds.
func (c *Call) mostOpen(req *actors.OrderRequest) committed.OpenCount {
	limits := c.public.Limits()
	most := committed.OpenCount{Orders: limits.OpenOrdersPerAccountAndBook}
	if isStop(req) {
		most.Stops = limits.StopsPerAccountAndBook
	}
	if expires(req) {
		most.GTD = limits.GTDPerAccountAndBook
	}
	return most
}

// checkOwnBand checks a price whose band is around a trigger price of the order itself: the price
// of a stop order, or of an OCO's stop half. Any other band is around the book's last price. It
// returns false after writing an error response.
func (c *Call) checkOwnBand(req *actors.OrderRequest) bool {
	if req.Special == nil {
		return true
	}
	price, reference := req.Price, req.Special.Trigger.Price
	if oco := req.Special.OCO; oco.Price != 0 {
		price, reference = oco.Price, oco.Trigger
	}
	bound := req.Pair.BeyondBand(req.Side, price, reference)
	if bound != 0 {
		c.failPriceBand(time.Now().UnixMicro(), req.Side, bound)
	}
	return bound == 0
}

// checkBookLimits checks the limits of the pair's book by its committed counts. best is the best
// price of the other side; 0: none. It returns false after writing an error response.
func (c *Call) checkBookLimits(req *actors.OrderRequest, has *committed.OpenCount,
	best money.Price) bool {
	limits := c.public.Limits()
	switch {
	case isStop(req) && has.Stops >= limits.StopsPerBook:
		c.forbid(TooManyStops, time.Now().UnixMicro(), req.Pair.Name)
	case expires(req) && has.GTD >= limits.GTDPerBook:
		c.forbid(TooManyGTD, time.Now().UnixMicro(), req.Pair.Name)
	case has.Orders >= limits.OpenOrdersPerBook && needsPlace(req, best):
		c.Fail(BookFull, req.Pair.Name)
	default:
		return true
	}
	return false
}

// isStop reports whether an order has a trigger, or an OCO's stop half.
func isStop(req *actors.OrderRequest) bool {
	s := req.Special
	return s != nil && (s.Trigger.When != 0 || s.OCO != trading.OCO{})
}

func expires(req *actors.OrderRequest) bool {
	return req.Special != nil && req.Special.ExpireUs != 0
}

// needsPlace reports whether an order would add to the book's open orders.
func needsPlace(req *actors.OrderRequest, best money.Price) bool {
	s := req.Special
	if s != nil && (s.Trigger.When != 0 || s.Market || s.IOC || s.FOK) {
		return s.Trigger.When != 0
	}
	return !wouldTrade(req, best)
}

// wouldTrade reports whether an order crosses best, the best price of the other side; 0: none. An
// order with a trigger, or one that slides, does not.
func wouldTrade(req *actors.OrderRequest, best money.Price) bool {
	s := req.Special
	if best == 0 || s != nil && (s.Trigger.When != 0 || s.Asked != 0) {
		return false
	}
	return req.Side == trading.Buy && req.Price >= best ||
		req.Side == trading.Sell && req.Price <= best
}
