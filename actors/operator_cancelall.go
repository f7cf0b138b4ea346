package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"exchange/actors/committed"
	"exchange/actors/directory"
)

// OperatorCancelAll cancels all open orders of an account, of a pair, or of both. An empty name
// means all of them, but one name is required. Only ctx bounds its time, and one account's failure
// does not stop the others. It returns the cancelled orders, also with an error, which names the
// failures. ErrTimeout: the outcome of some orders is unknown.
func (e *Engine) OperatorCancelAll(ctx context.Context, operator, account,
	pair string) (orders []uint64, err error) {
	q := &committed.Holders{Name: account}
	var p *directory.Pair
	if pair != "" {
		if p = e.PairNamed(pair); p == nil {
			return nil, requestErrorf("%s", e.NoPair(pair))
		}
		q.Pair = p.Number
	} else if account == "" {
		return nil, requestErrorf("name an account or a pair")
	}
	if err := e.Ask(q, nil, 0); err != nil {
		return nil, err
	}
	if q.Unknown {
		return nil, requestErrorf("there is no account %.80q", account)
	}
	return e.cancelAllOf(ctx, operator, q.IDs, p)
}

// accountsAtOnce bounds the accounts whose orders one command cancels at the same time.
const accountsAtOnce = 8

// cancelAllOf cancels the orders of accounts; p nil: in all pairs.
func (e *Engine) cancelAllOf(ctx context.Context, operator string, accounts []uint32,
	p *directory.Pair) (orders []uint64, err error) {
	var mu sync.Mutex
	var failures []error
	todo := make(chan uint32)
	var busy sync.WaitGroup
	for range min(accountsAtOnce, max(1, e.limits().InFlight/100)) {
		busy.Go(func() {
			for id := range todo {
				done, err := e.cancelAllOfAccount(ctx, operator, id, p)
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

// cancelAllOfAccount cancels the orders of one account.
func (e *Engine) cancelAllOfAccount(ctx context.Context, operator string, account uint32,
	p *directory.Pair) ([]uint64, error) {
	c := newCommand(kindCancelAll)
	c.pair = p
	if err := e.sendToWallet(c, operator, account); err != nil {
		return nil, err
	}
	if !e.opts.Scheduler.AwaitContext(ctx, c.reply, e.Dead()) {
		e.meter.UnknownOutcomes.Add(1)
		return nil, committed.ErrTimeout
	}
	defer c.Free()
	return c.cancelledOrders, nil
}

// maxFailures bounds the failures that an error names.
const maxFailures = 10

// joined makes one error of many. If one outcome is unknown, so is that of all: the error then
// wraps only ErrTimeout.
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
