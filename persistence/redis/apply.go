package redis

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// callBytes is about how much one call of an Apply writes: a millisecond or so of Redis's time,
// which may delay an append.
const callBytes = 32 << 10

// opBytes is the overhead of an operation or a row.
const opBytes = 16

// watermarkSum is the field of the sums with a second copy of the watermark.
const watermarkSum = "wm"

// Watermark returns the sequence the projections are exact for.
func (s *Store) Watermark(ctx context.Context) (uint64, error) {
	var text, again *redis.StringCmd
	_, err := s.projections.TxPipelined(ctx, func(p redis.Pipeliner) error {
		text, again = p.Get(ctx, s.watermark()), p.HGet(ctx, s.sums(), watermarkSum)
		return nil
	})
	// The call's own error comes first, because a missing key hides the errors after it.
	for _, err := range []error{err, text.Err(), again.Err()} {
		if err != nil && !errors.Is(err, redis.Nil) {
			return 0, s.fault("read the watermark", err)
		}
	}
	if text.Val() != again.Val() {
		return 0,
			fmt.Errorf(
				"%s: %w: the watermark is %q in %s and %q in %s: one of them was damaged; "+
					"restore a backup", s.name,
				persistence.ErrCorrupt, text.Val(), s.watermark(), again.Val(), s.sums())
	}
	if text.Val() == "" {
		return 0, nil
	}
	return s.number("the watermark", text.Val())
}

// Apply writes w and moves the watermark. See the package comment for how it is split.
func (s *Store) Apply(ctx context.Context, tok persistence.Token, from, to uint64,
	w *persistence.Writes) error {
	if w == nil {
		w = &persistence.Writes{}
	}
	if err := codec.CheckWrites(from, to, w); err != nil {
		return err
	}
	var c cutter
	s.addTrades(&c, w.Trades)
	s.addOrders(&c, w.Orders)
	s.addDeposits(&c, w.Deposits)
	s.addWithdrawals(&c, w.Withdrawals)
	s.addCandles(&c, w.Candles)
	s.addActions(&c, w.Actions)
	for i := range w.Wallets {
		c.addWhole('W', s.wallet(w.Wallets[i].Name), s.walletFields(&w.Wallets[i]))
	}
	c.add('N', s.nonces(), 0, 2, s.nonceFields(w.Nonces))
	for i, args := range c.calls() {
		move := "0"
		if i == len(c.done)-1 && from != to {
			move = "1"
		}
		seq, sum := s.lastEnd(tok)
		head := []any{string(tok), dec(from), dec(to), move, seq, sum}
		code, text, err := s.run(ctx, s.projections, applyScript, "apply",
			[]string{s.head(), s.watermark(), s.sums()}, append(head, args...)...)
		if err != nil {
			return err
		}
		switch code {
		case codeDone:
		case codeThere:
			return nil
		case codeGap:
			stored, err := s.number("the watermark", text)
			if err != nil {
				return err
			}
			return codec.WatermarkGap(stored, from, to)
		case codeShort:
			stored, err := s.number("the journal's end", text)
			if err != nil {
				return err
			}
			return codec.Gap(stored, s.own.Load().end.Seq)
		case codeLate:
			return s.fault("apply", fmt.Errorf(
				"BUG: a row for %s is older than too many stored ones", text))
		default:
			return s.fault("apply", fmt.Errorf("the script answered %d %s", code, text))
		}
	}
	return nil
}

// cutter lays operations out in calls of about callBytes.
type cutter struct {
	done [][]any
	args []any // of the call being filled
	size int
}

// add lays out values, stride of them at a time, over as many calls as they need.
func (c *cutter) add(kind byte, key string, limit, stride int, values [][]byte) {
	for len(values) > 0 {
		if c.size >= callBytes {
			c.flush()
		}
		c.size += len(key) + opBytes
		n := 0
		for n < len(values) && (n == 0 || c.size < callBytes) {
			for _, v := range values[n : n+stride] {
				c.size += len(v) + opBytes
			}
			n += stride
		}
		c.op(kind, key, limit, values[:n])
		values = values[n:]
	}
}

// addMarked is add for rows of a list with marks.
func (c *cutter) addTradeRows(key string, limit int, rows []tradeRow) {
	for len(rows) > 0 {
		if c.size >= callBytes {
			c.flush()
		}
		c.size += len(key) + 2*opBytes
		n, marks := 0, []byte(nil)
		values := make([][]byte, 0, len(rows)+1)
		for n < len(rows) && (n == 0 || c.size < callBytes) {
			r := rows[n]
			c.size += len(r.row) + len(r.mark) + opBytes
			values, marks = append(values, r.row), append(marks, r.mark...)
			n++
		}
		c.op('A', key, limit, append(values, marks))
		rows = rows[n:]
	}
}

// whole lays out one operation that must not be cut.
func (c *cutter) addWhole(kind byte, key string, values [][]byte) {
	if c.size >= callBytes {
		c.flush()
	}
	c.size += len(key) + opBytes
	for _, v := range values {
		c.size += len(v) + opBytes
	}
	c.op(kind, key, 0, values)
}

func (c *cutter) op(kind byte, key string, limit int, values [][]byte) {
	c.args = append(c.args, string(kind), key, limit, len(values))
	for _, v := range values {
		c.args = append(c.args, v)
	}
}

func (c *cutter) flush() {
	c.done = append(c.done, c.args)
	c.args, c.size = nil, 0
}

// calls returns the arguments of all calls; at least one, which may be empty.
func (c *cutter) calls() [][]any {
	if len(c.args) > 0 || len(c.done) == 0 {
		c.flush()
	}
	return c.done
}
