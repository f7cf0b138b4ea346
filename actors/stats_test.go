package actors

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"exchange/actors/committed"
	"exchange/actors/metrics"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// counted returns the counts that are not 0, as "name n".
func counted(list []Count) string {
	var parts []string
	for _, c := range list {
		if c.N > 0 {
			parts = append(parts, fmt.Sprint(c.Name, " ", c.N))
		}
	}
	return strings.Join(parts, ", ")
}

// Each count is there when the answer is.
func TestCommandsAreCountedOnceTheyAreAnswered(t *testing.T) {
	onGated(t, func(o *Options) {
		o.Limits.OpenOrdersPerAccount = 3
	}, func(t *testing.T, g *gated) {
		want := func(what, records, refused string, orders, trades, cancels uint64) {
			t.Helper()
			s := g.e.Stats()
			if got := counted(s.Records); got != records {
				t.Errorf("%s: records %s, want %s", what, got, records)
			}
			if got := counted(s.Refused); got != refused {
				t.Errorf("%s: refused %s, want %s", what, got, refused)
			}
			if s.Orders != orders || s.Trades != trades || s.Cancels != cancels {
				t.Errorf("%s: %d orders, %d trades, %d cancels", what, s.Orders, s.Trades,
					s.Cancels)
			}
		}
		const begin, key = "account 1, deposit 2", ", key 1"
		want("a funded account", begin+key, "", 0, 0, 0)
		id := g.rest(g.sell(coin))
		g.rest(g.sell(coin))
		want("two orders", begin+", order 2"+key, "", 2, 0, 0)
		g.ends("an order that takes both", g.placing(g.buy(100e8, 2*coin)), accepted)
		want("two trades", begin+", order 3"+key, "", 3, 2, 0)
		g.ends("a cancel of an order that is done", g.cancelling(id),
			refusedFor(event.RefusedNotOpen))
		g.ends("too much", g.placing(g.sell(1000*coin)), refusedFor(event.RefusedFunds))
		g.ends("too little of a nonce",
			func() (*Command, error) { return g.e.Place(g.key, 1, g.sell(coin)) },
			refusedFor(event.RefusedNonce))
		want("refusals", begin+", order 3, refusal 3"+key, "nonce 1, funds 1, not_open 1", 3, 2, 0)
		for i := range 3 { // over all pairs
			w := g.sell(coin)
			w.Pair = g.e.Pairs()[i%2]
			g.rest(w)
		}
		g.ends("one order too many", g.placing(g.sell(coin)), refusedFor(event.RefusedAccountLimit))
		g.nonce++
		c := must[*Command](t)(g.e.CancelAll(g.key, g.nonce, CancelFilter{}))
		c.Free()
		want("all cancelled", begin+", order 6, cancel 3, refusal 4"+key,
			"nonce 1, funds 1, not_open 1, account_limit 1", 6, 2, 3)
		must[any](t)(g.e.Halt("test", "BTC_USD", true))
		g.ends("halted", g.placing(g.sell(coin)), refusedFor(event.RefusedHalted))
		want("halted", begin+", order 6, cancel 3, refusal 5, halt 1"+key,
			"nonce 1, funds 1, not_open 1, account_limit 1, halted 1", 6, 2, 3)

		s := g.e.Stats()
		released := g.e.committed.Released()
		sum := uint64(0)
		for _, c := range s.Records {
			sum += c.N
		}
		if n := uint64(s.BatchRecords.Sum); n != sum ||
			s.BatchRecords.Count() != s.BatchBytes.Count() ||
			s.BatchRecords.Count() != s.Append.Count() || s.BatchBytes.Sum < int64(20*sum) {
			t.Errorf("%d records in %d batches of %d bytes, %d appends; %d were counted by kind", n,
				s.BatchRecords.Count(), s.BatchBytes.Sum, s.Append.Count(), sum)
		}
		if s.Meter.RecoveryRecords != released-sum {
			t.Errorf("the start folded %d records, there are %d in all", s.Meter.RecoveryRecords,
				released)
		}
	})
}

