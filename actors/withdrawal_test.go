package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/persistence"
)

// A postman accepts the mails of an engine, and refuses the first few.
type postman struct {
	mu     sync.Mutex
	mails  []Mail
	refuse int
	tries  int
}

func (p *postman) send(_ context.Context, m *Mail) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tries++; p.tries <= p.refuse {
		return errors.New("the mail server is not there")
	}
	p.mails = append(p.mails, *m)
	return nil
}

func (p *postman) delivered() []Mail {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Mail(nil), p.mails...)
}

// A teller is an engine with one account that has an e-mail address and 10 BTC.
type teller struct {
	t     *testing.T
	at    place
	store persistence.Store
	o     Options
	e     *Engine
	key   *directory.Key
	nonce uint64
	post  *postman
}

func newTeller(t *testing.T, at place, change func(*Options)) *teller {
	b := &teller{t: t, at: at, store: at(), post: &postman{}}
	b.o = testOptions(b.store)
	b.o.Mail = b.post.send
	if change != nil {
		change(&b.o)
	}
	b.e = start(t, b.o)
	must[Admin](t)(b.e.CreateAccount("test", "ann", "ann@example.org"))
	must[Admin](t)(b.e.CreateKey("test", "ann", "key-of-ann", "secret", event.AllPermissions, nil))
	must[Admin](t)(b.e.Deposit("test", "ann", "BTC", 10*coin, "r"))
	b.key = b.e.Key([]byte("key-of-ann"))
	return b
}

// onTeller runs a test with a teller on each store, and ends it.
func onTeller(t *testing.T, change func(*Options), test func(t *testing.T, b *teller)) {
	t.Helper()
	onEachStore(t, func(t *testing.T, fresh places) {
		b := newTeller(t, fresh(t), change)
		test(t, b)
		b.end()
	})
}

// outcomeOf returns the end of a command, in words.
func outcomeOf(c *Command, err error) string {
	if err != nil {
		return err.Error()
	}
	defer c.Free()
	r := c.Record()
	switch {
	case c.Outcome() == Accepted && r.Kind == event.KindWithdrawal:
		return strings.TrimSpace(fmt.Sprint("withdraw ", r.Withdrawal.ID, " ",
			r.Withdrawal.ClientID))
	case r.Kind == event.KindRefusal && r.Refusal.Reason == event.RefusedWithdrawalID:
		return fmt.Sprint("already used by withdraw ", c.TakenBy())
	case c.Outcome() == Accepted && r.Kind == event.KindWithdrawalStatus:
		return fmt.Sprint("status ", r.WithdrawalStatus.To)
	case r.Kind == event.KindCodeRefused && r.CodeRefused.Expired:
		return "code expired"
	case r.Kind == event.KindCodeRefused:
		return "wrong code"
	case c.Outcome() == Refused:
		return fmt.Sprint("refused for ", r.Refusal.Reason)
	}
	return "accepted"
}

func (b *teller) next() uint64 { b.nonce++; return b.nonce }

func (b *teller) ask(amount money.Amount) string {
	return outcomeOf(b.e.Do(NewWithdrawal(b.key, b.next(), 1, amount, "bc1q-somewhere")))
}

func (b *teller) confirm(id uint64, code string) string {
	return outcomeOf(b.e.Do(NewConfirmation(b.key, b.next(), id, code)))
}

func (b *teller) expect(got, want string) {
	b.t.Helper()
	if got != want {
		b.t.Errorf("got %q, want %q", got, want)
	}
}

// balance returns the account's committed balance and reserve of BTC.
func (b *teller) balance() string {
	b.t.Helper()
	r := &committed.Wallet{Account: b.key.Account.ID}
	succeeds(b.t, b.e.Ask(r, nil, 0))
	return r.Holdings[0].Balance.String() + " with " + r.Holdings[0].Reserve.String() + " reserved"
}

// code waits for the newest mail with a code of a withdrawal.
func (b *teller) code(n int) string {
	b.t.Helper()
	eventually(b.t, "the mail is sent", func() bool { return len(b.post.delivered()) >= n })
	return b.post.delivered()[n-1].Code
}

func (b *teller) restart() {
	b.t.Helper()
	b.e.Abandon()
	b.reopen()
}

// reopen starts the engine again after its end.
func (b *teller) reopen() {
	b.t.Helper()
	succeeds(b.t, b.store.Close())
	b.store = b.at()
	b.o.Store = b.store
	b.e = start(b.t, b.o)
	b.key = b.e.Key([]byte("key-of-ann"))
}

