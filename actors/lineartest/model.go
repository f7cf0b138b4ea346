package lineartest

import (
	"cmp"
	"slices"
)

// A market is the sequential exchange's books and wallets. A step makes a new one and leaves the
// old one as it is, and so are its orders: they are shared by many.
type market struct {
	fees        *[Pairs][Accounts]Rates
	orders      []*order // by number
	withdrawals []withdrawal
	wallets     [Accounts]Wallet
	rank        [Pairs]int    // of the newest id that was told, of orders and cancels
	lastTrade   [Pairs]uint64 // the newest id of a trade that was told
	updates     [Pairs]uint64 // changes of the book
	epoch       int           // of the credits
	credits     []credit      // what made more money available, by operation
}

type order struct {
	number, account, pair  int
	buy                    bool
	status                 Status
	turn                   uint64 // its priority in time; 0 of a closed one
	price, amount, remains int64
	id                     uint64 // 0: nobody was told
}

type withdrawal struct {
	number, account, currency int
	amount                    int64
	status                    uint8
}

// Statuses of a withdrawal.
const (
	isNew uint8 = iota
	isConfirmed
	isClosed
)

type credit struct {
	operation, account, currency int
	amount                       int64
}

func (s *market) clone() *market {
	c := *s
	c.orders, c.withdrawals, c.credits = slices.Clone(s.orders), slices.Clone(s.withdrawals),
		slices.Clone(s.credits)
	return &c
}

func (s *market) equal(t *market) bool {
	return s.rank == t.rank && s.lastTrade == t.lastTrade && s.updates == t.updates &&
		s.wallets == t.wallets &&
		s.epoch == t.epoch && slices.EqualFunc(s.orders, t.orders,
		func(a, b *order) bool { return a == b || *a == *b }) &&
		slices.Equal(s.withdrawals, t.withdrawals) && slices.Equal(s.credits, t.credits)
}

// currencies are what a pair trades, and what for.
func currencies(pair int) (base, quote int) { return 0, pair + 1 }

// pays is the currency that an order needs.
func pays(pair int, buy bool) int {
	base, quote := currencies(pair)
	if buy {
		return quote
	}
	return base
}

func (s *market) order(number int) *order {
	if at, there := s.place(number); there {
		return s.orders[at]
	}
	return nil
}

func (s *market) place(number int) (at int, there bool) {
	return slices.BinarySearchFunc(s.orders, number,
		func(o *order, n int) int { return cmp.Compare(o.number, n) })
}

// set puts an order in place of its former state.
func (s *market) set(o order) {
	if o.status != Open {
		o.turn = 0
	}
	at, there := s.place(o.number)
	if !there {
		s.orders = slices.Insert(s.orders, at, nil)
	}
	s.orders[at] = &o
}

// credit notes that an operation made money available, until the epoch ends. Which order the
// operations took does not matter.
func (s *market) credit(p *part, account, currency int, amount int64) {
	if amount == 0 || !p.besideRefusal {
		return
	}
	at, _ := slices.BinarySearchFunc(s.credits, p.number,
		func(c credit, n int) int { return cmp.Compare(c.operation, n+1) })
	s.credits = slices.Insert(s.credits, at, credit{p.number, account, currency, amount})
}

// reserve sets money aside; false if there is not enough.
func (s *market) reserve(account, currency int, amount int64) bool {
	f := &s.wallets[account][currency]
	if f.Balance-f.Reserve < amount {
		return false
	}
	f.Reserve += amount
	return true
}

// mayRefuse reports whether there is too little, or was without what came in meanwhile.
func (s *market) mayRefuse(p *part, account, currency int, need int64) bool {
	f := s.wallets[account][currency]
	available := f.Balance - f.Reserve
	for _, c := range s.credits {
		if _, beside := p.overlap[c.operation]; beside && c.account == account &&
			c.currency == currency {
			available -= c.amount
		}
	}
	return available < need
}

// after gives the markets that may be there after a part of an operation: none, if it cannot have
// been answered as it was.
func (s *market) after(p *part) []any {
	if p.rank != 0 && p.rank != s.rank[p.o.Pair]+1 {
		return nil // another one is next
	}
	c := s.clone()
	if p.epoch > c.epoch {
		c.epoch, c.credits = p.epoch, nil // all before has been answered
	}
	next := c
	if p.fate == open {
		next = c.clone()
	}
	switch done := next.step(p); {
	case p.fate == open && done:
		return []any{next, c}
	case p.fate == open:
		return []any{c}
	case done:
		return []any{next}
	}
	return nil
}

