package ratelimit

import (
	"fmt"
	"hash/maphash"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// newRandom returns a source whose seed is printed, and taken from SEED to replay a failure.
func newRandom(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	if s := os.Getenv("SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, seed))
}

// buckets returns the number of buckets in use.
func (l *Limiter) buckets() (n int) {
	for i := range l.shards {
		n += len(l.shards[i].buckets)
	}
	return n
}

// A model is the naive limiter: for each client it holds the exact number of tokens and the time of
// that number. It remembers the same number of clients as the limiter's shard.
type model struct {
	perNs   *big.Rat // tokens a nanosecond
	burst   *big.Rat
	most    int
	clients map[uint64]*tokens
}

type tokens struct {
	count *big.Rat
	at    int64
}

func newModel(rate, burst, most int) *model {
	interval := (1_000_000_000 + rate - 1) / rate
	return &model{big.NewRat(1, int64(interval)), big.NewRat(int64(burst), 1), most,
		map[uint64]*tokens{}}
}

func (m *model) count(t *tokens, now int64) *big.Rat {
	c := new(big.Rat).Mul(m.perNs, new(big.Rat).SetInt64(now-t.at))
	if c.Add(c, t.count); c.Cmp(m.burst) > 0 {
		c.Set(m.burst)
	}
	return c
}

func (m *model) of(client uint64, now int64) *big.Rat {
	if t := m.clients[client]; t != nil {
		return m.count(t, now)
	}
	return new(big.Rat).Set(m.burst)
}

func (m *model) look(client uint64, now int64) Answer { return m.answer(m.of(client, now)) }

func (m *model) take(client uint64, now int64) Answer {
	c := m.of(client, now)
	one := big.NewRat(1, 1)
	before := m.answer(c)
	if !before.OK {
		return before
	}
	if m.clients[client] == nil && len(m.clients) == m.most {
		m.forget(now)
	}
	c.Sub(c, one)
	m.clients[client] = &tokens{c, now}
	after := m.answer(c)
	after.OK, after.RetryAfter = true, 0
	return after
}

// forget drops the client with the most tokens.
func (m *model) forget(now int64) {
	var richest uint64
	var most *big.Rat
	for client, t := range m.clients {
		if c := m.count(t, now); most == nil || c.Cmp(most) > 0 {
			richest, most = client, c
		}
	}
	delete(m.clients, richest)
}

// answer is for a client with c tokens.
func (m *model) answer(c *big.Rat) Answer {
	one := big.NewRat(1, 1)
	a := Answer{OK: c.Cmp(one) >= 0, Limit: int(m.burst.Num().Int64()),
		Remaining: int(new(big.Int).Div(c.Num(), c.Denom()).Int64())}
	a.Reset = m.secondsUntil(c, m.burst)
	if !a.OK {
		a.RetryAfter = m.secondsUntil(c, one)
	}
	return a
}

// secondsUntil returns the time in which c grows to target, in whole seconds rounded up.
func (m *model) secondsUntil(c, target *big.Rat) int {
	wait := new(big.Rat).Sub(target, c)
	wait.Quo(wait, new(big.Rat).Mul(m.perNs, big.NewRat(1_000_000_000, 1)))
	up := new(big.Int).Add(wait.Num(), new(big.Int).Sub(wait.Denom(), big.NewInt(1)))
	return int(up.Div(up, wait.Denom()).Int64())
}

func TestRandomTakesAnswerAsTheExactModelDoes(t *testing.T) {
	r := newRandom(t)
	for _, x := range []struct{ rate, burst, most int }{{100, 40, 8}, {100, 40, 24}, {1, 1, 5},
		{1, 3, 8}, {3, 7, 8}, {7, 2, 1}, {1000, 10, 20}, {999_983, 50, 16}} {
		l, m := New(x.rate, x.burst, x.most), newModel(x.rate, x.burst, x.most)
		interval := int64(time.Second) / int64(x.rate)
		clients := x.most + x.most/2 + 1
		now, refused := int64(0), 0
		for i := range 8_000 {
			// In turns come a crowd that empties its buckets and a crowd that lets most of them
			// fill up.
			pause := interval / int64(8*clients)
			if i/2000%2 == 1 {
				pause = interval
			}
			now += 1 + r.Int64N(pause+1)
			if r.IntN(4000) == 0 { // all buckets are full
				now += int64(x.burst) * interval * 2
			}
			client := uint64(r.IntN(clients))
			if r.IntN(3) == 0 { // some come much more often
				client %= 3
			}
			var got, want Answer
			what := "take"
			if r.IntN(8) == 0 {
				what = "look"
				got, want = l.look(client, now), m.look(client, now)
			} else {
				got, want = l.Take(client, now), m.take(client, now)
			}
			if got != want {
				t.Fatalf("%+v, step %d, %s of %d at %d:\n got %+v\nwant %+v", x, i, what, client,
					now, got, want)
			}
			if !got.OK {
				refused++
			}
		}
		if refused < 20 || l.buckets() != x.most {
			t.Errorf("%+v: %d were refused and %d buckets are in use; this proves nothing", x,
				refused, l.buckets())
		}
	}
}

func TestEarlierClockGivesNoTokens(t *testing.T) {
	l, slow := New(100, 200, 10), New(1, 3, 10)
	l.Take(1, 1e6)
	if got := l.look(1, 1e6-1); got != (Answer{OK: true, Limit: 200, Remaining: 198, Reset: 1}) {
		t.Errorf("a little earlier: %+v", got)
	}
	for range 3 {
		slow.Take(1, 0)
	}
	if got := slow.Take(1, -int64(5*time.Second)); got !=
		(Answer{Limit: 3, Reset: 8, RetryAfter: 6}) {
		t.Errorf("a slow one, far earlier: %+v", got)
	}
}

func TestARateOfZeroIsNoLimit(t *testing.T) {
	l := New(0, 0, 0)
	for range 1000 {
		if a := l.Take(1, 0); a != (Answer{OK: true}) || l.look(1, 0) != a {
			t.Fatalf("%+v", a)
		}
	}
}

func TestTheNumberOfBucketsIsNeverAboveTheLimit(t *testing.T) {
	for _, most := range []int{1, 2, 1000, 1023, 1024, 2047, 2048, 3000, 100_000} {
		l := New(1, 10, most)
		for client := range uint64(3 * most) {
			l.Take(client, 0)
		}
		if n := l.buckets(); n > most || n < most*9/10 {
			t.Errorf("%d buckets are in use of %d", n, most)
		}
	}
}

// One client is at the limit and others come for the first time. Meanwhile a million addresses come
// by so fast that every bucket in memory owes something.
func TestAFloodOfAddressesLocksOutNoneAndForgetsNoneAtTheLimit(t *testing.T) {
	const most, flood, burst = 10_000, 1_000_000, 5
	// two kinds of client; those of the flood are small numbers
	const greedy, honest = 1 << 40, 1 << 41
	l := New(1, burst, most)
	for range burst {
		l.Take(greedy, 0)
	}
	now, client, extra := int64(0), uint64(0), 0
	some := func() {
		for range flood / 2 {
			now += int64(time.Microsecond) // each owes for a second, in which a million come
			client++
			if a := l.Take(client, now); !a.OK {
				t.Fatalf("the new address %d is refused: %+v", client, a)
			}
			if client%100 == 0 {
				if a := l.Take(honest+client, now); !a.OK || a.Remaining != burst-1 {
					t.Fatalf("a client that comes for the first time: %+v", a)
				}
				if l.Take(greedy, now).OK {
					extra++
				}
			}
		}
	}
	if n := testing.AllocsPerRun(1, some); n > 0 { // which runs it twice
		t.Errorf("%v allocations in a flood of %d", n, flood/2)
	}
	if n := l.buckets(); n > most {
		t.Errorf("%d buckets are in use of %d", n, most)
	}
	if extra > 1 { // the flood takes a second, which gives it one token
		t.Errorf("who was at its limit took %d tokens in %v", extra, time.Duration(now))
	}
}

func TestManyGoroutinesTakeExactlyOneBurst(t *testing.T) {
	const clients, burst, workers = 20, 500, 8
	l := New(1, burst, clients)
	var taken [clients]atomic.Int64
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(w)))
			for range clients * burst {
				c := r.IntN(clients)
				l.look(uint64(c), 0)
				if l.Take(uint64(c), 0).OK {
					taken[c].Add(1)
				}
			}
		})
	}
	wait.Wait()
	for c := range taken {
		if n := taken[c].Load(); n != burst {
			t.Errorf("client %d took %d", c, n)
		}
	}
}

