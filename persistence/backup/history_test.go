package backup

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/market"
	"exchange/core/matching"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
	"exchange/persistence"
)

// A scope is a test, or one run of a property.
type scope interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
	Cleanup(func())
}

// A history is an exchange in small. It has valid random records, a state that is their fold, and a
// store with their rows, written as the real exchange does.
type history struct {
	scope
	ctx    context.Context
	random *rand.Rand
	store  persistence.Store
	token  persistence.Token
	s      *state.State
	books  []*matching.Book // by pair-1, as the state's

	timeUs            int64
	order, withdrawal uint64
	trade             uint64
	// ids of trades that a pair has reserved and not used: neighbours come swapped
	kept     map[uint16]uint64
	moving   []*event.Withdrawal // pending withdrawals
	verified map[uint64]bool
	flushed  uint64 // the watermark
	rows     persistence.Writes
	nonces   map[string]uint64
}

func newHistory(s scope, store persistence.Store, seed uint64) *history {
	s.Helper()
	s.Logf("the history's seed is %d", seed)
	h := &history{scope: s, ctx: context.Background(), random: rand.New(rand.NewPCG(seed, 1)),
		store: store, s: state.New(), timeUs: 1_700_000_000_000_000,
		kept: map[uint16]uint64{}, verified: map[uint64]bool{}, nonces: map[string]uint64{}}
	var err error
	h.token, _, err = store.Acquire(h.ctx, persistence.Claim{Owner: "test"})
	h.must(err)
	for i, code := range []string{"BTC", "USD", "ETH"} {
		h.apply(event.Record{Kind: event.KindCurrency,
			Currency: event.Currency{Number: uint16(i + 1), Code: code}})
	}
	h.newPair("BTC_USD", 1, 2)
	h.newPair("ETH_USD", 3, 2)
	for _, name := range []string{"alice", "bob", "fees"} {
		h.newAccount(name)
	}
	return h
}

func (h *history) must(err error) {
	h.Helper()
	succeeds(h.scope, err)
}

func (h *history) newPair(name string, base, quote uint16) {
	h.apply(event.Record{Kind: event.KindPair,
		NewPair: event.Pair{Number: uint16(len(h.books) + 1), Name: name, Base: base,
			Quote: quote}})
	h.books = append(h.books, matching.New())
}

// newAccount opens an account with a key and money.
func (h *history) newAccount(name string) {
	id := uint32(len(h.s.Accounts()) + 1)
	h.apply(event.Record{Kind: event.KindAccount, Operator: "operator",
		Account: event.Account{ID: id, Name: name, Email: name + "@example.org"}})
	h.apply(event.Record{Kind: event.KindKey,
		Key: event.Key{Number: uint32(len(h.s.Keys()) + 1), Account: id, Key: "key of " + name,
			Permissions: event.AllPermissions,
			SealedBy:    7 + uint64(id%2), Sealed: []byte("sealed")}})
	for currency := range uint16(3) {
		h.deposit(id, currency+1, 1000e8)
	}
}

func (h *history) deposit(account uint32, currency uint16, amount money.Amount) {
	_, _, last := h.s.LastIDs()
	h.apply(event.Record{Kind: event.KindDeposit, Operator: "operator",
		Deposit: event.Deposit{ID: last + 1, Account: account, Currency: currency, Amount: amount,
			Reference: fmt.Sprint("reference ", last+1)}})
}

