package ratelimit

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"time"
)

// A Limiter holds the buckets of one kind of client. Any goroutine may use it. A nil Limiter limits
// nothing.
type Limiter struct {
	interval int64 // nanoseconds for one token
	depth    int64 // nanoseconds for a whole bucket
	burst    int
	seed     maphash.Seed
	shift    int // of a hash, to the number of its shard
	shards   []shard
}

// An Answer is the state of a client's bucket after a request. Without a limit all numbers are 0.
type Answer struct {
	OK        bool
	Limit     int // tokens of a full bucket
	Remaining int // tokens left
	Reset     int // seconds until the bucket is full, rounded up
	// seconds until the bucket has the requested tokens, rounded up and at least 1; 0 if OK
	RetryAfter int
}

// leastShard is the least number of buckets of a shard, if the limiter has that many. An attacker
// must fill that many, and one eviction visits at most twice that number.
const leastShard = 1024

// New makes a limiter of rate tokens a second, burst tokens a bucket and at most most buckets. A
// rate of 0 is no limit: the result is nil. The time for one token is rounded up to a whole
// nanosecond. Each bucket takes about 45 bytes when it comes into use.
func New(rate, burst, most int) *Limiter {
	if rate == 0 {
		return nil
	}
	if rate < 0 || burst < 1 || most < 1 {
		panic("BUG: a rate limit must not be negative, and needs a burst and room for buckets")
	}
	interval := (int64(time.Second) + int64(rate) - 1) / int64(rate)
	l := &Limiter{interval: interval, depth: interval * int64(burst), burst: burst,
		seed: maphash.MakeSeed()}
	exponent := 0
	if most >= leastShard {
		exponent = bits.Len(uint(most/leastShard)) - 1
	}
	l.shift = 64 - exponent
	l.shards = make([]shard, 1<<exponent)
	room := most >> exponent
	for i := range l.shards {
		s := &l.shards[i]
		s.heads = make([]int32, 1<<bits.Len(uint(room)))
		s.buckets, s.order = make([]bucket, 0, room), make([]item, 0, room)
	}
	return l
}

// Changed returns a limiter with other numbers whose clients owe the same number of tokens as in l,
// at most a whole bucket: a change gives no client a fresh burst. Tokens taken from l meanwhile may
// be forgotten. Without a limit before or after the change, it is New.
func (l *Limiter) Changed(rate, burst, most int, now int64) *Limiter {
	to := New(rate, burst, most)
	if l == nil || to == nil || len(l.shards) != len(to.shards) ||
		cap(l.shards[0].buckets) != cap(to.shards[0].buckets) {
		return to
	}
	to.seed = l.seed
	for i := range l.shards {
		to.shards[i].take(&l.shards[i], now, func(owed int64) int64 {
			// Two factors below 2^30 each: an interval is at most a second.
			return min(to.depth, owed/l.interval*to.interval+
				owed%l.interval*to.interval/l.interval)
		})
	}
	return to
}

// take copies the buckets of a shard of the same size. owes converts a debt, and never reverses the
// order of two debts: so the heap stays one.
func (s *shard) take(from *shard, now int64, owes func(int64) int64) {
	later := func(full int64) int64 { return now + owes(max(0, full-now)) }
	from.mu.Lock()
	defer from.mu.Unlock()
	copy(s.heads, from.heads)
	for _, b := range from.buckets {
		b.full = later(b.full)
		s.buckets = append(s.buckets, b)
	}
	for _, o := range from.order {
		o.full = later(o.full)
		s.order = append(s.order, o)
	}
}

// Take takes a token from a client's bucket, if the bucket has one.
func (l *Limiter) Take(client uint64, now int64) Answer { return l.TakeMany(client, 1, now) }

// TakeMany takes n tokens from a client's bucket, if the bucket has that many. If n is more than a
// whole bucket, it takes a whole one.
func (l *Limiter) TakeMany(client uint64, n int, now int64) Answer {
	if l == nil {
		return Answer{OK: true}
	}
	cost := l.interval * int64(min(n, l.burst))
	h := maphash.Comparable(l.seed, client)
	s := &l.shards[h>>l.shift]
	s.mu.Lock()
	b := s.find(client, h)
	full := now
	if b != nil {
		full = max(full, b.full)
	}
	ok := full+cost-now <= l.depth
	if ok {
		full += cost
		if b == nil {
			b = s.place(l, h, now)
			b.client, b.full = client, full
		}
		b.full = full
	}
	s.mu.Unlock()
	return l.answer(ok, full-now, cost)
}

