package actors

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"exchange/actors/committed"
	"exchange/actors/mailbox"
	"exchange/actors/metrics"
	"exchange/core/event"
	"exchange/core/state"
)

// ErrNeverMailed is wrapped by permanent errors of Options.Mail: the mail is given up.
var ErrNeverMailed = errors.New("trying again is useless")

// A mailer sends the mails of the outbox, one at a time, and removes each sent one. Accounts take
// turns, and an account whose mail fails waits before its next, so it delays no other account's
// codes. The outbox is part of the state, so a crash loses no mail, but may repeat the last. The
// mailer's goroutine owns it.
type mailer struct {
	out     mailerOut
	life    *mailbox.Life
	meter   *metrics.Engine
	options *Options
	log     *slog.Logger
	history event.HistoryID

	newest    uint64                // id of the newest mail that it has queued
	mailCount int                   // mails in its queues; some may have left the outbox
	queues    map[uint32]*mailQueue // by account
	turns     []*mailQueue          // the same, in turn order
	unremoved map[uint64]string     // sent or given up, with the reason; still in the outbox

	ctx        context.Context    // of the mail in progress
	cancelSend context.CancelFunc // cancels ctx
	newMail    chan struct{}      // capacity 1: the outbox has a new mail
	quit       chan struct{}      // closed: no further mail is started
	quitOnce   sync.Once          // of quit
	finished   chan struct{}      // closed at the goroutine's end
}

// mailerOut reads and changes the outbox, and provides the contents of mails.
type mailerOut interface {
	FollowUp(q committed.Question) error
	removeMail(id uint64, reason string) error // removes a mail from the outbox
	Code(w *state.Withdrawal) string
	CurrencyCode(number uint16) string
}

// A mailQueue holds the mails of one account.
type mailQueue struct {
	account  uint32
	ids      []uint64 // of mails, the next one first
	failures int      // since the last success
	next     time.Time
}

// Bounds of the mailer.
const (
	mailLeast    = time.Second // between two tries of one account, doubled after each
	mailMost     = 10 * time.Minute
	mailLifetime = 24 * time.Hour // after which a mail is given up
	mailPage     = 100            // mails per read of the outbox
	mailSlack    = 1000           // queued beyond twice the outbox, until a rebuild
)

func newMailer(o *Options, out mailerOut, life *mailbox.Life, meter *metrics.Engine,
	history event.HistoryID) *mailer {
	m := &mailer{out: out, life: life, meter: meter, options: o, log: o.Log, history: history,
		queues: map[uint32]*mailQueue{}, unremoved: map[uint64]string{},
		newMail: make(chan struct{}, 1), quit: make(chan struct{}), finished: make(chan struct{})}
	m.ctx, m.cancelSend = context.WithCancel(context.Background())
	return m
}

// wake signals a new mail in the outbox. It never waits.
func (m *mailer) wake() {
	select {
	case m.newMail <- struct{}{}:
	default:
	}
}

// Run sends mails until the engine ends.
func (m *mailer) Run() {
	defer close(m.finished)
	tick := time.NewTicker(mailLeast)
	defer tick.Stop()
	for {
		select {
		case <-m.quit:
			return
		case <-m.life.Over():
			return
		case <-m.life.Dead():
			return
		case <-tick.C:
		case <-m.newMail:
		}
		m.round()
	}
}

// round sends all mails that are due.
func (m *mailer) round() {
	m.retryRemovals()
	m.loadNew()
	for q := m.turn(); q != nil; q = m.turn() {
		m.serve(q)
		select {
		case <-m.newMail: // another account may be due now
			m.loadNew()
		default:
		}
	}
}

