package backup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"exchange/core/state"
	"exchange/persistence"
)

// loadRows is how many rows go into the store at once: below persistence.MaxRows, and few steps for the
// watermark, which moves with each.
const loadRows = 50_000

// ErrNotEmpty: a backup is restored into an empty store only.
var ErrNotEmpty = errors.New("the store is not empty")

// Empty is nil if nothing was ever written to the store, else ErrNotEmpty. It looks, and does not become the
// owner: an exchange that is using the store goes on.
func Empty(ctx context.Context, store persistence.Store) error {
	watermark, err := store.Watermark(ctx)
	if err != nil {
		return err
	}
	if watermark != 0 {
		return fmt.Errorf("%w: it has a history up to sequence %d", ErrNotEmpty, watermark)
	}
	switch seq, image, err := store.LoadSnapshot(ctx, 0); {
	case err == nil:
		return errors.Join(fmt.Errorf("%w: it has a snapshot at sequence %d", ErrNotEmpty, seq), image.Close())
	case !errors.Is(err, persistence.ErrNoSnapshot):
		return err
	}
	switch _, next, _, err := persistence.First(ctx, store, 0); {
	case errors.Is(err, persistence.ErrCorrupt): // as one that begins late is
		return fmt.Errorf("%w: it has a journal, perhaps of a restore that did not come to its end: %v", ErrNotEmpty, err) //nolint:errorlint // no damage is meant
	case err == nil && next != 0:
		return fmt.Errorf("%w: it has a journal", ErrNotEmpty)
	default:
		return err
	}
}

// Load fills an empty store. Verify the same bytes first: after an error the store may be half filled, and
// is to be thrown away, unless the error is ErrNotEmpty. progress is told how many rows there are so far.
func Load(ctx context.Context, store persistence.Store, r io.Reader, progress func(rows int)) (*Info, error) {
	return load(ctx, store, r, progress, loadRows)
}

func load(ctx context.Context, store persistence.Store, r io.Reader, progress func(rows int), step int) (*Info, error) {
	if err := Empty(ctx, store); err != nil {
		return nil, err
	}
	token, last, err := store.Acquire(ctx, "restore")
	if err != nil {
		return nil, err
	}
	if last != 0 { // since just now
		return nil, fmt.Errorf("%w: its journal ends at sequence %d", ErrNotEmpty, last)
	}
	l := &loader{ctx: ctx, store: store, token: token, progress: progress, step: step}
	if err := parts(r, func(kind byte, b []byte) error { return l.next(kind, b, l.add) }); err != nil {
		return nil, err
	}
	if err := l.imageEnds(); err != nil {
		return nil, err
	}
	if err := l.finish(); err != nil {
		return nil, err
	}
	return &l.info, nil
}

type loader struct {
	reader
	ctx       context.Context
	store     persistence.Store
	token     persistence.Token
	progress  func(rows int)
	step      int // rows of one Apply
	begun     bool
	watermark uint64
	writes    persistence.Writes
	n, total  int
}

func (l *loader) add(r *rows) error {
	w := &l.writes
	switch r.kind {
	case partTrade:
		w.Trades = append(w.Trades, r.trade)
	case partOrder:
		w.Orders = append(w.Orders, r.order)
	case partDeposit:
		w.Deposits = append(w.Deposits, r.deposit)
	case partWithdraw:
		w.Withdraws = append(w.Withdraws, r.withdraw)
	case partCandle:
		w.Candles = append(w.Candles, r.candle)
	case partAction:
		w.Actions = append(w.Actions, r.action)
	case partNonce:
		w.Nonces = append(w.Nonces, r.nonce)
	}
	l.n++
	l.total++
	l.progress(l.total)
	if l.n < l.step {
		return nil
	}
	return l.apply(l.watermark + 1)
}

// begin makes the journal end where the backup does.
func (l *loader) begin() error {
	if l.begun {
		return nil
	}
	l.begun = true
	return l.store.Begin(l.ctx, l.token, l.info.Sequence)
}

func (l *loader) apply(to uint64) error {
	if err := cmp.Or(l.ctx.Err(), l.begin()); err != nil {
		return err
	}
	if to > l.info.Sequence {
		return fmt.Errorf("%w: more rows than %d records can have made", ErrDamaged, l.info.Sequence)
	}
	if err := l.store.Apply(l.ctx, l.token, l.watermark, to, &l.writes); err != nil {
		return err
	}
	l.watermark, l.n = to, 0
	l.writes.Reset()
	return nil
}

// finish writes the wallets and publishes the image: with it the store is whole.
func (l *loader) finish() error {
	for _, a := range l.state.Accounts() {
		l.writes.Wallets = append(l.writes.Wallets, wallet(l.state, a))
		if len(l.writes.Wallets) == l.step {
			if err := l.apply(l.watermark + 1); err != nil {
				return err
			}
		}
	}
	if err := l.begin(); err != nil {
		return err
	}
	if l.info.Sequence == 0 {
		return nil // a backup of nothing
	}
	if err := l.apply(l.info.Sequence); err != nil {
		return err
	}
	return l.store.SaveSnapshot(l.ctx, l.token, l.info.Sequence, bytes.NewReader(l.image))
}

func wallet(s *state.State, a *state.Account) persistence.Wallet {
	w := persistence.Wallet{Account: a.ID, Name: a.Name, Seq: s.Seq()}
	for _, h := range a.Wallet.Holdings() {
		w.Holdings = append(w.Holdings, persistence.Holding{Currency: s.Currencies()[h.Currency-1].Code, Balance: h.Balance, Reserve: h.Reserve})
	}
	return w
}