func TestCommandsThatAreTurnedAwayAreCountedByReason(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, func(o *Options) {
			o.Limits.InFlight, o.Limits.InFlightCancels, o.Limits.Reads = 2, 1, 0
		})
		want := func(what, turnedAway string) {
			t.Helper()
			if got := counted(g.e.Stats().TurnedAway); got != turnedAway {
				t.Errorf("%s: %s, want %s", what, got, turnedAway)
			}
		}
		g.ends("a read too many", g.asking(new(committed.Wallet), g.key, 1), ErrBusy.Error())
		want("a read", "busy 1")
		g.hold()
		order := g.begin(g.placing(g.sell(coin)))
		eventually(t, "the order is at the store", g.held)
		if s := g.e.Stats(); s.CommandsInFlight != 1 || s.Append.Count() != s.BatchBytes.Count() {
			t.Errorf("%d commands in flight", s.CommandsInFlight)
		}
		g.turnedAway("an order too many", g.placing(g.sell(coin)), ErrBusy)
		g.letGo()
		isTold(t, "order", <-order, accepted)
		want("an order", "busy 2")
		g.e.paused.Store(true)
		g.turnedAway("an order while paused", g.placing(g.sell(coin)), ErrPaused)
		if g.e.Writable() == nil {
			t.Error("it is writable while paused")
		}
		g.e.paused.Store(false)
		g.e.CloseAdmission()
		g.turnedAway("an operator's command at the end", g.depositing(), ErrStopping)
		want("the end", "stopping 1, busy 2, paused 2")
		g.crash()
	})
}

func TestStatsTellTheStoresState(t *testing.T) {
	onGated(t, func(o *Options) {
		o.Timing.Stall = 20 * time.Millisecond
	}, func(t *testing.T, g *gated) {
		if s := g.e.Stats(); !s.Ready || s.Stalled || s.AppendWaiting != 0 ||
			s.Confirmed > time.Minute {
			t.Errorf("at the start: ready %v, stalled %v, waiting %v, confirmed %v ago", s.Ready,
				s.Stalled, s.AppendWaiting, s.Confirmed)
		}
		g.hold()
		g.e.setPatience(time.Millisecond)
		g.ends("an order that is answered too late", g.placing(g.sell(coin)),
			committed.ErrTimeout.Error())
		g.e.setPatience(time.Minute)
		eventually(t, "it counts as stalled", func() bool {
			s := g.e.Stats()
			return s.Stalled && !s.Ready && s.AppendWaiting > 20*time.Millisecond
		})
		g.turnedAway("an order while it is stalled", g.placing(g.sell(coin)), ErrStalled)
		g.letGo()
		eventually(t, "it is over", func() bool {
			s := g.e.Stats()
			return !s.Stalled && s.Ready && s.AppendWaiting == 0
		})
		m := g.e.meter
		if o, r := m.UnknownOutcomes.Load(), m.UnansweredReads.Load(); o != 1 || r != 0 {
			t.Errorf("%d outcomes unknown, %d reads unanswered", o, r)
		}
		eventually(t, "the append is in the histogram with the time that it took", func() bool {
			return time.Duration(g.e.Stats().Append.Sum) > 20*time.Millisecond
		})

		g.set(func() { g.appendErr = errors.New("on purpose") })
		again := g.begin(g.depositing())
		eventually(t, "failures are counted", func() bool {
			return m.Failures[metrics.OperationAppend].Load() > 1 && g.e.Stats().Stalled
		})
		g.set(func() { g.appendErr = nil })
		<-again
	})
}

