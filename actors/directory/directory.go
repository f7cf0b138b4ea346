package directory

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"maps"
	"net/netip"
	"regexp"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
)

// A Pair is one market, as gateway handlers see it.
type Pair struct {
	Name        string
	Base, Quote string // currency codes
	// The units of orders never change: see PairRules.
	PricePrecision, AmountPrecision int
	PriceTick                       money.Price
	AmountStep                      money.Amount

	rules                   atomic.Pointer[PairRules]
	Number                  uint16
	BaseNumber, QuoteNumber uint16
	Book                    *actor.PID // the actor
	halted                  atomic.Bool
}

// NewPair makes a pair with its rules. A tick or a step that is not configured is one unit of the
// last digit.
func NewPair(r PairRules, number, base, quote uint16) *Pair {
	p := &Pair{Name: r.Name, Base: r.Base, Quote: r.Quote, PricePrecision: r.PricePrecision,
		AmountPrecision: r.AmountPrecision, Number: number, BaseNumber: base, QuoteNumber: quote,
		PriceTick:  cmp.Or(r.PriceTick, money.PriceUnit(r.PricePrecision)),
		AmountStep: cmp.Or(r.AmountStep, money.AmountUnit(r.AmountPrecision))}
	p.SetRules(r)
	return p
}

// Rules returns the rules in effect. Read only; a decision that needs several loads them once.
func (p *Pair) Rules() *PairRules { return p.rules.Load() }

// SetRules replaces the rules in effect. It ignores names, digits, tick and step: those of a pair
// never change.
func (p *Pair) SetRules(r PairRules) {
	r.Name, r.Base, r.Quote = p.Name, p.Base, p.Quote
	r.PricePrecision, r.AmountPrecision = p.PricePrecision, p.AmountPrecision
	r.PriceTick, r.AmountStep = p.PriceTick, p.AmountStep
	p.rules.Store(&r)
}

// Halted reports whether the pair refuses orders.
func (p *Pair) Halted() bool { return p.halted.Load() }

// Halt halts or resumes the pair.
func (p *Pair) Halt(halted bool) { p.halted.Store(halted) }

// PairRules are the configured rules of a pair.
type PairRules struct {
	Name              string
	Base, Quote       string // currency codes
	PricePrecision    int    // fractional digits of an order's price
	AmountPrecision   int    // fractional digits of an order's amount
	MinimumOrderSize  money.Amount
	MaximumOrderSize  money.Amount
	MinimumOrderValue money.Balance // lower bound of price x amount
	PriceTick         money.Price   // prices are its multiples; 0: by PricePrecision
	AmountStep        money.Amount  // amounts are its multiples; 0: by AmountPrecision
	PriceBand         money.Rate    // largest distance of a price beyond the last trade; 0: any
	// largest distance of a market order beyond the best price
	MarketCollar money.Rate
	StopCollar   money.Rate // largest distance beyond its trigger of a stop without a price
	Fees         state.FeeRates
}

// A Currency is one configured currency with its number.
type Currency struct {
	Code              string
	Sign              string
	Number            uint16
	MinimumWithdrawal money.Amount
	// form of withdrawal addresses, anchored at both ends; nil: any that passes ValidAddress
	Addresses *regexp.Regexp
}

// An Account is the entry of an account in the directory.
type Account struct {
	ID       uint32
	Name     string
	wallet   atomic.Pointer[actor.PID]
	began    atomic.Uint64
	InFlight atomic.Int32 // commands between admission and release
	frozen   atomic.Bool
	hasEmail atomic.Bool // the address itself is in the state: there are many accounts
	// own rates, by pair; never changed in place; nil: none
	fees atomic.Pointer[map[uint16]state.FeeRates]
}

// Wallet returns the actor, nil until something needs it.
func (a *Account) Wallet() *actor.PID { return a.wallet.Load() }

// SetWallet sets the actor, once.
func (a *Account) SetWallet(pid *actor.PID) { a.wallet.Store(pid) }

// WalletBegan returns the sequence of the state that the wallet started from; 0: not started yet.
func (a *Account) WalletBegan() uint64 { return a.began.Load() }

// WalletBegins notes that the wallet started from the state of a sequence. The wallet calls it.
func (a *Account) WalletBegins(seq uint64) { a.began.Store(seq) }

// HasEmail reports whether the account has an e-mail address.
func (a *Account) HasEmail() bool { return a.hasEmail.Load() }

