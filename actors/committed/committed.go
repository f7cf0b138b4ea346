package committed

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/metrics"
	"exchange/actors/rows"
	"exchange/core/event"
	"exchange/core/market"
	"exchange/core/state"
	"exchange/persistence"
)

// A Side is the committed side: the fold of all released records. One actor owns it. It answers
// reads, and gives the projector everything to store: rows, balances and nonces as of one sequence,
// and from time to time an image of the state.
//
// Its mailbox keeps released batches ahead of later reads, and the journal's writer sends a batch
// before it answers any client. So a client that reads after an answer always sees the record of
// that answer applied.
type Side struct {
	state         *state.State
	snapshot      SnapshotPolicy
	meter         *metrics.Engine
	out           Output // nil until Connect
	root          *actor.RootContext
	pid           *actor.PID                // of its actor
	imager        *Imager                   // nil: no images are made
	remoteHistory persistence.RemoteHistory // nil: the history is what this side has projected
	released      atomic.Uint64             // newest durable sequence sent to the actor
	folded        atomic.Uint64
	unsaved       atomic.Int64 // rows not yet in the store

	began    uint64 // sequence of the snapshot that recovery started from
	refolded uint64 // number of records folded from the journal
	// ids of the histories passed during recovery
	histories historyIDs

	batches state.Fold // of state, with note after each record

	project    chan<- projection // to the projector; capacity 1, at most one in flight
	projecting bool
	watermark  uint64              // the store's
	steps      []projection        // to write, in order; the first is in flight while projecting
	stepEnd    uint64              // last sequence of the last step
	rows       *persistence.Writes // of the step being built
	spare      *persistence.Writes // nil while it is in use
	accounts   map[uint32]struct{} // their wallets differ from the store's
	nonces     map[uint32]struct{} // keys with nonces that differ from the store's
	readNonces map[uint32]uint64   // by number of a live key: highest nonce used by a read

	// references are the deposits above the watermark, by reference: the store may not have them
	// yet. They are not part of the state, which must not depend on the progress of projections.
	references map[string]persistence.Deposit

	caches      []*viewCache        // by pair-1
	forgot      time.Time           // time of the last eviction of book copies
	charts      []*charts           // by pair-1
	candles     int                 // recentCandles, except in tests
	candlePairs map[uint16]struct{} // pairs whose candles differ from the store's

	open        []int   // orders, by pair-1
	feeds       []*feed // by pair-1
	touched     []*feed // with watchers to notify at the end of the batch
	status      statusFeed
	revocations revocationFeed
	own         ownFeeds

	scans   *turns // limits long queries
	recent  recentOrders
	trades  map[uint16]*recentTrades // by pair; 0: of all pairs
	waiting []*Read                  // for the history
	early   []*Read                  // for a batch still in this mailbox

	imagedSeq    uint64    // of the newest snapshot
	imagedAt     time.Time // time of the newest attempt
	snapshotting bool      // a snapshot is in flight
	// A batch is being folded. No image is taken in the middle of a batch, because the journal
	// cannot be read from there.
	inBatch   bool
	imageDue  bool              // at the end of the batch
	callbacks []*recordCallback // waiting for their records
	stepRows  int               // size at which a step is completed
	keep      int               // trades kept in a list in memory
	final     bool              // the next projection is the last, with an image
	saves     []chan struct{}
}

// An Output receives the committed side's notifications.
type Output interface {
	Recycle(data []byte)                    // returns a batch's buffer to the journal
	Notify(channel *actor.PID, message any) // sends to a stream channel
	MailAdded()                             // called when the outbox has a new mail
	Applied(r *event.Record)                // called after a record is applied to the state
}

// A probe inspects the committed side on the actor's turn.
type probe interface{ Run(actor.Actor) }

