package spec

import "slices"

// A Mail is one to be sent to an account.
type Mail struct {
	ID         uint64
	TimeUs     int64
	Account    uint32
	About      Subject
	Withdrawal Withdrawal // as it was when the mail was written, of Code and Refusal
	To         string     // address, of a change of the account
	HeldUs     int64      // until when its money is held, of another address
}

// A Subject is what a mail is about.
type Subject uint8

// The subjects.
const (
	Code Subject = iota
	Refusal
	FormerAddress
	newAddress
	keysLost
)

// mostRefusals and mostChanges are how many mails about refusals, and about changes of it, wait for
// one account at most.
const mostRefusals, mostChanges = 100, 20

// send adds a mail. If too many of its kind wait, the oldest goes.
func (m *Exchange) send(x Mail) {
	m.LastMail++
	x.ID = m.LastMail
	m.Mails = append(m.Mails, x)
	kind, most := func(o Mail) Subject { return min(o.About, FormerAddress) }, mostChanges
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

// sendCode sends a withdrawal's newest code, in the place of the one before.
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
