package actors

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/seal"
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/persistence"
	"exchange/persistence/memory"
	"exchange/prove/shrink"
	"exchange/prove/spec"
)

var (
	simSeeds = flag.Int("sim.seeds", coveringSeeds, "how many seeds TestSimulation plays")
	simSeed  = flag.Uint64("sim.seed", 0,
		"the one seed that TestSimulation plays; 0: as many as there shall be, from the first on")
	simShrink = flag.Int("sim.shrink", 300,
		"how many runs TestSimulation may take to find the shortest one that fails; 0: none")
	simFirst = flag.Uint64("sim.first", 1, "the first of the seeds that TestSimulation plays")
)

// A script is what happens to the exchange: the seed of each action. Everything else follows from
// it, so an action that is left out changes no other.
type script = []uint64

// scriptOf returns the script of a seed.
func scriptOf(seed uint64) script {
	r := rand.New(rand.NewPCG(seed, 1))
	list := make(script, 40+r.IntN(80))
	for i := range list {
		list[i] = r.Uint64()
	}
	return list
}

// A run is the course of a script.
type run struct {
	err      error
	hash     string // of the trace
	lines    []string
	logs     []string
	steps    int
	records  uint64
	outcomes map[string]int
}

// play runs a script of a seed.
func play(t *testing.T, seed uint64, actions script) (result run) {
	t.Helper()
	EmptyPools() // their timers and channels are of another bubble
	defer EmptyPools()
	keepFewIDs(t)
	synctest.Test(t, func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, seed)
		s := newSim(seed)
		s.play(actions)
		s.outcomes["trades"] = len(s.model.Trades)
		result = run{s.failed(), s.hash(), s.lines, s.lastLogs, s.steps, s.model.Seq, s.outcomes}
	})
	return result
}

func newSim(seed uint64) *sim {
	r := rand.New(rand.NewPCG(seed, 2))
	s := &sim{turnState: &turnState{rng: r, disk: memory.NewDisk(), server: r.IntN(2) == 0,
		records: map[string][]uint64{}, equal: map[string][]uint64{},
		damaged: map[uint64]bool{},
		byNonce: map[spec.KeyNonce]int{}, missing: map[namedOrder]bool{},
		clients: newClients(), trace: newTrace()}}
	if seed%4 == 1 { // as a demo begins, which has a past
		s.skew = -24 * time.Hour
	}
	s.options = s.newOptions(r)
	s.model = s.newModel()
	s.disk.Durable = s.durable
	s.names = []string{"ann", "ben", "cid", "dan", "eve"}
	return s
}

// keepFewIDs lets few closed orders keep their client order ids, and not for long, until the end of
// a test. So a short test meets each bound. No test of this package runs beside another one.
func keepFewIDs(t *testing.T) {
	was := ledger.KeptIDs
	t.Cleanup(func() { ledger.KeptIDs = was })
	ledger.KeptIDs = ledger.IDBounds{Newest: 1, Most: 3, SpanUs: 1e6}
}

