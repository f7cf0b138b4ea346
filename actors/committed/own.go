package committed

import (
	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/rows"
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/state"
	"exchange/core/trading"
)

// An OwnEvent contains all changes of one record to an account, as of after the record. The state
// defines which records are events of an account: see state.Account.LastEvent.
type OwnEvent struct {
	Account  uint32
	Seq      uint64 // of the record
	Prev     uint64 // of the account's previous event; 0: none
	TimeUs   int64
	Cause    Cause
	Reason   trading.Reason // for CauseCancelled; otherwise 0
	Order    uint64         // the account's order that caused the event; 0: none
	Orders   []Order        // changed orders, open or closed, each once
	Trades   []OwnTrade     // a self-trade occurs once, as the taker's
	Balances []ledger.Holding
	// A new deposit, and a changed withdrawal: at most one each.
	Deposits    []Deposit
	Withdrawals []Withdrawal
	Frozen      bool // CauseFreeze: whether the account is frozen now
	// Encoded belongs to the account's channel, which caches the encoded event here. All else is
	// read only.
	Encoded any
}

// A Cause is the cause of an account's event.
type Cause uint8

// The causes.
const (
	CausePlaced    Cause = iota
	CauseTrade           // as a maker, or by received fees
	CauseCancelled       // by the account, an operator, or a switch
	CauseTriggered
	CauseAmended
	CauseExpired
	CauseSelfTrade // self-trade prevention: two orders of the account met and did not trade
	CauseDeposit
	CauseWithdraw // or an operator's correction
	CauseFreeze   // begin or end of a freeze
)

// An OwnSnapshot is the state of an account, as of its newest event.
type OwnSnapshot struct {
	Seq      uint64 // of that event; 0: none
	Holdings []ledger.Holding
	Orders   []Order // newest open ones
	Complete bool    // Orders is complete
	// the newest pending withdrawals, and whether the list is complete
	Withdrawals         []Withdrawal
	WithdrawalsComplete bool
	Frozen              bool
	// the newest trade of each pair that has traded, whichever accounts made it
	LastTrades []LastTrade
}

// A LastTrade is the newest trade of a pair.
type LastTrade struct {
	Pair uint16
	ID   uint64
}

// ownOrders and ownWithdrawals are the maximum open orders and pending withdrawals in a snapshot of
// an account.
const (
	ownOrders      = 2000
	ownWithdrawals = 1000
)

// Messages to the channel of an account.
type (
	// OwnEvents are the events of one batch, of all accounts that the channel watches, in record
	// order.
	OwnEvents struct{ List []*OwnEvent }
	// OwnWatched answers one OwnWatch, with the events after OwnWatch.After or with a snapshot. All
	// later events follow as OwnEvents.
	OwnWatched struct {
		Account  uint32
		Token    uint64       // the OwnWatch's
		Snapshot *OwnSnapshot // nil: resumed
		Events   []*OwnEvent
	}
)

// An OwnWatch subscribes a channel to all events of an account, from the turn of its answer on. The
// channel receives the answer. An account has one channel.
type OwnWatch struct {
	Channel *actor.PID
	Token   uint64
	After   uint64 // sequence of the newest event that the client has; 0: none

	account uint32
}

func (q *OwnWatch) of(account uint32) { q.account = account }

func (q *OwnWatch) from(c *Side) (needs uint64) {
	m := &OwnWatched{Account: q.account, Token: q.Token}
	var resumed bool
	a := c.state.Account(q.account)
	if m.Events, resumed = c.own.watch(a, q); !resumed {
		m.Snapshot = c.ownSnapshot(a)
	}
	c.out.Notify(q.Channel, m)
	return 0
}

