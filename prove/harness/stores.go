package harness

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"exchange/actors"
	"exchange/actors/audit"
	"exchange/core/event"
	"exchange/gateway/api"
	"exchange/persistence"
)

// A stubborn store holds appends back on request, and loses sight of its owner.
type stubborn struct {
	persistence.Store
	// appends wait until the gate is closed; nil: they do not wait
	gate   atomic.Pointer[chan struct{}]
	Unseen atomic.Bool
	Silent atomic.Bool // lookups of references are not answered
	Broken atomic.Bool // they meet a damaged entry
}

func (s *stubborn) Reference(ctx context.Context, watermark uint64,
	reference string) (persistence.Deposit, error) {
	if s.Broken.Load() {
		return persistence.Deposit{}, fmt.Errorf("%w: reference %q",
			persistence.ErrCorrupt, reference)
	}
	if s.Silent.Load() {
		return persistence.Deposit{}, errors.New("no answer")
	}
	return s.Store.Reference(ctx, watermark, reference)
}

func (s *stubborn) Append(ctx context.Context, tok persistence.Token, prev, next uint64,
	batch []byte) error {
	if gate := s.gate.Load(); gate != nil {
		select {
		case <-*gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.Store.Append(ctx, tok, prev, next, batch)
}

func (s *stubborn) Check(ctx context.Context, tok persistence.Token) error {
	if s.Unseen.Load() {
		return errors.New("no connection")
	}
	return s.Store.Check(ctx, tok)
}

// Block holds appends back until the function that it returns is called.
func (s *stubborn) Block() (release func()) {
	gate := make(chan struct{})
	s.gate.Store(&gate)
	return func() {
		s.gate.Store(nil)
		close(gate)
	}
}

// NewStubborn is an exchange on a stubborn store, with two accounts of 100 keys each, that have the
// names alice-0 ... bob-99, so that commands of one account need not come in the order of one
// nonce.
func NewStubborn(t *testing.T, change func(*actors.Options)) (*Exchange, *stubborn) {
	s := &stubborn{}
	// until then the usual settings hold, because filling takes longer than the short times allow
	filled := false
	h := New(t, func(o *actors.Options) {
		s.Store = o.Store
		o.Store = s
		o.Limits.KeysPerAccount = 1000
		if filled {
			change(o)
		}
	})
	for _, name := range []string{"alice", "bob"} {
		h.Account(name)
		h.Deposit(name, "100000", "USDT", name)
		for i := range 100 {
			h.Key(name, name+"-"+strconv.Itoa(i), event.AllPermissions)
		}
	}
	if filled = change != nil; filled {
		h.Stop()
		h.Start()
	}
	return h, s
}

// RefusedForNow checks a 503 with a time to retry.
func RefusedForNow(t *testing.T, what string, a Answer, f *api.Failure) {
	t.Helper()
	Want(t, what, a, 503, Detail(f.Detail))
	if got := string(a.Header.Peek("Retry-After")); got != strconv.Itoa(f.RetryAfter) {
		t.Errorf("%s: Retry-After is %q", what, got)
	}
}

type DamagedArchive struct{}

func (DamagedArchive) Dir() string { return "/archive" }

func (DamagedArchive) Failures() uint64 { return 3 }

func (DamagedArchive) Open(authenticated bool) (audit.Archive, error) {
	if !authenticated {
		return DamagedArchive{}, nil
	}
	return nil, errors.New("the key 0123456789abcdef is missing")
}

func (DamagedArchive) Histories() ([]persistence.HistoryID, error) { return nil, nil }

func (DamagedArchive) Base(context.Context) (uint64, []byte, error) { return 0, nil, nil }

func (DamagedArchive) Read(context.Context, uint64, func(prev, next uint64,
	batch []byte) error) error {
	return persistence.ErrCorrupt
}

// A Tampered store changes written data without the engine.
type Tampered struct {
	persistence.Store
	OnApply atomic.Pointer[func(*persistence.Writes)]
}

// Hold keeps the store from taking projections until the function that it returns is called.
func (p *Tampered) Hold() (release func()) {
	gate := make(chan struct{})
	wait := func(*persistence.Writes) { <-gate }
	p.OnApply.Store(&wait)
	return func() {
		p.OnApply.Store(nil)
		close(gate)
	}
}

func (p *Tampered) Apply(ctx context.Context, tok persistence.Token, from, to uint64,
	w *persistence.Writes) error {
	if change := p.OnApply.Load(); change != nil {
		(*change)(w)
	}
	return p.Store.Apply(ctx, tok, from, to, w)
}

// A SlowHistory is a store whose lists and lookups of the past wait at a gate, and are counted.
type SlowHistory struct {
	persistence.Store
	mu       sync.Mutex
	gate     chan struct{} // queries wait until the gate is closed; nil: they do not wait
	in, most int           // queries now, and at once at most
	asked    int           // queries in all
}

func (s *SlowHistory) enter() (leave func()) {
	s.mu.Lock()
	gate := s.gate
	s.in, s.asked = s.in+1, s.asked+1
	s.most = max(s.most, s.in)
	s.mu.Unlock()
	if gate != nil {
		<-gate
	}
	return func() {
		s.mu.Lock()
		s.in--
		s.mu.Unlock()
	}
}

// Block holds queries back until the function that it returns is called.
func (s *SlowHistory) Block() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate := make(chan struct{})
	s.gate, s.most = gate, 0
	return func() {
		s.mu.Lock()
		s.gate = nil
		s.mu.Unlock()
		close(gate)
	}
}

func (s *SlowHistory) Queries() (now, most, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.in, s.most, s.asked
}

func (s *SlowHistory) Trades(ctx context.Context, q persistence.TradeQuery,
	fn func(*persistence.Trade) bool) error {
	defer s.enter()()
	return s.Store.Trades(context.WithoutCancel(ctx), q, fn)
}

func (s *SlowHistory) Orders(ctx context.Context, q persistence.OrderQuery,
	fn func(*persistence.Order) bool) error {
	defer s.enter()()
	return s.Store.Orders(context.WithoutCancel(ctx), q, fn)
}

func (s *SlowHistory) Order(ctx context.Context, account uint32, id uint64) (persistence.Order,
	error) {
	defer s.enter()()
	return s.Store.Order(context.WithoutCancel(ctx), account, id)
}

func (s *SlowHistory) OrdersByID(ctx context.Context, account uint32, ids []uint64,
	fn func(*persistence.Order) bool) error {
	defer s.enter()()
	return s.Store.OrdersByID(context.WithoutCancel(ctx), account, ids, fn)
}

func (s *SlowHistory) Deposits(ctx context.Context, q persistence.DepositQuery,
	fn func(*persistence.Deposit) bool) error {
	defer s.enter()()
	return s.Store.Deposits(context.WithoutCancel(ctx), q, fn)
}

func (s *SlowHistory) Withdrawals(ctx context.Context, q persistence.WithdrawalQuery,
	fn func(*persistence.Withdrawal) bool) error {
	defer s.enter()()
	return s.Store.Withdrawals(context.WithoutCancel(ctx), q, fn)
}

func (s *SlowHistory) Withdrawal(ctx context.Context, id uint64) (persistence.Withdrawal, error) {
	defer s.enter()()
	return s.Store.Withdrawal(context.WithoutCancel(ctx), id)
}

func (s *SlowHistory) Candles(ctx context.Context, q persistence.CandleQuery,
	fn func(*persistence.Candle) bool) error {
	defer s.enter()()
	return s.Store.Candles(context.WithoutCancel(ctx), q, fn)
}

func (s *SlowHistory) Actions(ctx context.Context, q persistence.ActionQuery,
	fn func(*persistence.Action) bool) error {
	defer s.enter()()
	return s.Store.Actions(context.WithoutCancel(ctx), q, fn)
}

// CrowdsTheStore sends many requests at once. Those that find a place wait for the store. All
// others are refused at once.
func (h *Exchange) CrowdsTheStore(store *SlowHistory, what string, places, requests int,
	request func(i int) Answer, refused, good func(Answer) bool,
) {
	t := h.T
	t.Helper()
	release := sync.OnceFunc(store.Block())
	defer release()
	answers := make(chan Answer, requests)
	for i := range requests {
		go func() { answers <- request(i) }()
	}
	Eventually(t, "all requests without a place are answered", func() bool {
		return len(answers) >= requests-places
	})
	for range requests - places {
		if a := <-answers; !refused(a) {
			t.Errorf("%s: one of too many has %d %s%s", what, a.Status, a.Header, a.Body)
		}
	}
	Eventually(t, "the others are in the store", func() bool {
		now, _, _ := store.Queries()
		return now == places
	})
	// an orderly stop waits for these
	if n := h.Engine.Stats().ReadsInFlight; n != int64(places) {
		t.Errorf("%s: %d reads are in flight, want %d", what, n, places)
	}
	h.Do("GET", "/api/v1/orderbook/BTC_USDT/", "", "").Is(t, 200, what, "data in memory")
	release()
	for range places {
		if a := <-answers; !good(a) {
			t.Errorf("%s: %d %.300s", what, a.Status, a.Body)
		}
	}
	if _, most, _ := store.Queries(); most != places {
		t.Errorf("%s: %d queries were in the store at once", what, most)
	}
	Eventually(t, "all places are given back", func() bool {
		return h.Engine.Stats().ReadsInFlight == 0
	})
}
