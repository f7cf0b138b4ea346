package conformance

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"exchange/persistence"
)

// action returns one with plain values.
func action(seq uint64) persistence.Action {
	return persistence.Action{Seq: seq, TimeUs: 1_700_000_000_000_000 + int64(seq),
		Operator: "operator",
		What:     fmt.Sprintf("change %d", seq)}
}

func (w *world) wantActions(q persistence.ActionQuery, want []persistence.Action) {
	w.Helper()
	var got []persistence.Action
	w.must(w.s.Actions(w.ctx, q, func(a *persistence.Action) bool {
		got = append(got, *a)
		return true
	}))
	if !slices.Equal(got, want) {
		w.Fatalf("%+v answers %s, want %s", q, ids(got, actionID), ids(want, actionID))
	}
}

func (w *world) actionLog() {
	w.open(persistence.Retention{Trades: 1, Orders: 1, Candles: 1})
	m := &model{}
	for round := range uint64(5) {
		var writes persistence.Writes
		for i := range uint64(300) {
			a := action(1 + 1000*round + 3*i)
			if i%100 == 0 {
				a.Operator, a.What = strings.Repeat("w", 256), strings.Repeat("x", 4096)
			}
			writes.Actions = append(writes.Actions, a)
		}
		w.apply(1, &writes)
		m.add(&writes)
	}
	for _, before := range []uint64{0, 1, 2, 1000, 1001, 1002, 2500, math.MaxUint64} {
		q := persistence.ActionQuery{Before: before}
		w.wantActions(q, m.actionsOf(q))
	}
	w.again(persistence.Retention{})
	w.wantActions(persistence.ActionQuery{}, m.actionsOf(persistence.ActionQuery{}))
}
