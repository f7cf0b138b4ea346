package memory

import (
	"maps"
	"slices"
	"sync"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// A Disk holds the data of one engine. Stores are opened on it; it outlives them.
type Disk struct {
	// Durable is called with each batch that has become durable, in order; nil: no function is
	// called. It must not use the disk.
	Durable func(prev, next uint64, batch []byte)

	mu      sync.Mutex
	live    *data // with every write
	durable *data // with those that a crash does not undo
	journal wlog  // batches, and trims of them
	rest    wlog  // all other writes
}

// A wlog holds the writes of one log that are in live and not in durable. The two logs share no
// data, so their writes may reach the disk in any order.
type wlog []func(*data)

// data is the content of a disk.
type data struct {
	epoch     uint32
	token     persistence.Token
	owner     string
	beats     uint64 // of the owner
	heartbeat persistence.Heartbeat
	accepted  uint64 // persistence.Beat
	seq       uint64 // of the last record
	digest    uint64 // of the last batch; 0: none
	batches   []stored
	snapshots [2]image // the newest first
	watermark uint64
	nonces    map[string]uint64
	wallets   map[uint32]persistence.Wallet
	trades    []persistence.Trade // each list by id
	orders    []persistence.Order
	deposits  []persistence.Deposit
	// references are the deposits again, by their references.
	references  map[string]persistence.Deposit
	withdrawals []persistence.Withdrawal
	candles     map[chart][]persistence.Candle // by time
	actions     []persistence.Action
}

type stored struct {
	prev, next, digest uint64
	batch              []byte
}

// An image is a snapshot; the zero image is none.
type image struct {
	name   codec.Snapshot
	chunks [][]byte
	there  bool
}

type chart struct {
	pair  uint16
	frame uint8
}

// NewDisk returns an empty disk.
func NewDisk() *Disk { return &Disk{live: newData(), durable: newData()} }

func newData() *data {
	return &data{nonces: map[string]uint64{}, wallets: map[uint32]persistence.Wallet{},
		candles:    map[chart][]persistence.Candle{},
		references: map[string]persistence.Deposit{}}
}

// clone shares only parts that are never changed in place.
func (d *data) clone() *data {
	c := *d
	c.batches, c.nonces, c.wallets = slices.Clone(d.batches), maps.Clone(d.nonces),
		maps.Clone(d.wallets)
	c.trades, c.orders, c.deposits = slices.Clone(d.trades), slices.Clone(d.orders),
		slices.Clone(d.deposits)
	c.withdrawals, c.actions = slices.Clone(d.withdrawals), slices.Clone(d.actions)
	c.candles, c.references = maps.Clone(d.candles), maps.Clone(d.references)
	for k, list := range c.candles {
		c.candles[k] = slices.Clone(list)
	}
	return &c
}

// write changes the disk; the change is durable with the next sync of its log. mu is held.
func (d *Disk) write(log *wlog, change func(*data)) {
	change(d.live)
	*log = append(*log, change)
}

// sync makes all writes of some logs durable. mu is held.
func (d *Disk) sync(logs ...*wlog) {
	for _, log := range logs {
		d.keep(log, len(*log))
	}
}

// keep makes the first unsynced writes of a log durable, and drops the others. mu is held.
func (d *Disk) keep(log *wlog, n int) {
	kept := (*log)[:min(n, len(*log))]
	*log = nil
	for _, change := range kept {
		before := d.durable.seq
		change(d.durable)
		if last := len(d.durable.batches) - 1; d.Durable != nil && last >= 0 &&
			d.durable.seq > before {
			b := &d.durable.batches[last]
			d.Durable(b.prev, b.next, b.batch)
		}
	}
}

// Unsynced returns how many writes a crash may undo, of the journal and of the rest.
func (d *Disk) Unsynced() (journal, rest int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.journal), len(d.rest)
}

// Crash loses all unsynced writes, except for a number of first ones of the journal and of the
// rest. Open stores see the remaining writes.
func (d *Disk) Crash(journal, rest int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keep(&d.journal, journal)
	d.keep(&d.rest, rest)
	d.live = d.durable.clone()
}

// DamageSnapshot flips one bit of the newest snapshot, which must exist.
func (d *Disk) DamageSnapshot() {
	d.mu.Lock()
	defer d.mu.Unlock()
	chunks := d.live.snapshots[0].chunks // which the durable image shares
	chunks[len(chunks)-1][10] ^= 0x40
}

// Last returns the last sequence of the journal that is durable.
func (d *Disk) Last() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.durable.seq
}
