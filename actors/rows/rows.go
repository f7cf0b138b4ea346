package rows

import (
	"exchange/core/event"
	"exchange/core/market"
	"exchange/core/state"
	"exchange/core/trading"
	"exchange/persistence"
)

// Append adds the rows of a record to w. The record r was just applied to s, and e is the result of
// Apply. Candles are excluded, because a candle is a value that changes.
func Append(w *persistence.Writes, s *state.State, r *event.Record, e *state.Effects) {
	for i := range e.Closed {
		w.Orders = append(w.Orders, Closed(&e.Closed[i], s.Seq()))
	}
	if o := r.Taker(); o != nil {
		for i := range o.Trades {
			t := &o.Trades[i]
			w.Trades = append(w.Trades, Trade(r, o, t))
		}
	}
	if r.Kind == event.KindDeposit {
		w.Deposits = append(w.Deposits, Deposit(r))
	}
	if k := e.Withdrawal; k != nil {
		w.Withdrawals = append(w.Withdrawals,
			persistence.Withdrawal{ID: k.ID, Account: k.Account, Currency: k.Currency,
				Amount: k.Amount, Status: k.Status,
				TimeUs: k.TimeUs, ClosedUs: r.TimeUs, ClosedSeq: s.Seq(), Address: k.Address,
				Details: k.Details, ClientID: k.ClientID.String()})
	}
	if r.Operator != "" {
		w.Actions = append(w.Actions, persistence.Action{Seq: s.Seq(), TimeUs: r.TimeUs,
			Operator: r.Operator, What: inWords(s, r)})
	}
}

// Deposit returns the row of a record's deposit.
func Deposit(r *event.Record) persistence.Deposit {
	d := &r.Deposit
	return persistence.Deposit{ID: d.ID, Account: d.Account, Currency: d.Currency,
		Amount: d.Amount, TimeUs: r.TimeUs, Reference: d.Reference}
}

// Closed returns the row of an order that a record closed, the one with the sequence seq.
func Closed(o *state.ClosedOrder, seq uint64) persistence.Order {
	row := persistence.Order{ID: o.ID, Account: o.Account, Pair: o.Pair, Side: o.Side,
		Status: trading.StatusDone, Price: o.Price, Amount: o.Amount, Remaining: o.Remaining,
		TimeUs: o.TimeUs, ClosedUs: o.ClosedUs, ClosedSeq: seq, ClientID: o.ClientID.String()}
	if o.Cancelled {
		row.Status = trading.StatusCancelled
	}
	if o.Instructed != nil {
		row.Instructed = o.Instructed.Pack()
	}
	return row
}

// Trade returns the row of a trade of a record's order.
func Trade(r *event.Record, o *event.Order, t *event.Trade) persistence.Trade {
	return persistence.Trade{ID: t.ID, Pair: r.Pair, TakerSide: o.Side, Price: t.Price,
		Amount: t.Amount, TimeUs: r.TimeUs, Taker: o.Account, Maker: t.MakerAccount,
		TakerOrder: o.ID, MakerOrder: t.Maker, TakerFee: t.TakerFee, MakerFee: t.MakerFee}
}

// Count returns the number of rows in w added by Append. Wallets, nonces and candles do not count,
// because each replaces a row in place.
func Count(w *persistence.Writes) int {
	return len(w.Trades) + len(w.Orders) + len(w.Deposits) + len(w.Withdrawals) + len(w.Actions)
}

// Candle returns a candle of a pair's chart as the store keeps it.
func Candle(pair uint16, f market.Frame, c *market.Candle) persistence.Candle {
	return persistence.Candle{Pair: pair, Frame: uint8(f), Time: c.Time, Open: c.Open, High: c.High,
		Low: c.Low, Close: c.Close, Volume: c.Volume}
}
