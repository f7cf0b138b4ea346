package state

import (
	"iter"
	"slices"

	"exchange/core/event"
)

// A Mail is a mail to be sent. It is about a withdrawal, with its code or about its refusal; or it
// tells of a change of an account.
type Mail struct {
	ID         uint64
	TimeUs     int64
	Withdrawal Withdrawal    // the withdrawal when the mail was written
	Change     AccountChange // of no account: the mail is about the withdrawal
}

// An AccountChange is what a mail tells of an account: that it has another e-mail address, or that
// API keys of it have ended.
type AccountChange struct {
	Account uint32
	To      string // address that the mail goes to
	What    Told
	HeldUs  int64 // until when no money is withdrawn; 0: of KeysLost
}

// Told is what an AccountChange tells. The numbers are stored.
type Told uint8

const (
	formerAddress Told = iota // the reader's address is the account's no more
	NewAddress                // the reader's address is the account's from now on
	KeysLost                  // API keys are revoked, because no server's key opens their secrets
)

// Account returns the id of the account that a mail is for.
func (m *Mail) Account() uint32 {
	if m.Change.Account != 0 {
		return m.Change.Account
	}
	return m.Withdrawal.Account
}

// hasCode reports whether a mail has the code of a withdrawal.
func (m *Mail) hasCode() bool { return m.Withdrawal.Status == event.WithdrawalNew }

// maxNotices and maxChanges are how many mails about refused withdrawals, and about changes of it,
// wait for one account at most. One more replaces the oldest.
const maxNotices, maxChanges = 100, 20

// An outbox has the mails to be sent. It is bounded. There is at most one mail with a code for each
// withdrawal that is to be confirmed, and at most maxNotices
// and maxChanges of others for each account.
type outbox struct {
	mails map[uint64]*Mail
	order []uint64          // ids, oldest first; of some the mail is gone
	codes map[uint64]uint64 // id of the mail with a withdrawal's code, by the withdrawal's id
}

// outboxSlack is how many ids of removed mails may be kept beyond the number of mails.
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

// remove takes a mail out and returns it; nil: there is no such mail.
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

// Mails returns the number of mails to be sent.
func (s *State) Mails() int { return len(s.outbox.mails) }

// Mail returns the mail with that id that is to be sent, nil if there is none. Read only.
func (s *State) Mail(id uint64) *Mail { return s.outbox.mails[id] }

// MailsAfter yields the mails with a higher id that are to be sent, oldest first. Read only.
func (s *State) MailsAfter(id uint64) iter.Seq[*Mail] { return s.outbox.after(id) }

// mail writes a mail about a withdrawal: its newest code, or its refusal.
func (s *State) mail(timeUs int64, w *Withdrawal) {
	s.unmail(s.outbox.codes[w.ID])
	s.lastMail++
	m := &Mail{ID: s.lastMail, TimeUs: timeUs, Withdrawal: *w}
	m.Withdrawal.ClientID = event.ClientID{} // no mail tells it
	s.post(m)
}

func (s *State) post(m *Mail) {
	s.outbox.put(m)
	if m.hasCode() {
		return
	}
	list, most := s.accounts[m.Account()-1].own().waiting(m)
	if *list = append(*list, m.ID); len(*list) > most {
		s.unmail((*list)[0])
	}
}

// waiting returns the list of the account's mails that a mail without a code is in, and how many
// that has at most. Refusals crowd out no mail about a change.
func (r *rare) waiting(m *Mail) (list *[]uint64, most int) {
	if m.Change.Account != 0 {
		return &r.changes, maxChanges
	}
	return &r.notices, maxNotices
}

// unmail takes a mail out, because it was sent, given up, or superseded. An unknown id is ignored.
func (s *State) unmail(id uint64) {
	m := s.outbox.remove(id)
	if m == nil || m.hasCode() {
		return
	}
	list, _ := s.accounts[m.Account()-1].own().waiting(m)
	*list = slices.DeleteFunc(*list, func(n uint64) bool { return n == id })
}
