package actors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
	"exchange/persistence"
)

// untrimmed is a store whose journal keeps everything, so that a test can replay it from the start.
type untrimmed struct{ persistence.Store }

func (untrimmed) Trim(context.Context, persistence.Token, uint64) error { return nil }

// Clients act at random, and the process ends now and then. Money is conserved, and the deciding
// side agrees with the committed side at rest. Replay gives the committed state, from the newest
// snapshot and from the first record.
func TestRandomCommandsReplayToTheSameState(t *testing.T) { checkInBubbles(t, 15, playAtRandom) }

func playAtRandom(t *testing.T, rt *rapid.T, fresh places) {
	p := &player{t: t, rt: rt, at: fresh(t), nonces: map[string]uint64{}}
	p.start()
	for _, name := range []string{"ann", "ben", "cid"} {
		fund(t, p.e, name, map[string]money.Amount{"BTC": 50 * coin, "USD": 500 * coin,
			"EUR": 500 * coin})
	}
	for range rapid.IntRange(1, 12).Draw(rt, "phases") {
		switch rapid.IntRange(0, 5).Draw(rt, "phase") {
		case 0:
			p.check()
			stop(t, p.e)
			p.close()
			p.start()
		case 1:
			p.e.Abandon()
			p.close()
			p.start()
		default:
			p.play()
		}
		p.check()
	}
	stop(t, p.e)
	p.close()
}

type player struct {
	t      *testing.T
	rt     *rapid.T
	at     place
	store  persistence.Store
	e      *Engine
	nonces map[string]uint64 // the newest, by account

	mu          sync.Mutex
	ids         []uint64           // of accepted orders
	withdrawals []event.Withdrawal // accepted ones
}

func (p *player) start() {
	p.store = untrimmed{p.at()}
	o := testOptions(p.store)
	o.Limits.MaxFills, o.Timing.Stall = 5, time.Minute // a slow disk is none of its faults
	o.Limits.OpenOrdersPerAccount = 30
	o.Snapshot = committed.SnapshotPolicy{MinRecords: 20, MaxRecords: 40}
	o.stepRows = rapid.SampledFrom([]int{1, 10, committed.StepRows}).Draw(p.rt,
		"rows of a projection")
	p.e = start(p.t, o)
}

func (p *player) close() {
	if err := p.store.Close(); err != nil {
		p.t.Fatal(err)
	}
}

// play sends a handful of commands at once.
func (p *player) play() {
	var runs []func() (*Command, error)
	for range rapid.IntRange(1, 25).Draw(p.rt, "commands") {
		runs = append(runs, p.draw())
	}
	var wg sync.WaitGroup
	for _, run := range runs {
		wg.Go(func() {
			c, err := run()
			if err != nil {
				p.t.Errorf("a command failed: %v", err)
			}
			if c != nil {
				p.note(c)
				c.Free()
			}
		})
	}
	wg.Wait()
	if p.t.Failed() {
		p.rt.FailNow()
	}
}

// note keeps the ids that later commands are about.
func (p *player) note(c *Command) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := c.Record(); c.Outcome() == Accepted && r.Kind == event.KindOrder {
		p.ids = append(p.ids, r.Order.ID)
	} else if c.Outcome() == Accepted && (r.Kind == event.KindWithdrawal ||
		r.Kind == event.KindNamedWithdrawal) {
		p.withdrawals = append(p.withdrawals, r.Withdrawal)
	}
}

