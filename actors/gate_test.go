package actors

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/persistence"
)

func TestNothingIsKnownBeforeItIsDurable(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		g.hold()
		order := g.begin(func() (*Command, error) { return g.e.Place(g.key, 10, g.sell(9*coin)) })
		eventually(t, "the order is at the store", g.held)
		// These depend on the order: on what it reserved, and on its nonce.
		funds := g.begin(func() (*Command, error) { return g.e.Place(g.key, 11, g.sell(5*coin)) })
		g.inMailbox(2)
		nonce := g.begin(func() (*Command, error) { return g.e.Cancel(g.key, 10, 99) })
		g.inMailbox(3)
		// A read with a nonce that only a refusal has used.
		read := g.begin(g.asking(new(committed.Wallet), g.key, 11))
		silent(t, "an order", order)
		silent(t, "a refusal for funds", funds)
		silent(t, "a refusal for a nonce", nonce)
		silent(t, "a refused read", read)
		// A book shows what is committed.
		depth := &committed.ViewOf{Kind: committed.ViewLevels}
		depth.Pair, depth.LimitBuy, depth.LimitSell = 1, 10, 10
		if err := g.e.Ask(depth, nil, 0); err != nil || len(depth.View.Depth.SellLevels) != 0 {
			t.Fatalf("the book shows %v, %v", depth.View.Depth.SellLevels, err)
		}
		g.letGo()
		for what, c := range map[string]struct {
			done <-chan string
			want string
		}{"order": {order, accepted}, "funds": {funds, refusedFor(event.RefusedFunds)},
			"nonce": {nonce, refusedFor(event.RefusedNonce)},
			"read":  {read, committed.ErrNonce.Error()}} {
			if got := <-c.done; got != c.want {
				t.Errorf("%s: %s, want %s", what, got, c.want)
			}
		}
		// A client that was answered finds it: the committed side had the batch before the answer
		// went out.
		if got := g.funds(1, 1); got != "10/9" {
			t.Errorf("after the answer the wallet has %s BTC", got)
		}
		g.end()
	})
}

func TestAClientIDIsFreeWhenTheOrderThatTookItWasRefused(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, func(o *Options) { o.Limits.OpenOrdersPerBook = 1 })
		g.rest(g.sell(coin))
		id, _ := event.NewClientID("mine")
		g.hold()
		first, second := g.sell(coin), g.sell(coin)
		first.ClientID, second.ClientID = id, id
		second.Pair = g.e.Pairs()[1]
		one := g.begin(g.placing(first)) // its book is full
		eventually(t, "the refusal is at the store", g.held)
		two := g.begin(g.placing(second))
		g.inMailbox(2)
		g.letGo()
		if a, b := <-one, <-two; a != refusedFor(event.RefusedBookLimit) || b != accepted {
			t.Fatalf("first: %s, second: %s", a, b)
		}
		g.end()
	})
}

// A client that lost its answer asks for the order by its client order id, so "no such order" must
// stay true.
func TestAnOrderThatMayStillLandIsNotCalledMissing(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		id, _ := event.NewClientID("mine")
		other, _ := event.NewClientID("other")
		ask := func(id event.ClientID, nonce uint64) (<-chan string, *committed.NamedOrder) {
			r := &committed.NamedOrder{ClientID: id}
			return g.begin(func() (*Command, error) { return nil, g.e.Ask(r, g.key, nonce) }), r
		}
		w := g.sell(coin)
		w.ClientID = id
		// the wallet may hear of the batch before the committed side does
		for round := range uint64(20) {
			g.hold()
			nonce := 10 * (round + 1)
			order := g.begin(func() (*Command, error) { return g.e.Place(g.key, nonce, w) })
			eventually(t, "the order is at the store", g.held)
			held := func(n int) {
				t.Helper()
				eventually(t, "the wallet holds the question back", func() (so bool) {
					g.e.probeWallet(g.key.Account, func(w *wallet) {
						so = w.held.Len() == n
					})
					return so
				})
			}
			mine, found := ask(id, nonce+1)
			held(1)
			none, missing := ask(other, nonce+2)
			held(2)
			g.letGo()
			for what, done := range map[string]<-chan string{"the order": order,
				"the question for it": mine, "the question for another": none} {
				if got := <-done; got != accepted {
					t.Fatalf("%s: %s", what, got)
				}
			}
			if len(found.Orders) != 1 || found.Orders[0].ClientID != id.String() ||
				len(missing.Orders) != 0 {
				t.Fatalf("round %d: %+v, and of another %+v", round, found.Orders, missing.Orders)
			}
			c := must[*Command](t)(g.e.Cancel(g.key, nonce+3, found.Orders[0].ID))
			c.Free()
			id, _ = event.NewClientID("mine-" + string(rune('a'+round)))
			w.ClientID = id
		}
		g.end()
	})
}

