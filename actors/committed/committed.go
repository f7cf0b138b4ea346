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
// reads, and gives the projector all that the store has to know: rows, balances and nonces as of
// one sequence, and now and then an image of the state.
//
// Its mailbox keeps released batches ahead of the reads that were sent later, and the journal's
// writer sends a batch before it answers any client. So a read that a client sends after an answer
// finds the record behind that answer applied.
type Side struct {
	state         *state.State
	snapshot      SnapshotPolicy
	meter         *metrics.Engine
	out           Output // nil until Connect
	root          *actor.RootContext
	pid           *actor.PID              // of its actor
	imager        *Imager                 // nil: no images are made
	remoteHistory persistence.LentHistory // nil: the history has what this side has projected
	released      atomic.Uint64           // the newest durable sequence that was sent to it
	folded        atomic.Uint64
	unsaved       atomic.Int64 // rows that the store does not have yet

	began    uint64 // sequence of the snapshot that recovery began with
	refolded uint64 // records, from the journal
	// histories that recovery has passed
	histories historyIDs

	batches state.Fold // of state, with note behind each record

	project    chan<- projection // to the projector; capacity 1, at most one on its way
	projecting bool
	watermark  uint64              // the store's
	steps      []projection        // ready to go, in order; the first is on its way while flushing
	stepEnd    uint64              // sequence where the last step ends
	rows       *persistence.Writes // of the step that is forming
	spare      *persistence.Writes // nil while it is in use
	accounts   map[uint32]struct{} // their wallets differ from the store's
	nonces     map[uint32]struct{} // keys with nonces that differ from the store's
	readNonces map[uint32]uint64   // by number of a live key: highest nonce used by a read

	// references are the deposits above the watermark, by reference: the store may not have them
	// yet. They are no part of the state, which must not depend on how far projections have come.
	references map[string]persistence.Deposit

	caches      []*viewCache        // by pair-1
	forgot      time.Time           // when old copies of books were forgotten last
	charts      []*charts           // by pair-1
	candles     int                 // recentCandles, but in tests
	candlePairs map[uint16]struct{} // pairs whose candles differ from the store's

	open        []int   // orders, by pair-1
	feeds       []*feed // by pair-1
	touched     []*feed // whose watchers are to be told when the batch ends
	status      statusFeed
	revocations revocationFeed
	own         ownFeeds

	scans   *turns // of long queries
	recent  recentOrders
	trades  map[uint16]*recentTrades // by pair; 0: of all pairs
	waiting []*Read                  // for the history
	early   []*Read                  // for a batch that is on its way here

	imagedSeq    uint64    // newest snapshot
	imagedAt     time.Time // of the newest try
	snapshotting bool      // a snapshot is on its way
	// A batch is being folded. No image is taken in its midst, because the journal behind that
	// image could not be read.
	inBatch   bool
	imageDue  bool              // as soon as the batch ends
	callbacks []*recordCallback // that wait for their records
	stepRows  int               // size from which on a projection is cut
	keep      int               // trades that a list in memory may have
	final     bool              // the next projection is the last, with an image
	saves     []chan struct{}
}

// An Output is the engine, as the committed side tells it of things.
type Output interface {
	Recycle(data []byte)                    // gives a batch's buffer back to the journal
	Notify(channel *actor.PID, message any) // tells a stream channel
	Mailed()                                // says that there is something new in the outbox
	Applied(r *event.Record)                // tells of a record that the state has now
}

// A probe looks at the committed side on its turn.
type probe interface{ Run(actor.Actor) }

// Messages to the committed actor.
type (
	// released is a durable batch; its data is the receiver's.
	Released struct {
		data []byte
		next uint64
	}
	// projectionDone is the projector's answer: the store's watermark is at to.
	projectionDone struct {
		to     uint64
		rows   int
		writes *persistence.Writes
	}
	// uploadDone is the end of a snapshot's upload.
	uploadDone struct {
		seq uint64
		err error
	}
	// Tick asks for a projection of what has gathered.
	Tick struct{}
	// finish asks for a last projection and an image; the projector ends after it.
	finish struct{}
	// DropWatchers says that no channel that watches is there any more. Then is called right behind
	// that, on the actor's turn.
	DropWatchers struct{ Then func() }
	// save asks for a projection of all that is noted, nonces of reads too, and closes done once
	// the store has it.
	save struct{ done chan struct{} }
	// recordCallback has the actor call look right behind a record.
	recordCallback struct {
		seq uint64
		fn  func()
	}
)

// Urgent makes this an urgent message of a mailbox: folding waits for no read, and neither do
// stream events.
func (*Released) Urgent() bool { return true }

// Urgent implements mailbox.Urgent: the projector waits for no read.
func (*projectionDone) Urgent() bool { return true }

// Urgent implements mailbox.Urgent: the record must not come first.
func (*recordCallback) Urgent() bool { return true }

// Lag returns how many released records the fold, or the imager behind it, has yet to fold. For a
// moment the fold may be ahead: it gets a batch before the batch counts as released.
func (c *Side) Lag() uint64 {
	released, at := c.Released(), min(c.Folded(), c.ImagerFolded())
	return max(released, at) - at
}

// connect names the parts that the committed side tells of things, and the writer of projections.
func (c *Side) connect(root *actor.RootContext, out Output, p *Projector) {
	c.root, c.out, c.project = root, out, p.in
	if c.imager != nil {
		c.imager.out = out
	}
	p.report = c.Send
}

// Imager returns the maker of images, which follows the same batches; nil: there is none. It is to
// be spawned before the actor of this side.
func (c *Side) Imager() *Imager { return c.imager }

