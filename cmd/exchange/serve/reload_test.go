package serve

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"exchange/config"
	"exchange/gateway"
)

// newReloading makes a renewal of an exchange that is starting, on one machine. Each load counts,
// and returns the demo's configuration with a change.
func newReloading(t *testing.T, change func(n int64, cfg *config.Config)) (r *renewal,
	loads *atomic.Int64) {
	t.Helper()
	loads = new(atomic.Int64)
	load := func() (*config.Config, error) {
		cfg := config.Demo()
		err := cfg.Finish()
		if n := loads.Add(1); n > 1 {
			change(n, cfg)
		}
		return cfg, err
	}
	cfg := must(load())
	quiet := slog.New(slog.DiscardHandler)
	r = newRenewal(cfg, rereading{load, new(slog.LevelVar)}, nil, quiet)
	cfg.Limits.Connections = 1 // like a start that fits it to the machine
	r.gateway = gateway.New(gatewayOptions(cfg, quiet))
	return r, loads
}

func TestAnExchangeThatStartsTakesUpNoChangesOfItsEngine(t *testing.T) {
	r, _ := newReloading(t, func(n int64, cfg *config.Config) {
		cfg.Limits.PublicRate = 7
		if n == 2 {
			cfg.Limits.MaxFills, cfg.Pairs[0].TakerFee = 7, 7
		}
	})
	changes, err := r.configure()
	if err == nil || !strings.Contains(err.Error(), "2 of 3 changes") ||
		!strings.Contains(err.Error(), "while the exchange starts") || changes != nil {
		t.Errorf("it applies %v, %v", changes, err)
	}
	if changes, err = r.configure(); err != nil || len(changes) != 1 {
		t.Errorf("it applies %v, %v", changes, err)
	}
}

// A list of refused options is bounded, in the answer and in the log.
func TestRefusedOptionsAreListedInPart(t *testing.T) {
	var log strings.Builder
	r, _ := newReloading(t, func(_ int64, cfg *config.Config) {
		for i := range cfg.Pairs {
			p := &cfg.Pairs[i]
			p.TakerFee, p.MakerFee, p.StopCollar, p.MarketCollar = 7, 7, 7, 7
			p.PriceBand, p.MaximumOrderSize, p.PriceTick = 7, p.MaximumOrderSize+1, 3e6
			p.AmountStep, p.MinimumOrderSize = 3, p.MinimumOrderSize+1
			p.MinimumOrderValue = p.MinimumOrderSize.Balance()
			p.PricePrecision, p.AmountPrecision = 8, 8
		}
	})
	r.log = slog.New(slog.NewTextHandler(&log, nil))
	_, err := r.configure()
	if err == nil || strings.Count(err.Error(), "\n  - ") != maxRefused+1 ||
		!strings.HasSuffix(err.Error(), " more") ||
		strings.Count(log.String(), "a change is refused") != maxRefused {
		t.Errorf("%v\n%s", err, &log)
	}
}

// Reloads run one at a time, for operators and signals, and each has an answer.
func TestReloadsRunOneAtATime(t *testing.T) {
	var under atomic.Int64
	r, loads := newReloading(t, func(n int64, cfg *config.Config) {
		if under.Add(1) != 1 {
			t.Error("two reloads at once")
		}
		cfg.Limits.PublicRate = int(n)
		under.Add(-1)
	})
	patience, give := context.WithCancel(t.Context())
	give()
	if _, err := r.Reload(patience); !errors.Is(err, errNotReloaded) {
		t.Errorf("before it runs a reload ends with %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	signals, ended := make(chan os.Signal, 1), make(chan struct{})
	go func() { defer close(ended); r.run(ctx, signals) }()
	const many = 50
	var all sync.WaitGroup
	for range many {
		all.Go(func() {
			if done, err := r.Reload(ctx); err != nil || len(done.Applied) != 1 {
				t.Errorf("a reload ends with %+v, %v", done, err)
			}
		})
		all.Go(func() { signals <- syscall.SIGHUP })
	}
	all.Wait()
	stop()
	<-ended
	if n := loads.Load(); n < 2*many || r.running.Limits.PublicRate != int(n) {
		t.Errorf("after %d loads the rate is %d", n, r.running.Limits.PublicRate)
	}
}

// A node compares the file that was last loaded with the applied part, also when both change at
// once.
func TestNodeComparesReloadedFile(t *testing.T) {
	synctest.Test(t, reloadedFileIsCompared)
}

func reloadedFileIsCompared(t *testing.T) {
	r, _ := newReloading(t, func(_ int64, cfg *config.Config) { cfg.Limits.MaxFills = 7 })
	other, _ := r.source.load()
	m := newMarket(r.running, slog.New(slog.DiscardHandler))
	m.limit = func(*config.Config) {}
	r.agreed, r.reread = m.agreedText, m.reread
	applied := other.Market()
	if _, err := r.running.WithMarket(applied); err != nil {
		t.Fatal(err)
	}
	m.agreed(applied)
	synctest.Wait()
	if m.differs() == nil {
		t.Error("the file does not differ")
	}
	if changes, err := r.configure(); err != nil || len(changes) > 0 {
		t.Errorf("beside the applied part it applies %v, %v", changes, err)
	}
	if keys := m.differs(); len(keys) > 0 {
		t.Errorf("a file that is equal differs in %q", keys)
	}
	before := m.cfg.Market()
	for range 50 {
		m.agreed(before)
		m.reread(m.cfg)
		var both sync.WaitGroup
		both.Go(func() { m.agreed(applied) })
		both.Go(func() { m.reread(other) })
		both.Wait()
		synctest.Wait()
		if m.keys != nil || !bytes.Equal(m.newest.Market(), applied) {
			t.Fatalf("%q, and differences %q", m.newest.Market(), m.keys)
		}
	}
}
