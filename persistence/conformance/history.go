package conformance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	"exchange/core/matching"
	"exchange/core/money"
	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// newRand is a source of random numbers; CONFORMANCE_SEED replays or varies it.
func newRand(t *testing.T, stream uint64) *rand.Rand {
	seed := uint64(1)
	if text := os.Getenv("CONFORMANCE_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("CONFORMANCE_SEED=%q is not a number", text)
		}
		seed = n
	}
	t.Logf("CONFORMANCE_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, stream))
}

// Reading lists.

func (w *world) trades(q persistence.TradeQuery) []persistence.Trade {
	w.Helper()
	var all []persistence.Trade
	w.must(w.s.Trades(w.ctx, q, func(t *persistence.Trade) bool {
		all = append(all, *t)
		return true
	}))
	return all
}

func (w *world) wantTrades(q persistence.TradeQuery, want []persistence.Trade) {
	w.Helper()
	if got := w.trades(q); !slices.Equal(got, want) {
		w.Fatalf("%+v answers %s, want %s", q, ids(got, tradeID), ids(want, tradeID))
	}
}

func (w *world) orders(q persistence.OrderQuery) []persistence.Order {
	w.Helper()
	var all []persistence.Order
	w.must(w.s.Orders(w.ctx, q, func(o *persistence.Order) bool {
		all = append(all, *o)
		return true
	}))
	return all
}

func (w *world) wantOrders(q persistence.OrderQuery, want []persistence.Order) {
	w.Helper()
	if got := w.orders(q); !slices.Equal(got, want) {
		w.Fatalf("%+v answers %s, want %s", q, ids(got, orderID), ids(want, orderID))
	}
}

func (w *world) deposits(q persistence.DepositQuery) []persistence.Deposit {
	w.Helper()
	var all []persistence.Deposit
	w.must(w.s.Deposits(w.ctx, q, func(p *persistence.Deposit) bool {
		all = append(all, *p)
		return true
	}))
	return all
}

func (w *world) wantDeposits(q persistence.DepositQuery, want []persistence.Deposit) {
	w.Helper()
	if got := w.deposits(q); !slices.Equal(got, want) {
		w.Fatalf("%+v answers %s, want %s", q, ids(got, depositID), ids(want, depositID))
	}
}

func tradeID(t persistence.Trade) uint64     { return t.ID }
func orderID(o persistence.Order) uint64     { return o.ID }
func depositID(p persistence.Deposit) uint64 { return p.ID }

// ids is a short text of a list.
func ids[T any](rows []T, id func(T) uint64) string {
	const most = 40
	var out []uint64
	for _, r := range rows[:min(len(rows), most)] {
		out = append(out, id(r))
	}
	return fmt.Sprintf("%d rows %v", len(rows), out)
}

// model is history as a plain list that keeps everything; retention is applied when it is asked.
type model struct {
	trades   []persistence.Trade // by id
	orders   []persistence.Order
	deposits []persistence.Deposit
	keep     persistence.Retention
}

func (m *model) add(w *persistence.Writes) {
	m.trades = append(m.trades, w.Trades...)
	m.orders = append(m.orders, w.Orders...)
	m.deposits = append(m.deposits, w.Deposits...)
	slices.SortFunc(m.trades, func(a, b persistence.Trade) int { return int(a.ID) - int(b.ID) })
	slices.SortFunc(m.orders, func(a, b persistence.Order) int { return int(a.ID) - int(b.ID) })
	slices.SortFunc(m.deposits, func(a, b persistence.Deposit) int { return int(a.ID) - int(b.ID) })
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
		return (q.Pair == 0 || t.Pair == q.Pair) && (q.TakerSide == 0 || q.TakerSide == t.TakerSide) &&
			(q.MySide == 0 || q.MySide == mine) && (q.Before == 0 || t.ID < q.Before)
	})
	if q.Ascending {
		slices.Reverse(out)
	}
	return out[min(q.Offset, len(out)):]
}

