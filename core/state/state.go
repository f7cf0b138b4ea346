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
	seq          uint64
	timeUs       int64 // of the newest record
	currencies   []Currency
	pairs        []*Pair
	accounts     []*Account
	keys         []*Key
	names        map[string]uint32 // account name -> id
	keyNames     map[string]uint32 // public key -> number
	depositCount uint64            // count; also the id of the newest
	tradeCounts  []uint64          // count of each account, by id; at index 0: of all accounts

	lastOrder      uint64 // highest id of an order or a cancel
	lastTrade      uint64
	withdrawals    map[uint64]*Withdrawal // pending ones, by id
	lastWithdrawal uint64
	outbox         outbox
	lastMail       uint64
	maintenance    event.Maintenance
	maintainedUs   int64           // end of the last maintenance, Unix microseconds; 0: none
	history        event.HistoryID // zero: not set by a record yet

	settler ledger.Settler
}

// A Currency holds the sums of deposits, withdrawals and adjustments over all records,
// independently of balances. Its number is its position, from 1.
//
//tidy:keep Currencies returns it
type Currency struct {
	Code      string
	Deposited money.Balance
	Withdrawn money.Balance
	Adjusted  money.Balance // taken by operators' corrections
}

// Held returns the sum of all accounts: deposits - withdrawals - adjustments.
func (c *Currency) Held() money.Balance { return c.Deposited.Sub(c.outflow()) }

// outflow returns the money that left the accounts.
func (c *Currency) outflow() money.Balance { return c.Withdrawn.Add(c.Adjusted) }

// A Pair is one market: its book and counters.
type Pair struct {
	Number    uint16
	Name      string
	Base      uint16
	Quote     uint16
	Book      *matching.Book
	Stops     *matching.Stops // orders with a trigger
	Market    market.Market   // depth counter and the pair's other public values
	lastOrder uint64          // highest order or cancel id: ids grow within a pair
	lastTrade uint64
	timeUs    int64 // of the pair's newest record
	Halted    bool

	// instructions of its open orders, by order id; without plain limit orders
	instructed map[uint64]*trading.Instructed
	expiring   int // orders in instructed that expire
}

// LastTimeUs returns the time of the pair's newest record: a book's time never falls.
func (p *Pair) LastTimeUs() int64 { return p.timeUs }

// LastTrade returns the id of the pair's newest trade, 0 before the first.
func (p *Pair) LastTrade() uint64 { return p.lastTrade }

// An Account holds a wallet, and open orders with their client_order_ids.
type Account struct {
	ID        uint32
	Frozen    bool
	Name      string
	Email     string
	Wallet    ledger.Wallet
	Open      ledger.OpenOrders
	ClientIDs ledger.ClientIDs
	Closed    uint64   // count of its closed orders
	lastEvent uint64   // sequence of its newest event (isEvent); 0: none
	Keys      []uint32 // numbers, in the order they were made
	rare      *rare    // nil for most: there are many accounts
}

// rare holds the parts of an account that few accounts have.
type rare struct {
	withdrawals []*Withdrawal // pending withdrawals, by id
	// client ids of withdrawals: of pending ones, and of the newest
	withdrawalIDs WithdrawalIDs
	fees          map[uint16]FeeRates // own fees, by pair
	noticeMails   []uint64            // ids of pending mails about refused withdrawals
	changeMails   []uint64            // ids of pending mails about changes of the account
	selfTrade     trading.SelfTrade   // mode of orders that name none
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

// FeeRates are the rates of the two sides of a trade, on the money that each receives.
type FeeRates struct{ Maker, Taker money.Rate }

// A Withdrawal is a request to pay out money.
type Withdrawal struct {
	ID       uint64
	Account  uint32
	Currency uint16
	Amount   money.Amount
	Status   uint8 // event.WithdrawalNew or event.WithdrawalVerified while it is pending
	TimeUs   int64 // time of the request
	Address  string
	Details  string // for the owner: the reason of a refusal, or the reference of an approval
	ClientID event.ClientID

	Issue    uint32 // number of the valid code, from 1
	IssuedUs int64
	Tries    uint32 // wrong codes so far, of all issues
	// Stale: the valid code has expired: it is of an earlier history, or was mailed to an earlier
	// address.
	Stale bool
	// Renewed: the history replaced this code, because the mail with the earlier one was still in
	// the outbox. That mail may have been sent all the same, so the first wrong code counts as
	// expired.
	Renewed bool
}

// Pending reports whether the amount is still reserved.
func (w *Withdrawal) Pending() bool {
	return w.Status == event.WithdrawalNew || w.Status == event.WithdrawalVerified
}

// A Key is an API key with its greatest nonce. A revoked one keeps only number, account and name,
// which is never reused.
type Key struct {
	event.Key
	Nonce   uint64
	Used    *Nonces // of a key for parallel use; nil: its nonces must grow
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
	// Left are the orders that left the book, or changed in it, other than by trades: as the book
	// displayed them before. A cancelled order without a hidden part is not listed: its record
	// describes it.
	Left       []trading.Order
	Withdrawal *Withdrawal // withdrawal that finished; nil: none
}

// New returns the state before the first record.
func New() *State {
	return &State{names: map[string]uint32{}, keyNames: map[string]uint32{},
		withdrawals: map[uint64]*Withdrawal{}, tradeCounts: []uint64{0}}
}

// Seq returns the sequence of the last applied record.
func (s *State) Seq() uint64 { return s.seq }

// TimeUs returns the time of the newest record, 0 before the first.
func (s *State) TimeUs() int64 { return s.timeUs }

// LastIDs returns the highest ids so far: of orders and cancels, of trades, of deposits.
func (s *State) LastIDs() (order, trade, deposit uint64) {
	return s.lastOrder, s.lastTrade, s.depositCount
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

// LastWithdrawal returns the highest withdrawal id.
func (s *State) LastWithdrawal() uint64 { return s.lastWithdrawal }

// Maintenance returns the maintenance, with the message for clients.
func (s *State) Maintenance() event.Maintenance { return s.maintenance }

// OpenOrder returns an open order of an account, whether it rests in the book or waits for its
// trigger; ok is false if there is none.
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
