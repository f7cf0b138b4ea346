package stream

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
	"exchange/gateway/api"
)

// A mirror is a client's copy of an account: a snapshot, and the events after it.
type mirror struct {
	t        testing.TB
	seq      uint64
	began    bool
	orders   map[uint64]string // rows, open and closed
	open     map[uint64]bool
	balances map[string]string
	trades   []string // rows
	causes   map[string]int
	// rows of withdrawals, and those that are pending; rows of deposits since the snapshot
	withdraws map[uint64]string
	pending   map[uint64]bool
	deposits  []string
	frozen    bool
	parts     int // of the message that is not whole yet
	events    int
}

func newMirror(t testing.TB) *mirror { return &mirror{t: t, causes: map[string]int{}} }

// ownBody is an event of own, or a part of one.
type ownBody struct {
	Snapshot bool
	Sequence uint64
	Prev     *uint64
	Cause    string
	Reason   string `json:"cancel_reason"`
	Order    uint64
	Orders   []json.RawMessage
	Trades   []json.RawMessage
	Balances []json.RawMessage

	Deposits          []json.RawMessage
	Withdraws         []json.RawMessage
	Frozen            *bool
	Complete          bool `json:"orders_complete"`
	WithdrawsComplete bool `json:"withdraws_complete"`
	Part              int
	Parts             int
}

// take applies an event. It returns the event.
func (m *mirror) take(s streamEvent) (x ownBody) {
	m.t.Helper()
	if s.name != "own" {
		m.t.Fatalf("the event %s %s", s.name, s.body)
	}
	worked(m.t, json.Unmarshal(s.body, &x))
	prev := uint64(0)
	if x.Prev != nil {
		prev = *x.Prev
	}
	switch {
	case x.Part > 1: // of the same message
		if m.parts++; m.parts != x.Part || m.seq != x.Sequence {
			m.t.Fatalf("part %d of %d follows %d parts of %d", x.Part, x.Sequence, m.parts-1, m.seq)
		}
	case x.Snapshot:
		m.orders, m.open = map[uint64]string{}, map[uint64]bool{}
		m.balances, m.trades = map[string]string{}, nil
		m.withdraws, m.pending, m.deposits = map[uint64]string{}, map[uint64]bool{}, nil
		if x.Frozen == nil {
			m.t.Fatalf("a snapshot says nothing of a freeze: %s", s.body)
		}
	case !m.began || prev != m.seq || x.Sequence <= prev:
		m.t.Fatalf("event %d follows %d, and the client is at %d", x.Sequence, prev, m.seq)
	}
	if x.Part <= 1 {
		m.parts = 1
		if !x.Snapshot {
			m.events++
			m.causes[x.Cause]++
		}
	}
	m.began, m.seq = true, x.Sequence
	for _, raw := range x.Orders {
		var o struct {
			ID     uint64
			Status int
		}
		worked(m.t, json.Unmarshal(raw, &o))
		m.orders[o.ID] = string(raw)
		if m.open[o.ID] = o.Status == 1; o.Status != 1 {
			delete(m.open, o.ID)
		}
	}
	for _, raw := range x.Trades {
		m.trades = append(m.trades, string(raw))
	}
	for _, raw := range x.Balances {
		var b struct{ Currency string }
		worked(m.t, json.Unmarshal(raw, &b))
		m.balances[b.Currency] = string(raw)
	}
	m.takeFunds(&x)
	return x
}

// takeFunds applies an event's deposits, withdraws and freezes.
func (m *mirror) takeFunds(x *ownBody) {
	m.t.Helper()
	for _, raw := range x.Deposits {
		m.deposits = append(m.deposits, string(raw))
	}
	for _, raw := range x.Withdraws {
		var w struct {
			ID     uint64
			Status int
		}
		worked(m.t, json.Unmarshal(raw, &w))
		m.withdraws[w.ID] = string(raw)
		if m.pending[w.ID] = w.Status < 30; w.Status >= 30 {
			delete(m.pending, w.ID)
		}
	}
	if x.Frozen != nil {
		m.frozen = *x.Frozen
	}
	if !x.Snapshot && ((x.Cause == "deposit") != (len(x.Deposits) == 1) ||
		(x.Cause == "withdraw") != (len(x.Withdraws) == 1) ||
		(x.Cause == "freeze") != (x.Frozen != nil)) {
		m.t.Fatalf("the event %+v", x)
	}
}

// whole takes a message with all its parts.
func (m *mirror) whole(l *listener) ownBody {
	m.t.Helper()
	x := m.take(l.next())
	for m.parts < x.Parts {
		x = m.take(l.next())
	}
	return x
}

