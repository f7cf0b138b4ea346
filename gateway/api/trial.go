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

// testOrder says what placing an order would do, as far as that can be told without its book.
func (c *Call) testOrder() {
	w, ok := c.checkedOrder()
	if !ok {
		return
	}
	currency, need := needOf(&w)
	q := committed.Means{Pair: w.Pair.Number, Currency: currency,
		Most: c.engine.Limits().OpenOrdersPerAccountAndBook}
	if err := c.engine.Ask(&q, c.Key, c.Nonce); err != nil {
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
	best, err := c.best(&w)
	if err != nil {
		c.readFailed(err)
		return
	}
	b := w.Price.Append(append(c.body, `{"valid":true,"price":`...))
	b = encode.Text(append(b, `,"reserve":{"currency":`...), c.engine.CurrencyCode(currency))
	b = appendBalance(b, "amount", need)
	b = appendBalance(append(b, '}'), "available", q.Available)
	if wouldTrade(&w, best) {
		c.body = append(b, `,"would_trade":true}`...)
	} else {
		c.body = append(b, `,"would_trade":false}`...)
	}
}

// needOf returns the money that an order reserves, and its currency.
func needOf(w *actors.OrderRequest) (currency uint16, need money.Balance) {
	if w.Special != nil && w.Special.Quote != 0 {
		return w.Pair.QuoteNumber, w.Special.Quote.Balance()
	}
	return ledger.Need(w.Side, w.Price, w.Amount, w.Pair.BaseNumber, w.Pair.QuoteNumber)
}

// mayPlace checks what an account's wallet would check before the money. False: the call is
// answered.
func (c *Call) mayPlace(w *actors.OrderRequest, q *committed.Means) bool {
	limits := c.engine.Limits()
	if !w.ClientID.IsZero() {
		o, found, err := c.engine.OrderNamed(c.Key.Account.ID, w.ClientID)
		switch {
		case err != nil:
			c.readFailed(err)
			return false
		case found && isTaken(&o, limits.ClientIDHold):
			c.idTaken(o.ID)
			return false
		}
	}
	switch {
	case q.Open >= limits.OpenOrdersPerAccount:
		c.Fail(TooManyOpenOrders, "")
	case q.Full:
		c.Fail(TooManyInBook, w.Pair.Name)
	default:
		return true
	}
	return false
}

// isTaken reports whether an order's client order id cannot be used again yet. It can be after some
// time, unless hold is 0.
func isTaken(o *committed.Order, hold time.Duration) bool {
	return o.Status == trading.StatusActive || hold == 0 ||
		time.Since(time.UnixMicro(o.TimeUs)) < hold
}

// wouldTrade reports whether an order meets the best price of the other side; 0: there is none. One
// that waits does not, and one that slides does not either.
func wouldTrade(w *actors.OrderRequest, best money.Price) bool {
	if best == 0 || w.Special != nil && (w.Special.Trigger.When != 0 || w.Special.Asked != 0) {
		return false
	}
	return w.Side == trading.Buy && w.Price >= best || w.Side == trading.Sell && w.Price <= best
}