// Many goroutines, more clients than places, time that moves: for the race detector.
func TestEvictionsAndTakesAtOnceKeepEveryShardInOrder(t *testing.T) {
	const most = 3000
	l := New(1000, 5, most)
	var now atomic.Int64
	var wait sync.WaitGroup
	for w := range 8 {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(2, uint64(w)))
			for range 20_000 {
				l.Take(uint64(r.IntN(3*most)), now.Add(100))
			}
		})
	}
	wait.Wait()
	for i := range l.shards {
		if err := l.shards[i].check(); err != nil {
			t.Errorf("shard %d: %v", i, err)
		}
	}
}

// check compares the chains, the buckets and the order of a shard.
func (s *shard) check() error {
	linked := 0
	for _, i := range s.heads {
		for ; i != 0; i = s.buckets[i-1].next {
			linked++
		}
	}
	seen := map[int32]bool{}
	for i, x := range s.order {
		if seen[x.bucket] || x.full > s.buckets[x.bucket].full ||
			i > 0 && x.full < s.order[(i-1)/2].full {
			return fmt.Errorf("item %d of the order is wrong: %+v, %+v", i, x, s.buckets[x.bucket])
		}
		seen[x.bucket] = true
	}
	if linked != len(s.buckets) || len(seen) != len(s.buckets) {
		return fmt.Errorf("%d buckets, %d linked, %d in order", len(s.buckets), linked, len(seen))
	}
	return nil
}

