package conformance

import (
	"fmt"
	"slices"

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
