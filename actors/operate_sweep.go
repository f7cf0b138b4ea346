package actors

import (
	"context"
	"errors"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"fmt"
	"slices"
	"sync"
)

// OperatorCancelAll cancels all open orders of an account, of a pair, or of both; an empty name
// means all of them, but one must be given. It takes as long as it takes, while ctx lasts; accounts
// that fail do not keep the others from being done. It returns the orders that it cancelled, also
// with an error, which says what is not done: ErrTimeout if of some orders that is not known.
func (e *Engine) OperatorCancelAll(ctx context.Context, who, account, pair string) (orders []uint64,
	err error) {
	r := committed.NewRead(committed.ReadHolders)
	var p *directory.Pair
	if pair != "" {
		if p = e.PairNamed(pair); p == nil {
			return nil, refusef("there is no pair %.80q", pair)
		}
		r.Pair = p.Number
	} else if account == "" {
		return nil, refusef("name an account or a pair")
	}
	r.Name = account
	if err := e.Ask(r, nil, 0); err != nil {
		return nil, err
	}
	holders, known := slices.Clone(r.Holders), r.Account != 0
	r.Free()
	if account != "" && !known {
		return nil, refusef("there is no account %.80q", account)
	}
	return e.sweepAll(ctx, who, holders, p)
}

// sweepsAtOnce is how many accounts' orders an operator's command cancels at the same time.
const sweepsAtOnce = 8

func (e *Engine) sweepAll(ctx context.Context, who string, accounts []uint32,
	p *directory.Pair) (orders []uint64, err error) {
	var mu sync.Mutex
	var failures []error
	todo := make(chan uint32)
	var busy sync.WaitGroup
	for range min(sweepsAtOnce, max(1, e.opts.Limits.InFlight/100)) {
		busy.Go(func() {
			for id := range todo {
				done, err := e.sweepOf(ctx, who, id, p)
				mu.Lock()
				orders = append(orders, done...)
				if err != nil {
					failures = append(failures, fmt.Errorf("account %s: %w", e.AccountName(id),
						err))
				}
				mu.Unlock()
			}
		})
	}
	for i, id := range accounts {
		if ctx.Err() != nil || e.stopping.Load() || e.Err() != nil {
			mu.Lock()
			failures = append(failures, fmt.Errorf("%d accounts were not begun: %w",
				len(accounts)-i, ErrStopping))
			mu.Unlock()
			break
		}
		todo <- id
	}
	close(todo)
	busy.Wait()
	slices.Sort(orders)
	return orders, joined(failures)
}

// sweepOf cancels the orders of one account.
func (e *Engine) sweepOf(ctx context.Context, who string, account uint32,
	p *directory.Pair) ([]uint64,
	error) {
	c := newCommand(kindCancelAll)
	c.pair = p
	if err := e.sendOperator(c, who, account); err != nil {
		return nil, err
	}
	if !e.opts.scheduler.AwaitContext(ctx, c.reply, e.dead) {
		e.meter.UnknownOutcomes.Add(1)
		return nil, committed.ErrTimeout
	}
	defer c.Free()
	return c.cancelled, nil
}

// maxFailures bounds how many failures are named.
const maxFailures = 10

// joined is one error of many. If the outcome of one is unknown, so is that of all: it is no other
// error then.
func joined(failures []error) error {
	if n := len(failures); n > maxFailures {
		failures = append(failures[:maxFailures:maxFailures],
			fmt.Errorf("and %d more", n-maxFailures))
	}
	err := errors.Join(failures...)
	if errors.Is(err, committed.ErrTimeout) {
		return fmt.Errorf("%w: %v", committed.ErrTimeout, err) //nolint:errorlint // see above
	}
	return err
}
