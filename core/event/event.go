package event

import (
	"encoding/hex"
	"errors"
	"fmt"

	"exchange/core/money"
	"exchange/core/trading"
)

// A Kind is the type of a record. The numbers are stored: never reuse or change one. 4, 10 and 15
// are earlier forms of keys, withdrawals and freezes; reading one fails.
type Kind uint8

// The kinds of records.
const (
	KindCurrency   Kind = 1 // a currency is assigned its number
	KindPair       Kind = 2 // a pair is assigned its number
	KindAccount    Kind = 3 // an account is opened
	KindKeyRevoked Kind = 5 // an API key is revoked
	KindDeposit    Kind = 6 // an account is credited from outside
	KindOrder      Kind = 7 // an order was accepted, with its trades
	KindCancel     Kind = 8 // an open order was cancelled by its owner
	KindRefusal    Kind = 9 // a command was refused after its nonce was taken

	KindWithdrawalStatus Kind = 11 // a withdrawal gets its next status
	KindCodeRefused      Kind = 12 // a withdrawal was confirmed with a wrong or expired code
	KindMailed           Kind = 13 // a mail of the outbox was sent, or abandoned
	KindHalt             Kind = 14 // trading on a pair is halted or resumed
	KindMaintenance      Kind = 16 // the exchange enters or leaves maintenance
	// an account's own fees in a pair are set or removed
	KindFees Kind = 17
	// the history is assigned an id: codes and mails of other histories are void
	KindHistory Kind = 18

	KindStop         Kind = 19 // an order was accepted and waits for its trigger
	KindTriggered    Kind = 20 // a waiting order entered the book, with its trades
	KindAmended      Kind = 21 // an open order was changed, with its trades
	KindExpired      Kind = 22 // open orders expired
	KindSwitch       Kind = 23 // a dead man's switch was armed, disarmed or fired
	KindSettings     Kind = 24 // an account's order settings changed
	KindKey          Kind = 25 // an API key is made, or its secret is sealed again
	KindSwitchCancel Kind = 26 // a dead man's switch cancelled an open order
	// an order with instructions was accepted, with its trades
	KindInstructed Kind = 27

	KindNote       Kind = 28 // an operator's action outside the state
	KindWithdrawal Kind = 29 // a withdrawal is requested, its money reserved
	KindFreeze     Kind = 30 // an account is frozen or unfrozen
	// an operator's correction: money leaves the account without a payout
	KindAdjusted Kind = 31
	// an account's e-mail address changes; its money is held for a while
	KindEmail         Kind = 32
	KindAccountClosed Kind = 33 // an empty account closes, and all its keys
)

// A kindInfo describes the records of a kind.
type kindInfo struct {
	name string
	// payload returns the part that is the payload, as a wire value; nil: the kind has its own
	// codec, because its records are frequent, or refuse values that the part's type allows.
	payload func(*Record) any
	// withheld returns the text withheld from observers; nil: none.
	withheld func(*Record) *string
}

var kindInfos = [...]kindInfo{
	KindCurrency: {name: "currency", payload: func(r *Record) any { return &r.Currency }},
	KindPair:     {name: "pair", payload: func(r *Record) any { return &r.NewPair }},
	KindAccount: {name: "account", payload: func(r *Record) any { return &r.Account },
		withheld: func(r *Record) *string { return &r.Account.Email }},
	KindKeyRevoked: {name: "key revoked"},
	KindDeposit: {name: "deposit",
		withheld: func(r *Record) *string { return &r.Deposit.Reference }},
	KindOrder:            {name: "order"},
	KindCancel:           {name: "cancel"},
	KindRefusal:          {name: "refusal"},
	KindWithdrawalStatus: {name: "withdraw moved"},
	KindCodeRefused: {name: "code refused",
		payload: func(r *Record) any { return &r.CodeRefused }},
	KindMailed: {name: "mailed", payload: func(r *Record) any { return &r.Mailed },
		withheld: func(r *Record) *string { return &r.Mailed.Error }},
	KindHalt:         {name: "halt", payload: func(r *Record) any { return &r.Halt }},
	KindMaintenance:  {name: "maintenance"},
	KindFees:         {name: "fees"},
	KindHistory:      {name: "history"},
	KindStop:         {name: "stop"},
	KindTriggered:    {name: "triggered"},
	KindAmended:      {name: "amended"},
	KindExpired:      {name: "expired"},
	KindSwitch:       {name: "switch"},
	KindSettings:     {name: "settings"},
	KindKey:          {name: "key"},
	KindSwitchCancel: {name: "swept"},
	KindInstructed:   {name: "order with instructions"},
	KindNote:         {name: "note", withheld: func(r *Record) *string { return &r.Note }},
	KindWithdrawal:   {name: "withdraw"},
	KindFreeze:       {name: "freeze", payload: func(r *Record) any { return &r.Freeze }},
	KindAdjusted:     {name: "adjustment"},
	KindEmail: {name: "e-mail address",
		withheld: func(r *Record) *string { return &r.Email.Address }},
	KindAccountClosed: {name: "account closed",
		payload: func(r *Record) any { return &r.AccountClosed }},
}