// apply folds a record and queues its rows for the store.
func (h *history) apply(r event.Record) {
	h.Helper()
	h.timeUs += h.random.Int64N(100_000_000)
	r.TimeUs = h.timeUs
	var e state.Effects
	h.must(h.s.Apply(&r, &e))
	seq, w := h.s.Seq(), &h.rows
	for i := range e.Closed {
		o := &e.Closed[i]
		status := uint8(trading.StatusDone)
		if o.Cancelled {
			status = trading.StatusCancelled
		}
		w.Orders = append(w.Orders, persistence.Order{ID: o.ID, Account: o.Account, Pair: o.Pair,
			Side: o.Side, Status: status, Price: o.Price, Amount: o.Amount,
			Remaining: o.Remaining, TimeUs: o.TimeUs, ClosedUs: o.ClosedUs, ClosedSeq: seq,
			ClientID: o.ClientID.String()})
	}
	switch o := &r.Order; r.Kind {
	case event.KindOrder:
		h.nonces[h.s.Keys()[o.Key-1].Key.Key] = o.Nonce
		for i := range o.Trades {
			t := &o.Trades[i]
			w.Trades = append(w.Trades, persistence.Trade{ID: t.ID, Pair: r.Pair, TakerSide: o.Side,
				Price: t.Price, Amount: t.Amount, TimeUs: r.TimeUs,
				Taker: o.Account, Maker: t.MakerAccount, TakerOrder: o.ID, MakerOrder: t.Maker,
				TakerFee: t.TakerFee, MakerFee: t.MakerFee})
		}
		if len(o.Trades) > 0 {
			h.candles(r.Pair)
		}
	case event.KindDeposit:
		d := &r.Deposit
		w.Deposits = append(w.Deposits,
			persistence.Deposit{ID: d.ID, Account: d.Account, Currency: d.Currency,
				Amount: d.Amount, TimeUs: r.TimeUs, Reference: d.Reference})
	}
	if d := e.Withdrawal; d != nil {
		w.Withdrawals = append(w.Withdrawals,
			persistence.Withdrawal{ID: d.ID, Account: d.Account, Currency: d.Currency,
				Amount: d.Amount, Status: d.Status,
				TimeUs: d.TimeUs, ClosedUs: r.TimeUs, ClosedSeq: seq, Address: d.Address,
				Details: d.Details})
	}
	if r.Operator != "" {
		w.Actions = append(w.Actions, persistence.Action{Seq: seq, TimeUs: r.TimeUs,
			Operator: r.Operator, What: r.Kind.String()})
	}
}

func (h *history) candles(pair uint16) {
	for f := range market.Frame(market.FrameCount) {
		c, _ := h.s.Pair(pair).Market.Candle(f)
		h.rows.Candles = append(h.rows.Candles,
			persistence.Candle{Pair: pair, Frame: uint8(f), Time: c.Time, Open: c.Open,
				High: c.High, Low: c.Low,
				Close: c.Close, Volume: c.Volume})
	}
}

// flush writes all queued rows to the store.
func (h *history) flush() {
	h.Helper()
	seq := h.s.Seq()
	if seq == h.flushed {
		return
	}
	h.must(h.store.Append(h.ctx, h.token, h.flushed, seq, []byte("records")))
	for _, a := range h.s.Accounts() {
		h.rows.Wallets = append(h.rows.Wallets, wallet(h.s, a))
	}
	for key, nonce := range h.nonces {
		h.rows.Nonces = append(h.rows.Nonces, persistence.Nonce{Key: key, Nonce: nonce})
	}
	h.must(h.store.Apply(h.ctx, h.token, h.flushed, seq, &h.rows))
	h.flushed = seq
	h.rows.Reset()
}

// play makes n random records, and flushes now and then.
func (h *history) play(n int) {
	h.Helper()
	for range n {
		switch k := h.random.IntN(40); {
		case k == 0:
			h.newAccount(fmt.Sprint("account-", len(h.s.Accounts())))
		case k == 1:
			h.deposit(h.account(), uint16(1+h.random.IntN(3)),
				money.Amount(1+h.random.Int64N(100e8)))
		case k < 4:
			h.withdrawalStep()
		case k < 6:
			h.apply(event.Record{Kind: event.KindMaintenance, Operator: "jane",
				Maintenance: event.Maintenance{On: h.random.IntN(2) == 0, Message: "back soon"}})
		case k < 10:
			h.cancel()
		default:
			h.place()
		}
		if h.random.IntN(15) == 0 {
			h.flush()
		}
	}
}

func (h *history) account() uint32 { return uint32(1 + h.random.IntN(len(h.s.Accounts()))) }