func (m *model) ordersOf(q persistence.OrderQuery) []persistence.Order {
	inList := func(o *persistence.Order) bool { return o.Account == q.Account }
	return choose(m.orders, m.keep.Orders, inList, func(o *persistence.Order) bool {
		return (q.Pair == 0 || o.Pair == q.Pair) && (q.Side == 0 || o.Side == q.Side) && (q.Status == 0 || o.Status == q.Status) &&
			(q.ClientID == "" || o.ClientID == q.ClientID) && (q.Before == 0 || o.ID < q.Before) && (q.MaxSeq == 0 || o.ClosedSeq <= q.MaxSeq)
	})
}

func (m *model) depositsOf(q persistence.DepositQuery) []persistence.Deposit {
	inList := func(p *persistence.Deposit) bool { return p.Account == q.Account }
	out := choose(m.deposits, 0, inList, func(p *persistence.Deposit) bool { return q.Before == 0 || p.ID < q.Before })
	return out[min(q.Offset, len(out)):]
}

// Surroundings of the random tests: few accounts and pairs, so that every filter finds something.
const (
	accounts = 5
	pairs    = 4
)

func randomTrade(r *rand.Rand, id uint64, pair uint16) persistence.Trade {
	t := trade(id, pair, 1+r.Uint32N(accounts), 1+r.Uint32N(accounts))
	t.TakerSide = matching.Side(1 + r.IntN(2))
	if r.IntN(3) == 0 {
		t.TakerFee = money.BalanceFromBits(r.Uint64N(1<<56), r.Uint64())
		t.MakerFee = money.BalanceFromBits(0, r.Uint64N(100))
	}
	return t
}

func randomOrder(r *rand.Rand, id, seq uint64) persistence.Order {
	o := order(id, 1+r.Uint32N(accounts), uint16(1+r.IntN(pairs)))
	o.Side = matching.Side(1 + r.IntN(2))
	o.Status = uint8(persistence.StatusCancelled + r.IntN(2))
	o.ClosedSeq = seq
	if o.Status == persistence.StatusCancelled {
		o.Remaining = o.Amount / 2
	}
	if r.IntN(2) == 0 {
		o.ClientID = fmt.Sprintf("client-%d", r.IntN(5)) // used again and again
	}
	return o
}

// flush is one Apply's rows from id on. As in the exchange, ids of one pair come in order, but
// neighbours of different pairs may be swapped, also with the next flush: late is what comes then.
func flush(r *rand.Rand, id *uint64, seq uint64, n int, late []persistence.Trade) (persistence.Writes, []persistence.Trade) {
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
	// The late ones of the flush before are anywhere among the new ones.
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
			ID: *id, Account: 1 + r.Uint32N(accounts), Currency: uint16(r.IntN(9)), Amount: money.Amount(r.Int64()),
			TimeUs: int64(*id), Reference: fmt.Sprintf("reference %d", *id),
		})
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

func (w *world) lists() { w.compare(3, persistence.Retention{}, 12, 150) }

func (w *world) trimmedLists() { w.compare(4, persistence.Retention{Trades: 137, Orders: 41}, 12, 150) }

