package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// errHistory is wrapped by errors about an incomplete history.
var errHistory = errors.New("the history does not add up")

// A statementLine is one change of a balance. Balance is the balance after it.
type StatementLine struct {
	Time     string        `json:"time"`
	Currency string        `json:"currency"`
	Change   string        `json:"change" doc:"What changed, with its sign"`
	Balance  money.Balance `json:"balance" doc:"The balance after it"`

	Cause string `json:"cause" enum:"deposit,withdraw,adjustment,trade,fee,fee income,brought forward"`

	ID     uint64 `json:"id" doc:"Id of the deposit, the withdrawal or the trade"`
	Pair   string `json:"pair,omitempty" doc:"Pair of the trade"`
	Reason string `json:"reason,omitempty"`
}

// A change is one change of a balance, going back in time.
type change struct {
	timeUs   int64
	id       uint64
	cause    string
	currency uint16
	credit   bool
	amount   money.Balance
	pair     string
	reason   string // of an adjustment
}

// A StatementQuery chooses changes of balances.
type statementQuery struct {
	Account  string `json:"account" need:"yes"`
	Currency string `json:"currency" doc:"Only changes of this currency"`
}

// statement streams every change of an account's balances, newest first, with the balance after
// each. It goes back from the committed balances at one sequence, as far as the history reaches. If
// trades are missing from the history, the rest is brought forward. With a currency it shows the
// changes of only that currency.
func statement(c *call, q *statementQuery) (any, error) {
	name := q.Account
	account, err := c.engine.Statement(name)
	if err != nil {
		return nil, err
	}
	if account == nil {
		return nil, &badRequest{fmt.Sprintf("there is no account %.80q", name)}
	}
	only, code := uint16(0), []byte(q.Currency)
	if len(code) > 0 {
		if only = c.engine.EverCurrency(code); only == 0 {
			return nil, &badRequest{fmt.Sprintf("there is no currency %.80q", code)}
		}
	}
	s := &statementSource{Statement: account, e: c.engine, only: only, name: name,
		balances: map[uint16]money.Balance{}}
	for _, h := range account.Holdings {
		s.balances[h.Currency] = h.Balance
	}
	c.stream(func(ctx context.Context, o *lineWriter) (any, error) {
		return s.write(ctx, o)
	})
	return nil, errStreamed
}

type statementSource struct {
	*committed.Statement
	e        *actors.Engine
	only     uint16 // currency to show; 0: all
	name     string
	balances map[uint16]money.Balance // after the next change, going back
	// all trades kept in the history have been read, and older ones are gone
	older bool
	err   error // of the store: changes may be missing
}

func (s *statementSource) write(ctx context.Context, o *lineWriter) (int, error) {
	n := 0
	// counts only if there were no older trades: the rest is read to find out
	var wrong error
	for c := range newestFirst(s.possible, s.ofTrades(ctx), s.ofDeposits(ctx),
		s.ofWithdrawals(ctx)) {
		if s.older || s.err != nil {
			break
		}
		if wrong != nil {
			continue
		}
		after := s.balances[c.currency]
		sign := "-"
		if c.credit {
			sign = ""
			if after.Cmp(c.amount) < 0 {
				wrong = fmt.Errorf("%w: at %s %s %d credits %v %s, and there are %v after it",
					errHistory, clock(c.timeUs), c.cause, c.id,
					c.amount, s.e.CurrencyCode(c.currency), after)
				continue
			}
			s.balances[c.currency] = after.Sub(c.amount)
		} else {
			s.balances[c.currency] = after.Add(c.amount)
		}
		if s.only != 0 && s.only != c.currency {
			continue
		}
		if !o.write(StatementLine{clock(c.timeUs), s.e.CurrencyCode(c.currency),
			sign + c.amount.String(), after, c.cause, c.id, c.pair, c.reason}) {
			return n, nil
		}
		n++
	}
	if s.err != nil {
		return n, s.err
	}
	if wrong != nil && !s.older {
		return n, wrong
	}
	for _, currency := range slices.Sorted(maps.Keys(s.balances)) {
		b := s.balances[currency]
		if b.IsZero() {
			continue
		}
		code := s.e.CurrencyCode(currency)
		if !s.older {
			return n,
				fmt.Errorf(
					"%w: every change is there, and %v %s are left that none of them explains",
					errHistory, b, code)
		}
		if s.only != 0 && s.only != currency {
			continue
		}
		if !o.write(StatementLine{Currency: code, Change: b.String(), Balance: b,
			Cause: "brought forward"}) {
			break
		}
		n++
	}
	return n, nil
}

// possible returns false for a credit above the balance after it.
func (s *statementSource) possible(c *change) bool {
	return !c.credit || s.balances[c.currency].Cmp(c.amount) >= 0
}

