package redis

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strconv"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// addTrades lays out each trade for the list of its pair, the list of all, and those of its
// accounts, with a mark for each.
func (s *Store) addTrades(c *cutter, list []persistence.Trade) {
	if len(list) == 0 {
		return
	}
	all := make([]tradeRow, 0, len(list))
	pairs := map[uint16][]tradeRow{}
	accounts := map[uint32][]tradeRow{}
	for i := range list {
		t := tradeRow{trade: &list[i], row: codec.AppendTrade(
			binary.BigEndian.AppendUint64(nil, list[i].ID), &list[i])}
		all = append(all, t)
		pairs[t.trade.Pair] = append(pairs[t.trade.Pair], t)
		accounts[t.trade.Taker] = append(accounts[t.trade.Taker], t)
		if t.trade.Maker != t.trade.Taker {
			accounts[t.trade.Maker] = append(accounts[t.trade.Maker], t)
		}
	}
	s.tradeList(c, s.allTrades(), takerOf, all)
	for _, pair := range slices.Sorted(maps.Keys(pairs)) {
		s.tradeList(c, s.pairTrades(pair), takerOf, pairs[pair])
	}
	for _, account := range slices.Sorted(maps.Keys(accounts)) {
		s.tradeList(c, s.accountTrades(account), func(*persistence.Trade) uint32 { return account },
			accounts[account])
	}
}

// tradeRow is a trade's row with its mark.
type tradeRow struct {
	trade     *persistence.Trade
	row, mark []byte
}

// takerOf returns the account whose side the marks of a list without an account show. No query
// filters such a list by an own side.
func takerOf(t *persistence.Trade) uint32 { return t.Taker }

// tradeList lays out rows in the order of their ids, without the second of two with the same. The
// marks show the side of an account.
func (s *Store) tradeList(c *cutter, list string,
	account func(*persistence.Trade) uint32, rows []tradeRow) {
	at, marks := codec.At(list), codec.At(s.marks(list))
	var memory []byte // of all rows and marks; slices of an outgrown array stay valid
	cut := func(from int) []byte { return memory[from:len(memory):len(memory)] }
	for i := range rows {
		r := &rows[i]
		from := len(memory)
		memory = at.And(r.row[:codec.IDSize]).Seal(append(memory, r.row[:codec.IDSize]...),
			r.row[codec.IDSize:])
		r.row = cut(from)
		from = len(memory)
		memory = codec.AppendMark(memory, marks, r.trade, account(r.trade))
		r.mark = cut(from)
	}
	slices.SortStableFunc(rows, func(a, b tradeRow) int {
		return cmp.Compare(rowID(a.row), rowID(b.row))
	})
	rows = slices.CompactFunc(rows, func(a, b tradeRow) bool {
		return rowID(a.row) == rowID(b.row)
	})
	c.addTradeRows(list, s.retention.Trades, rows)
}

// sealed returns a row with its id in front and its checksum after it.
func sealed(list string, id uint64, row []byte) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, codec.IDSize+len(row)+codec.SumSize), id)
	return codec.At(list).And(b).Seal(b, row)
}

// sorted puts rows in the order of their ids and leaves out the second of two with the same.
func sorted(rows [][]byte) [][]byte {
	slices.SortStableFunc(rows, func(a, b []byte) int {
		return slices.Compare(a[:codec.IDSize], b[:codec.IDSize])
	})
	return slices.CompactFunc(rows, func(a, b []byte) bool { return rowID(a) == rowID(b) })
}

// rowID returns the id in front of a row.
func rowID(row []byte) uint64 { return binary.BigEndian.Uint64(row) }

// addOrders lays out each closed order for the sorted set of its account, with its entry in the
// index of client ids. The entry of an order without a client id is empty. Of two with the same id
// the second is left out.
func (s *Store) addOrders(c *cutter, list []persistence.Order) {
	accounts := map[uint32][]*persistence.Order{}
	for i := range list {
		accounts[list[i].Account] = append(accounts[list[i].Account], &list[i])
	}
	for _, account := range slices.Sorted(maps.Keys(accounts)) {
		orders := accounts[account]
		slices.SortStableFunc(orders, func(a, b *persistence.Order) int {
			return cmp.Compare(a.ID, b.ID)
		})
		orders = slices.CompactFunc(orders, func(a, b *persistence.Order) bool {
			return a.ID == b.ID
		})
		c.add('Z', s.orders(account), s.retention.Orders, 3, s.orderFields(account, orders))
	}
}