// compare asks the store and the model the same.
func (w *world) compare(stream uint64, keep persistence.Retention, flushes, n int) {
	r := newRand(w.T, stream)
	w.open(keep)
	m := &model{keep: keep}
	w.fill(r, m, flushes, n)
	top := m.orders[len(m.orders)-1].ID + 10
	for round := range 2 {
		for range 400 {
			q := persistence.TradeQuery{Ascending: r.IntN(2) == 0}
			if r.IntN(2) == 0 {
				q.Pair = uint16(1 + r.IntN(pairs+1))
			}
			if r.IntN(2) == 0 {
				q.Account = 1 + r.Uint32N(accounts+1)
				q.MySide = matching.Side(r.IntN(3))
			}
			if r.IntN(2) == 0 {
				q.TakerSide = matching.Side(r.IntN(3))
			}
			if r.IntN(2) == 0 {
				q.Before = 1 + r.Uint64N(top)
			}
			if r.IntN(2) == 0 {
				q.Offset = r.IntN(flushes * n / 2)
			}
			w.wantTrades(q, m.tradesOf(q))
		}
		for range 300 {
			q := persistence.OrderQuery{Account: 1 + r.Uint32N(accounts+1), Side: matching.Side(r.IntN(3)), MaxSeq: r.Uint64N(uint64(flushes) + 1)}
			if r.IntN(2) == 0 {
				q.Pair = uint16(1 + r.IntN(pairs+1))
			}
			if r.IntN(2) == 0 {
				q.Status = uint8(persistence.StatusCancelled + r.IntN(2))
			}
			if r.IntN(2) == 0 {
				q.ClientID = fmt.Sprintf("client-%d", r.IntN(6))
			}
			if r.IntN(2) == 0 {
				q.Before = 1 + r.Uint64N(top)
			}
			w.wantOrders(q, m.ordersOf(q))
		}
		for range 50 {
			q := persistence.DepositQuery{Account: 1 + r.Uint32N(accounts+1), Offset: r.IntN(30)}
			if r.IntN(2) == 0 {
				q.Before, q.Offset = 1+r.Uint64N(top), r.IntN(3)
			}
			w.wantDeposits(q, m.depositsOf(q))
		}
		w.wantTrades(persistence.TradeQuery{Before: math.MaxUint64}, m.tradesOf(persistence.TradeQuery{}))
		w.wantOrders(persistence.OrderQuery{Account: 1, Before: math.MaxUint64}, m.ordersOf(persistence.OrderQuery{Account: 1}))
		w.wantDeposits(persistence.DepositQuery{Account: 1, Before: math.MaxUint64}, m.depositsOf(persistence.DepositQuery{Account: 1}))
		w.wantOrders(persistence.OrderQuery{Account: 1, ClientID: "client"}, nil) // no prefix of one
		if round == 0 {
			w.again(keep)
		}
	}
	// fn says stop.
	seen := 0
	w.must(w.s.Trades(w.ctx, persistence.TradeQuery{}, func(*persistence.Trade) bool { seen++; return seen < 5 }))
	w.must(w.s.Orders(w.ctx, persistence.OrderQuery{Account: 1}, func(*persistence.Order) bool { seen++; return seen < 10 }))
	w.must(w.s.Deposits(w.ctx, persistence.DepositQuery{Account: 1}, func(*persistence.Deposit) bool { seen++; return seen < 15 }))
	if seen != 5+5+5 {
		w.Fatalf("fn was called %d times, want 15", seen)
	}
}

func (w *world) fields() {
	w.open(persistence.Retention{})
	widest := persistence.Trade{
		ID: codec.MaxID, Pair: math.MaxUint16, TakerSide: matching.Sell, Price: money.MaxPrice, Amount: money.MaxAmount,
		TimeUs: math.MaxInt64, Taker: math.MaxUint32, Maker: math.MaxUint32 - 1, TakerOrder: codec.MaxID, MakerOrder: codec.MaxID - 1,
		TakerFee: money.BalanceFromBits(math.MaxUint64, math.MaxUint64), MakerFee: money.BalanceFromBits(1, 0),
	}
	narrow := persistence.Trade{ID: 1, Pair: 0, TakerSide: matching.Buy, Price: 1, Amount: 1}
	wideOrder := persistence.Order{
		ID: codec.MaxID, Account: math.MaxUint32, Pair: math.MaxUint16, Side: matching.Sell, Status: persistence.StatusCancelled,
		Price: money.MaxPrice, Amount: money.MaxAmount, Remaining: money.MaxAmount, TimeUs: math.MaxInt64, ClosedUs: 1,
		ClosedSeq: codec.MaxID, ClientID: "abcdefghijklmnopqrstuvwxyz_0123456-A",
	}
	narrowOrder := persistence.Order{ID: 1, Account: math.MaxUint32, Side: matching.Buy, Status: persistence.StatusDone}
	wideDeposit := persistence.Deposit{
		ID: codec.MaxID, Account: math.MaxUint32, Currency: math.MaxUint16, Amount: money.MaxAmount, TimeUs: math.MaxInt64, Reference: "a\x00 reference\n",
	}
	narrowDeposit := persistence.Deposit{ID: 1, Account: math.MaxUint32}
	w.apply(1, &persistence.Writes{
		Trades:   []persistence.Trade{narrow, widest},
		Orders:   []persistence.Order{narrowOrder, wideOrder},
		Deposits: []persistence.Deposit{narrowDeposit, wideDeposit},
	})
	w.wantTrades(persistence.TradeQuery{}, []persistence.Trade{widest, narrow})
	w.wantTrades(persistence.TradeQuery{Account: math.MaxUint32}, []persistence.Trade{widest})
	w.wantTrades(persistence.TradeQuery{Account: math.MaxUint32, Pair: math.MaxUint16}, []persistence.Trade{widest})
	w.wantTrades(persistence.TradeQuery{Pair: math.MaxUint16, Before: codec.MaxID}, nil)
	w.wantOrders(persistence.OrderQuery{Account: math.MaxUint32}, []persistence.Order{wideOrder, narrowOrder})
	w.wantOrders(persistence.OrderQuery{Account: math.MaxUint32, ClientID: wideOrder.ClientID}, []persistence.Order{wideOrder})
	w.wantDeposits(persistence.DepositQuery{Account: math.MaxUint32}, []persistence.Deposit{wideDeposit, narrowDeposit})
}

