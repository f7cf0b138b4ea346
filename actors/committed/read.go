package committed

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/market"
	"exchange/core/state"
	"exchange/core/trading"
	"exchange/persistence"
)

// A ReadKind says what a Read asks for.
type ReadKind uint8

// The kinds of reads.
const (
	// ReadWallet fills Holdings with the account's, in order of the currencies' numbers.
	ReadWallet ReadKind = iota
	// ReadOrders fills Orders with the account's open orders that pass the filters, newest first,
	// after Offset, at most Limit of them. The closed ones are in the history, which is ready up to
	// Seq. With ClientID it fills Orders with the one that has it, without the other filters;
	// Complete says that there are no others, but for the closed order ID in the history, if it is
	// not 0.
	ReadOrders
	// ReadOrder fills Orders with the order ID of the account, if it is open or closed lately. If
	// not, the history has it, or it does not exist.
	ReadOrder
	// ReadClientID fills ID with the order of the account that has ClientID, 0 if it is not taken.
	ReadClientID
	// ReadTrades fills Trades with the newest public ones after the filters and Offset, at most
	// Limit, and sets Complete, if memory has them all. If not, the history has them, and is ready
	// up to Seq.
	ReadTrades
	// ReadHistory waits until the history is ready up to Seq.
	ReadHistory
	// ReadLevels, ReadDepth, ReadTicker and ReadCandles fill View: the pair's book by level or by
	// order, what its ticker is now, or the newest candles of Frame. Of a book, an answer that
	// reaches beyond what is always current may as a whole be a little old. Door.View asks them.
	ReadLevels
	ReadDepth
	ReadTicker
	ReadCandles
	// ReadAccounts fills Accounts in order of their ids, which is that of their creation: those
	// above ID, at most Limit. ReadKeys fills Keys with the account's, in order of creation.
	ReadAccounts
	ReadKeys
	// ReadWithdraws fills Withdraws with the pending ones that pass the filters Account (0: of
	// all), Before and Currency, newest first, at most Limit. The closed ones are in the history,
	// which is ready up to Seq.
	ReadWithdraws
	// ReadWithdraw fills Withdraws with the pending withdraw ID, whoever's it is. If there is none,
	// it is in the history, which is ready up to Seq, or does not exist.
	ReadWithdraw
	// ReadFees fills Fees with the account's own rates by pair.
	ReadFees
	// ReadOutbox fills Mails with the oldest mails after ID that are to be sent, at most Limit, and
	// Accounts with the account of each.
	ReadOutbox
	// ReadOwner fills Account with the owner of the open order ID, 0 if it is not open.
	ReadOwner
	// ReadHolders fills Holders with the accounts that have open orders in Pair (0: in any), in
	// order of their ids. With Name only that account counts, and Account is its id, 0 if there is
	// no such account.
	ReadHolders
	// ReadAccount fills Account, Accounts, Holdings, Withdraws and Orders (the newest open ones, at
	// most Limit) of the account Name; Account is 0 if there is none. Open says how many open
	// orders there are.
	ReadAccount
	// ReadStatement fills Account (0: there is none), Holdings, LastTrades, LastDeposit and
	// TradeCount of the account Name; the history is ready up to Seq.
	ReadStatement
	// ReadImage fills Image with the whole state; the history is ready up to Seq.
	ReadImage
	// ReadHash fills Hash with the digest of the whole state, and Err with the first broken
	// invariant.
	ReadHash
	// ReadOpenIDs fills IDs with the ids of what ReadOrders would find without a client id, at most
	// Limit. It looks no order up. The history is ready up to Seq.
	ReadOpenIDs
)

