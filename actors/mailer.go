package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/state"
)

// A Mail is what an account has to be told about one of its withdraws: the code to confirm it with,
// or that it was refused.
type Mail struct {
	ID       uint64 // the same for every try in one history
	History  event.HistoryID
	To       string
	Account  string
	Currency string
	Code     string // "": the withdraw was refused
	Valid    time.Duration
	Withdraw state.Withdraw
}

// MessageID is the same for every try in one history, and no other mail of this history or another
// one has the same. A mail that waits over a new history gets another: should the server have taken
// it just before, it cannot tell that the second is the same.
func (m *Mail) MessageID() string { return fmt.Sprintf("%s.%d", m.History, m.ID) }

// ErrNeverMailed is wrapped by an error of Options.Mail after which trying again is useless: the
// mail is given up.
var ErrNeverMailed = errors.New("trying again is useless")

// A mailer sends what is in the outbox, one mail at a time, and takes out what was sent. Accounts
// take turns, and one whose mail fails waits before its next one: none keeps another's codes from
// being sent. The outbox is in the state, so no mail is forgotten in a crash; one that was sent
// just before may be sent again. Its goroutine owns it.
type mailer struct {
	engine *Engine
	send   func(context.Context, *Mail) error
	log    *slog.Logger

	seen   uint64                // id of the newest mail that it has heard of
	known  int                   // mails in its queues; some may have left the outbox
	queues map[uint32]*mailQueue // by account
	turns  []*mailQueue          // the same; the first has the next turn
	over   map[uint64]string     // sent, or given up for a reason; the outbox is still to be told

	ctx      context.Context // of what is being sent
	hurry    context.CancelFunc
	last     chan struct{} // closed: no other mail is begun
	finished chan struct{}
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
	mailSlack    = 1000           // mails that may be known beside twice as many as there are
)

func newMailer(e *Engine) *mailer {
	m := &mailer{engine: e, send: e.opts.Mail, log: e.log, queues: map[uint32]*mailQueue{},
		over: map[uint64]string{},
		last: make(chan struct{}), finished: make(chan struct{})}
	m.ctx, m.hurry = context.WithCancel(context.Background())
	return m
}

// Run is the goroutine.
func (m *mailer) Run() {
	defer close(m.finished)
	tick := time.NewTicker(mailLeast)
	defer tick.Stop()
	for {
		select {
		case <-m.last:
			return
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

// round sends what may be sent now.
func (m *mailer) round() {
	m.tell()
	m.learn()
	for q := m.turn(); q != nil; q = m.turn() {
		m.serve(q)
		select {
		case <-m.engine.mailbox: // somebody else may have a turn now
			m.learn()
		default:
		}
	}
}

// stop lets the mailer end with the mail that it is sending, for which it has half of the time that
// is left.
func (m *mailer) stop(ctx context.Context) {
	close(m.last)
	half := ctx
	if end, bounded := ctx.Deadline(); bounded {
		var cancel context.CancelFunc
		half, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	defer context.AfterFunc(half, m.hurry)()
	select {
	case <-m.finished:
	case <-m.engine.dead:
	case <-ctx.Done():
	}
}

// learn puts what is new in the outbox into the queues. When too much of what they have left the
// outbox by itself, they are made anew.
func (m *mailer) learn() {
	if m.known > 2*int(m.engine.meter.Outbox.Load())+mailSlack {
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

// look reads the next mails of the outbox; nil if that cannot be just now.
func (m *mailer) look(after uint64, most int) *committed.Outbox {
	q := &committed.Outbox{After: after, Limit: most}
	if err := m.engine.FollowUp(q); err != nil {
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

// turn is the next account that has a mail and need not wait, nil if there is none, or no other
// mail is to be begun.
func (m *mailer) turn() *mailQueue {
	select {
	case <-m.last:
		return nil
	case <-m.engine.stop:
		return nil
	case <-m.engine.dead:
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
		return // it became useless
	}
	mail := &r.Mails[0]
	err := m.send(m.ctx, m.compose(mail, &r.Accounts[0]))
	switch now := time.Now(); {
	case err == nil:
		q.failures = 0
		m.done(id, "")
	case errors.Is(err, ErrNeverMailed), now.Sub(time.UnixMicro(mail.TimeUs)) > mailLifetime:
		m.log.Error("a mail is given up", "mail", id, "withdraw", mail.Withdraw.ID, "error", err)
		m.done(id, err.Error())
	default:
		wait := min(mailLeast<<min(q.failures, 16), mailMost)
		q.failures++
		q.next = now.Add(wait)
		q.mails = append(q.mails, id) // behind the account's others
		m.known++
		m.log.Warn("a mail was not sent, it is tried again", "mail", id, "withdraw",
			mail.Withdraw.ID, "again_in", wait, "error", err)
	}
}

// done tells the outbox, now or, if that cannot be just now, in a later round.
func (m *mailer) done(id uint64, reason string) {
	reason = reason[:min(len(reason), maxMessage)]
	if err := m.engine.mailed(id, reason); err != nil {
		m.over[id] = reason
		m.log.Warn("a mail is still in the outbox, and is taken out later", "mail", id, "error",
			err)
	}
}

// tell tells the outbox what it could not be told before.
func (m *mailer) tell() {
	for _, id := range slices.Sorted(maps.Keys(m.over)) {
		if m.engine.mailed(id, m.over[id]) != nil {
			return
		}
		delete(m.over, id)
	}
}

func (m *mailer) compose(mail *state.Mail, to *committed.AccountInfo) *Mail {
	w := &mail.Withdraw
	c := &Mail{ID: mail.ID, History: m.engine.history, To: to.Email, Account: to.Name,
		Currency: m.engine.CurrencyCode(w.Currency), Withdraw: *w}
	if w.Status == event.WithdrawNew {
		c.Code, c.Valid = m.engine.Code(w), m.engine.opts.Withdraw.CodeValid
	}
	return c
}
