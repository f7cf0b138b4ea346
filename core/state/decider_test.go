package state

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"pgregory.net/rapid"

	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/prove/spec"
)

// A decider draws requests and has the specification decide them: so it makes the records of a
// valid history one by one.
type decider struct {
	s       *State // of the same records
	x       *spec.Exchange
	pick    func(n int) int // 0 ... n-1
	timeUs  int64
	names   int
	drawn   uint64            // newest id of a withdrawal
	lateIDs []uint64          // ids of withdrawals recorded after higher ones
	newest  map[uint32]uint64 // the newest id of a withdrawal by account
}

func newDecider(s *State, pick func(n int) int) *decider {
	x := specification(1 + pick(5))
	if pick(4) == 3 {
		x.FeeAccount = ""
	}
	return &decider{s: s, x: x, pick: pick, timeUs: 1000, newest: map[uint32]uint64{}}
}

// specification returns the exchange of the drawn histories, before its first record.
func specification(maxFills int) *spec.Exchange {
	usual := spec.Rules{Usual: spec.Rates{Maker: 100_000, Taker: 200_001}, StopCollar: 10_000_000}
	x := spec.New(maxFills, map[string]spec.Rules{"BTC_USD": usual, "ETH_USD": usual})
	x.KeptIDs = spec.KeptIDs{Newest: ledger.KeptIDs.Newest, Most: ledger.KeptIDs.Most,
		SpanUs: ledger.KeptIDs.SpanUs}
	x.CodeValid, x.FeeAccount = 30*time.Microsecond, "house"
	return x
}

// founding returns the first records of every history: three currencies, two pairs, three accounts.
func founding() []event.Record {
	return []event.Record{
		{Kind: event.KindCurrency, TimeUs: 1, Currency: event.Currency{Number: 1, Code: "BTC"}},
		{Kind: event.KindCurrency, TimeUs: 2, Currency: event.Currency{Number: 2, Code: "USD"}},
		{Kind: event.KindCurrency, TimeUs: 3, Currency: event.Currency{Number: 3, Code: "ETH"}},
		{Kind: event.KindPair, TimeUs: 4,
			NewPair: event.Pair{Number: 1, Name: "BTC_USD", Base: 1, Quote: 2}},
		{Kind: event.KindPair, TimeUs: 5,
			NewPair: event.Pair{Number: 2, Name: "ETH_USD", Base: 3, Quote: 2}},
		{Kind: event.KindAccount, TimeUs: 6,
			Account: event.Account{ID: 1, Name: "alice", Email: "alice@example.org"}},
		{Kind: event.KindAccount, TimeUs: 7, Account: event.Account{ID: 2, Name: "bob"}},
		{Kind: event.KindAccount, TimeUs: 8, Account: event.Account{ID: 3, Name: "house"}},
		{Kind: event.KindKey, TimeUs: 9,
			Key: event.Key{Number: 1, Account: 1, Key: "alice-1", Permissions: event.AllPermissions,
				Allow:    []string{"10.0.0.0/8"},
				SealedBy: 5, Sealed: []byte("sealed")}},
	}
}

// next returns the next record, which the specification has applied.
func (d *decider) next() event.Record {
	d.timeUs += int64(d.pick(3))
	if d.pick(15) == 14 {
		d.timeUs += 6e6 // switches count in seconds
	}
	r := event.Record{TimeUs: d.timeUs}
	if d.due(&r) && d.x.Decide(&r) == nil {
		return r
	}
	for range 10 { // impossible draws are drawn again
		r := event.Record{TimeUs: d.timeUs}
		if d.pick(8) == 7 {
			r.Operator = "operator"
		}
		if d.draw(&r); d.x.Decide(&r) == nil {
			return r
		}
	}
	r = event.Record{TimeUs: d.timeUs, Kind: event.KindRefusal,
		Refusal: event.Refusal{Account: d.account(), Reason: event.RefusedFunds}}
	if err := d.x.Decide(&r); err != nil {
		panic(err)
	}
	return r
}