// newOptions returns an engine's options, with limits that the clients reach.
func (s *sim) newOptions(r *rand.Rand) Options {
	o := testOptions(nil)
	o.Limits.MaxFills = 2 + r.IntN(4)
	o.Limits.OpenOrdersPerAccount, o.Limits.OpenOrdersPerBook = 4+r.IntN(12), 3+r.IntN(10)
	o.Limits.OpenOrdersPerAccountAndBook = 2 + r.IntN(10)
	o.Limits.InFlight, o.Limits.InFlightCancels, o.Limits.InFlightPerAccount = 14+r.IntN(40), 5,
		8+r.IntN(16)
	o.Limits.StopsPerBook, o.Limits.StopsPerAccountAndBook = 2+r.IntN(6), 1+r.IntN(4)
	o.Limits.GTDPerBook, o.Limits.GTDPerAccountAndBook = 1+r.IntN(4), 1+r.IntN(3)
	o.Limits.TriggersInFlight = r.IntN(3)
	o.Timing.SwitchGrace = pick(r, []time.Duration{0, time.Second, 10 * time.Second})
	o.Limits.PendingWithdrawals, o.Limits.KeysPerAccount, o.Limits.Accounts = 1+r.IntN(4), 2, 6
	o.Limits.BatchBytes = 100 + r.IntN(1000)
	o.ClockError = func() time.Duration { return s.skew }
	o.Limits.FoldLag, o.Limits.ProjectionLag = 10+r.IntN(60), 10+r.IntN(60)
	o.Withdrawal.CodeTries, o.Withdrawal.CodeValid = 1+r.IntN(2),
		pick(r, []time.Duration{time.Second, time.Hour})
	o.Pairs = append(o.Pairs, directory.PairRules{Name: "USD_EUR", Base: "USD", Quote: "EUR",
		PricePrecision: 8, AmountPrecision: 8, MinimumOrderSize: 1,
		MaximumOrderSize: money.MaxAmount})
	o.Snapshot = committed.SnapshotPolicy{MinRecords: 10, MaxRecords: 30,
		MinInterval: time.Duration(r.IntN(3)) * time.Second}
	o.Tests.StepRows = pick(r, []int{1, 5, 40, committed.StepRows})
	o.Tests.Candles = 1 + r.IntN(5)
	o.Limits.OwnBytes = pick(r, []int{0, 2_000, 20_000, 1 << 20})
	o.Pairs[0].Fees = state.FeeRates{Maker: money.Rate(r.Uint32N(2e6)),
		Taker: money.Rate(r.Uint32N(2e6))}
	for i := range o.Pairs {
		o.Pairs[i].PriceBand = pick(r, []money.Rate{0, 0, 1e6, 5e6, 3e7})
		o.Pairs[i].PriceTick = pick(r, []money.Price{1, 1, 3, 1e5})
		o.Pairs[i].PricePrecision = 8
		o.Pairs[i].AmountStep = pick(r, []money.Amount{1, 1, 1, 1e5})
		o.Pairs[i].StopCollar = pick(r, []money.Rate{1e6, 5e6})
	}
	o.Tests.AtOnce = pick(r, []int{1, 1, 3, 0})
	o.Exit = func(code int) {
		s.violate("an invariant broke, the process ends with %d: %s", code,
			s.lastLog())
	}
	o.Log = simLog{s}.logger()
	s.serverKeys = [][]byte{make([]byte, seal.KeyBytes)}
	return o
}

// start begins the life of an engine.
func (s *sim) start() {
	s.begun++
	l := &life{number: s.begun, applied: map[uint32]uint64{}, wallets: map[uint32]*wallet{},
		open: map[uint32]int{},
		keys: map[string]*directory.Key{}, own: map[uint32]*ownClient{},
		tries: map[string]try{}, taken: map[uint32]uint64{},
		tookOnce: map[spec.KeyNonce]bool{}}
	k := &link{Store: s.openStore(), s: s, l: l}
	k.Store.BeforeSync, k.Store.BeforeHead = k.at("sync"), k.at("head")
	o := s.options
	o.Sealer = s.sealer()
	o.Currencies = append([]directory.Currency(nil), o.Currencies...)
	o.Store, o.Owner, o.Mail, o.Scheduler = k, fmt.Sprint("engine ", l.number), s.mail(l),
		lifeDriver{s, l}
	l.serverKey = s.serverKeys[0]
	ctx := s.takeHost(l, &o)
	k.Store.Head = s.headOf(l)
	if s.keptOut(k) {
		l.gone = true
		return
	}
	s.lives = append(s.lives, l)
	s.spawn(l, fmt.Sprintf("%d.start", l.number), func() {
		e, err := Start(ctx, o)
		// the clock may have woken it, and others with it
		s.park(l, fmt.Sprintf("%d.started", l.number), nil)
		if err != nil {
			s.say("  engine %d does not start: %v", l.number, err)
			withoutKey := l.overtaken || !bytes.Equal(l.serverKey, s.serverKeys[0])
			if !errors.Is(err, errNoAnswer) && !errors.Is(err, errStoreRefuses) &&
				!errors.Is(err, persistence.ErrFenced) &&
				!(errors.Is(err, ErrConfig) && withoutKey) &&
				!(l.cancelled && errors.Is(err, context.Canceled)) {
				s.violate("engine %d does not start: %w", l.number, err)
			}
			s.outcomes["engines, not started"]++
			l.over = true
			return
		}
		s.outcomes["engines, started"]++
		l.started = e.committed.State().Seq()
		l.folded = l.started
		want, err := s.foldTo(l.started)
		if err != nil || want.Hash() != e.committed.State().Hash() {
			s.violate("engine %d starts at %d of %d records, with another state than they give: %v",
				l.number, l.started, s.model.Seq, err)
		}
		if err := s.sameState(e.committed.State()); err != nil {
			s.violate("engine %d starts at %d: %w", l.number, l.started, err)
		}
		if named := s.model.HistorySeq > l.acquired; named != l.begins && !l.overtaken {
			s.violate("engine %d opens, has named a new history: %v, and should have: %v", l.number,
				named, l.begins)
		}
		s.listen(l)
		l.ready = true
		s.opensAlone(l)
	})
}

