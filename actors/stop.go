package actors

import (
	"context"
	"errors"
	"fmt"
)

// fail fails the engine: it acknowledges nothing any more. Any goroutine may call it.
func (e *Engine) fail(err error) {
	if !e.life.Fail(err, func() { e.logFailure(err) }) {
		return
	}
	e.own.End()
	if e.mailer != nil {
		e.mailer.cancelSend()
	}
}

// logFailure logs why the engine ends. A node's engine only ends its term.
func (e *Engine) logFailure(err error) {
	switch {
	case e.cluster == nil:
		e.log.Error("the engine stops", "error", err)
		return
	case errors.Is(err, errTermOver):
		e.log.Info("the term has ended in order")
	default:
		e.log.Warn("the term ends, and the outcome of what is in flight is unknown",
			"in_flight", e.commandsInFlight(), "reason", err)
	}
	e.CloseAdmission()
}

// Dead is closed when the engine has failed; Err returns why. The outcome of waiting commands is
// then unknown.
func (e *Engine) Dead() <-chan struct{} { return e.life.Dead() }

// Err returns why the engine failed; nil: it is alive.
func (e *Engine) Err() error { return e.life.Err() }

// Stop ends the engine in order. It closes admission, lets the mailer finish its current mail, and
// waits until all commands and reads in flight have completed. Then the projections are written, a
// snapshot is taken, and the store is released, so that a start on another host need not wait. An
// error means that ctx ended first, which is safe: the next start recovers from the journal.
func (e *Engine) Stop(ctx context.Context) error {
	e.CloseAdmission()
	defer e.life.End()
	if e.mailer != nil {
		e.mailer.stop(ctx)
	}
	err := e.drain(ctx)
	if err == nil {
		if e.cluster == nil {
			err = e.work.Finish(ctx, &e.life)
		} else {
			err = e.work.Save(ctx, &e.life)
		}
	}
	e.journal.close()
	if err != nil {
		e.fail(err) // wakes the waiting handlers: their outcome is unknown
		return err
	}
	<-e.journal.writerDone
	if err := e.own.Release(ctx); err != nil {
		e.log.Warn(
			"the store was not released: a start on another host waits until it is sure that "+
				"this one has ended", "error", err)
	}
	return nil
}

// Lose fails the engine because a part that it needs failed.
func (e *Engine) Lose(err error) { e.journal.die(err) }

// Retire waits for the end of a node's engine, and returns once only its actors run. Its durable,
// unreleased records are read from the journal.
func (e *Engine) Retire() {
	select {
	case <-e.Dead():
	case <-e.life.Over():
	}
	e.CloseAdmission()
	e.journal.close()
	<-e.journal.writerDone
	e.own.End()
	<-e.own.Stopped()
	e.life.End()
	e.fail(errTermOver)
	if e.mailer != nil {
		<-e.mailer.finished
	}
}

// Shutdown ends the actors of a retired engine.
func (e *Engine) Shutdown() { e.system.Shutdown() }

// errTermOver is the failure of a node's engine that has stopped in order.
var errTermOver = errors.New("the term has ended")

// drain waits until nothing is in flight.
func (e *Engine) drain(ctx context.Context) error {
	err := e.life.Until(ctx, func() bool {
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
	<-e.journal.writerDone
	<-e.own.Stopped()
	e.life.End()
	if e.cluster == nil {
		<-e.work.Projector.Finished()
	}
	if e.mailer != nil {
		<-e.mailer.finished
	}
}