func (h *history) place() {
	h.Helper()
	a := h.s.Account(h.account())
	pair := uint16(1 + h.random.IntN(len(h.books)))
	p, book := h.s.Pair(pair), h.books[pair-1]
	side := trading.Side(1 + h.random.IntN(2))
	price, amount := money.Price((1+h.random.Int64N(6))*50_000_000),
		money.Amount(1+h.random.Int64N(20e8))
	currency, need := ledger.Need(side, price, amount, p.Base, p.Quote)
	if a.Wallet.Get(currency).Available().Cmp(need) < 0 {
		h.deposit(a.ID, currency, 500e8)
		return
	}
	fills, rest, cut := book.Match(side, price, amount, 3, nil)
	h.order++
	o := event.Order{ID: h.order, Account: a.ID, Key: a.Keys[0], Nonce: h.order, Side: side,
		RestCancelled: cut, Price: price, Amount: amount, Remaining: rest, FeeAccount: 3}
	if h.random.IntN(2) == 0 {
		o.ClientID, _ = event.NewClientID(fmt.Sprint("order-", o.ID))
	}
	for i, f := range fills {
		o.Trades = append(o.Trades, event.Trade{ID: h.tradeID(pair, i), Maker: f.Maker,
			MakerAccount: f.MakerAccount, Price: f.Price, Amount: f.Amount,
			MakerRemaining: f.MakerRemaining, TakerFee: money.Amount(1).Balance()})
	}
	if o.Rests() {
		book.Add(trading.Order{ID: o.ID, Account: a.ID, Side: side, Price: price, Amount: amount,
			Remaining: rest})
	}
	h.apply(event.Record{Kind: event.KindOrder, Pair: pair, Order: o})
}

// tradeID gives ids that grow within a pair, while neighbours of two pairs may come swapped.
func (h *history) tradeID(pair uint16, n int) uint64 {
	if id := h.kept[pair]; id != 0 {
		delete(h.kept, pair)
		return id
	}
	h.trade++
	if other := uint16(1 + h.random.IntN(len(h.books))); n == 0 && other != pair &&
		h.kept[other] == 0 {
		h.kept[other] = h.trade
		h.trade++
	}
	return h.trade
}

func (h *history) cancel() {
	h.Helper()
	a := h.s.Account(h.account())
	open := slices.Collect(a.Open.Newest())
	if len(open) == 0 {
		h.place()
		return
	}
	which := open[h.random.IntN(len(open))]
	o, _ := h.books[which.Pair-1].Cancel(which.ID)
	h.order++
	h.apply(event.Record{Kind: event.KindCancel, Pair: which.Pair,
		Operator: []string{"", "jane"}[h.random.IntN(2)],
		Cancel: event.Cancel{ID: h.order, Order: o.ID, Account: a.ID, Side: o.Side, Price: o.Price,
			Remaining: o.Remaining}})
}

// withdrawalStep requests a withdrawal, or moves one to its next status.
func (h *history) withdrawalStep() {
	h.Helper()
	if len(h.moving) < 3 {
		h.withdrawal++
		w := &event.Withdrawal{ID: h.withdrawal, Account: h.account(),
			Currency: uint16(1 + h.random.IntN(3)), Amount: money.Amount(1 + h.random.Int64N(1e8)),
			Address: "somewhere"}
		if h.s.Account(w.Account).Wallet.Get(w.Currency).Available().Cmp(w.Amount.Balance()) < 0 {
			return
		}
		h.moving = append(h.moving, w)
		h.apply(event.Record{Kind: event.KindWithdrawal, Withdrawal: *w})
		return
	}
	i := h.random.IntN(len(h.moving))
	w := h.moving[i]
	m := event.WithdrawalStatus{ID: w.ID, Account: w.Account, Currency: w.Currency,
		Amount: w.Amount, To: event.WithdrawalVerified}
	if h.verified[w.ID] {
		m.To = []uint8{event.WithdrawalApproved, event.WithdrawalRefused,
			event.WithdrawalCancelled}[h.random.IntN(3)]
		h.moving = slices.Delete(h.moving, i, i+1)
	}
	h.verified[w.ID] = true
	h.apply(event.Record{Kind: event.KindWithdrawalStatus, WithdrawalStatus: m})
}

