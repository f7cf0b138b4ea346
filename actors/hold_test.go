package actors

import (
	"slices"
	"strings"
	"testing"
	"time"

	"exchange/core/event"
	"exchange/core/state"
)

// pastHold gives a command a time after all current holds.
func pastHold(c *Command) *Command {
	c.timeUs += (withdrawalHold + time.Hour).Microseconds()
	return c
}

func TestANewAddressHoldsWithdrawalsAlsoOverARestart(t *testing.T) {
	onTeller(t, func(o *Options) { // codes that outlive the hold
		o.Withdrawal.CodeValid = 2 * withdrawalHold
	}, func(t *testing.T, b *teller) {
		for range 4 {
			b.ask(coin)
		}
		first, second, fourth := codeOf(t, b.e, 1), codeOf(t, b.e, 2), codeOf(t, b.e, 4)
		b.expect(b.confirm(1, first), "status 20")

		a := must[Admin](t)(b.e.SetEmail("ops", "ann", "ann@new.example"))
		if in := time.Until(time.UnixMicro(a.HoldEndsUs)); in <= withdrawalHold-time.Hour ||
			in > withdrawalHold || a.PreviousEmail != "ann@example.org" {
			t.Errorf("the hold ends in %v, the address before was %q", in, a.PreviousEmail)
		}
		approve := func() string {
			return outcomeOf(b.e.SetWithdrawalStatus("ops", 1, event.WithdrawalApproved, "wire"))
		}
		// after the hold a code mailed to the previous address is void, also in the wallet alone
		b.expect(outcomeOf(b.e.Do(pastHold(NewConfirmation(b.key, b.next(), 4, fourth)))),
			"code expired")
		b.expect(outcomeOf(b.e.Do(NewWithdrawalCancel(b.key, b.next(), 4))), "status 50")
		for range 2 {
			b.expect(b.ask(coin), "refused for 22")
			b.expect(b.confirm(2, second), "refused for 22")
			b.expect(approve(), "refused for 22")
			b.restart()
		}
		c, err := b.e.Do(NewWithdrawal(b.key, b.next(), 1, coin, "there"))
		if err != nil || c.HoldEndsUs() != a.HoldEndsUs {
			t.Fatalf("the refusal says that the hold ends at %d, not %d: %v", c.HoldEndsUs(),
				a.HoldEndsUs, err)
		}
		c.Free()
		b.expect(outcomeOf(b.e.Do(NewWithdrawalCancel(b.key, b.next(), 3))), "status 50")

		mailedTo := func(to string) bool {
			return slices.ContainsFunc(b.post.delivered(), func(m Mail) bool {
				return m.To == to && m.Account == "ann" && m.Change.HoldEndsUs == a.HoldEndsUs &&
					(m.Change.Kind == state.NewAddress) == (to == "ann@new.example")
			})
		}
		eventually(t, "all mails are sent", func() bool { return b.e.meter.Outbox.Load() == 0 })
		if !mailedTo("ann@example.org") || !mailedTo("ann@new.example") {
			t.Errorf("not both addresses receive a mail: %+v", b.post.delivered())
		}

		// and after a restart
		b.expect(outcomeOf(b.e.Do(pastHold(NewConfirmation(b.key, b.next(), 2, second)))),
			"code expired")
		b.expect(outcomeOf(b.e.Do(pastHold(NewConfirmation(b.key, b.next(), 2,
			codeOf(t, b.e, 2))))), "status 20")
		b.expect(outcomeOf(b.e.Do(pastHold(NewWithdrawal(b.key, b.next(), 1, coin, "there")))),
			"withdraw 5")
		b.expect(outcomeOf(b.e.SetWithdrawalStatus("ops", 1, event.WithdrawalRefused, "no")),
			"status 40")
	})
}

func TestAnAddressThatChangesNothingBeginsNoHold(t *testing.T) {
	onTeller(t, nil, func(t *testing.T, b *teller) {
		for _, x := range [...][3]string{
			{"ann", "no address", "is not an e-mail address"},
			{"ann", "", "is not an e-mail address"},
			{"bob", "bob@example.org", "there is no account"},
		} {
			if _, err := b.e.SetEmail("ops", x[0], x[1]); err == nil ||
				!strings.Contains(err.Error(), x[2]) {
				t.Errorf("%s of %s: %v, want %q", x[1], x[0], err, x[2])
			}
		}
		b.expect(b.ask(coin), "withdraw 1")
		repeat := func(address string, holdEndsUs int64) {
			t.Helper()
			a := must[Admin](t)(b.e.SetEmail("ops", "ann", address))
			if !a.Repeated || a.PreviousEmail != address || a.HoldEndsUs != holdEndsUs {
				t.Errorf("the same address: %+v, want a hold until %d", a, holdEndsUs)
			}
		}
		repeat("ann@example.org", 0)
		now := must[Admin](t)(b.e.SetEmail("ops", "ann", "ann@new.example"))
		repeat("ann@new.example", now.HoldEndsUs)
		first := must[Admin](t)(b.e.SetEmail("ops", "ann", "ann@newer.example"))
		time.Sleep(time.Microsecond)
		second := must[Admin](t)(b.e.SetEmail("ops", "ann", "ann@newest.example"))
		if second.HoldEndsUs <= first.HoldEndsUs {
			t.Errorf("a second change ends the hold at %d, the first at %d", second.HoldEndsUs,
				first.HoldEndsUs)
		}
	})
}

// A clock that was once ahead, for one record, makes no later hold longer.
func TestAHoldUsesTheCurrentClock(t *testing.T) {
	onTeller(t, nil, func(t *testing.T, b *teller) {
		c := newCommand(event.KindAccount)
		c.admin, c.operator, c.decide = Admin{Account: "bob"}, "test", (*registry).account
		succeeds(t, b.e.admitOperator(c))
		c.timeUs += (30 * 24 * time.Hour).Microseconds()
		b.e.registry.enter(c)
		if _, err := b.e.outcome(c); err != nil || c.adminErr != nil {
			t.Fatal(err, c.adminErr)
		}
		c.Free()
		a := must[Admin](t)(b.e.SetEmail("ops", "ann", "ann@new.example"))
		if in := time.Until(time.UnixMicro(a.HoldEndsUs)); in > withdrawalHold {
			t.Errorf("the hold ends in %v", in)
		}
		b.expect(b.ask(coin), "refused for 22")
		b.expect(outcomeOf(b.e.Do(pastHold(NewWithdrawal(b.key, b.next(), 1, coin, "there")))),
			"withdraw 1")
	})
}
