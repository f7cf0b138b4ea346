package gateway

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"exchange/actors"
	"exchange/core/event"
	"exchange/core/trading"
)

func (t *turns) waiting() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, own := range t.owners {
		n += own.queries
	}
	return n
}

func TestAnAccountHasOneLongQueryAtATimeAndAllTakeTurns(t *testing.T) {
	all := &turns{places: make(chan struct{}, 1), owners: map[asker]*ownTurn{}}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ann, ben := asker{account: 1}, asker{address: 1}
	step := func(s *scan) <-chan error {
		done := make(chan error, 1)
		go func() { done <- s.goOn() }()
		return done
	}
	first, second, other := &scan{turns: all, ctx: ctx, asker: ann},
		&scan{turns: all, ctx: ctx, asker: ann}, &scan{turns: all, ctx: ctx, asker: ben}
	if err := <-step(first); err != nil {
		t.Fatal(err)
	}
	if err := <-step(first); err != nil { // nobody else wants its place
		t.Fatal(err)
	}
	hers := step(second)
	eventually(t, "her second waits for her first", func() bool { return all.waiting() == 2 })
	bens := step(other)
	eventually(t, "his waits for its turn", func() bool { return all.waiting() == 3 })
	first.end()
	if err := <-bens; err == nil {
		other.end()
	} else {
		t.Error(err)
	}
	if err := <-hers; err != nil {
		t.Error(err)
	}
	last := &scan{turns: all, ctx: ctx}
	late := step(last)
	cancel()
	if err := <-late; err == nil {
		t.Error("one goes on whose time is over")
	}
	last.end()
	second.end()
	if len(all.owners) != 0 || len(all.places) != 0 {
		t.Errorf("%d owners and %d places are left", len(all.owners), len(all.places))
	}
}

// A query that examines many rows waits for its turn, however few pass its filter; others do not.
func TestOnlyLongQueriesOfTheHistoryWaitForTheirTurn(t *testing.T) {
	h := newHarness(t, nil)
	const orders, keys = 1200, 10
	h.account("alice")
	h.account("bob")
	for name, currency := range map[string]string{"alice": "BTC", "bob": "USDT"} {
		if _, err := h.deposit(name, "100000", currency, name); err != nil {
			t.Fatal(err)
		}
	}
	var placing sync.WaitGroup
	for i := range keys {
		h.key("alice", strconv.Itoa(i), event.AllPermissions)
		placing.Go(func() {
			key := h.engine.Key([]byte("key-" + strconv.Itoa(i)))
			for n := range uint64(orders / keys) {
				c, err := h.engine.Place(key, n+1,
					&actors.OrderWish{Pair: h.engine.Pairs()[0], Side: trading.Sell, Price: 1e8,
						Amount: 1e8})
				if err != nil {
					t.Error(err)
					return
				}
				c.Free()
			}
		})
	}
	placing.Wait()
	if a := h.post("bob", "/api/v1/order/",
		order("buy", "BTC_USDT", strconv.Itoa(orders), "1")); a.status != 201 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for range cap(longScans.places) { // others are at work
		longScans.places <- struct{}{}
	}
	long := make(chan answer, 1)
	go func() {
		long <- h.do("GET", "/api/v1/orders/own/?status=2", "", "", signed("alice", 1, "")...)
	}()
	eventually(t, "the long query waits", func() bool { return longScans.waiting() == 1 })
	for _, who := range []string{"0", "bob"} { // of the same account, and of another
		if a := h.do("GET", "/api/v1/orders/own/?limit=5&status=3", "", "",
			signed(who, 1000, "")...); a.status != 200 {
			t.Errorf("a short query: %d %s", a.status, a.body)
		}
	}
	if len(long) != 0 {
		t.Error("the long query did not wait")
	}
	for range cap(longScans.places) {
		<-longScans.places
	}
	want(t, "the long query", <-long, 200, "[]")
	if n := longScans.waiting(); n != 0 {
		t.Errorf("%d long queries are left", n)
	}
}