// A Read is one question to the committed state. Everything in the answer is from one state, at
// sequence Seq, which is at or above whatever was released when the question was asked. A list that
// needs the store is answered when the history is exact up to Seq.
//
// Reads are pooled: NewRead gives one, Free takes it back once it was answered.
type Read struct {
	Kind     ReadKind
	Account  uint32
	Pair     uint16       // filter; 0: all (ReadLevels and ReadDepth: which)
	Side     trading.Side // filter; 0: both
	ClientID event.ClientID
	ID       uint64 // ReadOrder, ReadWithdraw, ReadOwner: which; ReadAccounts: after which
	Name     string // ReadHolders, ReadAccount: an account
	Currency uint16 // ReadWithdraws: filter; 0: all
	Before   uint64 // filter: ids below; 0: all
	Limit    int    // how many, of kinds that say so
	Offset   int    // ReadTrades, ReadOrders: leave out that many first

	Ascending           bool         // ReadTrades: oldest first
	LimitBuy, LimitSell int          // ReadLevels, ReadDepth: how many of each side; negative: all
	Frame               market.Frame // ReadCandles

	// FollowUp says that this read completes the answer to a command whose outcome is durable: see
	// Door.BeginRead.
	FollowUp bool

	key   *directory.Key // whose nonce is taken; nil: a read that is not signed
	nonce uint64
	after uint64 // the sequence from which on it may be answered

	Seq      uint64
	Err      error
	Holdings []ledger.Holding
	Orders   []persistence.Order
	IDs      []uint64
	Trades   []persistence.Trade
	Complete bool
	View     *View // shared: read only
	Accounts []AccountInfo
	Keys     []KeyInfo
	Hash     [32]byte
	Image    []byte

	Withdraws []state.Withdraw
	Fees      map[uint16]state.FeeRates
	Mails     []state.Mail
	Holders   []uint32
	Open      int

	LastTrades  []uint64 // by pair-1: the newest trade's id
	LastDeposit uint64
	TradeCount  uint64 // how many trades the account ever had; of FeeAccount: how many there were

	needs uint64 // the watermark from which on the answer is good
	door  *Door  // that was asked
	place bool   // it holds one of its account's places, which whoever owns it gives back
	stage atomic.Uint32
	reply chan struct{}
	timer *time.Timer
}

// Stages of a read. The handler and the actors go from one to the next by compare-and-swap, so that
// either of them ends it.
const (
	readSent uint32 = iota // in the mailbox of an actor
	// kept by an actor: by a wallet, or with its answer in Side.waiting until the history is
	// ready
	readWaiting
	readAnswered // the reply is there, or about to be
	readLeft     // in a mailbox, and its handler has left
	readForgone  // kept by an actor, and its handler has left: only a pointer
)

// Errors of reads and commands.
var (
	// ErrNonce: the nonce is not above the key's last one. A NonceError says which that is.
	ErrNonce = errors.New("wrong nonce")
	// ErrKeyRevoked: the key ended while the request was on its way.
	ErrKeyRevoked = errors.New("the key is revoked")
	// ErrTimeout: no answer in time, or none any more. Of a command the outcome is unknown.
	ErrTimeout = errors.New("no answer in time")
)

// A NonceError refuses a read whose nonce is not above the last one of its key. It is an ErrNonce.
type NonceError struct{ Last uint64 }

func (e *NonceError) Error() string { return ErrNonce.Error() }

// Unwrap makes it an ErrNonce.
func (e *NonceError) Unwrap() error { return ErrNonce }

// An AccountInfo describes an account.
type AccountInfo struct {
	ID     uint32
	Name   string
	Email  string
	Frozen bool
}

// A KeyInfo describes an API key, without its secret.
type KeyInfo struct {
	Key         string
	Account     string
	Permissions uint8
	Allow       []string
	Revoked     bool
}

var reads = sync.Pool{New: func() any {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &Read{reply: make(chan struct{}, 1), timer: t}
}}

