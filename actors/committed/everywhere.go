package committed

import (
	"context"
	"runtime"
	"time"

	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/money"
	"exchange/core/state"
)

// Questions of operators about all accounts or all pairs. One over accounts visits at most
// accountsAtOnce of them, because orders and reads wait meanwhile. Its answer contains the account
// after which the next question continues.

// accountsAtOnce is the number of accounts visited in one turn, which takes about a millisecond.
const accountsAtOnce = 20_000

// span returns the part of a list for one turn: at most most entries after index after. next is
// where the next turn continues; 0: this part is the last one.
func span[T any](list []T, after uint64, most int) (part []T, next uint64) {
	part = list[min(after, uint64(len(list))):]
	if len(part) > most {
		return part[:most], after + uint64(most)
	}
	return part, 0
}

// An Overview asks for halts, maintenance, and pending withdrawals.
type Overview struct {
	Seq    uint64
	TimeUs int64 // of the newest record; 0: none
	Status
	New, Verified Awaiting // pending withdrawals: to be confirmed, and to be approved
}

func (q *Overview) from(c *Side) (needs uint64) {
	q.Seq, q.TimeUs, q.Status = c.state.Seq(), c.state.TimeUs(), *c.statusNow()
	q.New, q.Verified = pendingByStatus(c.state)
	return 0
}

// Awaiting are pending withdrawals of one status.
type Awaiting struct {
	Number   int
	OldestUs int64 // request time of the oldest; 0: none
}

// pendingByStatus counts the pending withdrawals.
func pendingByStatus(s *state.State) (fresh, verified Awaiting) {
	for _, w := range s.Withdrawals() {
		of := &verified
		if w.Status == event.WithdrawalNew {
			of = &fresh
		}
		if of.Number++; of.OldestUs == 0 || w.TimeUs < of.OldestUs {
			of.OldestUs = w.TimeUs
		}
	}
	return fresh, verified
}

// AccountCounts asks for counts over the accounts after an id, and adds them up.
type AccountCounts struct {
	After uint64 // an id; from sets it to where the next question continues, 0: all were counted
	Names int    // limit of FrozenNames and HeldNames
	NowUs int64  // holds that ended before do not count

	FrozenAccounts int      // without closed ones
	FrozenNames    []string // names of the first of these
	HeldAccounts   int      // withdrawals are blocked after a change of e-mail address
	HeldNames      []string // names of the first of these
	Closed         int      // accounts
	Switches       int      // armed dead man's switches
}

func (q *AccountCounts) from(c *Side) (needs uint64) {
	var part []*state.Account
	part, q.After = span(c.state.Accounts(), q.After, accountsAtOnce)
	for _, a := range part {
		q.Switches += len(a.Switches())
		if a.Operated().ClosedUs != 0 {
			q.Closed++
			continue
		}
		if a.Frozen {
			if q.FrozenAccounts++; len(q.FrozenNames) < q.Names {
				q.FrozenNames = append(q.FrozenNames, a.Name)
			}
		}
		if a.Operated().HoldEndsUs > q.NowUs {
			if q.HeldAccounts++; len(q.HeldNames) < q.Names {
				q.HeldNames = append(q.HeldNames, a.Name)
			}
		}
	}
	return 0
}

// FrozenAccounts asks for frozen accounts after an id, without closed ones, and adds them to the
// list.
type FrozenAccounts struct {
	After uint64 // as in AccountCounts
	Limit int    // of List

	List []AccountInfo
}

func (q *FrozenAccounts) from(c *Side) (needs uint64) {
	var part []*state.Account
	part, q.After = span(c.state.Accounts(), q.After, accountsAtOnce)
	for _, a := range part {
		if !a.Frozen || a.Operated().ClosedUs != 0 {
			continue
		}
		q.List = append(q.List, infoOf(a))
		if len(q.List) == q.Limit {
			q.After = uint64(a.ID)
			break
		}
	}
	return 0
}

// OwnFees asks for the rates of accounts with rates of their own, after an id, and adds them to the
// list.
type OwnFees struct {
	After uint64 // as in AccountCounts
	Limit int    // of List, which may exceed it by rates of its last account

	List []OwnFee
}

// An OwnFee holds an account's own rates in a pair.
type OwnFee struct {
	Account AccountInfo
	Pair    uint16
	state.FeeRates
}

func (q *OwnFees) from(c *Side) (needs uint64) {
	var part []*state.Account
	part, q.After = span(c.state.Accounts(), q.After, accountsAtOnce)
	for _, a := range part {
		own := a.Fees()
		if len(own) == 0 {
			continue
		}
		for _, p := range c.state.Pairs() {
			if rates, there := own[p.Number]; there {
				q.List = append(q.List, OwnFee{infoOf(a), p.Number, rates})
			}
		}
		if len(q.List) >= q.Limit {
			q.After = uint64(a.ID)
			break
		}
	}
	return 0
}

// AllOrders asks for open orders of all accounts, account by account, each account's newest first,
// and adds them to the list.
type AllOrders struct {
	Pair uint16 // only this pair; 0: all pairs
	// The list continues after the account After, with the orders below Before of the next account;
	// 0: with all. from sets both to where the next question continues; both 0: the list is
	// complete.
	After, Before uint64
	Limit         int // of List

	List []Order
}

