package state

import (
	"fmt"

	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/market"
	"exchange/core/matching"
	"exchange/core/money"
	"exchange/core/trading"
)

// A State is everything that is committed at one sequence.
type State struct {
	seq        uint64
	timeUs     int64 // of the newest record
	currencies []Currency
	pairs      []*Pair
	accounts   []*Account
	keys       []*Key
	names      map[string]uint32 // account name -> id
	keyNames   map[string]uint32 // public key -> number
	deposits   uint64            // how many were made; the id of the newest
	trades     []uint64          // count of each account, by id; at index 0: of all accounts

	lastOrder      uint64 // highest id given to an order or a cancel
	lastTrade      uint64
	withdrawals    map[uint64]*Withdrawal // the pending ones, by id
	lastWithdrawal uint64
	outbox         outbox
	lastMail       uint64
	maintenance    event.Maintenance
	maintainedUs   int64           // end of the last maintenance; 0: there was none
	history        event.HistoryID // zero: no record has named this history yet

	settler ledger.Settler
}

// A Currency has its number (its place, from 1) and the sums of deposits, withdrawals and
// adjustments over all records, independently of balances.
//
//tidy:keep Currencies returns it
type Currency struct {
	Code      string
	Deposited money.Balance
	Withdrawn money.Balance
	Adjusted  money.Balance // taken by operators' corrections
}

// Held returns what all accounts hold together: deposits - withdrawals - adjustments.
func (c *Currency) Held() money.Balance { return c.Deposited.Sub(c.left()) }

// left returns what has left the accounts.
func (c *Currency) left() money.Balance { return c.Withdrawn.Add(c.Adjusted) }

// A Pair is one market: its book and counters.
type Pair struct {
	Number    uint16
	Name      string
	Base      uint16
	Quote     uint16
	Book      *matching.Book
	Stops     *matching.Stops // orders that a trade at their prices triggers
	Market    market.Market   // depth counter and the pair's other public values
	lastOrder uint64          // highest order or cancel id: ids grow within a pair
	lastTrade uint64
	timeUs    int64 // of the pair's newest record
	Halted    bool

	// instructed has what its open orders say beyond side, price and amount, by order id; a plain
	// limit order is not in it
	instructed map[uint64]*trading.Instructed
	expiring   int // orders in instructed that expire
}

// LastTimeUs returns the time of the pair's newest record: a book's time never falls.
func (p *Pair) LastTimeUs() int64 { return p.timeUs }

// LastTrade returns the id of the pair's newest trade, 0 before the first.
func (p *Pair) LastTrade() uint64 { return p.lastTrade }

// An Account has a wallet, and open orders with their client_order_ids.
type Account struct {
	ID        uint32
	Frozen    bool
	Name      string
	Email     string
	Wallet    ledger.Wallet
	Open      ledger.OpenOrders
	ClientIDs ledger.ClientIDs
	Closed    uint64   // count of its orders that have closed
	lastEvent uint64   // sequence of its newest event (isEvent); 0: it had none
	Keys      []uint32 // numbers, in the order they were made
	rare      *rare    // nil for most: there are many accounts
}

// rare has the parts of an account that few accounts have.
type rare struct {
	withdrawals []*Withdrawal // pending withdrawals, by id
	// client ids of withdrawals: of pending ones, and of the newest
	withdrawalIDs WithdrawalIDs
	fees          map[uint16]FeeRates // own fees, by pair
	notices       []uint64            // ids of mails about refused withdrawals that are to be sent
	changes       []uint64            // ids of mails about its e-mail addresses that are to be sent
	selfTrade     trading.SelfTrade   // mode of an order that names none
	switches      []event.Switch      // armed ones, by key, that of calls before that of sessions
	operated      Operated
}

func (a *Account) own() *rare {
	if a.rare == nil {
		a.rare = new(rare)
	}
	return a.rare
}

// Withdrawals returns the account's pending withdrawals, oldest first. Read only.
func (a *Account) Withdrawals() []*Withdrawal {
	if a.rare == nil {
		return nil
	}
	return a.rare.withdrawals
}

// Fees returns the account's own rates, by pair; nil if it has none. Read only.
func (a *Account) Fees() map[uint16]FeeRates {
	if a.rare == nil {
		return nil
	}
	return a.rare.fees
}

// FeeRates are the rates that the two sides of a trade pay on the money that they receive.
type FeeRates struct{ Maker, Taker money.Rate }

// A Withdrawal is money on its way out.
type Withdrawal struct {
	ID       uint64
	Account  uint32
	Currency uint16
	Amount   money.Amount
	Status   uint8 // event.WithdrawalNew or event.WithdrawalVerified while it is pending
	TimeUs   int64 // asked for
	Address  string
	Details  string // for the owner: the reason of a refusal, or the reference of an approval
	ClientID event.ClientID

	Issue    uint32 // number of the valid code, from 1
	IssuedUs int64
	Tries    uint32 // wrong codes so far, of all issues
	// Stale: the valid code is of an earlier history, or was mailed to an earlier address: it has
	// expired.
	Stale bool
	// Renewed: the history has made this code anew, because the mail with the code before was still
	// in the outbox. That mail may have been sent all the same. So the first code that does not fit
	// counts as expired.
	Renewed bool
}