// sealer returns all keys of the server. Now and then it adds a new one, which seals the secrets
// anew.
func (s *sim) sealer() func(bool) (*seal.Sealer, error) {
	if n := len(s.serverKeys); n < seal.MaxKeys && !s.ending && s.rng.IntN(8) == 0 {
		s.say("  the server has a new key")
		s.outcomes["new keys of the server"]++
		s.keysMade++
		s.serverKeys = append([][]byte{bytes.Repeat([]byte{byte(s.keysMade)}, seal.KeyBytes)},
			s.serverKeys...)
	}
	keys := s.serverKeys
	return func(bool) (*seal.Sealer, error) { return seal.New(keys...) }
}

// play runs the actions, and then lets everything come to rest.
func (s *sim) play(actions script) {
	s.fund()
	for i, seed := range actions {
		if s.failed() != nil {
			break
		}
		s.rng = rand.New(rand.NewPCG(seed, 3))
		s.act(i, s.rng)
	}
	s.settle()
	s.end()
}

// fund starts the first engine and opens accounts with keys and money, without a fault.
func (s *sim) fund() {
	s.start()
	s.rest()
	if len(s.lives) == 0 || s.failed() != nil {
		return
	}
	l := s.lives[0]
	do := func(what string, err error) {
		if err != nil {
			s.violate("%s: %w", what, err)
		}
	}
	for i, name := range s.names[:4] {
		s.spawn(l, "fund "+name, func() {
			_, err := l.engine.CreateAccount("op", name, name+"@example.org")
			do("account", err)
			for k := range 2 {
				do("key", makeKey(l.engine, name, fmt.Sprintf("key-%s-%d", name, k)))
			}
			for _, currency := range l.engine.Currencies() {
				amount := money.Amount(200 * coin)
				if i == 3 {
					amount = money.MaxAmount
				}
				reference := name + currency.Code
				s.deposits[reference]++
				_, err = l.engine.Deposit("op", name, currency.Code, amount, reference)
				do("deposit", err)
			}
		})
		s.rest()
	}
}

// reap removes engines that have come to their end.
func (s *sim) reap() {
	for i := 0; i < len(s.lives); i++ {
		if l := s.lives[i]; l.over || l.engine != nil && l.engine.Err() != nil {
			s.kill(l)
			i--
		}
	}
}

// up returns an engine that has started, mostly the newest, or nil.
func (s *sim) up(r *rand.Rand) (l *life) {
	for _, one := range s.lives {
		if one.ready && (l == nil || r.IntN(4) > 0) {
			l = one
		}
	}
	return l
}

