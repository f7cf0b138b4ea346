package actors

import (
	"context"
	"encoding"
	"errors"
	"sync"
	"time"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/persistence"
)

// lentKeys are the keys whose signatures an observer can verify: those that were used of late. The
// material comes from the member that is followed, and is forgotten when the key ends, its account
// is frozen, or another member is followed. A nil one has none. Any goroutine may use it.
type lentKeys struct {
	source lentSource
	fresh  func() any    // material of no key, which becomes that of one
	seq    func() uint64 // at which all keys are known that any caller knows
	wait   time.Duration

	mu   sync.Mutex
	link uint64              // that they came over; guarded by mu
	of   map[uint32]*lentKey // by number; guarded by mu
}

// A lentSource is the way to the member that is followed.
type lentSource interface {
	// Link tells one connection to a member from each other one; 0: there is none.
	Link() uint64
	Material(ctx context.Context, key uint32, after uint64) ([]byte, error)
}

// maxLentKeys bounds the keys of an observer, some hundred bytes each.
const maxLentKeys = 20_000

// A lentKey was asked for.
type lentKey struct {
	done     chan struct{} // closed once the rest is there
	material any
	err      error
}

func newLentKeys(n *Node) *lentKeys {
	return &lentKeys{source: n.observer, seq: n.committed.Released,
		fresh: func() any { return n.opts.KeyMaterial([]byte("to be replaced")) },
		wait:  n.opts.Timing.OwnerStale, of: map[uint32]*lentKey{}}
}

// material returns what verifies the signatures of a live key. At most one question for a key is on
// its way.
func (l *lentKeys) material(key *directory.Key) (any, error) {
	k, asks := l.find(key.Number)
	if asks {
		l.ask(key.Number, k)
	}
	<-k.done // no longer than wait
	switch {
	case key.Revoked():
		return nil, committed.ErrKeyRevoked
	case k.err != nil:
		return nil, k.err
	}
	return k.material, nil
}

// find returns a key of the member that is followed now, and whether the caller is to ask for it.
func (l *lentKeys) find(number uint32) (k *lentKey, asks bool) {
	link := l.source.Link()
	l.mu.Lock()
	defer l.mu.Unlock()
	if link != l.link {
		clear(l.of)
		l.link = link
	}
	if k = l.of[number]; k != nil {
		return k, false
	}
	for other := range l.of {
		if len(l.of) < maxLentKeys {
			break
		}
		delete(l.of, other)
	}
	k = &lentKey{done: make(chan struct{})}
	l.of[number] = k
	return k, true
}

// ask asks for a key. One that did not come is asked for again.
func (l *lentKeys) ask(number uint32, k *lentKey) {
	ctx, cancel := context.WithTimeout(context.Background(), l.wait)
	defer cancel()
	defer close(k.done)
	b, err := l.source.Material(ctx, number, l.seq())
	if errors.Is(err, persistence.ErrNotFound) {
		err = committed.ErrKeyRevoked
	}
	if err == nil {
		material := l.fresh()
		if into, ok := material.(encoding.BinaryUnmarshaler); !ok {
			err = errNotPortable
		} else if err = into.UnmarshalBinary(b); err == nil {
			k.material = material
			return
		}
	}
	k.err = err
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[number] == k {
		delete(l.of, number)
	}
}

// drop forgets keys.
func (l *lentKeys) drop(numbers ...uint32) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, number := range numbers {
		delete(l.of, number)
	}
}
