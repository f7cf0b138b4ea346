package lineartest

import (
	"cmp"
	"math"
	"slices"

	"exchange/core/money"
	"exchange/core/trading"
	"exchange/prove/spec"
)

// order returns the order with a number, or nil.
func (s *market) order(number int) *order {
	if at, there := s.find(number); there {
		return s.orders[at]
	}
	return nil
}

func (s *market) find(number int) (at int, there bool) {
	return slices.BinarySearchFunc(s.orders, number,
		func(o *order, n int) int { return cmp.Compare(o.number, n) })
}

// set replaces the former state of an order.
func (s *market) set(o order) {
	if o.status != Open {
		o.turn = 0
	}
	at, there := s.find(o.number)
	if !there {
		s.orders = slices.Insert(s.orders, at, nil)
	}
	s.orders[at] = &o
	s.last.of[o.account] = true
	s.last.orders = append(s.last.orders, o.number)
}

// place reserves the order's money, matches it, and compares its id, trades and remains with the
// result.
func (s *market) place(p *part) bool {
	o, r := p.o, p.r
	need := o.Amount * Unit
	if o.Buy {
		need *= o.Price
	}
	before := s.order(o.Order)
	switch {
	case r.Outcome == RefusedRepeated:
		return before != nil && (r.ID == 0 || before.id == 0 || r.ID == before.id)
	case before != nil && !p.overlaps[before.by]:
		return false
	case r.Outcome == RefusedFunds:
		return s.mayRefuse(p, o.Account, spends(o.Pair, o.Buy), need)
	case before != nil, r.Outcome != Done && r.Outcome != Unknown,
		!s.reserve(o.Account, spends(o.Pair, o.Buy), need), !s.takeID(p):
		return false
	}
	taker := order{number: o.Order, account: o.Account, pair: o.Pair, buy: o.Buy, status: Open,
		price: o.Price, amount: o.Amount, remains: o.Amount, id: p.id, by: p.number}
	return s.enter(p, &taker)
}

// enter matches an order that is in no book, cancels the rest if it may not rest, and compares its
// trades and remains with the result. The update id counts an order that traded or rests.
func (s *market) enter(p *part, taker *order) bool {
	trades := s.match(p, taker)
	if p.o.Force != Rests && taker.remains > 0 {
		s.release(p, taker)
		taker.status = Cancelled
	}
	if len(trades) > 0 || taker.status == Open {
		s.updates[taker.pair]++
	}
	taker.turn = s.updates[taker.pair]
	s.set(*taker)
	if p.r.Outcome == Unknown {
		return true
	}
	return p.r.Remains == taker.remains &&
		slices.EqualFunc(trades, p.r.Trades, func(want, received Trade) bool {
			return want.Price == received.Price && want.Amount == received.Amount &&
				(received.Maker == 0 || received.Maker == want.Maker) &&
				s.takeTradeID(taker.pair, received.ID)
		})
}

// amend changes the price of an open order, or increases its amount: it enters its book again.
// Otherwise it keeps its priority.
func (s *market) amend(p *part) bool {
	o, r, c := p.o, p.r, s.order(p.o.Order)
	if c == nil {
		return r.Outcome == RefusedState
	}
	is := *c
	is.price, is.amount = cmp.Or(o.Price, c.price), cmp.Or(o.Amount, c.amount)
	is.remains += is.amount - c.amount
	currency, most := spends(c.pair, c.buy), amendNeeds(c, &is)
	open, f := c.status == Open, &s.wallets[c.account][currency]
	switch {
	case r.Outcome == RefusedFunds: // its wallet may not have received the fill yet
		return s.mayRefuse(p, o.Account, currency, most)
	case r.Outcome == RefusedState || !open:
		s.noteCredit(p, c.account, currency, most) // the wallet may have reserved it until then
		return r.Outcome != Done && !open
	case is.amount < c.amount, r.Outcome != Done && r.Outcome != Unknown, !s.takeID(p):
		return false
	case is.price == c.price && is.amount == c.amount:
		s.noteCredit(p, c.account, currency, most)
		s.last.of[c.account] = true
		return r.Outcome == Unknown || len(r.Trades) == 0 && r.Remains == c.remains
	}
	more := is.holds(is.remains) - c.holds(c.remains)
	if f.Balance-f.Reserve < more {
		return false
	}
	f.Reserve += more
	s.noteCredit(p, c.account, currency, most-more)
	return s.enter(p, &is)
}

// holds returns the money that an order reserves for an amount of it.
func (c *order) holds(amount int64) int64 {
	if c.buy {
		amount *= c.price
	}
	return amount * Unit
}

// amendNeeds returns the money that a wallet reserves for a change: the most that it can need
// beside the order's reserve, whatever of the order is filled meanwhile.
func amendNeeds(was, is *order) int64 {
	most := max(0, is.holds(is.amount)-was.holds(was.amount))
	return max(most, is.holds(is.amount-was.amount))
}

// takeID reports whether the operation's id, if a client received it, is the next of its pair.
func (s *market) takeID(p *part) bool {
	if p.rank == 0 {
		return true
	}
	s.rank[p.o.Pair]++
	return s.rank[p.o.Pair] == p.rank
}

// takeTradeID reports whether a trade's id is above those received before it.
func (s *market) takeTradeID(pair int, id uint64) bool {
	if id == 0 {
		return true
	}
	ok := id > s.lastTrade[pair]
	s.lastTrade[pair] = id
	return ok
}

