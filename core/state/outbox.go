package state

import (
	"iter"
	"slices"

	"exchange/core/event"
)

// A Mail is one that is to be sent about a withdraw: with its code, or that it was refused.
type Mail struct {
	ID       uint64
	TimeUs   int64
	Withdraw Withdraw // as it was when the mail was written
}

// maxNotices is how many mails about refused withdraws wait for one account at most. One more takes
// the place of the oldest.
const maxNotices = 100

// An outbox has the mails that are to be sent. It is bounded: there is at most one mail with a code
// for each withdraw that is to be confirmed, and none for any other, and at most maxNotices of
// refusals for each account.
type outbox struct {
	mails map[uint64]*Mail
	order []uint64          // ids, oldest first; of some the mail is gone
	codes map[uint64]uint64 // the mail with a withdraw's code, by withdraw
}

// outboxSlack is how many ids of mails that are gone are kept beside as many as there are mails.
const outboxSlack = 64

func (o *outbox) put(m *Mail) {
	if o.mails == nil {
		o.mails, o.codes = make(map[uint64]*Mail), make(map[uint64]uint64)
	}
	o.mails[m.ID] = m
	o.order = append(o.order, m.ID)
	if m.Withdraw.Status == event.WithdrawNew {
		o.codes[m.Withdraw.ID] = m.ID
	}
}

// remove takes a mail out; nil if it is not there.
func (o *outbox) remove(id uint64) *Mail {
	m := o.mails[id]
	if m == nil {
		return nil
	}
	delete(o.mails, id)
	if m.Withdraw.Status == event.WithdrawNew {
		delete(o.codes, m.Withdraw.ID)
	}
	if len(o.order) > 2*len(o.mails)+outboxSlack {
		o.order = slices.DeleteFunc(o.order, func(id uint64) bool { return o.mails[id] == nil })
	}
	return m
}

// after are the mails with a higher id, oldest first.
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

// Mails is how many mails are to be sent.
func (s *State) Mails() int { return len(s.outbox.mails) }

// Mail is the one with that id that is to be sent, nil if there is none. Read only.
func (s *State) Mail(id uint64) *Mail { return s.outbox.mails[id] }

// MailsAfter are the mails with a higher id that are to be sent, oldest first. Read only.
func (s *State) MailsAfter(id uint64) iter.Seq[*Mail] { return s.outbox.after(id) }

// mail writes one about a withdraw: its newest code, or that it was refused.
func (s *State) mail(timeUs int64, w *Withdraw) {
	s.unmail(s.outbox.codes[w.ID])
	s.lastMail++
	s.post(&Mail{ID: s.lastMail, TimeUs: timeUs, Withdraw: *w})
}

func (s *State) post(m *Mail) {
	s.outbox.put(m)
	if m.Withdraw.Status == event.WithdrawNew {
		return
	}
	own := s.accounts[m.Withdraw.Account-1].own()
	if own.notices = append(own.notices, m.ID); len(own.notices) > maxNotices {
		s.unmail(own.notices[0])
	}
}

// unmail takes a mail out: it was sent, given up, or is of no use any more. One that is not there
// is gone already.
func (s *State) unmail(id uint64) {
	m := s.outbox.remove(id)
	if m == nil || m.Withdraw.Status == event.WithdrawNew {
		return
	}
	own := s.accounts[m.Withdraw.Account-1].own()
	own.notices = slices.DeleteFunc(own.notices, func(n uint64) bool { return n == id })
}
