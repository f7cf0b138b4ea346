package committed

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/persistence"
)

// A Question is one typed read of the committed state. Its fields hold the parameters, and the
// answer is filled in beside them. The whole answer is from one state, which contains everything
// released when the question was asked.
type Question interface {
	// from fills in the answer. The rest of the answer is in the store once the store's watermark
	// is at needs. Until then the question waits.
	from(c *Side) (needs uint64)
}

// An accountScoped is a question about one account. A signed read sets it to the account of its
// key.
type accountScoped interface{ of(account uint32) }

// A Read is an in-flight question to the committed state. A pooled read contains only its reply
// channel and its timer.
type Read struct {
	trip
	stage atomic.Uint32
	reply chan struct{}
	timer *time.Timer
}

// A trip is one use of a read.
type trip struct {
	Err error // instead of an answer

	question Question
	key      *directory.Key // whose nonce is taken; nil: the read is not signed
	nonce    uint64         // 0: none to record
	after    uint64         // lowest sequence at which it may be answered
	needs    uint64         // the store's watermark that the answer needs
	door     *Door          // through which it was asked
	followUp bool           // it completes the answer to a command
	slot     bool           // it holds one of its account's slots
	// horizon of the answering state, if the history is remote; otherwise nil
	horizon *persistence.Horizon
}

// Stages of a read. The handler and the actors change them by compare-and-swap, so that exactly one
// of them ends it.
const (
	readSent uint32 = iota // in the mailbox of an actor
	// kept by an actor: by a wallet, or with its answer in Side.waiting until the history has
	// caught up
	readWaiting
	readAnswered // the reply is sent, or about to be
	readLeft     // in a mailbox, abandoned by its handler
	readForgone  // kept by an actor, abandoned by its handler: only a pointer
)

// Errors of reads and commands.
var (
	// ErrNonce: the nonce is not above the key's last one. A NonceError contains that.
	ErrNonce = errors.New("wrong nonce")
	// ErrKeyRevoked: the key was revoked while the request was in flight.
	ErrKeyRevoked = errors.New("the key is revoked")
	// ErrFrozen: the account of the read's key was frozen while the request was in flight. Its
	// nonce is used.
	ErrFrozen = errors.New("the account is frozen")
	// ErrTimeout: no answer in time. The outcome of a command is unknown.
	ErrTimeout = errors.New("no answer in time")
)

// A NonceError refuses a read whose nonce is not above the last one of its key. It is an ErrNonce.
type NonceError struct{ Last uint64 }

func (e *NonceError) Error() string { return ErrNonce.Error() }

// Unwrap returns ErrNonce.
func (e *NonceError) Unwrap() error { return ErrNonce }

var reads = sync.Pool{New: func() any {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &Read{reply: make(chan struct{}, 1), timer: t}
}}

// newRead returns a read from the pool.
func newRead(d *Door, q Question, followUp bool) *Read {
	r := reads.Get().(*Read)
	r.question, r.door, r.followUp = q, d, followUp
	r.stage.Store(readSent)
	return r
}

// free gives an answered read back to the pool.
func (r *Read) free() {
	r.trip = trip{}
	reads.Put(r)
}

// Key returns the key of a signed read, and the nonce that the read takes.
func (r *Read) Key() (key *directory.Key, nonce uint64) { return r.key, r.nonce }

// ByClientID reports whether the read asks for an order by a client order id. The wallet answers it
// after all its commands in flight, which may include an order with that id.
func (r *Read) ByClientID() bool { return !r.ClientID().IsZero() }

// ClientID returns the client order id that the read asks for; zero: none. The caller must own the
// read.
func (r *Read) ClientID() (id event.ClientID) {
	switch q := r.question.(type) {
	case *OpenOrders:
		id = q.ClientID
	case *Position:
		id = q.ClientID
	}
	return id
}

// Answer ends a read whose answer is in its question, or in Err.
func (r *Read) Answer() {
	if r.stage.CompareAndSwap(readSent, readAnswered) ||
		r.stage.CompareAndSwap(readWaiting, readAnswered) {
		r.reply <- struct{}{}
		return
	}
	r.drop()
}

// Urgent implements mailbox.Urgent: the answer to a command waits for no other read.
func (r *Read) Urgent() bool { return r.followUp }

// Park marks a read that an actor keeps. It has no effect if the handler has left.
func (r *Read) Park() { r.stage.CompareAndSwap(readSent, readWaiting) }

// Unpark ends Park for a read that is about to be sent on. The read is answered from a state at or
// above the sequence after.
func (r *Read) Unpark(after uint64) {
	r.stage.CompareAndSwap(readWaiting, readSent)
	r.after = max(r.after, after)
}

// NonceTaken ends Park for a read whose nonce the leader's wallet has taken and recorded.
func (r *Read) NonceTaken(after uint64) {
	r.nonce = 0
	r.Unpark(after)
}

// left reports whether the handler has abandoned the read.
func (r *Read) left() bool { return r.stage.Load() >= readLeft }

// drop ends an abandoned read, and releases its remaining slots.
func (r *Read) drop() {
	if r.stage.Load() == readLeft {
		r.leaveSlot()
		r.door.endRead(r.followUp)
	}
}

// leave abandons a read after a timeout. It returns false if the answer is there. A read in a
// mailbox keeps its slots, its own and its account's, until an actor drops or answers it, so slots
// bound the reads in mailboxes. A read kept by an actor releases its slots at once, because it
// costs only a pointer.
func (r *Read) leave() bool {
	slots := r.door.readCount(r.followUp)
	slots.Add(1) // the handler releases its own
	if r.stage.CompareAndSwap(readSent, readLeft) {
		return true
	}
	slots.Add(-1)
	if !r.stage.CompareAndSwap(readWaiting, readForgone) {
		return false
	}
	r.leaveSlot()
	r.question = nil
	return true
}

func (r *Read) leaveSlot() {
	if r.slot {
		r.slot = false
		r.door.private.end(r.key.Account.ID)
	}
}
