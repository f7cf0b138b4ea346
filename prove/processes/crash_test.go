//go:build prove

package processes

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"exchange/gateway/sign"
	"exchange/persistence/redistest"
	"exchange/prove/exchangetest"
)

func TestMain(m *testing.M) { os.Exit(exchangetest.Main(m)) }

// killRounds is the number of kills in each test, unless EXCHANGE_CRASH_ROUNDS sets it. The
// campaign of make chaos kills hundreds of times.
const killRounds = 4

func TestKillOnPebbleLosesNothing(t *testing.T) {
	s := exchangetest.New(t, "pebble:"+t.TempDir())
	campaign(t, s)
}

func TestKillOnRedisLosesNothing(t *testing.T) {
	s := exchangetest.New(t, redistest.Start(t).URL())
	campaign(t, s)
}

// newRandom returns a source seeded by the clock, or by EXCHANGE_CRASH_SEED to repeat a run.
func newRandom(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("EXCHANGE_CRASH_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("EXCHANGE_CRASH_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// A world is an exchange, its users, and all deposits.
type world struct {
	t        *testing.T
	s        *exchangetest.Server
	traders  []*trader
	banker   *banker
	keeper   *keeper
	auditor  *trader // only looks
	payments []*payment
	highest  uint64 // order id seen so far
	acks     atomic.Int64

	backingUp *atomic.Bool // a backup has begun; nil: none is taken
}

// campaign runs rounds of load with a kill in the middle, each followed by a comparison.
func campaign(t *testing.T, s *exchangetest.Server) {
	n := killRounds
	if text := os.Getenv("EXCHANGE_CRASH_ROUNDS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	random := newRandom(t)
	w := &world{t: t, s: s}
	s.Start()
	w.open(8, random)
	for round := range n {
		w.load(100+random.IntN(700), func() { s.Kill(); s.Start() })
		w.compare()
		t.Logf("round %d: %d requests acknowledged so far, all there", round+1, w.acks.Load())
	}
	stops(t, s)
	s.Start()
	w.compare()
}

// open creates and funds the accounts.
func (w *world) open(n int, random *rand.Rand) {
	for i := range n {
		t := w.account(fmt.Sprintf("t%d", i), random)
		w.traders = append(w.traders, t)
		w.fund(t.name, "BTC", "2")
		w.fund(t.name, "USDT", "200")
	}
	w.openBanker(random)
	w.openKeeper(random)
	w.auditor = w.account("auditor", random)
}

func (w *world) account(name string, random *rand.Rand) *trader {
	w.t.Helper()
	return w.accountWith(name, "", []string{"read", "trade"}, random)
}

// opened returns an exchange that runs with n traders, a banker, a keeper and an auditor.
func opened(t *testing.T, s *exchangetest.Server, n int) *world {
	t.Helper()
	w := &world{t: t, s: s}
	w.open(n, newRandom(t))
	return w
}

// endsWith waits until an exchange has ended with a code.
func endsWith(t *testing.T, s *exchangetest.Server, code int, what string) {
	t.Helper()
	exchangetest.Eventually(t, what+" ends", s.Gone)
	if got := s.ExitCode(); got != code {
		t.Errorf("%s ends with %d, want %d", what, got, code)
	}
}

// serves waits until an exchange takes orders.
func serves(t *testing.T, s *exchangetest.Server) {
	t.Helper()
	exchangetest.Eventually(t, "the exchange takes orders", func() bool { return s.Ready() == nil })
}

// clean expects the books of an exchange to balance.
func clean(t *testing.T, s *exchangetest.Server) {
	t.Helper()
	if err := s.Audit(); err != nil {
		t.Error(err)
	}
}

// stops stops an exchange in order, one that serves or stands by.
func stops(t *testing.T, s *exchangetest.Server) {
	t.Helper()
	if code := s.Terminate(); code != 0 {
		t.Errorf("an orderly stop ends with %d", code)
	}
}

// does runs an operator's command that must succeed, and returns its output.
func does(t *testing.T, s *exchangetest.Server, args ...string) string {
	t.Helper()
	out, text, code := s.Command(args...)
	if code != 0 {
		t.Fatalf("%q ends with %d: %s%s", args, code, out, text)
	}
	return out
}

// accountWith opens one account with a key.
func (w *world) accountWith(name, email string, permissions []string, random *rand.Rand) *trader {
	w.t.Helper()
	w.must("/operator/v1/accounts", map[string]string{"name": name, "email": email}, nil)
	t := w.keyOf(name, permissions)
	t.rand = rand.New(rand.NewPCG(random.Uint64(), 0))
	return t
}

// must sends an operator's request, and repeats it while it is turned away by a busy machine.
func (w *world) must(path string, body, answer any) {
	w.t.Helper()
	exchangetest.Eventually(w.t, path+" is done", func() bool {
		status, err := w.s.Call("POST", path, body, answer)
		if err != nil && !turnedAway(status, err) {
			w.t.Fatal(err)
		}
		return err == nil
	})
}

// keyOf makes one more key of an account.
func (w *world) keyOf(name string, permissions []string) *trader {
	w.t.Helper()
	var key struct{ Key, Secret string }
	w.must("/operator/v1/keys", map[string]any{"account": name, "permissions": permissions}, &key)
	return &trader{s: w.s, name: name, key: key.Key, secret: sign.New([]byte(key.Secret)),
		orders: map[string]*sentOrder{}}
}

// turnTo switches every user to another exchange on the same data.
func (w *world) turnTo(s *exchangetest.Server) {
	w.s, w.banker.s, w.keeper.s, w.auditor.s = s, s, s, s
	for _, t := range w.traders {
		t.s = s
	}
}

// load lets every user act until a number of requests is acknowledged, and crashes in between.
func (w *world) load(acks int, crash func()) {
	var wg sync.WaitGroup
	var stop, failed atomic.Bool
	until := w.acks.Load() + int64(acks)
	acts := w.office()
	for _, t := range w.traders {
		acts = append(acts, t.act)
	}
	errs := make([]error, len(acts))
	for i, act := range acts {
		wg.Go(func() {
			for goOn := true; goOn && !stop.Load(); {
				if goOn, errs[i] = act(); goOn {
					w.acks.Add(1)
				}
				if errs[i] != nil {
					failed.Store(true)
				}
			}
		})
	}
	exchangetest.Eventually(w.t, "enough requests are acknowledged", func() bool {
		return failed.Load() || w.acks.Load() >= until
	})
	crash()
	stop.Store(true)
	wg.Wait()
	succeeds(w.t, errors.Join(errs...))
}

// compare checks everything visible through the API, and every request ever sent, and has the
// exchange audit its books.
func (w *world) compare() {
	w.t.Helper()
	w.confirmed()
	if err := w.keeper.compare(); err != nil {
		w.t.Fatalf("account %s: %v", w.keeper.name, err)
	}
	for _, t := range append([]*trader{w.banker.trader}, w.traders...) {
		if err := w.comparePayments(t); err != nil {
			w.t.Fatalf("account %s: %v", t.name, err)
		}
	}
	sums := map[string]decimal.Decimal{}
	ids := map[uint64]bool{}
	for _, t := range w.traders {
		if err := w.compareTrader(t, sums, ids); err != nil {
			w.t.Fatalf("account %s: %v", t.name, err)
		}
	}
	out := map[string]decimal.Decimal{} // paid
	if err := w.banker.compare(sums, out); err != nil {
		w.t.Fatalf("account %s: %v", w.banker.name, err)
	}
	deposits := map[string]decimal.Decimal{}
	for _, p := range w.payments {
		if p.outcome == acknowledged {
			deposits[p.currency] = deposits[p.currency].Add(p.amount)
		}
	}
	for currency, sum := range sums {
		if !sum.Equal(deposits[currency].Sub(out[currency])) {
			w.t.Fatalf("all balances of %s are %v, deposits are %v and withdrawals %v", currency,
				sum, deposits[currency], out[currency])
		}
	}
	for id := range ids {
		w.highest = max(w.highest, id)
	}
	succeeds(w.t, w.s.Audit())
}

// confirmed waits until the store has confirmed its owner again. An exchange that was ready a
// moment ago may refuse reads until then, because Redis has just come back.
func (w *world) confirmed() {
	w.t.Helper()
	begin := time.Now()
	exchangetest.Eventually(w.t, "the store has confirmed its owner", func() bool {
		age, there := w.s.Metrics()["exchange_store_confirmation_age_seconds"]
		return there && age < time.Since(begin).Seconds()
	})
}

// once returns rows by name. An error means a duplicate name.
func once[K comparable, R any](what string, rows []R, name func(R) K) (map[K]R, error) {
	by := map[K]R{}
	for _, r := range rows {
		if _, twice := by[name(r)]; twice {
			return nil, fmt.Errorf("%s %v is there twice", what, name(r))
		}
		by[name(r)] = r
	}
	return by, nil
}

func (w *world) compareTrader(t *trader, sums map[string]decimal.Decimal,
	ids map[uint64]bool) error {
	rows, err := pages(t, "/api/v1/orders/own/", 500, func(o orderRow) uint64 { return o.ID })
	if err != nil {
		return err
	}
	byClientID, err := once("client order id", rows, func(o orderRow) string { return o.ClientID })
	if err != nil {
		return err
	}
	reserved := map[string]decimal.Decimal{}
	for _, o := range rows {
		if ids[o.ID] {
			return fmt.Errorf("order id %d is there twice", o.ID)
		}
		ids[o.ID] = true
		if !o.Filled.Add(o.Amount).Equal(o.Original) {
			return fmt.Errorf("order %+v is half", o)
		}
		if o.Status == 1 && o.Side == "sell" {
			reserved["BTC"] = reserved["BTC"].Add(o.Amount)
		} else if o.Status == 1 {
			reserved["USDT"] = reserved["USDT"].Add(o.Amount.Mul(o.Price))
		}
	}
	trades, err := pages(t, "/api/v1/exchanges/own/", 500, func(r tradeRow) uint64 { return r.ID })
	if err != nil {
		return err
	}
	byID, err := once("trade", trades, func(r tradeRow) uint64 { return r.ID })
	if err != nil {
		return err
	}
	t.open = t.open[:0]
	for id, o := range t.orders {
		row, there := byClientID[id]
		delete(byClientID, id)
		if err := o.compare(row, there, byID); err != nil {
			return fmt.Errorf("order %s: %w", id, err)
		}
		if there {
			if o.outcome == unknown && row.ID <= w.highest {
				return fmt.Errorf("order %s has id %d, and ids up to %d were given before", id,
					row.ID, w.highest)
			}
			o.outcome, o.id = acknowledged, row.ID // now it is known
			if row.Status == 1 {
				t.open = append(t.open, o)
			}
		} else {
			o.outcome = refused
		}
	}
	if len(byClientID) > 0 {
		return fmt.Errorf("there are orders that nobody sent: %v", byClientID)
	}
	return t.compareWallet(reserved, sums)
}

// compareWallet compares reserves with the open orders, and adds the balances to sums.
func (t *trader) compareWallet(reserved, sums map[string]decimal.Decimal) error {
	var wallet []walletRow
	if err := t.get("/api/v1/wallets/", &wallet); err != nil {
		return err
	}
	for _, h := range wallet {
		sums[h.Currency] = sums[h.Currency].Add(h.Balance)
		if !h.Reserve.Equal(reserved[h.Currency]) || h.Reserve.GreaterThan(h.Balance) {
			return fmt.Errorf("%s: balance %v, reserve %v, open orders hold %v", h.Currency,
				h.Balance, h.Reserve, reserved[h.Currency])
		}
	}
	return nil
}

// compare compares the current row with the answers.
func (o *sentOrder) compare(row orderRow, there bool, trades map[uint64]tradeRow) error {
	switch {
	case o.outcome == refused && there:
		return fmt.Errorf("was refused and is there: %+v", row)
	case o.outcome == acknowledged && !there:
		return errors.New("was acknowledged and is not there")
	case !there:
		return nil
	}
	switch {
	case row.Side != o.side || !row.Price.Equal(o.price) || !row.Original.Equal(o.amount):
		return fmt.Errorf("sent %s %v at %v, there is %+v", o.side, o.amount, o.price, row)
	case o.outcome == acknowledged && (row.ID != o.id || row.Filled.LessThan(o.filled)):
		return fmt.Errorf("acknowledged as %d with %v filled, there is %+v", o.id, o.filled, row)
	case o.cancel == acknowledged && row.Status != 2:
		return fmt.Errorf("its cancel was acknowledged, there is %+v", row)
	case !o.cancelSent && row.Status == 2:
		return fmt.Errorf("nobody cancelled it, there is %+v", row)
	}
	for _, t := range o.trades {
		r, ok := trades[t.ID]
		if !ok || !r.Price.Equal(t.Price) || !r.Amount.Equal(t.Amount) {
			return fmt.Errorf("trade %+v was acknowledged, there is %+v", t, r)
		}
	}
	return nil
}

// succeeds requires that there are no errors.
func succeeds(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// must returns a value, and requires that there is no error.
func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		succeeds(t, err)
		return v
	}
}
