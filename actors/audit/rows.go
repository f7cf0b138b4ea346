package audit

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"exchange/actors/rows"
	"exchange/core/event"
	"exchange/core/market"
	"exchange/core/state"
	"exchange/persistence"
)

// A rowAudit checks the store for the rows of replayed records. It gathers many rows and then reads
// each list once, because the rows of a list mostly follow each other. Reading them one by one
// would take many times as long.
//
// A row of the history never changes, except for the newest candle of a list. So the exchange may
// run while an audit reads. A row may be missing only if all older rows of its list are gone too,
// and the list has its maximum of newer rows. Rows of an earlier run may also have been trimmed
// under an unknown earlier retention. For those, one newer row of that run is enough.
type rowAudit struct {
	*audit
	replayed *state.State
	earlier  bool                               // the gathered rows are of an earlier run's records
	refs     []rowRef                           // rows to look for
	rows     persistence.Writes                 // rows of one record
	newest   [][market.FrameCount]market.Candle // newest candles of the replayed trades, by pair-1
	lists    [rowKinds]rowList

	ends  map[uint64]uint64 // by list: the id from which on the list holds its maximum of rows
	found [2][]bool         // by account: a row was found in its accountTrades, accountOrders
}

// A rowRef is a row that should be in a list.
type rowRef struct {
	list uint64 // the list's kind << 32 | number of the pair or account
	id   uint64
	sum  uint64 // rowSum of the row
}

// rowsAtOnce is the number of rows gathered before the lists are read: about 50 MB.
const rowsAtOnce = 2 << 20

func (h *rowAudit) add(kind int, number uint32, id, sum uint64) {
	h.refs = append(h.refs, rowRef{uint64(kind)<<32 | uint64(number), id, sum})
}

// note gathers the rows of a record that was just replayed.
func (h *rowAudit) note(ctx context.Context, r *event.Record, e *state.Effects) error {
	w := &h.rows
	w.Reset()
	rows.Append(w, h.replayed, r, e)
	for i := range w.Trades {
		t := &w.Trades[i]
		sum := rowSum(t)
		h.add(allTrades, 0, t.ID, sum)
		h.add(pairTrades, uint32(t.Pair), t.ID, sum)
		if h.add(accountTrades, t.Taker, t.ID, sum); t.Maker != t.Taker {
			h.add(accountTrades, t.Maker, t.ID, sum)
		}
	}
	for i := range w.Orders {
		h.add(accountOrders, w.Orders[i].Account, w.Orders[i].ID, rowSum(&w.Orders[i]))
	}
	for i := range w.Deposits {
		h.add(accountDeposits, w.Deposits[i].Account, w.Deposits[i].ID, rowSum(&w.Deposits[i]))
	}
	for i := range w.Withdrawals {
		d := &w.Withdrawals[i]
		sum := rowSum(d)
		h.add(allWithdrawals, 0, d.ID, sum)
		h.add(accountWithdrawals, d.Account, d.ID, sum)
	}
	for i := range w.Actions {
		h.add(allActions, 0, w.Actions[i].Seq, h.actionSum(&w.Actions[i]))
	}
	if len(w.Trades) > 0 {
		h.noteCandles(h.replayed.Pair(r.Pair))
	}
	if len(h.refs) < cmp.Or(h.target.RowsAtOnce, rowsAtOnce) && !h.atStart() {
		return nil
	}
	return h.checkRows(ctx)
}

// noteCandles gathers a pair's candles whose periods have ended.
func (h *rowAudit) noteCandles(p *state.Pair) {
	for len(h.newest) < int(p.Number) {
		h.newest = append(h.newest, [market.FrameCount]market.Candle{})
	}
	for f := range market.Frame(market.FrameCount) {
		now, _ := p.Market.Candle(f)
		last := &h.newest[p.Number-1][f]
		if last.Close != 0 && last.Time != now.Time {
			row := rows.Candle(p.Number, f, last)
			h.add(pairCandles, uint32(p.Number)<<8|uint32(f), uint64(row.Time), rowSum(&row))
		}
		*last = now
	}
}

