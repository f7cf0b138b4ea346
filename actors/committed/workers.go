package committed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/mailbox"
)

// Workers are a running committed side: its actor, its imager's actor, and the projector. They need
// no deciding side. An engine on a store of its own has some; those of a node outlive its terms.
type Workers struct {
	side      *Side
	Projector *Projector
	Root      *actor.RootContext // of the actors
	Fold      *actor.PID
	Imager    *actor.PID // nil: no imager
	Queues    []Queue    // for monitoring; read only after the start
}

// A Queue is a mailbox whose messages are counted.
type Queue struct {
	Name    string // not unique
	Mailbox interface{ UserMessageCount() int }
}

// batchesAtOnce is the number of batches that may overtake a waiting read.
const batchesAtOnce = 64

// Connect connects a committed side with its output, and with its projector.
func Connect(s *Side, root *actor.RootContext, out Output, o ProjectorOptions) *Workers {
	w := &Workers{side: s, Root: root, Projector: newProjector(s, o)}
	s.connect(root, out, w.Projector)
	return w
}

// Spawn starts the actors. At the committed side up to atOnce released batches overtake a waiting
// read; 0: batchesAtOnce.
func (w *Workers) Spawn(host *mailbox.Host, atOnce int) (err error) {
	sideHost := *host
	sideHost.UrgentAtOnce = cmp.Or(atOnce, batchesAtOnce)
	imagers := mailbox.NewSpawner(w.Root, 1024, host)
	sides := mailbox.NewSpawner(w.Root, 1024, &sideHost)
	if imager := w.side.Imager(); imager != nil {
		if w.Imager, err = imagers.Spawn("imager", imager); err != nil {
			return err
		}
		imager.spawned(w.Imager)
	}
	if w.Fold, err = sides.Spawn("committed", w.side); err != nil {
		return err
	}
	w.side.spawned(w.Fold)
	w.Queues = append(w.Queues, Queue{"committed", sides.Newest()})
	if w.Imager != nil {
		w.Queues = append(w.Queues, Queue{"imager", imagers.Newest()})
	}
	return nil
}

// Finish writes all pending rows, and an image, and waits for it.
func (w *Workers) Finish(ctx context.Context, life *mailbox.Life) error {
	w.side.Send(finish{})
	select {
	case <-w.Projector.Finished():
		return errors.Join(life.Err(), w.Projector.err)
	case <-life.Dead():
		return life.Err()
	case <-ctx.Done():
		return fmt.Errorf("stopping before the projections were written: %w", ctx.Err())
	}
}

// Save writes all pending rows. The nonces of reads are not in records: only their owner can store
// them for the other nodes, before it releases the engine.
func (w *Workers) Save(ctx context.Context, life *mailbox.Life) error {
	done := make(chan struct{})
	w.side.Send(save{done})
	select {
	case <-done:
		return nil
	case <-life.Dead():
		return life.Err()
	case <-ctx.Done():
		return fmt.Errorf("stopping before the nonces of reads were written: %w", ctx.Err())
	}
}

// NewSystem makes an actor system that logs nothing.
func NewSystem() *actor.ActorSystem {
	quiet := slog.New(slog.DiscardHandler)
	return actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
}
