package committed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"time"

	"exchange/actors/mailbox"
	"exchange/actors/metrics"
	"exchange/core/state"
	"exchange/persistence"
)

// RecoverOptions configure a recovery, and the committed side after it.
type RecoverOptions struct {
	Store     persistence.Store
	Last      uint64 // last sequence of the journal; if Grows, its minimum
	Grows     bool   // another process may append meanwhile
	Log       *slog.Logger
	Meter     *metrics.Engine
	Snapshot  SnapshotPolicy
	Retention persistence.Retention // bounds the lists in memory
	OwnBytes  int                   // bound of account events kept for resumption
	StepRows  int                   // rows of a projection, smaller in tests; 0: default
	Candles   int                   // candles of a chart in memory, fewer in tests; 0: default
	// Preview is the fold of the store from before its take-over; optional. Recover consumes it.
	Preview *Preview
	// RemoteHistory is the history, if another process keeps it; nil: the store does. With one, no
	// images are made, and parts that only that process needs are not checked.
	RemoteHistory persistence.RemoteHistory
}

// Recover folds snapshot and journal of a store that this process owns. It skips nothing:
// inconsistent data fail it, with an error that contains the sequence.
func Recover(ctx context.Context, o *RecoverOptions) (*Side, error) {
	seen := o.Preview
	if o.Preview = nil; seen == nil {
		return recoverSide(ctx, o, nil)
	}
	c, err := recoverSide(ctx, o, seen)
	if errors.Is(err, errStoreChanged) {
		return recoverSide(ctx, o, nil)
	}
	return c, err
}

func recoverSide(ctx context.Context, o *RecoverOptions, seen *Preview) (*Side, error) {
	var s *state.State
	var imager *Imager
	size, err := newestImage(ctx, o.Store, o.Log, func(image []byte, seq uint64) (err error) {
		if seen.isOnly(image, seq) {
			s, imager, seen = seen.state, lateImager(image, seq), nil
			return nil
		}
		if s, err = decode(image, seq); err != nil {
			return err
		}
		switch {
		case seen.of(image):
			imager = newImager(seen.state)
			return nil
		case o.RemoteHistory != nil:
		case image == nil:
			imager = newImager(state.New())
		default:
			imager = lateImager(image, seq)
		}
		seen = nil
		return nil
	})
	if err != nil {
		return nil, err
	}
	o.Meter.SnapshotTaken(s.Seq(), s.TimeUs(), size)
	o.Meter.Trimmed.Store(s.Seq()) // whether older records exist is unknown
	watermark, err := o.Store.Watermark(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the watermark: %w", err)
	}
	if watermark < s.Seq() || watermark > o.Last {
		return nil,
			fmt.Errorf(
				"%w: the projections are at sequence %d, the snapshot at %d, the journal at %d: "+
					"the store has lost writes; restore a backup",
				persistence.ErrCorrupt, watermark, s.Seq(), o.Last)
	}
	o.Meter.Watermark.Store(watermark)
	c := newSide(s, watermark, o)
	c.imager = imager
	if err := o.Store.Read(ctx, s.Seq(), func(prev, next uint64, data []byte) error {
		return c.refold(prev, next, data, seen)
	}); err != nil {
		return nil, fmt.Errorf("reading the journal after sequence %d: %w", s.Seq(), err)
	}
	if s.Seq() < o.Last || s.Seq() > o.Last && !o.Grows {
		return nil, fmt.Errorf("%w: the journal ends at sequence %d, its head says %d",
			persistence.ErrCorrupt, s.Seq(), o.Last)
	}
	if imager != nil && imager.folded.Load() != s.Seq() {
		return nil, errStoreChanged
	}
	checked := make(chan error, 1)
	go func() { checked <- s.Check() }() // read only, as is load
	err = c.load(ctx, o.Store)
	if wrong := <-checked; wrong != nil {
		return nil, fmt.Errorf("%w: after recovery at sequence %d: %w", persistence.ErrCorrupt,
			s.Seq(), wrong)
	}
	if err != nil {
		return nil, err
	}
	c.folded.Store(s.Seq())
	c.meter.Outbox.Store(int64(s.Mails()))
	return c, nil
}

// load reads the parts outside the state from the store. It does not change the state.
func (c *Side) load(ctx context.Context, store persistence.Store) error {
	if c.remoteHistory != nil {
		remote := c.remoteHistory.At(c.horizon())
		if err := c.loadTrades(ctx, remote); err != nil {
			return err
		}
		c.newestCandles()
		return c.loadCandles(ctx, remote)
	}
	if err := c.checkReferences(ctx, store); err != nil {
		return err
	}
	if err := c.LoadNonces(ctx, store); err != nil {
		return err
	}
	if err := c.loadTrades(ctx, store); err != nil {
		return err
	}
	return c.loadCandles(ctx, store)
}