// until takes events until that of a sequence.
func (m *mirror) until(l *listener, seq uint64) {
	m.t.Helper()
	for m.seq < seq {
		m.whole(l)
	}
}

// openRows returns the rows of open orders.
func (m *mirror) openRows() (rows []string) {
	for id := range m.open {
		rows = append(rows, m.orders[id])
	}
	slices.Sort(rows)
	return rows
}

// pendingRows returns the rows of pending withdrawals.
func (m *mirror) pendingRows() (rows []string) {
	for id := range m.pending {
		rows = append(rows, m.withdraws[id])
	}
	slices.Sort(rows)
	return rows
}

// same wants two mirrors to have the same open orders, pending withdrawals and balances.
func (m *mirror) same(other *mirror) {
	m.t.Helper()
	if m.seq != other.seq {
		m.t.Fatalf("one is at %d, the other at %d", m.seq, other.seq)
	}
	if a, b := m.openRows(), other.openRows(); !slices.Equal(a, b) {
		m.t.Fatalf("at %d there are the open orders\n%s\nand not\n%s", m.seq,
			strings.Join(a, "\n"), strings.Join(b, "\n"))
	}
	if a, b := m.pendingRows(), other.pendingRows(); !slices.Equal(a, b) {
		m.t.Fatalf("at %d there are the pending withdrawals\n%s\nand not\n%s", m.seq,
			strings.Join(a, "\n"), strings.Join(b, "\n"))
	}
	if fmt.Sprint(m.balances) != fmt.Sprint(other.balances) {
		m.t.Fatalf("at %d there are the balances %v, and not %v", m.seq, m.balances,
			other.balances)
	}
}

// own subscribes a client to its account.
func (l *listener) own(after uint64) (resumed bool) {
	l.t.Helper()
	fields := map[string]uint64{}
	if after > 0 {
		fields["after"] = after
	}
	switch got := l.ask("own.subscribe", fields); got {
	case `{"status":200,"body":{"resumed":true}}`:
		return true
	case `{"status":200,"body":{"resumed":false}}`:
	default:
		l.t.Fatal(got)
	}
	return false
}

// watchOwn logs a new client in and gives it a mirror of its account.
func (w *world) watchOwn(trader int) (*listener, *mirror) {
	w.t.Helper()
	l, m := w.listen(), newMirror(w.t)
	l.in(fmt.Sprint("key-trader-", trader))
	if l.own(0) {
		w.t.Fatal("resumed without a place")
	}
	if x := m.whole(l); !x.Snapshot || x.Prev != nil {
		w.t.Fatalf("the first event is no snapshot: %+v", x)
	}
	return l, m
}

func (w *world) reader(trader int) committed.Client {
	return committed.Client{Key: w.keys[trader], Nonce: w.nonces.Add(1)}
}

// isREST wants a mirror to be the account as REST shows it now.
func (m *mirror) isREST(w *world, trader int) {
	w.t.Helper()
	other := newMirror(w.t)
	other.seq, other.orders, other.open = m.seq, map[uint64]string{}, map[uint64]bool{}
	other.balances = map[string]string{}
	open, err := w.engine.Orders(w.reader(trader), committed.OrderQuery{Limit: 10_000,
		Status: trading.StatusActive})
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range open.Rows {
		o := &open.Rows[i]
		other.open[o.ID] = true
		other.orders[o.ID] = string(api.AppendOwnOrder(nil, w.engine.Public, o))
	}
	wallet := must(w.engine.Wallet(w.reader(trader)))
	for _, c := range w.engine.Currencies() {
		other.balances[c.Code] = string(api.AppendHolding(nil, c.Code,
			api.Holding(wallet.Holdings, c.Number)))
	}
	other.withdraws, other.pending = map[uint64]string{}, map[uint64]bool{}
	m.hasFunds(w, trader, other)
	m.same(other)
	for id, row := range m.orders {
		o, found, err := w.engine.Order(w.reader(trader), id)
		if got := string(api.AppendOwnOrder(nil, w.engine.Public, &o)); err != nil || !found ||
			got != row {
			w.t.Fatalf("order %d is %s, and REST has %s (%v)", id, row, got, err)
		}
	}
	m.hasTrades(w, trader)
}

