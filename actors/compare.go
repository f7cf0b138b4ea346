package actors

import (
	"context"
	"slices"
	"time"

	"exchange/actors/directory"
	"exchange/core/matching"
	"exchange/core/state"
)

// A comparison is the part of an audit that looks at the deciding side while all goes on. It
// compares a part at a time, in one turn of each actor that owns the part:
//
//   - of a book, some orders: the book stands still until the fold has all that it decided. Nothing
//     else changes the pair's orders.
//   - a wallet, which has applied what the fold has, and no more: the journal's writer sends
//     settlements before it sends the batch to the fold. What the wallet decides ahead is compared
//     when nothing of it is in flight. A wallet that always has something in flight is compared at
//     last while no commands are taken.
//   - the state of the fold with the imager's, which gets the same batches in the same order.
//
// No command waits for more than a few milliseconds, however large the state is.
type comparison struct {
	*Engine
	found   []error
	longest time.Duration // that a book stood still, or all commands
}

// Bounds of one part, and how often a wallet is visited that has something in flight.
const (
	ordersCompared  = 2000
	walletsCompared = 16
	walletVisits    = 50
)

// run compares all. Its error is that of the engine's end, or of the context.
func (c *comparison) run(ctx context.Context) error {
	for _, p := range c.Pairs() {
		if err := c.book(ctx, p); err != nil {
			return err
		}
	}
	if err := c.wallets(ctx); err != nil {
		return err
	}
	if err := c.states(ctx); err != nil {
		return err
	}
	// the imager's own turn: nothing waits for it
	c.probe(c.imager, func() { c.find(c.committed.Imager().State().Check()) })
	return nil
}

func (c *comparison) find(err error) {
	if err != nil {
		c.found = append(c.found, err)
	}
}

// stood notes for how long commands waited.
func (c *comparison) stood(since time.Time) time.Duration {
	d := time.Since(since)
	c.longest = max(c.longest, d)
	return d
}

// book compares the book of a pair with the committed one.
func (c *comparison) book(ctx context.Context, p *directory.Pair) error {
	at, done := new(matching.Comparison), false
	for !done {
		var stood time.Duration
		var err, differ error
		c.probe(p.Book, func() {
			begin := time.Now()
			to := c.journal.submitted()
			patience, cancel := context.WithTimeout(ctx, restPatience)
			defer cancel()
			err = c.until(patience, func() bool { return c.committed.Folded() >= to })
			if err == nil {
				c.probe(c.fold, func() {
					done, differ = c.verifyOrders(p, c.committed.State().Pair(p.Number), at,
						ordersCompared)
				})
			}
			stood = c.stood(begin)
		})
		if err != nil {
			return err
		}
		if c.find(differ); !done {
			if err := c.pause(ctx, stood); err != nil { // the book catches up
				return err
			}
		}
	}
	return nil
}

// pause waits, unless the audit ends.
func (c *comparison) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.dead:
		return c.failure
	}
}

// wallets compares all wallets.
func (c *comparison) wallets(ctx context.Context) error {
	var accounts int
	c.probe(c.fold, func() { accounts = len(c.committed.State().Accounts()) })
	left := make([]*directory.Account, accounts)
	for i := range left {
		left[i] = c.dir.Account(uint32(i + 1))
	}
	for range walletVisits {
		var again []*directory.Account
		for some := range slices.Chunk(left, walletsCompared) {
			if err := ctx.Err(); err != nil {
				return err
			}
			again = append(again, c.someWallets(some, false)...)
		}
		if left = again; len(left) == 0 {
			return nil
		}
		if err := c.pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	for some := range slices.Chunk(left, walletsCompared) {
		if err := c.walletsAtRest(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// walletsAtRest compares wallets while no commands are taken.
func (c *comparison) walletsAtRest(ctx context.Context, some []*directory.Account) error {
	patience, cancel := context.WithTimeout(ctx, restPatience)
	defer cancel()
	defer c.stood(time.Now())
	c.paused.Store(true)
	defer c.paused.Store(false)
	if err := c.rest(patience); err != nil {
		return err
	}
	c.someWallets(some, true)
	return nil
}

// someWallets compares wallets in one turn of the fold. It returns those that are to be visited
// again. At rest it is none.
func (c *comparison) someWallets(some []*directory.Account,
	atRest bool) (again []*directory.Account) {
	c.probe(c.fold, func() {
		s := c.committed.State()
		for _, entry := range some {
			c.probeWallet(entry, func(w *wallet) {
				a := s.Account(entry.ID)
				switch {
				case !atRest && w.applied > s.Seq():
					again = append(again, entry) // the fold has yet to come so far
				case !atRest && w.flight.busy():
					if err := verifySettled(w, a); err != nil {
						c.find(err)
						return
					}
					again = append(again, entry)
				default:
					c.find(verifyWallet(w, a, c.committed, true))
				}
			})
		}
	})
	return again
}

// states compares the state of the fold with the imager's. While the imager makes an image, the
// fold does not wait for it.
func (c *comparison) states(ctx context.Context) error {
	var at state.Comparison
	for done := false; !done; {
		var differ error
		c.probe(c.fold, func() {
			imager := c.committed.Imager()
			if imager.Making() {
				return
			}
			c.probe(c.imager, func() {
				done, differ = at.Next(c.committed.State(), imager.State())
			})
		})
		c.find(differ)
		if err := c.pause(ctx, 100*time.Microsecond); err != nil {
			return err
		}
	}
	return nil
}