// WatchOwn starts to watch the account of a key, and returns after the turn in which the watch
// started. It holds slots of private reads until then. The channel may get the answer even after an
// error.
func (d *Door) WatchOwn(by Client, q *OwnWatch) error {
	if err := d.host.Confirmed(); err != nil {
		return err
	}
	v, err := d.enter(by)
	if err != nil {
		return err
	}
	defer v.end()
	v.signed = true // the login authenticates it
	account := by.Key.Account.ID
	if most := d.limits.PerAccount; most > 0 {
		if v.slot = d.private.begin(account, most); !v.slot {
			return d.host.CountRefusal(RefusedAccountBusy)
		}
	}
	return v.ask(q)
}

// An OwnUnwatch ends the watch of an account without subscribers. It has no effect while a newer
// answer than that of its token is in flight: the channel then repeats it after that answer, if
// still needed.
type OwnUnwatch struct {
	Account uint32
	Channel *actor.PID
	Token   uint64 // of the newest OwnWatched of the account that the channel received; 0: none
}

func (c *Side) ownSnapshot(a *state.Account) *OwnSnapshot {
	s := &OwnSnapshot{Seq: a.LastEvent(), Holdings: append([]ledger.Holding(nil),
		a.Wallet.Holdings()...)}
	open := OpenOrders{Account: a.ID, Limit: ownOrders}
	open.from(c)
	s.Orders, s.Complete = open.Orders, len(open.Orders) == a.Open.Len()
	pending := PendingWithdrawals{account: a.ID, Limit: ownWithdrawals}
	pending.from(c)
	for i := range pending.List {
		s.Withdrawals = append(s.Withdrawals, WithdrawalRow(&pending.List[i]))
	}
	s.WithdrawalsComplete = len(s.Withdrawals) == len(a.Withdrawals())
	s.Frozen = a.Frozen
	for _, p := range c.state.Pairs() {
		if id := p.LastTrade(); id != 0 {
			s.LastTrades = append(s.LastTrades, LastTrade{p.Number, id})
		}
	}
	return s
}

// noteOwn makes the events of a record, for watched accounts. Without any it costs one comparison.
func (c *Side) noteOwn(r *event.Record, e *state.Effects) {
	if len(c.own.feeds) == 0 || !c.beginOwn(r, e) {
		return
	}
	for i := range e.Closed {
		o := &e.Closed[i]
		if f := c.own.forming(o.Account); f != nil {
			c.own.put(f, rows.Closed(o, c.state.Seq()))
		}
	}
	o := r.Taker()
	if r.Kind == event.KindStop {
		o = &r.Order
	}
	if o != nil {
		c.ownOrder(o.Account, o.ID)
		for i := range o.Trades {
			c.ownTrade(r, o, &o.Trades[i])
		}
	}
	c.ownFunds(r, e)
	c.own.endRecord()
}

// ownFunds adds the deposit or the withdrawal of a record to the event of its account.
func (c *Side) ownFunds(r *event.Record, e *state.Effects) {
	switch {
	case len(c.own.touched) == 0:
	case r.Kind == event.KindDeposit:
		x := c.own.touched[0].event
		x.Deposits = append(x.Deposits, rows.Deposit(r))
	case c.own.touched[0].event.Cause == CauseWithdraw:
		x, w := c.own.touched[0].event, e.Withdrawal
		switch r.Kind {
		case event.KindWithdrawal:
			w = c.state.Withdrawal(r.Withdrawal.ID)
		case event.KindWithdrawalStatus:
			if w == nil { // still pending
				w = c.state.Withdrawal(r.WithdrawalStatus.ID)
			}
		}
		x.Withdrawals = append(x.Withdrawals, WithdrawalRow(w))
	}
}

// beginOwn starts an event for each watched account that a record has settled. It returns false if
// there is none.
func (c *Side) beginOwn(r *event.Record, e *state.Effects) (any bool) {
	seq := c.state.Seq()
	for i := range e.Settlements {
		t := &e.Settlements[i]
		f := c.own.feeds[t.Account]
		if f == nil || f.account.LastEvent() != seq {
			continue
		}
		x := &OwnEvent{Account: t.Account, Seq: seq, Prev: f.last, TimeUs: r.TimeUs,
			Cause: CauseTrade}
		if i == 0 || r.Kind == event.KindExpired {
			x.begin(r)
		}
		x.Balances = make([]ledger.Holding, 0, len(t.Changes()))
		for j := range t.Changes() {
			x.Balances = append(x.Balances, f.account.Wallet.Get(t.Changes()[j].Currency))
		}
		c.own.begin(f, x)
		any = true
	}
	return any
}