func TestStatsTellLagsAndSnapshots(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		g.ends("the history is written", g.asking(new(committed.Barrier), nil, 0), accepted)
		g.set(func() { g.applying = true })
		stuck, wait := make(chan struct{}), make(chan struct{})
		id := g.rest(g.sell(coin))
		g.ends("a cancel", g.cancelling(id), accepted)
		eventually(t, "rows wait for the store", func() bool {
			s := g.e.Stats()
			return s.ProjectionRows == 1 && s.ProjectionLag >= 1 && s.FoldLag == 0
		})
		go g.e.probe(g.e.work.Fold, func() { close(stuck); <-wait })
		<-stuck
		g.rest(g.sell(coin))
		if s := g.e.Stats(); s.FoldLag != 1 || counted(s.Mailboxes) == "" {
			t.Errorf("the fold is %d behind, mailboxes %s", s.FoldLag, counted(s.Mailboxes))
		}
		close(wait)
		g.set(func() { g.applying = false })
		g.ends("the history is written", g.asking(new(committed.Barrier), nil, 0), accepted)
		eventually(t, "nothing lags", func() bool {
			s := g.e.Stats()
			return s.ProjectionRows == 0 && s.ProjectionLag == 0 && s.FoldLag == 0 &&
				countIn(s.Meter.Apply) > 0
		})
		s := g.e.Stats()
		bytes, open := s.Meter.SnapshotBytes.Load(), s.Meter.Open.Load()
		if begin, _ := s.Meter.Snapshotting.Times(); bytes != 0 || !begin.IsZero() || open != 1 ||
			s.SnapshotLag != g.e.committed.Released() || countIn(s.Meter.Snapshot) != 0 {
			t.Errorf("without a snapshot: %d bytes, %d records behind, begun at %v; %d open orders",
				bytes, s.SnapshotLag, begin, open)
		}
		if s.JournalKept != s.SnapshotLag {
			t.Errorf("the journal, never trimmed, has %d records of %d", s.JournalKept,
				s.SnapshotLag)
		}
		g.end() // takes one, and trims up to the one before it
		s = g.e.Stats()
		before, n := s.Meter.SnapshotBytes.Load(), countIn(s.Meter.Snapshot)
		if n != 1 || before == 0 || s.SnapshotLag != 0 {
			t.Errorf("after the end: %d snapshots, %d bytes, %d records behind", n, before,
				s.SnapshotLag)
		}
		if begin, end := s.Meter.Snapshotting.Times(); end.Before(begin) || begin.IsZero() {
			t.Errorf("a snapshot from %v to %v", begin, end)
		}
		g.again()
		if n := g.e.meter.Open.Load(); n != 1 {
			t.Errorf("after the next start there are %d open orders", n)
		}
		s = g.e.Stats()
		if bytes = s.Meter.SnapshotBytes.Load(); bytes != before || s.SnapshotLag != 0 ||
			countIn(s.Meter.Snapshot) != 0 || s.SnapshotAge > time.Minute || s.ProjectionLag != 0 ||
			s.JournalKept != 0 {
			t.Errorf(
				"at the next start: %d bytes instead of %d, %d records behind, %v old, "+
					"projections %d behind", bytes, before, s.SnapshotLag, s.SnapshotAge,
				s.ProjectionLag)
		}
	})
}

// countIn returns how many values a histogram has.
func countIn(h *metrics.Histogram) uint64 {
	d := h.Read()
	return d.Count()
}

// A start and the stages of a snapshot take their time, of which a bubble has none.
func TestStatsTellHowLongAStartAndASnapshotTook(t *testing.T) {
	e := start(t, testOptions(memoryPlaces(t)()))
	fund(t, e, "ann", nil)
	stop(t, e)
	times := &e.meter.SnapshotTimes
	image, upload := times[metrics.StageImage].Load(), times[metrics.StageUpload].Load()
	if e.meter.RecoveryNs <= 0 || image <= 0 || upload <= 0 {
		t.Errorf("a start in %d ns, an image in %d, its upload in %d", e.meter.RecoveryNs, image,
			upload)
	}
}

// The clock chooses the commands that are traced, so the test sends orders until it chooses some.
func TestSomeCommandsAreTracedThroughAllStages(t *testing.T) {
	s := forgetful{memoryPlaces(t)()}
	defer s.Close()
	e := start(t, testOptions(s))
	key := fund(t, e, "ann", map[string]money.Amount{"BTC": 1000 * coin})
	var stages [metrics.Stages]metrics.Distribution
	n := uint64(0)
	for n = 1; stages[metrics.StageMatch].Count() < 5; n++ {
		if n > 100_000 {
			t.Fatal("no command was traced")
		}
		c := must[*Command](t)(e.Place(key, n,
			&OrderRequest{Pair: e.Pairs()[0], Side: trading.Sell, Price: 100e8, Amount: 1}))
		c.Free()
		for i, h := range e.meter.Stages {
			stages[i] = h.Read()
		}
	}
	for i := range stages {
		// Nothing else was sent, and a command is counted before it is answered. The account's
		// deposits may be among them.
		if c := stages[i].Count(); c < 5 || c > 10 || stages[i].Sum <= 0 {
			t.Errorf("stage %v: %d commands of %d, %d ns", metrics.Stage(i), c, n, stages[i].Sum)
		}
	}
	stop(t, e)
}

func TestEveryReasonHasItsOwnName(t *testing.T) {
	seen := map[string]bool{}
	for reason := event.RefusedNonce; reason <= event.RefusedRules; reason++ {
		name := event.RefusalName(reason)
		if name == "" || seen[name] {
			t.Errorf("reason %d is named %q", reason, name)
		}
		seen[name] = true
	}
	if len(turnedAwayFor) > metrics.Reasons {
		t.Errorf("%d reasons to turn something away, there is room for %d", len(turnedAwayFor),
			metrics.Reasons)
	}
}