// hasFunds fills in the pending withdrawals as REST shows them. It wants all rows of withdrawals
// and deposits that the mirror has to be rows of REST.
func (m *mirror) hasFunds(w *world, trader int, other *mirror) {
	w.t.Helper()
	list := must(w.engine.Withdrawals(w.reader(trader), committed.WithdrawalQuery{Limit: 10_000}))
	rest := map[uint64]string{}
	for i := range list.Rows {
		x := &list.Rows[i]
		rest[x.ID] = string(api.AppendWithdrawal(nil, w.engine.Public, x))
		if other.withdraws[x.ID] = rest[x.ID]; x.Status < 30 {
			other.pending[x.ID] = true
		}
	}
	for id, row := range m.withdraws {
		if rest[id] != row {
			w.t.Fatalf("withdrawal %d is %s, and REST has %s", id, row, rest[id])
		}
	}
	made := must(w.engine.Deposits(w.reader(trader),
		committed.DepositQuery{Limit: max(1, len(m.deposits))}))
	for i, row := range m.deposits { // REST has the newest first
		d := &made.Rows[len(m.deposits)-1-i]
		if got := string(api.AppendDeposit(nil, w.engine.Public, d)); got != row {
			w.t.Fatalf("a deposit is %s, and REST has %s", row, got)
		}
	}
}

// hasTrades wants the mirror's trades to be those of exchanges/own: it has seen all.
func (m *mirror) hasTrades(w *world, trader int) {
	w.t.Helper()
	trades := must(w.engine.OwnTrades(w.reader(trader), 0, 0,
		committed.TradeQuery{Limit: len(m.trades) + 1}))
	var rows []string
	for i := range trades.Rows {
		rows = append(rows, string(api.AppendOwnTrade(nil, w.engine.Public, &trades.Rows[i],
			true)))
	}
	mine := slices.Clone(m.trades)
	slices.Sort(mine)
	slices.Sort(rows)
	if !slices.Equal(mine, rows) {
		w.t.Fatalf("the trades are\n%s\nand REST has\n%s", strings.Join(mine, "\n"),
			strings.Join(rows, "\n"))
	}
}

func TestOwnSendsAccountEvents(t *testing.T) {
	bubble(t, testOwnSendsAccountEvents)
}

func testOwnSendsAccountEvents(t *testing.T) {
	w := newWorld(t, nil)
	l, m := w.watchOwn(0)
	m.isREST(w, 0)
	began := m.seq
	first := w.place(0, "BTC_USDT", trading.Sell, 100, 2)
	l.expect("own", fmt.Sprintf(`{"sequence":*,"prev":%d,"timestamp":*,"cause":"placed",`+
		`"order":%d,"orders":[{"id":%d,"pair":"BTC_USDT","type":"sell","status":1,"price":100,`+
		`"amount":2,"amount_filled":0,"amount_original":2,"date":*}],"trades":[],"balances":[{`+
		`"currency":"BTC","balance":1000000,"reserve":2}]}`, began, first, first))
	w.place(1, "BTC_USDT", trading.Buy, 100, 0.5)
	l.expect("own", fmt.Sprintf(`{"sequence":*,"prev":*,"timestamp":*,"cause":"trade",`+
		`"order":%d,"orders":[{"id":%d,"pair":"BTC_USDT","type":"sell","status":1,"price":100,`+
		`"amount":1.5,"amount_filled":0.5,"amount_original":2,"date":*}],"trades":[{"id":*,`+
		`"price":100,"pair":"BTC_USDT","type":"buy","timestamp":*,"amount":0.5,"my_side":"sell",`+
		`"fee":0,"fee_currency":"USDT","order":%d,"maker":true}],"balances":[{"currency":"BTC",`+
		`"balance":999999.5,"reserve":1.5},{"currency":"USDT","balance":1000050,"reserve":0}]}`,
		first, first, first))
	w.cancel(0, first)
	l.expect("own", fmt.Sprintf(`{"sequence":*,"prev":*,"timestamp":*,"cause":"cancelled",`+
		`"cancel_reason":"owner","order":%d,"orders":[{"id":%d,"pair":"BTC_USDT","type":"sell",`+
		`"status":2,"price":100,"amount":1.5,"amount_filled":0.5,"amount_original":2,"date":*}],`+
		`"trades":[],"balances":[{"currency":"BTC","balance":999999.5,"reserve":0}]}`,
		first, first))
	w.must(w.engine.Deposit("test", "trader-0", "ETH", coin, "one more"))
	l.expect("own", `{"sequence":*,"prev":*,"timestamp":*,"cause":"deposit","orders":[],`+
		`"trades":[],"balances":[{"currency":"ETH","balance":1000001,"reserve":0}],`+
		`"deposits":[{"id":*,"timestamp":*,"currency":"ETH","amount":1}]}`)
	w.expectWithdraw(l)
	if got := l.ask("own.unsubscribe"); got != `{"status":200,"body":{}}` {
		t.Error(got)
	}
	w.place(0, "BTC_USDT", trading.Sell, 100, 2)
	if got := l.ask("logout"); got != `{"status":200,"body":{}}` {
		t.Error(got)
	}
	if l.mu.Lock(); len(l.got) > 0 {
		t.Errorf("it still receives %s", l.got[0].body)
	}
	l.mu.Unlock()
}