func (w *world) oneOrder() {
	w.open(persistence.Retention{})
	a, b, c := order(10, 1, 1), order(11, 2, 1), order(12, 1, 1)
	w.apply(1, &persistence.Writes{Orders: []persistence.Order{c, b}})
	w.apply(1, &persistence.Writes{Orders: []persistence.Order{a}}) // older, closed later
	for _, want := range []persistence.Order{a, b, c} {
		got, err := w.s.Order(w.ctx, want.Account, want.ID)
		w.must(err)
		if got != want {
			w.Fatalf("order is %+v, want %+v", got, want)
		}
	}
	for _, id := range []uint64{0, 9, 11, 13, math.MaxUint64} {
		_, err := w.s.Order(w.ctx, 1, id)
		w.is(err, persistence.ErrNotFound)
	}
	w.wantOrders(persistence.OrderQuery{Account: 1}, []persistence.Order{c, a})
}

func (w *world) retention() {
	const limit = 10
	w.open(persistence.Retention{Trades: limit, Orders: limit})
	var trades []persistence.Trade
	var orders []persistence.Order
	for id := uint64(1); id <= limit; id++ {
		trades = append(trades, trade(id, 1, 1, 2))
		orders = append(orders, order(id, 1, 1))
		w.apply(1, &persistence.Writes{Trades: trades[id-1:], Orders: orders[id-1:]})
	}
	down := func(from int) []persistence.Trade {
		out := slices.Clone(trades[from:])
		slices.Reverse(out)
		return out
	}
	w.wantTrades(persistence.TradeQuery{Pair: 1}, down(0))
	if got := w.orders(persistence.OrderQuery{Account: 1}); len(got) != limit {
		w.Fatalf("%d orders at the limit", len(got))
	}
	// Rows that are there already are not new ones.
	w.apply(1, &persistence.Writes{Trades: trades[limit/2:], Orders: orders[limit/2:]})
	w.wantTrades(persistence.TradeQuery{Pair: 1}, down(0))
	w.wantTrades(persistence.TradeQuery{Account: 2, Pair: 1}, down(0))
	if got := w.orders(persistence.OrderQuery{Account: 1}); len(got) != limit {
		w.Fatalf("%d orders after some were written again", len(got))
	}
	// One above, in another pair and of another account on one side.
	trades = append(trades, trade(limit+1, 2, 1, 3))
	orders = append(orders, order(limit+1, 1, 2))
	w.apply(1, &persistence.Writes{Trades: trades[limit:], Orders: orders[limit:]})
	w.wantTrades(persistence.TradeQuery{}, down(1))
	w.wantTrades(persistence.TradeQuery{Account: 1}, down(1))
	w.wantTrades(persistence.TradeQuery{Account: 1, Pair: 1}, down(1)[1:])
	w.wantTrades(persistence.TradeQuery{Pair: 1}, down(0)[1:]) // its own list is not above the limit
	w.wantTrades(persistence.TradeQuery{Pair: 1, Ascending: true}, trades[:limit])
	w.wantTrades(persistence.TradeQuery{Account: 2}, down(0)[1:])
	w.wantTrades(persistence.TradeQuery{Account: 3}, trades[limit:])
	_, err := w.s.Order(w.ctx, 1, 1)
	w.is(err, persistence.ErrNotFound)
	if got := w.orders(persistence.OrderQuery{Account: 1, Pair: 1}); len(got) != limit-1 || got[0].ID != limit || got[limit-2].ID != 2 {
		w.Fatalf("orders are %s", ids(got, orderID))
	}
	// An order that closes after ten newer ones have is the oldest beyond the limit.
	late := order(1, 1, 3)
	w.apply(1, &persistence.Writes{Orders: []persistence.Order{late}})
	_, err = w.s.Order(w.ctx, 1, 1)
	w.is(err, persistence.ErrNotFound)
	// One apply of more than the limit.
	var many []persistence.Trade
	for id := uint64(100); id < 100+3*limit; id++ {
		many = append(many, trade(id, 1, 1, 2))
	}
	w.apply(1, &persistence.Writes{Trades: many})
	trades = many
	w.wantTrades(persistence.TradeQuery{}, down(2*limit))
	w.wantTrades(persistence.TradeQuery{Pair: 1}, down(2*limit))
	w.wantTrades(persistence.TradeQuery{Account: 2, Pair: 1, Ascending: true}, trades[2*limit:])
	// Retention that is turned down later takes effect with the next row of a list.
	w.again(persistence.Retention{Trades: 3})
	trades = append(trades, trade(200, 1, 1, 2))
	w.apply(1, &persistence.Writes{Trades: trades[len(trades)-1:]})
	w.wantTrades(persistence.TradeQuery{Pair: 1}, down(len(trades)-3))
	w.wantTrades(persistence.TradeQuery{Pair: 1, Ascending: true, Offset: 1}, trades[len(trades)-2:])
}

