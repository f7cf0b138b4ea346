package lineartest

import (
	"cmp"
	"slices"

	"exchange/core/trading"
)

// A market is the state of the sequential exchange: both books and all wallets. The search visits
// many states and returns to earlier ones, so a step changes a copy and leaves the old market
// unchanged. Copies share their orders, so an order never changes: set replaces it.
type market struct {
	fees        *[Pairs][Accounts]Rates
	notices     *[Accounts][]notice
	orders      []*order // all ever placed, by number
	withdrawals []withdrawal
	wallets     [Accounts]Wallet
	frozen      [Accounts]bool // as sent to subscribers
	updates     [Pairs]uint64  // update id of each book
	rank        [Pairs]int     // number of ids of orders and cancels received so far
	lastTrade   [Pairs]uint64  // newest trade id received
	epoch       int            // epoch of the credits
	credits     []credit       // by operation
	batches     []progress     // of the epoch, by batch and pair
	insideBatch [Accounts][Pairs]int
	delivered   [Accounts]int // number of notices that have happened
	last        change        // effect of the last step
}

type order struct {
	number, account, pair  int
	buy                    bool
	status                 Status
	turn                   uint64 // its priority in time; 0 of a closed order
	price, amount, remains int64
	id                     uint64 // 0: no client received it
	by                     int    // number of the placing operation
}

// A credit is money that an operation made available: see mayRefuse.
type credit struct {
	operation, account, currency int
	amount                       int64
}

func (s *market) clone() *market {
	c := *s
	c.orders, c.withdrawals, c.credits = slices.Clone(s.orders), slices.Clone(s.withdrawals),
		slices.Clone(s.credits)
	c.batches, c.last = slices.Clone(s.batches), change{}
	return &c
}

func (s *market) equal(t *market) bool {
	return s.rank == t.rank && s.lastTrade == t.lastTrade && s.updates == t.updates &&
		s.wallets == t.wallets && s.frozen == t.frozen && s.epoch == t.epoch &&
		s.insideBatch == t.insideBatch && s.delivered == t.delivered &&
		slices.EqualFunc(s.orders, t.orders,
			func(a, b *order) bool { return a == b || *a == *b }) &&
		slices.Equal(s.withdrawals, t.withdrawals) && slices.Equal(s.credits, t.credits) &&
		slices.Equal(s.batches, t.batches)
}

// after returns the markets that a part of an operation may lead to. There is none if its answer is
// impossible, and two if it may have happened or not.
func (s *market) after(p *part) []any {
	if p.rank != 0 && p.rank != s.rank[p.o.Pair]+1 {
		return nil // another operation received the next id
	}
	before := s.clone()
	if p.epoch > before.epoch {
		// no operation of an earlier epoch overlaps with one of this epoch
		before.epoch, before.credits, before.batches = p.epoch, nil, nil
	}
	if !before.isTurnOf(p) || !before.isAfterNotices(p) {
		return nil
	}
	next := before.clone()
	happens := next.step(p) && next.staysTogether(p) && next.matchesNotices(p, before)
	switch {
	case happens && p.fate == unknown:
		return []any{next, before}
	case happens:
		return []any{next}
	case p.fate != unknown:
		return nil
	}
	return []any{before}
}

// step does one part of an operation on s, which the caller may change. It reports whether one
// exchange would have given this result. An operation without an outcome is done, too: no result
// can contradict it.
func (s *market) step(p *part) bool {
	o, r := p.o, p.r
	switch o.Kind {
	case Place:
		return s.place(p)
	case Cancel:
		return s.cancel(p)
	case CancelAll:
		return s.cancelAll(p)
	case Amend:
		return s.amend(p)
	case Deposit:
		s.last.of[o.Account] = true
		s.wallets[o.Account][o.Currency].Balance += o.Amount * Unit
		s.noteCredit(p, o.Account, o.Currency, o.Amount*Unit)
		return r.Outcome == Done || r.Outcome == Unknown
	case Adjustment:
		return s.adjust(p)
	case Withdrawal:
		return s.withdrawal(p)
	case ReadOrder:
		return s.showsOrder(o, r)
	case ReadOpen:
		return s.showsOpen(o, r)
	case ReadBook:
		b := s.book(o.Pair)
		return r.UpdateID == s.updates[o.Pair] &&
			slices.Equal(r.Levels[0], levels(b, trading.Buy)) &&
			slices.Equal(r.Levels[1], levels(b, trading.Sell))
	case ReadWallet:
		return s.wallets[o.Account] == r.Funds
	case ReadPending:
		return s.showsPending(o, r)
	case Subscribe:
		return s.wallets[o.Account] == r.Funds && s.frozen[o.Account] == r.Frozen &&
			s.showsOpen(o, r)
	case Freeze:
		if s.frozen[o.Account] != o.On {
			s.frozen[o.Account] = o.On
			s.last.of[o.Account], s.last.freezes = true, true
		}
		return true
	default:
		return s.moveWithdrawal(p)
	}
}

// currencies returns the traded currency of a pair, and the one that pays for it.
func currencies(pair int) (base, quote int) { return 0, pair + 1 }

// spends returns the currency that an order needs.
func spends(pair int, buy bool) int {
	base, quote := currencies(pair)
	if buy {
		return quote
	}
	return base
}

// reserve reserves money; false if there is not enough.
func (s *market) reserve(account, currency int, amount int64) bool {
	f := &s.wallets[account][currency]
	if f.Balance-f.Reserve < amount {
		return false
	}
	f.Reserve += amount
	return true
}

// mayRefuse reports whether a refusal for funds is right. A wallet does not count money still in
// flight to it, so the refusal may ignore credits of overlapping operations.
func (s *market) mayRefuse(p *part, account, currency int, need int64) bool {
	f := s.wallets[account][currency]
	available := f.Balance - f.Reserve
	for _, c := range s.credits {
		if p.overlaps[c.operation] && c.account == account && c.currency == currency {
			available -= c.amount
		}
	}
	return available < need
}

// noteCredit notes that an operation made money available, until the epoch ends. Credits are sorted
// by operation, so that markets are equal no matter which order led to them. Only credits that
// overlap with a refusal for funds are noted, because mayRefuse needs no others.
func (s *market) noteCredit(p *part, account, currency int, amount int64) {
	if amount == 0 || !p.besideRefusal {
		return
	}
	at, _ := slices.BinarySearchFunc(s.credits, p.number+1,
		func(c credit, n int) int { return cmp.Compare(c.operation, n) })
	s.credits = slices.Insert(s.credits, at, credit{p.number, account, currency, amount})
}