// expectWithdraw expects the events of each step of a withdrawal of the first trader.
func (w *world) expectWithdraw(l *listener) {
	w.t.Helper()
	name := must(event.NewClientID("mine"))
	expect := func(status, balance, reserve int, c *actors.Command, err error) {
		w.t.Helper()
		if err != nil || c.Outcome() != actors.Accepted {
			w.t.Fatal(err)
		}
		c.Free()
		balances := fmt.Sprintf(`{"currency":"ETH","balance":%d,"reserve":%d}`, balance, reserve)
		if status == 20 {
			balances = "" // nothing moves
		}
		l.expect("own", fmt.Sprintf(`{"sequence":*,"prev":*,"timestamp":*,"cause":"withdraw",`+
			`"orders":[],"trades":[],"balances":[%s],"withdraws":[{"id":*,"timestamp":*,`+
			`"currency":"ETH","amount":1,"status":%d,"address":"there","client_id":"mine"}]}`,
			balances, status))
	}
	eth := w.engine.Currency([]byte("ETH")).Number
	c, err := w.engine.Do(actors.NewWithdrawal(w.keys[0], w.nonces.Add(1), eth, coin,
		"there").WithClientID(name))
	worked(w.t, err)
	id := c.Record().Withdrawal.ID
	expect(10, 1000001, 1, c, nil)
	q := &committed.PendingWithdrawal{ID: id}
	if err := w.engine.Ask(q, nil, 0); err != nil || !q.Found {
		w.t.Fatal(err, q.Found)
	}
	_, m := w.watchOwn(0)
	if rows := m.pendingRows(); len(rows) != 1 || !strings.Contains(rows[0], `"client_id":"mine"`) {
		w.t.Errorf("the snapshot has the pending withdrawals %v", rows)
	}
	c, err = w.engine.Do(actors.NewConfirmation(w.keys[0], w.nonces.Add(1), id,
		w.engine.Code(&q.Withdrawal)))
	expect(20, 0, 0, c, err)
	c, err = w.engine.SetWithdrawalStatus("test", id, event.WithdrawalApproved, "")
	expect(30, 1000000, 0, c, err)
	w.expectAdjustment(l, eth)
}

// expectAdjustment expects the event of a debit by an operator for the first trader.
func (w *world) expectAdjustment(l *listener, currency uint16) {
	w.t.Helper()
	reference := must(event.NewClientID("wire-7"))
	c, err := w.engine.Adjust("test", w.keys[0].Account.ID, currency, coin, "twice", reference)
	if err != nil || c.Outcome() != actors.Accepted {
		w.t.Fatal(err)
	}
	c.Free()
	l.expect("own", `{"sequence":*,"prev":*,"timestamp":*,"cause":"withdraw","orders":[],`+
		`"trades":[],"balances":[{"currency":"ETH","balance":999999,"reserve":0}],`+
		`"withdraws":[{"id":*,"timestamp":*,"currency":"ETH","amount":1,"status":30,`+
		`"address":"","adjustment":true,"details":"twice","client_id":"wire-7"}]}`)
}

// act does something random for a trader.
func (w *world) act(r *rand.Rand, trader int, orders []uint64) []uint64 {
	w.t.Helper()
	key, now := w.keys[trader], time.Now().UnixMicro()
	free := func(c *actors.Command, err error) {
		if err != nil {
			w.t.Fatal(err)
		}
		if c.Outcome() == actors.Accepted && c.Record().Order.ID != 0 {
			orders = append(orders, c.Record().Order.ID)
		}
		c.Free()
	}
	some := func() uint64 {
		if len(orders) == 0 {
			return 1
		}
		return orders[max(0, len(orders)-1-r.IntN(12))]
	}
	switch n := r.IntN(100); {
	case n < 62:
		q := w.request(r, now)
		free(w.engine.Place(key, w.nonces.Add(1), &q))
	case n < 75:
		c := must(w.engine.Cancel(key, w.nonces.Add(1), some()))
		c.Free()
	case n < 88:
		a := actors.AmendRequest{Order: some(), Amount: money.Amount(1+r.IntN(50)) * coin / 10,
			Price: money.Price(95+r.IntN(10)) * money.Price(coin)}
		c := must(w.engine.Amend(key, w.nonces.Add(1), &a))
		c.Free()
	case n < 90:
		c := must(w.engine.CancelAll(key, w.nonces.Add(1), actors.CancelFilter{}))
		c.Free()
	case n < 94:
		w.must(w.engine.Deposit("test", fmt.Sprint("trader-", trader), "ETH", coin,
			fmt.Sprint(w.nonces.Add(1))))
	case n < 97:
		w.withdraw(r, trader)
	default:
		if c, err := w.engine.OperatorCancel("test", some()); err == nil {
			c.Free()
		}
	}
	return orders
}

