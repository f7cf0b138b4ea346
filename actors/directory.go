package actors

import (
	"hash/maphash"
	"net/netip"
	"regexp"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/core/money"
	"exchange/core/state"
)

// A Pair is one market, as gateway handlers see it.
type Pair struct {
	PairRules
	Number                  uint16
	BaseNumber, QuoteNumber uint16
	pid                     *actor.PID // its book
	halted                  atomic.Bool
}

// Halted reports whether no orders are taken.
func (p *Pair) Halted() bool { return p.halted.Load() }

// PairRules are what the configuration says of a pair.
type PairRules struct {
	Name              string
	Base, Quote       string // currency codes
	PricePrecision    int    // fractional digits of an order's price
	AmountPrecision   int    // fractional digits of an order's amount
	MinimumOrderSize  money.Amount
	MaximumOrderSize  money.Amount
	MinimumOrderValue money.Balance // of price x amount
	Fees              state.FeeRates
}

// A Currency is one currency of the configuration with its number.
type Currency struct {
	Code            string
	Sign            string
	Number          uint16
	MinimumWithdraw money.Amount
	// of withdraws, anchored at both ends; nil: every one that ValidAddress takes
	Addresses *regexp.Regexp
}

// An Account is the entry of an account in the directory.
type Account struct {
	ID       uint32
	Name     string
	HasEmail bool         // the state has it: there are many accounts
	pid      *actor.PID   // its wallet
	wallet   *wallet      // belongs to that actor
	inFlight atomic.Int32 // commands between admission and release
	frozen   atomic.Bool
	// its own, by pair; never changed in place; nil: none
	fees atomic.Pointer[map[uint16]state.FeeRates]
}

// Frozen reports whether the account may do nothing at the moment.
func (a *Account) Frozen() bool { return a.frozen.Load() }

// A Key is an API key that may act for an account. Everything but its end is fixed when it is made.
type Key struct {
	Number      uint32
	Permissions uint8
	revoked     atomic.Bool
	Public      string
	Account     *Account
	Allow       []netip.Prefix // empty: from everywhere
	// Material is what Options.KeyMaterial made of the secret, to verify signatures with.
	Material any
}

// Revoked reports whether the key has ended.
func (k *Key) Revoked() bool { return k.revoked.Load() }

// A directory finds accounts and keys. Handlers and the journal's writer read it, the registry
// actor writes it.
type directory struct {
	seed   maphash.Seed
	shards [64]keyShard

	mu       sync.RWMutex
	accounts []*Account // by id-1; guarded by mu
}

type keyShard struct {
	mu   sync.RWMutex
	keys map[string]*Key // guarded by mu
}

func newDirectory() *directory {
	d := &directory{seed: maphash.MakeSeed()}
	for i := range d.shards {
		d.shards[i].keys = make(map[string]*Key)
	}
	return d
}

func (d *directory) shard(key []byte) *keyShard {
	return &d.shards[maphash.Bytes(d.seed, key)%uint64(len(d.shards))]
}

func (d *directory) key(public []byte) *Key {
	s := d.shard(public)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.keys[string(public)]
}

func (d *directory) addKey(k *Key) {
	s := d.shard([]byte(k.Public))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[k.Public] = k
}

func (d *directory) removeKey(k *Key) {
	k.revoked.Store(true)
	s := d.shard([]byte(k.Public))
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.keys, k.Public)
}

func (d *directory) addAccount(a *Account) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if int(a.ID) != len(d.accounts)+1 {
		panic("BUG: accounts are not added in the order of their ids")
	}
	d.accounts = append(d.accounts, a)
}

// account is the account with that id, which must exist.
func (d *directory) account(id uint32) *Account {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.accounts[id-1]
}