func TestARevokedKeyIsRefusedByItsWallet(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		// the wallet knows a nonce of the key, and at the end both sides are compared
		g.rest(g.sell(coin))
		must[Admin](t)(g.e.RevokeKey("test", g.key.Public))
		if g.e.Key([]byte(g.key.Public)) != nil {
			t.Error("the directory still has the key")
		}
		// A handler had looked it up before.
		g.ends("an order", g.placing(g.sell(coin)), refusedFor(event.RefusedKey))
		g.ends("a read", g.asking(new(committed.Wallet), g.key, 2), committed.ErrKeyRevoked.Error())
		g.end()
	})
}

func TestAnEngineThatCannotGoOnEndsAndLeavesOutcomesOpen(t *testing.T) {
	forEachStore(t, func(t *testing.T, fresh places) {
		for name, c := range map[string]struct {
			err  error
			deaf bool
			want error
		}{
			"fenced":             {err: persistence.ErrFenced, want: persistence.ErrFenced},
			"gap":                {err: persistence.ErrGap, want: persistence.ErrGap},
			"invalid":            {err: persistence.ErrInvalid, want: persistence.ErrInvalid},
			"no answer":          {err: errors.New("refused"), want: ErrStalled},
			"never even returns": {deaf: true, want: ErrStalled},
		} {
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					g := newGated(t, fresh, func(o *Options) {
						// an append of the test itself may be slow
						o.Timing.StallMax, o.Timing.Projection = time.Minute, 10*time.Millisecond
						if c.want == ErrStalled {
							o.Timing.StallMax = 5 * time.Second
						}
						o.Timing.Request = time.Hour
					})
					g.set(func() { g.holding, g.deaf = true, c.deaf })
					done := g.begin(g.placing(g.sell(coin)))
					held := g.begin(g.placing(g.sell(coin)))
					eventually(t, "an order is at the store", g.held)
					g.inMailbox(2)
					if !c.deaf {
						g.set(func() { g.holding, g.appendErr = false, c.err })
					}
					<-g.e.Dead()
					if !errors.Is(g.e.Err(), c.want) {
						t.Errorf("the engine ends with %v, want %v", g.e.Err(), c.want)
					}
					for _, d := range []<-chan string{done, held} {
						if got := <-d; got != committed.ErrTimeout.Error() {
							t.Errorf("an order in flight is told %q", got)
						}
					}
					g.turnedAway("a new order", g.placing(g.sell(coin)), ErrStopping)
					g.ends("a private read", g.asking(new(committed.Wallet), g.key, 100),
						ErrStopping.Error())
					g.crash()
				})
			})
		}
	})
}

func TestSnapshotsAreKeptTwiceAndTrimOnlyBelowTheOlder(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, func(o *Options) {
			o.Snapshot = committed.SnapshotPolicy{MinRecords: 5, MaxRecords: 5}
			o.Timing.Projection = time.Millisecond
		})
		for range 60 {
			g.rest(g.sell(1e5))
			time.Sleep(g.o.Timing.Projection)
		}
		stop(t, g.e)
		ctx := context.Background()
		newest, image, err := g.LoadSnapshot(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		image.Close()
		older, image, err := g.LoadSnapshot(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		image.Close()
		if last := g.trimmed[len(g.trimmed)-1]; last != older || older >= newest {
			t.Fatalf("snapshots at %d and %d, trimmed up to %d", older, newest, last)
		}
		g.close()
		// With the newest one unreadable the older one and the journal after it give the same
		// state.
		for _, damaged := range []bool{false, true} {
			s := g.at()
			g.gate = newGate(s)
			if damaged {
				g.gate = newGate(unreadable{s, "nothing of use"})
			}
			g.o.Store = g.gate
			g.e = start(t, g.o)
			if got := g.funds(1, 1); got != "10/0.06" {
				t.Errorf("damaged %v: the wallet has %s BTC", damaged, got)
			}
			g.crash()
		}
		// An older one of a version that is known does not make up for a newer one that is not.
		s := g.at()
		defer s.Close()
		g.o.Store = unreadable{s, "exchange state\n\xfe"}
		_, err = Start(t.Context(), g.o)
		if !errors.Is(err, persistence.ErrCorrupt) ||
			!strings.Contains(err.Error(),
				"it is of version 254 and this program reads versions ") {
			t.Errorf("an image of another version: %v", err)
		}
	})
}

