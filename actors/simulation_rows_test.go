package actors

import (
	"cmp"
	"slices"

	"exchange/core/market"
	"exchange/persistence"
	"exchange/prove/spec"
)

// The history's rows derived from the records up to a sequence, by id.

func (s *sim) tradesUpTo(seq uint64) (rows []persistence.Trade) {
	for _, t := range s.model.Trades {
		if t.Seq <= seq {
			rows = append(rows, persistence.Trade{ID: t.ID, Pair: t.Pair, TakerSide: t.Side,
				Price: t.Price, Amount: t.Amount, TimeUs: t.TimeUs, Taker: t.Taker,
				Maker: t.MakerAccount, TakerOrder: t.Order, MakerOrder: t.Maker,
				TakerFee: t.TakerFee, MakerFee: t.MakerFee})
		}
	}
	return sorted(rows, func(t *persistence.Trade) uint64 { return t.ID })
}

func (s *sim) ordersUpTo(seq uint64) (rows []persistence.Order) {
	for i := range s.model.ClosedOrders {
		if c := &s.model.ClosedOrders[i]; c.Seq <= seq {
			row := orderRow(&c.Order)
			row.Status, row.ClosedUs, row.ClosedSeq = c.Status, c.ClosedUs, c.Seq
			rows = append(rows, row)
		}
	}
	return sorted(rows, func(o *persistence.Order) uint64 { return o.ID })
}

// orderRow returns the row of an order, without its status and its end.
func orderRow(o *spec.Order) persistence.Order {
	return persistence.Order{ID: o.ID, Account: o.Account, Pair: o.Pair, Side: o.Side,
		Price: o.Price, Amount: o.Amount, Remaining: o.Remaining, TimeUs: o.TimeUs,
		ClientID: o.ClientID.String(), Instructed: o.Packed()}
}

func (s *sim) depositsUpTo(seq uint64) (rows []persistence.Deposit) {
	for _, d := range s.model.Deposits {
		if d.Seq <= seq {
			rows = append(rows, persistence.Deposit{ID: d.ID, Account: d.Account,
				Currency: d.Currency, Amount: d.Amount, TimeUs: d.TimeUs, Reference: d.Reference})
		}
	}
	return sorted(rows, func(d *persistence.Deposit) uint64 { return d.ID })
}

// withdrawalsUpTo returns the ended withdrawals.
func (s *sim) withdrawalsUpTo(seq uint64) (rows []persistence.Withdrawal) {
	for _, w := range s.model.Withdrawals {
		if !w.Pending() && w.Moved <= seq {
			rows = append(rows, persistence.Withdrawal{ID: w.ID, Account: w.Account,
				Currency: w.Currency, Amount: w.Amount, Status: w.Status, TimeUs: w.TimeUs,
				ClosedUs: w.ClosedUs, ClosedSeq: w.Moved, Address: w.Address, Details: w.Details,
				ClientID: w.ClientID.String()})
		}
	}
	return sorted(rows, func(w *persistence.Withdrawal) uint64 { return w.ID })
}

// actionsUpTo returns the actions without their words.
func (s *sim) actionsUpTo(seq uint64) (rows []persistence.Action) {
	for _, a := range s.model.Actions {
		if a.Seq <= seq {
			rows = append(rows, persistence.Action{Seq: a.Seq, TimeUs: a.TimeUs,
				Operator: a.Operator})
		}
	}
	return rows
}

// candlesUpTo returns the candles of one pair and frame, oldest first.
func (s *sim) candlesUpTo(pair uint16, frame market.Frame,
	seq uint64) (rows []persistence.Candle) {
	trades := slices.DeleteFunc(slices.Clone(s.model.Trades), func(t spec.Trade) bool {
		return t.Pair != pair || t.Seq > seq
	})
	for _, c := range spec.Candles(trades, frame.Seconds()) {
		rows = append(rows, persistence.Candle{Pair: pair, Frame: uint8(frame), Time: c.Time,
			Open: c.Open, High: c.High, Low: c.Low, Close: c.Close, Volume: c.Volume})
	}
	return rows
}

func sorted[T any](rows []T, id func(*T) uint64) []T {
	slices.SortFunc(rows, func(a, b T) int { return cmp.Compare(id(&a), id(&b)) })
	return rows
}
