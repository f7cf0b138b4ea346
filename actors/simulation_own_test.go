package actors

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/state"
	"exchange/core/trading"
	"exchange/persistence"
)

// An ownClient is a channel of an account that builds the account from its events alone. It comes
// and goes. After each event it compares itself with the durable records.
type ownClient struct {
	s       *sim
	l       *life
	account uint32
	pid     *actor.PID

	asked bool   // a client waits for its answer
	on    bool   // it gets events
	token uint64 // of the newest question
	got   uint64 // token of the newest answer
	named uint64 // sequence in the newest question

	seq      uint64 // of the newest event
	holdings map[uint16]ledger.Holding
	open     map[uint64]committed.Order
	pending  map[uint64]committed.Withdrawal
	frozen   bool

	reference *state.State // fold of the durable records
}

// ownClients lets some clients of accounts come or go; l may be nil.
func (s *sim) ownClients(r *rand.Rand, l *life) {
	for n := r.IntN(4); l != nil && n > 0; n-- {
		s.ownClient(r, l)
	}
}

// ownClient has a client of an account come, with or without its position, or go.
func (s *sim) ownClient(r *rand.Rand, l *life) {
	key := l.engine.Key([]byte(fmt.Sprintf("key-%s-%d", pick(r, s.names), r.IntN(2))))
	if key == nil {
		return
	}
	id := key.Account.ID
	c := l.own[id]
	if c == nil {
		c = &ownClient{s: s, l: l, account: id, reference: state.New()}
		c.pid = l.engine.SpawnChannel(fmt.Sprint("simulated.account-", id),
			func() actor.Actor { return c })
		l.own[id] = c
	}
	switch {
	case c.on && r.IntN(3) > 0: // it stays
	case c.on:
		s.outcomes["clients of accounts, gone"]++
		c.on = false
		l.engine.UnwatchOwn(id, c.pid, c.got)
	case !c.asked:
		c.asks(key, r.IntN(4) > 0)
	}
}

// asks sends the client's question.
func (c *ownClient) asks(key *directory.Key, resumes bool) {
	s := c.s
	s.ownTokens++
	c.asked, c.token, c.named = true, s.ownTokens, 0
	if resumes {
		c.named = c.seq
	}
	q := &committed.OwnWatch{Channel: c.pid, Token: c.token, After: c.named}
	s.spawn(c.l, fmt.Sprintf("%d.client of account %d, from %d on", c.l.number, c.account,
		c.named), func() {
		if err := c.l.engine.WatchOwn(committed.Client{Key: key}, q); err != nil {
			s.outcomes["clients of accounts, turned away"]++
			c.asked, c.token = false, 0 // an answer in flight no longer counts
		}
	})
}

func (c *ownClient) Receive(ctx actor.Context) {
	var err error
	switch m := ctx.Message().(type) {
	case *committed.OwnWatched:
		if c.got = m.Token; m.Token != c.token {
			c.l.engine.UnwatchOwn(c.account, c.pid, c.got)
			return
		}
		c.asked, c.on, c.token = false, true, 0
		err = c.begin(m)
	case *committed.OwnEvents:
		if c.on {
			err = c.take(m.List)
		}
	case *actor.Restarting:
		err = errors.New("it panicked")
	}
	if err != nil {
		c.s.violate("engine %d, the events of account %d: %w", c.l.number, c.account, err)
	}
}

// begin receives the answer to a question.
func (c *ownClient) begin(m *committed.OwnWatched) error {
	if m.Snapshot == nil {
		if c.named == 0 {
			return errors.New("it is resumed without a position")
		}
		c.s.outcomes["clients of accounts, resumed"]++
		c.s.outcomes["events of accounts, sent on a resume"] += len(m.Events)
		return c.take(m.Events)
	}
	c.s.outcomes["clients of accounts, begun"]++
	x := m.Snapshot
	c.seq, c.holdings, c.open = x.Seq, map[uint16]ledger.Holding{}, map[uint64]committed.Order{}
	for _, h := range x.Holdings {
		c.holdings[h.Currency] = h
	}
	for _, o := range x.Orders {
		c.open[o.ID] = o
	}
	c.pending, c.frozen = map[uint64]committed.Withdrawal{}, x.Frozen
	for _, w := range x.Withdrawals {
		c.pending[w.ID] = w
	}
	return c.same(x.Seq)
}

// take applies events.
func (c *ownClient) take(list []*committed.OwnEvent) error {
	for _, x := range list {
		if err := c.apply(x); err != nil {
			return fmt.Errorf("event %d: %w", x.Seq, err)
		}
		c.s.outcomes["events of accounts"]++
	}
	return nil
}

