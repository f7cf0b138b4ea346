package ledger

import (
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// A Settlement holds all effects of one record on one account.
type Settlement struct {
	Account uint32
	changes [2]Change
	n       int
	// Closed are the account's resting orders that the record closed.
	Closed []uint64
}

// Changes returns the changed holdings, at most one for each currency.
func (s *Settlement) Changes() []Change { return s.changes[:s.n] }

// CopyTo makes dst an equal settlement that shares no memory with s; dst's memory is reused.
func (s *Settlement) CopyTo(dst *Settlement) {
	closed := append(dst.Closed[:0], s.Closed...)
	*dst = *s
	dst.Closed = closed
}

func (s *Settlement) in(currency uint16) *Change {
	for i := range s.n {
		if s.changes[i].Currency == currency {
			return &s.changes[i]
		}
	}
	if s.n == len(s.changes) {
		panic("BUG: a record changes more than two currencies of an account")
	}
	s.changes[s.n] = Change{Currency: currency}
	s.n++
	return &s.changes[s.n-1]
}

// Need returns the money that an order reserves, and its currency.
func Need(side trading.Side, price money.Price, amount money.Amount, base, quote uint16) (uint16,
	money.Balance) {
	if side == trading.Buy {
		return quote, price.Times(amount).Balance()
	}
	return base, amount.Balance()
}

// A Settler derives settlements from records. It reuses its memory; one goroutine uses it at a
// time.
type Settler struct {
	list  []Settlement
	index map[uint32]int // account -> index in list, only when the list is long
}

// longList is the length from which a map lookup beats a linear search.
const longList = 32

// Settle returns the settlements of a record: the acting account's first, then the others in the
// order of the trades. base and quote are the currencies of the record's pair, 0 if it has none.
// The result is valid until the next call.
func (s *Settler) Settle(r *event.Record, base, quote uint16) []Settlement {
	s.list = s.list[:0]
	clear(s.index)
	switch r.Kind {
	case event.KindDeposit:
		c := s.of(r.Deposit.Account).in(r.Deposit.Currency)
		c.Credit = r.Deposit.Amount.Balance()
	case event.KindOrder:
		s.order(&r.Order, base, quote)
	case event.KindCancel, event.KindSwitchCancel:
		k := &r.Cancel
		s.cancel(k.Account, k.Order, k.Side, k.Price, k.Remaining, base, quote)
	case event.KindRefusal:
		s.of(r.Refusal.Account)
	case event.KindWithdrawal:
		w := &r.Withdrawal
		s.of(w.Account).in(w.Currency).Lock = w.Amount.Balance()
	case event.KindWithdrawalStatus:
		s.withdrawalStatus(&r.WithdrawalStatus)
	case event.KindAdjusted:
		a := &r.Adjusted
		s.of(a.Account).in(a.Currency).Debit = a.Amount.Balance()
	case event.KindCodeRefused:
		s.of(r.CodeRefused.Account)
	case event.KindFreeze:
		s.of(r.Freeze.Account)
	case event.KindSwitch:
		s.of(r.Switch.Account)
	case event.KindSettings:
		s.of(r.Settings.Account)
	default:
		s.special(r, base, quote)
	}
	return s.list
}

// cancel settles an order that leaves the book, or its wait, with that amount open.
func (s *Settler) cancel(account uint32, order uint64, side trading.Side, price money.Price,
	open money.Amount, base, quote uint16) {
	t := s.of(account)
	t.Closed = append(t.Closed, order)
	currency, held := Need(side, price, open, base, quote)
	c := t.in(currency)
	c.Unlock = c.Unlock.Add(held)
}

func (s *Settler) withdrawalStatus(m *event.WithdrawalStatus) {
	t := s.of(m.Account)
	if m.To == event.WithdrawalVerified {
		return
	}
	c := t.in(m.Currency)
	c.Unlock = m.Amount.Balance()
	if m.To == event.WithdrawalApproved {
		c.Debit = m.Amount.Balance()
	}
}

func (s *Settler) order(o *event.Order, base, quote uint16) {
	s.of(o.Account)
	if o.Rests() {
		currency, held := Need(o.Side, o.Price, o.Remaining, base, quote)
		c := s.of(o.Account).in(currency)
		c.Lock = c.Lock.Add(held)
	}
	for i := range o.Trades {
		t := &o.Trades[i]
		buyer, seller, buyerFee, sellerFee := o.Account, t.MakerAccount, t.TakerFee, t.MakerFee
		if o.Side == trading.Sell {
			buyer, seller, buyerFee, sellerFee = seller, buyer, sellerFee, buyerFee
		}
		amount, value := t.Amount.Balance(), t.Price.Times(t.Amount).Balance()
		s.transfer(seller, buyer, base, amount)
		s.transfer(buyer, seller, quote, value)
		// The maker pays exactly its reserve, because trades print at the resting price.
		maker := s.of(t.MakerAccount)
		if o.Side == trading.Buy {
			c := maker.in(base)
			c.Unlock = c.Unlock.Add(amount)
		} else {
			c := maker.in(quote)
			c.Unlock = c.Unlock.Add(value)
		}
		if t.MakerRemaining == 0 {
			maker.Closed = append(maker.Closed, t.Maker)
		}
		if o.FeeAccount != 0 {
			s.transfer(buyer, o.FeeAccount, base, buyerFee)
			s.transfer(seller, o.FeeAccount, quote, sellerFee)
		}
	}
}

// transfer moves money between accounts: the only way in which a trade changes balances.
func (s *Settler) transfer(from, to uint32, currency uint16, b money.Balance) {
	if b.IsZero() {
		return
	}
	c := s.of(from).in(currency)
	c.Debit = c.Debit.Add(b)
	c = s.of(to).in(currency)
	c.Credit = c.Credit.Add(b)
}

// of returns the settlement of an account, creating it if necessary.
func (s *Settler) of(account uint32) *Settlement {
	if len(s.list) < longList {
		for i := range s.list {
			if s.list[i].Account == account {
				return &s.list[i]
			}
		}
	} else {
		if len(s.index) == 0 {
			if s.index == nil {
				s.index = make(map[uint32]int)
			}
			for i := range s.list {
				s.index[s.list[i].Account] = i
			}
		}
		if i, ok := s.index[account]; ok {
			return &s.list[i]
		}
		s.index[account] = len(s.list)
	}
	if len(s.list) < cap(s.list) {
		s.list = s.list[:len(s.list)+1]
	} else {
		s.list = append(s.list, Settlement{})
	}
	t := &s.list[len(s.list)-1]
	*t = Settlement{Account: account, Closed: t.Closed[:0]}
	return t
}