// draw draws a client's or operator's command.
func (p *player) draw() func() (*Command, error) {
	name := rapid.SampledFrom([]string{"ann", "ben", "cid"}).Draw(p.rt, "account")
	key := p.e.Key([]byte("key-of-" + name))
	nonce := p.nonces[name]
	if rapid.IntRange(0, 9).Draw(p.rt, "nonce") > 0 { // now and then an old one
		nonce++
		p.nonces[name] = nonce
	}
	switch rapid.IntRange(0, 18).Draw(p.rt, "kind") {
	case 0, 1, 2:
		var id uint64 = 1
		if len(p.ids) > 0 {
			id = rapid.SampledFrom(p.ids).Draw(p.rt, "order")
		}
		return func() (*Command, error) { return p.e.Cancel(key, nonce, id) }
	case 3:
		amount := money.Amount(rapid.Int64Range(1, 3e8).Draw(p.rt, "deposit"))
		reference := fmt.Sprint(rapid.IntRange(0, 20).Draw(p.rt, "reference"))
		return refusable(func() (*Command, error) {
			_, err := p.e.Deposit("test", name, "USD", amount, reference)
			return nil, err
		})
	case 4, 5, 6:
		return p.withdrawal(key, nonce)
	case 7, 8:
		return p.operate(name)
	case 9:
		var pair *directory.Pair
		if rapid.Bool().Draw(p.rt, "one pair") {
			pair = p.e.Pairs()[0]
		}
		return func() (*Command, error) {
			return p.e.CancelAll(key, nonce, CancelFilter{Pair: pair})
		}
	}
	w := OrderRequest{Pair: p.e.Pairs()[rapid.IntRange(0, 1).Draw(p.rt, "pair")],
		Side:   trading.Side(rapid.IntRange(1, 2).Draw(p.rt, "side")),
		Price:  money.Price(rapid.Int64Range(1, 8).Draw(p.rt, "price") * 1e8),
		Amount: money.Amount(rapid.Int64Range(1, 20e8).Draw(p.rt, "amount"))}
	if rapid.IntRange(0, 3).Draw(p.rt, "named") == 0 {
		w.ClientID, _ = event.NewClientID(
			fmt.Sprint("c", rapid.IntRange(0, 15).Draw(p.rt, "client id")))
	}
	return func() (*Command, error) { return p.e.Place(key, nonce, &w) }
}

// withdraw draws a step in the life of a withdrawal, often one that is not possible.
func (p *player) withdrawal(key *directory.Key, nonce uint64) func() (*Command, error) {
	step, id := 0, uint64(1)
	if n := len(p.withdrawals); n > 0 {
		w := &p.withdrawals[rapid.IntRange(max(0, n-4), n-1).Draw(p.rt, "withdraw")]
		if step, id = rapid.IntRange(0, 8).Draw(p.rt, "step"), w.ID; step > 0 { // mostly its owner
			key = p.e.Key([]byte("key-of-" + p.e.AccountName(w.Account)))
			p.nonces[key.Account.Name]++
			nonce = p.nonces[key.Account.Name]
		}
	}
	code := codeOf(p.rt, p.e, id)
	switch step {
	case 0, 1:
		amount := money.Amount(rapid.Int64Range(1, 30e8).Draw(p.rt, "amount"))
		var clientID event.ClientID
		if rapid.Bool().Draw(p.rt, "named") {
			clientID, _ = event.NewClientID(
				fmt.Sprint("w", rapid.IntRange(0, 9).Draw(p.rt, "client id")))
		}
		return func() (*Command, error) {
			return p.e.Do(NewWithdrawal(key, nonce, 2, amount, "somewhere").Named(clientID))
		}
	case 2, 7, 8:
		return func() (*Command, error) { return p.e.Do(NewConfirmation(key, nonce, id, code)) }
	case 3:
		return func() (*Command, error) { return p.e.Do(NewConfirmation(key, nonce, id, "wrong")) }
	case 4:
		return func() (*Command, error) { return p.e.Do(NewWithdrawalCancel(key, nonce, id)) }
	case 5:
		return refusable(func() (*Command, error) {
			return p.e.MoveWithdrawal("test", id, event.WithdrawalApproved, "")
		})
	}
	return refusable(func() (*Command, error) {
		return p.e.MoveWithdrawal("test", id, event.WithdrawalRefused, "no")
	})
}

