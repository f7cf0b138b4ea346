package committed

import (
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/core/state"
)

// An Imager makes the images of the state that snapshots and audits need. It is a second fold of
// the released records, in an actor of its own: the committed actor passes each batch on when it
// has folded it, and neither a read nor an event waits while an image is made. Batches that are
// released meanwhile wait in the imager's mailbox. Because this state comes from the records alone,
// each snapshot of it proves that replay equals live.
//
// It costs the memory of a second state, and 0.1 to 0.3 us of CPU a record.
type Imager struct {
	batches state.Fold
	out     Outside // set by Connect
	pid     *actor.PID
	folded  atomic.Uint64
	ordered atomic.Int32 // images that are not made yet
}

// newImager begins with a state of its own, which no other fold has.
func newImager(s *state.State) *Imager {
	i := &Imager{batches: state.Fold{State: s}}
	i.folded.Store(s.Seq())
	return i
}

// makeImage asks for an image of the state after all batches that were sent before, which is at
// sequence seq. The reply has room for it.
type makeImage struct {
	seq   uint64
	reply chan<- *Image
}

// Spawned says which actor it is.
func (i *Imager) Spawned(pid *actor.PID) { i.pid = pid }

// Receive implements actor.Actor.
func (i *Imager) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *Released:
		if err := i.fold(i.batches.State.Seq(), m.next, m.data); err != nil {
			panic(fmt.Sprintf("BUG: a released batch does not fold for images: %v", err))
		}
		i.out.Recycle(m.data)
	case makeImage:
		if seq := i.batches.State.Seq(); seq != m.seq {
			panic(fmt.Sprintf("BUG: an image of sequence %d is asked for at %d", m.seq, seq))
		}
		m.reply <- i.image()
		i.ordered.Add(-1)
	case probe:
		m.Run(i)
	}
}

func (i *Imager) fold(prev, next uint64, data []byte) error {
	if err := i.batches.Batch(prev, next, data); err != nil {
		return err
	}
	i.folded.Store(next)
	return nil
}

// State is what it has folded. It belongs to the actor, once that is spawned.
func (i *Imager) State() *state.State { return i.batches.State }

// Making reports, on the turn of the committed actor, whether an image is being made or is ordered:
// then a message to the imager waits, too.
func (i *Imager) Making() bool { return i.ordered.Load() > 0 }

// image makes the image of the state as it is. After each piece it lets others run, because all
// processors may be busy.
func (i *Imager) image() *Image {
	m, begin := new(Image), time.Now()
	for piece := range i.batches.State.Image {
		m.pieces, m.Size = append(m.pieces, piece), m.Size+len(piece)
		runtime.Gosched()
	}
	m.took = time.Since(begin)
	return m
}

// An Image is the whole state at one sequence. It is read once, by one goroutine.
type Image struct {
	Size   int // bytes
	pieces [][]byte
	took   time.Duration // to make it
}

// Read implements io.Reader. It frees what it has read.
func (m *Image) Read(p []byte) (n int, err error) {
	for n < len(p) && len(m.pieces) > 0 {
		k := copy(p[n:], m.pieces[0])
		n += k
		if m.pieces[0] = m.pieces[0][k:]; len(m.pieces[0]) == 0 {
			m.pieces[0] = nil
			m.pieces = m.pieces[1:]
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}
