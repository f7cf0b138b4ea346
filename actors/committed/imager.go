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
// the released records, in an actor of its own: the committed actor passes each batch on when it
// has folded it, and neither a read nor an event waits while an image is made. Batches that are
// released meanwhile wait in the imager's mailbox. Because this state comes from the records alone,
// each snapshot of it proves that replay equals live.
//
// It costs the memory of a second state, and 0.1 to 0.3 us of CPU a record. A start does not wait
// for it: the actor makes its state before its first message.
type Imager struct {
	batches state.Fold // without a state while late is there
	late    *late      // nil: it has its state
	out     Output     // set by Connect
	pid     *actor.PID
	folded  atomic.Uint64
	ordered atomic.Int32 // images and sums that are not made yet
}

// newImager begins with a state of its own, which no other fold has.
func newImager(s *state.State) *Imager {
	i := &Imager{batches: state.Fold{State: s}}
	i.folded.Store(s.Seq())
	return i
}

// late has all of which an imager makes its state: an image, and the batches behind it.
type late struct {
	image   []byte
	batches []lateBatch
	room    int // bytes that further batches may have
}

type lateBatch struct {
	prev, next uint64
	data       []byte
}

// lateBytes bounds the batches that wait for an imager without a state. A start with more makes the
// state.
const lateBytes = 16 << 20

// lateImager makes its state later, from an image that another fold has begun with. Until then it
// counts as one that makes an image.
func lateImager(image []byte, seq uint64) *Imager {
	i := &Imager{late: &late{image: image, room: lateBytes}}
	i.folded.Store(seq)
	i.ordered.Store(1)
	return i
}

// catchUp makes the state if it is not made yet.
func (i *Imager) catchUp() error {
	l := i.late
	if l == nil {
		return nil
	}
	s, err := state.Decode(l.image) // alone: clients are served meanwhile
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

// follow folds a batch of a start. It keeps a copy instead while the state is not made, unless too
// many wait.
func (i *Imager) follow(prev, next uint64, data []byte) error {
	if l := i.late; l != nil && len(data) <= l.room {
		b := lateBatch{prev, next, bytes.Clone(data)}
		l.batches = append(l.batches, b)
		l.room -= len(data)
		i.folded.Store(b.next) // what is kept is bounded here, and not by admission
		return nil
	}
	if err := i.catchUp(); err != nil {
		return err
	}
	return i.fold(prev, next, data)
}

// makeImage asks for an image of the state after all batches that were sent before, which is at
// sequence seq. The reply has room for it.
type makeImage struct {
	seq   uint64
	reply chan<- *Image
}

// spawned says which actor it is.
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

// State is what it has folded. It belongs to the actor, once that is spawned.
func (i *Imager) State() *state.State {
	if err := i.catchUp(); err != nil {
		panic(fmt.Sprintf("BUG: what a start has folded does not fold for images: %v", err))
	}
	return i.batches.State
}

// Making reports, on the turn of the committed actor, whether an image is being made or is ordered,
// or the state is not made yet: then a message to the imager waits, too.
func (i *Imager) Making() bool { return i.ordered.Load() > 0 }

// image makes the image of the state as it is. After each piece it lets others run, because all
// processors may be busy.
func (i *Imager) image() *Image {
	m, begin := &Image{history: i.batches.State.History()}, time.Now()
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

	history persistence.HistoryID
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