// operate draws an operator's command.
func (p *player) operate(account string) func() (*Command, error) {
	on := rapid.Bool().Draw(p.rt, "on")
	pair := p.e.Pairs()[rapid.IntRange(0, 1).Draw(p.rt, "pair")].Name
	switch rapid.IntRange(0, 5).Draw(p.rt, "operation") {
	case 0:
		return func() (*Command, error) { _, err := p.e.Halt("test", pair, on); return nil, err }
	case 1:
		return func() (*Command, error) {
			_, err := p.e.Freeze("test", account, on)
			return nil, err
		}
	case 2:
		rates := &state.FeeRates{Maker: money.Rate(rapid.Uint32Range(0, 1e7).Draw(p.rt, "maker")),
			Taker: money.Rate(rapid.Uint32Range(0, 1e7).Draw(p.rt, "taker"))}
		if !on {
			rates = nil
		}
		return func() (*Command, error) {
			_, err := p.e.SetFees("test", account, pair, rates)
			return nil, err
		}
	case 3:
		id := rapid.Uint64Range(1, 50).Draw(p.rt, "order")
		return refusable(func() (*Command, error) { return p.e.OperatorCancel("test", id) })
	case 4:
		return func() (*Command, error) {
			_, err := p.e.OperatorCancelAll(context.Background(), "test", account, "")
			return nil, err
		}
	}
	return func() (*Command, error) {
		_, err := p.e.OperatorCancelAll(context.Background(), "test", "", pair)
		return nil, err
	}
}

// refusable counts a refusal that changed nothing as an answer.
func refusable(run func() (*Command, error)) func() (*Command, error) {
	return func() (*Command, error) {
		c, err := run()
		var refused *RequestError
		if errors.As(err, &refused) {
			return nil, nil
		}
		return c, err
	}
}

// check compares everything that must be equal at rest.
func (p *player) check() {
	p.t.Helper()
	if err := p.e.VerifyAtRest(); err != nil {
		p.rt.Fatal(err)
	}
	// The projections must be there up to the same sequence, and no snapshot ahead of them.
	if err := p.e.Ask(new(committed.Written), nil, 0); err != nil {
		p.rt.Fatal(err)
	}
	r := new(committed.Hash)
	if err := p.e.Ask(r, nil, 0); err != nil {
		p.rt.Fatal(err)
	}
	whole := state.New()
	p.replay(whole)
	if whole.Hash() != r.Hash {
		p.rt.Fatalf(
			"the journal from its first record to %d gives another state than the live one at %d",
			whole.Seq(), r.Seq)
	}
	ctx := context.Background()
	report, err := p.e.Audit(ctx, nil, func(uint64, uint64) {})
	if err != nil || len(report.Differences) > 0 {
		p.rt.Fatalf("the audit: %+v, %v", report, err)
	}
	for back := 0; back < 2; back++ {
		seq, image, err := p.store.LoadSnapshot(ctx, back)
		if errors.Is(err, persistence.ErrNoSnapshot) {
			return
		}
		if err != nil {
			p.rt.Fatal(err)
		}
		b, err := io.ReadAll(image)
		// The engine has published another snapshot meanwhile.
		if errors.Is(err, persistence.ErrNoSnapshot) {
			back--
			continue
		}
		if err != nil {
			p.rt.Fatal(err)
		}
		image.Close()
		s, err := state.Decode(b)
		if err != nil || s.Seq() != seq {
			p.rt.Fatalf("snapshot %d: %v", seq, err)
		}
		p.replay(s)
		if s.Hash() != r.Hash {
			p.rt.Fatalf(
				"the snapshot at %d and the journal after it give another state than the live one",
				seq)
		}
	}
}

// replay folds the journal after the state.
func (p *player) replay(s *state.State) {
	var rec event.Record
	var effects state.Effects
	err := p.store.Read(context.Background(), s.Seq(), func(_, _ uint64, data []byte) error {
		b, err := event.OpenBatch(data)
		for rest := b.Records; err == nil && len(rest) > 0; {
			if rest, err = rec.Decode(rest); err == nil {
				err = s.Apply(&rec, &effects)
			}
		}
		return err
	})
	if err != nil {
		p.rt.Fatal(err)
	}
}
