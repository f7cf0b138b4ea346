package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/state"
	"exchange/persistence"
)

// A replay derives the audited state again.
type replay struct {
	*audit
	archive  Archive // nil: the replay starts from the oldest kept snapshot
	progress func(at, of uint64)

	state   *state.State
	batches state.Fold // folds into state
	rows    *rowAudit
	failed  error // first failure in note
	// final: no other start helps, because a record does not fit or rows could not be read.
	final     bool
	histories []event.HistoryID // set by the first state and by the records
}

// replayTries bounds the starts of a replay. While a replay runs, its first snapshot may be
// replaced and the journal after that snapshot trimmed.
const replayTries = 3

// ErrOvertaken is the error of a replay whose journal was trimmed in each of its tries.
var ErrOvertaken = errors.New(
	"snapshots were taken while the books were compared, and the journal before them was " +
		"forgotten: try again")

func (a *audit) replay(ctx context.Context, archive Archive, progress func(at, of uint64)) error {
	differences := len(a.report.Differences)
	for range replayTries {
		before, err := newestSnapshotAt(ctx, a.target.Store)
		if err != nil {
			return err
		}
		r := &replay{audit: a, archive: archive, progress: progress}
		a.report.Differences = a.report.Differences[:differences]
		if err = r.run(ctx); err == nil {
			r.compare()
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if r.final || archive != nil || !errors.Is(err, persistence.ErrCorrupt) {
			return err
		}
		if now, failed := newestSnapshotAt(ctx, a.target.Store); failed != nil ||
			now == before {
			return err
		}
	}
	return ErrOvertaken
}

// newestSnapshotAt returns the sequence of the newest snapshot, 0 without one.
func newestSnapshotAt(ctx context.Context, store Store) (uint64, error) {
	seq, image, err := store.LoadSnapshot(ctx, 0)
	if errors.Is(err, persistence.ErrNoSnapshot) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("looking for the newest snapshot: %w", err)
	}
	return seq, image.Close()
}

var errArchiveEmpty = errors.New(
	"the archive is still empty, and the journal has lost its first records: audit without the " +
		"archive until snapshots have been taken")

var errFarEnough = errors.New("the replay is far enough")

func (r *replay) run(ctx context.Context) (err error) {
	report := r.report
	if err := r.firstState(ctx); err != nil {
		return err
	}
	r.rows = newRowAudit(r.audit, r.state)
	report.From, report.Records, report.Rows, report.Trimmed = r.state.Seq(), 0, 0, 0
	r.batches = state.Fold{State: r.state,
		Note: func(record *event.Record, effects *state.Effects) {
			r.note(ctx, record, effects)
		}}
	fold := func(prev, next uint64, data []byte) error { return r.fold(ctx, prev, next, data) }
	if r.archive != nil {
		if err := r.archive.Read(ctx, r.state.Seq(),
			fold); err != nil && !errors.Is(err, errFarEnough) {
			return fmt.Errorf("replaying the archive: %w", err)
		}
	}
	for r.state.Seq() < report.Sequence {
		at := r.state.Seq()
		err := r.target.Store.Read(ctx, at, fold)
		if err == nil || errors.Is(err, errFarEnough) {
			break
		}
		err = fmt.Errorf("replaying the journal after sequence %d: %w", at, err)
		if r.archive == nil || r.final || !errors.Is(err, persistence.ErrCorrupt) {
			return err
		}
		// Batches trimmed since the archive was read are in the archive now.
		at = r.state.Seq()
		if err := r.archive.Read(ctx, at, fold); err != nil && !errors.Is(err, errFarEnough) {
			return fmt.Errorf("replaying the archive: %w", err)
		}
		if r.state.Seq() == 0 {
			return errArchiveEmpty
		}
		if r.state.Seq() == at {
			return err
		}
	}
	if at := r.state.Seq(); at != report.Sequence {
		return fmt.Errorf("%w: the replay ends at sequence %d instead of %d",
			persistence.ErrCorrupt, at, report.Sequence)
	}
	if err := r.checkHistories(); err != nil {
		return err
	}
	r.final = true // rows read from here on are never replaced
	return r.rows.finish(ctx)
}