func (b *teller) end() {
	b.t.Helper()
	if err := b.e.VerifyAtRest(); err != nil {
		b.t.Error(err)
	}
	report, err := b.e.Audit(context.Background(), nil, func(uint64, uint64) {})
	if err != nil || len(report.Differences) > 0 {
		b.t.Errorf("the audit finds %v, %v", report.Differences, err)
	}
	stop(b.t, b.e)
	succeeds(b.t, b.store.Close())
}

func TestAWithdrawalCompletesAndSurvivesARestart(t *testing.T) {
	onTeller(t, nil, func(t *testing.T, b *teller) {
		b.expect(b.ask(4*coin), "withdraw 1")
		b.expect(b.balance(), "10 with 4 reserved")
		b.expect(b.ask(7*coin), "refused for 2")
		code := b.code(1)
		mails := b.post.delivered()
		if m := mails[0]; len(mails) != 1 || m.To != "ann@example.org" || m.Withdrawal.ID != 1 ||
			m.Withdrawal.Amount != 4*coin ||
			m.Currency != "BTC" || m.Withdrawal.Address != "bc1q-somewhere" {
			t.Errorf("the mail is %+v", m)
		}
		b.outboxIs(0)
		b.expect(outcomeOf(b.e.Do(NewConfirmation(b.customer("ben"), 1, 1, code))),
			fmt.Sprint("refused for ", event.RefusedWithdrawal))
		b.restart()
		b.expect(b.confirm(1, "00"+code), "wrong code")
		b.expect(b.confirm(1, code), "status 20")
		b.expect(b.confirm(1, code), "refused for 11")
		b.expect(b.confirm(2, code), "refused for 11")
		b.restart()
		b.expect(outcomeOf(b.e.SetWithdrawalStatus("moderator", 1, event.WithdrawalApproved, "")),
			"status 30")
		b.expect(b.balance(), "6 with 0 reserved")
		if _, err := b.e.SetWithdrawalStatus("moderator", 1, event.WithdrawalApproved,
			""); err == nil {
			t.Error("it is approved twice")
		}
		for _, to := range []uint8{0, event.WithdrawalNew, event.WithdrawalVerified,
			event.WithdrawalCancelled} {
			b.ask(1)
			id := b.e.ids.withdrawal.Load()
			var refused *RequestError
			if _, err := b.e.SetWithdrawalStatus("moderator", id, to,
				""); !errors.As(err, &refused) {
				t.Errorf("a moderator gives status %d: %v", to, err)
			}
			b.expect(outcomeOf(b.e.Do(NewWithdrawalCancel(b.key, b.next(), id))), "status 50")
		}
		b.expect(outcomeOf(b.e.Do(NewWithdrawalCancel(b.key, b.next(), 1))), "refused for 11")

		b.expect(b.ask(coin), "withdraw 6")
		b.expect(outcomeOf(b.e.Do(NewWithdrawalCancel(b.key, b.next(), 6))), "status 50")
		b.expect(b.balance(), "6 with 0 reserved")

		b.expect(b.ask(coin), "withdraw 7")
		b.expect(b.confirm(7, codeOf(b.t, b.e, 7)), "status 20")
		b.expect(outcomeOf(b.e.SetWithdrawalStatus("moderator", 7, event.WithdrawalRefused,
			"the address is not ours to pay")), "status 40")
		b.expect(b.balance(), "6 with 0 reserved")
		eventually(t, "the refusal is mailed", func() bool {
			mails := b.post.delivered()
			last := mails[len(mails)-1]
			return last.Code == "" && last.Withdrawal.ID == 7 &&
				last.Withdrawal.Details == "the address is not ours to pay"
		})
		var closed []string
		succeeds(t, b.e.Ask(new(committed.Barrier), nil, 0))
		err := committed.History(b.e.Door).Withdrawals(context.Background(),
			persistence.WithdrawalQuery{Account: b.key.Account.ID},
			func(w *persistence.Withdrawal) bool {
				closed = append(closed, fmt.Sprint(w.ID, " ", w.Status, " ", w.Details))
				return true
			})
		if got := strings.Join(closed, "; "); err != nil ||
			got != "7 40 the address is not ours to pay; 6 50 ; 5 50 ; 4 50 ; 3 50 ; 2 50 ; 1 30 " {
			t.Errorf("the history has %q, %v", got, err)
		}
	})
}