// due makes a record of an event without a request, if one is due and chosen: an expiry, a
// triggered order, or a switch.
func (d *decider) due(r *event.Record) bool {
	for _, p := range d.x.Pairs {
		for _, o := range p.Open() {
			if o.Says.ExpireUs != 0 && o.Says.ExpireUs <= d.timeUs {
				r.Expired = append(r.Expired, event.Expired{Order: o.ID})
			}
		}
		if r.Kind, r.Pair = event.KindExpired, p.Number; len(r.Expired) > 0 {
			slices.SortFunc(r.Expired, func(a, b event.Expired) int {
				return int(a.Order) - int(b.Order)
			})
			return true
		}
	}
	for _, p := range d.x.Pairs {
		r.Kind, r.Pair, r.Order.ID = event.KindTriggered, p.Number, p.Next()
		if r.Order.ID != 0 && d.pick(3) > 0 {
			return true
		}
	}
	for _, w := range d.x.Switches() {
		if w.DueUs != 0 && w.DueUs <= d.timeUs && d.pick(3) > 0 {
			d.fire(r, w)
			return true
		}
	}
	return false
}

// fire makes a cancel by a switch that is due, or its end when it has no more to cancel.
func (d *decider) fire(r *event.Record, w event.Switch) {
	orders := d.x.OpenOf(&w)
	if len(orders) == 0 {
		r.Kind, r.Pair, r.Switch = event.KindSwitch, 0, event.Switch{Account: w.Account,
			Key: w.Key, Session: w.Session, DueUs: w.DueUs}
		return
	}
	_, p := d.x.Open(orders[0])
	r.Kind, r.Pair = event.KindSwitchCancel, p.Number
	r.Cancel = event.Cancel{Order: orders[0], Account: w.Account, Key: w.Key,
		Reason: trading.CancelledSwitch}
	if w.Session {
		r.Cancel.Reason = trading.CancelledDisconnect
	}
}

// draw draws a request. It may be impossible.
func (d *decider) draw(r *event.Record) {
	switch n := d.pick(60); {
	case n >= 40:
		d.special(r, n%12)
	case n < 2:
		d.deposit(r, d.account(), d.currency(), money.Amount(1+d.pick(100)*100_000_000))
	case n < 4:
		d.drawKey(r, n < 3)
	case n < 5:
		r.Kind, r.Refusal = event.KindRefusal,
			event.Refusal{Account: d.account(), Reason: event.RefusedFunds}
		r.Refusal.Key, r.Refusal.Nonce = d.key(r.Refusal.Account)
	case n < 9:
		if o := d.openOrder(); o != nil {
			r.Kind, r.Pair, r.Cancel = event.KindCancel, o.Pair,
				event.Cancel{Order: o.ID, Account: o.Account}
			r.Cancel.Key, r.Cancel.Nonce = d.key(o.Account)
		}
	case n < 12:
		d.withdrawal(r)
		w := &r.Withdrawal
		if r.Kind == event.KindWithdrawal && !w.ClientID.IsZero() && d.pick(2) == 0 {
			r.Kind, r.Operator, r.Adjusted = event.KindAdjusted, "operator", event.Adjusted{
				ID: w.ID, Account: w.Account, Currency: w.Currency, Amount: w.Amount,
				ClientID: w.ClientID, Reason: "twice"}
		}
	case n < 17:
		d.move(r, n == 16)
	case n < 19:
		// an older one may be retried, or one that was sent, is of no use, or never was
		r.Kind, r.Mailed = event.KindMailed, event.Mailed{ID: uint64(d.pick(int(d.x.LastMail) + 2)),
			Error: []string{"", "no such mailbox"}[d.pick(2)]}
		if n := len(d.x.Mails); n > 0 && d.pick(3) > 0 {
			r.Mailed.ID = d.x.Mails[d.pick(n)].ID
		}
	case n == 19:
		d.tend(r)
	case n < 23:
		d.operate(r)
	case n < 24:
		r.Kind, r.History = event.KindHistory,
			event.HistoryID{byte(len(d.x.Deposits)), 1: d.x.History[1] + 1}
	default:
		d.order(r, event.KindOrder)
		d.mayOrder(r)
	}
}

// account returns one that is not closed.
func (d *decider) account() uint32 {
	var open []uint32
	for _, a := range d.x.Accounts {
		if a.ClosedUs == 0 {
			open = append(open, a.ID)
		}
	}
	return open[d.pick(len(open))]
}

func (d *decider) currency() uint16 { return uint16(1 + d.pick(len(d.x.Currencies))) }

// key returns one of the account's keys, 0 if it has none or in maintenance, and a nonce that need
// not be above its last.
func (d *decider) key(account uint32) (key uint32, nonce uint64) {
	var keys []uint32
	for _, k := range d.x.Keys {
		if k.Account == account && !k.Revoked && !d.x.Maintenance.On {
			keys = append(keys, k.Number)
		}
	}
	if len(keys) == 0 {
		return 0, 0
	}
	return keys[d.pick(len(keys))], uint64(d.pick(1000))
}