// act plays one action.
func (s *sim) act(i int, r *rand.Rand) {
	if r.IntN(3) == 0 {
		s.reap()
	}
	if len(s.lives) == 0 {
		if s.start(); s.server && r.IntN(4) == 0 {
			s.outcomes["two starts at once"]++
			s.start()
		}
	}
	s.slow = ""
	if r.IntN(3) == 0 {
		s.slow = pick(r, []string{"committed", "writer", "wallet", "book", "append",
			"sync", "head", "answered", "apply", "waiter", "projector", "client", "snapshot",
			"check", "beat", "acquire"})
	}
	l, what := s.up(r), r.IntN(100)
	s.streamClients(r, l)
	switch {
	case l == nil || what < 5:
		s.say("action %d: steps", i)
	case what < 62:
		n := 1 + r.IntN(8)
		s.say("action %d: %d commands", i, n)
		for range n {
			s.command(r, l)
		}
	case what < 70:
		s.say("action %d: reads", i)
		for range 1 + r.IntN(4) {
			s.read(r, l)
		}
	case what < 80:
		d := pick(r, []time.Duration{time.Millisecond, 10 * time.Millisecond,
			100 * time.Millisecond, 300 * time.Millisecond, time.Second, 6 * time.Second})
		if r.IntN(30) == 0 {
			d = 2 * time.Hour
		}
		s.say("action %d: %v pass", i, d)
		s.advance(d)
		if s.standby() != nil && r.IntN(2) == 0 {
			s.pass(6 * time.Second)
		}
	case what < 81:
		s.skew = pick(r, []time.Duration{0, -time.Millisecond, -3 * time.Second, time.Minute,
			5 * time.Hour, -24 * time.Hour})
		s.outcomes["wrong clocks"]++
		s.say("action %d: the clock is wrong by %v", i, s.skew)
	case what < 85:
		s.odds = pick(r, []int{0, 0, 10, 40, 90})
		s.say("action %d: %d %% of the calls of the store go wrong", i, s.odds)
	case what < 90:
		s.breakDown(i, r)
	case what < 92:
		if waits := s.standby(); waits != nil && r.IntN(2) == 0 {
			s.dismiss(waits)
			break
		}
		s.say("action %d: engine %d stops", i, l.number)
		if r.IntN(3) == 0 {
			s.odds = max(s.odds, 40)
		}
		s.stop(l)
	case what < 95 && s.server && len(s.lives) < 3:
		s.say("action %d: another engine starts", i)
		s.start()
	default:
		s.say("action %d: rest", i)
		s.settle()
	}
	s.run(r.IntN(pick(r, []int{1, 10, 40, 120})))
}

// breakDown ends an engine, or all of them with the machine, or has the store's server start anew.
func (s *sim) breakDown(i int, r *rand.Rand) {
	if r.IntN(4) == 0 {
		s.damage()
	}
	switch n := r.IntN(5); {
	case n == 4 && s.restorable():
		s.say("action %d: a backup is restored", i)
		s.restore()
	case n == 0 && s.server:
		s.say("action %d: the server crashes", i)
		s.outcomes["crashes of the server"]++
		s.crash()
	case n == 1:
		s.say("action %d: the machine crashes", i)
		s.outcomes["crashes of the machine"]++
		for len(s.lives) > 0 {
			s.outcomes["engines, killed"]++
			s.kill(s.lives[0])
		}
		s.crash()
		s.cutHeads()
	default:
		s.say("action %d: an engine is killed", i)
		s.outcomes["engines, killed"]++
		s.kill(pick(r, s.lives))
		if !s.server {
			s.crash()
			s.cutHeads()
		}
	}
}

// stop ends an engine in order.
func (s *sim) stop(l *life) {
	s.spawn(l, fmt.Sprintf("%d.stop", l.number), func() {
		if l.stopping {
			return
		}
		l.stopping = true
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err := l.engine.Stop(ctx)
		// the clock may have woken it, or the engine's end
		s.park(l, fmt.Sprintf("%d.stopped", l.number), nil)
		s.say("  engine %d has stopped: %v", l.number, err)
		s.outcomes["engines, stopped"]++
		l.over = true
	})
}

