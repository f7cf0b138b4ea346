package state

import (
	"testing"

	"pgregory.net/rapid"

	"exchange/core/event"
)

// toldTo returns the accounts that a record is an event of, from its fields alone.
func toldTo(r *event.Record) map[uint32]bool {
	list := map[uint32]bool{}
	switch r.Kind {
	case event.KindDeposit:
		list[r.Deposit.Account] = true
	case event.KindToldFreeze:
		list[r.Freeze.Account] = true
	case event.KindAdjusted:
		list[r.Adjusted.Account] = true
	case event.KindCancel, event.KindSwept:
		list[r.Cancel.Account] = true
	case event.KindWithdrawal, event.KindNamedWithdrawal:
		list[r.Withdrawal.Account] = true
	case event.KindWithdrawalMoved:
		list[r.WithdrawalMoved.Account] = true
	case event.KindExpired:
		for i := range r.Expired {
			list[r.Expired[i].Account] = true
		}
	case event.KindOrder, event.KindInstructed, event.KindStop, event.KindTriggered,
		event.KindAmended:
		list[r.Order.Account] = true
		for i := range r.Order.Trades {
			t := &r.Order.Trades[i]
			list[t.MakerAccount] = true
			if !t.TakerFee.IsZero() || !t.MakerFee.IsZero() {
				list[r.Order.FeeAccount] = true
			}
		}
	}
	return list
}

func TestEachAccountKnowsItsNewestEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		newest := map[uint32]uint64{}
		records, d := drawDecider(t, 60, nil)
		s := New()
		counted := rapid.IntRange(0, len(records)).Draw(t, "counted")
		for i := range records {
			apply(t, s, records[i])
			for account := range toldTo(&records[i]) {
				newest[account] = s.Seq()
			}
			for _, a := range s.Accounts() {
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