func (c *ownClient) apply(x *committed.OwnEvent) error {
	switch {
	case x.Account != c.account:
		return fmt.Errorf("it is of account %d", x.Account)
	case x.Prev != c.seq || x.Seq <= x.Prev:
		return fmt.Errorf("it follows %d, and the client is at %d", x.Prev, c.seq)
	case x.Seq > c.s.model.Seq:
		return fmt.Errorf("the journal is durable up to %d", c.s.model.Seq)
	}
	c.seq = x.Seq
	for _, h := range x.Balances {
		c.holdings[h.Currency] = h
	}
	for _, o := range x.Orders {
		if delete(c.open, o.ID); o.Status == trading.StatusActive {
			c.open[o.ID] = o
		}
	}
	for _, w := range x.Withdrawals {
		delete(c.pending, w.ID)
		if w.Status == event.WithdrawalNew || w.Status == event.WithdrawalVerified {
			c.pending[w.ID] = w
		}
		c.s.outcomes["withdraws, sent to their accounts"]++
		if w.Status == event.WithdrawalAdjusted {
			c.s.outcomes["adjustments, sent to their accounts"]++
		}
	}
	if x.Cause == committed.CauseFreeze {
		c.frozen = x.Frozen
		c.s.outcomes["freezes, sent to their accounts"]++
	}
	if err := c.same(x.Seq); err != nil {
		return err
	}
	return c.s.sameHistory(x)
}

// same compares the client with the durable records up to a sequence.
func (c *ownClient) same(seq uint64) error {
	if seq > c.s.model.Seq {
		return fmt.Errorf("it is at %d, and the journal is durable up to %d", seq, c.s.model.Seq)
	}
	if c.reference.Seq() > seq {
		c.reference = state.New()
	}
	if err := c.s.foldInto(c.reference, seq); err != nil {
		return err
	}
	a := c.reference.Account(c.account)
	if a == nil { // it had no event
		if len(c.open)+len(c.holdings)+len(c.pending) > 0 || c.frozen {
			return fmt.Errorf("before its first event it has %v, %v and %v, and is frozen: %v",
				c.open, c.holdings, c.pending, c.frozen)
		}
		return nil
	}
	if a.LastEvent() != seq && seq != 0 {
		return fmt.Errorf("the newest event up to %d is %d", seq, a.LastEvent())
	}
	want := map[uint16]ledger.Holding{}
	for _, h := range a.Wallet.Holdings() {
		want[h.Currency] = h
	}
	if !maps.Equal(c.holdings, want) {
		return fmt.Errorf("it has %v, not %v", c.holdings, want)
	}
	if rows := committed.OpenRows(c.reference, a); !reflect.DeepEqual(c.open, rows) {
		return fmt.Errorf("it has the open orders %+v, not %+v", c.open, rows)
	}
	if rows := committed.PendingRows(a); !maps.Equal(c.pending, rows) {
		return fmt.Errorf("it has the pending withdrawals %+v, not %+v", c.pending, rows)
	}
	if c.frozen != a.Frozen && a.Operated().ClosedUs == 0 {
		return fmt.Errorf("its account is frozen: %v, which is wrong", c.frozen)
	}
	return nil
}

// sameHistory compares the closed orders and the trades of an event with the rows of its record.
func (s *sim) sameHistory(x *committed.OwnEvent) error {
	closed := slices.DeleteFunc(slices.Clone(x.Orders), func(o committed.Order) bool {
		return o.Status == trading.StatusActive
	})
	slices.SortFunc(closed, func(a, b committed.Order) int { return int(a.ID) - int(b.ID) })
	want := slices.DeleteFunc(s.ordersUpTo(x.Seq), func(o persistence.Order) bool {
		return o.ClosedSeq != x.Seq || o.Account != x.Account
	})
	if !slices.Equal(closed, want) {
		return fmt.Errorf("it closes %+v, and its record %+v", closed, want)
	}
	before := s.tradesUpTo(x.Seq - 1)
	var trades, made []persistence.Trade
	for _, t := range x.Trades {
		trades = append(trades, t.Trade)
	}
	for _, t := range s.tradesUpTo(x.Seq) {
		if (t.Taker == x.Account || t.Maker == x.Account) && !slices.Contains(before, t) {
			made = append(made, t)
		}
	}
	if !slices.Equal(trades, made) {
		return fmt.Errorf("it has the trades %+v, and its record %+v", trades, made)
	}
	return s.sameFunds(x)
}

// sameFunds compares the deposits of an event, and the withdrawals that it ends, with the rows of
// its record.
func (s *sim) sameFunds(x *committed.OwnEvent) error {
	deposits := s.depositsUpTo(x.Seq)[len(s.depositsUpTo(x.Seq-1)):]
	if !slices.Equal(x.Deposits, deposits) {
		return fmt.Errorf("it has the deposits %+v, and its record %+v", x.Deposits, deposits)
	}
	ended := slices.DeleteFunc(s.withdrawalsUpTo(x.Seq), func(w persistence.Withdrawal) bool {
		return w.ClosedSeq != x.Seq
	})
	for i := range ended {
		ended[i].ClosedUs, ended[i].ClosedSeq = 0, 0 // no answer shows them
	}
	got := slices.DeleteFunc(slices.Clone(x.Withdrawals), func(w committed.Withdrawal) bool {
		return w.Status == event.WithdrawalNew || w.Status == event.WithdrawalVerified
	})
	if !slices.Equal(got, ended) {
		return fmt.Errorf("it ends the withdrawals %+v, and its record %+v", got, ended)
	}
	return nil
}

// ownClientsAtRest checks that no client has missed an event.
func (l *life) ownClientsAtRest() error {
	for id, c := range l.own {
		last := l.engine.committed.State().Account(id).LastEvent()
		if c.on && c.seq != last {
			return fmt.Errorf("account %d received its events up to %d, and %d is the newest", id,
				c.seq, last)
		}
	}
	return nil
}
