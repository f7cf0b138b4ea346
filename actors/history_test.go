package actors

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exchange/core/event"
	"exchange/core/state"
	"exchange/persistence"
	"exchange/persistence/memory"
)

// loseHead takes the HEAD away from a store that is closed.
func loseHead(t *testing.T, s persistence.Store) {
	t.Helper()
	if m, ok := s.(*memory.Store); ok {
		m.Head.Lose()
	} else if err := os.Remove(filepath.Join(strings.TrimPrefix(s.String(), "pebble:"),
		"HEAD.main")); err != nil {
		t.Fatal(err)
	}
}

// restartWithout starts again after a crash that took the HEAD.
func (b *teller) restartWithout(at place) {
	b.t.Helper()
	b.e.Abandon()
	if err := b.store.Close(); err != nil {
		b.t.Fatal(err)
	}
	loseHead(b.t, b.store)
	b.store = at()
	b.o.Store = b.store
	b.e = start(b.t, b.o)
	b.key = b.e.Key([]byte("key-of-ann"))
}

// issued waits for the mail with that issue of withdrawal 1's code, in the history of now.
func (b *teller) issued(issue uint32) (code string) {
	b.t.Helper()
	eventually(b.t, fmt.Sprint("issue ", issue, " is mailed"), func() bool {
		for _, m := range b.post.delivered() {
			if m.Withdrawal.ID == 1 && m.Withdrawal.Issue == issue && m.history == b.e.history {
				code = m.Code
			}
		}
		return code != ""
	})
	b.allTold()
	return code
}

// allTold waits until no mail is in the outbox: a new history makes the code of one that is there
// anew.
func (b *teller) allTold() {
	b.t.Helper()
	eventually(b.t, "all mails are told", func() bool { return b.e.meter.Outbox.Load() == 0 })
}

func TestAStartWithoutHEADBeginsANewHistory(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		at := fresh(t)
		b := newTeller(t, at, nil)
		first := b.e.history
		if first.IsZero() {
			t.Fatal("a new store has no history")
		}
		b.ask(coin)
		code := b.code(1)
		b.allTold()
		b.restart(at)
		if b.e.history != first {
			t.Fatalf("an ordinary start goes from history %v to %v", first, b.e.history)
		}
		b.restartWithout(at)
		second := b.e.history
		if second == first {
			t.Fatal("a start without HEAD goes on with the history that it finds")
		}
		b.restart(at)
		if b.e.history != second {
			t.Fatalf("the start after it goes from history %v to %v", second, b.e.history)
		}
		// The code of before costs no try, as often as there are tries in all.
		for n := range b.o.Withdrawal.CodeTries {
			b.expect(b.confirm(1, code), "code expired")
			code = b.issued(uint32(n + 2))
			b.restartWithout(at)
		}
		b.expect(b.confirm(1, code), "code expired")
		b.expect(b.confirm(1, b.issued(uint32(b.o.Withdrawal.CodeTries+2))), "status 20")
		seen := map[string]Mail{}
		// one that was sent just before a crash is sent again
		for _, m := range b.post.delivered() {
			if before, there := seen[m.MessageID()]; there && before != m {
				t.Errorf("two mails have the Message-ID %s: %+v, %+v", m.MessageID(), before, m)
			}
			seen[m.MessageID()] = m
		}
		b.end()
	})
}

// A refusingStore takes no append.
type refusingStore struct{ persistence.Store }

func (refusingStore) Append(context.Context, persistence.Token, uint64, uint64, []byte) error {
	return errNoAnswer
}

func TestAStartThatEndsBeforeItsFirstRecordLeavesTheHEADMissing(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		at := fresh(t)
		b := newTeller(t, at, nil)
		first := b.e.history
		stop(t, b.e)
		if err := b.store.Close(); err != nil {
			t.Fatal(err)
		}
		loseHead(t, b.store)
		s := at()
		o := b.o
		o.Store, o.Timing.StallMax = refusingStore{s}, 1
		if _, err := Start(t.Context(), o); !errors.Is(err, ErrStalled) {
			t.Fatalf("a start whose records are not taken ends with %v", err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		b.store = at()
		if b.o.Store = b.store; !b.store.HeadMissing() {
			t.Error("the HEAD is there, and nothing was acknowledged")
		}
		b.e = start(t, b.o)
		if b.e.history == first || b.store.HeadMissing() {
			t.Error("the next start goes on with the history that it finds, or makes no HEAD")
		}
		b.end()
	})
}