// Frozen reports whether the account may do nothing at the moment.
func (a *Account) Frozen() bool { return a.frozen.Load() }

// Fees returns the account's own rates by pair, nil if it has none. Read only.
func (a *Account) Fees() map[uint16]state.FeeRates {
	if own := a.fees.Load(); own != nil {
		return *own
	}
	return nil
}

// FeeAccount is the name of the ordinary account that fees are credited to.
const FeeAccount = "fees"

// A Key is an API key that may act for an account. Everything but its revocation is fixed.
type Key struct {
	Number      uint32
	Permissions uint8
	NonceWindow int // number of nonces kept for parallel use; 0: nonces must grow
	revoked     atomic.Bool
	Public      string
	Account     *Account
	Allow       []netip.Prefix // empty: from everywhere
	// Material is derived from the secret by Options.KeyMaterial, to verify signatures; nil: this
	// process is an observer, and does not have it.
	Material any
	Signed   *Signed // the one request that the key is used for; nil: see With
	of       *Key    // see With
}

// Revoked reports whether the key is revoked.
func (k *Key) Revoked() bool { return k.revoked.Load() || k.of != nil && k.of.Revoked() }

// A Directory finds accounts and keys. Handlers, books and the journal's writer read it. The
// committed side writes it, in its turns: its content is durable.
type Directory struct {
	seed   maphash.Seed
	shards [64]keyShard
	fees   atomic.Uint32 // id of FeeAccount; 0: there is no such account, and no fees
	own    atomic.Bool   // some account has own rates, or had

	mu       sync.RWMutex
	accounts []*Account // by id-1; guarded by mu
}

type keyShard struct {
	mu   sync.RWMutex
	keys map[string]*Key // guarded by mu
}

// New makes a directory without accounts and keys.
func New() *Directory {
	d := &Directory{seed: maphash.MakeSeed()}
	for i := range d.shards {
		d.shards[i].keys = make(map[string]*Key)
	}
	return d
}

func (d *Directory) shard(key []byte) *keyShard {
	return &d.shards[maphash.Bytes(d.seed, key)%uint64(len(d.shards))]
}

// Key returns the live API key with that public part, nil if there is none.
func (d *Directory) Key(public []byte) *Key {
	s := d.shard(public)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.keys[string(public)]
}

// AddKey publishes a key to handlers. material is Key.Material.
func (d *Directory) AddKey(k *event.Key, material any) error {
	e := &Key{Number: k.Number, Public: k.Key, Account: d.Account(k.Account),
		Permissions: k.Permissions, NonceWindow: int(k.NonceWindow), Material: material}
	for _, a := range k.Allow {
		p, err := netip.ParsePrefix(a)
		if err != nil {
			return fmt.Errorf("key %s of account %s: %w", k.Key, e.Account.Name, err)
		}
		e.Allow = append(e.Allow, p)
	}
	s := d.shard([]byte(k.Key))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[k.Key] = e
	return nil
}

// RemoveKey revokes a key.
func (d *Directory) RemoveKey(k *Key) {
	k.revoked.Store(true)
	s := d.shard([]byte(k.Public))
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.keys, k.Public)
}

// Update copies an account of the state into its entry. An account without an entry must have the
// next id.
func (d *Directory) Update(a *state.Account) {
	entry, own := d.entry(a), a.Fees()
	entry.hasEmail.Store(a.Email != "")
	entry.frozen.Store(a.Frozen)
	if len(own) > 0 || entry.Fees() != nil {
		fees := maps.Clone(own) // the state changes its own map
		entry.fees.Store(&fees)
		d.own.Store(true)
	}
}

func (d *Directory) entry(a *state.Account) *Account {
	d.mu.Lock()
	defer d.mu.Unlock()
	if int(a.ID) == len(d.accounts)+1 {
		d.accounts = append(d.accounts, &Account{ID: a.ID, Name: a.Name})
		if a.Name == FeeAccount {
			d.fees.Store(a.ID)
		}
	}
	return d.accounts[a.ID-1]
}

// FeeAccount returns the id of the account with that name, 0 if there is none.
func (d *Directory) FeeAccount() uint32 { return d.fees.Load() }

// OwnFees reports whether an account may have own rates.
func (d *Directory) OwnFees() bool { return d.own.Load() }

// Accounts returns the number of accounts; their ids are 1 to that.
func (d *Directory) Accounts() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.accounts)
}

// Account returns the account with that id, which must exist.
func (d *Directory) Account(id uint32) *Account {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.accounts[id-1]
}
