package serve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"exchange/persistence"
)

// restoring is a store that a restore fills. Meanwhile it sends heartbeats like an exchange, so
// that no standby takes the store. At the end it releases the store, so that a start need not wait.
type restoring struct {
	persistence.Store
	heartbeat persistence.Heartbeat

	token   persistence.Token // "": it owns nothing
	stop    chan struct{}
	stopped chan struct{}
}

// Beat waits, like a standby, until the store's owner shows no sign of life. It returns ErrHeld if
// the owner shows one.
func (r *restoring) Beat(ctx context.Context) (persistence.Beat, error) {
	watch := persistence.OwnerWatch{Heartbeat: r.heartbeat}
	for {
		before := watch.Seen
		now, err := r.Store.Beat(ctx)
		if err == nil {
			err = watch.See(now, time.Now())
		}
		switch {
		case err != nil, r.Exclusive(), !now.HasOwner():
			return now, err
		case before.Token != "" && before != now:
			return now, fmt.Errorf("%w: %.200q uses the store", persistence.ErrHeld, now.Owner)
		case watch.Quiet() >= watch.Needed():
			return now, nil
		}
		select {
		case <-ctx.Done():
			return now, ctx.Err()
		case <-time.After(r.heartbeat.Check):
		}
	}
}

func (r *restoring) Acquire(ctx context.Context,
	c persistence.Claim) (persistence.Token, uint64, error) {
	c.Heartbeat = r.heartbeat
	token, last, err := r.Store.Acquire(ctx, c)
	if err == nil && r.token == "" {
		r.token, r.stop, r.stopped = token, make(chan struct{}), make(chan struct{})
		go r.beat()
	}
	return token, last, err
}

// beat runs in its own goroutine. If another process takes the store, the restore's next write
// fails.
func (r *restoring) beat() {
	defer close(r.stopped)
	t := time.NewTicker(r.heartbeat.Check)
	defer t.Stop()
	for {
		select {
		case <-r.stop:
			return
		case <-t.C:
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			r.Store.Check(ctx, r.token) //nolint:errcheck // as above
			cancel()
		}
	}
}

func (r *restoring) Close() error {
	var err error
	if r.token != "" {
		close(r.stop)
		<-r.stopped
		ctx, cancel := context.WithTimeout(context.Background(), lastAnswers)
		defer cancel()
		if err = r.Store.Release(ctx, r.token); errors.Is(err, persistence.ErrFenced) {
			err = nil // its writes have failed with it, if any was left
		}
	}
	return errors.Join(err, r.Store.Close())
}