// LoadNonces reads the nonces used by reads from the store. Once the actor is spawned, call it on
// its turn.
func (c *Side) LoadNonces(ctx context.Context, store persistence.Projections) error {
	err := store.Nonces(ctx, func(key string, nonce uint64) {
		if k := c.state.KeyByName(key); k != nil && nonce > k.Nonce {
			c.raiseReadNonce(k.Number, nonce)
		}
	})
	if err != nil {
		return fmt.Errorf("reading nonces: %w", err)
	}
	return nil
}

// newSide starts from the state of a snapshot.
func newSide(s *state.State, watermark uint64, o *RecoverOptions) *Side {
	c := &Side{references: map[string]persistence.Deposit{}, readNonces: map[uint32]uint64{},
		state: s, began: s.Seq(), snapshot: o.Snapshot, meter: o.Meter, watermark: watermark,
		stepEnd: watermark, rows: new(persistence.Writes), spare: new(persistence.Writes),
		stepRows: cmp.Or(o.StepRows, stepRows),
		accounts: map[uint32]struct{}{}, nonces: map[uint32]struct{}{},
		trades: map[uint16]*recentTrades{}, candlePairs: map[uint16]struct{}{},
		candles: cmp.Or(o.Candles, recentCandles), keep: recentTradesLimit, imagedSeq: s.Seq(),
		imagedAt: time.Now(), remoteHistory: o.RemoteHistory, scans: newTurns()}
	c.batches = state.Fold{State: s, Note: c.applied}
	c.own.most = o.OwnBytes
	c.histories.note(s)
	for _, p := range s.Pairs() {
		b := new(viewCache)
		b.version.Store(p.Market.UpdateID)
		c.caches, c.charts, c.feeds = append(c.caches, b), append(c.charts, new(charts)),
			append(c.feeds, &feed{pair: p.Number, updateID: p.Market.UpdateID})
		c.open = append(c.open, 0)
		c.countOpen(p.Number)
	}
	if most := o.Retention.Trades; most > 0 {
		c.keep = max(1, min(c.keep, most/2))
	}
	if most := o.Retention.Candles; most > 0 {
		c.candles = min(c.candles, most)
	}
	return c
}

// refold folds a batch of the journal, for the imager too, unless that has folded it.
func (c *Side) refold(prev, next uint64, data []byte, seen *Preview) error {
	before := c.state.Seq()
	twin := make(chan error, 1)
	if c.imager == nil {
		twin <- nil
	} else if next <= c.imager.folded.Load() {
		twin <- seen.compare(next, data)
	} else {
		go func() { twin <- c.imager.follow(prev, next, data) }()
	}
	err := c.foldBatch(prev, next, data)
	if other := <-twin; err == nil && other != nil {
		if err = other; seen != nil {
			err = errStoreChanged
		}
	}
	if err != nil {
		return persistence.Unreadable(err)
	}
	c.refolded += next - before
	c.histories.note(c.state)
	return nil
}

// historyIDs are the ids of the histories that a fold has passed.
type historyIDs []persistence.HistoryID

// note adds the history of a state. The empty state has none; that of a restored state is zero.
func (p *historyIDs) note(s *state.State) {
	id := s.History()
	if n := len(*p); s.Seq() > 0 && (n == 0 || (*p)[n-1] != id) {
		*p = append(*p, id)
	}
}

// Histories returns the ids of the histories passed during recovery, the newest last. The zero id
// is that of a restored state.
func (c *Side) Histories() []persistence.HistoryID { return c.histories }

// Fold folds a batch of the start itself, before the actor is spawned.
func (c *Side) Fold(prev, next uint64, data []byte) error {
	if err := c.refold(prev, next, data, nil); err != nil {
		return err
	}
	c.folded.Store(next)
	return nil
}

// Began returns the sequence of the snapshot that recovery started from.
func (c *Side) Began() uint64 { return c.began }

// Refolded returns the number of records folded from the journal.
func (c *Side) Refolded() uint64 { return c.refolded }

// Watermark returns the store's watermark. Once spawned, the actor owns it.
func (c *Side) Watermark() uint64 { return c.watermark }

// checkReferences fails for an index that lacks deposits, because their references could be used
// again. It counts the deposits up to the watermark: of later ones, a crash in the middle of an
// Apply may have left some.
func (c *Side) checkReferences(ctx context.Context, store persistence.History) error {
	n, err := store.CountReferences(ctx)
	if err != nil {
		return fmt.Errorf("counting the references of deposits: %w", err)
	}
	_, _, made := c.state.LastIDs()
	projected := made - uint64(len(c.references))
	for reference := range c.references {
		_, err := store.Reference(ctx, 0, reference)
		if err == nil {
			n--
		} else if !errors.Is(err, persistence.ErrNotFound) {
			return fmt.Errorf("looking for the reference of a deposit: %w", err)
		}
	}
	if n != projected {
		return fmt.Errorf(
			"%w: the index of references has %d deposits up to sequence %d, and %d were made: "+
				"it was damaged; restore a backup", persistence.ErrCorrupt, n,
			c.watermark, projected)
	}
	return nil
}

