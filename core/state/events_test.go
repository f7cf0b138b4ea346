package state

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"exchange/core/event"
)

// notEvents are the kinds of records of an account that are no events of it.
var notEvents = []event.Kind{event.KindRefusal, event.KindCodeRefused,
	event.KindSwitch, event.KindSettings}

func TestEachAccountKeepsItsNewestEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		newest := map[uint32]uint64{}
		records, d := drawDecider(t, 60, nil)
		s := New()
		for i := range records {
			apply(t, s, records[i])
			for _, a := range s.Accounts() {
				if d.x.Accounts[a.ID-1].Touched(s.Seq()) == s.Seq() &&
					!slices.Contains(notEvents, records[i].Kind) {
					newest[a.ID] = s.Seq()
				}
				if a.lastEvent != newest[a.ID] {
					t.Fatalf("record %+v: the newest event of %s is %d, want %d", records[i],
						a.Name, a.lastEvent, newest[a.ID])
				}
			}
		}
		if what := differs(s, d.x); what != "" {
			t.Fatal(what)
		}
	})
}