// checkRows compares the gathered rows with their lists.
func (h *rowAudit) checkRows(ctx context.Context) error {
	slices.SortFunc(h.refs, func(a, b rowRef) int {
		return cmp.Or(cmp.Compare(a.list, b.list), cmp.Compare(a.id, b.id))
	})
	err := concurrently(func(yield func([]rowRef) bool) {
		for rest := h.refs; len(rest) > 0; {
			n := 1
			for n < len(rest) && rest[n].list == rest[0].list {
				n++
			}
			if !yield(rest[:n]) {
				return
			}
			rest = rest[n:]
		}
	}, func(refs []rowRef) error { return h.list(ctx, refs) })
	h.refs = h.refs[:0]
	h.earlier = h.replayed.Seq() < h.target.Earlier
	return err
}

// rowsBetween is the number of other rows read before the next row is looked up by its id.
const rowsBetween = 256

// list compares rows of one list. refs are in the order of their ids.
func (h *rowAudit) list(ctx context.Context, refs []rowRef) error {
	l, number := &h.lists[refs[0].list>>32], uint32(refs[0].list)
	left, found := refs, 0 // rows left to find, from the last on
	var newest uint64      // newest row found
	// passed are rows that were not found although older ones exist, newest first. They may have
	// been trimmed.
	var passed []rowRef
	for end, beside := false, 0; !end && len(left) > 0; {
		end, beside = true, 0
		err := l.read(ctx, number, left[len(left)-1].id+1, func(id, sum uint64, row any) bool {
			for len(left) > 0 && left[len(left)-1].id > id {
				if r := left[len(left)-1]; l.anyOrder && h.earlier {
					passed = append(passed, r)
				} else {
					h.missing(l.name(number), r.id)
				}
				left = left[:len(left)-1]
			}
			switch {
			case len(left) == 0:
			case left[len(left)-1].id == id:
				if beside = 0; left[len(left)-1].sum != sum {
					h.stored(l.name(number), id, row)
				}
				left = left[:len(left)-1]
				found++
				newest = max(newest, id)
			default:
				if beside++; beside == rowsBetween {
					end = false
				}
			}
			return len(left) > 0 && beside < rowsBetween
		})
		if err != nil {
			return fmt.Errorf("reading %s: %w", l.name(number), err)
		}
	}
	slices.Reverse(passed)
	gone := slices.Concat(left, passed)
	kept, err := h.kept(ctx, refs[0].list, gone, newest)
	if err != nil {
		return err
	}
	for _, r := range kept {
		h.missing(l.name(number), r.id)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.report.Rows += found
	h.report.Trimmed += len(gone) - len(kept)
	if kind := refs[0].list>>32 - accountTrades; kind < uint64(len(h.found)) &&
		int(number) < len(h.found[kind]) {
		h.found[kind][number] = h.found[kind][number] || found > 0
	}
	return nil
}

// kept returns the missing rows that the list should still hold, in the order of their ids. newest
// is the id of an existing row of the same run; 0: unknown.
func (h *rowAudit) kept(ctx context.Context, list uint64, missing []rowRef,
	newest uint64) ([]rowRef, error) {
	l, number := &h.lists[list>>32], uint32(list)
	read := func(fn func(id uint64, row any) bool) error {
		if err := l.read(ctx, number, 0, func(id, _ uint64, row any) bool {
			return fn(id, row)
		}); err != nil {
			return fmt.Errorf("reading %s: %w", l.name(number), err)
		}
		return nil
	}
	from := func(end uint64) []rowRef {
		i, _ := slices.BinarySearchFunc(missing,
			end, func(r rowRef, end uint64) int { return cmp.Compare(r.id, end) })
		return missing[i:]
	}
	if l.permanent {
		return missing, nil
	}
	if h.earlier {
		missing = from(newest)
	}
	if l.keep > 0 && len(missing) > 0 {
		h.mu.Lock()
		end := h.ends[list]
		h.mu.Unlock()
		if len(from(end)) > 0 { // the list's end may have moved since
			n := 0
			err := read(func(id uint64, _ any) bool {
				if n++; n == l.keep {
					end = id
				}
				return n < l.keep
			})
			if err != nil {
				return nil, err
			}
			h.mu.Lock()
			h.ends[list] = end
			h.mu.Unlock()
		}
		missing = from(end)
	}
	if h.earlier && len(missing) > 0 {
		err := read(func(id uint64, row any) bool {
			if l.earlier(row) {
				newest = id
			}
			return newest != id
		})
		if err != nil {
			return nil, err
		}
		missing = from(newest)
	}
	return missing, nil
}