func (r *replay) fold(ctx context.Context, prev, next uint64, data []byte) error {
	s := r.state
	if s.Seq() == r.report.Sequence {
		return errFarEnough
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var err error
	if next > r.report.Sequence {
		next = r.report.Sequence
		data, err = upTo(data, next)
	}
	if err == nil {
		err = r.batches.Batch(prev, next, data)
	}
	if err != nil {
		r.final = true
		return persistence.Unreadable(err)
	}
	if r.failed != nil {
		r.final = true
		return r.failed
	}
	r.progress(s.Seq()-r.report.From, r.report.Sequence-r.report.From)
	return nil
}

// upTo returns a batch without its records above a sequence. The state of a store at rest may lie
// in the middle of a batch, because a projection may end there.
func upTo(data []byte, seq uint64) ([]byte, error) {
	b, err := event.OpenBatch(data)
	if err != nil {
		return nil, err
	}
	rest := b.Records
	var r event.Record
	for range seq - b.Prev {
		if rest, err = r.Decode(rest); err != nil {
			return nil, err
		}
	}
	cut := append(event.BeginBatch(nil), b.Records[:len(b.Records)-len(rest)]...)
	return event.EndBatch(cut, b.Epoch, b.Prev, uint32(seq-b.Prev)), nil
}

// checkHistories refuses an archive with a part of a history that no replayed record has set. Such
// a part is another exchange's, or of a past that a restore abandoned, even if its records fit.
func (r *replay) checkHistories() error {
	if r.archive == nil {
		return nil
	}
	ids, err := r.archive.Histories()
	if err != nil {
		return fmt.Errorf("replaying the archive: %w", err)
	}
	for _, id := range ids {
		if !slices.Contains(r.histories, event.HistoryID(id)) {
			return fmt.Errorf(
				"replaying the archive: %w: a part was written under the history %x, which no "+
					"record names",
				persistence.ErrCorrupt, id)
		}
	}
	return nil
}

// note processes one replayed record and its effects. After a failure it only counts records.
func (r *replay) note(ctx context.Context, record *event.Record, effects *state.Effects) {
	r.report.Records++
	if record.Kind == event.KindHistory {
		r.histories = append(r.histories, record.History)
	}
	if r.failed == nil && record.Kind == event.KindKey {
		if err := r.checkSeal(r.state, &record.Key); err != nil {
			r.failed = err
		}
	}
	if r.failed == nil {
		r.failed = r.rows.note(ctx, record, effects)
	}
}

// firstState reads the first state of the replay.
func (r *replay) firstState(ctx context.Context) error {
	var image []byte
	var seq uint64
	var err error
	what := "the oldest snapshot"
	if r.archive == nil {
		if err := r.newestSeals(ctx); err != nil {
			return err
		}
		image, seq, err = oldestSnapshot(ctx, r.target.Store, r.report.Sequence)
	} else {
		what = "the state that the archive begins with"
		if seq, image, err = r.archive.Base(ctx); err != nil {
			err = fmt.Errorf("replaying the archive: %w", err)
		}
	}
	if err != nil || image == nil {
		r.state = state.New()
		return err
	}
	if r.state, err = state.Decode(image); err == nil && r.state.Seq() != seq {
		err = fmt.Errorf("it is of sequence %d", r.state.Seq())
	}
	if err == nil {
		r.histories = append(r.histories, r.state.History())
		err = r.seals(r.state)
	}
	if err != nil {
		return persistence.Unreadable(fmt.Errorf("%s, at sequence %d: %w", what, seq, err))
	}
	return nil
}

// oldestSnapshot returns the oldest kept snapshot at or below a sequence. It returns no image if
// the only snapshot is newer: that is the very first one, so the journal is still whole.
func oldestSnapshot(ctx context.Context, store Store, most uint64) (image []byte,
	seq uint64, err error) {
	for back := 1; back >= 0; back-- {
		image, seq, err := persistence.ReadSnapshot(ctx, store, back)
		switch {
		case errors.Is(err, persistence.ErrNoSnapshot):
		case err != nil:
			return nil, 0, fmt.Errorf("reading a snapshot: %w", err)
		case seq <= most:
			return image, seq, nil
		case back == 1:
			return nil, 0, ErrOvertaken
		}
	}
	return nil, 0, nil
}

// isImage reports whether an image is that of a state. It needs no memory for a second one.
func isImage(image []byte, s *state.State) bool {
	for piece := range s.Image {
		if !bytes.HasPrefix(image, piece) {
			return false
		}
		image = image[len(piece):]
	}
	return len(image) == 0
}

// compare compares the replayed state with the audited one, at one sequence. The images decide; the
// rest locates the difference.
func (r *replay) compare() {
	a, replayed := r.audit, r.state
	if err := replayed.Check(); err != nil {
		a.differ("after the replay: %v", err)
	}
	if isImage(a.target.Image, replayed) {
		return
	}
	before := len(a.report.Differences)
	for _, account := range a.state.Accounts() {
		other := replayed.Account(account.ID)
		if other == nil {
			a.differ("account %s is not in the replayed state", account.Name)
			continue
		}
		a.holdings(account, other)
		open, derived := slices.Collect(account.Open.Newest()), slices.Collect(other.Open.Newest())
		if !slices.Equal(open, derived) {
			a.differ("account %s: open orders are %v, replayed %v", account.Name, open, derived)
		}
	}
	for i, c := range a.state.Currencies() {
		if i >= len(replayed.Currencies()) || replayed.Currencies()[i] != c {
			a.differ("currency %s: %v deposited, %v withdrawn and %v adjusted are not what the "+
				"replay finds", c.Code, c.Deposited, c.Withdrawn, c.Adjusted)
		}
	}
	if len(a.report.Differences) == before {
		a.differ(
			"the replayed state differs from the committed one, in something else than balances, " +
				"reserves and open orders")
	}
}

func (a *audit) holdings(account, other *state.Account) {
	for _, h := range account.Wallet.Holdings() {
		if o := other.Wallet.Get(h.Currency); o != h {
			a.differ("account %s, %s: committed are %v with %v reserved, replayed %v with %v",
				account.Name, a.state.Currencies()[h.Currency-1].Code,
				h.Balance, h.Reserve, o.Balance, o.Reserve)
		}
	}
	for _, o := range other.Wallet.Holdings() {
		if account.Wallet.Get(o.Currency) == (ledger.Holding{Currency: o.Currency}) &&
			o != (ledger.Holding{Currency: o.Currency}) {
			a.differ("account %s, %s: committed is nothing, replayed are %v", account.Name,
				a.state.Currencies()[o.Currency-1].Code, o.Balance)
		}
	}
}
