package lineartest

import (
	"cmp"
	"slices"
)

// A state is the sequential exchange's. A step makes a new one and leaves the old one as it is.
type state struct {
	orders      []order // as they were accepted, which is their priority in time
	withdrawals []withdrawal
	wallets     [Accounts]wallet
	rank        int      // of the newest id that was told, of orders and cancels
	lastTrade   uint64   // the newest id of a trade that was told
	updates     uint64   // changes of the book
	credits     []credit // what made more money available, by operation
}

type order struct {
	number, account        int
	buy                    bool
	status                 Status
	price, amount, remains int64
	id                     uint64 // 0: nobody was told
}

type withdrawal struct {
	number, account int
	quote           bool
	amount          int64
	status          uint8
}

// Statuses of a withdrawal.
const (
	isNew uint8 = iota
	isConfirmed
	isClosed
)

type wallet struct{ base, quote Funds }

type credit struct {
	operation, account int
	quote              bool
	amount             int64
}

func (s *state) clone() *state {
	c := *s
	c.orders, c.withdrawals, c.credits = slices.Clone(s.orders), slices.Clone(s.withdrawals), slices.Clone(s.credits)
	return &c
}

func (s *state) equal(t *state) bool {
	return s.rank == t.rank && s.lastTrade == t.lastTrade && s.updates == t.updates && s.wallets == t.wallets &&
		slices.Equal(s.orders, t.orders) && slices.Equal(s.withdrawals, t.withdrawals) && slices.Equal(s.credits, t.credits)
}

func (s *state) funds(account int, quote bool) *Funds {
	if quote {
		return &s.wallets[account].quote
	}
	return &s.wallets[account].base
}

func (s *state) order(number int) *order {
	for i := range s.orders {
		if s.orders[i].number == number {
			return &s.orders[i]
		}
	}
	return nil
}

// credit notes that an operation made money available. Which order the operations took does not matter.
func (s *state) credit(o *Operation, account int, quote bool, amount int64) {
	if amount == 0 {
		return
	}
	at, _ := slices.BinarySearchFunc(s.credits, o.number, func(c credit, n int) int { return cmp.Compare(c.operation, n+1) })
	s.credits = slices.Insert(s.credits, at, credit{o.number, account, quote, amount})
}

// reserve sets money aside; false if there is not enough.
func (s *state) reserve(account int, quote bool, amount int64) bool {
	f := s.funds(account, quote)
	if f.Balance-f.Reserve < amount {
		return false
	}
	f.Reserve += amount
	return true
}

// mayRefuse reports whether there is too little, or was without what came in meanwhile.
func (s *state) mayRefuse(o *Operation, account int, quote bool, need int64) bool {
	f := s.funds(account, quote)
	available := f.Balance - f.Reserve
	for _, c := range s.credits {
		if _, beside := o.overlap[c.operation]; beside && c.account == account && c.quote == quote {
			available -= c.amount
		}
	}
	return available < need
}

// step does one operation on s, which is the caller's to change, and reports whether the result is what one exchange would say.
func (s *state) step(o *Operation, r *Result) bool {
	switch o.Kind {
	case Place:
		return s.place(o, r)
	case Cancel:
		return s.cancel(o, r)
	case ReadOrder:
		return s.readOrder(o, r)
	case ReadOpen:
		return s.readOpen(o, r)
	case ReadBook:
		return r.UpdateID == s.updates && slices.Equal(r.Levels[0], s.levels(true)) && slices.Equal(r.Levels[1], s.levels(false))
	case ReadWallet:
		return s.wallets[o.Account] == wallet{r.Base, r.Quote}
	case Deposit:
		s.funds(o.Account, o.Quote).Balance += o.Amount
		s.credit(o, o.Account, o.Quote, o.Amount)
		return r.Outcome == Done || r.Outcome == Unknown
	case Withdraw:
		return s.withdraw(o, r)
	default:
		return s.moveWithdrawal(o, r)
	}
}

func (s *state) place(o *Operation, r *Result) bool {
	need := o.Amount
	if o.Buy {
		need *= o.Price
	}
	if r.Outcome == RefusedFunds {
		return s.mayRefuse(o, o.Account, o.Buy, need)
	}
	if !s.reserve(o.Account, o.Buy, need) {
		return r.Outcome == Unknown && r.ID == 0 // it was refused
	}
	taker := order{number: o.Order, account: o.Account, buy: o.Buy, status: Open, price: o.Price, amount: o.Amount, remains: o.Amount, id: r.ID}
	trades := s.match(o, &taker)
	s.orders = append(s.orders, taker)
	s.updates++
	if r.Outcome == Unknown {
		return s.isNext(o)
	}
	return r.Outcome == Done && r.Remains == taker.remains && s.isNext(o) && slices.EqualFunc(trades, r.Trades, func(want, told Trade) bool {
		return want.Price == told.Price && want.Amount == told.Amount && (told.Maker == 0 || told.Maker == want.Maker) && s.isNextTrade(told.ID)
	})
}