func TestAddressesOfOneLinkAreOneClient(t *testing.T) {
	key := func(s string) uint64 { return AddressKey(netip.MustParseAddr(s)) }
	f := func(a, b string, same bool) {
		t.Helper()
		if (key(a) == key(b)) != same {
			t.Errorf("%s and %s: %x and %x", a, b, key(a), key(b))
		}
		network := func(s string) netip.Addr { return Network(netip.MustParseAddr(s)) }
		if (network(a) == network(b)) != same {
			t.Errorf("%s and %s: %s and %s", a, b, network(a), network(b))
		}
	}
	f("192.0.2.1", "192.0.2.1", true)
	f("192.0.2.1", "192.0.2.2", false)
	f("192.0.2.1", "::ffff:192.0.2.1", true)
	f("2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", true)
	f("2001:db8::1", "2001:db8:0:ff::1", true)
	f("2001:db8::1", "2001:db8:0:100::1", false)
	f("fe80::1%eth0", "fe80::2%eth1", true)
	f("0.0.0.0", "::", false)
	f("0.0.0.1", "::1", false)
	f("0.0.0.1", "0:0:0:100::", false)
	if AddressKey(netip.Addr{}) != 0 {
		t.Error("no address")
	}
}

func TestAHitAllocatesNothing(t *testing.T) {
	l, now := New(100, 200, 1000), int64(0)
	a := netip.MustParseAddr("2001:db8::1")
	if n := testing.AllocsPerRun(1000, func() {
		now += 1e6
		l.look(AddressKey(a), now)
		l.Take(AddressKey(a), now)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestManyTokensAtOnceAreAsMuchAsOneByOne(t *testing.T) {
	many, single := New(4, 100, 10), New(4, 100, 10)
	var now int64
	for _, n := range []int{1, 30, 50, 19} {
		a := many.TakeMany(7, n, now)
		var b Answer
		for range n {
			b = single.Take(7, now)
		}
		if a != b || !a.OK {
			t.Errorf("%d at once: %+v, one by one %+v", n, a, b)
		}
	}
	if a := many.TakeMany(7, 9, now); a.OK || a.Remaining != 0 || a.RetryAfter != 3 {
		t.Errorf("9 of none: %+v", a)
	}
	if now += 9 * int64(time.Second) / 4; !many.TakeMany(7, 9, now).OK {
		t.Error("9 after the time in which they come are refused")
	}
	if a := many.TakeMany(8, 1000, now); !a.OK || a.Remaining != 0 {
		t.Errorf("more than a bucket, of a full one: %+v", a)
	}
	if a := many.TakeMany(8, 1000, now); a.OK || a.RetryAfter != 25 {
		t.Errorf("more than a bucket, of an empty one: %+v", a)
	}
}

// look returns the answer of Take without taking: the remaining tokens still include the one in
// question.
func (l *Limiter) look(client uint64, now int64) Answer {
	if l == nil {
		return Answer{OK: true}
	}
	h := maphash.Comparable(l.seed, client)
	s := &l.shards[h>>l.shift]
	s.mu.Lock()
	full := now
	if b := s.find(client, h); b != nil {
		full = max(full, b.full)
	}
	s.mu.Unlock()
	return l.answer(full+l.interval-now <= l.depth, full-now, l.interval)
}
