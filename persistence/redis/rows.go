package redis

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// trades lays out each trade for the list of its pair, the list of all, and those of its accounts, with a
// mark for each.
func (s *Store) trades(c *cutter, list []persistence.Trade) {
	if len(list) == 0 {
		return
	}
	all := make([]marked, 0, len(list))
	pairs := map[uint16][]marked{}
	accounts := map[uint32][]marked{}
	var memory []byte // of all rows and marks; slices of an outgrown array stay valid
	cut := func(from int) []byte { return memory[from:len(memory):len(memory)] }
	for i := range list {
		t := &list[i]
		at := len(memory)
		memory = codec.AppendTrade(binary.BigEndian.AppendUint64(memory, t.ID), t)
		row := cut(at)
		mark := func(account uint32) marked {
			at := len(memory)
			memory = codec.AppendMark(memory, t, account)
			return marked{row, cut(at)}
		}
		taker := mark(t.Taker) // without an account, nobody asks for its own side: any will do
		all = append(all, taker)
		pairs[t.Pair] = append(pairs[t.Pair], taker)
		accounts[t.Taker] = append(accounts[t.Taker], taker)
		if t.Maker != t.Taker {
			accounts[t.Maker] = append(accounts[t.Maker], mark(t.Maker))
		}
	}
	s.tradeList(c, s.allTrades(), all)
	for _, pair := range slices.Sorted(maps.Keys(pairs)) {
		s.tradeList(c, s.pairTrades(pair), pairs[pair])
	}
	for _, account := range slices.Sorted(maps.Keys(accounts)) {
		s.tradeList(c, s.accountTrades(account), accounts[account])
	}
}

// marked is a row with its mark.
type marked struct{ row, mark []byte }

// tradeList lays out rows in the order of their ids, without the second of two with the same.
func (s *Store) tradeList(c *cutter, list string, rows []marked) {
	slices.SortStableFunc(rows, func(a, b marked) int { return cmp.Compare(rowID(a.row), rowID(b.row)) })
	rows = slices.CompactFunc(rows, func(a, b marked) bool { return rowID(a.row) == rowID(b.row) })
	c.addMarked(list, s.retention.Trades, rows)
}

// sorted puts rows in the order of their ids and leaves out the second of two with the same.
func sorted(rows [][]byte) [][]byte {
	slices.SortStableFunc(rows, func(a, b []byte) int { return slices.Compare(a[:codec.IDSize], b[:codec.IDSize]) })
	return slices.CompactFunc(rows, func(a, b []byte) bool { return rowID(a) == rowID(b) })
}

// rowID is the id in front of a row.
func rowID(row []byte) uint64 { return binary.BigEndian.Uint64(row) }

// closed lays out each closed order for the sorted set of its account.
func (s *Store) closed(c *cutter, list []persistence.Order) {
	accounts := map[uint32][][]byte{}
	for i := range list {
		o := &list[i]
		row := codec.AppendOrder(binary.BigEndian.AppendUint64(nil, o.ID), o)
		accounts[o.Account] = append(accounts[o.Account], []byte(dec(o.ID)), row)
	}
	for _, account := range slices.Sorted(maps.Keys(accounts)) {
		c.add('Z', s.orders(account), s.retention.Orders, 2, accounts[account])
	}
}

// credits lays out each deposit for the list of its account.
func (s *Store) credits(c *cutter, list []persistence.Deposit) {
	accounts := map[uint32][][]byte{}
	for i := range list {
		p := &list[i]
		row := codec.AppendDeposit(binary.BigEndian.AppendUint64(nil, p.ID), p)
		accounts[p.Account] = append(accounts[p.Account], row)
	}
	for _, account := range slices.Sorted(maps.Keys(accounts)) {
		c.add('L', s.deposits(account), 0, 1, sorted(accounts[account]))
	}
}

// withdrawn lays out each withdraw that came to its end for the sorted sets of its account and of all.
func (s *Store) withdrawn(c *cutter, list []persistence.Withdraw) {
	var all [][]byte
	accounts := map[uint32][][]byte{}
	for i := range list {
		d := &list[i]
		score, row := []byte(dec(d.ID)), codec.AppendWithdraw(binary.BigEndian.AppendUint64(nil, d.ID), d)
		all = append(all, score, row)
		if d.Account != 0 { // 0 is the list of all
			accounts[d.Account] = append(accounts[d.Account], score, row)
		}
	}
	c.add('U', s.withdraws(0), 0, 2, all)
	for _, account := range slices.Sorted(maps.Keys(accounts)) {
		c.add('U', s.withdraws(account), 0, 2, accounts[account])
	}
}

// candles lays out each candle for the list of its pair and frame, whose rows have the time as id.
func (s *Store) candles(c *cutter, list []persistence.Candle) {
	type place struct {
		pair  uint16
		frame uint8
	}
	lists := map[place][][]byte{}
	var memory []byte
	for i := range list {
		k := &list[len(list)-1-i] // sorted keeps the first of two, and the later one is to win
		at := len(memory)
		memory = codec.AppendCandle(binary.BigEndian.AppendUint64(memory, uint64(k.Time)), k)
		p := place{k.Pair, k.Frame}
		lists[p] = append(lists[p], memory[at:len(memory):len(memory)])
	}
	for p, rows := range lists {
		c.add('C', s.candleList(p.pair, p.frame), s.retention.Candles, 1, sorted(rows))
	}
}

// logged lays out each action for the log.
func (s *Store) logged(c *cutter, list []persistence.Action) {
	var rows [][]byte
	for i := range list {
		rows = append(rows, codec.AppendAction(binary.BigEndian.AppendUint64(nil, list[i].Seq), &list[i]))
	}
	c.add('L', s.actions(), 0, 1, sorted(rows))
}
