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

// Workers are a committed side at work: its actor and its imager's, and the writer of projections.
// They need no deciding side. An engine on a store of its own has some; those of a node stay when
// it leads no more.
type Workers struct {
	side      *Side
	Projector *Projector
	Root      *actor.RootContext // of the actors
	Fold      *actor.PID
	Imager    *actor.PID // nil: no images are made
	Queues    []Queue    // for monitoring; read only after the start
}

// A Queue is a mailbox whose messages are counted.
type Queue struct {
	Name    string // several may share one
	Mailbox interface{ UserMessageCount() int }
}

// batchesAtOnce is how many batches overtake a read that waits.
const batchesAtOnce = 64

// Connect connects a committed side with the one that hears from it, and with its projector.
func Connect(s *Side, root *actor.RootContext, out Output, o ProjectorOptions) *Workers {
	w := &Workers{side: s, Root: root, Projector: newProjector(s, o)}
	s.connect(root, out, w.Projector)
	return w
}

// Spawn starts the actors. At the committed side what is released comes before the reads that wait,
// so much at once; 0: batchesAtOnce.
func (w *Workers) Spawn(host *mailbox.Host, atOnce int) (err error) {
	lanes := *host
	lanes.UrgentAtOnce = cmp.Or(atOnce, batchesAtOnce)
	imagers := mailbox.NewSpawner(w.Root, 1024, host)
	sides := mailbox.NewSpawner(w.Root, 1024, &lanes)
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

// Finish writes what the store lacks, and an image, and waits for it.
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

// Save writes what the store lacks. The nonces of reads are no records: only their owner can tell
// them to the other nodes, before it gives the engine back.
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
