package actors

import (
	"sync/atomic"
	"testing"

	"exchange/core/money"
	"exchange/persistence"
)

// While a member does not read them, freezes are no events of their accounts. They hold all the
// same.
func TestAFreezeIsAnEventOnceAllMembersReadIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var older atomic.Bool
		older.Store(true)
		c := newCluster(t, func(_ int, o *Options) {
			o.Store = olderMembers{o.Store.(persistence.Replica), &older,
				persistence.FormatToldFreezes}
		})
		r := c.next()
		fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": 100 * coin})
		eventually(t, "all members read the newest format", func() bool {
			return r.node.replica.(olderMembers).Replica.Standing().Format >=
				persistence.FormatToldFreezes
		})
		events := func() (last uint64, frozen bool) {
			t.Helper()
			if err := r.node.onSide(func() {
				a := r.committed.State().AccountByName("ann")
				last, frozen = a.LastEvent(), a.Frozen
			}); err != nil {
				t.Fatal(err)
			}
			return last, frozen
		}
		before, _ := events()
		must[Admin](t)(r.Freeze("test", "ann", true))
		if last, frozen := events(); last != before || !frozen {
			t.Errorf("the newest event is %d, and was %d; frozen %v", last, before, frozen)
		}
		older.Store(false)
		must[Admin](t)(r.Freeze("test", "ann", false))
		if last, frozen := events(); last <= before || frozen {
			t.Errorf("the newest event is %d, and was %d; frozen %v", last, before, frozen)
		}
	})
}