// begin fills in the cause of a record's event for the acting account.
func (x *OwnEvent) begin(r *event.Record) {
	switch r.Kind {
	case event.KindOrder, event.KindInstructed, event.KindStop:
		x.Cause, x.Order = CausePlaced, r.Order.ID
	case event.KindTriggered:
		x.Cause, x.Order = CauseTriggered, r.Order.ID
	case event.KindAmended:
		x.Cause, x.Order = CauseAmended, r.Order.ID
	case event.KindExpired:
		x.Cause = CauseExpired // ownFeeds.put sets the first order
	case event.KindCancel, event.KindSwitchCancel:
		x.Cause, x.Order, x.Reason = CauseCancelled, r.Cancel.Order, r.Cancel.Reason
		switch {
		case x.Reason != 0:
		case r.Operator != "":
			x.Reason = trading.CancelledOperator
		default:
			x.Reason = trading.CancelledOwner
		}
	case event.KindDeposit:
		x.Cause = CauseDeposit
	case event.KindWithdrawal, event.KindWithdrawalStatus, event.KindAdjusted:
		x.Cause = CauseWithdraw
	case event.KindFreeze:
		x.Cause, x.Frozen = CauseFreeze, r.Freeze.Frozen
	}
	switch r.Kind {
	case event.KindInstructed, event.KindTriggered, event.KindAmended:
		if len(r.Instructions.Prevented) > 0 {
			x.Cause = CauseSelfTrade
		}
	}
}

// ownOrder adds an order to the event of its account, if that is watched. A closed order is there
// already.
func (c *Side) ownOrder(account uint32, id uint64) {
	f := c.own.forming(account)
	if f == nil {
		return
	}
	if _, known := c.own.orderIndex[id]; known {
		return
	}
	if o, p, open := c.state.OpenOrder(f.account, id); open {
		c.own.put(f, openRow(f.account, o, p))
	}
}

// ownTrade adds a trade to the events of its taker and of its maker.
func (c *Side) ownTrade(r *event.Record, o *event.Order, t *event.Trade) {
	row := rows.Trade(r, o, t)
	if f := c.own.forming(o.Account); f != nil {
		f.event.Trades = append(f.event.Trades, OwnTrade{Trade: row, Order: o.ID,
			ClientID: o.ClientID.String()})
	}
	c.ownOrder(t.MakerAccount, t.Maker)
	if f := c.own.forming(t.MakerAccount); f != nil && t.MakerAccount != o.Account {
		f.event.Trades = append(f.event.Trades, OwnTrade{Trade: row, Order: t.Maker, Maker: true,
			ClientID: f.event.Orders[c.own.orderIndex[t.Maker]].ClientID})
		if f.event.Order == 0 {
			f.event.Order = t.Maker
		}
	}
}

// Memory of the parts of an event, in bytes, with their encoded form: a row as text has about twice
// its size.
const (
	ownEventBytes   = 500
	ownOrderBytes   = 500
	ownTradeBytes   = 500
	ownBalanceBytes = 150
	ownDepositBytes = 250 // without the reference, which is the operator's
)

// size returns the approximate memory of an event, in bytes.
func (x *OwnEvent) size() int {
	n := ownEventBytes + len(x.Orders)*ownOrderBytes + len(x.Trades)*ownTradeBytes +
		len(x.Balances)*ownBalanceBytes + len(x.Deposits)*ownDepositBytes
	for i := range x.Orders {
		n += 3 * len(x.Orders[i].Instructed)
	}
	for i := range x.Withdrawals {
		n += ownOrderBytes + 3*(len(x.Withdrawals[i].Address)+len(x.Withdrawals[i].Details))
	}
	return n
}
