package conformance

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"exchange/core/money"
	"exchange/persistence"
)

func tradeID(t persistence.Trade) uint64 { return t.ID }

func orderID(o persistence.Order) uint64 { return o.ID }

func depositID(p persistence.Deposit) uint64 { return p.ID }

func withdrawalID(d persistence.Withdrawal) uint64 { return d.ID }

func candleID(c persistence.Candle) uint64 { return uint64(c.Time) }

func actionID(a persistence.Action) uint64 { return a.Seq }

// ids returns a short text of a list.
func ids[T any](rows []T, id func(T) uint64) string {
	const most = 40
	var out []uint64
	for _, r := range rows[:min(len(rows), most)] {
		out = append(out, id(r))
	}
	return fmt.Sprintf("%d rows %v", len(rows), out)
}

// model is history as a plain list that keeps everything; retention is applied to each answer.
type model struct {
	trades      []persistence.Trade // by id
	orders      []persistence.Order
	deposits    []persistence.Deposit
	withdrawals []persistence.Withdrawal
	candles     []persistence.Candle // by time
	actions     []persistence.Action
	keep        persistence.Retention
}

func (m *model) add(w *persistence.Writes) {
	m.trades = append(m.trades, w.Trades...)
	m.orders = append(m.orders, w.Orders...)
	m.deposits = append(m.deposits, w.Deposits...)
	m.withdrawals = append(m.withdrawals, w.Withdrawals...)
	m.actions = append(m.actions, w.Actions...)
	for _, c := range w.Candles {
		m.candles = slices.DeleteFunc(m.candles, func(old persistence.Candle) bool {
			return old.Pair == c.Pair && old.Frame == c.Frame && old.Time == c.Time
		})
		m.candles = append(m.candles, c)
	}
	byID(m.trades, tradeID)
	byID(m.orders, orderID)
	byID(m.deposits, depositID)
	byID(m.withdrawals, withdrawalID)
	byID(m.candles, candleID)
	byID(m.actions, actionID)
}

func byID[T any](rows []T, id func(T) uint64) {
	slices.SortFunc(rows, func(a, b T) int { return cmp.Compare(id(a), id(b)) })
}

// choose filters rows that are in the order of their ids, keeps the newest of the list they are in,
// and answers newest first.
func choose[T any](rows []T, keep int, inList, matches func(*T) bool) []T {
	var list, out []T
	for i := range rows {
		if inList(&rows[i]) {
			list = append(list, rows[i])
		}
	}
	if keep > 0 {
		list = list[max(len(list)-keep, 0):]
	}
	for i := range list {
		if matches(&list[i]) {
			out = append(out, list[i])
		}
	}
	slices.Reverse(out)
	return out
}

func (m *model) tradesOf(q persistence.TradeQuery) []persistence.Trade {
	inList := func(t *persistence.Trade) bool {
		if q.Account != 0 {
			return t.Taker == q.Account || t.Maker == q.Account
		}
		return q.Pair == 0 || t.Pair == q.Pair
	}
	out := choose(m.trades, m.keep.Trades, inList, func(t *persistence.Trade) bool {
		mine := t.TakerSide
		if t.Taker != q.Account {
			mine = t.TakerSide.Opposite()
		}
		return (q.Pair == 0 || t.Pair == q.Pair) &&
			(q.TakerSide == 0 || q.TakerSide == t.TakerSide) &&
			(q.MySide == 0 || q.MySide == mine) && (q.Before == 0 || t.ID < q.Before) &&
			t.ID > q.After && t.TimeUs >= q.SinceUs && (q.UntilUs == 0 || t.TimeUs <= q.UntilUs)
	})
	if q.Ascending {
		slices.Reverse(out)
	}
	return out[min(q.Offset, len(out)):]
}

func (m *model) ordersOf(q persistence.OrderQuery) []persistence.Order {
	inList := func(o *persistence.Order) bool { return o.Account == q.Account }
	return choose(m.orders, m.keep.Orders, inList, func(o *persistence.Order) bool {
		return (q.Pair == 0 || o.Pair == q.Pair) && (q.Side == 0 || o.Side == q.Side) &&
			(q.Status == 0 || o.Status == q.Status) &&
			(q.ClientID == "" || o.ClientID == q.ClientID) && (q.Before == 0 || o.ID < q.Before) &&
			(q.MaxSeq == 0 || o.ClosedSeq <= q.MaxSeq)
	})
}

func (m *model) depositsOf(q persistence.DepositQuery) []persistence.Deposit {
	inList := func(p *persistence.Deposit) bool { return p.Account == q.Account }
	out := choose(m.deposits, 0, inList, func(p *persistence.Deposit) bool {
		return (q.Before == 0 || p.ID < q.Before) && (q.Currency == 0 || p.Currency == q.Currency)
	})
	return out[min(q.Offset, len(out)):]
}