// Messages to the committed actor.
type (
	// Released is a durable batch; the receiver owns its data.
	Released struct {
		data []byte
		next uint64
	}
	// projectionDone is the projector's answer: the store's watermark is now to.
	projectionDone struct {
		to     uint64
		rows   int
		writes *persistence.Writes
	}
	// uploadDone reports the end of a snapshot's upload.
	uploadDone struct {
		seq uint64
		err error
	}
	// Tick asks for a projection of the pending rows.
	Tick struct{}
	// finish asks for a last projection and an image, after which the projector ends.
	finish struct{}
	// DropWatchers drops all watchers, because their channels are gone. Then is called right after
	// that, on the actor's turn.
	DropWatchers struct{ Then func() }
	// save asks for a projection of everything pending, nonces of reads included, and closes done
	// once it is stored.
	save struct{ done chan struct{} }
	// recordCallback has the actor call fn right after a record.
	recordCallback struct {
		seq uint64
		fn  func()
	}
)

// Urgent implements mailbox.Urgent: neither folding nor stream events wait for reads.
func (*Released) Urgent() bool { return true }

// Urgent implements mailbox.Urgent: the projector waits for no read.
func (*projectionDone) Urgent() bool { return true }

// Urgent implements mailbox.Urgent: it must not be overtaken by its record.
func (*recordCallback) Urgent() bool { return true }

// Lag returns the number of released records that the fold, or the slower imager, has yet to fold.
// The fold may briefly be ahead: it receives a batch before the batch counts as released.
func (c *Side) Lag() uint64 {
	released, at := c.Released(), min(c.Folded(), c.ImagerFolded())
	return max(released, at) - at
}

// connect sets the receiver of notifications and the projector.
func (c *Side) connect(root *actor.RootContext, out Output, p *Projector) {
	c.root, c.out, c.project = root, out, p.in
	if c.imager != nil {
		c.imager.out = out
	}
	p.report = c.Send
}

// Imager returns the imager, which folds the same batches; nil: none. It must be spawned before the
// actor of this side.
func (c *Side) Imager() *Imager { return c.imager }

// spawned sets the side's actor. Everything folded until then counts as released.
func (c *Side) spawned(pid *actor.PID) {
	c.pid = pid
	c.released.Store(c.state.Seq())
}

// Send sends the actor a message of this package.
func (c *Side) Send(message any) { c.root.Send(c.pid, message) }

// Release sends the actor a durable batch.
func (c *Side) Release(data []byte, next uint64) {
	c.root.Send(c.pid, &Released{data: data, next: next})
	c.released.Store(next)
}

// AfterRecord has the actor call fn right after the record of a sequence, in the middle of its
// batch. If that record is folded already, fn is called before any record released later. fn must
// be short.
func (c *Side) AfterRecord(seq uint64, fn func()) { c.Send(&recordCallback{seq, fn}) }

// Released returns the newest released sequence.
func (c *Side) Released() uint64 { return c.released.Load() }

// Folded returns the newest folded sequence.
func (c *Side) Folded() uint64 { return c.folded.Load() }

// ImagerFolded returns the newest sequence that the imager has folded; without one, that of the
// fold.
func (c *Side) ImagerFolded() uint64 {
	if c.imager == nil {
		return c.Folded()
	}
	return c.imager.folded.Load()
}

// Unsaved returns the number of rows not yet in the store.
func (c *Side) Unsaved() int64 { return c.unsaved.Load() }

// State returns the fold. Once spawned, the actor owns it.
func (c *Side) State() *state.State { return c.state }

// Receive implements actor.Actor.
func (c *Side) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *Released:
		c.fold(m)
	case *Read:
		c.read(m)
	case *projectionDone:
		c.onProjectionDone(m)
	case *uploadDone:
		c.snapshotting = false
		if m.err == nil {
			c.imagedSeq = m.seq
		}
	case Tick:
		c.forgetDepths(time.Now())
		c.own.forget(time.Now())
		c.flush()
	case finish:
		c.final = true
		c.flush()
	case *Watch:
		if m.Over == nil || !m.Over() {
			c.watch(m)
		}
	case *Unwatch:
		c.unwatch(m)
	case *OwnUnwatch:
		c.own.unwatch(m, time.Now())
	case *recordCallback:
		c.callbacks = append(c.callbacks, m)
		c.runCallbacks()
	case DropWatchers:
		c.dropWatchers()
		m.Then()
	case save:
		c.saves = append(c.saves, m.done)
		c.save()
	case probe:
		m.Run(c)
	}
}