// openOrder returns an open order of any account, nil if the chosen account has none.
func (d *decider) openOrder() *spec.Order {
	var list []*spec.Order
	for _, id := range d.x.OpenOf(&event.Switch{Account: d.account()}) {
		o, _ := d.x.Open(id)
		list = append(list, o)
	}
	if len(list) == 0 {
		return nil
	}
	return list[d.pick(len(list))]
}

func (d *decider) deposit(r *event.Record, account uint32, currency uint16, amount money.Amount) {
	d.names++
	r.Kind, r.Deposit = event.KindDeposit, event.Deposit{Account: account, Currency: currency,
		Amount: amount, Reference: fmt.Sprint("reference ", d.names)}
}

// drawKey makes a key, seals one again, or revokes one.
func (d *decider) drawKey(r *event.Record, makes bool) {
	known := d.s.keys[d.pick(len(d.s.keys))]
	if !makes {
		r.Kind, r.KeyRevoked = event.KindKeyRevoked, event.KeyRevoked{Number: known.Key.Number,
			Lost: d.pick(2) == 0}
		return
	}
	n := uint32(len(d.x.Keys) + 1)
	r.Key = event.Key{Number: n, Account: d.account(), Key: fmt.Sprint("key-", n),
		Permissions: event.PermissionTrade}
	if d.pick(2) == 0 {
		r.Key.NonceWindow = uint16(1 + d.pick(4))
	}
	if !known.Revoked && d.pick(3) == 2 {
		r.Key = known.Key
		r.Key.SealedBy, r.Key.Sealed = r.Key.SealedBy+1,
			[]byte(fmt.Sprint("seal-", r.Key.SealedBy))
	}
	r.Kind = event.KindKey
}

func (d *decider) available(account uint32, currency uint16) *big.Int {
	n := new(big.Int)
	if funds := d.x.Accounts[account-1].At(d.x.Seq); funds != nil {
		n.Sub(funds[currency-1].Balance, funds[currency-1].Reserve)
	}
	return n
}

func (d *decider) withdrawal(r *event.Record) {
	account, currency := d.account(), d.currency()
	n := d.available(account, currency)
	most := money.Amount(n.Div(n, big.NewInt(100_000_000)).Int64())
	r.Withdrawal = event.Withdrawal{ID: d.drawID(account), Account: account, Currency: currency,
		Amount:  min([]money.Amount{1, most, 1 + most/10, 1 + most/3}[d.pick(4)], most),
		Address: fmt.Sprint("address ", d.pick(3))}
	if d.pick(2) == 0 {
		r.Withdrawal.ClientID = clientID(fmt.Sprint("withdraw-", d.pick(9)))
	}
	r.Kind = event.KindWithdrawal
	r.Withdrawal.Key, r.Withdrawal.Nonce = d.key(account)
}

// drawID returns an id that grows within the account: of two accounts' adjacent ids, the higher may
// come first.
func (d *decider) drawID(account uint32) (id uint64) {
	if len(d.lateIDs) > 0 && d.lateIDs[0] > d.newest[account] && d.pick(2) == 0 {
		id, d.lateIDs = d.lateIDs[0], d.lateIDs[1:]
	} else {
		if d.pick(4) == 0 {
			d.drawn++
			d.lateIDs = append(d.lateIDs, d.drawn)
		}
		d.drawn++
		id = d.drawn
	}
	d.newest[account] = id
	return id
}

// move makes the next step of any pending withdrawal, or a wrong code for it.
func (d *decider) move(r *event.Record, code bool) {
	var pending []*spec.Withdrawal
	for _, id := range slices.Sorted(maps.Keys(d.x.Withdrawals)) {
		if w := d.x.Withdrawals[id]; w.Pending() {
			pending = append(pending, w)
		}
	}
	if len(pending) == 0 {
		d.withdrawal(r)
		return
	}
	w := pending[d.pick(len(pending))]
	if code {
		r.Kind, r.CodeRefused = event.KindCodeRefused,
			event.CodeRefused{Withdrawal: w.ID, Account: w.Account}
		r.CodeRefused.Key, r.CodeRefused.Nonce = d.key(w.Account)
		return
	}
	to := []uint8{event.WithdrawalVerified, event.WithdrawalCancelled, event.WithdrawalRefused}
	if w.Status == event.WithdrawalVerified {
		to[0] = event.WithdrawalApproved
	}
	r.Kind = event.KindWithdrawalStatus
	r.WithdrawalStatus = event.WithdrawalStatus{ID: w.ID, Account: w.Account, Currency: w.Currency,
		Amount: w.Amount, To: to[max(0, d.pick(4)-1)]}
	switch m := &r.WithdrawalStatus; m.To {
	case event.WithdrawalRefused:
		m.Details = fmt.Sprint("reason ", d.pick(3))
	case event.WithdrawalVerified, event.WithdrawalCancelled:
		m.Key, m.Nonce = d.key(w.Account)
	}
}

