package actors

import (
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/committed"
	"exchange/actors/lineartest"
	"exchange/core/trading"
)

// A recordedOwn is the subscriber of an account on one engine. The history records its events.
type recordedOwn struct {
	r       *recording
	e       *Engine
	account int
	pid     *actor.PID

	mu     sync.Mutex
	seq    uint64               // of the newest event
	asks   *lineartest.Recorded // its unanswered question; nil: none
	answer chan error           // to its question
	away   bool                 // since the last burst began
	ended  bool                 // the engine is down
}

// subscribe starts a subscriber of each account on an engine.
func (r *recording) subscribe(e *Engine) {
	r.t.Helper()
	for i := range lineartest.Accounts {
		s := &recordedOwn{r: r, e: e, account: i, answer: make(chan error, 1)}
		s.pid = e.SpawnChannel(fmt.Sprint("recorded.account-", i),
			func() actor.Actor { return s })
		if r.own[i] != nil {
			r.own[i].end()
		}
		r.own[i] = s
		s.ask(false)
	}
}

// ask subscribes, or resumes at its position, as a returning subscriber always does. Afterwards the
// history contains all earlier events of the engine.
func (s *recordedOwn) ask(resumes bool) {
	s.r.t.Helper()
	key := s.e.Key([]byte(keyName(ownKey(s.account, 0))))
	s.mu.Lock()
	s.asks = s.r.history.Begin(-1, lineartest.Operation{Kind: lineartest.Subscribe,
		Account: s.account})
	q := &committed.OwnWatch{Channel: s.pid}
	if resumes || s.away {
		q.After = s.seq
	}
	s.mu.Unlock()
	if err := s.e.WatchOwn(committed.Client{Key: key}, q); err != nil {
		s.r.t.Fatal(err)
	}
	if err := <-s.answer; err != nil {
		s.r.t.Error(err)
	}
}

// leave ends the subscription for a while, if it has a position to resume from.
func (s *recordedOwn) leave() {
	s.mu.Lock()
	s.away = s.seq > 0
	s.mu.Unlock()
	if !s.away {
		return
	}
	key := s.e.Key([]byte(keyName(ownKey(s.account, 0))))
	s.e.UnwatchOwn(key.Account.ID, s.pid, 0)
}

// end stops the subscriber: its engine is down.
func (s *recordedOwn) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

func (s *recordedOwn) Receive(ctx actor.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	switch m := ctx.Message().(type) {
	case *committed.OwnWatched:
		s.answer <- s.begin(m)
	case *committed.OwnEvents:
		if err := s.record(m.List); err != nil {
			s.r.t.Error(err)
		}
	}
}

// begin receives the answer to a question: the account's content, or the events since it left.
func (s *recordedOwn) begin(m *committed.OwnWatched) error {
	asked, was := s.asks, s.away
	s.asks, s.away = nil, false
	if m.Snapshot == nil {
		asked.Forget()
		missed := m.Events
		for len(missed) > 0 && missed[0].Seq <= s.seq {
			missed = missed[1:]
		}
		if len(missed) > 0 && !was {
			return fmt.Errorf("account %d did not receive its events after %d", s.account, s.seq)
		}
		return s.record(missed)
	}
	x := m.Snapshot
	if !x.Complete {
		return errors.New("the snapshot lacks orders")
	}
	result := lineartest.Result{Outcome: lineartest.Done, Sequence: x.Seq, Frozen: x.Frozen}
	for _, h := range x.Holdings {
		result.Funds[h.Currency-1] = lineartest.Funds{Balance: units(h.Balance),
			Reserve: units(h.Reserve)}
	}
	var err error
	result.Orders, err = orderRows(x.Orders)
	s.seq = x.Seq
	asked.End(result)
	return err
}

// tell records events.
func (s *recordedOwn) record(list []*committed.OwnEvent) error {
	for _, x := range list {
		e := lineartest.Event{Account: s.r.accountOf(x.Account), Sequence: x.Seq, Prev: x.Prev,
			Freezes: x.Cause == committed.CauseFreeze, Frozen: x.Frozen}
		for _, h := range x.Balances {
			e.Money = append(e.Money, lineartest.Money{Currency: int(h.Currency) - 1,
				Funds: lineartest.Funds{Balance: units(h.Balance), Reserve: units(h.Reserve)}})
		}
		for i := range x.Trades {
			t := &x.Trades[i]
			number, err := strconv.Atoi(t.ClientID)
			if err != nil {
				return err
			}
			e.Trades = append(e.Trades, lineartest.OwnTrade{ID: t.ID, Order: number,
				Maker: t.Maker, Price: int64(t.Price) / 1e8, Amount: coins(t.Amount.Balance())})
		}
		var err error
		if e.Orders, err = orderRows(x.Orders); err != nil {
			return err
		}
		s.r.history.Notify(s.account, e)
		s.seq = x.Seq
	}
	return nil
}

// accountOf returns the number of an account.
func (r *recording) accountOf(id uint32) int {
	for i, s := range r.own {
		if s != nil && s.e.Key([]byte(keyName(ownKey(i, 0)))).Account.ID == id {
			return i
		}
	}
	return -1
}

// orderRows returns orders in the history's form.
func orderRows(list []committed.Order) (rows []lineartest.OrderRow, err error) {
	for i := range list {
		o := &list[i]
		number, err := strconv.Atoi(o.ClientID)
		if err != nil {
			return nil, err
		}
		status := lineartest.Open
		switch o.Status {
		case trading.StatusDone:
			status = lineartest.Filled
		case trading.StatusCancelled:
			status = lineartest.Cancelled
		}
		rows = append(rows, lineartest.OrderRow{Order: number, ID: o.ID, Status: status,
			Remains: coins(o.Remaining.Balance())})
	}
	return rows, nil
}