// step does one part of an operation on s, which is the caller's to change, and reports whether the
// result is what one exchange would say. The part of one without an outcome is done as if it had
// been told to be.
func (s *market) step(p *part) bool {
	o, r := p.o, p.r
	switch o.Kind {
	case Place:
		return s.placed(p)
	case Cancel:
		return s.cancelled(p)
	case CancelAll:
		return s.cancelledAll(p)
	case ReadOrder:
		return s.isOrder(o, r)
	case ReadOpen:
		return s.areOpen(o, r)
	case ReadBook:
		return r.UpdateID == s.updates[o.Pair] &&
			slices.Equal(r.Levels[0], s.levels(o.Pair, true)) &&
			slices.Equal(r.Levels[1], s.levels(o.Pair, false))
	case ReadWallet:
		return s.wallets[o.Account] == r.Funds
	case ReadPending:
		return s.arePending(o, r)
	case Deposit:
		s.wallets[o.Account][o.Currency].Balance += o.Amount * Unit
		s.credit(p, o.Account, o.Currency, o.Amount*Unit)
		return r.Outcome == Done || r.Outcome == Unknown
	case Withdraw:
		return s.withdrawn(p)
	default:
		return s.moved(p)
	}
}

func (s *market) placed(p *part) bool {
	o, r := p.o, p.r
	need := o.Amount * Unit
	if o.Buy {
		need *= o.Price
	}
	before := s.order(o.Order)
	switch {
	case r.Outcome == RefusedRepeated:
		return before != nil && (r.ID == 0 || before.id == 0 || r.ID == before.id)
	case before != nil:
		return false
	case r.Outcome == RefusedFunds:
		return s.mayRefuse(p, o.Account, pays(o.Pair, o.Buy), need)
	case r.Outcome != Done && r.Outcome != Unknown,
		!s.reserve(o.Account, pays(o.Pair, o.Buy), need), !s.isNext(p):
		return false
	}
	s.updates[o.Pair]++
	taker := order{number: o.Order, account: o.Account, pair: o.Pair, buy: o.Buy, status: Open,
		turn:  s.updates[o.Pair],
		price: o.Price, amount: o.Amount, remains: o.Amount, id: p.id}
	trades := s.match(p, &taker)
	s.set(taker)
	if r.Outcome == Unknown {
		return true
	}
	return r.Remains == taker.remains &&
		slices.EqualFunc(trades, r.Trades, func(want, told Trade) bool {
			return want.Price == told.Price && want.Amount == told.Amount &&
				(told.Maker == 0 || told.Maker == want.Maker) &&
				s.isNextTrade(o.Pair, told.ID)
		})
}

// isNext reports whether the operation's id, if one was told, comes after those of all before it,
// and leaves out none.
func (s *market) isNext(p *part) bool {
	if p.rank == 0 {
		return true
	}
	s.rank[p.o.Pair]++
	return s.rank[p.o.Pair] == p.rank
}

func (s *market) isNextTrade(pair int, id uint64) bool {
	if id == 0 {
		return true
	}
	ok := id > s.lastTrade[pair]
	s.lastTrade[pair] = id
	return ok
}

// match fills the taker from the best resting orders, the oldest of a price first, at their prices.
func (s *market) match(p *part, taker *order) (trades []Trade) {
	for taker.remains > 0 {
		var best *order
		for _, m := range s.orders {
			if m.status != Open || m.pair != taker.pair || m.buy == taker.buy ||
				taker.buy && m.price > taker.price || !taker.buy && m.price < taker.price {
				continue
			}
			if best == nil || taker.buy && m.price < best.price ||
				!taker.buy && m.price > best.price ||
				m.price == best.price && m.turn < best.turn {
				best = m
			}
		}
		if best == nil {
			return trades
		}
		maker := *best
		amount := min(maker.remains, taker.remains)
		s.settle(p, &maker, taker, amount)
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

// settle moves the money of one trade, at the maker's price. A buyer has back what it had reserved
// and need not pay. Each side pays its fee of what it receives.
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
		paid, received := pays(o.pair, o.buy), pays(o.pair, !o.buy)
		f := &s.wallets[o.account][paid]
		f.Balance -= gives
		f.Reserve -= held
		s.wallets[o.account][received].Balance += gets * (Unit - rate)
		s.wallets[FeeAccount][received].Balance += gets * rate
		s.credit(p, o.account, paid, held-gives)
		s.credit(p, o.account, received, gets*(Unit-rate))
	}
}