// answer returns the state of a bucket that owes owed nanoseconds, after a request for a cost.
func (l *Limiter) answer(ok bool, owed, cost int64) Answer {
	a := Answer{OK: ok, Limit: l.burst, Remaining: int(max(0, l.depth-owed) / l.interval),
		Reset: seconds(owed)}
	if !ok {
		a.RetryAfter = seconds(owed + cost - l.depth)
	}
	return a
}

func seconds(ns int64) int { return int((ns + int64(time.Second) - 1) / int64(time.Second)) }

// GiveBack puts n tokens that were taken back into a client's bucket.
func (l *Limiter) GiveBack(client uint64, n int, now int64) {
	if l == nil {
		return
	}
	h := maphash.Comparable(l.seed, client)
	s := &l.shards[h>>l.shift]
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.find(client, h); b != nil {
		// The order needs no update: as the time moves back, the bucket is met later than it could
		// be, and that forgets nothing too early.
		b.full = max(now, b.full-l.interval*int64(min(n, l.burst)))
	}
}

// A shard is a hash table of buckets and their order of eviction, both in memory of a fixed size.
type shard struct {
	mu      sync.Mutex
	heads   []int32 // by hash: the first bucket of a chain, +1, or 0; a power of two
	buckets []bucket
	order   []item
	_       [128 - 8 - 3*24]byte // two cache lines: neighbours must not wait for each other
}

type bucket struct {
	client uint64
	full   int64 // time at which the bucket will be full, in nanoseconds
	next   int32 // bucket in the chain, +1; 0 ends it
}

// An item of the order, a heap by the time at which a bucket will be full, earliest first. That
// time only grows, and the heap may hold an earlier one. So a hit need not touch the heap, and an
// eviction corrects the items that it meets. Each correction belongs to a hit since the last one.
type item struct {
	full   int64
	bucket int32
}

func (s *shard) find(client, hash uint64) *bucket {
	for i := s.heads[hash&uint64(len(s.heads)-1)]; i != 0; {
		b := &s.buckets[i-1]
		if b.client == client {
			return b
		}
		i = b.next
	}
	return nil
}

// place returns a bucket for a new client, linked under the client's hash. The caller sets its
// client and time.
func (s *shard) place(l *Limiter, hash uint64, now int64) *bucket {
	full := now + l.interval
	var i int32
	if len(s.buckets) < cap(s.buckets) {
		i = int32(len(s.buckets))
		s.buckets = append(s.buckets, bucket{})
		s.order = append(s.order, item{full, i})
		s.up(len(s.order) - 1)
	} else {
		i = s.evict(l, now)
		s.order[0].full = full
		s.down()
	}
	head := &s.heads[hash&uint64(len(s.heads)-1)]
	s.buckets[i].next = *head
	*head = i + 1
	return &s.buckets[i]
}

// evict unlinks the bucket nearest to full, and leaves it at the top of the order.
func (s *shard) evict(l *Limiter, now int64) int32 {
	for {
		top := &s.order[0]
		b := &s.buckets[top.bucket]
		if b.full <= now || b.full == top.full {
			s.unlink(maphash.Comparable(l.seed, b.client), top.bucket+1)
			return top.bucket
		}
		top.full = b.full
		s.down()
	}
}

func (s *shard) unlink(hash uint64, link int32) {
	at := &s.heads[hash&uint64(len(s.heads)-1)]
	for *at != link {
		at = &s.buckets[*at-1].next
	}
	*at = s.buckets[link-1].next
}

// up moves an item of the order towards the top; down moves the top item towards the end.
func (s *shard) up(i int) {
	for o := s.order; i > 0 && o[i].full < o[(i-1)/2].full; i = (i - 1) / 2 {
		o[i], o[(i-1)/2] = o[(i-1)/2], o[i]
	}
}

func (s *shard) down() {
	o, i := s.order, 0
	for {
		child := 2*i + 1
		if child >= len(o) {
			return
		}
		if child+1 < len(o) && o[child+1].full < o[child].full {
			child++
		}
		if o[i].full <= o[child].full {
			return
		}
		o[i], o[child] = o[child], o[i]
		i = child
	}
}
