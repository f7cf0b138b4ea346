package actors

import (
	"strings"
	"sync/atomic"
	"testing"

	"exchange/core/money"
	"exchange/persistence"
)

// olderMembers is a store of a node, some of whose members do not read a format while older is set.
type olderMembers struct {
	persistence.Replica
	older  *atomic.Bool
	format uint8
}

func (s olderMembers) Standing() persistence.Standing {
	st := s.Replica.Standing()
	if s.older.Load() {
		st.Format = s.format - 1
	}
	return st
}

// withOlder is a cluster in which ann has money, and some members do not read a format until older
// is unset.
func withOlder(t *testing.T, format uint8) (c *cluster, r *reigning, older *atomic.Bool) {
	t.Helper()
	older = new(atomic.Bool)
	older.Store(true)
	c = newCluster(t, func(_ int, o *Options) {
		o.Store = olderMembers{o.Store.(persistence.Replica), older, format}
		o.Mail = new(postman).send
	})
	r = c.next()
	fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": 100 * coin})
	eventually(t, "all members read the newest format", func() bool {
		return r.node.replica.(olderMembers).Replica.Standing().Format >= format
	})
	return c, r, older
}

// While a member does not read such records, none is written, and nothing is done.
func TestWhatNotAllMembersReadIsNotWritten(t *testing.T) {
	admin := func(_ Admin, err error) string {
		if err != nil {
			return err.Error()
		}
		return accepted
	}
	for name, x := range map[string]struct {
		format uint8
		do     func(t *testing.T, r *reigning) string
	}{
		"adjustments": {persistence.FormatCorrections, func(t *testing.T, r *reigning) string {
			ann := r.Key([]byte("key-of-ann")).Account.ID
			return outcomeOf(r.Adjust("test", ann, 1, coin, "why", wantID(t, "one")))
		}},
		"ends of accounts": {persistence.FormatAccounts, func(t *testing.T, r *reigning) string {
			return admin(r.CloseAccount("test", "bob"))
		}},
		"addresses": {persistence.FormatAccounts, func(t *testing.T, r *reigning) string {
			return admin(r.SetEmail("test", "ann", "ann@new.example"))
		}},
		"maintenance": {persistence.FormatCancels, func(t *testing.T, r *reigning) string {
			if got := admin(r.SetMaintenance(t.Context(), "test", maintained)); got != accepted {
				t.Errorf("a plain maintenance: %s", got)
			}
			return admin(r.SetMaintenance(t.Context(), "test", cancelsOnly))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				_, r, older := withOlder(t, x.format)
				must[Admin](t)(r.CreateAccount("test", "bob", ""))
				if got := x.do(t, r); !strings.Contains(got, "not all nodes of the cluster") {
					t.Errorf("while one does not: %s", got)
				}
				older.Store(false)
				if got := x.do(t, r); got != accepted {
					t.Errorf("once all do: %s", got)
				}
			})
		})
	}
}

// While a member does not read them, freezes are no events of their accounts. They hold all the
// same.
func TestAFreezeIsAnEventOnceAllMembersReadIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, r, older := withOlder(t, persistence.FormatToldFreezes)
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
