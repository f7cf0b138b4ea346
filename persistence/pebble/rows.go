package pebble

import (
	"bytes"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// trades writes each trade into the list of its pair, the list of all, and those of its accounts.
// Each list has rows of its own, so that one scan reads it and it is trimmed independently.
// Fetching rows through an index was measured to cost dozens of times as much.
func (a *applier) trades(w *persistence.Writes) error {
	list := w.Trades
	if len(list) == 0 {
		return nil
	}
	limit := a.s.retention.Trades
	all := make([]row, 0, len(list))
	var memory []byte // of all rows; slices of an outgrown array stay valid
	for i := range list {
		at := len(memory)
		memory = codec.AppendTrade(memory, &list[i])
		all = append(all, row{of: int32(i), id: list[i].ID,
			value: memory[at:len(memory):len(memory)]})
	}
	rows := append(a.rows[:0], all...)
	err := eachList(rows, func(_ uint32, rows []row) error {
		return a.mergeTrades(a.s.allTrades(), rows, limit)
	})
	if err != nil {
		return err
	}
	rows = rows[:0]
	for i, r := range all {
		r.list = uint32(list[i].Pair)
		rows = append(rows, r)
	}
	err = eachList(rows, func(pair uint32, rows []row) error {
		return a.mergeTrades(a.s.pairTrades(uint16(pair)), rows, limit)
	})
	if err != nil {
		return err
	}
	rows = rows[:0]
	for i, r := range all {
		r.list = list[i].Taker
		rows = append(rows, r)
		if r.list = list[i].Maker; r.list != list[i].Taker {
			rows = append(rows, r)
		}
	}
	a.rows = rows
	return eachList(rows, func(account uint32, rows []row) error {
		added, err := a.merge(a.s.accountTrades(account), rows,
			limit, func(id uint64, value []byte) error {
				var t persistence.Trade
				if err := codec.DecodeTrade(value, id, &t); err != nil {
					return err
				}
				return a.b.Delete(u64(a.s.accountPairTrades(account, t.Pair), id), nil)
			})
		if err != nil {
			return err
		}
		for _, r := range added {
			if err := a.set(u64(a.s.accountPairTrades(account, list[r.of].Pair), r.id),
				r.value); err != nil {
				return err
			}
		}
		return nil
	})
}

// orders writes each closed order into the list of its account, into that of its account and pair,
// and into the index of client ids. The account's list decides which orders are trimmed.
func (a *applier) orders(w *persistence.Writes) error {
	list := w.Orders
	rows := a.rows[:0]
	var memory []byte
	for i := range list {
		at := len(memory)
		memory = codec.AppendOrder(memory, &list[i])
		rows = append(rows, row{list: list[i].Account, of: int32(i), id: list[i].ID,
			value: memory[at:len(memory):len(memory)]})
	}
	a.rows = rows
	return eachList(rows, func(account uint32, rows []row) error {
		added, err := a.merge(a.s.orders(account), rows,
			a.s.retention.Orders, func(id uint64, value []byte) error {
				var o persistence.Order
				if err := codec.DecodeOrder(value, account, id, &o); err != nil {
					return err
				}
				if o.ClientID != "" {
					if err := a.b.Delete(a.s.clientOrder(&o), nil); err != nil {
						return err
					}
				}
				return a.b.Delete(u64(a.s.pairOrders(account, o.Pair), id), nil)
			})
		if err != nil {
			return err
		}
		for _, r := range added {
			o := &list[r.of]
			if o.ClientID != "" {
				if err := a.set(a.s.clientOrder(o), clientEntry); err != nil {
					return err
				}
			}
			if err := a.set(u64(a.s.pairOrders(account, o.Pair), o.ID), r.value); err != nil {
				return err
			}
		}
		return nil
	})
}

// deposits writes each deposit into the list of its account and into the index of references.
func (a *applier) deposits(w *persistence.Writes) error {
	if len(w.Deposits) == 0 {
		return nil
	}
	index := a.s.reference("")
	c, err := a.counter(index)
	if err != nil {
		return err
	}
	rows := a.rows[:0]
	for i := range w.Deposits {
		p := &w.Deposits[i]
		c.note(p.ID)
		rows = append(rows, row{list: p.Account, of: int32(i), id: p.ID,
			value: codec.AppendDeposit(nil, p)})
		a.buf = codec.AppendReference(a.buf[:0], p)
		if err := a.set(a.s.reference(p.Reference), a.buf); err != nil {
			return err
		}
	}
	a.rows = rows
	if err := a.writeCounter(index, c); err != nil {
		return err
	}
	return eachList(rows, func(account uint32, rows []row) error {
		_, err := a.merge(a.s.deposits(account), rows, 0, nil)
		return err
	})
}

// withdrawals writes each withdrawal into the list of all and into that of its account. Withdrawals
// are rare, so it reads each first, and leaves an existing one unchanged.
func (a *applier) withdrawals(w *persistence.Writes) error {
	written := map[uint64]bool{}
	for i := range w.Withdrawals {
		d := &w.Withdrawals[i]
		key := u64(a.s.withdrawals(0), d.ID)
		v, err := a.s.get(a.s.db, key)
		if err != nil {
			return err
		}
		if v != nil || written[d.ID] {
			continue
		}
		written[d.ID] = true
		a.buf = codec.AppendWithdrawal(a.buf[:0], d)
		if err := a.set(key, a.buf); err != nil {
			return err
		}
		if d.Account == 0 {
			continue // its list is that of all
		}
		if err := a.set(u64(a.s.withdrawals(d.Account), d.ID), a.buf); err != nil {
			return err
		}
	}
	return nil
}

// candles writes each candle at its time. Most exist already, as the newest of their list. Such a
// candle is overwritten, which costs no more than its bytes. A list's counter changes with each new
// period only.
func (a *applier) candles(w *persistence.Writes) error {
	rows := a.rows[:0]
	var memory []byte
	for i := range w.Candles {
		c := &w.Candles[i]
		at := len(memory)
		memory = codec.AppendCandle(memory, c)
		rows = append(rows, row{
			list: uint32(c.Pair)<<8 | uint32(c.Frame), of: int32(-i), // the later of two wins
			id: uint64(c.Time), value: memory[at:len(memory):len(memory)],
		})
	}
	a.rows = rows
	return eachList(rows, func(of uint32, rows []row) error {
		list := a.s.candles(uint16(of>>8), uint8(of))
		c, err := a.counter(list)
		if err != nil {
			return err
		}
		fresh := rows[:0]
		for _, r := range rows {
			there := c.rows > 0 && r.id == c.newest
			a.buf = with(a.buf, list, r.id)
			if c.rows > 0 && r.id < c.newest { // a late one
				v, err := a.s.get(a.s.db, a.buf)
				if err != nil {
					return err
				}
				there = v != nil
			}
			if !there {
				fresh = append(fresh, r)
			} else if err := a.set(a.buf, r.value); err != nil {
				return err
			}
		}
		_, err = a.merge(list, fresh, a.s.retention.Candles, nil)
		return err
	})
}

func (a *applier) actions(w *persistence.Writes) error {
	list := a.s.actions()
	for i := range w.Actions {
		a.buf = codec.AppendAction(a.buf[:0], &w.Actions[i])
		if err := a.set(u64(bytes.Clone(list), w.Actions[i].Seq), a.buf); err != nil {
			return err
		}
	}
	return nil
}