// stop lets the mailer finish the mail in progress, within half of the remaining time.
func (m *mailer) stop(ctx context.Context) {
	m.quitOnce.Do(func() { close(m.quit) })
	half := ctx
	if end, bounded := ctx.Deadline(); bounded {
		var cancel context.CancelFunc
		half, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	defer context.AfterFunc(half, m.cancelSend)()
	select {
	case <-m.finished:
	case <-m.life.Dead():
	case <-ctx.Done():
	}
}

// loadNew queues the outbox's new mails. It rebuilds the queues when too many of their mails have
// left the outbox without it.
func (m *mailer) loadNew() {
	if m.mailCount > 2*int(m.meter.Outbox.Load())+mailSlack {
		m.newest, m.mailCount = 0, 0
		for _, q := range m.queues {
			q.ids = nil
		}
	}
	for more := true; more; {
		r := m.readOutbox(m.newest, mailPage)
		if r == nil {
			return
		}
		for i := range r.Mails {
			m.newest = r.Mails[i].ID
			if _, over := m.unremoved[m.newest]; !over {
				m.queue(r.Accounts[i].ID, m.newest)
			}
		}
		more = len(r.Mails) == mailPage
	}
}

// readOutbox reads the next mails of the outbox; nil if it is unreadable just now.
func (m *mailer) readOutbox(after uint64, most int) *committed.Outbox {
	q := &committed.Outbox{After: after, Limit: most}
	if err := m.out.FollowUp(q); err != nil {
		return nil
	}
	return q
}

func (m *mailer) queue(account uint32, id uint64) {
	q := m.queues[account]
	if q == nil {
		q = &mailQueue{account: account}
		m.queues[account] = q
		m.turns = append(m.turns, q)
	}
	q.ids = append(q.ids, id)
	m.mailCount++
}

// turn returns the queue of the next account with a due mail. It returns nil if there is none, or
// if no further mail may be started.
func (m *mailer) turn() *mailQueue {
	select {
	case <-m.quit:
		return nil
	case <-m.life.Over():
		return nil
	case <-m.life.Dead():
		return nil
	default:
	}
	now, n := time.Now(), 0
	for i, q := range m.turns {
		switch {
		case now.Before(q.next):
		case len(q.ids) == 0:
			delete(m.queues, q.account)
			continue
		default:
			m.turns = append(slices.Delete(m.turns, n, i+1), q)
			return q
		}
		m.turns[n] = q
		n++
	}
	clear(m.turns[n:])
	m.turns = m.turns[:n]
	return nil
}

// serve tries an account's next mail, if it is still in the outbox.
func (m *mailer) serve(q *mailQueue) {
	id := q.ids[0]
	r := m.readOutbox(id-1, 1)
	if r == nil {
		q.next = time.Now().Add(mailLeast)
		return
	}
	q.ids = q.ids[1:]
	m.mailCount--
	if len(r.Mails) == 0 || r.Mails[0].ID != id {
		return // it has left the outbox
	}
	mail, account := &r.Mails[0], r.Accounts[0].Name // withdrawal 0: about an account
	err := m.options.Mail(m.ctx, m.compose(mail, &r.Accounts[0]))
	switch now := time.Now(); {
	case err == nil:
		q.failures = 0
		m.done(id, "")
	case errors.Is(err, ErrNeverMailed), now.Sub(time.UnixMicro(mail.TimeUs)) > mailLife(mail):
		m.log.Error("a mail is given up", "mail", id, "account", account, "withdraw",
			mail.Withdrawal.ID, "error", err)
		m.done(id, err.Error())
	default:
		wait := min(mailLeast<<min(q.failures, 16), mailMost)
		q.failures++
		q.next = now.Add(wait)
		q.ids = append(q.ids, id) // after the account's others
		m.mailCount++
		m.log.Warn("a mail was not sent, it is tried again", "mail", id, "account", account,
			"withdraw", mail.Withdrawal.ID, "again_in", wait, "error", err)
	}
}

// mailLife returns how long a mail is tried: one about an account as long as a hold can last.
func mailLife(mail *state.Mail) time.Duration {
	if mail.Change.Account != 0 {
		return withdrawalHold
	}
	return mailLifetime
}

// done removes a mail from the outbox, now or, on an error, in a later round.
func (m *mailer) done(id uint64, reason string) {
	reason = reason[:min(len(reason), MaxMessage)]
	if err := m.out.removeMail(id, reason); err != nil {
		m.unremoved[id] = reason
		m.log.Warn("a mail is still in the outbox, and is taken out later", "mail", id, "error",
			err)
	}
}

// retryRemovals removes the mails that done could not.
func (m *mailer) retryRemovals() {
	for _, id := range slices.Sorted(maps.Keys(m.unremoved)) {
		if m.out.removeMail(id, m.unremoved[id]) != nil {
			return
		}
		delete(m.unremoved, id)
	}
}

func (m *mailer) compose(mail *state.Mail, to *committed.AccountInfo) *Mail {
	c := &Mail{id: mail.ID, history: m.history, To: to.Email, Account: to.Name,
		Change: mail.Change}
	if mail.Change.Account != 0 {
		c.To = mail.Change.To
		return c
	}
	w := &mail.Withdrawal
	c.Currency, c.Withdrawal = m.out.CurrencyCode(w.Currency), *w
	if w.Status == event.WithdrawalNew {
		c.Code, c.Valid = m.out.Code(w), m.options.Withdrawal.CodeValid
	}
	return c
}
