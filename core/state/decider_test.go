package state

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"exchange/core/event"
	"exchange/core/matching"
	"exchange/core/money"
	"exchange/core/trading"
)

// A decider is the obvious deciding side. It has books and a world of its own, looks at the state
// for available money, and makes the records of a valid history one by one.
type decider struct {
	s      *State
	books  []*matching.Book
	stops  []*matching.Stops
	told   map[uint64]*told          // of open orders
	ended  map[uint64]trading.Packed // of orders that the newest record closes
	world  *world
	pick   func(n int) int // 0 ... n-1
	timeUs int64
	ids    uint64
	trades uint64
	names  int
	drawn  uint64            // the newest id of a withdrawal
	behind []uint64          // ids of withdrawals whose records come later than those of higher ids
	newest map[uint32]uint64 // the newest id of a withdrawal by account
}

func newDecider(s *State, pick func(n int) int) *decider {
	return &decider{s: s, world: newWorld(), pick: pick, timeUs: 1000, newest: map[uint32]uint64{},
		told: map[uint64]*told{}}
}

// founding returns the records that every history begins with: three currencies, two pairs, three
// accounts.
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

func (d *decider) next() event.Record {
	d.timeUs += int64(d.pick(3))
	for len(d.books) < len(d.s.pairs) {
		d.books = append(d.books, matching.New())
		d.stops = append(d.stops, matching.NewStops())
	}
	d.ended = map[uint64]trading.Packed{}
	r := event.Record{TimeUs: d.timeUs}
	if d.pick(8) == 7 {
		r.Operator = "operator"
	}
	if r, happens := d.due(r); happens {
		return r
	}
	switch n := d.pick(60); {
	case n >= 40:
		return d.special(r, n%12)
	case n < 2:
		return d.deposit(r, d.account(), d.currency(), money.Amount(1+d.pick(100)*100_000_000))
	case n < 3:
		n := uint32(len(d.s.keys) + 1)
		r.Key = event.Key{Number: n, Account: d.account(), Key: fmt.Sprint("key-", n),
			Permissions: event.PermissionTrade}
		if d.pick(2) == 0 {
			r.Key.Parallel = uint16(1 + d.pick(4))
		}
		// one that is there is sealed anew
		if known := d.s.keys[d.pick(len(d.s.keys))]; !known.Revoked && d.pick(3) == 2 {
			r.Key = known.Key
			r.Key.SealedBy, r.Key.Sealed = r.Key.SealedBy+1,
				[]byte(fmt.Sprint("seal-", r.Key.SealedBy))
		}
		r.Kind = r.Key.RecordKind()
	case n < 4:
		k := d.s.keys[d.pick(len(d.s.keys))]
		if k.Revoked {
			return d.refusal(r)
		}
		r.Kind, r.KeyRevoked = event.KindKeyRevoked, event.KeyRevoked{Number: k.Number,
			Lost: d.pick(2) == 0}
	case n < 5:
		return d.refusal(r)
	case n < 9:
		return d.cancel(r)
	case n < 12:
		r = d.withdrawal(r)
		if w := &r.Withdrawal; r.Kind == event.KindNamedWithdrawal && d.pick(2) == 0 {
			r.Kind, r.Adjusted = event.KindAdjusted, event.Adjusted{ID: w.ID, Account: w.Account,
				Currency: w.Currency, Amount: w.Amount, ClientID: w.ClientID, Reason: "twice"}
		}
		return r
	case n < 16:
		return d.move(r)
	case n < 17:
		return d.code(r)
	case n < 19:
		return d.mailed(r)
	case n < 23:
		if n == 19 {
			return d.tend(r)
		}
		return d.operate(r)
	case n < 24:
		r.Kind, r.History = event.KindHistory,
			event.HistoryID{byte(d.s.deposits), 1: d.s.History()[1] + 1}
	default:
		return d.order(r)
	}
	return r
}