func (w *world) swapped() {
	w.open(persistence.Retention{})
	f := func(writes ...persistence.Trade) { w.apply(1, &persistence.Writes{Trades: writes}) }
	f(trade(3, 2, 1, 2), trade(1, 1, 1, 2))
	f(trade(2, 1, 1, 2))
	f(trade(9, 1, 1, 2), trade(7, 2, 1, 3))
	f(trade(5, 3, 1, 2), trade(8, 2, 2, 1), trade(10, 2, 2, 2))
	f(trade(4, 4, 4, 1), trade(6, 4, 1, 4))
	all := []persistence.Trade{
		trade(10, 2, 2, 2), trade(9, 1, 1, 2), trade(8, 2, 2, 1), trade(7, 2, 1, 3), trade(6, 4, 1, 4), trade(5, 3, 1, 2),
		trade(4, 4, 4, 1), trade(3, 2, 1, 2), trade(2, 1, 1, 2), trade(1, 1, 1, 2),
	}
	w.wantTrades(persistence.TradeQuery{}, all)
	w.wantTrades(persistence.TradeQuery{Account: 1}, all[1:])
	w.wantTrades(persistence.TradeQuery{Account: 2, MySide: matching.Buy, TakerSide: matching.Buy}, []persistence.Trade{all[0], all[2]})
	// A row that is written again, as after a crash in the midst of an apply, is there once.
	f(all[4], all[5], trade(11, 1, 5, 6))
	w.wantTrades(persistence.TradeQuery{}, append([]persistence.Trade{trade(11, 1, 5, 6)}, all...))
	deposits := []persistence.Deposit{{ID: 5, Account: 1, Reference: "e"}, {ID: 2, Account: 1, Reference: "b"}}
	w.apply(1, &persistence.Writes{Deposits: deposits[:1]})
	w.apply(1, &persistence.Writes{Deposits: deposits[1:]})
	w.wantDeposits(persistence.DepositQuery{Account: 1}, deposits)
}

