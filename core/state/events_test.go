package state

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"exchange/core/event"
)

// untold are the kinds of records that are of an account, and no event of it.
var untold = []event.Kind{event.KindRefusal, event.KindCodeRefused,
	event.KindSwitch, event.KindSettings}

func TestEachAccountKnowsItsNewestEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		newest := map[uint32]uint64{}
		records, d := drawDecider(t, 60, nil)
		s := New()
		counted := rapid.IntRange(0, len(records)).Draw(t, "counted")
		for i := range records {
			apply(t, s, records[i])
			for _, a := range s.Accounts() {
				if d.x.Accounts[a.ID-1].Touched(s.Seq()) == s.Seq() &&
					!slices.Contains(untold, records[i].Kind) {
					newest[a.ID] = s.Seq()
				}
				if a.lastEvent != newest[a.ID] {
					t.Fatalf("record %+v: the newest event of %s is %d, want %d", records[i],
						a.Name, a.lastEvent, newest[a.ID])
				}
			}
		}
		// a state that counts since later is the same once the other forgets as much
		late := New()
		apply(t, late, records[:counted]...)
		late.CountAfter(late.Seq())
		apply(t, late, records[counted:]...)
		s.CountAfter(uint64(counted))
		if s.CountAfter(uint64(counted) / 2); s.Hash() != late.Hash() ||
			s.Counted() != uint64(counted) {
			t.Fatalf("they differ, counted after %d", s.Counted())
		}
		if what := differs(s, d.x); what != "" {
			t.Fatal(what)
		}
	})
}