func (q *AllOrders) from(c *Side) (needs uint64) {
	part, next := span(c.state.Accounts(), q.After, accountsAtOnce)
	f := ledger.OpenFilter{Pair: q.Pair, Before: q.Before}
	for _, a := range part {
		for open := range a.Open.NewestOf(f) {
			if len(q.List) == q.Limit {
				q.After, q.Before = uint64(a.ID-1), q.List[len(q.List)-1].ID
				if q.List[len(q.List)-1].Account != a.ID {
					q.Before = 0
				}
				return 0
			}
			o, p, _ := c.state.OpenOrder(a, open.ID)
			q.List = append(q.List, openRow(a, o, p))
		}
		f.Before = 0
	}
	q.After, q.Before = next, 0
	return 0
}

// PairStates asks for the state of all pairs.
type PairStates struct{ List []PairState } // by number-1

// A PairState is the state of a pair, without its rules.
type PairState struct {
	Last   money.Price // of the last trade; 0: none
	Open   int         // orders, including untriggered stops
	Halted bool
}

func (q *PairStates) from(c *Side) (needs uint64) {
	for i, p := range c.state.Pairs() {
		q.List = append(q.List, PairState{p.Market.Last(), c.open[i], p.Halted})
	}
	return 0
}

// Totals are the sums over all accounts and pairs at one sequence.
type Totals struct {
	Seq           uint64
	Currencies    []CurrencyTotal // by number-1
	Pairs         []PairTotal     // by number-1
	Frozen        int             // accounts
	New, Verified Awaiting        // pending withdrawals: to be confirmed, and to be approved
	// only from Balances: nonzero holdings of all accounts, by account id
	Holdings []AccountHolding
}

type (
	// An AccountHolding is one currency of an account.
	AccountHolding struct {
		Account uint32
		ledger.Holding
	}
	// A CurrencyTotal is one currency over all accounts.
	CurrencyTotal struct{ Deposited, Withdrawn, Adjusted, Balance, Reserve money.Balance }
	// A PairTotal is one pair.
	PairTotal struct {
		Open   int         // orders, including untriggered stops
		Volume money.Total // of a day, the current minute included, in the base currency
		Halted bool
	}
)

// Totals adds up all accounts and pairs. The imager does it, so no order and no read waits. Errors
// are those of Ask, and of ctx.
func (d *Door) Totals(ctx context.Context) (*Totals, error) { return d.addUp(ctx, false) }

// Balances is Totals with the holdings of each account: about 50 bytes of memory per balance.
func (d *Door) Balances(ctx context.Context) (*Totals, error) { return d.addUp(ctx, true) }

func (d *Door) addUp(ctx context.Context, holdings bool) (*Totals, error) {
	if d.side.imager == nil {
		return nil, errNoImages
	}
	q := &sums{holdings: holdings}
	if err := d.Ask(q, nil, 0); err != nil {
		return nil, err
	}
	select {
	case t := <-q.made:
		return t, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-d.dead:
		return nil, ErrTimeout
	}
}

// sums has the imager add up.
type sums struct {
	holdings bool
	made     <-chan *Totals
}

func (q *sums) from(c *Side) (needs uint64) {
	made := make(chan *Totals, 1)
	q.made = made
	c.imager.ordered.Add(1)
	c.root.Send(c.imager.pid, addUp{made, q.holdings})
	return 0
}

// addUp asks the imager for the sums over its state, optionally with all holdings. reply is
// buffered.
type addUp struct {
	reply    chan<- *Totals
	holdings bool
}

// addUp adds up. It yields from time to time, because all processors may be busy.
func (i *Imager) addUp(holdings bool) *Totals {
	s := i.batches.State
	t := &Totals{Seq: s.Seq(), Currencies: make([]CurrencyTotal, len(s.Currencies()))}
	for n, c := range s.Currencies() {
		t.Currencies[n] = CurrencyTotal{Deposited: c.Deposited, Withdrawn: c.Withdrawn,
			Adjusted: c.Adjusted}
	}
	for n, a := range s.Accounts() {
		for _, h := range a.Wallet.Holdings() {
			sum := &t.Currencies[h.Currency-1]
			sum.Balance, sum.Reserve = sum.Balance.Add(h.Balance), sum.Reserve.Add(h.Reserve)
			if holdings && !h.Balance.IsZero() {
				t.Holdings = append(t.Holdings, AccountHolding{a.ID, h})
			}
		}
		if a.Frozen && a.Operated().ClosedUs == 0 {
			t.Frozen++
		}
		if n%accountsAtOnce == 0 {
			runtime.Gosched()
		}
	}
	now := time.Now().UnixMicro()
	for _, p := range s.Pairs() {
		t.Pairs = append(t.Pairs, PairTotal{p.OpenOrders(), p.Market.Ticker(now).Volume, p.Halted})
	}
	t.New, t.Verified = pendingByStatus(s)
	return t
}