func (w *world) largeApply() {
	w.open(persistence.Retention{})
	r := newRand(w.T, 5)
	m := &model{}
	var writes persistence.Writes
	for id := uint64(1); id <= 5000; id++ {
		writes.Trades = append(writes.Trades, randomTrade(r, id, uint16(1+id%pairs)))
		writes.Orders = append(writes.Orders, randomOrder(r, id, 1))
		writes.Nonces = append(writes.Nonces, persistence.Nonce{Key: fmt.Sprint(id % 100), Nonce: id})
	}
	for a := range uint32(2000) {
		writes.Wallets = append(writes.Wallets, persistence.Wallet{Account: a, Name: fmt.Sprintf("account-%d", a), Seq: 1,
			Holdings: []persistence.Holding{{Currency: "BTC", Balance: money.Amount(a).Balance()}, {Currency: "USD", Reserve: money.Amount(a).Balance()}}})
	}
	w.must(w.s.Apply(w.ctx, w.tok, 0, 1, &writes))
	w.must(w.s.Apply(w.ctx, w.tok, 0, 1, &writes))
	m.add(&writes)
	w.wantTrades(persistence.TradeQuery{}, m.tradesOf(persistence.TradeQuery{}))
	for a := uint32(1); a <= accounts; a++ {
		w.wantTrades(persistence.TradeQuery{Account: a}, m.tradesOf(persistence.TradeQuery{Account: a}))
		w.wantOrders(persistence.OrderQuery{Account: a}, m.ordersOf(persistence.OrderQuery{Account: a}))
	}
	w.wantWallet(writes.Wallets[1999])
	w.wantWatermark(1)
}

func (w *world) longOffset() {
	w.open(persistence.Retention{Trades: 9_000})
	m := &model{keep: persistence.Retention{Trades: 9_000}}
	r := newRand(w.T, 6)
	var id uint64
	for range 4 {
		var writes persistence.Writes
		for range 3000 {
			id += 1 + r.Uint64N(2)*r.Uint64N(3)
			writes.Trades = append(writes.Trades, randomTrade(r, id, uint16(1+r.IntN(100)/95)))
		}
		w.apply(1, &writes)
		m.add(&writes)
	}
	for range 60 {
		q := persistence.TradeQuery{Offset: r.IntN(12_000), Ascending: r.IntN(2) == 0, Pair: uint16(r.IntN(3)), TakerSide: matching.Side(r.IntN(3))}
		if r.IntN(3) == 0 {
			q.Before = r.Uint64N(id + 3000)
		}
		w.wantTrades(q, m.tradesOf(q))
	}
	for _, before := range []uint64{999, 1000, 1001, 5000, 7000, id / 1000 * 1000, id, id + 1} {
		for _, ascending := range []bool{false, true} {
			q := persistence.TradeQuery{Offset: 2500, Before: before, Ascending: ascending}
			w.wantTrades(q, m.tradesOf(q))
		}
	}
}

// stable reads while rows are written: exact order, and everything that was there at the start.
func (w *world) stable() {
	w.open(persistence.Retention{})
	r := newRand(w.T, 7)
	m := &model{}
	w.fill(r, m, 10, 400)
	from, err := w.s.Watermark(w.ctx)
	w.must(err)
	id := m.orders[len(m.orders)-1].ID + 100
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		var late []persistence.Trade
		for seq := from; ; seq++ {
			select {
			case <-stop:
				return
			default:
			}
			var writes persistence.Writes
			writes, late = flush(r, &id, seq+1, 100, late)
			if err := w.s.Apply(w.ctx, w.tok, seq, seq+1, &writes); err != nil {
				w.Error(err)
				return
			}
		}
	})
	defer wg.Wait()
	defer close(stop)
	for i := range 20 {
		q := persistence.TradeQuery{Account: uint32(i % 3), Pair: uint16(i % 2), Ascending: i%4 < 2}
		before := w.trades(q)
		during := w.trades(q)
		if !slices.IsSortedFunc(during, func(a, b persistence.Trade) int {
			if (a.ID < b.ID) == q.Ascending {
				return -1
			}
			return 1
		}) {
			w.Fatalf("%+v: the list is not in order", q)
		}
		missing(w, before, during, tradeID)
		orders := persistence.OrderQuery{Account: uint32(1 + i%accounts), Side: matching.Side(i % 3)}
		beforeOrders := w.orders(orders)
		missing(w, beforeOrders, w.orders(orders), orderID)
	}
}

