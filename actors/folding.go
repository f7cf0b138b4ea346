package actors

import (
	"cmp"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/committed"
	"exchange/actors/mailbox"
)

// A folding is the committed side at work: its actor and its imager's, and the writer of
// projections. It needs no deciding side. An engine whose store is its own has one; that of a
// node stays when a reign ends.
type folding struct {
	committed *committed.Side
	projector *committed.Projector
	at        *actor.RootContext // of its actors
	fold      *actor.PID
	imager    *actor.PID // nil: no images are made
	queues    []queue    // for Stats; read only after the start
}

// connect connects the committed side with the one that hears from it, and with its projector.
func (f *folding) connect(root *actor.RootContext, out committed.Outside,
	o committed.ProjectorOptions) {
	f.at = root
	f.projector = committed.NewProjector(f.committed, o)
	f.committed.Connect(root, out, f.projector)
}

// batchesAtOnce is how many batches overtake a read that waits.
const batchesAtOnce = 64

// spawn starts the actors. At the committed side what is released comes before the reads that wait,
// so much at once; 0: batchesAtOnce.
func (f *folding) spawn(root *actor.RootContext, host *mailbox.Host,
	atOnce int) (err error) {
	lanes := *host
	lanes.UrgentAtOnce = cmp.Or(atOnce, batchesAtOnce)
	imagers := mailbox.NewSpawner(root, 1024, host)
	committeds := mailbox.NewSpawner(root, 1024, &lanes)
	if imager := f.committed.Imager(); imager != nil {
		if f.imager, err = imagers.Spawn("imager", imager); err != nil {
			return err
		}
		imager.Spawned(f.imager)
	}
	if f.fold, err = committeds.Spawn("committed", f.committed); err != nil {
		return err
	}
	f.committed.Spawned(f.fold)
	f.queues = append(f.queues, queue{"committed", committeds.Newest()})
	if f.imager != nil {
		f.queues = append(f.queues, queue{"imager", imagers.Newest()})
	}
	return nil
}

// run starts the goroutines that are not actors.
func (f *folding) run(start func(mailbox.Task)) { start(f.projector) }

// newSystem makes an actor system that logs nothing.
func newSystem() *actor.ActorSystem {
	quiet := slog.New(slog.DiscardHandler)
	return actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
}