// isNext reports whether the operation's id, if one was told, comes after those of all before it, and leaves out none.
func (s *state) isNext(o *Operation) bool {
	if o.rank == 0 {
		return true
	}
	s.rank++
	return s.rank == o.rank
}

func (s *state) isNextTrade(id uint64) bool {
	if id == 0 {
		return true
	}
	ok := id > s.lastTrade
	s.lastTrade = id
	return ok
}

// match fills the taker from the best resting orders, the oldest of a price first, at their prices.
func (s *state) match(o *Operation, taker *order) (trades []Trade) {
	for taker.remains > 0 {
		var best *order
		for i := range s.orders {
			m := &s.orders[i]
			if m.status != Open || m.buy == taker.buy || taker.buy && m.price > taker.price || !taker.buy && m.price < taker.price {
				continue
			}
			if best == nil || taker.buy && m.price < best.price || !taker.buy && m.price > best.price {
				best = m
			}
		}
		if best == nil {
			return trades
		}
		amount := min(best.remains, taker.remains)
		buyer, seller := taker, best
		if best.buy {
			buyer, seller = best, taker
		}
		paid, kept := best.price*amount, (buyer.price-best.price)*amount
		s.pay(o, buyer.account, seller.account, amount, paid, kept)
		for _, side := range []*order{best, taker} {
			if side.remains -= amount; side.remains == 0 {
				side.status = Filled
			}
		}
		trades = append(trades, Trade{Maker: best.number, Price: best.price, Amount: amount})
	}
	return trades
}

// pay settles one trade. kept is what the buyer had reserved and need not pay.
func (s *state) pay(o *Operation, buyer, seller int, amount, paid, kept int64) {
	f := s.funds(buyer, true)
	f.Balance -= paid
	f.Reserve -= paid + kept
	s.funds(buyer, false).Balance += amount
	f = s.funds(seller, false)
	f.Balance -= amount
	f.Reserve -= amount
	s.funds(seller, true).Balance += paid
	s.credit(o, buyer, true, kept)
	s.credit(o, buyer, false, amount)
	s.credit(o, seller, true, paid)
}

func (s *state) cancel(o *Operation, r *Result) bool {
	c := s.order(o.Order)
	open := c != nil && c.status == Open
	switch {
	case r.Outcome == RefusedState || !open:
		return !open && r.Outcome != Done
	case r.Outcome == Done && (r.Remains >= 0 && r.Remains != c.remains || !s.isNext(o)):
		return false
	}
	released := c.remains
	if c.buy {
		released *= c.price
	}
	s.funds(c.account, c.buy).Reserve -= released
	s.credit(o, c.account, c.buy, released)
	c.status = Cancelled
	s.updates++
	return true
}

func (c *order) is(row OrderRow) bool {
	return row.Order == c.number && row.Status == c.status && row.Remains == c.remains && (c.id == 0 || row.ID == 0 || row.ID == c.id)
}

func (s *state) readOrder(o *Operation, r *Result) bool {
	c := s.order(o.Order)
	if c == nil {
		return len(r.Orders) == 0
	}
	return len(r.Orders) == 1 && c.is(r.Orders[0])
}

func (s *state) readOpen(o *Operation, r *Result) bool {
	left := len(r.Orders)
	for i := range s.orders {
		c := &s.orders[i]
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

func (s *state) levels(buy bool) (levels []Level) {
	for _, o := range s.orders {
		if o.status != Open || o.buy != buy {
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

func (s *state) withdraw(o *Operation, r *Result) bool {
	if r.Outcome == RefusedFunds {
		return s.mayRefuse(o, o.Account, o.Quote, o.Amount)
	}
	if !s.reserve(o.Account, o.Quote, o.Amount) {
		return r.Outcome == Unknown
	}
	at, _ := slices.BinarySearchFunc(s.withdrawals, o.Withdrawal, func(w withdrawal, n int) int { return cmp.Compare(w.number, n) })
	s.withdrawals = slices.Insert(s.withdrawals, at, withdrawal{o.Withdrawal, o.Account, o.Quote, o.Amount, isNew})
	return r.Outcome == Done || r.Outcome == Unknown
}

func (s *state) moveWithdrawal(o *Operation, r *Result) bool {
	i := slices.IndexFunc(s.withdrawals, func(w withdrawal) bool { return w.number == o.Withdrawal })
	possible := false
	if i >= 0 {
		status := s.withdrawals[i].status
		possible = status == isConfirmed && o.Kind != ConfirmWithdraw || status == isNew && o.Kind != ApproveWithdraw
	}
	if r.Outcome == RefusedState || !possible {
		return !possible && r.Outcome != Done
	}
	w := &s.withdrawals[i]
	if o.Kind == ConfirmWithdraw {
		w.status = isConfirmed
		return true
	}
	w.status = isClosed
	f := s.funds(w.account, w.quote)
	f.Reserve -= w.amount
	if o.Kind == ApproveWithdraw {
		f.Balance -= w.amount
	} else {
		s.credit(o, w.account, w.quote, w.amount)
	}
	return true
}