// NewRead is an empty question from the pool.
func NewRead(kind ReadKind) *Read {
	r := reads.Get().(*Read)
	r.Kind, r.Account, r.Pair, r.Side, r.ClientID, r.ID, r.Before = kind, 0, 0, 0, event.ClientID{},
		0, 0
	r.Limit, r.LimitBuy, r.LimitSell, r.Offset, r.Ascending, r.Complete, r.FollowUp, r.key, r.nonce = 0,
		0, 0, 0, false, false, false, nil, 0
	r.Name, r.Currency, r.Withdraws, r.Fees, r.Mails, r.Holders, r.Open, r.LastTrades, r.Image = "",
		0, r.Withdraws[:0], nil, nil, r.Holders[:0], 0, nil, nil
	r.View, r.Seq, r.Err, r.Holdings, r.Orders, r.Trades, r.Accounts, r.Keys = nil, 0, nil,
		r.Holdings[:0], r.Orders[:0], r.Trades[:0], nil, nil
	r.IDs, r.door, r.place, r.after = r.IDs[:0], nil, false, 0
	return r
}

// keptRows bounds the memory that a pooled read keeps.
const keptRows = 4096

// Free gives an answered read back to the pool. A private one holds its place among its account's
// until then.
func (r *Read) Free() {
	r.leavePlace()
	r.dropLongLists()
	reads.Put(r)
}

func (r *Read) dropLongLists() {
	if cap(r.Orders) > keptRows {
		r.Orders = nil
	}
	if cap(r.IDs) > keptRows {
		r.IDs = nil
	}
	if cap(r.Trades) > keptRows {
		r.Trades = nil
	}
	if cap(r.Withdraws) > keptRows {
		r.Withdraws = nil
	}
	if cap(r.Holders) > keptRows {
		r.Holders = nil
	}
}

// Answer ends a read whose answer is in it.
func (r *Read) Answer() {
	if r.stage.CompareAndSwap(readSent, readAnswered) ||
		r.stage.CompareAndSwap(readWaiting, readAnswered) {
		r.reply <- struct{}{}
		return
	}
	r.drop()
}

// Urgent implements mailbox.Urgent: the answer to a command waits for no other read.
func (r *Read) Urgent() bool { return r.FollowUp }

// Key returns the key of a private read, and the nonce that the read takes.
func (r *Read) Key() (key *directory.Key, nonce uint64) { return r.key, r.nonce }

// Park says that an actor keeps the read. If the handler has left, so it stays.
func (r *Read) Park() { r.stage.CompareAndSwap(readSent, readWaiting) }

// Unpark ends Park for a read that is about to be sent on. It is answered from a state at or above
// the sequence after.
func (r *Read) Unpark(after uint64) {
	r.stage.CompareAndSwap(readWaiting, readSent)
	r.after = after
}

// left says that nobody waits for the answer any more.
func (r *Read) left() bool { return r.stage.Load() >= readLeft }

// drop is the end of a read that was left: what it still holds is given back.
func (r *Read) drop() {
	if r.stage.Load() == readLeft {
		r.leavePlace()
		r.door.EndRead(r.FollowUp)
	}
}

// leave is for the handler whose time is up; false: the answer is there. While the read is in a
// mailbox it keeps places in the limits, its own and its account's, until it is dropped or
// answered: so no mailbox has more reads than there are places. One that an actor keeps costs
// nobody anything any more but its pointer.
func (r *Read) leave() bool {
	places := r.door.readers(r.FollowUp)
	places.Add(1) // the handler's own is given back by the handler
	if r.stage.CompareAndSwap(readSent, readLeft) {
		return true
	}
	places.Add(-1)
	if !r.stage.CompareAndSwap(readWaiting, readForgone) {
		return false
	}
	r.leavePlace()
	r.Holdings, r.Orders, r.IDs, r.Trades, r.Withdraws, r.Holders, r.LastTrades, r.Image = nil, nil,
		nil, nil, nil, nil, nil, nil
	return true
}

func (r *Read) leavePlace() {
	if r.place {
		r.place = false
		r.door.private.end(r.key.Account.ID)
	}
}

