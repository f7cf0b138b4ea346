package actors

import (
	"context"
	"errors"
	"testing"
	"time"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/persistence"
)

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
						isTold(t, "an order in flight", <-d, committed.ErrTimeout.Error())
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
		g.ends("history while a snapshot hangs", g.asking(new(committed.Barrier), nil, 0), accepted)
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
