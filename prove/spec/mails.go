package spec

import "slices"

// A Mail is a pending mail to an account.
type Mail struct {
	ID         uint64
	TimeUs     int64
	Account    uint32
	About      MailKind
	Withdrawal Withdrawal // when the mail was written; of Code and Refusal
	To         string     // address, of a change of the account
	HoldEndsUs int64      // end of the hold of its money, of another address
}

// A MailKind is a kind of mail.
type MailKind uint8

// The kinds of mail.
const (
	Code MailKind = iota
	Refusal
	FormerAddress
	newAddress
	keysLost
)

// mostRefusals and mostChanges bound the pending mails of one account about refusals, and about
// changes of the account.
const mostRefusals, mostChanges = 100, 20

// send adds a mail. If too many of its kind are pending, the oldest is dropped.
func (m *Exchange) send(x Mail) {
	m.LastMail++
	x.ID = m.LastMail
	m.Mails = append(m.Mails, x)
	kind, most := func(o Mail) MailKind { return min(o.About, FormerAddress) }, mostChanges
	if x.About == Refusal {
		most = mostRefusals
	}
	var same []uint64
	for _, o := range m.Mails {
		if o.Account == x.Account && kind(o) == kind(x) {
			same = append(same, o.ID)
		}
	}
	if x.About != Code && len(same) > most {
		m.dropMails(func(o *Mail) bool { return o.ID == same[0] })
	}
}

// sendCode sends a withdrawal's newest code, replacing a pending older one.
func (m *Exchange) sendCode(w *Withdrawal, timeUs int64) {
	m.dropCode(w)
	m.send(Mail{TimeUs: timeUs, Account: w.Account, About: Code, Withdrawal: *w})
}

func (m *Exchange) dropCode(w *Withdrawal) {
	m.dropMails(func(x *Mail) bool { return x.About == Code && x.Withdrawal.ID == w.ID })
}

func (m *Exchange) dropMails(which func(*Mail) bool) {
	m.Mails = slices.DeleteFunc(m.Mails, func(x Mail) bool { return which(&x) })
}