// restless bounds how long a simulation may take to come to rest.
const restless = 20_000

// rest lets everything happen that can, and the clock go on a little, until no goroutine waits any
// more.
func (s *sim) rest() {
	for n := 0; s.failed() == nil; n++ {
		s.run(restless)
		if s.quiet() {
			return
		}
		if n == restless/10 {
			s.violate("it does not come to rest: %s", s.waits())
			return
		}
		s.advance(20 * time.Millisecond)
	}
}

// quiet reports whether no command and no read is on its way.
func (s *sim) quiet() bool {
	for _, p := range s.waiting() {
		if p.ready == nil || strings.Contains(p.name, "waiter") {
			return false
		}
	}
	for _, l := range s.lives {
		over := l.over || l.engine != nil && l.engine.Err() != nil
		if l.standby {
			continue
		}
		if !over && (len(l.mailboxes) > 0 || !l.ready || l.stopping || l.behind()) {
			return false
		}
	}
	return true
}

// behind reports whether the engine has work, if the clock goes on.
func (l *life) behind() bool {
	e := l.engine
	return !e.quiet() || e.ReadsInFlight() != 0 || // a look at an order that is to be amended
		e.committed.Watermark() < e.committed.State().Seq() || committed.Snapshotting(e.committed)
}

func (s *sim) waits() (text string) {
	for _, p := range s.waiting() {
		text += p.name + ", "
	}
	for _, l := range s.lives {
		if l.engine != nil {
			text += fmt.Sprintf("engine %d: %d commands, %d records, watermark %d of %d; ",
				l.number, l.engine.commandsInFlight(), l.engine.journal.pending.Load(),
				l.engine.committed.Watermark(), l.engine.committed.State().Seq())
		}
	}
	return text
}

// settle takes all faults away, lets one engine come to rest, and compares everything.
func (s *sim) settle() {
	s.slow, s.odds = "", 0
	for n := 0; s.failed() == nil; n++ {
		if n == 100 {
			s.violate("no engine comes to rest alone: %s", s.waits())
		}
		s.rest()
		s.reap()
		if len(s.lives) == 0 {
			s.start()
			continue
		}
		s.dismissOthers()
		if l := s.lives[0]; len(s.lives) == 1 && l.ready && l.engine.Err() == nil && !l.stopping &&
			s.owns(l) {
			break
		}
		s.advance(time.Second) // a fenced engine finds out
	}
	if s.failed() != nil {
		return
	}
	l := s.lives[0]
	for n := 0; n < 3 && s.failed() == nil && s.overdue() != ""; n++ {
		s.advance(time.Second)
		s.rest()
	}
	if what := s.overdue(); what != "" {
		s.violate("engine %d rests, and %s", l.number, what)
	}
	err := s.atRest(l)
	if err == nil {
		err = errors.Join(l.ownClientsAtRest(), s.sessionsAtRest(l))
	}
	if err == nil {
		err = s.checkStore(l)
	}
	if err != nil {
		s.violate("at rest, engine %d: %w", l.number, err)
	}
	s.retire(l)
	if s.failed() == nil && !s.ending && s.rng.IntN(2) == 0 {
		s.backUp(l)
	}
}

// retire takes away, now and then, the server's keys that no secret needs any more, as an operator
// does after a rotation.
func (s *sim) retire(l *life) {
	if len(s.serverKeys) > 1 && bytes.Equal(l.serverKey, s.serverKeys[0]) && s.rng.IntN(2) == 0 {
		s.say("  the server has its newest key only")
		s.outcomes["old keys of the server, retired"]++
		s.serverKeys = s.serverKeys[:1]
	}
}

// owns reports whether an engine owns the store.
func (s *sim) owns(l *life) bool {
	beat, err := s.openStore().Beat(context.Background())
	return err == nil && beat.Token == l.engine.journal.token
}