func (m *model) withdrawalsOf(q persistence.WithdrawalQuery) []persistence.Withdrawal {
	inList := func(d *persistence.Withdrawal) bool {
		return q.Account == 0 ||
			d.Account == q.Account
	}
	out := choose(m.withdrawals, 0, inList, func(d *persistence.Withdrawal) bool {
		shown := d.Status
		if shown == persistence.WithdrawalAdjusted && q.Status != shown {
			shown = persistence.WithdrawalApproved
		}
		return (q.Currency == 0 || d.Currency == q.Currency) &&
			(q.Status == 0 || shown == q.Status) &&
			(q.Before == 0 || d.ID < q.Before) && (q.MaxSeq == 0 || d.ClosedSeq <= q.MaxSeq)
	})
	return out[min(q.Offset, len(out)):]
}

// candlesOf applies a retention; the store may keep more.
func (m *model) candlesOf(q persistence.CandleQuery, keep int) []persistence.Candle {
	inList := func(c *persistence.Candle) bool { return c.Pair == q.Pair && c.Frame == q.Frame }
	return choose(m.candles, keep, inList, func(c *persistence.Candle) bool {
		return c.Time >= q.Since && (q.Until == 0 || c.Time <= q.Until)
	})
}

func (m *model) actionsOf(q persistence.ActionQuery) []persistence.Action {
	all := func(*persistence.Action) bool { return true }
	return choose(m.actions, 0, all, func(a *persistence.Action) bool {
		return q.Before == 0 || a.Seq < q.Before
	})
}

// Surroundings of the random tests: few accounts and pairs, so that every filter finds something.
const (
	accounts   = 5
	pairs      = 4
	currencies = 3
)

// flush returns one Apply's rows from id on. As in the exchange, ids of one pair come in order, but
// neighbours of different pairs may be swapped. A swapped row may come with the next flush: late
// has those rows.
//
// Withdrawals close in any order. Candles of the last two periods are written again and again.
func flush(r *rand.Rand, id *uint64, seq uint64, n int,
	late []persistence.Trade) (persistence.Writes, []persistence.Trade) {
	var w persistence.Writes
	held := map[uint16]bool{} // once one trade of a pair is late, those after it are too
	var next []persistence.Trade
	for i := range n {
		*id += 1 + r.Uint64N(3)
		t := randomTrade(r, *id, uint16(1+r.IntN(pairs)))
		if i > n-6 && r.IntN(3) == 0 {
			held[t.Pair] = true
		}
		if held[t.Pair] {
			next = append(next, t)
		} else {
			w.Trades = append(w.Trades, t)
		}
	}
	// The late ones of the previous flush are anywhere among the new ones.
	for _, t := range late {
		w.Trades = slices.Insert(w.Trades, r.IntN(min(len(w.Trades), 10)+1), t)
	}
	for range n / 2 {
		*id++
		w.Orders = append(w.Orders, randomOrder(r, *id, seq))
	}
	r.Shuffle(len(w.Orders), func(i, j int) { w.Orders[i], w.Orders[j] = w.Orders[j], w.Orders[i] })
	for range n / 10 {
		*id++
		w.Deposits = append(w.Deposits, persistence.Deposit{
			ID: *id, Account: 1 + r.Uint32N(accounts), Currency: uint16(1 + r.IntN(currencies)),
			Amount: money.Amount(r.Int64()),
			TimeUs: int64(*id), Reference: fmt.Sprintf("reference %d", *id),
		})
	}
	for range n / 10 {
		*id++
		// a prime: no id twice
		w.Withdrawals = append(w.Withdrawals, randomWithdrawal(r, 1+*id*7919%1_000_003, seq))
	}
	for range n / 4 {
		c := candle(uint16(1+r.IntN(2)), uint8(r.IntN(2)), 60*int64(seq)-60*r.Int64N(2))
		c.Close, c.Volume = money.Price(r.Int64()), money.TotalFromBits(r.Uint64N(10), r.Uint64())
		w.Candles = append(w.Candles, c)
	}
	for range n / 20 {
		*id++
		w.Actions = append(w.Actions, action(*id))
	}
	return w, next
}

// fill applies random flushes to the store and to the model.
func (w *world) fill(r *rand.Rand, m *model, flushes, n int) {
	w.Helper()
	var id uint64
	var late []persistence.Trade
	for range flushes {
		seq, err := w.s.Watermark(w.ctx)
		w.must(err)
		var writes persistence.Writes
		writes, late = flush(r, &id, seq+1, n, late)
		w.apply(1, &writes)
		m.add(&writes)
	}
}