// from fills the answer. What is missing in it is in the store, once its watermark is at needs.
func (r *Read) from(c *Side) (needs uint64) {
	s := c.state
	r.Seq = s.Seq()
	switch r.Kind {
	case ReadWallet:
		r.Holdings = append(r.Holdings[:0], s.Account(r.Account).Wallet.Holdings()...)
	case ReadOrders:
		a := s.Account(r.Account)
		if !r.ClientID.IsZero() {
			return r.named(c, a)
		}
		r.openOrders(s, a)
		return r.Seq
	case ReadOpenIDs:
		r.openIDs(s)
		return r.Seq
	case ReadOrder:
		return r.order(c)
	case ReadClientID:
		r.ID, _ = s.Account(r.Account).ClientIDs.Order(r.ClientID)
	case ReadTrades:
		if r.Complete = c.tradesOf(r.Pair).page(r); !r.Complete {
			return r.Seq
		}
	case ReadHistory:
		return r.Seq
	case ReadLevels, ReadDepth, ReadTicker, ReadCandles:
		c.view(r)
	case ReadAccounts:
		all := s.Accounts()
		for _, a := range first(all[min(r.ID, uint64(len(all))):], r.Limit) {
			r.Accounts = append(r.Accounts, AccountInfo{a.ID, a.Name, a.Email, a.Frozen})
		}
	case ReadKeys:
		for _, n := range s.Account(r.Account).Keys {
			k := s.Keys()[n-1]
			r.Keys = append(r.Keys, KeyInfo{k.Key.Key, s.Account(k.Account).Name, k.Permissions,
				k.Allow, k.Revoked})
		}
	case ReadWithdraws:
		r.pendingWithdraws(s)
		return r.Seq
	case ReadWithdraw:
		w := s.Withdraw(r.ID)
		if w == nil {
			return r.Seq
		}
		r.Withdraws = append(r.Withdraws, *w)
	case ReadFees:
		r.Fees = maps.Clone(s.Account(r.Account).Fees())
	case ReadOutbox:
		r.outbox(s)
	case ReadOwner:
		r.Account = owner(s, r.ID)
	case ReadHolders:
		r.holders(s)
	case ReadAccount:
		r.account(s)
	case ReadStatement:
		r.statement(s)
		return r.Seq
	case ReadImage:
		r.Image = s.AppendTo(nil)
		return r.Seq
	case ReadHash:
		r.Hash, r.Err = s.Hash(), s.Check()
	}
	return 0
}

// openIDs reads the ids of an account's open orders, newest first.
func (r *Read) openIDs(s *state.State) {
	for o := range s.Account(r.Account).Open.NewestOf(r.openFilter()) {
		if len(r.IDs) >= r.Limit {
			break
		}
		r.IDs = append(r.IDs, o.ID)
	}
}

// order reads one order, open or closed of late. Of an older one the store knows at the sequence
// that order returns.
func (r *Read) order(c *Side) (needs uint64) {
	a := c.state.Account(r.Account)
	o, p, ok := c.state.OpenOrder(a, r.ID)
	if ok {
		r.Orders = append(r.Orders, openRow(a, o, p.Number))
	} else if closed := c.recent.find(r.Account, r.ID); closed != nil {
		r.Orders = append(r.Orders, *closed)
	} else {
		return c.recent.evicted
	}
	return 0
}

// outbox reads the mails behind one, with the accounts that they are for.
func (r *Read) outbox(s *state.State) {
	for m := range s.MailsAfter(r.ID) {
		if len(r.Mails) == r.Limit {
			break
		}
		r.Mails = append(r.Mails, *m)
		a := s.Account(m.Withdraw.Account)
		r.Accounts = append(r.Accounts, AccountInfo{a.ID, a.Name, a.Email, a.Frozen})
	}
}

// statement reads what an account has, if it is named, and how far the lists of the history go.
func (r *Read) statement(s *state.State) {
	if a := s.AccountByName(r.Name); a != nil {
		r.Account = a.ID
		r.Holdings = append(r.Holdings[:0], a.Wallet.Holdings()...)
		counted := a.ID
		if a.Name == directory.FeeAccount {
			counted = 0
		}
		r.TradeCount = s.TradeCount(counted)
	}
	for _, p := range s.Pairs() {
		r.LastTrades = append(r.LastTrades, p.LastTrade())
	}
	_, _, r.LastDeposit = s.LastIDs()
}

func first[T any](list []T, n int) []T { return list[:min(n, len(list))] }