// request returns a random order, some of them with instructions.
func (w *world) request(r *rand.Rand, now int64) actors.OrderRequest {
	pairs := w.engine.Pairs()
	q := actors.OrderRequest{Pair: pairs[r.IntN(len(pairs))], Side: trading.Side(1 + r.IntN(2)),
		Price:  money.Price(95+r.IntN(10)) * money.Price(coin),
		Amount: money.Amount(1+r.IntN(50)) * coin / 10}
	if r.IntN(2) == 0 {
		return q
	}
	s := &actors.SpecialRequest{SelfTradeGiven: true}
	q.Special = s
	switch r.IntN(7) {
	case 0:
		s.IOC = true
	case 1:
		s.FOK = true
	case 2:
		s.ExpireUs = now + int64(r.IntN(300_000))
	case 3:
		s.Display = max(q.Amount/10, 1)
		q.Amount = s.Display * 8
	case 4:
		s.Trigger = trading.Trigger{Price: money.Price(95+r.IntN(10)) * money.Price(coin),
			When: trading.Direction(1 + r.IntN(2))}
	case 5:
		s.PostOnly = true
	}
	s.SelfTrade = trading.SelfTrade(r.IntN(4))
	return q
}

// withdraw requests a withdrawal, and then cancels or approves it.
func (w *world) withdraw(r *rand.Rand, trader int) {
	w.t.Helper()
	c := must(w.engine.Do(actors.NewWithdrawal(w.keys[trader], w.nonces.Add(1), 2, coin,
		"an-address")))
	defer c.Free()
	if c.Outcome() != actors.Accepted {
		return
	}
	id := c.Record().Withdrawal.ID
	var moved *actors.Command
	if r.IntN(2) == 0 {
		moved = must(w.engine.Do(actors.NewWithdrawalCancel(w.keys[trader], w.nonces.Add(1), id)))
	} else {
		q := &committed.PendingWithdrawal{ID: id}
		if err := w.engine.Ask(q, nil, 0); err != nil || !q.Found {
			w.t.Fatal(err, q.Found)
		}
		must(w.engine.Do(actors.NewConfirmation(w.keys[trader], w.nonces.Add(1), id,
			w.engine.Code(&q.Withdrawal)))).Free()
		moved = must(w.engine.SetWithdrawalStatus("test", id, 30, ""))
	}
	moved.Free()
}

func TestSnapshotPlusEventsMatchesAccount(t *testing.T) {
	bubble(t, func(t *testing.T) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t, nil)
		w.must(w.engine.CreateAccount("test", "fees", ""))
		for i := range 3 {
			for _, p := range w.engine.Pairs() {
				w.must(w.engine.SetFees("test", fmt.Sprint("trader-", i), p.Name,
					&state.FeeRates{Maker: 100_000, Taker: 200_000}))
			}
		}
		var l [3]*listener
		var m [3]*mirror
		for i := range l {
			l[i], m[i] = w.watchOwn(i)
		}
		var orders [3][]uint64
		for range 12 {
			for range 40 {
				i := r.IntN(len(l))
				orders[i] = w.act(r, i, orders[i])
			}
			for i := range l {
				_, fresh := w.watchOwn(i)
				m[i].until(l[i], fresh.seq)
				m[i].same(fresh)
			}
		}
		w.settleDown()
		for i := range l {
			_, fresh := w.watchOwn(i)
			m[i].until(l[i], fresh.seq)
			m[i].isREST(w, i)
			t.Logf("%d events: %v", m[i].events, m[i].causes)
		}
	})
}

// settleDown cancels all, and waits until nothing happens by itself any more.
func (w *world) settleDown() {
	for i := range w.keys {
		c := must(w.engine.CancelAll(w.keys[i], w.nonces.Add(1), actors.CancelFilter{}))
		c.Free()
	}
}
