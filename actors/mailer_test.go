package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"exchange/actors/directory"
	"exchange/core/event"
)

// customer returns one more account with an e-mail address and 10 BTC.
func (b *teller) customer(name string) *directory.Key {
	b.t.Helper()
	must[Admin](b.t)(b.e.CreateAccount("test", name, name+"@example.org"))
	must[Admin](b.t)(b.e.CreateKey("test", name, "key-of-"+name, "secret", event.AllPermissions,
		nil))
	must[Admin](b.t)(b.e.Deposit("test", name, "BTC", 10*coin, "reference of "+name))
	return b.e.Key([]byte("key-of-" + name))
}

// asks requests n withdrawals of an account.
func (b *teller) asks(key *directory.Key, from, n int) {
	b.t.Helper()
	for i := range n {
		got := outcomeOf(b.e.Do(NewWithdrawal(key, uint64(from+i), 1, 1, "x")))
		if !strings.HasPrefix(got, "withdraw ") {
			b.t.Fatal(got)
		}
	}
}

func (b *teller) sentTo(address string) (n int) {
	for _, m := range b.post.delivered() {
		if m.To == address {
			n++
		}
	}
	return n
}

func (b *teller) outboxIs(n int64) {
	b.t.Helper()
	eventually(b.t, fmt.Sprint("there are ", n, " mails in the outbox"), func() bool {
		return b.e.meter.Outbox.Load() == n
	})
}

func TestAnAccountWhoseMailsFailDelaysNoOtherAccountsCodes(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		at := fresh(t)
		post := &postman{}
		b := newTeller(t, at, func(o *Options) {
			o.Limits.PendingWithdrawals = 3 * mailPage
			o.Mail = func(ctx context.Context, m *Mail) error {
				if m.To == "ann@example.org" {
					return errors.New("come back later")
				}
				return post.send(ctx, m)
			}
		})
		b.post = post
		b.asks(b.key, 1, 2*mailPage+1)
		b.asks(b.customer("ben"), 1, 3)
		eventually(t, "ben's codes are sent", func() bool {
			return b.sentTo("ben@example.org") == 3
		})
		b.restart() // and when the start finds all of them
		b.asks(b.customer("cid"), 1, 1)
		eventually(t, "cid's code is sent", func() bool { return b.sentTo("cid@example.org") == 1 })
		b.outboxIs(2*mailPage + 1)
		b.end()
	})
}

func TestAccountsTakeTurnsWithTheirMails(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		post, first, goOn := &postman{}, make(chan struct{}, 1), make(chan struct{})
		b := newTeller(t, fresh(t), func(o *Options) {
			o.Mail = func(ctx context.Context, m *Mail) error {
				select {
				case first <- struct{}{}:
					<-goOn
				default:
				}
				return post.send(ctx, m)
			}
		})
		b.post = post
		b.asks(b.key, 1, 50)
		b.asks(b.customer("ben"), 1, 2)
		b.asks(b.customer("cid"), 1, 1)
		close(goOn)
		b.outboxIs(0)
		var order []string
		for _, m := range b.post.delivered() {
			order = append(order, strings.TrimSuffix(m.To, "@example.org"))
		}
		if n := len(order); n != 53 || slices.Index(order, "cid") > 4 ||
			slices.Index(order[slices.Index(order, "ben")+1:], "ben") > 2 {
			t.Errorf("%d mails are sent, in this order: %v", n, order)
		}
		b.end()
	})
}

func TestAMailThatCanNeverBeSentIsGivenUpAtOnce(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		at := fresh(t)
		tries := make(chan uint64, 100)
		b := newTeller(t, at, func(o *Options) {
			o.Mail = func(_ context.Context, m *Mail) error {
				tries <- m.id
				return fmt.Errorf("550 no such user: %w", ErrNeverMailed)
			}
		})
		b.asks(b.key, 1, 3)
		eventually(t, "all are tried", func() bool { return len(tries) == 3 })
		b.outboxIs(0)
		b.restart()
		b.asks(b.key, 4, 1)
		eventually(t, "one more is tried", func() bool { return len(tries) == 4 })
		b.outboxIs(0)
		b.end()
	})
}

// The mailer drops mails that left the outbox without it.
func TestTheMailerDropsMailsThatLeftTheOutbox(t *testing.T) {
	onTeller(t, func(o *Options) { o.Mail = unsent }, func(t *testing.T, b *teller) {
		o := b.e.opts
		o.Mail = b.post.send
		// without its goroutine: the test does its work
		m := newMailer(&o, b.e, &b.e.life, b.e.meter, b.e.history)
		most := 0
		const n = mailSlack + 100
		for id := uint64(1); id <= n; id++ {
			b.expect(b.ask(1), fmt.Sprint("withdraw ", id))
			m.loadNew()
			b.expect(outcomeOf(b.e.Do(NewWithdrawalCancel(b.key, b.next(), id))), "status 50")
			most = max(most, m.mailCount)
		}
		if most > mailSlack+10 {
			t.Errorf("the mailer holds %d mails, of which none is left", most)
		}
		b.expect(b.ask(1), fmt.Sprint("withdraw ", n+1))
		m.loadNew()
		for q := m.turn(); q != nil; q = m.turn() {
			m.serve(q)
		}
		if mails := b.post.delivered(); len(mails) != 1 || mails[0].Withdrawal.ID != n+1 ||
			m.mailCount != 0 || len(m.turns) != 0 {
			t.Errorf("sent are %+v, queued are %d", mails, m.mailCount)
		}
	})
}

func TestAMailThatIsBeingSentWhenTheEngineStopsIsNotSentAgain(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		at := fresh(t)
		sending, goOn := make(chan struct{}, 10), make(chan struct{})
		var b *teller
		post := &postman{}
		b = newTeller(t, at, func(o *Options) {
			o.Mail = func(ctx context.Context, m *Mail) error {
				sending <- struct{}{}
				<-goOn
				return post.send(ctx, m)
			}
		})
		b.post = post
		b.asks(b.key, 1, 2)
		<-sending
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		stopped := make(chan error, 1)
		go func() { stopped <- b.e.Stop(ctx) }()
		eventually(t, "the engine stops", func() bool {
			return errors.Is(b.e.Ready(), ErrStopping)
		})
		close(goOn)
		succeeds(t, <-stopped)
		if n := len(b.post.delivered()); n != 1 {
			t.Errorf("%d mails are sent", n)
		}
		b.reopen()
		b.outboxIs(0)
		if mails := b.post.delivered(); len(mails) != 2 || mails[0].id == mails[1].id {
			t.Errorf("sent are %+v", mails)
		}
		b.end()
	})
}

// slowStop announces its deadline, and does not end then: the mailer's half of that time is short,
// and a slow machine still stops in order.
type slowStop struct {
	context.Context
	end time.Time
}

func (e slowStop) Deadline() (time.Time, bool) { return e.end, true }

func TestAMailServerThatHangsDoesNotKeepTheEngineFromStopping(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		at := fresh(t)
		sending := make(chan struct{}, 10)
		b := newTeller(t, at, func(o *Options) {
			o.Mail = func(ctx context.Context, m *Mail) error {
				sending <- struct{}{}
				<-ctx.Done()
				return ctx.Err()
			}
		})
		b.asks(b.key, 1, 1)
		<-sending
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := b.e.Stop(slowStop{ctx, time.Now().Add(time.Second)}); err != nil {
			t.Errorf("the stop: %v", err)
		}
		b.o.Mail = b.post.send
		b.reopen()
		b.code(1)
		b.end()
	})
}