// book returns the open orders of a pair by their priority.
func (s *market) book(pair int) *spec.Book {
	var open []*order
	for _, o := range s.orders {
		if o.status == Open && o.pair == pair {
			open = append(open, o)
		}
	}
	slices.SortFunc(open, func(a, b *order) int { return cmp.Compare(a.turn, b.turn) })
	b := new(spec.Book)
	for _, o := range open {
		b.Rest(&spec.Order{ID: uint64(o.number), Side: sideOf(o.buy), Price: money.Price(o.price),
			Remaining: money.Amount(o.remains)})
	}
	return b
}

func sideOf(buy bool) trading.Side {
	if buy {
		return trading.Buy
	}
	return trading.Sell
}

// match fills the taker from the resting orders, each at the resting order's price; an
// all-or-nothing taker only if they fill it.
func (s *market) match(p *part, taker *order) (trades []Trade) {
	took := s.book(taker.pair).Match(spec.Taker{Side: sideOf(taker.buy),
		Limit: money.Price(taker.price), Amount: money.Amount(taker.remains), Most: math.MaxInt})
	if p.o.Force == FOK && took.End != spec.Filled {
		return nil
	}
	for _, t := range took.Trades {
		maker, amount := *s.order(int(t.Maker)), int64(t.Amount)
		s.settle(p, &maker, taker, amount)
		s.last.trades = append(s.last.trades, trade{taker: taker.account, maker: maker.account,
			takerOrder: taker.number, makerOrder: maker.number, price: maker.price, amount: amount})
		for _, side := range []*order{&maker, taker} {
			if side.remains -= amount; side.remains == 0 {
				side.status = Filled
			}
		}
		s.set(maker)
		trades = append(trades, Trade{Maker: maker.number, Price: maker.price, Amount: amount})
	}
	return trades
}

// settle moves the money of one trade, at the maker's price. A buyer regains its reserve above that
// price. Each side pays its fee on its receipts.
func (s *market) settle(p *part, maker, taker *order, amount int64) {
	for _, o := range []*order{maker, taker} {
		gives, gets := amount*Unit, maker.price*amount
		held, rate := gives, s.fees[o.pair][o.account].Maker
		if o.buy {
			gives, gets, held = maker.price*amount*Unit, amount, o.price*amount*Unit
		}
		if o == taker {
			rate = s.fees[o.pair][o.account].Taker
		}
		paid, received := spends(o.pair, o.buy), spends(o.pair, !o.buy)
		f := &s.wallets[o.account][paid]
		f.Balance -= gives
		f.Reserve -= held
		s.wallets[o.account][received].Balance += gets * (Unit - rate)
		s.wallets[FeeAccount][received].Balance += gets * rate
		s.last.of[FeeAccount] = s.last.of[FeeAccount] || gets*rate != 0
		s.noteCredit(p, o.account, paid, held-gives)
		s.noteCredit(p, o.account, received, gets*(Unit-rate))
	}
}

func (s *market) cancel(p *part) bool {
	r, c := p.r, s.order(p.o.Order)
	open := c != nil && c.status == Open
	switch {
	case r.Outcome == RefusedState:
		return !open
	case !open, r.Outcome == Done && (r.Remains >= 0 && r.Remains != c.remains || !s.takeID(p)):
		return false
	}
	s.close(p, *c)
	return r.Outcome == Done || r.Outcome == Unknown
}

// cancelAll does one part of a cancel of all orders: one order's cancel, or the part that requires
// all orders in its scope to be closed (see ofCancelAll).
func (s *market) cancelAll(p *part) bool {
	if p.r.Outcome == RefusedState {
		return !slices.ContainsFunc(s.orders, func(c *order) bool {
			return c.status == Open && c.account == p.o.Account && p.o.concerns(c.pair)
		})
	}
	if p.order == 0 {
		return !slices.ContainsFunc(p.closed, func(number int) bool {
			c := s.order(number)
			return c != nil && c.status == Open
		})
	}
	c := s.order(p.order)
	if c == nil || c.status != Open || c.account != p.o.Account || !p.o.concerns(c.pair) {
		return false
	}
	s.close(p, *c)
	return true
}

// close cancels an open order and releases its reserve.
func (s *market) close(p *part, c order) {
	s.release(p, &c)
	c.status = Cancelled
	s.set(c)
	s.updates[c.pair]++
}

// release releases the reserve of an order's remaining amount.
func (s *market) release(p *part, c *order) {
	released, currency := c.holds(c.remains), spends(c.pair, c.buy)
	s.wallets[c.account][currency].Reserve -= released
	s.noteCredit(p, c.account, currency, released)
}

// is reports whether a read showed the order correctly.
func (c *order) is(row OrderRow) bool {
	return row.Order == c.number && row.Status == c.status && row.Remains == c.remains &&
		(c.id == 0 || row.ID == 0 || row.ID == c.id)
}

func (s *market) showsOrder(o *Operation, r *Result) bool {
	c := s.order(o.Order)
	if c == nil {
		return len(r.Orders) == 0
	}
	return len(r.Orders) == 1 && c.is(r.Orders[0])
}

func (s *market) showsOpen(o *Operation, r *Result) bool {
	left := len(r.Orders)
	for _, c := range s.orders {
		if c.account != o.Account || c.status != Open {
			continue
		}
		if !slices.ContainsFunc(r.Orders, c.is) {
			return false
		}
		left--
	}
	return left == 0
}

// levels returns one side of a book, best price first.
func levels(b *spec.Book, side trading.Side) (levels []Level) {
	for _, l := range b.Levels(side, -1) {
		_, amount := l.Amount.Bits()
		levels = append(levels, Level{int64(l.Price), int64(amount)})
	}
	return levels
}