// end stops the last engine in order, starts another, and compares again: a replay gives the live
// state. It does so until a start has nothing to write itself, and nothing expires or fires
// meanwhile.
func (s *sim) end() {
	s.ending = true
	for round, same := 0, false; !same && s.failed() == nil; round++ {
		if round == endRounds {
			s.violate("each of %d starts writes something", round)
			break
		}
		live, seq := s.lives[0].engine.committed.State().Hash(), s.model.Seq
		s.stop(s.lives[0])
		s.rest()
		s.reap()
		if len(s.lives) > 0 {
			s.violate("engine %d does not stop: %s", s.lives[0].number, s.waits())
			break
		}
		s.settle()
		same = seq == s.model.Seq
		if s.failed() == nil && same && s.lives[0].engine.committed.State().Hash() != live {
			s.violate("the state after the last start is not the live one")
		}
	}
	for len(s.lives) > 0 {
		s.kill(s.lives[0])
	}
	for _, p := range s.waiting() {
		s.resume(p, false)
	}
	s.advance(time.Hour) // goroutines that waited for the clock end
}

// endRounds is more than the starts at the end of which each may write something.
const endRounds = 20

// The real engine runs under random commands, faults of the store, crashes, restarts and takeovers.
// After each single step everything is as it must be. A failing seed is printed with the command
// that plays it again, and with the fewest of its actions that still fail.
func TestSimulation(t *testing.T) {
	if *simSeed != 0 {
		*simFirst, *simSeeds = *simSeed, 1
	}
	total := map[string]int{}
	for seed := *simFirst; seed < *simFirst+uint64(*simSeeds); seed++ {
		r := play(t, seed, scriptOf(seed))
		if r.err != nil {
			report(t, seed, r)
			return
		}
		total["steps"] += r.steps
		total["records"] += int(r.records)
		for what, n := range r.outcomes {
			total[what] += n
		}
	}
	for _, what := range slices.Sorted(maps.Keys(total)) {
		t.Logf("%9d %s", total[what], what)
	}
	if *simFirst == 1 && *simSeeds >= coveringSeeds {
		for _, what := range mustHappen() {
			if total[what] == 0 {
				t.Errorf(
					"in %d seeds there is none of %q: the simulation does not reach it any more",
					*simSeeds, what)
			}
		}
	}
}

// coveringSeeds is how many seeds, from the first on, have all that must happen. Fewer may lack
// what is rare.
const coveringSeeds = 400

