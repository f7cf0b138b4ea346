package state

import (
	"errors"
	"maps"
	"slices"

	"exchange/core/event"
)

// History returns the id of the state's history. It is zero before the first record, and in a
// restored state not served since.
func (s *State) History() event.HistoryID { return s.history }

// ForgetHistory clears the history's id of a state that goes into another store, whose first start
// assigns a new one.
func (s *State) ForgetHistory() { s.history = event.HistoryID{} }

// newHistory sets the id of the history that begins here. Codes mailed before it expire. A code
// whose mail is still pending is replaced, because the mailer writes a mail's text when it sends
// the mail: the code of the earlier history would be void by then.
func (s *State) newHistory(r *event.Record) error {
	if r.History.IsZero() || r.History == s.history {
		return errors.New("the new history has no id, or the id of the current one")
	}
	s.history = r.History
	for _, w := range s.withdrawals {
		w.VoidCode()
	}
	for _, id := range slices.Sorted(maps.Values(s.outbox.codes)) {
		w := s.withdrawals[s.Mail(id).Withdrawal.ID]
		w.Reissue(r.TimeUs)
		w.Renewed = true
		s.mail(r.TimeUs, w)
	}
	return nil
}
