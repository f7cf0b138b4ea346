package actors

import (
	"context"
	"slices"
	"time"

	"exchange/actors/committed"
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
// A command waits for a part at most: a book, for as long as two appends take. Differences in what
// a wallet decides ahead count only without commands, because some decisions, such as a freeze,
// leave nothing in flight that a look could see.
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
	turnCompared    = 500 * time.Microsecond // of the fold, for wallets
	imagerBehind    = 1000                   // records for which the fold waits
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
			err = c.within(ctx, func() bool { return c.committed.Folded() >= to })
			if err == nil {
				c.probeFold(func() {
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

// within waits for a condition, for as long as an audit is patient.
func (c *comparison) within(ctx context.Context, condition func() bool) error {
	patience, cancel := context.WithTimeout(ctx, restPatience)
	defer cancel()
	err := c.until(patience, condition)
	if err != nil && err == patience.Err() && ctx.Err() == nil {
		return committed.ErrTimeout
	}
	return err
}

// wallets compares all wallets.
func (c *comparison) wallets(ctx context.Context) error {
	left := make([]*directory.Account, c.dir.Accounts())
	for i := range left {
		left[i] = c.dir.Account(uint32(i + 1))
	}
	for range walletVisits {
		var again []*directory.Account
		for len(left) > 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			n, more := c.someWallets(left)
			left, again = left[n:], append(again, more...)
		}
		if left = again; len(left) == 0 {
			return nil
		}
		if err := c.pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	for some := range slices.Chunk(left, walletsCompared) {
		stood, err := c.walletsAtRest(ctx, some)
		if err == nil {
			err = c.pause(ctx, 10*stood) // commands go on for most of the time
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// walletsAtRest compares wallets while no commands are taken. It returns for how long.
func (c *comparison) walletsAtRest(ctx context.Context, some []*directory.Account) (
	stood time.Duration, err error) {
	begin := time.Now()
	c.paused.Store(true)
	defer func() {
		c.paused.Store(false)
		stood = c.stood(begin)
	}()
	if err := c.rest(ctx); err != nil {
		return 0, err
	}
	c.probeFold(func() {
		s := c.committed.State()
		for _, entry := range some {
			c.probeWallet(entry, func(w *wallet) {
				c.find(verifyWallet(w, s.Account(entry.ID), c.committed, true))
			})
		}
	})
	return 0, nil
}

// someWallets compares the first wallets of a list in one short turn of the fold. It returns how
// many it has visited, and which of them are to be visited again.
func (c *comparison) someWallets(list []*directory.Account) (n int, again []*directory.Account) {
	c.probe(c.fold, func() {
		begin := time.Now()
		for _, entry := range list[:min(walletsCompared, len(list))] {
			c.probeWallet(entry, func(w *wallet) {
				if !c.settledEqual(w, entry) {
					again = append(again, entry)
				}
			})
			if n++; time.Since(begin) > turnCompared {
				return
			}
		}
	})
	return n, again
}

// settledEqual compares a wallet at the fold's sequence. It reports whether that was all, and notes
// what differs in what is settled.
func (c *comparison) settledEqual(w *wallet, entry *directory.Account) (all bool) {
	s := c.committed.State()
	if int(entry.ID) > len(s.Accounts()) || w.applied > s.Seq() {
		return false // the fold has yet to come so far
	}
	a := s.Account(entry.ID)
	if err := verifySettled(w, a); err != nil {
		c.find(err)
		return true
	}
	return !w.flight.busy() && verifyWorking(w, a, c.committed, true) == nil
}

// states compares the state of the fold with the imager's. While the imager makes an image, the
// fold does not wait for it.
func (c *comparison) states(ctx context.Context) error {
	var at state.Comparison
	for done := false; !done; {
		var differ error
		c.probe(c.fold, func() {
			imager := c.committed.Imager()
			if imager.Making() ||
				behind(c.committed.State().Seq(), c.committed.Imaged()) > imagerBehind {
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