// newestKind is the highest kind that this program reads.
const newestKind = uint64(len(kindInfos) - 1)

// info returns the description of a kind, zero for an unknown one.
func (k Kind) info() (i kindInfo) {
	if int(k) < len(kindInfos) {
		i = kindInfos[k]
	}
	return i
}

func (k Kind) String() string {
	if name := k.info().name; name != "" {
		return name
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// A Record is one record, decoded. Kind selects the parts in use; the others hold values of earlier
// use. Decoding reuses the memory of a Record.
type Record struct {
	Kind     Kind
	Pair     uint16 // 0: none
	TimeUs   int64  // microseconds since the Unix epoch; never falls within a pair
	Operator string // operator who requested it; "": none

	Currency   Currency
	NewPair    Pair
	Account    Account
	Key        Key
	KeyRevoked KeyRevoked
	Deposit    Deposit
	Order      Order
	Cancel     Cancel
	Refusal    Refusal

	Withdrawal       Withdrawal
	WithdrawalStatus WithdrawalStatus
	CodeRefused      CodeRefused
	Adjusted         Adjusted
	Email            Email
	AccountClosed    AccountClosed
	Mailed           Mailed
	Halt             Halt
	Freeze           Freeze
	Maintenance      Maintenance
	Fees             Fees
	History          HistoryID
	Note             string // the operator's action, in words: 1 to MaxNote bytes

	// Beside Order, of KindInstructed, KindStop, KindTriggered and KindAmended:
	Instructions trading.Instructions
	Trigger      trading.Trigger // of KindStop; and of KindAmended, if the order still waits for it
	Triggered    Triggered
	Amended      Amended

	Expired  []Expired // 1 to MaxExpired
	Switch   Switch
	Settings Settings
}

// Currency assigns a currency its number, permanently.
type Currency struct {
	Number uint16 // dense from 1
	Code   string
}

// Pair assigns a pair its number, permanently.
type Pair struct {
	Number uint16 // dense from 1
	Name   string
	Base   uint16 // currency numbers
	Quote  uint16
}

// Account opens an account.
type Account struct {
	ID    uint32 // dense from 1
	Name  string
	Email string // may be empty
}

// Permissions of an API key, as bits.
const (
	PermissionRead     uint8 = 1
	PermissionTrade    uint8 = 2
	PermissionWithdraw uint8 = 4
	AllPermissions           = PermissionRead | PermissionTrade | PermissionWithdraw
)

// Key makes an API key. A later Key of the same number replaces the sealed secret with one sealed
// by another server key; everything else must be equal.
type Key struct {
	Number      uint32 // dense from 1
	Account     uint32
	Key         string // the public part
	Permissions uint8
	Allow       []string // CIDR prefixes; empty: from everywhere
	SealedBy    uint64   // id of the server key that sealed the secret
	Sealed      []byte   // the secret, encrypted and authenticated
	// NonceWindow is the number of greatest nonces kept for a key for parallel use, 1 to
	// MaxParallel; 0: the key's nonces must grow.
	NonceWindow uint16
}

// MaxParallel bounds the nonces that a key for parallel use keeps: 8 bytes of memory each, in its
// account's wallet and in the fold.
const MaxParallel = 1024

// Bound returns the bytes that authenticate the seal of a key's secret: number, account, name,
// permissions, allow-list, and the number of nonces kept for parallel use. Two keys that differ in
// any of these have different bytes. A seal moved to another key, or stored with other rights, does
// not open.
func (k *Key) Bound() []byte {
	b := append(make([]byte, 0, 128), "exchange api key\n"...)
	b = text(uv(uv(b, uint64(k.Number)), uint64(k.Account)), k.Key)
	b = uv(append(b, k.Permissions), atMost(len(k.Allow), MaxAllow))
	for _, a := range k.Allow {
		b = text(b, a)
	}
	if k.NonceWindow > 0 {
		b = uv(b, uint64(k.NonceWindow))
	}
	return b
}

// KeyRevoked revokes an API key.
type KeyRevoked struct {
	Number uint32
	Lost   bool // no server key opens its secret any more; its owner gets a mail
}

// Deposit credits an account from outside.
type Deposit struct {
	ID        uint64 // dense from 1
	Account   uint32
	Currency  uint16
	Amount    money.Amount
	Reference string // unique over the engine, permanently
}

// Order is an accepted order with all its immediate effects.
type Order struct {
	ID            uint64
	Account       uint32
	Key           uint32 // number of the API key; 0: an operator's order
	Nonce         uint64
	Side          trading.Side
	RestCancelled bool // the rest was cancelled at once: at max_fills, or by its instructions
	Price         money.Price
	Amount        money.Amount // amount of the request
	Remaining     money.Amount // rest after the trades; waits in the book unless RestCancelled
	FeeAccount    uint32       // account that receives the fees; 0: no fees
	ClientID      ClientID
	Trades        []Trade
}

// Taker returns the order of a record whose order has entered matching, and may have trades; nil
// for other kinds.
func (r *Record) Taker() *Order {
	switch r.Kind {
	case KindOrder, KindInstructed, KindTriggered, KindAmended:
		return &r.Order
	}
	return nil
}

// Rests reports whether the order is in the book after the record.
func (o *Order) Rests() bool { return o.Remaining > 0 && !o.RestCancelled }

// Trade is one execution of a resting order by the record's order, at the resting price. It moves
// Amount of the base currency and Price x Amount of the quote currency between the two accounts. It
// also moves fees, from the money that each account receives, to the fee account. It cannot express
// any other movement.
type Trade struct {
	ID             uint64
	Maker          uint64 // order id
	MakerAccount   uint32
	Price          money.Price
	Amount         money.Amount
	MakerRemaining money.Amount
	TakerFee       money.Balance // fee in the currency that the taker receives
	MakerFee       money.Balance // fee in the currency that the maker receives
}

// Cancel removes an order from the book, at its owner's request.
type Cancel struct {
	ID        uint64 // id of the cancel itself, from the order id sequence
	Order     uint64
	Account   uint32
	Key       uint32
	Nonce     uint64
	Side      trading.Side
	Price     money.Price
	Remaining money.Amount // open amount, which is released
	// Reason is of KindSwitchCancel: CancelledSwitch or CancelledDisconnect. Key is then the key of
	// the switch, and Nonce 0.
	Reason trading.Reason
}

// Reasons of a refusal, by which a command is rejected. The numbers are stored.
const (
	RefusedNonce        uint8 = 1 // nonce not above the key's last
	RefusedFunds        uint8 = 2 // available money below the order's need
	RefusedClientID     uint8 = 3 // client_order_id used by another order
	RefusedNotOpen      uint8 = 4 // order to cancel not open
	RefusedKey          uint8 = 5 // key revoked while the command was in flight
	RefusedAccountLimit uint8 = 6 // most open orders of an account reached
	RefusedBookLimit    uint8 = 7 // most orders of a book reached

	RefusedHalted   uint8 = 8  // trading on the pair halted
	RefusedFrozen   uint8 = 9  // account frozen while the command was in flight
	RefusedNoOrders uint8 = 10 // no orders to cancel
	// no such withdrawal of the account, or none in a status that allows it
	RefusedWithdrawal      uint8 = 11
	RefusedTries           uint8 = 12 // too many wrong codes
	RefusedWithdrawalLimit uint8 = 13 // most pending withdrawals of an account reached

	RefusedAccountBookLimit uint8 = 14 // most open orders of an account in one book reached
)

// Reasons why the book refuses orders with instructions.
const (
	RefusedWouldTrade   uint8 = 15 // a post-only order that would trade at once
	RefusedWouldTrigger uint8 = 16 // a trigger that the last price has reached already
	RefusedPriceBand    uint8 = 17 // a price too far from the last one
	// most waiting orders of a book, or of an account in it, reached
	RefusedStopLimit uint8 = 18
	// most orders with an end of a book, or of an account in it, reached
	RefusedGTDLimit uint8 = 19
	RefusedRules    uint8 = 20 // an amend with a field that its order or pair does not allow
)

// RefusedWithdrawalID refuses a withdrawal whose client_id belongs to another one of the account.
const RefusedWithdrawalID uint8 = 21

// RefusedHeld refuses a withdrawal, its confirmation or its approval, because the account's e-mail
// address changed recently.
const RefusedHeld uint8 = 22

// RefusalName returns the name of a reason in the statistics and the log of actions: lower case
// words, joined by underscores; "" for an unknown reason.
func RefusalName(reason uint8) string {
	if int(reason) < len(refusalNames) {
		return refusalNames[reason]
	}
	return ""
}

var refusalNames = [...]string{RefusedNonce: "nonce", RefusedFunds: "funds",
	RefusedClientID: "client_order_id", RefusedNotOpen: "not_open", RefusedKey: "key_revoked",
	RefusedAccountLimit: "account_limit", RefusedBookLimit: "book_limit",
	RefusedHalted: "halted", RefusedFrozen: "frozen", RefusedNoOrders: "no_orders",
	RefusedWithdrawal: "withdraw", RefusedTries: "tries", RefusedWithdrawalLimit: "withdraw_limit",
	RefusedAccountBookLimit: "account_book_limit", RefusedWouldTrade: "would_trade",
	RefusedWouldTrigger: "would_trigger", RefusedPriceBand: "price_band",
	RefusedStopLimit: "too_many_stops", RefusedGTDLimit: "too_many_gtd",
	RefusedRules: "rules", RefusedWithdrawalID: "withdraw_client_id",
	RefusedHeld: "held"}

// Refusal is a command whose only effect is its used nonce.
type Refusal struct {
	Account uint32
	Key     uint32
	Nonce   uint64
	Reason  uint8
}

// Statuses of a withdrawal, as the API numbers them.
const (
	WithdrawalNew       uint8 = 10 // to be confirmed with the mailed code
	WithdrawalVerified  uint8 = 20 // to be approved
	WithdrawalApproved  uint8 = 30
	WithdrawalRefused   uint8 = 40
	WithdrawalCancelled uint8 = 50
	// of an adjustment, which has the form of a finished withdrawal
	WithdrawalAdjusted uint8 = 60
)

// WithdrawalStatusName returns the name of a withdrawal's status shown to users.
func WithdrawalStatusName(status uint8) string {
	switch status {
	case WithdrawalNew:
		return "new"
	case WithdrawalVerified:
		return "verified"
	case WithdrawalApproved:
		return "approved"
	case WithdrawalRefused:
		return "refused"
	case WithdrawalAdjusted:
		return "adjusted"
	}
	return "canceled"
}

// Withdrawal requests money; its amount is reserved, and its code is mailed to the account.
type Withdrawal struct {
	ID       uint64 // unique; grows within an account
	Account  uint32
	Key      uint32
	Nonce    uint64
	Currency uint16
	Amount   money.Amount
	Address  string // destination address in the currency's network
	// ClientID is the client's own id, unique among the account's pending withdrawals and its
	// newest ones with an id; zero: none.
	ClientID ClientID
}

// KeptWithdrawalIDs is how many of an account's newest withdrawals with a client id keep it
// reserved. Older ones keep theirs while they are pending.
const KeptWithdrawalIDs = 1000

// WithdrawalStatus gives a pending withdrawal its next status. An approved amount leaves the
// account; a refused or cancelled one is released.
type WithdrawalStatus struct {
	ID       uint64
	Account  uint32
	Key      uint32 // number of the API key; 0: an operator's change
	Nonce    uint64
	Currency uint16
	Amount   money.Amount
	To       uint8
	Details  string // for the owner: the reason of a refusal, or the reference of an approval

	// DespiteFreeze marks an approval by an operator aware of the account's freeze. It is set for
	// each approval of a frozen account, and for no other record.
	DespiteFreeze bool
}

// Adjusted takes available money out of an account, as an operator's correction. It is listed as a
// finished withdrawal, so it has a withdrawal id and client id.
type Adjusted struct {
	ID       uint64
	Account  uint32
	Currency uint16
	Amount   money.Amount // amount taken from the account
	Reason   string       // for the owner
	ClientID ClientID     // the operator's reference; not zero
}

// Email changes an account's e-mail address. No money is withdrawn before HoldEndsUs, and earlier
// mailed codes are void.
type Email struct {
	Account    uint32
	Address    string
	HoldEndsUs int64 // end of the hold, Unix microseconds
}

// AccountClosed closes an account without money, orders or pending withdrawals. Its keys are
// revoked, and its name stays taken.
type AccountClosed struct{ Account uint32 }

// CodeRefused counts a wrong code, or has a new code mailed because the last one expired.
type CodeRefused struct {
	Withdrawal uint64
	Account    uint32
	Key        uint32
	Nonce      uint64
	Expired    bool
	Tries      uint32 // wrong codes of the withdrawal so far, this one included
}

// Mailed removes a mail from the outbox.
type Mailed struct {
	ID    uint64
	Error string // why the mail was abandoned; "": it was sent
}

// Halt halts or resumes trading on the record's pair.
type Halt struct {
	Halted bool
}

// Freeze freezes or unfreezes an account.
type Freeze struct {
	Account uint32
	Frozen  bool
}

// Maintenance starts, changes or ends a maintenance.
type Maintenance struct {
	On      bool
	Message string // for clients; may be empty
	Cancels bool   // clients may cancel; only with On
}

// BarsCancels reports whether clients may not even cancel.
func (m *Maintenance) BarsCancels() bool { return m.On && !m.Cancels }

// Mode returns the stored number of a maintenance: 0 off, 1 on, 2 on with cancels allowed.
func (m *Maintenance) Mode() byte {
	switch {
	case m.Cancels && !m.On:
		panic("BUG: there is no maintenance, and clients may cancel in it")
	case m.Cancels:
		return 2
	case m.On:
		return 1
	}
	return 0
}

// MaintenanceOf is the inverse of Mode; false: no such mode.
func MaintenanceOf(mode byte) (m Maintenance, ok bool) {
	return Maintenance{On: mode > 0, Cancels: mode == 2}, mode <= 2
}

// Fees sets an account's own fees in the record's pair. Without Own the pair's usual fees apply
// again.
type Fees struct {
	Account uint32
	Own     bool
	Maker   money.Rate
	Taker   money.Rate
}

// MaxNote bounds a note, in bytes.
const MaxNote = 1024

// HistoryID distinguishes one history of an exchange from every other, including the history that
// it was restored from. The zero HistoryID is none.
type HistoryID [16]byte

// IsZero reports whether h is the zero HistoryID.
func (h HistoryID) IsZero() bool { return h == HistoryID{} }

// String returns the id in hex digits.
func (h HistoryID) String() string { return hex.EncodeToString(h[:]) }

// ClientID is a client_order_id, or the client_id of a withdrawal: up to 36 bytes, comparable,
// without a pointer. The zero ClientID is none.
type ClientID struct {
	n uint8
	b [MaxClientID]byte
}

// MaxClientID is the length of the longest client_order_id.
const MaxClientID = 36

// ErrClientID describes the form of a client_order_id.
var ErrClientID = errors.New("1 to 36 of A-Z, a-z, 0-9, '_' and '-'")

// inClientID is the set of allowed bytes.
var inClientID = func() (t [256]bool) {
	for _, b := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") {
		t[b] = true
	}
	return t
}()

// NewClientID checks and copies s.
func NewClientID[T string | []byte](s T) (ClientID, error) {
	var c ClientID
	if len(s) == 0 || len(s) > MaxClientID {
		return c, ErrClientID
	}
	for i := range len(s) {
		if !inClientID[s[i]] {
			return c, ErrClientID
		}
		c.b[i] = s[i]
	}
	c.n = uint8(len(s))
	return c, nil
}

// Set parses an id like NewClientID; "": the zero ClientID.
func (c *ClientID) Set(text []byte) (err error) {
	if *c = (ClientID{}); len(text) > 0 {
		*c, err = NewClientID(text)
	}
	return err
}

// IsZero reports whether c is the zero ClientID.
func (c ClientID) IsZero() bool { return c.n == 0 }

// HasPrefix reports whether the id starts with another one, which the zero ClientID always does.
func (c ClientID) HasPrefix(p ClientID) bool {
	return c.n >= p.n && string(c.b[:p.n]) == string(p.b[:p.n])
}

// Append writes the id as text to dst.
func (c *ClientID) Append(dst []byte) []byte { return append(dst, c.b[:c.n]...) }

func (c ClientID) String() string { return string(c.b[:c.n]) }

// Hash returns the id's FNV-1a hash, which stands for the id where only 8 bytes are kept.
func (c ClientID) Hash() uint64 {
	h := uint64(0xcbf29ce484222325)
	for _, b := range c.b[:c.n] {
		h = (h ^ uint64(b)) * 0x100000001b3
	}
	return h
}
