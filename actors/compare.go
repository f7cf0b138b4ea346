package actors

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/core/compare"
	"exchange/core/ledger"
	"exchange/core/state"
)

// A comparison is the part of an audit that looks at the deciding side while all goes on. It
// compares a part at a time:
//
//   - of a book, some orders: the book copies them, and goes on. The fold compares the copies right
//     behind the last record that was submitted by then. Nothing else changes the pair's orders.
//   - a wallet, of which some open orders at a time, which has applied what the fold has, and no
//     more: the journal's writer sends settlements before it sends the batch to the fold. Decisions
//     that the wallet has made ahead are compared when nothing of it is in flight. A wallet that
//     always has something in flight is compared at last while no commands are taken.
//   - the state of the fold with the imager's, which gets the same batches in the same order.
//
// A command waits for the copies of a book, or for a part of a wallet. Differences in what a wallet
// decides ahead count only without commands, because some decisions, such as a freeze, leave
// nothing in flight that a look could see.
type comparison struct {
	*Engine
	orders  int  // of a part
	still   bool // nothing is in flight, no read either
	visited *visit
	open    compare.Lists[ledger.OpenOrder] // of the wallet that is visited
	found   []error
	longest time.Duration // that a book stood still, or all commands
}

// Usual bounds of one part, and how often a wallet is visited that has something in flight.
const (
	ordersCompared  = 2000 // of a book
	openCompared    = 500  // orders of a wallet, with their client order ids
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
	c.probe(c.work.Imager, func() { c.find(c.committed.Imager().State().Check()) })
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
	for part := (&bookPart{pair: p}); ; {
		var stood time.Duration
		var differ error
		done, compared := false, make(chan struct{})
		c.probe(p.Book, func() {
			begin := time.Now()
			part.take(c.books[p.Number-1], c.orders)
			c.committed.AfterRecord(c.journal.submitted(), func() {
				done, differ = part.with(c.committed.State())
				close(compared)
			})
			stood = c.stood(begin)
		})
		if err := c.wait(ctx, compared, restPatience); err != nil {
			return err
		}
		if c.find(differ); done {
			return nil
		}
		if err := c.pause(ctx, stood); err != nil { // the book catches up
			return err
		}
	}
}

// wait waits for the end of a look, for at most so long.
func (c *comparison) wait(ctx context.Context, over <-chan struct{}, most time.Duration) error {
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-over:
		return nil
	case <-t.C:
		return committed.ErrTimeout
	case <-ctx.Done():
		return ctx.Err()
	case <-c.Dead():
		return c.Err()
	}
}

// pause waits, unless the audit ends.
func (c *comparison) pause(ctx context.Context, d time.Duration) error {
	if err := c.wait(ctx, nil, d); err != committed.ErrTimeout {
		return err
	}
	return nil
}

// within waits for a condition, for as long as an audit is patient.
func (c *comparison) within(ctx context.Context, condition func() bool) error {
	patience, cancel := context.WithTimeout(ctx, restPatience)
	defer cancel()
	err := c.life.Until(patience, condition)
	if err != nil && err == patience.Err() && ctx.Err() == nil {
		return committed.ErrTimeout
	}
	return err
}

// wallets compares all wallets.
func (c *comparison) wallets(ctx context.Context) error {
	left := make([]*visit, c.dir.Accounts())
	for i := range left {
		left[i] = &visit{account: c.dir.Account(uint32(i + 1))}
	}
	for range walletVisits {
		var again []*visit
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
	for len(left) > 0 {
		n, stood, err := c.walletsAtRest(ctx, left)
		if err == nil {
			err = c.pause(ctx, 10*stood) // commands go on for most of the time
		}
		if err != nil {
			return err
		}
		left = left[n:]
	}
	return nil
}

// walletsAtRest compares the first wallets of a list while no commands are taken. It returns how
// many are done with, and for how long commands stood.
func (c *comparison) walletsAtRest(ctx context.Context, list []*visit) (n int, stood time.Duration,
	err error) {
	begin := time.Now()
	c.paused.Store(true)
	defer func() {
		c.paused.Store(false)
		stood = c.stood(begin)
	}()
	if err := c.rest(ctx); err != nil {
		return 0, 0, err
	}
	c.probeFold(func() { n, _ = c.look(list, true) })
	return n, 0, nil
}

// someWallets compares the first wallets of a list in one short turn of the fold. It returns how
// many it is done with for now, and which of them are to be visited again.
func (c *comparison) someWallets(list []*visit) (n int, again []*visit) {
	c.probe(c.work.Fold, func() { n, again = c.look(list, false) })
	return n, again
}

// look compares the first wallets of a list, on the turn of the fold. It returns how many it is
// done with for now, and which of them are to be visited again: none at rest.
func (c *comparison) look(list []*visit, atRest bool) (n int, again []*visit) {
	begin := time.Now()
	for _, v := range list[:min(walletsCompared, len(list))] {
		var got progress
		if v.account.WalletBegan() == 0 { // what it begins with is the fold's
			n++
			continue
		}
		c.probeWallet(v.account, func(w *wallet) { got = c.wallet(w, v, atRest) })
		switch {
		case got == partly || got == later && atRest:
			return n, again
		case got == later:
			again = append(again, v)
		}
		if n++; time.Since(begin) > turnCompared {
			return n, again
		}
	}
	return n, again
}

// states compares the state of the fold with the imager's. While the imager makes an image, the
// fold does not wait for it.
func (c *comparison) states(ctx context.Context) error {
	var at state.Comparison
	for done := false; !done; {
		var differ error
		c.probe(c.work.Fold, func() {
			imager := c.committed.Imager()
			if imager.Making() ||
				behind(c.committed.State().Seq(), c.committed.ImagerFolded()) > imagerBehind {
				return
			}
			c.probe(c.work.Imager, func() {
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

func (e *Engine) probeActor(pid *actor.PID, look func(actor.Actor)) {
	p, root := mailbox.NewProbe(look), e.root
	if pid == e.work.Fold || pid == e.work.Imager {
		root = e.work.Root
	}
	root.Send(pid, p)
	<-p.Done
}

func (e *Engine) probe(pid *actor.PID, look func()) {
	e.probeActor(pid, func(actor.Actor) { look() })
}

func (e *Engine) probeWallet(a *directory.Account, look func(*wallet)) {
	if a.Wallet() == nil {
		e.openWallet(a)
	}
	e.probeActor(a.Wallet(), func(w actor.Actor) { look(w.(*wallet)) })
}

// probeFold runs a function in the next turn of the committed side.
func (e *Engine) probeFold(look func()) {
	p := mailbox.NewUrgentProbe(look)
	e.committed.Send(p)
	<-p.Done
}
