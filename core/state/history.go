package state

import (
	"errors"

	"exchange/core/event"
)

// History is the id of the history that this state is of; zero before the first record, and of a
// state that is restored and was not served since.
func (s *State) History() event.HistoryID { return s.history }

// ForgetHistory takes the history's id out of a state that goes into another store: its first start
// names a history of its own.
func (s *State) ForgetHistory() { s.history = event.HistoryID{} }

// newHistory names the history that begins here. Codes that were mailed before it expire.
func (s *State) newHistory(id event.HistoryID) error {
	if id.IsZero() || id == s.history {
		return errors.New("a history begins without an id, or with the one that it has")
	}
	s.history = id
	for _, w := range s.withdraws {
		w.Stale = w.Status == event.WithdrawNew
	}
	return nil
}