// account returns one that is not closed.
func (d *decider) account() uint32 {
	var open []uint32
	for _, a := range d.s.accounts {
		if d.world.closed[a.ID] == 0 {
			open = append(open, a.ID)
		}
	}
	return open[d.pick(len(open))]
}

func (d *decider) currency() uint16 { return uint16(1 + d.pick(len(d.s.currencies))) }
func (d *decider) pair() *Pair      { return d.s.pairs[d.pick(len(d.s.pairs))] }

// key returns one of the account's keys, 0 if it has none, and a nonce that need not be above its
// last.
func (d *decider) key(account uint32) (key uint32, nonce uint64) {
	if keys := d.s.Account(account).Keys; len(keys) > 0 {
		return keys[d.pick(len(keys))], uint64(d.pick(1000))
	}
	return 0, 0
}

func (d *decider) deposit(r event.Record, account uint32, currency uint16,
	amount money.Amount) event.Record {
	d.names++
	r.Kind, r.Deposit = event.KindDeposit,
		event.Deposit{ID: d.s.deposits + 1, Account: account, Currency: currency,
			Amount: amount, Reference: fmt.Sprint("reference ", d.names)}
	return r
}

func (d *decider) refusal(r event.Record) event.Record {
	r.Kind, r.Refusal = event.KindRefusal,
		event.Refusal{Account: d.account(), Reason: event.RefusedFunds}
	r.Refusal.Key, r.Refusal.Nonce = d.key(r.Refusal.Account)
	return r
}

func (d *decider) cancel(r event.Record) event.Record {
	a := d.s.Account(d.account())
	open := slices.Collect(a.Open.Newest())
	if len(open) == 0 {
		return d.refusal(r)
	}
	which := open[d.pick(len(open))]
	o := d.takeOut(which.Pair, which.ID)
	d.forget(o.ID, trading.CancelledOwner)
	if r.Operator != "" && d.ended[o.ID] != "" {
		d.ended[o.ID] = reasoned(d.ended[o.ID], trading.CancelledOperator)
	}
	d.ids++
	r.Kind, r.Pair = event.KindCancel, which.Pair
	r.Cancel = event.Cancel{ID: d.ids, Order: o.ID, Account: a.ID, Side: o.Side, Price: o.Price,
		Remaining: o.Remaining}
	r.Cancel.Key, r.Cancel.Nonce = d.key(a.ID)
	return r
}

// order returns a plain order of any account, also of a frozen one: the order was on its way at the
// freeze.
func (d *decider) order(r event.Record) event.Record {
	refusal := r
	r = d.draw(r, event.KindOrder)
	if r.Operator = refusal.Operator; !d.accept(&r) {
		return d.refusal(refusal)
	}
	d.enter(&r, &told{pair: r.Pair, clientID: r.Order.ClientID}, r.TimeUs)
	r.Instructions = trading.Instructions{}
	return r
}

func (d *decider) charge(pair uint16, o *event.Order, t *event.Trade) {
	// money that each side receives
	taker, maker := t.Amount.Balance(), t.Price.Times(t.Amount).Balance()
	if o.Side == trading.Sell {
		taker, maker = maker, taker
	}
	t.TakerFee = d.world.rates(o.Account, pair).Taker.FeeRoundedUp(taker)
	t.MakerFee = d.world.rates(t.MakerAccount, pair).Maker.FeeRoundedUp(maker)
}

