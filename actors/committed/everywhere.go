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

// Questions of operators about all accounts or all pairs. One that goes over accounts looks at
// accountsAtOnce of them at most, because orders and reads wait meanwhile. Its answer says behind
// which account the next question goes on.

// accountsAtOnce is how many accounts are looked at in one turn, which takes about a millisecond.
const accountsAtOnce = 20_000

// span returns the part of a list that is looked at in one turn: its entries behind after, at most
// so many. next is where the next turn goes on; 0: the part is the last one.
func span[T any](list []T, after uint64, most int) (part []T, next uint64) {
	part = list[min(after, uint64(len(list))):]
	if len(part) > most {
		return part[:most], after + uint64(most)
	}
	return part, 0
}

// An Overview asks for what is out of the ordinary, and for what waits.
type Overview struct {
	Seq    uint64
	TimeUs int64 // of the newest record; 0: there is none
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
	OldestUs int64 // when the oldest of them was asked for; 0: there is none
}

// pendingByStatus counts the pending withdrawals, by status.
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

// A Census asks for numbers of accounts behind an id, and adds them up.
type AccountCounts struct {
	After uint64 // an id; from sets it to where the next question goes on, 0: all were counted
	Names int    // most of Frozen, and of Held
	NowUs int64  // holds that have ended by then do not count

	FrozenAccounts int      // closed ones are not among them
	FrozenNames    []string // names of the first of them
	HeldAccounts   int      // no money is withdrawn from them, because their e-mail address changed
	HeldNames      []string // names of the first of them
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
		if a.Operated().HeldUs > q.NowUs {
			if q.HeldAccounts++; len(q.HeldNames) < q.Names {
				q.HeldNames = append(q.HeldNames, a.Name)
			}
		}
	}
	return 0
}

// FrozenAccounts asks for frozen accounts behind an id, and adds them to the list. Closed ones are
// not among them.
type FrozenAccounts struct {
	After uint64 // as of Census
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

// OwnFees asks for the rates of accounts that have some of their own, behind an id, and adds them
// to the list.
type OwnFees struct {
	After uint64 // as of Census
	Limit int    // of List; it has all rates of its last account all the same

	List []OwnFee
}

// An OwnFee has the rates that an account has in a pair.
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
	Pair uint16 // of the only pair that counts; 0: all count
	// The list goes on behind the account After, with the orders below Before of the account
	// behind it; 0: with all. from sets both to where the next question goes on; both are 0: these
	// were all.
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

// A PairState is what there is of a pair beside its rules.
type PairState struct {
	Last   money.Price // of the last trade; 0: there was none
	Open   int         // orders, those that wait for a trigger included
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
	// of Balances alone: what accounts have, in order of their ids, without balances of 0
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
		Open   int         // orders, those that wait for a trigger included
		Volume money.Total // of a day, the current minute included, in the base currency
		Halted bool
	}
)

// Totals adds up what all accounts and pairs have. The imager does so: no order and no read waits
// for it. Errors are those of Ask, and of ctx.
func (d *Door) Totals(ctx context.Context) (*Totals, error) { return d.addUp(ctx, false) }

// Balances is Totals with what each account has. That takes about 50 bytes of memory for each
// balance until the caller is done with them.
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

// sums asks for an order to the imager.
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

// addUp asks the imager for the sums over its state, and maybe for what they are made of. The reply
// has room for them.
type addUp struct {
	reply    chan<- *Totals
	holdings bool
}

// addUp adds up. It lets others run now and then, because all processors may be busy.
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
