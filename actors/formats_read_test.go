package actors

import (
	"strings"
	"sync/atomic"
	"testing"

	"exchange/core/money"
	"exchange/persistence"
)

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
				var older atomic.Bool
				older.Store(true)
				c := newCluster(t, func(_ int, o *Options) {
					o.Store = olderMembers{o.Store.(persistence.Replica), &older, x.format}
				})
				r := c.next()
				fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": 100 * coin})
				must[Admin](t)(r.CreateAccount("test", "bob", ""))
				eventually(t, "all members read the newest format", func() bool {
					replica := r.node.replica.(olderMembers).Replica
					return replica.Standing().Format >= x.format
				})
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