// newestFirst merges lists, each newest first. If the clock was set back, times do not define the
// order. So a possible change comes before an impossible one, even against their times.
func newestFirst(possible func(*change) bool, lists ...iter.Seq[change]) iter.Seq[change] {
	return func(yield func(change) bool) {
		type head struct {
			change
			next func() (change, bool)
		}
		var heads []*head
		for _, l := range lists {
			next, stop := iter.Pull(l)
			defer stop()
			if c, ok := next(); ok {
				heads = append(heads, &head{c, next})
			}
		}
		for len(heads) > 0 {
			newest := slices.MaxFunc(heads, func(a, b *head) int {
				switch pa, pb := possible(&a.change), possible(&b.change); {
				case pa && !pb:
					return 1
				case pb && !pa:
					return -1
				}
				return cmp.Compare(a.timeUs, b.timeUs)
			})
			if !yield(newest.change) {
				return
			}
			var ok bool
			if newest.change, ok = newest.next(); !ok {
				heads = slices.DeleteFunc(heads, func(h *head) bool { return h == newest })
			}
		}
	}
}

// ofTrades returns the changes by the account's trades. For the fee account it also returns the
// fees of all trades.
func (s *statementSource) ofTrades(ctx context.Context) iter.Seq[change] {
	return func(yield func(change) bool) {
		n := uint64(0)
		err := s.Trades(ctx, func(t *committed.Trade) bool {
			n++
			for _, c := range s.ofTrade(t) {
				if !yield(c) {
					return false
				}
			}
			return true
		})
		s.err = errors.Join(s.err, err)
		if n > s.TradeCount {
			s.err = errors.Join(s.err, fmt.Errorf(
				"%w: %d trades of account %s are kept, there were %d", errHistory, n, s.name,
				s.TradeCount))
		}
		s.older = n < s.TradeCount
	}
}

// ofTrade returns the changes of one trade, the last first.
func (s *statementSource) ofTrade(t *committed.Trade) (list []change) {
	base, quote := s.e.PairCurrencies(t.Pair)
	amount, value := t.Amount.Balance(), t.Price.Times(t.Amount).Balance()
	pair := s.e.Market(t.Pair).Name
	add := func(cause string, currency uint16, credit bool, b money.Balance) {
		if !b.IsZero() {
			list = append(list, change{timeUs: t.TimeUs, id: t.ID, cause: cause,
				currency: currency, credit: credit, amount: b, pair: pair})
		}
	}
	received := func(side trading.Side) uint16 {
		if side == trading.Buy {
			return base
		}
		return quote
	}
	if s.name == directory.FeeAccount {
		add("fee income", received(t.TakerSide), true, t.TakerFee)
		add("fee income", received(t.TakerSide.Opposite()), true, t.MakerFee)
	}
	if t.Taker == s.Account {
		add("fee", received(t.TakerSide), false, t.TakerFee)
	}
	if t.Maker == s.Account {
		add("fee", received(t.TakerSide.Opposite()), false, t.MakerFee)
	}
	// a trade of the account with itself changes nothing
	if t.Taker != t.Maker && (t.Taker == s.Account || t.Maker == s.Account) {
		buys := (t.TakerSide == trading.Buy) == (t.Taker == s.Account)
		add("trade", base, buys, amount)
		add("trade", quote, !buys, value)
	}
	return list
}

func (s *statementSource) ofDeposits(ctx context.Context) iter.Seq[change] {
	return func(yield func(change) bool) {
		err := s.Deposits(ctx, func(d *committed.Deposit) bool {
			return yield(change{timeUs: d.TimeUs, id: d.ID, cause: "deposit",
				currency: d.Currency, credit: true, amount: d.Amount.Balance()})
		})
		s.err = errors.Join(s.err, err)
	}
}

// ofWithdrawals returns the approved withdrawals and the adjustments, newest first. They are few,
// so they are sorted here.
func (s *statementSource) ofWithdrawals(ctx context.Context) iter.Seq[change] {
	return func(yield func(change) bool) {
		var list []change
		err := s.Left(ctx, func(w *committed.Withdrawal) bool {
			c := change{timeUs: w.ClosedUs, id: w.ID, cause: "withdraw", currency: w.Currency,
				amount: w.Amount.Balance()}
			if w.Status == event.WithdrawalAdjusted {
				c.cause, c.reason = "adjustment", w.Details
			}
			list = append(list, c)
			return true
		})
		s.err = errors.Join(s.err, err)
		slices.SortStableFunc(list, func(a, b change) int {
			return cmp.Compare(b.timeUs, a.timeUs)
		})
		for _, c := range list {
			if !yield(c) {
				return
			}
		}
	}
}