// closedOf returns score, row and entry of each order of an account.
func (s *Store) orderFields(account uint32, orders []*persistence.Order) [][]byte {
	set, index := codec.At(s.orders(account)), codec.At(s.clientIDs(account))
	values := make([][]byte, 0, 3*len(orders))
	var memory, row []byte // memory of all values; slices of an outgrown array stay valid
	cut := func(from int) []byte { return memory[from:len(memory):len(memory)] }
	for _, o := range orders {
		from := len(memory)
		memory = strconv.AppendUint(memory, o.ID, 10)
		score := cut(from)
		from = len(memory)
		memory = binary.BigEndian.AppendUint64(memory, o.ID)
		row = codec.AppendOrder(row[:0], o)
		memory = set.And(memory[from:]).Seal(memory, row)
		stored := cut(from)
		from = len(memory)
		memory = appendClientEntry(memory, index, o)
		values = append(values, score, stored, cut(from))
	}
	return values
}

// addDeposits lays out each deposit for the list of its account, and for the index of references.
func (s *Store) addDeposits(c *cutter, list []persistence.Deposit) {
	accounts := map[uint32][][]byte{}
	var index [][]byte
	for i := range list {
		p := &list[i]
		row := sealed(s.deposits(p.Account), p.ID, codec.AppendDeposit(nil, p))
		accounts[p.Account] = append(accounts[p.Account], row)
		index = append(index, []byte(p.Reference),
			s.referencePlace(p.Reference).Seal(nil, codec.AppendReference(nil, p)),
			[]byte(witness(p.Reference)))
	}
	c.add('R', s.references(), 0, 3, index)
	for _, account := range slices.Sorted(maps.Keys(accounts)) {
		c.add('L', s.deposits(account), 0, 1, sorted(accounts[account]))
	}
}

// addWithdrawals lays out each closed withdrawal for the sorted sets of its account and of all.
func (s *Store) addWithdrawals(c *cutter, list []persistence.Withdrawal) {
	var all [][]byte
	accounts := map[uint32][][]byte{}
	for i := range list {
		d := &list[i]
		score, row := []byte(dec(d.ID)), codec.AppendWithdrawal(nil, d)
		all = append(all, score, sealed(s.withdrawals(0), d.ID, row))
		if d.Account != 0 { // 0 is the list of all
			accounts[d.Account] = append(accounts[d.Account], score,
				sealed(s.withdrawals(d.Account), d.ID, row))
		}
	}
	c.add('U', s.withdrawals(0), 0, 2, all)
	for _, account := range slices.Sorted(maps.Keys(accounts)) {
		c.add('U', s.withdrawals(account), 0, 2, accounts[account])
	}
}

// addCandles lays out each candle for the list of its pair and frame, whose rows have the time as
// id.
func (s *Store) addCandles(c *cutter, list []persistence.Candle) {
	type place struct {
		pair  uint16
		frame uint8
	}
	lists := map[place][][]byte{}
	for i := range list {
		k := &list[len(list)-1-i] // sorted keeps the first of two, and the later one must win
		p := place{k.Pair, k.Frame}
		lists[p] = append(lists[p], sealed(s.candleList(k.Pair, k.Frame), uint64(k.Time),
			codec.AppendCandle(nil, k)))
	}
	for p, rows := range lists {
		c.add('C', s.candleList(p.pair, p.frame), s.retention.Candles, 1, sorted(rows))
	}
}

// addActions lays out each action for the log.
func (s *Store) addActions(c *cutter, list []persistence.Action) {
	var rows [][]byte
	for i := range list {
		rows = append(rows, sealed(s.actions(), list[i].Seq, codec.AppendAction(nil, &list[i])))
	}
	c.add('L', s.actions(), 0, 1, sorted(rows))
}