// A restore helps an attacker most, because ids are given again, to other withdrawals.
func TestACodeOfBeforeARestoreConfirmsNothing(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		b := newTeller(t, fresh(t), nil)
		ben := b.customer("ben")
		b.ask(coin) // withdrawal 1, in the backup
		before := b.code(1)
		b.allTold()
		defer b.store.Close()
		copied, was := backUp(t, b.e)
		b.expect(outcomeOf(b.e.Do(NewWithdrawal(ben, 1, 1, coin, "bc1q-somewhere"))), "withdraw 2")
		bens := b.code(2)
		old := b.post.delivered()
		stop(t, b.e)
		source := b.e

		at := fresh(t)
		b.store = at()
		restoreInto(t, b.store, copied, source)
		b.o.Store = b.store
		b.e = start(t, b.o)
		b.key = b.e.Key([]byte("key-of-ann"))
		if h := b.e.history; h.IsZero() || h == was.History() {
			t.Fatalf("the restored history is %v, that of before %v", h, was.History())
		}
		b.expect(b.ask(coin), "withdraw 2")
		b.expect(b.confirm(2, bens), "wrong code")
		b.expect(b.confirm(1, before), "code expired")
		third := func() string {
			for _, m := range b.post.delivered()[len(old):] {
				if m.Withdrawal.ID == 1 && m.Withdrawal.Issue == 2 {
					return m.Code
				}
			}
			return ""
		}
		eventually(t, "a new code is mailed", func() bool { return third() != "" })
		b.expect(b.confirm(1, third()), "status 20")
		for _, m := range b.post.delivered()[len(old):] {
			for _, o := range old {
				if m.MessageID() == o.MessageID() {
					t.Errorf("two mails have the Message-ID %s: %+v, %+v", m.MessageID(), o, m)
				}
			}
		}
		b.restart(at)
		if b.e.history == was.History() {
			t.Error("the second start goes back to the history of before")
		}
		b.end()
	})
}

// The backup has a mail that still waits: the first code that arrives after the restore confirms.
// The code of before, which was mailed after the backup, costs no try.
func TestACodeThatWaitsOverARestoreIsMailedAnew(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		b := newTeller(t, fresh(t), func(o *Options) { o.Mail, o.Withdrawal.CodeTries = unsent, 1 })
		for id := uint64(1); id <= 2; id++ {
			b.expect(b.ask(coin), fmt.Sprint("withdraw ", id))
		}
		before := []string{codeOf(t, b.e, 1), codeOf(t, b.e, 2)}
		defer b.store.Close()
		copied, _ := backUp(t, b.e)
		stop(t, b.e)
		source, at := b.e, fresh(t)
		b.store = at()
		restoreInto(t, b.store, copied, source)
		b.o.Store, b.o.Mail = b.store, b.post.send
		b.e = start(t, b.o)
		b.key = b.e.Key([]byte("key-of-ann"))
		b.code(2)
		codes := map[uint64]string{}
		for _, m := range b.post.delivered() {
			codes[m.Withdrawal.ID] = m.Code
		}
		b.expect(b.confirm(1, codes[1]), "status 20")
		b.expect(b.confirm(2, before[1]), "code expired")
		b.expect(b.confirm(2, b.code(3)), "status 20")
		b.expect(b.confirm(1, before[0]), "refused for 11")
		b.restart(at)
		b.end()
	})
}

// The first record of all is the history's: nothing can be decided before it.
func TestTheFirstRecordNamesTheHistory(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		s := fresh(t)()
		defer s.Close()
		e := start(t, testOptions(s))
		first := true
		err := s.Read(t.Context(), 0, func(_, _ uint64, data []byte) error {
			b, err := event.OpenBatch(data)
			if err != nil {
				return err
			}
			var r event.Record
			if _, err = r.Decode(b.Records); err == nil && first &&
				(r.Kind != event.KindHistory || r.History != e.history) {
				t.Errorf("the first record is %v, of history %v, not %v", r.Kind,
					r.History, e.history)
			}
			first = false
			return err
		})
		if err != nil || first {
			t.Error("there is no record", err)
		}
		var at event.HistoryID
		e.probe(e.fold, func() { at = e.committed.State().History() })
		if at != e.history || state.New().History() == at {
			t.Errorf("the state is of history %v, not %v", at, e.history)
		}
		stop(t, e)
	})
}
