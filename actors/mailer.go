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

// ErrNeverMailed is wrapped by an error of Options.Mail after which trying again is useless: the
// mail is given up.
var ErrNeverMailed = errors.New("trying again is useless")

// A mailer sends the mails of the outbox, one at a time, and takes out each that was sent. Accounts
// take turns, and one whose mail fails waits before its next mail, so no account keeps another's
// codes from being sent. The outbox is part of the state, so a crash forgets no mail; one that was
// sent just before may be sent again. The mailer's goroutine owns it.
type mailer struct {
	out     mailerOut
	life    *mailbox.Life
	meter   *metrics.Engine
	options *Options
	log     *slog.Logger
	history event.HistoryID

	seen   uint64                // id of the newest mail in or behind its queues
	known  int                   // mails in its queues; some may have left the outbox
	queues map[uint32]*mailQueue // by account
	turns  []*mailQueue          // the same; the first has the next turn
	over   map[uint64]string     // sent, or given up for a reason; still in the outbox

	ctx      context.Context    // of the mail that is being sent
	hurry    context.CancelFunc // ends ctx
	news     chan struct{}      // capacity 1: the outbox has a new mail
	last     chan struct{}      // closed: no other mail is begun
	ending   sync.Once          // of last
	finished chan struct{}      // closed when the goroutine has ended
}

// mailerOut reads and changes the outbox, and knows what a mail says.
type mailerOut interface {
	FollowUp(q committed.Question) error
	mailed(id uint64, reason string) error // takes a mail out of the outbox
	Code(w *state.Withdrawal) string
	CurrencyCode(number uint16) string
}

// A mailQueue has the mails of one account.
type mailQueue struct {
	account  uint32
	mails    []uint64 // ids, the next one first
	failures int      // since one was sent
	next     time.Time
}

// Bounds of the mailer.
const (
	mailLeast    = time.Second // between two tries of one account, doubled after each
	mailMost     = 10 * time.Minute
	mailLifetime = 24 * time.Hour // after which a mail is given up
	mailPage     = 100            // mails in one look at the outbox
	mailSlack    = 1000           // mails known beyond twice the outbox, until all are read anew
)

func newMailer(o *Options, out mailerOut, life *mailbox.Life, meter *metrics.Engine,
	history event.HistoryID) *mailer {
	m := &mailer{out: out, life: life, meter: meter, options: o, log: o.Log, history: history,
		queues: map[uint32]*mailQueue{}, over: map[uint64]string{}, news: make(chan struct{}, 1),
		last: make(chan struct{}), finished: make(chan struct{})}
	m.ctx, m.hurry = context.WithCancel(context.Background())
	return m
}

// wake tells the mailer that the outbox has a new mail. It never waits.
func (m *mailer) wake() {
	select {
	case m.news <- struct{}{}:
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
		case <-m.last:
			return
		case <-m.life.Over():
			return
		case <-m.life.Dead():
			return
		case <-tick.C:
		case <-m.news:
		}
		m.round()
	}
}

// round sends all mails that may be sent now.
func (m *mailer) round() {
	m.tell()
	m.learn()
	for q := m.turn(); q != nil; q = m.turn() {
		m.serve(q)
		select {
		case <-m.news: // another account may have a turn now
			m.learn()
		default:
		}
	}
}

// stop lets the mailer end with the mail that it is sending. That mail has half of the time that is
// left.
func (m *mailer) stop(ctx context.Context) {
	m.ending.Do(func() { close(m.last) })
	half := ctx
	if end, bounded := ctx.Deadline(); bounded {
		var cancel context.CancelFunc
		half, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	defer context.AfterFunc(half, m.hurry)()
	select {
	case <-m.finished:
	case <-m.life.Dead():
	case <-ctx.Done():
	}
}

// learn puts the new mails of the outbox into the queues. It makes the queues anew when too many of
// their mails have left the outbox by themselves.
func (m *mailer) learn() {
	if m.known > 2*int(m.meter.Outbox.Load())+mailSlack {
		m.seen, m.known = 0, 0
		for _, q := range m.queues {
			q.mails = nil
		}
	}
	for more := true; more; {
		r := m.look(m.seen, mailPage)
		if r == nil {
			return
		}
		for i := range r.Mails {
			m.seen = r.Mails[i].ID
			if _, over := m.over[m.seen]; !over {
				m.queue(r.Accounts[i].ID, m.seen)
			}
		}
		more = len(r.Mails) == mailPage
	}
}

// look reads the next mails of the outbox; nil if it cannot be read just now.
func (m *mailer) look(after uint64, most int) *committed.Outbox {
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
	q.mails = append(q.mails, id)
	m.known++
}

// turn returns the queue of the next account that has a mail and need not wait. It returns nil if
// there is none, or if no other mail may be begun.
func (m *mailer) turn() *mailQueue {
	select {
	case <-m.last:
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
		case len(q.mails) == 0:
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

// serve tries the next mail of an account, if it is still in the outbox.
func (m *mailer) serve(q *mailQueue) {
	id := q.mails[0]
	r := m.look(id-1, 1)
	if r == nil {
		q.next = time.Now().Add(mailLeast)
		return
	}
	q.mails = q.mails[1:]
	m.known--
	if len(r.Mails) == 0 || r.Mails[0].ID != id {
		return // it has left the outbox
	}
	mail, account := &r.Mails[0], r.Accounts[0].Name // withdrawal 0: it is about an account
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
		q.mails = append(q.mails, id) // behind the account's others
		m.known++
		m.log.Warn("a mail was not sent, it is tried again", "mail", id, "account", account,
			"withdraw", mail.Withdrawal.ID, "again_in", wait, "error", err)
	}
}

// mailLife is for how long a mail is tried: one about an account for as long as a hold can last.
func mailLife(mail *state.Mail) time.Duration {
	if mail.Change.Account != 0 {
		return withdrawalHold
	}
	return mailLifetime
}

// done takes a mail out of the outbox, now or, if that cannot be just now, in a later round.
func (m *mailer) done(id uint64, reason string) {
	reason = reason[:min(len(reason), MaxMessage)]
	if err := m.out.mailed(id, reason); err != nil {
		m.over[id] = reason
		m.log.Warn("a mail is still in the outbox, and is taken out later", "mail", id, "error",
			err)
	}
}

// tell takes those mails out of the outbox that done could not.
func (m *mailer) tell() {
	for _, id := range slices.Sorted(maps.Keys(m.over)) {
		if m.out.mailed(id, m.over[id]) != nil {
			return
		}
		delete(m.over, id)
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