func (d *decider) withdrawal(r event.Record) event.Record {
	account, currency := d.account(), d.currency()
	most, err := money.AmountFromDecimal(
		d.s.Account(account).Wallet.Get(currency).Available().Decimal().Truncate(
			money.FixedDecimals))
	if err != nil || most == 0 || r.TimeUs < d.world.held[account] {
		return d.refusal(r)
	}
	amount := []money.Amount{1, most, 1 + most/10, 1 + most/3}[d.pick(4)]
	r.Withdrawal = event.Withdrawal{ID: d.drawID(account), Account: account, Currency: currency,
		Amount: min(amount, most), Address: fmt.Sprint("address ", d.pick(3))}
	if id := clientID(fmt.Sprint("withdraw-", d.pick(9))); d.pick(2) == 0 &&
		d.world.named[account][id] == 0 {
		r.Withdrawal.ClientID = id
	}
	r.Kind = r.Withdrawal.RecordKind()
	r.Withdrawal.Key, r.Withdrawal.Nonce = d.key(account)
	return r
}

// drawID returns an id that grows within the account: of two accounts' neighbours, the higher may
// come first.
func (d *decider) drawID(account uint32) (id uint64) {
	if len(d.behind) > 0 && d.behind[0] > d.newest[account] && d.pick(2) == 0 {
		id, d.behind = d.behind[0], d.behind[1:]
	} else {
		if d.pick(4) == 0 {
			d.drawn++
			d.behind = append(d.behind, d.drawn)
		}
		d.drawn++
		id = d.drawn
	}
	d.newest[account] = id
	return id
}

// move returns the next step of any pending withdrawal.
func (d *decider) move(r event.Record) event.Record {
	if len(d.world.withdrawals) == 0 {
		return d.withdrawal(r)
	}
	w := d.world.withdrawals[d.pick(len(d.world.withdrawals))]
	to := []uint8{event.WithdrawalVerified, event.WithdrawalVerified, event.WithdrawalCancelled,
		event.WithdrawalRefused}
	switch {
	case w.Stale, r.TimeUs < d.world.held[w.Account]:
		to = to[2:]
	case w.Status == event.WithdrawalVerified:
		to = []uint8{event.WithdrawalApproved, event.WithdrawalRefused, event.WithdrawalCancelled}
	}
	r.Kind = event.KindWithdrawalMoved
	r.WithdrawalMoved = event.WithdrawalMoved{ID: w.ID, Account: w.Account, Currency: w.Currency,
		Amount: w.Amount, To: to[d.pick(len(to))]}
	switch m := &r.WithdrawalMoved; m.To {
	case event.WithdrawalApproved:
		m.DespiteFreeze = d.world.frozen[w.Account]
	case event.WithdrawalRefused:
		m.Details = fmt.Sprint("reason ", d.pick(3))
	case event.WithdrawalVerified, event.WithdrawalCancelled:
		m.Key, m.Nonce = d.key(w.Account)
	}
	return r
}

// code returns a wrong or an old one, for any withdrawal that is to be confirmed.
func (d *decider) code(r event.Record) event.Record {
	var list []Withdrawal
	for _, w := range d.world.withdrawals {
		if w.Status == event.WithdrawalNew {
			list = append(list, w)
		}
	}
	if len(list) == 0 {
		return d.withdrawal(r)
	}
	w := list[d.pick(len(list))]
	r.Kind, r.CodeRefused = event.KindCodeRefused,
		event.CodeRefused{Withdrawal: w.ID, Account: w.Account,
			Expired: d.pick(2) == 1 || w.Stale || w.Renewed, Tries: w.Tries}
	if !r.CodeRefused.Expired {
		r.CodeRefused.Tries++
	}
	r.CodeRefused.Key, r.CodeRefused.Nonce = d.key(w.Account)
	return r
}

// mailed returns any mail of the outbox, as an older one may be tried again; or one that was sent,
// is of no use any more, or never was.
func (d *decider) mailed(r event.Record) event.Record {
	if len(d.world.mails) == 0 {
		return d.withdrawal(r)
	}
	r.Kind, r.Mailed = event.KindMailed,
		event.Mailed{ID: d.world.mails[d.pick(len(d.world.mails))].ID,
			Error: []string{"", "no such mailbox"}[d.pick(2)]}
	if d.pick(3) == 0 {
		r.Mailed.ID = uint64(d.pick(int(d.world.lastMail) + 2))
	}
	return r
}