func (c *Side) fold(m *Released) {
	if err := c.foldBatch(c.state.Seq(), m.next, m.data); err != nil {
		panic(fmt.Sprintf("BUG: a released batch does not fold: %v", err))
	}
	c.notifyWatchers()
	c.notifyStatus()
	c.notifyOwn()
	c.notifyRevocations()
	if c.imager != nil {
		c.root.Send(c.imager.pid, m)
	} else {
		c.out.Recycle(m.data)
	}
	if c.imageDue {
		c.step()
	}
	c.folded.Store(m.next) // the caches may be newer, never older
	c.answerEarly()
	if mails := int64(c.state.Mails()); mails != c.meter.Outbox.Load() {
		c.meter.Outbox.Store(mails)
	}
}

// foldBatch folds the records of one batch.
func (c *Side) foldBatch(prev, next uint64, data []byte) error {
	c.inBatch = true
	defer func() { c.inBatch = false }()
	return c.batches.Batch(prev, next, data)
}

// applied records a folded record for the store, and invalidates the views.
func (c *Side) applied(r *event.Record, effects *state.Effects) {
	if c.state.Seq() > c.watermark {
		c.note(r, effects)
	}
	if r.Kind == event.KindPair {
		c.caches, c.charts = append(c.caches, new(viewCache)), append(c.charts, new(charts))
		c.feeds = append(c.feeds, &feed{pair: uint16(len(c.feeds) + 1)})
		c.open = append(c.open, 0)
	} else if r.Pair != 0 {
		c.caches[r.Pair-1].version.Store(c.state.Pair(r.Pair).Market.UpdateID)
		c.countOpen(r.Pair)
		c.noteUpdate(r, effects)
	}
	if c.out != nil {
		c.out.Applied(r)
	}
	c.noteStatus(r)
	c.noteRevocation(r)
	c.noteOwn(r, effects)
	if len(c.callbacks) > 0 {
		c.runCallbacks()
	}
}

// runCallbacks calls the callbacks whose records are folded.
func (c *Side) runCallbacks() {
	c.callbacks = slices.DeleteFunc(c.callbacks, func(m *recordCallback) bool {
		due := m.seq <= c.state.Seq()
		if due {
			m.fn()
		}
		return due
	})
}

// countOpen updates the count of a pair's open orders.
func (c *Side) countOpen(pair uint16) {
	now, before := c.state.Pair(pair).OpenOrders(), &c.open[pair-1]
	if now != *before {
		c.meter.Open.Add(int64(now - *before))
		*before = now
	}
}

func (c *Side) note(r *event.Record, effects *state.Effects) {
	before, trades, orders, deposits := rows.Count(c.rows), len(c.rows.Trades), len(c.rows.Orders),
		len(c.rows.Deposits)
	rows.Append(c.rows, c.state, r, effects)
	for i := range effects.Settlements {
		if t := &effects.Settlements[i]; len(t.Changes()) > 0 {
			c.accounts[t.Account] = struct{}{}
		}
	}
	for i := orders; i < len(c.rows.Orders); i++ {
		c.recent.add(&c.rows.Orders[i])
	}
	for i := range c.rows.Trades[trades:] {
		t := &c.rows.Trades[trades+i]
		c.tradesOf(0).add(t)
		c.tradesOf(t.Pair).add(t)
	}
	for i := range c.rows.Deposits[deposits:] {
		d := &c.rows.Deposits[deposits+i]
		c.references[d.Reference] = *d
	}
	switch r.Kind {
	case event.KindAccount:
		c.accounts[r.Account.ID] = struct{}{}
	case event.KindKeyRevoked:
		delete(c.readNonces, r.KeyRevoked.Number)
	case event.KindAccountClosed:
		for _, key := range c.state.Account(r.AccountClosed.Account).Keys {
			delete(c.readNonces, key)
		}
	case event.KindEmail:
		c.mailed()
	case event.KindOrder, event.KindInstructed, event.KindStop, event.KindTriggered,
		event.KindAmended:
		c.noteNonce(r.Order.Key)
		if len(r.Order.Trades) > 0 {
			c.noteCandles(c.state.Pair(r.Pair))
		}
	case event.KindCancel:
		c.noteNonce(r.Cancel.Key)
	case event.KindSwitch:
		c.noteNonce(r.Switch.Key)
	case event.KindSettings:
		c.noteNonce(r.Settings.Key)
	case event.KindRefusal:
		c.noteNonce(r.Refusal.Key)
	case event.KindWithdrawal:
		c.noteNonce(r.Withdrawal.Key)
		c.mailed()
	case event.KindWithdrawalStatus:
		c.noteNonce(r.WithdrawalStatus.Key)
		if effects.Withdrawal != nil {
			c.mailed()
		}
	case event.KindCodeRefused:
		c.noteNonce(r.CodeRefused.Key)
		c.mailed()
	}
	count := rows.Count(c.rows)
	c.unsaved.Add(int64(count - before))
	if max(count, market.FrameCount*len(c.candlePairs), len(c.accounts),
		len(c.nonces)) >= c.stepRows {
		c.step()
	}
}

