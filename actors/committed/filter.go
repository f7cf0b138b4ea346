package committed

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"exchange/core/event"
)

// An idFilter is a set of the client order ids of closed orders, for a quick "there is none". It
// never says so of an id that it has. It may take an id for one that it has: about one in a hundred
// for 10 bits an id. So its size is fixed, and a full one only sends more looks to the store.
//
// It is a blocked Bloom filter: an id has eight bits, one in each word of one cache line. There are
// two of them, generations. Ids go to the current one. When that has been filled for as long as ids
// are taken, it becomes the previous one, and what was the previous one is forgotten. The committed
// actor adds ids and changes generations; any goroutine may look.
//
// A nil filter excludes nothing.
type idFilter struct {
	seed   maphash.Seed // of this process: no client can choose ids that fill one place
	holdUs int64        // for how long an id is taken; 0: for good
	blocks int          // of each generation

	current, previous atomic.Pointer[[]filterBlock]
	// The filter has the ids of all orders that were placed from there on, as far as they had
	// closed at the sequence that was folded before a look.
	since atomic.Int64

	mu      sync.Mutex // held to change generations, and by the filler
	began   int64      // guarded by mu: time of the newest record when current began
	dropped int64      // guarded by mu: from there on nothing was forgotten
	whole   bool       // guarded by mu: the orders of before this start are in
}

type filterBlock [8]atomic.Uint64

const blockBytes = 64

// newFilter makes a filter that takes so much memory; nil for none. nowUs is the time of the newest
// record.
func newFilter(size int, hold time.Duration, nowUs int64) *idFilter {
	blocks := size / 2 / blockBytes
	if blocks == 0 {
		return nil
	}
	f := &idFilter{seed: maphash.MakeSeed(), holdUs: hold.Microseconds(), blocks: blocks,
		began: nowUs, dropped: math.MinInt64}
	f.current.Store(f.generation())
	f.previous.Store(new([]filterBlock))
	f.since.Store(math.MaxInt64)
	return f
}

func (f *idFilter) generation() *[]filterBlock {
	g := make([]filterBlock, f.blocks)
	return &g
}

// holdsFrom returns the time from which on orders are to be in the filter, which begins now.
func (f *idFilter) holdsFrom(nowUs int64) int64 {
	if f.holdUs == 0 {
		return math.MinInt64
	}
	return nowUs - f.holdUs
}

// excludes reports whether no order that was placed after a time, and that had closed at the
// sequence that was folded before the call, has an id.
func (f *idFilter) excludes(account uint32, id event.ClientID, placedAfterUs int64) bool {
	if f == nil || f.since.Load() > placedAfterUs+1 {
		return false
	}
	var name [event.MaxClientID]byte
	h := hashName(f.seed, account, id.Append(name[:0]))
	// The current generation comes first: if it has ended by now, it is the previous one.
	if f.in(*f.current.Load(), h) || f.in(*f.previous.Load(), h) {
		return false
	}
	return f.since.Load() <= placedAfterUs+1 // nothing was forgotten meanwhile
}

// add takes in the id of an order that closes. Only the committed actor may call it.
func (f *idFilter) add(account uint32, id string) {
	if f != nil {
		f.set(*f.current.Load(), hashName(f.seed, account, id))
	}
}

// addStored takes in the id of an order that closed before this start.
func (f *idFilter) addStored(account uint32, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.add(account, id)
}

// filled says that the filter has all orders of before this start that were placed from a time on.
func (f *idFilter) filled(fromUs int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropped, f.whole = max(f.dropped, fromUs), true
	f.since.Store(f.dropped)
}

// rotationSlackUs is how much longer than needed a generation is kept: the clocks of commands may
// be that far behind the newest record.
const rotationSlackUs = int64(time.Minute / time.Microsecond)

// age begins a new generation if it is time. nowUs is the time of the newest record. Only the
// committed actor may call it.
func (f *idFilter) age(nowUs int64) {
	if f == nil || f.holdUs == 0 || nowUs < f.began+f.holdUs+rotationSlackUs {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	// What is forgotten had closed by then, and so was placed by then.
	f.dropped = max(f.dropped, f.began+1)
	if f.whole {
		f.since.Store(f.dropped)
	}
	f.began = nowUs
	f.previous.Store(f.current.Load())
	f.current.Store(f.generation())
}

func hashName[T string | []byte](seed maphash.Seed, account uint32, id T) uint64 {
	var b [4 + event.MaxClientID]byte
	binary.LittleEndian.PutUint32(b[:], account)
	return maphash.Bytes(seed, b[:4+copy(b[4:], id)])
}

// block returns the place of an id among the blocks.
func (f *idFilter) block(h uint64) int {
	hi, _ := bits.Mul64(h, uint64(f.blocks))
	return int(hi)
}

// bit returns the bit of an id in word n of its block. The product mixes the hash anew, so that ids
// of one block differ in their bits.
func bit(h uint64, n int) uint64 { return 1 << (h * blockMix >> (6*n + 16) & 63) }

const blockMix = 0x9e3779b97f4a7c15 // odd, so that no bit of the hash is lost

func (f *idFilter) in(g []filterBlock, h uint64) bool {
	if len(g) == 0 {
		return false
	}
	b := &g[f.block(h)]
	for n := range b {
		if b[n].Load()&bit(h, n) == 0 {
			return false
		}
	}
	return true
}

func (f *idFilter) set(g []filterBlock, h uint64) {
	b := &g[f.block(h)]
	for n := range b {
		b[n].Or(bit(h, n))
	}
}
