package conformance

import (
	"slices"

	"exchange/persistence"
)

func (w *world) writtenAgain() {
	w.open(persistence.Retention{})
	r := newRand(w.T, 12)
	m := &model{}
	var id uint64
	for seq := range uint64(4) {
		writes, late := flush(r, &id, seq+1, 80, nil)
		writes.Trades = append(writes.Trades, late...)
		m.add(&writes)
		w.apply(1, &writes)
		// Half of it comes again, with new rows and in another order.
		half := persistence.Writes{
			Trades: slices.Clone(writes.Trades[20:60]), Orders: slices.Clone(writes.Orders[10:30]),
			Deposits:    slices.Clone(writes.Deposits[2:6]),
			Withdrawals: slices.Clone(writes.Withdrawals[2:6]),
			Actions:     slices.Clone(writes.Actions[1:]), Candles: slices.Clone(writes.Candles),
		}
		id++
		more := persistence.Writes{Trades: []persistence.Trade{randomTrade(r, id, 1)},
			Orders: []persistence.Order{randomOrder(r, id, seq+1)}}
		m.add(&more)
		half.Trades = append(half.Trades, more.Trades...)
		half.Orders = append(half.Orders, more.Orders...)
		slices.Reverse(half.Trades)
		slices.Reverse(half.Deposits)
		w.apply(1, &half)
	}
	w.wantEverything(m)
	w.again(persistence.Retention{})
	w.wantEverything(m)
}

func (w *world) retentionAgain() {
	const limit = 10
	keep := persistence.Retention{Trades: limit, Orders: limit, Candles: limit}
	w.open(keep)
	m := &model{keep: keep}
	var writes persistence.Writes
	for id := uint64(1); id <= limit; id++ {
		writes.Trades = append(writes.Trades, trade(id, 1, 1, 2))
		writes.Orders = append(writes.Orders, order(id, 1, 1))
		writes.Candles = append(writes.Candles, candle(1, 1, int64(id)))
	}
	m.add(&writes)
	w.apply(1, &writes)
	w.apply(1, &persistence.Writes{Trades: writes.Trades[limit/2:], Orders: writes.Orders[limit/2:],
		Candles: writes.Candles[limit/2:]})
	w.wantEverything(m)
}
