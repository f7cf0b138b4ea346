package actors

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
)

// Each limit is exact: the last fitting command is accepted, one more is refused, and after one
// completes the next is accepted.

func TestReadsInFlightAreLimitedApartFromCommands(t *testing.T) {
	onGated(t, func(o *Options) {
		o.Limits.Reads, o.Limits.InFlight, o.Limits.InFlightCancels = 3, 1, 0
	}, func(t *testing.T, g *gated) {
		for range 2 {
			g.set(func() { g.applying = true })
			order := g.rest(g.sell(1e5)) // the store's history lags now, and reads of it wait
			var reads []<-chan string
			for range 3 {
				reads = append(reads, g.begin(g.asking(new(committed.Barrier), nil, 0)))
			}
			eventually(t, "three reads are in flight", func() bool {
				return committed.NormalReads(g.e.Door) == 3
			})
			g.ends("read 4 of 3", g.asking(new(committed.NewestTrades), nil, 0), ErrBusy.Error())
			g.ends("a signed one", g.asking(new(committed.Wallet), g.key, g.nonce+1),
				ErrBusy.Error())
			g.ends("a command beside them, with the nonce that the read has not used",
				g.placing(g.sell(1e5)), accepted)
			follow := &committed.OneOrder{Account: 1, ID: order}
			if err := g.e.FollowUp(follow); err != nil || !follow.Found {
				t.Errorf("what completes the answer to a command: %v, %v", follow.Order, err)
			}
			if n := committed.NormalReads(g.e.Door); n != 3 {
				t.Errorf("%d reads are in flight instead of 3", n)
			}
			for range 3 { // these have their own slots
				reads = append(reads, g.begin(func() (*Command, error) {
					return nil, g.e.FollowUp(new(committed.Barrier))
				}))
			}
			eventually(t, "three more are in flight", func() bool {
				return g.e.Stats().ReadsInFlight == 6
			})
			if err := committed.BeginFollowUp(g.e.Door); !errors.Is(err, ErrBusy) {
				t.Errorf("a fourth: %v", err)
			}
			g.set(func() { g.applying = false })
			for _, r := range reads {
				wantOutcome(t, "a read at the limit", <-r, accepted)
			}
		}
	})
}

func TestAbandonedReadsDoNotAccumulate(t *testing.T) {
	onGated(t, func(o *Options) { o.Limits.Reads = 4 }, func(t *testing.T, g *gated) {
		g.set(func() { g.applying = true })
		g.rest(g.sell(1e5))
		g.e.setPatience(time.Millisecond)
		for range 100 {
			g.ends("a read of a history that is held", g.asking(new(committed.Barrier), nil, 0),
				committed.ErrTimeout.Error())
			// one that its handler abandoned in a mailbox keeps its slot until its turn comes
			eventually(t, "the slot is free",
				func() bool { return committed.NormalReads(g.e.Door) == 0 })
		}
		var kept int
		g.e.probe(g.e.work.Fold, func() { kept = committed.Waiting(g.e.committed) })
		if kept > 2*g.o.Limits.Reads {
			t.Errorf("%d reads are kept that their handlers have left", kept)
		}
		g.e.setPatience(time.Minute)
	})
}

// The default of max_fills, with the smallest configurable batches: the unit exceeds the batch
// limit, and goes as one.
func TestAnOrderOfTenThousandFillsIsOneAppend(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		at := fresh(t)
		store := newGate(at())
		most := DefaultLimits.MaxFills
		s := newScribe(t, store)
		s.accounts(2)
		for range most + 1 {
			s.order(1, trading.Sell, 1e8, nil)
		}
		s.flush()
		g := &gated{gate: store, t: t, at: at, o: testOptions(store)}
		g.o.Limits.BatchBytes = 4096
		g.o.Timing.Request, g.o.Timing.Stall = time.Minute, time.Minute
		g.e = start(t, g.o)
		keys := &committed.Keys{Account: 2}
		succeeds(t, g.e.Ask(keys, nil, 0))
		g.key = g.e.Key([]byte(keys.List[0].Key))
		g.set(func() { g.tries = nil })
		c := must[*Command](t)(g.placing(g.buy(1e8, money.Amount(most+1)*coin))())
		if o := &c.Record().Order; len(o.Trades) != most || o.Remaining != coin ||
			!o.RestCancelled {
			t.Fatalf("%d trades, %v remaining, cut %v", len(o.Trades), o.Remaining,
				o.RestCancelled)
		}
		batches := g.batches()
		if len(batches) != 1 || batches[0].Count != 1 ||
			len(batches[0].Records) < 10*g.o.Limits.BatchBytes {
			t.Fatalf("it went in %d batches, the first of %d records and %d bytes", len(batches),
				batches[0].Count, len(batches[0].Records))
		}
		g.ends("the history takes it", g.asking(new(committed.Barrier), nil, 0), accepted)
		trades := 0
		err := committed.History(g.e.Door).Trades(context.Background(),
			persistence.TradeQuery{Pair: 1}, func(*persistence.Trade) bool {
				trades++
				return true
			})
		if err != nil || trades != most {
			t.Errorf("%d trades are in the history, %v", trades, err)
		}
		g.crash()
		g.again() // and the next start reads it
		if got, want := g.funds(2, 1), "1010000/0"; got != want {
			t.Errorf("%s BTC, want %s", got, want)
		}
		g.end()
	})
}

// batches returns the batches of the appends since the gate began to hold, each once.
func (g *gated) batches() (list []event.Batch) {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, data := range g.tries {
		b := must[event.Batch](g.t)(event.OpenBatch(data))
		list = append(list, b)
	}
	return list
}

