package actors

import (
	"context"
	"errors"
	"time"

	"exchange/actors/audit"
	"exchange/actors/committed"
)

// restPatience bounds the wait, without commands, for what is in flight.
const restPatience = 5 * time.Second

// errAuditRunning refuses a second audit at the same time.
var errAuditRunning = &RequestError{"an audit is running already"}

// Audit compares the deciding wallets and books with the committed state, that state with the
// imager's, and then the imager's with the store: see audit.Run. Everything goes on meanwhile.
func (e *Engine) Audit(ctx context.Context, archive audit.Archive,
	progress func(at, of uint64)) (*audit.Report, error) {
	if !e.auditing.CompareAndSwap(false, true) {
		return nil, errAuditRunning
	}
	defer e.auditing.Store(false)
	e.meter.Auditing.Begin()
	defer e.meter.Auditing.End()
	c := comparison{Engine: e, orders: ordersCompared}
	if err := c.run(ctx); err != nil {
		return nil, err
	}
	image, err := e.Image(ctx)
	if err != nil {
		return nil, err
	}
	subject := &audit.Subject{Store: e.opts.Store, Retention: e.opts.Retention,
		Earlier: e.projected, Sealer: e.sealer, Present: present{e},
		RowsAtOnce:     e.opts.Tests.rowRefs,
		DepositsAtOnce: e.opts.Tests.deposits, Image: image, Found: errors.Join(c.found...)}
	report, err := audit.Run(ctx, subject, archive, progress)
	if err != nil {
		return nil, err
	}
	report.Paused = c.longest
	return report, nil
}

// VerifyAtRest compares the deciding side with the committed side as an audit does, and the last
// nonces, too. It is for tests, when nothing is in flight.
func (e *Engine) VerifyAtRest() error {
	c := comparison{Engine: e, orders: ordersCompared, still: true}
	err := c.run(context.Background())
	return errors.Join(append(c.found, err)...)
}

// rest waits until nothing is in flight.
func (c *comparison) rest(ctx context.Context) error {
	return c.within(ctx, c.quiet)
}

// A present tells an audit how far a running engine has gone on.
type present struct{ *Engine }

func (p present) Written() error {
	return p.Ask(new(committed.Barrier), nil, 0)
}

func (p present) Newest() (trades []uint64, deposit uint64, err error) {
	q := new(committed.Newest)
	if err := p.Ask(q, nil, 0); err != nil {
		return nil, 0, err
	}
	return q.Trades, q.Deposit, nil
}
