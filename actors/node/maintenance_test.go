package node

import (
	"testing"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// Clients of a follower may do the same, and the next leader continues it.
func TestFollowersApplyMaintenanceWithCancels(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, nil)
		r := c.next()
		ann := fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": coin})
		b := c.branch((r.at + 1) % len(c.nodes))
		sell := &actors.OrderRequest{Pair: r.Pairs()[0], Side: trading.Sell, Price: 100e8,
			Amount: coin / 100}
		for nonce := uint64(1); nonce <= 2; nonce++ {
			c := must[*actors.Command](t)(r.Place(ann, nonce, sell))
			if c.Outcome() != actors.Accepted {
				t.Fatal(c.Record())
			}
			c.Free()
		}
		must[actors.Admin](t)(r.SetMaintenance(t.Context(), "test", event.Maintenance{On: true,
			Cancels: true}))
		succeeds(t, b.Ask(new(committed.StatusNow), nil, 0))
		if b.Commands.Writable() != actors.ErrMaintenance || b.Commands.Cancelling() != nil {
			t.Error("the follower has not applied the maintenance")
		}
		there := b.Commands.Key([]byte(ann.Public))
		w := *sell
		w.Pair = b.Pairs()[0]
		list := []*actors.Command{actors.NewOrder(there, 3, &w), actors.NewCancel(there, 3, 1,
			event.ClientID{})}
		errs := make([]error, 2)
		if err := b.Commands.DoAll(list, errs); err != nil || list[0] != nil ||
			errs[0] != actors.ErrMaintenance || list[1] == nil ||
			list[1].Outcome() != actors.Accepted {
			t.Fatalf("a batch by the follower: %v, %v", err, errs)
		}
		list[1].Free()
		if _, err := b.Commands.Do(actors.NewOrder(there, 4, &w)); err != actors.ErrMaintenance {
			t.Errorf("an order by the follower: %v", err)
		}
		c2 := must[*actors.Command](t)(b.Commands.Do(actors.NewCancelAll(there, 5,
			actors.CancelFilter{})))
		if c2.Outcome() != actors.Accepted {
			t.Error("a cancel by the follower is refused")
		}
		c2.Free()
	})
}