// mustHappen returns all outcomes and faults that a long run must have had.
func mustHappen() []string {
	list := []string{"steps", "records", "trades", "unknown", "code refused",
		"order, accepted", "cancel, accepted", "cancel all, accepted", "withdraw, accepted",
		"withdraw with a client id, accepted", "refused for withdraw_client_id",
		"withdraws of an unknown outcome, asked for again",
		"withdraw moved, accepted",
		"operator, done", "operator, refused", "operator, turned away", "operator, unknown",
		"read, answered", "read, not answered", "private reads, not confirmed",
		"no order of a client order id",
		"mails, sent", "mails, not sent", "mails that never can be sent", "wrong clocks",
		"new keys of the server", "old keys of the server, retired",
		"engines, started", "engines, not started", "engines, stopped", "engines, killed",
		"engines, fenced", "engines, overtaken",
		"crashes of the disk", "crashes of the server", "crashes of the machine",
		"writes of the journal lost in them", "other writes lost in them",
		"snapshots, published", "crashes while a snapshot is on its way", "snapshots, damaged",
		"starts from the older snapshot",
		"starts from the first record", "trims",
		"late calls, landed", "late calls, come to nothing",
		"starts that find the store given back", "starts that find the owner of their own folder",
		"starts that insist", "standbys", "standbys, told to stop",
		"takeovers after a wait", "takeovers from an owner of another rhythm",
		"checks that found the store not fit", "two starts at once", "claims that came too late",
		"starts without HEAD", "starts refused, HEAD cannot be read",
		"starts refused, HEAD says more", "writes of HEAD lost in crashes",
		"stores without their last batch, refused", "crashes between the journal and HEAD",
		"backups", "restores", "codes of an earlier history",
		"codes made anew by a history",
		"withdraws, not approved for a freeze", "withdraws, approved despite a freeze",
		"withdraws, refused while new",
		"references, found in the store", "references, not in the store",
		"references, told to an engine that was overtaken",
		"deposits, turned away because the store did not answer",
		"client order ids, taken again", "client order ids of closed orders, sent again",
		"cancel by client order id, accepted", "cancel by client order id, refused for not_open",
		"cancel all of a side, accepted", "cancel all of a prefix, accepted",
		"refused for price_band", "derived prices brought within the band",
		"events of accounts", "clients of accounts, begun",
		"clients of accounts, resumed", "clients of accounts, gone",
		"events of accounts, told to those who come back", "withdraws, told to their accounts",
		"adjustment, accepted", "adjustments, told to their accounts",
		"freezes, told to their accounts", "maintenance with cancels",
		"addresses, changed", "mails about addresses", "refused for held", "accounts, closed"}
	for _, err := range []error{ErrStopping, ErrStalled, ErrBusy, ErrAccountBusy, ErrBehind,
		ErrMaintenance} {
		list = append(list, "turned away: "+err.Error())
	}
	for reason := event.RefusedNonce; reason <= event.RefusedAccountBookLimit; reason++ {
		list = append(list, "refused for "+event.RefusalName(reason))
	}
	for _, fault := range []string{faultRefused, faultLost, faultLate, faultUnanswered,
		faultBroken} {
		list = append(list, "calls of the store, "+fault)
	}
	for _, call := range []string{"acquire", "beat", "check", "release", "append", "apply",
		"snapshot", "trim", "load snapshot", "watermark", "read", "nonces", "trades", "candles",
		"reference"} {
		list = append(list, "faults of "+call)
	}
	list = append(list, specialOutcomes...)
	slices.Sort(list)
	return list
}

// reportLines is how much of the end of a trace is reported.
const reportLines = 80

// report shows the failure of a seed, shortened as far as possible.
func report(t *testing.T, seed uint64, r run) {
	t.Helper()
	if *simShrink == 0 {
		t.Errorf("seed %d fails after %d steps: %v", seed, r.steps, r.err)
		return
	}
	again := play(t, seed, scriptOf(seed))
	if again.hash != r.hash || again.err == nil || again.err.Error() != r.err.Error() {
		t.Errorf("seed %d is not the same when it is played again: %v, then %v", seed, r.err,
			again.err)
	}
	least := shrink.Shrink(scriptOf(seed),
		*simShrink, func(actions script) bool {
			return shrink.SameFailure(play(t, seed, actions).err, r.err)
		})
	short := play(t, seed, least)
	t.Errorf(
		"seed %d fails after %d steps: %v\n\nTo play it again: make sim SEED=%d\nWith %d of its "+
			"%d actions it fails so:\n%s\n%s\nseed %d: %v",
		seed, r.steps, r.err, seed, len(least), len(scriptOf(seed)),
		strings.Join(short.lines[max(0, len(short.lines)-reportLines):], "\n"),
		strings.Join(short.logs, "\n"), seed, short.err)
}

func TestASeedGivesTheSameRunAgain(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		a, b := play(t, seed, scriptOf(seed)), play(t, seed, scriptOf(seed))
		if a.hash != b.hash || a.steps != b.steps || a.records != b.records ||
			!maps.Equal(a.outcomes, b.outcomes) {
			for i := range min(len(a.lines), len(b.lines)) {
				if a.lines[i] != b.lines[i] {
					t.Errorf("line %d: %q, then %q", i, a.lines[i], b.lines[i])
					break
				}
			}
			t.Errorf("seed %d: %d steps with %s, then %d with %s", seed, a.steps, a.hash, b.steps,
				b.hash)
		}
		if a.records < 30 {
			t.Errorf("seed %d: nothing much has happened: %d records", seed, a.records)
		}
	}
}