// mailed signals a new mail in the outbox.
func (c *Side) mailed() {
	if c.out != nil {
		c.out.MailAdded()
	}
}

// stepRows is the default of Side.stepRows. One more record may add twice max_fills, so a step
// stays below persistence.MaxRows.
const stepRows = 20_000

func (c *Side) tradesOf(pair uint16) *recentTrades {
	r := c.trades[pair]
	if r == nil {
		r = &recentTrades{keep: c.keep}
		c.trades[pair] = r
	}
	return r
}

func (c *Side) noteNonce(key uint32) {
	if key != 0 {
		c.nonces[key] = struct{}{}
	}
}

// read answers a read, and records its nonce. A read abandoned by its handler gets no answer. One
// from an earlier term of this node is refused: the wallets of the current term may have been built
// without its nonce.
func (c *Side) read(r *Read) {
	if r.door.IsOver() {
		r.Err = ErrTimeout
		r.Answer()
		return
	}
	if r.nonce != 0 {
		c.noteRead(r.key.Number, r.nonce)
	}
	if r.left() {
		r.drop()
		return
	}
	if r.after > c.state.Seq() { // its wallet has seen a batch that is still in this mailbox
		c.early = append(c.early, r)
		return
	}
	r.needs = r.question.from(c)
	if r.key != nil && c.state.Account(r.key.Account.ID).Frozen {
		// The gateway has checked, too, but that of another node may receive a freeze later.
		r.Err = ErrFrozen
		r.Answer()
		return
	}
	if c.remoteHistory != nil {
		r.horizon = c.horizon()
	}
	if r.needs > c.watermark {
		c.awaitHistory(r)
		c.flush()
		return
	}
	r.Answer()
}

// answerEarly answers the reads that waited for the newest batch; the others keep waiting.
func (c *Side) answerEarly() {
	early := c.early
	c.early = nil
	for _, r := range early {
		c.read(r)
	}
}

// awaitHistory keeps a read until the store's watermark has reached its needs. Because the store
// may be slow, it drops abandoned reads before it lets the list grow. The slots of reads bound the
// others.
func (c *Side) awaitHistory(r *Read) {
	if len(c.waiting) == cap(c.waiting) {
		c.waiting = slices.DeleteFunc(c.waiting, (*Read).left)
	}
	if !r.stage.CompareAndSwap(readSent, readWaiting) {
		r.drop()
		return
	}
	c.waiting = append(c.waiting, r)
}

// Nonce returns the highest nonce a key has used, for commands and reads; 0: the key is revoked.
func (c *Side) Nonce(key uint32) uint64 {
	return max(c.state.Keys()[key-1].Nonce, c.readNonces[key])
}

// Nonces returns a copy of the nonces used by a key for parallel use: of those of reads only the
// greatest. It is nil for other keys.
func (c *Side) Nonces(key uint32) *state.Nonces {
	used := c.state.Keys()[key-1].Used
	if used == nil {
		return nil
	}
	used = used.Clone()
	used.Take(c.readNonces[key])
	return used
}

// noteRead keeps the nonce of a read for the next projection. It is not part of the state, because
// no record contains it. A crash may lose the newest ones, which is harmless.
func (c *Side) noteRead(key uint32, nonce uint64) {
	c.raiseReadNonce(key, nonce)
	if c.noteNonce(key); len(c.nonces) >= c.stepRows {
		c.step()
	}
}