func (s *market) cancelled(p *part) bool {
	r, c := p.r, s.order(p.o.Order)
	open := c != nil && c.status == Open
	switch {
	case r.Outcome == RefusedState:
		return !open
	case !open, r.Outcome == Done && (r.Remains >= 0 && r.Remains != c.remains || !s.isNext(p)):
		return false
	}
	s.close(p, *c)
	return r.Outcome == Done || r.Outcome == Unknown
}

// close cancels an open order.
func (s *market) close(p *part, c order) {
	released := c.remains * Unit
	if c.buy {
		released *= c.price
	}
	currency := pays(c.pair, c.buy)
	s.wallets[c.account][currency].Reserve -= released
	s.credit(p, c.account, currency, released)
	c.status = Cancelled
	s.set(c)
	s.updates[c.pair]++
}

// cancelledAll is one order's cancel among those of all; or that none is left of those that it had
// to cancel.
func (s *market) cancelledAll(p *part) bool {
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

func (c *order) is(row OrderRow) bool {
	return row.Order == c.number && row.Status == c.status && row.Remains == c.remains &&
		(c.id == 0 || row.ID == 0 || row.ID == c.id)
}

func (s *market) isOrder(o *Operation, r *Result) bool {
	c := s.order(o.Order)
	if c == nil {
		return len(r.Orders) == 0
	}
	return len(r.Orders) == 1 && c.is(r.Orders[0])
}

func (s *market) areOpen(o *Operation, r *Result) bool {
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

func (s *market) levels(pair int, buy bool) (levels []Level) {
	for _, o := range s.orders {
		if o.status != Open || o.buy != buy || o.pair != pair {
			continue
		}
		at, found := slices.BinarySearchFunc(levels, o.price, func(l Level, price int64) int {
			if buy {
				return cmp.Compare(price, l.Price)
			}
			return cmp.Compare(l.Price, price)
		})
		if !found {
			levels = slices.Insert(levels, at, Level{Price: o.price})
		}
		levels[at].Amount += o.remains
	}
	return levels
}

func (s *market) withdrawn(p *part) bool {
	o, r := p.o, p.r
	if r.Outcome == RefusedFunds {
		return s.mayRefuse(p, o.Account, o.Currency, o.Amount*Unit)
	}
	if !s.reserve(o.Account, o.Currency, o.Amount*Unit) {
		return false
	}
	at, _ := slices.BinarySearchFunc(s.withdrawals,
		o.Withdrawal, func(w withdrawal, n int) int { return cmp.Compare(w.number, n) })
	s.withdrawals = slices.Insert(s.withdrawals, at,
		withdrawal{o.Withdrawal, o.Account, o.Currency, o.Amount, isNew})
	return r.Outcome == Done || r.Outcome == Unknown
}

func (s *market) arePending(o *Operation, r *Result) bool {
	left := len(r.Pending)
	for _, w := range s.withdrawals {
		if w.account != o.Account || w.status == isClosed {
			continue
		}
		if !slices.Contains(r.Pending, Pending{w.number, w.status == isConfirmed}) {
			return false
		}
		left--
	}
	return left == 0
}

// moved gives a withdrawal its next status.
func (s *market) moved(p *part) bool {
	o, r := p.o, p.r
	i := slices.IndexFunc(s.withdrawals, func(w withdrawal) bool {
		return w.number == o.Withdrawal
	})
	possible := false
	if i >= 0 {
		status := s.withdrawals[i].status
		possible = status == isConfirmed && o.Kind != ConfirmWithdraw ||
			status == isNew && o.Kind != ApproveWithdraw
	}
	if r.Outcome == RefusedState || !possible {
		return !possible && r.Outcome == RefusedState
	}
	w := &s.withdrawals[i]
	if o.Kind == ConfirmWithdraw {
		w.status = isConfirmed
		return true
	}
	w.status = isClosed
	f := &s.wallets[w.account][w.currency]
	f.Reserve -= w.amount * Unit
	if o.Kind == ApproveWithdraw {
		f.Balance -= w.amount * Unit
	} else {
		s.credit(p, w.account, w.currency, w.amount*Unit)
	}
	return true
}