// operate draws an operator's decision.
func (d *decider) operate(r *event.Record) {
	p := d.x.Pairs[d.pick(len(d.x.Pairs))]
	switch d.pick(4) {
	case 0:
		r.Kind, r.Pair, r.Halt = event.KindHalt, p.Number,
			event.Halt{Halted: !p.IsHalted(d.x.Seq)}
	case 1:
		a := d.account()
		r.Kind = event.KindFreeze
		r.Freeze = event.Freeze{Account: a, Frozen: !d.x.Accounts[a-1].Frozen}
	case 2:
		r.Kind, r.Maintenance = event.KindMaintenance,
			event.Maintenance{On: d.pick(4) == 0, Message: []string{"", "back at noon"}[d.pick(2)]}
		r.Maintenance.Cancels = r.Maintenance.On && d.pick(2) == 0
	case 3:
		rates := [...]money.Rate{0, 1, 150_000, money.MaxRate}
		r.Kind, r.Pair, r.Fees = event.KindFees, p.Number,
			event.Fees{Account: d.account(), Own: d.pick(3) > 0}
		if r.Fees.Own {
			r.Fees.Maker, r.Fees.Taker = rates[d.pick(len(rates))], rates[d.pick(len(rates))]
		}
	}
}

// tend opens and closes accounts, and changes their e-mail addresses.
func (d *decider) tend(r *event.Record) {
	d.names++
	n := uint32(len(d.x.Accounts) + 1)
	switch id := d.account(); d.pick(4) {
	case 0:
		if n < 8 {
			r.Kind, r.Account = event.KindAccount, event.Account{ID: n,
				Name: fmt.Sprint("more-", n), Email: []string{"", "more@home.example"}[d.pick(2)]}
		}
	case 1:
		if id > 3 { // the first three trade, the third receives the fees
			r.Kind, r.AccountClosed = event.KindAccountClosed, event.AccountClosed{Account: id}
		}
	default:
		r.Kind, r.Email = event.KindEmail, event.Email{Account: id,
			Address:    fmt.Sprintf("%d@home.example", d.names),
			HoldEndsUs: max(d.x.Accounts[id-1].HoldEndsUs, r.TimeUs+1+int64(d.pick(4)))}
	}
}

type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// apply passes records through their encoding, as the journal does.
func apply(t tester, s *State, records ...event.Record) (e Effects) {
	t.Helper()
	for i := range records {
		var r event.Record
		if _, err := r.Decode(records[i].Append(nil)); err != nil {
			t.Fatalf("%v", err)
		}
		if err := s.Apply(&r, &e); err != nil {
			t.Fatalf("%+v: %v", records[i], err)
		}
	}
	return e
}

// drawHistory returns a valid history of n records after the founding ones.
func drawHistory(t *rapid.T, n int, each func(s *State, d *decider, r *event.Record,
	e *Effects)) []event.Record {
	records, _ := drawDecider(t, n, each)
	return records
}

// drawDecider returns drawHistory with its decider, which can continue.
func drawDecider(t *rapid.T, n int, each func(s *State, d *decider, r *event.Record,
	e *Effects)) ([]event.Record, *decider) {
	s := New()
	records := founding()
	apply(t, s, records...)
	d := newDecider(s, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") })
	for i := range records {
		if err := d.x.Apply(&records[i]); err != nil {
			t.Fatalf("%v", err)
		}
	}
	most := []money.Amount{20 * 100_000_000, money.MaxAmount}[d.pick(2)]
	add := func(r event.Record) {
		e := apply(t, s, r)
		if records = append(records, r); each != nil && len(records) > len(founding())+9 {
			each(s, d, &r, &e)
		}
	}
	for a := range uint32(3) { // initial deposits
		for c := range uint16(3) {
			r := event.Record{TimeUs: 20}
			d.deposit(&r, a+1, c+1, most)
			if err := d.x.Decide(&r); err != nil {
				t.Fatalf("%v", err)
			}
			add(r)
		}
	}
	for range n {
		add(d.next())
	}
	return records, d
}
