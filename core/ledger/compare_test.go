package ledger

import (
	"testing"

	"pgregory.net/rapid"

	"exchange/core/event"
	"exchange/core/trading"
)

// A side has one account's open orders, as a side of a comparison.
type side struct {
	open OpenOrders
	ids  ClientIDs
}

func (s *side) orders() Orders { return Orders{Open: &s.open, IDs: &s.ids} }

func (s *side) add(o OpenOrder, client event.ClientID) {
	s.open.Add(o.ID, o.Pair, o.Side)
	s.ids.Open(o.ID, client, 1)
}

func (s *side) remove(id uint64) {
	if s.open.Remove(id) {
		s.ids.Close(id)
	}
}

// clientOf gives every other order a client order id.
func clientOf(order uint64) event.ClientID {
	if order%2 == 0 {
		return event.ClientID{}
	}
	return id(order)
}

// drawSides draws two equal sides.
func drawSides(t *rapid.T) (one, other *side, orders []OpenOrder) {
	one, other = new(side), new(side)
	for n := range uint64(rapid.IntRange(0, 200).Draw(t, "orders")) {
		o := OpenOrder{n + 1, rapid.Uint16Range(1, 3).Draw(t, "pair"),
			trading.Side(rapid.IntRange(1, 2).Draw(t, "side"))}
		one.add(o, clientOf(o.ID))
		other.add(o, clientOf(o.ID))
		if rapid.IntRange(0, 3).Draw(t, "closes") == 0 {
			one.remove(o.ID)
			other.remove(o.ID)
			continue
		}
		orders = append(orders, o)
	}
	return one, other, orders
}

// compared goes through both sides in steps of n, and calls between after each.
func compared(one, other *side, n int, between func()) (steps int, differ *Difference) {
	var c Comparison
	for left := 0; left == 0 && differ == nil; steps++ {
		if left, differ = c.Next(one.orders(), other.orders(), n); left == 0 {
			between()
		}
	}
	return steps, differ
}

func TestAComparisonOfOpenOrdersFindsEachDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one, other, orders := drawSides(t)
		n := rapid.IntRange(1, 60).Draw(t, "n")
		steps, differ := compared(one, other, n, func() {})
		if differ != nil || steps != len(orders)/n+1 {
			t.Fatalf("equal sides: %d steps of %d for %d orders, %+v", steps, n, len(orders),
				differ)
		}
		if len(orders) == 0 {
			return
		}
		victim := rapid.SampledFrom(orders).Draw(t, "victim")
		changed, left := victim, false
		switch rapid.IntRange(0, 4).Draw(t, "change") {
		case 0:
			left = true
			other.remove(victim.ID)
		case 1:
			changed.Pair++
			other.open.Remove(victim.ID)
			other.open.Add(changed.ID, changed.Pair, changed.Side)
		case 2:
			changed.Side = victim.Side.Opposite()
			other.open.Remove(victim.ID)
			other.open.Add(changed.ID, changed.Pair, changed.Side)
		case 3:
			other.ids.Close(victim.ID)
			other.ids.Open(victim.ID, id(1_000_000), 1)
		case 4: // the id leads to another order
			if clientOf(victim.ID).IsZero() {
				return
			}
			name, placedUs := other.ids.Close(victim.ID)
			other.ids.Open(1_000_000, name, placedUs)
			other.ids.Open(victim.ID, name, placedUs)
		}
		for _, flip := range [...]bool{false, true} {
			a, b := one, other
			if flip {
				a, b = other, one
			}
			_, differ := compared(a, b, n, func() {})
			if differ == nil {
				t.Fatalf("no difference at %+v", victim)
			}
			got, same := differ.one, differ.other
			if flip {
				got, same = differ.other, differ.one
			}
			if got.OpenOrder != victim || !left && same.OpenOrder != changed {
				t.Fatalf("%+v, want %+v and %+v", differ, victim, changed)
			}
		}
	})
}

func TestAComparisonOfOpenOrdersGoesOnWhileBothSidesChangeAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one, other, orders := drawSides(t)
		next := uint64(1000)
		_, differ := compared(one, other, rapid.IntRange(1, 60).Draw(t, "n"), func() {
			if len(orders) > 0 {
				gone := rapid.SampledFrom(orders).Draw(t, "gone").ID
				one.remove(gone)
				other.remove(gone)
			}
			if next < 1100 {
				next += rapid.Uint64Range(1, 2).Draw(t, "gap")
				o := OpenOrder{next, 1, trading.Buy}
				one.add(o, clientOf(next))
				other.add(o, clientOf(next))
			}
		})
		if differ != nil {
			t.Fatalf("%+v", differ)
		}
	})
}