func (c *Side) raiseReadNonce(key uint32, nonce uint64) {
	if !c.state.Keys()[key-1].Revoked {
		c.readNonces[key] = max(c.readNonces[key], nonce)
	}
}

// flush starts a projection, unless one is in flight or there is nothing to write.
func (c *Side) flush() {
	if c.projecting {
		return
	}
	if len(c.steps) == 0 {
		if !c.final && c.state.Seq() == c.stepEnd && len(c.nonces) == 0 {
			return
		}
		c.step()
	}
	c.projecting = true
	c.project <- c.steps[0]
}

// save completes the waiting saves if everything is stored; otherwise it continues writing.
func (c *Side) save() {
	switch {
	case len(c.saves) == 0:
	case c.projecting, len(c.steps) > 0, c.state.Seq() != c.stepEnd, len(c.nonces) > 0:
		c.flush()
	default:
		for _, done := range c.saves {
			close(done)
		}
		c.saves = nil
	}
}

// step completes the current step at the present state. Its balances, nonces and image, if one is
// due, are as of this sequence. In the middle of a batch the image waits for the batch's end, and
// during recovery for the actor's first step.
func (c *Side) step() {
	to := c.state.Seq()
	w := c.rows
	for id := range c.accounts {
		a := c.state.Account(id)
		row := persistence.Wallet{Account: id, Name: a.Name, Seq: to}
		for _, h := range a.Wallet.Holdings() {
			row.Holdings = append(row.Holdings,
				persistence.Holding{Currency: c.state.Currencies()[h.Currency-1].Code,
					Balance: h.Balance, Reserve: h.Reserve})
		}
		w.Wallets = append(w.Wallets, row)
	}
	for key := range c.nonces {
		if nonce := c.Nonce(key); nonce > 0 {
			k := c.state.Keys()[key-1]
			w.Nonces = append(w.Nonces, persistence.Nonce{Key: k.Key.Key, Nonce: nonce,
				Read: c.readNonces[key] > k.Nonce})
		}
	}
	p := projection{from: c.stepEnd, to: to, writes: w, last: c.final}
	p.rows = rows.Count(w)
	c.stepCandles(w)
	due := c.final || !c.snapshotting && c.snapshot.Due(to-c.imagedSeq, time.Since(c.imagedAt))
	c.imageDue = due && c.imager != nil
	if c.imageDue && !c.inBatch {
		c.meter.Snapshotting.Begin()
		p.image = c.MakeImage()
		c.snapshotting, c.imagedAt, c.imageDue = true, time.Now(), false
	}
	clear(c.accounts)
	clear(c.nonces)
	c.steps = append(c.steps, p)
	c.stepEnd, c.final = to, false
	if c.rows, c.spare = c.spare, nil; c.rows == nil {
		c.rows = new(persistence.Writes)
	}
}

// MakeImage requests an image of the present state, on the committed actor's turn: the imager has
// been sent the same batches.
func (c *Side) MakeImage() <-chan *Image {
	reply := make(chan *Image, 1)
	c.imager.ordered.Add(1)
	c.root.Send(c.imager.pid, makeImage{c.state.Seq(), reply})
	return reply
}

func (c *Side) onProjectionDone(m *projectionDone) {
	c.projecting = false
	c.steps = c.steps[:copy(c.steps, c.steps[1:])]
	c.watermark = m.to
	c.meter.Watermark.Store(m.to)
	c.unsaved.Add(int64(-m.rows))
	for i := range m.writes.Deposits { // later lookups find them in the store
		delete(c.references, m.writes.Deposits[i].Reference)
	}
	m.writes.Reset()
	c.spare = m.writes
	n := 0
	for _, r := range c.waiting {
		if r.needs <= c.watermark {
			r.Answer()
		} else {
			c.waiting[n] = r
			n++
		}
	}
	clear(c.waiting[n:])
	c.waiting = c.waiting[:n]
	c.save()
	if n > 0 || c.final || len(c.steps) > 0 {
		c.flush()
	}
}
