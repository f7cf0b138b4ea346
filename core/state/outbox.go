package state

import (
	"iter"
	"slices"

	"exchange/core/event"
)

// A Mail is a mail to be sent: about a withdrawal, with its code or its refusal, or about a change
// of an account.
type Mail struct {
	ID         uint64
	TimeUs     int64
	Withdrawal Withdrawal    // copy at the time of the mail
	Change     AccountChange // of no account: the mail is about the withdrawal
}

// An AccountChange is a mail's notice of a new e-mail address, or of revoked API keys.
type AccountChange struct {
	Account    uint32
	To         string // recipient's address
	Kind       ChangeKind
	HoldEndsUs int64 // end of the hold, Unix microseconds; 0: of KeysLost
}

// ChangeKind is the kind of an AccountChange. The numbers are stored.
type ChangeKind uint8

const (
	formerAddress ChangeKind = iota // the recipient's address is no longer the account's
	NewAddress                      // the recipient's address is the account's from now on
	KeysLost                        // API keys are revoked: no server key opens their secrets
)

// Account returns the id of a mail's account.
func (m *Mail) Account() uint32 {
	if m.Change.Account != 0 {
		return m.Change.Account
	}
	return m.Withdrawal.Account
}

// hasCode reports whether a mail carries a withdrawal's code.
func (m *Mail) hasCode() bool { return m.Withdrawal.Status == event.WithdrawalNew }

// maxNotices and maxChanges bound the pending mails of an account about refused withdrawals and
// about changes. One more replaces the oldest.
const maxNotices, maxChanges = 100, 20

// An outbox holds the mails to be sent. It is bounded: at most one mail with a code for each
// unconfirmed withdrawal, and at most maxNotices and maxChanges of others for each account.
type outbox struct {
	mails map[uint64]*Mail
	order []uint64          // ids, oldest first; some mails are gone
	codes map[uint64]uint64 // id of the mail with a withdrawal's code, by the withdrawal's id
}

// outboxSlack bounds the ids of removed mails beyond the number of mails.
const outboxSlack = 64

func (o *outbox) put(m *Mail) {
	if o.mails == nil {
		o.mails, o.codes = make(map[uint64]*Mail), make(map[uint64]uint64)
	}
	o.mails[m.ID] = m
	o.order = append(o.order, m.ID)
	if m.hasCode() {
		o.codes[m.Withdrawal.ID] = m.ID
	}
}

// remove removes a mail and returns it; nil: there is no such mail.
func (o *outbox) remove(id uint64) *Mail {
	m := o.mails[id]
	if m == nil {
		return nil
	}
	delete(o.mails, id)
	if m.hasCode() {
		delete(o.codes, m.Withdrawal.ID)
	}
	if len(o.order) > 2*len(o.mails)+outboxSlack {
		o.order = slices.DeleteFunc(o.order, func(id uint64) bool { return o.mails[id] == nil })
	}
	return m
}

// after yields the mails with a higher id, oldest first.
func (o *outbox) after(id uint64) iter.Seq[*Mail] {
	return func(yield func(*Mail) bool) {
		first, found := slices.BinarySearch(o.order, id)
		if found {
			first++
		}
		for _, id := range o.order[first:] {
			if m := o.mails[id]; m != nil && !yield(m) {
				return
			}
		}
	}
}

// Mails returns the number of pending mails.
func (s *State) Mails() int { return len(s.outbox.mails) }

// Mail returns the pending mail with that id, nil if there is none. Read only.
func (s *State) Mail(id uint64) *Mail { return s.outbox.mails[id] }

// MailsAfter yields the pending mails with a higher id, oldest first. Read only.
func (s *State) MailsAfter(id uint64) iter.Seq[*Mail] { return s.outbox.after(id) }

// mail queues a mail about a withdrawal: its newest code, or its refusal.
func (s *State) mail(timeUs int64, w *Withdrawal) {
	s.removeMail(s.outbox.codes[w.ID])
	s.lastMail++
	m := &Mail{ID: s.lastMail, TimeUs: timeUs, Withdrawal: *w}
	m.Withdrawal.ClientID = event.ClientID{} // no mail contains it
	s.post(m)
}

func (s *State) post(m *Mail) {
	s.outbox.put(m)
	if m.hasCode() {
		return
	}
	list, most := s.accounts[m.Account()-1].own().waiting(m)
	if *list = append(*list, m.ID); len(*list) > most {
		s.removeMail((*list)[0])
	}
}

// waiting returns the list of the account's mails for a mail without a code, and its maximum
// length. Refusals crowd out no mail about a change.
func (r *rare) waiting(m *Mail) (list *[]uint64, most int) {
	if m.Change.Account != 0 {
		return &r.changeMails, maxChanges
	}
	return &r.noticeMails, maxNotices
}

// removeMail removes a mail that was sent, abandoned, or superseded. An unknown id is ignored.
func (s *State) removeMail(id uint64) {
	m := s.outbox.remove(id)
	if m == nil || m.hasCode() {
		return
	}
	list, _ := s.accounts[m.Account()-1].own().waiting(m)
	*list = slices.DeleteFunc(*list, func(n uint64) bool { return n == id })
}