func (r *Read) pendingWithdraws(s *state.State) {
	var ids []uint64
	if r.Account == 0 {
		for id := range s.Withdraws() {
			ids = append(ids, id)
		}
	} else {
		for _, w := range s.Account(r.Account).Withdraws() {
			ids = append(ids, w.ID)
		}
	}
	slices.SortFunc(ids, func(a, b uint64) int { return cmp.Compare(b, a) })
	for _, id := range ids {
		w := s.Withdraw(id)
		if len(r.Withdraws) >= r.Limit {
			return
		}
		if (r.Before == 0 || w.ID < r.Before) && (r.Currency == 0 || w.Currency == r.Currency) {
			r.Withdraws = append(r.Withdraws, *w)
		}
	}
}

func owner(s *state.State, order uint64) uint32 {
	for _, p := range s.Pairs() {
		if o, ok := p.Book.Get(order); ok {
			return o.Account
		}
	}
	return 0
}

func (r *Read) holders(s *state.State) {
	has := func(a *state.Account) bool {
		for o := range a.Open.Newest() {
			if r.Pair == 0 || o.Pair == r.Pair {
				return true
			}
		}
		return false
	}
	if r.Name != "" {
		if a := s.AccountByName(r.Name); a != nil {
			if r.Account = a.ID; has(a) {
				r.Holders = append(r.Holders, a.ID)
			}
		}
		return
	}
	for _, a := range s.Accounts() {
		if has(a) {
			r.Holders = append(r.Holders, a.ID)
		}
	}
}

func (r *Read) account(s *state.State) {
	a := s.AccountByName(r.Name)
	if a == nil {
		return
	}
	r.Account = a.ID
	r.Accounts = append(r.Accounts, AccountInfo{a.ID, a.Name, a.Email, a.Frozen})
	r.Holdings = append(r.Holdings[:0], a.Wallet.Holdings()...)
	r.Open = a.Open.Len()
	for _, w := range slices.Backward(a.Withdraws()) {
		r.Withdraws = append(r.Withdraws, *w)
	}
	r.openOrders(s, a)
}

// named looks an order up by its client order id. While the account has not closed more orders than
// are remembered, that is all there is, and the answer is complete without a search in the history.
func (r *Read) named(c *Side, a *state.Account) (needs uint64) {
	id, taken := a.ClientIDs.Order(r.ClientID)
	if o, p, ok := c.state.OpenOrder(a, id); ok {
		r.Orders = append(r.Orders, openRow(a, o, p.Number))
	}
	if closed, _ := a.ClientIDs.State(); closed > ledger.RememberedOrders {
		return r.Seq
	}
	r.Complete = true
	if !taken || len(r.Orders) > 0 {
		return 0
	}
	if row := c.recent.find(a.ID, id); row != nil {
		r.Orders = append(r.Orders, *row)
		return 0
	}
	r.ID = id
	return c.recent.evicted
}

// openOrders looks up only what it answers: what is skipped or does not pass costs a few
// nanoseconds.
func (r *Read) openOrders(s *state.State, a *state.Account) {
	skip := r.Offset
	for open := range a.Open.NewestOf(r.openFilter()) {
		switch {
		case len(r.Orders) >= r.Limit:
			return
		case skip > 0:
			skip--
		default:
			o, p, _ := s.OpenOrder(a, open.ID)
			r.Orders = append(r.Orders, openRow(a, o, p.Number))
		}
	}
}

func (r *Read) openFilter() ledger.OpenFilter {
	return ledger.OpenFilter{Before: r.Before, Pair: r.Pair, Side: r.Side}
}

func openRow(a *state.Account, o trading.Order, pair uint16) persistence.Order {
	return persistence.Order{ID: o.ID, Account: a.ID, Pair: pair, Side: o.Side,
		Status: persistence.StatusActive, Price: o.Price,
		Amount: o.Amount, Remaining: o.Remaining, TimeUs: o.TimeUs,
		ClientID: a.ClientIDs.Of(o.ID).String()}
}
