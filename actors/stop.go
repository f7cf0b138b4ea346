package actors

import (
	"context"
	"errors"
	"fmt"

	"exchange/actors/committed"
)

// fail ends the engine: it acknowledges nothing any more. Any goroutine may call it.
func (e *Engine) fail(err error) {
	e.failOnce.Do(func() {
		switch {
		case e.node == nil:
			e.log.Error("the engine stops", "error", err)
		case errors.Is(err, errReignOver):
			e.log.Info("the reign has ended in order")
		default:
			e.log.Warn("the reign ends, and the outcome of what is in flight is unknown",
				"in_flight", e.commandsInFlight(), "reason", err)
		}
		if e.node != nil {
			e.CloseAdmission()
		}
		e.failure = err
		close(e.dead)
		e.own.end()
		if e.mailer != nil {
			e.mailer.hurry()
		}
	})
}

// Stop ends the engine in order. It closes admission, lets the mailer end the mail that it sends,
// and waits until all commands and reads in flight have ended. Then the projections are written, a
// snapshot is taken, and the store is given back, so that another host's start need not wait. An
// error means that ctx ended before all that, which is safe: the next start recovers from the
// journal.
func (e *Engine) Stop(ctx context.Context) error {
	e.CloseAdmission()
	defer e.end()
	if e.mailer != nil {
		e.mailer.stop(ctx)
	}
	err := e.drain(ctx)
	if err == nil {
		if e.node == nil {
			err = e.folding.last(ctx, &e.lifetime)
		} else {
			err = e.folding.save(ctx, &e.lifetime)
		}
	}
	e.journal.close()
	if err != nil {
		e.fail(err) // wakes the handlers that still wait: their outcome is unknown
		return err
	}
	<-e.journal.stopped
	if err := e.own.release(ctx); err != nil {
		e.log.Warn(
			"the store was not given back: a start on another host waits until it is sure that "+
				"this one has ended", "error", err)
	}
	return nil
}

// last has the committed side write what the store lacks, and an image, and waits for it.
func (f *folding) last(ctx context.Context, life *lifetime) error {
	f.committed.Send(committed.Finish{})
	select {
	case <-f.projector.Finished():
		return errors.Join(life.Err(), f.projector.Err())
	case <-life.dead:
		return life.failure
	case <-ctx.Done():
		return fmt.Errorf("stopping before the projections were written: %w", ctx.Err())
	}
}

// save has the committed side write what the store lacks. The nonces of reads are no records: only
// their owner can tell them to the other nodes, before it gives the engine back.
func (f *folding) save(ctx context.Context, life *lifetime) error {
	done := make(chan struct{})
	f.committed.Send(committed.Save{Done: done})
	select {
	case <-done:
		return nil
	case <-life.dead:
		return life.failure
	case <-ctx.Done():
		return fmt.Errorf("stopping before the nonces of reads were written: %w", ctx.Err())
	}
}

// drain waits until nothing is in flight.
func (e *Engine) drain(ctx context.Context) error {
	err := e.until(ctx, func() bool {
		return e.quiet() && e.ReadsInFlight() == 0
	})
	if err != nil && err == ctx.Err() {
		return fmt.Errorf("stopping with %d commands in flight: %w", e.commandsInFlight(), err)
	}
	return err
}

// Abandon ends the engine's goroutines at once, as a crash would: for tests.
func (e *Engine) Abandon() {
	e.CloseAdmission()
	e.fail(errors.New("abandoned"))
	e.journal.close()
	<-e.journal.stopped
	<-e.own.stopped
	e.end()
	if e.node == nil {
		<-e.projector.Finished()
	}
	if e.mailer != nil {
		<-e.mailer.finished
	}
}
