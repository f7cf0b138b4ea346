package state

import (
	"testing"

	"exchange/core/event"
)

// cycle requests a withdrawal for bob and ends it at once.
func cycle(t *testing.T, s *State, id uint64, ends ...uint8) {
	t.Helper()
	apply(t, s, event.Record{Kind: event.KindWithdrawal, TimeUs: 50,
		Withdrawal: event.Withdrawal{ID: id, Account: 2, Currency: 2, Amount: 1}})
	for _, to := range ends {
		apply(t, s, event.Record{Kind: event.KindWithdrawalStatus, TimeUs: 51,
			WithdrawalStatus: event.WithdrawalStatus{ID: id, Account: 2, Currency: 2, Amount: 1,
				To: to}})
	}
}

func sameImage(t *testing.T, s *State) {
	t.Helper()
	back, err := Decode(s.AppendTo(nil))
	if err != nil || back.Hash() != s.Hash() || back.Mails() != s.Mails() {
		t.Fatalf("its image: %v", err)
	}
	for _, any := range []*State{s, back} { // both continue alike
		cycle(t, any, any.LastWithdrawal()+1, event.WithdrawalVerified, event.WithdrawalRefused)
	}
	if back.Hash() != s.Hash() {
		t.Error("the decoded state continues differently")
	}
}

func TestFinishedWithdrawalsLeaveNoCodes(t *testing.T) {
	s := small()
	for id := uint64(1); id <= 5000; id++ {
		cycle(t, s, id, event.WithdrawalCancelled)
	}
	if s.Mails() != 0 || len(s.outbox.codes) != 0 || len(s.outbox.order) > outboxSlack {
		t.Errorf("%d mails, %d codes and %d ids", s.Mails(), len(s.outbox.codes),
			len(s.outbox.order))
	}
	sameImage(t, s)
}

func TestTheNewestRefusalsAreMailed(t *testing.T) {
	s := small()
	const n = maxNotices + 50
	for id := uint64(1); id <= n; id++ {
		cycle(t, s, id, event.WithdrawalVerified, event.WithdrawalRefused)
	}
	out := mailsOf(s)
	if len(out) != maxNotices || out[0].Withdrawal.ID != n-maxNotices+1 ||
		out[maxNotices-1].Withdrawal.ID != n {
		t.Errorf("%d mails, about %d and so on", len(out), out[0].Withdrawal.ID)
	}
	apply(t, s, mailed(out[3].ID))
	sameImage(t, s) // which refuses one more: in the place of the sent one
	if now := mailsOf(s); len(now) != maxNotices || now[0] != out[0] || now[3] != out[4] {
		t.Errorf("%d mails, about %d and so on", len(now), now[0].Withdrawal.ID)
	}
}

func TestMailsAfterAnIDAreInOrder(t *testing.T) {
	s := small()
	for id := uint64(1); id <= 500; id++ {
		cycle(t, s, id)
	}
	for id := uint64(1); id <= 500; id++ {
		if id%3 != 0 {
			apply(t, s, mailed(id))
		}
	}
	for _, after := range []uint64{0, 1, 2, 3, 200, 201, 498, 499, 500, 501} {
		next := after + 3 - after%3
		for m := range s.MailsAfter(after) {
			if m.ID != next {
				t.Fatalf("after %d comes %d, want %d", after, m.ID, next)
			}
			next += 3
		}
		if next != max(after+3-after%3, 501) {
			t.Errorf("after %d they end before %d", after, next)
		}
	}
}