// missing fails if a row of before is not in during, or one of during is there twice.
func missing[T any](w *world, before, during []T, id func(T) uint64) {
	w.Helper()
	have := map[uint64]bool{}
	for _, r := range during {
		if have[id(r)] {
			w.Fatalf("row %d comes twice", id(r))
		}
		have[id(r)] = true
	}
	for _, r := range before {
		if !have[id(r)] {
			w.Fatalf("row %d is left out", id(r))
		}
	}
}

// concurrent uses everything at once; the race detector and the final state are the judges.
func (w *world) concurrent() {
	w.open(persistence.Retention{Trades: 500, Orders: 300})
	const rounds = 60
	var wg sync.WaitGroup
	check := func(err error) {
		if err != nil {
			w.Error(err)
		}
	}
	wg.Go(func() { // the journal's writer
		for i := range uint64(rounds) {
			check(w.s.Append(w.ctx, w.tok, i, i+1, []byte{byte(i)}))
		}
	})
	wg.Go(func() { // the projector
		r := rand.New(rand.NewPCG(8, 8))
		var id uint64
		var late []persistence.Trade
		for i := range uint64(rounds) {
			var writes persistence.Writes
			writes, late = flush(r, &id, i+1, 50, late)
			check(w.s.Apply(w.ctx, w.tok, i, i+1, &writes))
			if i%20 == 10 {
				check(w.s.SaveSnapshot(w.ctx, w.tok, i, readerOf(300_000)))
			}
		}
	})
	for range 2 {
		wg.Go(func() {
			for range rounds / 3 {
				check(w.s.Check(w.ctx, w.tok))
				_, err := w.s.Watermark(w.ctx)
				check(err)
				check(w.s.Read(w.ctx, 0, func(_, _ uint64, _ []byte) error { return nil }))
				check(w.s.Trades(w.ctx, persistence.TradeQuery{Account: 1, Pair: 1}, func(*persistence.Trade) bool { return true }))
				check(w.s.Trades(w.ctx, persistence.TradeQuery{Ascending: true}, func(*persistence.Trade) bool { return true }))
				check(w.s.Orders(w.ctx, persistence.OrderQuery{Account: 1, ClientID: "client-1"}, func(*persistence.Order) bool { return true }))
				check(w.s.Deposits(w.ctx, persistence.DepositQuery{Account: 1}, func(*persistence.Deposit) bool { return true }))
				check(w.s.Nonces(w.ctx, func(string, uint64) {}))
			}
		})
	}
	wg.Wait()
	w.wantWatermark(rounds)
	all, err := w.read(0)
	w.must(err)
	if len(all) != rounds {
		w.Fatalf("%d batches, want %d", len(all), rounds)
	}
	if got := w.trades(persistence.TradeQuery{}); len(got) != 500 {
		w.Fatalf("%d trades are kept, want 500", len(got))
	}
}

func (w *world) reopen() {
	w.open(persistence.Retention{})
	r := newRand(w.T, 9)
	m := &model{}
	w.append(12, []byte("twelve records"))
	w.fill(r, m, 6, 100)
	w.apply(0, &persistence.Writes{Nonces: []persistence.Nonce{{Key: "key", Nonce: 5}}})
	w.save(6, []byte("the state at 6"))
	epoch := w.tok.Epoch()
	for range 3 {
		w.again(persistence.Retention{})
		epoch++
		if w.seq != 12 || w.tok.Epoch() != epoch {
			w.Fatalf("sequence %d, epoch %d, want 12 and %d", w.seq, w.tok.Epoch(), epoch)
		}
		w.wantWatermark(6)
		w.wantNonces(map[string]uint64{"key": 5})
		w.wantSnapshot(0, 6, []byte("the state at 6"))
		w.wantTrades(persistence.TradeQuery{}, m.tradesOf(persistence.TradeQuery{}))
		w.wantOrders(persistence.OrderQuery{Account: 2}, m.ordersOf(persistence.OrderQuery{Account: 2}))
		w.wantDeposits(persistence.DepositQuery{Account: 3}, m.depositsOf(persistence.DepositQuery{Account: 3}))
		all, err := w.read(0)
		w.must(err)
		if !slices.Equal(all, []batch{{0, 12, "twelve records"}}) {
			w.Fatalf("the journal is %v", all)
		}
	}
}