func TestABatchTakesWholeEntriesUpToItsSize(t *testing.T) {
	head := len(event.BeginBatch(nil))
	onEachStore(t, func(t *testing.T, fresh places) {
		unit := 0 // bytes of an order's record: all are equally long here
		run := func(limit int, want ...uint32) {
			t.Helper()
			g := newGated(t, fresh, func(o *Options) { o.Limits.BatchBytes = limit })
			g.hold()
			held := &heldCommands{g: g}
			held.send(g.placing(g.sell(1e5)))
			eventually(t, "the first is at the store, and the others gather after it", g.held)
			for range 6 {
				held.send(g.placing(g.sell(1e5)))
			}
			held.want(fmt.Sprintf("%d bytes", limit), accepted)
			var counts []uint32
			for _, b := range g.batches() {
				counts = append(counts, b.Count)
				var r event.Record
				n := uint32(0)
				for rest := b.Records; len(rest) > 0; n++ {
					var err error
					if rest, err = r.Decode(rest); err != nil {
						t.Fatalf("%d bytes: a batch does not end with a record: %v", limit, err)
					}
				}
				if n != b.Count {
					t.Errorf("%d bytes: %d records in a batch that should have %d", limit, n,
						b.Count)
				}
				unit = len(b.Records) / int(b.Count)
			}
			if fmt.Sprint(counts) != fmt.Sprint(want) {
				t.Errorf("%d bytes: batches of %v records, want %v", limit, counts, want)
			}
			g.end()
		}
		run(1<<20, 1, 6)
		run(head+3*unit, 1, 3, 3)
		run(head+3*unit-1, 1, 2, 2, 2)
		run(head+unit, 1, 1, 1, 1, 1, 1, 1)
		run(1, 1, 1, 1, 1, 1, 1, 1)
	})
}

// limited wants an operator's command refused for a limit, with this text.
func limited(t *testing.T, what string, got error, text string) {
	t.Helper()
	var refused *RequestError
	if !errors.As(got, &refused) || refused.text != text {
		t.Errorf("%s: %v, want the refusal %q", what, got, text)
	}
}

// operating begins an operator's command that is held at the store, and then another.
func (g *gated) operating(first, second func() error) (<-chan string, <-chan string) {
	g.t.Helper()
	command := func(run func() error) func() (*Command, error) {
		return func() (*Command, error) { return nil, run() }
	}
	one := g.begin(command(first))
	eventually(g.t, "the first is at the store", g.held)
	two := g.begin(command(second))
	eventually(g.t, "two are in flight", func() bool { return g.e.operatorInFlight.Load() == 2 })
	return one, two
}

func TestKeysOfAnAccountAreLimitedAndRevokedOnesDoNotCount(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, func(o *Options) { o.Limits.KeysPerAccount = 3 }) // ann has one
		fund(t, g.e, "ben", nil)
		key := func(name string) error {
			_, err := g.e.CreateKey("test", "ann", name, "secret", event.PermissionRead, nil)
			return err
		}
		succeeds(t, key("key-2"))
		const full = "account ann has 3 keys, no more are allowed: revoke one"
		g.hold() // a key in flight counts, and a refusal for it waits for it
		third, fourth := g.operating(func() error { return key("key-3") }, func() error {
			return key("key-4")
		})
		silent(t, "a refusal for a key that is in flight", fourth)
		g.letGo()
		wantOutcome(t, "key 3 of 3", <-third, accepted)
		wantOutcome(t, "key 4", <-fourth, full)
		if _, err := g.e.CreateKey("test", "ben", "key-of-another", "secret", event.PermissionRead,
			nil); err != nil {
			t.Errorf("another account: %v", err)
		}
		g.hold() // and a key being revoked makes room once durable
		revoked, fifth := g.operating(func() error {
			_, err := g.e.RevokeKey("test", "key-2")
			return err
		}, func() error { return key("key-5") })
		silent(t, "a key instead of one that is being revoked", fifth)
		g.letGo()
		wantOutcome(t, "the revocation of a key", <-revoked, accepted)
		wantOutcome(t, "one in its place", <-fifth, accepted)
		limited(t, "one more", key("key-6"), full)
		g.crash()
		g.again()
		limited(t, "after a restart", key("key-6"), full)
		must[Admin](t)(g.e.RevokeKey("test", "key-3"))
		if err := key("key-6"); err != nil {
			t.Errorf("instead of one that was revoked: %v", err)
		}
		g.end()
	})
}

func TestAccountsAreLimited(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, func(o *Options) { o.Limits.Accounts = 3 }) // ann is one
		account := func(name string) error {
			_, err := g.e.CreateAccount("test", name, "")
			return err
		}
		succeeds(t, account("ben"))
		g.hold()
		third, fourth := g.operating(func() error { return account("cid") }, func() error {
			return account("dee")
		})
		silent(t, "a refusal for an account that is in flight", fourth)
		g.letGo()
		wantOutcome(t, "account 3 of 3", <-third, accepted)
		wantOutcome(t, "account 4", <-fourth, "there are 3 accounts, no more are allowed")
		g.crash()
		g.o.Limits.Accounts = 4 // none is ever closed: only another limit makes room
		g.again()
		if err := account("dee"); err != nil {
			t.Errorf("account 4 of 4: %v", err)
		}
		limited(t, "account 5", account("eve"), "there are 4 accounts, no more are allowed")
		g.end()
	})
}
