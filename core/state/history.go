package state

import (
	"errors"
	"maps"
	"slices"

	"exchange/core/event"
)

// History returns the id of the state's history. It is zero before the first record, and in a
// restored state that was not served since.
func (s *State) History() event.HistoryID { return s.history }

// ForgetHistory takes the history's id out of a state that goes into another store: its first start
// names a history of its own.
func (s *State) ForgetHistory() { s.history = event.HistoryID{} }

// newHistory names the history that begins here. Codes that were mailed before it expire. A code
// whose mail still waits is made anew, because the mailer writes a mail's text when it sends the
// mail. By then the code of the earlier history would be void.
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
