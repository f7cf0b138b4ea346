package committed

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/core/state"
	"exchange/persistence"
)

// An Imager makes the images of the state that snapshots and audits need. It is a second fold of
// the released records, in an actor of its own: the committed actor forwards each folded batch, and
// neither a read nor an event waits while an image is made. Batches released meanwhile wait in the
// imager's mailbox. Because this state is derived from the records alone, each snapshot of it
// proves that replay equals live.
//
// It costs the memory of a second state, and 0.1 to 0.3 us of CPU per record. A start does not wait
// for it: the actor builds its state before its first message.
type Imager struct {
	batches state.Fold // without a state while late is set
	late    *late      // nil: the state is built
	out     Output     // set by Connect
	pid     *actor.PID
	folded  atomic.Uint64
	ordered atomic.Int32 // images and sums requested and not made yet
}

// newImager starts with a state that no other fold uses.
func newImager(s *state.State) *Imager {
	i := &Imager{batches: state.Fold{State: s}}
	i.folded.Store(s.Seq())
	return i
}

// late is the source of an imager's state: an image, and the batches after it.
type late struct {
	image   []byte
	batches []lateBatch
	room    int // bytes left for further batches
}

type lateBatch struct {
	prev, next uint64
	data       []byte
}

// lateBytes bounds the batches kept for an imager without a state. A start with more builds the
// state.
const lateBytes = 16 << 20

// lateImager builds its state later, from an image that another fold has started from. Until then
// it counts as making an image.
func lateImager(image []byte, seq uint64) *Imager {
	i := &Imager{late: &late{image: image, room: lateBytes}}
	i.folded.Store(seq)
	i.ordered.Store(1)
	return i
}

// catchUp builds the state if necessary.
func (i *Imager) catchUp() error {
	l := i.late
	if l == nil {
		return nil
	}
	s, err := state.Decode(l.image) // on one processor: clients are served meanwhile
	if err != nil {
		return err
	}
	i.late, i.batches.State = nil, s
	i.ordered.Add(-1)
	for _, b := range l.batches {
		if err := i.batches.Batch(b.prev, b.next, b.data); err != nil {
			return err
		}
	}
	return nil
}

// follow folds a batch of a start. While the state is not built it keeps a copy instead, within
// lateBytes.
func (i *Imager) follow(prev, next uint64, data []byte) error {
	if l := i.late; l != nil && len(data) <= l.room {
		b := lateBatch{prev, next, bytes.Clone(data)}
		l.batches = append(l.batches, b)
		l.room -= len(data)
		i.folded.Store(b.next) // kept batches are bounded here, not by admission
		return nil
	}
	if err := i.catchUp(); err != nil {
		return err
	}
	return i.fold(prev, next, data)
}

// makeImage requests an image of the state after all batches sent before, at sequence seq. reply is
// buffered.
type makeImage struct {
	seq   uint64
	reply chan<- *Image
}

// spawned sets the actor.
func (i *Imager) spawned(pid *actor.PID) { i.pid = pid }

// Receive implements actor.Actor.
func (i *Imager) Receive(ctx actor.Context) {
	i.State() // the first message is the actor's start
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
	case addUp:
		m.reply <- i.addUp(m.holdings)
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

// State returns the folded state. Once spawned, the actor owns it.
func (i *Imager) State() *state.State {
	if err := i.catchUp(); err != nil {
		panic(fmt.Sprintf("BUG: the batches of a start do not fold for images: %v", err))
	}
	return i.batches.State
}

// Making reports, on the committed actor's turn, whether an image is requested or in progress, or
// the state is not built yet: a message to the imager would wait.
func (i *Imager) Making() bool { return i.ordered.Load() > 0 }

// image makes an image of the state. It yields after each piece, because all processors may be
// busy.
func (i *Imager) image() *Image {
	m, begin := &Image{history: i.batches.State.History()}, time.Now()
	for piece := range i.batches.State.Image {
		m.pieces, m.Size = append(m.pieces, piece), m.Size+len(piece)
		runtime.Gosched()
	}
	m.took = time.Since(begin)
	return m
}

// An Image is the whole state at one sequence, read once by one goroutine.
type Image struct {
	Size   int // bytes
	pieces [][]byte
	took   time.Duration // time to make it

	history persistence.HistoryID
}

// Read implements io.Reader. It frees the pieces as they are read.
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
