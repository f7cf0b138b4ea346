package actors

import (
	"log/slog"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/actors/metrics"
	"exchange/actors/owner"
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/state"
	"exchange/persistence"
)

// An Engine is a running exchange without its gateway: all actors, the journal's writer and the
// projector. Its methods may be called from any goroutine.
type Engine struct {
	opts   Options
	live   atomic.Pointer[Limits] // current limits; never changed in place: see Reconfigure
	log    *slog.Logger
	system *actor.ActorSystem
	root   *actor.RootContext
	ids    idCounters
	meter  *metrics.Engine

	history event.HistoryID // of all codes and mails

	*Public
	books []*book // by number-1; each belongs to its actor

	own           *owner.Hold
	journal       *journal
	work          *committed.Workers
	committed     *committed.Side // the side of work
	queues        []committed.Queue
	cluster       *Cluster // nil: the store is this engine's alone
	mailer        *mailer  // nil: mails stay in the outbox
	registry      *registry
	host          *mailbox.Host  // of all fail-stop actors
	ledgerSettler ledger.Settler // owned by the journal's writer

	opener   walletOpener
	switches switches
	lost     lostSessions

	life mailbox.Life
	admission
	releaseSignal releaseSignal
	// the store's watermark at the start: earlier runs wrote the rows up to it
	projected uint64
	auditing  atomic.Bool
}

// applyMaintenance follows a maintenance that begins, changes or ends. Books may resume before
// clients are admitted.
func (e *Engine) applyMaintenance(m *event.Maintenance) {
	if !m.BarsCancels() {
		e.heldTriggers.Store(m.On)
		e.heldBooks.Store(false)
		e.wakeBooks()
	}
	e.admission.applyMaintenance(m)
}

// wakeBooks sends the time to the books that have something due.
func (e *Engine) wakeBooks() {
	if !e.booksMayStart() {
		return
	}
	nowUs := e.nowUs()
	for _, p := range e.Pairs() {
		b := e.books[p.Number-1]
		if b.wakeAtUs.Load() <= nowUs && b.tickPending.CompareAndSwap(false, true) {
			e.root.Send(p.Book, bookTick{nowUs})
		}
	}
}

// callBook implements bookOut.
func (e *Engine) callBook(b *book) { e.root.Send(b.pair.Book, bookContinue{}) }

// lag returns the released records that the committed side, or its imager, has yet to fold, and the
// rows that the store lacks.
func (e *Engine) lag() (records uint64, rows int64) {
	c := e.committed
	return c.Lag(), c.Unsaved()
}

// These make the engine a walletOut.
func (e *Engine) toBook(c *Command) {
	e.root.Send(e.PairByNumber(c.record.Pair).Book, c)
}

func (e *Engine) toJournal(n *entry)                  { e.journal.submit(n) }
func (e *Engine) toCommitted(r *committed.Read)       { e.committed.Send(r) }
func (e *Engine) refuseClose(c *Command)              { e.registry.done(c) }
func (e *Engine) limits() *Limits                     { return e.live.Load() }
func (e *Engine) withdrawalPolicy() *WithdrawalPolicy { return &e.opts.Withdrawal }
func (e *Engine) nextWithdrawal() uint64              { return e.ids.withdrawal.Add(1) }
func (e *Engine) returnCancelSlot()                   { e.extraCancels.Add(-1) }

func (e *Engine) startSwitchGrace(timeUs int64) {
	e.switches.wait(timeUs, e.opts.Timing.SwitchGrace.Microseconds())
}

// onMaintenance follows a maintenance that begins, changes or ends, before the answer.
func (e *Engine) onMaintenance(s *state.State) {
	m := s.Maintenance()
	if !m.On {
		e.startSwitchGrace(s.Maintained())
	}
	e.applyMaintenance(&m)
}

// onKeyRevoked notifies the wallet of a revoked key, if started: otherwise it starts with a state
// that contains the revocation.
func (e *Engine) onKeyRevoked(k *directory.Key) {
	if wallet := k.Account.Wallet(); wallet != nil {
		e.root.Send(wallet, &keyRevoked{k.Number})
	}
}

func (e *Engine) takeCancelSlot() bool {
	if e.extraCancels.Add(1) <= int64(e.limits().InFlight) {
		return true
	}
	e.extraCancels.Add(-1)
	return false
}

// Code returns the code that confirms a withdrawal.
func (e *Engine) Code(w *state.Withdrawal) string { return e.sealer.Code(e.history, w) }

func (e *Engine) codeMatches(w *state.Withdrawal, code string) bool {
	return e.sealer.CodeFits(e.history, w, code)
}

// AwaitCurrent implements Commands.
func (e *Engine) AwaitCurrent() error { return AwaitCurrent(e.Door) }

// Challenge implements Commands.
func (e *Engine) Challenge() string { return NewChallenge() }

// Verify implements Commands. An engine holds the material of each key.
func (e *Engine) Verify(*directory.Key, uint64) (*RemoteAnswer, error) { return nil, nil }

// Authority authenticates backups and archives with the server's key.
func (e *Engine) Authority() persistence.Authority { return e.sealer }

// Ready returns nil when the engine accepts commands and the store has recently confirmed this
// process's ownership. Maintenance does not count.
func (e *Engine) Ready() error {
	now := metrics.Now()
	if err := e.open(now); err != nil {
		return err
	}
	return e.confirmed(now)
}

// lagOf returns ahead - at, or 0 where the fold is briefly ahead: it gets a batch before the batch
// counts as released.
func lagOf(ahead, at uint64) uint64 { return max(ahead, at) - at }
