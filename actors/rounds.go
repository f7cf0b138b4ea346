package actors

import (
	"sync"
	"sync/atomic"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/mailbox"
)

// rounds count the commands whose handlers have looked a client order id up, between the look and
// the release. Each belongs to the round in which its look began. All of them are of the current
// round or the one before: the next round begins only when the one before has ended. The ticker
// begins rounds; handlers and the release count.
type rounds struct {
	current atomic.Uint64    // number, from 1 on
	inside  [2]atomic.Int64  // commands, by the round's number modulo 2
	begun   [2]atomic.Uint64 // sequence that was folded when the round began, by the same
	// Up to there wallets may forget: each look in flight, and each later one, knows those records.
	known atomic.Uint64
}

// begin begins the first round.
func (r *rounds) begin(folded uint64) {
	r.begun[1].Store(folded)
	r.current.Store(1)
}

// join counts a command in, before its look begins.
func (r *rounds) join() (round uint64) {
	for {
		round = r.current.Load()
		r.inside[round%2].Add(1)
		if r.current.Load() == round { // otherwise the round may have ended before the count
			return round
		}
		r.inside[round%2].Add(-1)
	}
}

// leave counts a command out.
func (r *rounds) leave(round uint64) { r.inside[round%2].Add(-1) }

// next begins the next round, if the one before the current has ended.
func (r *rounds) next(folded uint64) {
	round := r.current.Load()
	if r.inside[(round+1)%2].Load() > 0 {
		return
	}
	r.known.Store(r.begun[round%2].Load())
	r.begun[(round+1)%2].Store(folded)
	r.current.Store(round + 1)
}

// forgetClosed tells a wallet up to which sequence it may forget closed orders.
type forgetClosed struct{ known uint64 }

// A remembering has the wallets that remember closed orders. Wallets add themselves, and the ticker
// takes them out.
type remembering struct {
	mu   sync.Mutex
	line mailbox.FIFO[rememberingWallet] // guarded by mu
}

type rememberingWallet struct {
	account *directory.Account
	upTo    uint64 // the newest of its orders closed there, or later
}

// placedAfter returns the time after which an order was placed if its client order id is taken at a
// time although it has closed.
func (l *Limits) placedAfter(timeUs int64) int64 {
	if l.ClientIDHold == 0 {
		return committed.Always
	}
	return timeUs - l.ClientIDHold.Microseconds()
}