// spawned names the side's actor. All that was folded until then counts as released.
func (c *Side) spawned(pid *actor.PID) {
	c.pid = pid
	c.released.Store(c.state.Seq())
}

// Send gives its actor a message of this package.
func (c *Side) Send(message any) { c.root.Send(c.pid, message) }

// Release gives its actor a durable batch.
func (c *Side) Release(data []byte, next uint64) {
	c.root.Send(c.pid, &Released{data: data, next: next})
	c.released.Store(next)
}

// AfterRecord has its actor call look right behind the record of a sequence, in the midst of that
// record's batch. If that record is folded already, look is called before any record that is
// released later. It must be short.
func (c *Side) AfterRecord(seq uint64, look func()) { c.Send(&recordCallback{seq, look}) }

// Released returns the newest sequence that was released.
func (c *Side) Released() uint64 { return c.released.Load() }

// Folded returns the sequence up to which it has folded.
func (c *Side) Folded() uint64 { return c.folded.Load() }

// ImagerFolded returns the sequence up to which the imager has folded, if there is one.
func (c *Side) ImagerFolded() uint64 {
	if c.imager == nil {
		return c.Folded()
	}
	return c.imager.folded.Load()
}

// Unsaved returns how many rows the store does not have yet.
func (c *Side) Unsaved() int64 { return c.unsaved.Load() }

// State returns the fold. It belongs to the actor, once that is spawned.
func (c *Side) State() *state.State { return c.state }

// Receive implements actor.Actor.
func (c *Side) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *Released:
		c.fold(m)
	case *Read:
		c.read(m)
	case *projectionDone:
		c.projected(m)
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
	c.folded.Store(m.next) // the caches are newer, if anything
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

// applied notes a folded record for the store, and tells the views.
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

// runCallbacks calls the looks whose records are folded.
func (c *Side) runCallbacks() {
	c.callbacks = slices.DeleteFunc(c.callbacks, func(m *recordCallback) bool {
		due := m.seq <= c.state.Seq()
		if due {
			m.fn()
		}
		return due
	})
}

// countOpen counts the open orders of a pair anew.
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
	case event.KindWithdrawalMoved:
		c.noteNonce(r.WithdrawalMoved.Key)
		if effects.Withdrawal != nil {
			c.mailed()
		}
	case event.KindCodeRefused:
		c.noteNonce(r.CodeRefused.Key)
		c.mailed()
	}
	count := rows.Count(c.rows)
	c.unsaved.Add(int64(count - before))
	if max(count, market.FrameCount*len(c.candlePairs), len(c.accounts), len(c.nonces)) >= c.stepRows {
		c.step()
	}
}

// mailed tells that there is something new in the outbox.
func (c *Side) mailed() {
	if c.out != nil {
		c.out.Mailed()
	}
}

// stepRows is the usual Side.stepRows. One more record may add twice max_fills, so a step
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

// read answers a read, and notes its nonce. A read that its handler has left gets no answer. One
// from an earlier term of this node as leader is refused: the wallets of the present term may have
// been built without its nonce.
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
	if r.after > c.state.Seq() { // its wallet has heard of a batch that is still on its way here
		c.early = append(c.early, r)
		return
	}
	r.needs = r.question.from(c)
	if r.key != nil && c.state.Account(r.key.Account.ID).Frozen {
		// The gateway has looked, too, but the one of another node may learn of a freeze later.
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

// answerEarly answers the reads that have waited for the newest batch; the others wait on.
func (c *Side) answerEarly() {
	early := c.early
	c.early = nil
	for _, r := range early {
		c.read(r)
	}
}

// awaitHistory keeps a read until the store's watermark has reached its needs. It drops reads that their
// handlers have left before it lets the list grow, because the store may take no projection for
// long. The slots of reads bound the others.
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

// Nonce returns the highest nonce that a key has used, for commands and for reads; 0: the key is
// revoked.
func (c *Side) Nonce(key uint32) uint64 {
	return max(c.state.Keys()[key-1].Nonce, c.readNonces[key])
}

// Nonces returns the nonces that a key for parallel use has used, as a set of the caller's own: of
// those of reads only the greatest. It is nil for other keys.
func (c *Side) Nonces(key uint32) *state.Nonces {
	used := c.state.Keys()[key-1].Used
	if used == nil {
		return nil
	}
	used = used.Clone()
	used.Take(c.readNonces[key])
	return used
}

// noteRead keeps the nonce of a read for the next projection. The nonce is no part of the state,
// because no record has it. A crash may lose the newest of them, which is harmless.
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

// flush starts a projection, unless another is on its way or nothing is to be written.
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

// save ends the saves that wait, if the store has all, or writes on.
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

// step ends the forming step at the present state. Its balances and nonces are as of this sequence,
// and so is its image, if one is due. In the midst of a batch the image waits for the batch's end,
// and during a recovery for the actor's first step.
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

// MakeImage orders an image of the state as it is now, on the turn of the committed actor: the
// imager has been sent the same batches.
func (c *Side) MakeImage() <-chan *Image {
	reply := make(chan *Image, 1)
	c.imager.ordered.Add(1)
	c.root.Send(c.imager.pid, makeImage{c.state.Seq(), reply})
	return reply
}

func (c *Side) projected(m *projectionDone) {
	c.projecting = false
	c.steps = c.steps[:copy(c.steps, c.steps[1:])]
	c.watermark = m.to
	c.meter.Watermark.Store(m.to)
	c.unsaved.Add(int64(-m.rows))
	for i := range m.writes.Deposits { // lookups that come from now on leave them to the store
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
