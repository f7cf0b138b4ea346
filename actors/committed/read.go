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

// A Question is one typed read of the committed state: its fields say what is asked for, and the
// answer is filled in beside them. All of an answer is from one state, which has everything that
// was released when the question was asked.
type Question interface {
	// from fills in the answer. The missing part of the answer is in the store once the store's
	// watermark is at needs. Until then the question waits.
	from(c *Side) (needs uint64)
}

// An accountScoped question is about one account. A signed read sets it to the account of its key.
type accountScoped interface{ of(account uint32) }

// A Read is a question on its way to the committed state and back. A read from the pool has nothing
// in it but its reply channel and its timer.
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
	nonce    uint64         // 0: there is none to note
	after    uint64         // the sequence from which on it may be answered
	needs    uint64         // the store's watermark from which on the answer is good
	door     *Door          // that was asked
	followUp bool           // it completes the answer to a command
	slot     bool           // it holds one of its account's slots
	// state that it was answered from, if the history is lent; otherwise nil
	horizon *persistence.Horizon
}

// Stages of a read. The handler and the actors go from one to the next by compare-and-swap, so that
// either of them ends it.
const (
	readSent uint32 = iota // in the mailbox of an actor
	// kept by an actor: by a wallet, or with its answer in Side.waiting until the history is
	// ready
	readWaiting
	readAnswered // the reply is there, or about to be
	readLeft     // in a mailbox, and its handler has left
	readForgone  // kept by an actor, and its handler has left: only a pointer
)

// Errors of reads and commands.
var (
	// ErrNonce: the nonce is not above the key's last one. A NonceError says which that is.
	ErrNonce = errors.New("wrong nonce")
	// ErrKeyRevoked: the key was revoked while the request was on its way.
	ErrKeyRevoked = errors.New("the key is revoked")
	// ErrFrozen: the account of the read's key was frozen while the request was on its way. Its
	// nonce is taken.
	ErrFrozen = errors.New("the account is frozen")
	// ErrTimeout: no answer in time, or none any more. Of a command the outcome is unknown.
	ErrTimeout = errors.New("no answer in time")
)

// A NonceError refuses a read whose nonce is not above the last one of its key. It is an ErrNonce.
type NonceError struct{ Last uint64 }

func (e *NonceError) Error() string { return ErrNonce.Error() }

// Unwrap makes it an ErrNonce.
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

// IsNamed reports whether the read asks for an order by a client order id. Its wallet answers it
// behind all that the wallet has in flight: an order of that name may be among it.
func (r *Read) IsNamed() bool { return !r.ClientID().IsZero() }

// ClientID returns the client order id that the read asks for; the zero one: it asks for none. The
// read belongs to the caller.
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

// Urgent makes this an urgent message of a mailbox: the answer to a command waits for no other
// read.
func (r *Read) Urgent() bool { return r.followUp }

// Park says that an actor keeps the read. It changes nothing if the handler has left.
func (r *Read) Park() { r.stage.CompareAndSwap(readSent, readWaiting) }

// Unpark ends Park for a read that is about to be sent on. The read is answered from a state at or
// above the sequence after.
func (r *Read) Unpark(after uint64) {
	r.stage.CompareAndSwap(readWaiting, readSent)
	r.after = max(r.after, after)
}

// NonceTaken ends Park for a read whose nonce the leader's wallet has taken: it is noted there.
func (r *Read) NonceTaken(after uint64) {
	r.nonce = 0
	r.Unpark(after)
}

// left reports whether no handler waits for the answer any more.
func (r *Read) left() bool { return r.stage.Load() >= readLeft }

// drop ends a read that its handler has left, and gives back the slots that it still holds.
func (r *Read) drop() {
	if r.stage.Load() == readLeft {
		r.leaveSlot()
		r.door.endRead(r.followUp)
	}
}

// leave is for the handler whose time is up. It returns false if the answer is there. A read in a
// mailbox keeps its slots, its own and its account's, until an actor drops or answers it: so no
// mailbox has more reads than there are slots. A read that an actor keeps gives its slots back at
// once, because all that it costs is its pointer.
func (r *Read) leave() bool {
	slots := r.door.readCount(r.followUp)
	slots.Add(1) // the handler gives its own back
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