// Pending reports whether the amount is still reserved.
func (w *Withdrawal) Pending() bool {
	return w.Status == event.WithdrawalNew || w.Status == event.WithdrawalVerified
}

// A Key is an API key with its greatest nonce. Of a revoked one only number, account and name stay:
// its name is never given again.
type Key struct {
	event.Key
	Nonce   uint64
	Used    *Nonces // of a key for parallel use; nil: its nonces grow
	Revoked bool
}

// A ClosedOrder is an order that a record closed.
//
//tidy:keep Effects has it
type ClosedOrder struct {
	trading.Order // Remaining is the open amount when the order closed
	Pair          uint16
	Cancelled     bool // otherwise the order is done
	ClosedUs      int64
	ClientID      event.ClientID
	Instructed    *trading.Instructed // nil: it was a plain limit order
}

// Effects are the changes that one record made. Apply overwrites them; the slices are valid until
// the next Apply of the same State or with the same Effects.
type Effects struct {
	Settlements []ledger.Settlement // settlements of the accounts whose wallets may have changed
	Closed      []ClosedOrder
	// Left are the orders that have left the book, or have changed in it, but for trades: as the
	// book displayed them before. A cancelled order of which nothing was hidden is not among them:
	// its record says what it was.
	Left       []trading.Order
	Withdrawal *Withdrawal // withdrawal that came to its end; nil: none
}

// New returns the state before the first record.
func New() *State {
	return &State{names: map[string]uint32{}, keyNames: map[string]uint32{},
		withdrawals: map[uint64]*Withdrawal{}, trades: []uint64{0}}
}

// Seq returns the sequence of the last applied record.
func (s *State) Seq() uint64 { return s.seq }

// TimeUs returns the time of the newest record, 0 before the first.
func (s *State) TimeUs() int64 { return s.timeUs }

// LastIDs returns the highest ids given so far: to orders and cancels, to trades, to deposits.
func (s *State) LastIDs() (order, trade, deposit uint64) {
	return s.lastOrder, s.lastTrade, s.deposits
}

// Currencies returns all currencies; the number of the first is 1. Read only.
func (s *State) Currencies() []Currency { return s.currencies }

// Pairs returns all pairs; the number of the first is 1. Read only.
func (s *State) Pairs() []*Pair { return s.pairs }

// Accounts returns all accounts; the id of the first is 1. Read only.
func (s *State) Accounts() []*Account { return s.accounts }

// Keys returns all API keys; the number of the first is 1. Read only.
func (s *State) Keys() []*Key { return s.keys }

// Pair returns the pair with that number, nil if there is none.
func (s *State) Pair(number uint16) *Pair {
	if number == 0 || int(number) > len(s.pairs) {
		return nil
	}
	return s.pairs[number-1]
}

// Account returns the account with that id, nil if there is none.
func (s *State) Account(id uint32) *Account {
	if id == 0 || int(id) > len(s.accounts) {
		return nil
	}
	return s.accounts[id-1]
}

// AccountByName returns the account of that name, nil if there is none.
func (s *State) AccountByName(name string) *Account { return s.Account(s.names[name]) }

// KeyByName returns the API key with that public part, nil if there is none.
func (s *State) KeyByName(key string) *Key { return s.key(s.keyNames[key]) }

func (s *State) key(number uint32) *Key {
	if number == 0 || int(number) > len(s.keys) {
		return nil
	}
	return s.keys[number-1]
}

// Withdrawal returns the pending withdrawal with that id, nil if there is none.
func (s *State) Withdrawal(id uint64) *Withdrawal { return s.withdrawals[id] }

// Withdrawals returns all pending withdrawals. Read only.
func (s *State) Withdrawals() map[uint64]*Withdrawal { return s.withdrawals }

// LastWithdrawal returns the highest id given to a withdrawal.
func (s *State) LastWithdrawal() uint64 { return s.lastWithdrawal }

// Maintenance reports whether the exchange is in maintenance, with the message for clients.
func (s *State) Maintenance() event.Maintenance { return s.maintenance }

// OpenOrder returns an open order of an account, whether it rests in the book or waits for its
// trigger; ok is false when it has no such open order.
func (s *State) OpenOrder(a *Account, id uint64) (o trading.Order, pair *Pair, ok bool) {
	if pair = s.Pair(a.Open.Pair(id)); pair == nil {
		return o, nil, false
	}
	if o, ok = pair.Open(id); !ok {
		panic(fmt.Sprintf("BUG: order %d of account %d is open but not in the book of %s, nor "+
			"does it wait", id, a.ID, pair.Name))
	}
	return o, pair, true
}