// contents is the content of all lists of a store, for the accounts and pairs of a state.
type contents struct {
	trades, pairTrades, accountTrades []persistence.Trade
	orders                            []persistence.Order
	deposits                          []persistence.Deposit
	withdrawals, accountWithdrawals   []persistence.Withdrawal
	candles                           []persistence.Candle
	actions                           []persistence.Action
	wallets                           []persistence.Wallet // by account, as of sequence 0
	nonces                            map[string]uint64
}

func collect[Q, T any](s scope, list func(context.Context, Q, func(*T) bool) error, q Q) (all []T) {
	s.Helper()
	succeeds(s, list(context.Background(), q, func(row *T) bool {
		all = append(all, *row)
		return true
	}))
	return all
}

// wantClientOrders compares the index of client ids with the closed orders of an account, newest
// first.
func wantClientOrders(s scope, store persistence.Store, closed []persistence.Order) {
	s.Helper()
	newer := map[string]bool{"": true}
	for _, want := range closed {
		if newer[want.ClientID] {
			continue
		}
		newer[want.ClientID] = true
		got := collect(s, store.Orders, persistence.OrderQuery{Account: want.Account,
			ClientID: want.ClientID})
		if len(got) == 0 || got[0] != want {
			s.Fatal(fmt.Sprintf("client id %q leads to %+v, not to order %d", want.ClientID, got,
				want.ID))
		}
	}
}

func contentsOf(s scope, store persistence.Store, st *state.State) *contents {
	s.Helper()
	c := &contents{nonces: map[string]uint64{}}
	c.trades = collect(s, store.Trades, persistence.TradeQuery{})
	c.withdrawals = collect(s, store.Withdrawals, persistence.WithdrawalQuery{})
	c.actions = collect(s, store.Actions, persistence.ActionQuery{})
	for _, a := range st.Accounts() {
		c.accountTrades = append(c.accountTrades,
			collect(s, store.Trades, persistence.TradeQuery{Account: a.ID})...)
		closed := collect(s, store.Orders, persistence.OrderQuery{Account: a.ID})
		wantClientOrders(s, store, closed)
		c.orders = append(c.orders, closed...)
		c.deposits = append(c.deposits,
			collect(s, store.Deposits, persistence.DepositQuery{Account: a.ID})...)
		for i := len(c.deposits) - 1; i >= 0 && c.deposits[i].Account == a.ID; i-- {
			want := c.deposits[i]
			if got, err := store.Reference(context.Background(), 0, want.Reference); err != nil ||
				got != want {
				s.Fatal(fmt.Sprintf("reference %q leads to %+v, %v", want.Reference, got, err))
			}
		}
		c.accountWithdrawals = append(c.accountWithdrawals,
			collect(s, store.Withdrawals, persistence.WithdrawalQuery{Account: a.ID})...)
	}
	for _, p := range st.Pairs() {
		c.pairTrades = append(c.pairTrades,
			collect(s, store.Trades, persistence.TradeQuery{Pair: p.Number, Ascending: true})...)
		for f := range market.FrameCount {
			c.candles = append(c.candles, collect(s, store.Candles,
				persistence.CandleQuery{Pair: p.Number, Frame: uint8(f)})...)
		}
	}
	err := store.Wallets(context.Background(), func(w *persistence.Wallet) bool {
		copied := *w
		copied.Seq, copied.Holdings = 0, slices.Clone(w.Holdings)
		slices.SortFunc(copied.Holdings, func(a, b persistence.Holding) int {
			return slices.Compare([]byte(a.Currency), []byte(b.Currency))
		})
		c.wallets = append(c.wallets, copied)
		return true
	})
	if err == nil {
		err = store.Nonces(context.Background(), func(key string, nonce uint64) {
			c.nonces[key] = nonce
		})
	}
	succeeds(s, err)
	slices.SortFunc(c.wallets, func(a, b persistence.Wallet) int {
		return int(a.Account) - int(b.Account)
	})
	return c
}

// succeeds wants no errors.
func succeeds(s scope, errs ...error) {
	s.Helper()
	if err := errors.Join(errs...); err != nil {
		s.Fatal(err)
	}
}