// unreadable is a store whose newest snapshot is something else.
type unreadable struct {
	persistence.Store
	image string
}

func (u unreadable) LoadSnapshot(ctx context.Context, back int) (uint64, io.ReadCloser, error) {
	seq, r, err := u.Store.LoadSnapshot(ctx, back)
	if back == 0 && err == nil {
		r.Close()
		r = io.NopCloser(strings.NewReader(u.image))
	}
	return seq, r, err
}

func TestAFailedSnapshotHoldsUpNothingAndIsTriedAgain(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		wait := make(chan struct{})
		g := newGated(t, fresh, func(o *Options) {
			o.Snapshot = committed.SnapshotPolicy{MinRecords: 3, MaxRecords: 3}
			o.Timing.Projection = time.Millisecond
			store := o.Store.(*gate) // from the first snapshot on
			store.set(func() { store.saving, store.saveErr = wait, errors.New("no room") })
		})
		saves := func() int {
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.saves
		}
		eventually(t, "a snapshot hangs", func() bool { return saves() == 1 })
		for range 10 {
			g.rest(g.sell(1e5))
		}
		g.ends("history while a snapshot hangs", g.asking(new(committed.Written), nil, 0), accepted)
		g.set(func() { g.saving = nil })
		close(wait)
		eventually(t, "another is tried when more has happened", func() bool {
			g.rest(g.sell(1e4))
			return saves() >= 3
		})
		if _, _, err := g.LoadSnapshot(context.Background(), 0); !errors.Is(err,
			persistence.ErrNoSnapshot) {
			t.Errorf("there is a snapshot, though there was no room: %v", err)
		}
		g.set(func() { g.saveErr = nil })
		eventually(t, "one is taken when there is room", func() bool {
			_, image, err := g.LoadSnapshot(context.Background(), 0)
			if err == nil {
				image.Close()
				return true
			}
			g.rest(g.sell(1e4))
			return false
		})
		g.set(func() { g.saveErr = errors.New("no room") })
		g.rest(g.sell(1e4))
		if err := g.e.Stop(context.Background()); err == nil {
			t.Error("a stop without its snapshot is called orderly")
		}
		g.close()
	})
}

func TestRecoveryRefusesAStoreThatHasLostWrites(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		g.rest(g.sell(coin))
		g.end()
		for name, watermark := range map[string]uint64{"below the snapshot": 0,
			"above the journal": 1 << 40} {
			s := g.at()
			g.o.Store = liar{s, watermark}
			if _, err := Start(context.Background(), g.o); !errors.Is(err, persistence.ErrCorrupt) {
				t.Errorf("a watermark %s: %v", name, err)
			}
			s.Close()
		}
	})
}

type liar struct {
	persistence.Store
	watermark uint64
}

func (l liar) Watermark(context.Context) (uint64, error) { return l.watermark, nil }

func TestACurrencyThatIsHeldMustBeConfigured(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		g.end()
		s := g.at()
		defer s.Close()
		g.o.Store = s
		g.o.Currencies, g.o.Pairs = []directory.Currency{{Code: "BTC"}, {Code: "EUR"}},
			g.o.Pairs[1:]
		if _, err := Start(context.Background(), g.o); !errors.Is(err, ErrConfig) {
			t.Errorf("without USD: %v", err)
		}
	})
}