// operate returns an operator's decision.
func (d *decider) operate(r event.Record) event.Record {
	switch d.pick(4) {
	case 0:
		p := d.pair()
		r.Kind, r.Pair, r.Halt = event.KindHalt, p.Number,
			event.Halt{Halted: !d.world.halted[p.Number]}
	case 1:
		a := d.account()
		r.Kind = []event.Kind{event.KindFreeze, event.KindToldFreeze}[d.pick(2)]
		r.Freeze = event.Freeze{Account: a, Frozen: !d.world.frozen[a]}
	case 2:
		r.Kind, r.Maintenance = event.KindMaintenance,
			event.Maintenance{On: d.pick(4) == 0, Message: []string{"", "back at noon"}[d.pick(2)]}
		r.Maintenance.Cancels = r.Maintenance.On && d.pick(2) == 0
	case 3:
		rates := [...]money.Rate{0, 1, 150_000, money.MaxRate}
		r.Kind, r.Pair, r.Fees = event.KindFees, d.pair().Number,
			event.Fees{Account: d.account(), Own: d.pick(3) > 0}
		if r.Fees.Own {
			r.Fees.Maker, r.Fees.Taker = rates[d.pick(len(rates))], rates[d.pick(len(rates))]
		}
	}
	return r
}

// tend opens and closes accounts, and changes their e-mail addresses.
func (d *decider) tend(r event.Record) event.Record {
	d.names++
	switch n := uint32(len(d.s.accounts) + 1); d.pick(4) {
	case 0:
		if n < 8 {
			r.Kind, r.Account = event.KindAccount, event.Account{ID: n,
				Name: fmt.Sprint("more-", n), Email: []string{"", "more@home.example"}[d.pick(2)]}
			return r
		}
	case 1:
		for id := n - 1; id > 3; id-- { // the first three trade, the third gets the fees
			a := d.s.Account(id)
			if d.world.closed[id] == 0 && a.Open.Len() == 0 && len(a.Withdrawals()) == 0 &&
				len(a.Switches()) == 0 && len(a.Wallet.Holdings()) == 0 {
				r.Kind, r.AccountClosed = event.KindAccountClosed, event.AccountClosed{Account: id}
				return r
			}
		}
	}
	id := d.account()
	r.Kind, r.Email = event.KindEmail, event.Email{Account: id,
		Address: fmt.Sprintf("%d@home.example", d.names),
		HeldUs:  max(d.world.held[id], r.TimeUs+1+int64(d.pick(4)))}
	return r
}

type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// apply takes records through their encoding, as the journal does.
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

// drawHistory returns a valid history of n records behind the founding ones.
func drawHistory(t *rapid.T, n int, each func(s *State, d *decider, r *event.Record,
	e *Effects)) []event.Record {
	records, _ := drawDecider(t, n, each)
	return records
}

// drawDecider returns drawHistory with its decider, which can go on.
func drawDecider(t *rapid.T, n int, each func(s *State, d *decider, r *event.Record,
	e *Effects)) ([]event.Record, *decider) {
	s := New()
	records := founding()
	apply(t, s, records...)
	d := newDecider(s, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") })
	for i := range records {
		d.world.note(&records[i])
	}
	add := func(r event.Record) (e Effects) {
		e = apply(t, s, r)
		d.world.note(&r)
		records = append(records, r)
		return e
	}
	most := []money.Amount{20 * 100_000_000, money.MaxAmount}[d.pick(2)]
	for a := range uint32(3) { // something to begin with
		for c := range uint16(3) {
			add(d.deposit(event.Record{TimeUs: 20}, a+1, c+1, most))
		}
	}
	for range n {
		r := d.next()
		e := add(r)
		if each != nil {
			each(s, d, &r, &e)
		}
	}
	return records, d
}
