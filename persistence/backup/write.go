package backup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"exchange/core/market"
	"exchange/core/state"
	"exchange/core/wire"
	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// Write streams a backup: the image, and the store's history up to the image's sequence, which the
// watermark must have reached. Rows that are added meanwhile are left out. Write reports to
// progress the number of rows so far. After an error the written bytes are an incomplete backup,
// which every reader detects.
func Write(ctx context.Context, w io.Writer, store persistence.Store, image []byte,
	by persistence.Authority, progress func(rows int)) error {
	s, err := state.Decode(image)
	if err != nil {
		return err
	}
	at, err := store.Watermark(ctx)
	if err != nil {
		return err
	}
	if at < s.Seq() {
		return fmt.Errorf("the history is at sequence %d, lags behind the state at %d", at, s.Seq())
	}
	out, err := newSink(w, by)
	if err != nil {
		return err
	}
	info, err := json.Marshal(describe(s, store, image))
	if err != nil {
		return err
	}
	out.part(partInfo, info)
	for piece := range slices.Chunk(image, imagePiece) {
		out.part(partImage, piece)
	}
	b := &writer{ctx: ctx, store: store, state: s, out: out, progress: progress}
	steps := []func() error{b.trades, b.accounts, b.withdrawals, b.candles, b.actions, b.nonces}
	if s.Seq() == 0 {
		steps = nil // nothing has happened
	}
	for _, step := range steps {
		if err := cmp.Or(step(), out.err); err != nil {
			return err
		}
	}
	return out.close()
}

// WriteNewest is Write with the store's newest snapshot. If that is of a sequence below least, it
// returns an error before the first byte.
func WriteNewest(ctx context.Context, w io.Writer, store persistence.Store, least uint64,
	by persistence.Authority) error {
	seq, r, err := store.LoadSnapshot(ctx, 0)
	if err != nil {
		return err
	}
	if seq < least {
		return errors.Join(fmt.Errorf("the newest snapshot is of sequence %d, below the "+
			"requested %d", seq, least), r.Close())
	}
	image, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	return Write(ctx, w, store, image, by, func(int) {})
}

func describe(s *state.State, store persistence.Store, image []byte) *Info {
	info := &Info{Engine: store.Engine(), Sequence: s.Seq(), Taken: time.Now().UTC(),
		Store:   store.String(),
		History: s.History().String(), Accounts: len(s.Accounts()), Keys: len(s.Keys()),
		ImageBytes: int64(len(image))}
	for _, k := range s.Keys() {
		if k.Revoked { // its secret is gone
			continue
		}
		if id := fmt.Sprintf("%016x", k.SealedBy); !slices.Contains(info.SealedBy, id) {
			info.SealedBy = append(info.SealedBy, id)
		}
	}
	return info
}

type writer struct {
	ctx      context.Context
	store    persistence.Store
	state    *state.State
	out      *sink
	progress func(rows int)
	n        int
	buffer   []byte
}

// row writes one row; false when the stream is broken.
func (w *writer) row(kind byte, b []byte) bool {
	w.out.part(kind, b)
	w.buffer = b
	w.n++
	w.progress(w.n)
	return w.out.err == nil
}

func (w *writer) trades() error {
	pairs := w.state.Pairs()
	_, last, _ := w.state.LastIDs()
	return w.store.Trades(w.ctx, persistence.TradeQuery{Ascending: true},
		func(t *persistence.Trade) bool {
			if t.ID > last {
				return false
			}
			// a neighbour of an older one, in another pair
			if int(t.Pair) > len(pairs) || t.ID > pairs[t.Pair-1].LastTrade() {
				return true
			}
			return w.row(partTrade, codec.AppendTrade(wire.AppendUints(w.buffer[:0], t.ID), t))
		})
}

// accounts writes each account's closed orders and deposits.
func (w *writer) accounts() error {
	_, _, lastDeposit := w.state.LastIDs()
	for _, a := range w.state.Accounts() {
		err := w.store.Orders(w.ctx, persistence.OrderQuery{Account: a.ID, MaxSeq: w.state.Seq()},
			func(o *persistence.Order) bool {
				return w.row(partOrder, codec.AppendOrder(wire.AppendUints(w.buffer[:0],
					uint64(a.ID), o.ID), o))
			})
		if err := cmp.Or(err, w.out.err); err != nil {
			return err
		}
		err = w.store.Deposits(w.ctx, persistence.DepositQuery{Account: a.ID,
			Before: lastDeposit + 1}, func(d *persistence.Deposit) bool {
			return w.row(partDeposit, codec.AppendDeposit(wire.AppendUints(w.buffer[:0],
				uint64(a.ID), d.ID), d))
		})
		if err := cmp.Or(err, w.out.err); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) withdrawals() error {
	return w.store.Withdrawals(w.ctx,
		persistence.WithdrawalQuery{MaxSeq: w.state.Seq()}, func(d *persistence.Withdrawal) bool {
			return w.row(partWithdrawal, codec.AppendWithdrawal(wire.AppendUints(w.buffer[:0],
				d.ID), d))
		})
}

// candles come from the store, but the newest of each frame from the state: the store's may have
// trades after it by now.
func (w *writer) candles() error {
	for _, p := range w.state.Pairs() {
		for f := range market.Frame(market.FrameCount) {
			newest, ok := p.Market.Candle(f)
			if !ok {
				continue
			}
			add := func(c *persistence.Candle) bool {
				return w.row(partCandle, codec.AppendCandle(
					wire.AppendUints(w.buffer[:0], uint64(p.Number), uint64(f), uint64(c.Time)), c))
			}
			add(&persistence.Candle{Pair: p.Number, Frame: uint8(f), Time: newest.Time,
				Open: newest.Open, High: newest.High, Low: newest.Low,
				Close: newest.Close, Volume: newest.Volume})
			if newest.Time == 0 {
				continue
			}
			err := w.store.Candles(w.ctx, persistence.CandleQuery{Pair: p.Number, Frame: uint8(f),
				Until: newest.Time - 1}, add)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writer) actions() error {
	return w.store.Actions(w.ctx, persistence.ActionQuery{Before: w.state.Seq() + 1},
		func(a *persistence.Action) bool {
			return w.row(partAction, codec.AppendAction(wire.AppendUints(w.buffer[:0], a.Seq), a))
		})
}

// nonces returns the store's nonces of the state's keys. Nonces of reads are not in the state. A
// nonce may be of a command after the image: its bytes have been sent and must not be valid again.
func (w *writer) nonces() error {
	return w.store.Nonces(w.ctx, func(key string, nonce uint64) {
		if w.state.KeyByName(key) != nil {
			w.row(partNonce, append(wire.AppendUints(w.buffer[:0], nonce), key...))
		}
	})
}