// loadTrades reads the newest trades from the history. Later ones were recorded while folding.
func (c *Side) loadTrades(ctx context.Context, history persistence.History) error {
	for pair := range len(c.state.Pairs()) + 1 {
		list := c.tradesOf(uint16(pair))
		var stored []persistence.Trade // newest first
		older := false
		err := history.Trades(ctx, persistence.TradeQuery{Pair: uint16(pair)},
			func(t *persistence.Trade) bool {
				if older = len(stored) == list.keep; !older {
					stored = append(stored, *t)
				}
				return !older
			})
		if err != nil {
			return fmt.Errorf("reading the newest trades: %w", err)
		}
		list.begin(stored, older)
	}
	return nil
}

// A Preview is the fold of a store that this process did not own yet. A recovery that finds the
// same image reuses the fold if no batch followed the image, as after an orderly stop. If there are
// batches, and they are unchanged, the imager takes over the fold: the recovery needs its own, to
// record the effects. So it never decodes the image a second time for its imager.
type Preview struct {
	state *state.State
	began uint64 // sequence of the image
	seed  maphash.Seed
	image uint64       // hash of the image; without one, of nothing
	sum   maphash.Hash // hash of the batches after it; then of the batches read again
	want  uint64       // hash of all batches up to the state

	histories historyIDs
}

// Histories returns the ids of the histories that the fold has passed, as for a Side.
func (n *Preview) Histories() []persistence.HistoryID { return n.histories }

// NewPreview folds a store that another process may own. It logs nothing; the caller reports
// damage.
func NewPreview(ctx context.Context, store persistence.Store) (*Preview, error) {
	n := &Preview{seed: maphash.MakeSeed()}
	n.sum.SetSeed(n.seed)
	n.image = maphash.Bytes(n.seed, nil)
	_, err := newestImage(ctx, store, slog.New(slog.DiscardHandler),
		func(image []byte, seq uint64) error {
			s, err := decode(image, seq)
			if err == nil {
				n.state, n.began, n.image = s, seq, maphash.Bytes(n.seed, image)
			}
			return err
		})
	if err != nil {
		return nil, err
	}
	f := state.Fold{State: n.state}
	n.histories.note(n.state)
	err = store.Read(ctx, n.state.Seq(), func(prev, next uint64, data []byte) error {
		n.sum.Write(data)
		if err := f.Batch(prev, next, data); err != nil {
			return persistence.Unreadable(err)
		}
		n.histories.note(n.state)
		return nil
	})
	n.want = n.sum.Sum64()
	n.sum.Reset()
	return n, err
}

// State returns the fold. Read only.
func (n *Preview) State() *state.State { return n.state }

// of reports whether image, or nil for none, is that of the preview.
func (n *Preview) of(image []byte) bool {
	return n != nil && n.image == maphash.Bytes(n.seed, image)
}

// isOnly reports whether the fold consists of an image without batches.
func (n *Preview) isOnly(image []byte, seq uint64) bool {
	return image != nil && n.of(image) && n.began == seq && n.state.Seq() == seq
}

// errStoreChanged: the store has other records than the preview.
var errStoreChanged = errors.New("the store has other records than before it was taken over")

// compare checks a batch that is read again.
func (n *Preview) compare(next uint64, data []byte) error {
	n.sum.Write(data)
	if next == n.state.Seq() && n.sum.Sum64() != n.want {
		return errStoreChanged
	}
	return nil
}

// newestImage calls read with the newest readable image, or with nil if no image exists. It returns
// the size in bytes.
func newestImage(ctx context.Context, store persistence.Store, log *slog.Logger,
	read func(image []byte, seq uint64) error) (size int, err error) {
	var damage error
	for back := range 2 {
		image, seq, err := persistence.ReadSnapshot(ctx, store, back)
		if errors.Is(err, persistence.ErrNoSnapshot) {
			break
		}
		if err != nil && !errors.Is(err, persistence.ErrCorrupt) {
			return 0, fmt.Errorf("reading a snapshot: %w", err)
		}
		if err == nil {
			if err = read(image, seq); err == nil {
				return len(image), nil
			}
			err = persistence.Unreadable(err)
		}
		if errors.Is(err, persistence.ErrVersion) {
			return 0, fmt.Errorf("the snapshot at sequence %d: %w", seq, err)
		}
		damage = fmt.Errorf("the snapshot at sequence %d is damaged: %w", seq, err)
		log.Error("trying an older snapshot", "error", damage)
	}
	if damage != nil {
		// Without a snapshot the whole journal is needed; Read fails if part of it is missing.
		log.Error("no snapshot is readable, starting from the first record", "error", damage)
	}
	return 0, read(nil, 0)
}

// decode reads an image, on all processors; nil: an empty state.
func decode(image []byte, seq uint64) (*state.State, error) {
	if image == nil {
		return state.New(), nil
	}
	s, err := state.DecodeWith(image, mailbox.AtOnce)
	if err == nil && s.Seq() != seq {
		return nil, fmt.Errorf("it is of sequence %d", s.Seq())
	}
	return s, err
}