func TestAMailSentDuringAnAuditIsNotSentAgain(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		var b *teller
		post := &postman{}
		b = newTeller(t, fresh(t), func(o *Options) {
			o.Mail = func(ctx context.Context, m *Mail) error {
				b.e.paused.Store(true) // an audit begins just now
				return post.send(ctx, m)
			}
		})
		b.expect(b.ask(coin), "withdraw 1")
		eventually(t, "the outbox cannot be updated", func() bool {
			return slices.ContainsFunc(b.e.Stats().TurnedAway, func(c Count) bool {
				return c.Name == "paused" && c.N > 0
			})
		})
		b.e.paused.Store(false)
		eventually(t, "it is updated", func() bool { return b.e.meter.Outbox.Load() == 0 })
		if n := len(post.delivered()); n != 1 {
			t.Errorf("the mail was sent %d times", n)
		}
		b.end()
	})
}

func TestAMailIsTakenOutOfTheOutboxOnce(t *testing.T) {
	onTeller(t, func(o *Options) { o.Mail = unsent }, func(t *testing.T, b *teller) {
		b.ask(coin)
		var wg sync.WaitGroup
		for range 5 { // a mailer that was not answered repeats its success
			wg.Go(func() {
				if err := b.e.removeMail(1, ""); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if err := b.e.removeMail(77, ""); err != nil {
			t.Error(err)
		}
		b.restart()
	})
}

// Without a mail server no code could reach the owner. Earlier withdrawals continue.
func TestWithoutAMailServerNoWithdrawalIsAccepted(t *testing.T) {
	onTeller(t, nil, func(t *testing.T, b *teller) {
		b.ask(coin)
		b.ask(coin)
		first := b.code(1)
		b.o.Mail = nil
		b.restart()
		before := b.e.committed.Released()
		b.expect(b.ask(coin), ErrNoMail.Error())
		if got := b.e.committed.Released(); got != before {
			t.Errorf("a withdrawal that is not taken leaves %d records", got-before)
		}
		b.nonce-- // it has not used its nonce
		b.expect(b.confirm(1, first), "status 20")
		b.expect(outcomeOf(b.e.Do(NewWithdrawalCancel(b.key, b.next(), 2))), "status 50")
		b.expect(outcomeOf(b.e.SetWithdrawalStatus("moderator", 1, event.WithdrawalApproved, "")),
			"status 30")
		b.expect(b.balance(), "9 with 0 reserved")
	})
}

// logCapture stores logged text. Any goroutine may use it.
type logCapture struct {
	mu   sync.Mutex
	text strings.Builder
}

func (h *logCapture) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(b)
}

func (h *logCapture) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// An approval despite a freeze is logged before the store has it, so even if its operator never
// gets the outcome. An ordinary approval is not logged.
func TestAnApprovalDespiteAFreezeIsLoggedBeforeItIsSent(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		var log logCapture
		var g *gate
		b := newTeller(t, fresh(t), func(o *Options) {
			g = newGate(o.Store)
			o.Store, o.Log = g, slog.New(slog.NewTextHandler(&log, nil))
			// The store is held as long as the test likes.
			o.Timing.Request, o.Timing.Stall, o.Timing.OwnerStale = time.Minute, time.Minute,
				time.Minute
		})
		for id := uint64(1); id <= 2; id++ {
			b.expect(b.ask(coin), fmt.Sprint("withdraw ", id))
			b.expect(b.confirm(id, codeOf(t, b.e, id)), "status 20")
		}
		b.expect(outcomeOf(b.e.ApproveDespiteFreeze("moderator", 1, "")), "status 30")
		const warning = "a withdrawal of a frozen account"
		if text := log.String(); strings.Contains(text, warning) {
			t.Errorf("of an account that is not frozen: %s", text)
		}
		must[Admin](t)(b.e.Freeze("olga", "ann", true))
		g.set(func() { g.holding = true })
		end := make(chan string)
		go func() { end <- outcomeOf(b.e.ApproveDespiteFreeze("moderator", 2, "")) }()
		eventually(t, "it is logged while the store does not have it",
			func() bool { return strings.Contains(log.String(), warning) })
		for _, word := range []string{"level=WARN", "operator=moderator", "withdraw=2",
			"account=ann"} {
			if text := log.String(); !strings.Contains(text, word) {
				t.Errorf("without %s: %s", word, text)
			}
		}
		b.expect(b.balance(), "9 with 1 reserved")
		g.set(func() { g.holding = false })
		b.expect(<-end, "status 30")
		b.expect(outcomeOf(b.e.ApproveDespiteFreeze("moderator", 2, "")),
			"there is no pending withdrawal 2")
		if n := strings.Count(log.String(), warning); n != 1 {
			t.Errorf("there are %d lines of it", n)
		}
		b.end()
	})
}
