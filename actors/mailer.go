package actors

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"exchange/core/event"
	"exchange/core/state"
)

// A Mail is what an account has to be told about one of its withdraws: the code to confirm it with, or
// that it was refused.
type Mail struct {
	ID       uint64 // the same for every try
	To       string
	Account  string
	Currency string
	Code     string // "": the withdraw was refused
	Valid    time.Duration
	Withdraw state.Withdraw
}

// A mailer sends what is in the outbox, oldest first, one at a time, and takes out what was sent. The
// outbox is in the state, so no mail is forgotten in a crash; one that was sent just before may be sent
// again. Its goroutine owns it.
type mailer struct {
	engine *Engine
	send   func(context.Context, *Mail) error
	log    *slog.Logger
	tries  map[uint64]mailTry
}

type mailTry struct {
	failures int
	next     time.Time
	over     bool   // sent or given up; the outbox is to be told
	reason   string // why it was given up
}

// Bounds of the mailer.
const (
	mailTimeout  = 30 * time.Second // of one try
	mailLeast    = time.Second      // between two tries of one mail, doubled after each
	mailMost     = 10 * time.Minute
	mailLifetime = 24 * time.Hour // after which it is given up
	mailPage     = 100            // mails looked at in one round
)

func (m *mailer) run() {
	tick := time.NewTicker(mailLeast)
	defer tick.Stop()
	for {
		select {
		case <-m.engine.stop:
			return
		case <-m.engine.dead:
			return
		case <-tick.C:
		case <-m.engine.mailbox:
		}
		m.round()
	}
}

// round tries every mail of the outbox that is due.
func (m *mailer) round() {
	r := NewRead(ReadOutbox)
	r.Limit, r.FollowUp = mailPage, true
	if err := m.engine.Ask(r, nil, 0); err != nil {
		return
	}
	now := time.Now()
	if len(r.Mails) < mailPage { // all that there are
		maps.DeleteFunc(m.tries, func(id uint64, _ mailTry) bool {
			return !slices.ContainsFunc(r.Mails, func(mail state.Mail) bool { return mail.ID == id })
		})
	}
	for i := range r.Mails {
		mail := &r.Mails[i]
		switch t := m.tries[mail.ID]; {
		case t.over:
			m.done(mail.ID, t.reason)
		case !now.Before(t.next):
			m.try(mail, &r.Accounts[i], now)
		}
	}
	r.Free()
}

func (m *mailer) try(mail *state.Mail, to *AccountInfo, now time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), mailTimeout)
	defer cancel()
	err := m.send(ctx, m.compose(mail, to))
	if err == nil {
		m.done(mail.ID, "")
		return
	}
	if now.Sub(time.UnixMicro(mail.TimeUs)) > mailLifetime {
		m.log.Error("a mail is given up", "mail", mail.ID, "withdraw", mail.Withdraw.ID, "error", err)
		m.done(mail.ID, err.Error())
		return
	}
	t := m.tries[mail.ID]
	wait := min(mailLeast<<min(t.failures, 16), mailMost)
	m.tries[mail.ID] = mailTry{failures: t.failures + 1, next: now.Add(wait)}
	m.log.Warn("a mail was not sent, it is tried again", "mail", mail.ID, "withdraw", mail.Withdraw.ID, "again_in", wait, "error", err)
}

// done tells the outbox, now or, if that cannot be just now, in a later round.
func (m *mailer) done(id uint64, reason string) {
	if err := m.engine.mailed(id, reason[:min(len(reason), maxMessage)]); err != nil {
		m.tries[id] = mailTry{over: true, reason: reason}
		m.log.Warn("a mail is still in the outbox, and is taken out later", "mail", id, "error", err)
		return
	}
	delete(m.tries, id)
}

func (m *mailer) compose(mail *state.Mail, to *AccountInfo) *Mail {
	w := &mail.Withdraw
	c := &Mail{ID: mail.ID, To: to.Email, Account: to.Name, Currency: m.engine.CurrencyCode(w.Currency), Withdraw: *w}
	if w.Status == event.WithdrawNew {
		c.Code, c.Valid = m.engine.sealer.Code(w.ID, w.Issue), m.engine.opts.Withdraw.CodeValid
	}
	return c
}
