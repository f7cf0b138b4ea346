package mail

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var withdrawal = Withdrawal{Exchange: "Example Exchange", To: "alice@example.com", ID: 123,
	Amount: "0.5", Currency: "BTC",
	Address: "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"}

func TestTheMailWithACode(t *testing.T) {
	subject, text := withdrawal.Code("7K2M-9QXD-04TB", 30*time.Minute)
	if want := "Example Exchange: please confirm withdrawal 123"; subject != want {
		t.Errorf("subject is %q, want %q", subject, want)
	}
	const want = `Hello,

a withdrawal from your account at Example Exchange waits for you to confirm it:

  Withdrawal  123
  Amount      0.5 BTC
  To          bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq
  State       new: waits for your code

Your code is

  7K2M-9QXD-04TB

and it is valid for 30 minutes. Please look at the amount and the address once more before you
use it: a withdrawal that was sent cannot be taken back.

Was it not you? Then do not use the code and give it to nobody: without it nothing leaves
your account. Please cancel the withdrawal on your account page, and ask our support to revoke
all your API keys and to give you new ones: somebody else may have one of them.

Kind regards
Example Exchange

This mail was sent by a program to alice@example.com.
`
	if text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

func TestTheMailOfARefusal(t *testing.T) {
	subject, text := withdrawal.Refused(
		"The address is on the list of\r\nBcc: x@y\r\nthe tribunal; schönen Gruß")
	if want := "Example Exchange: withdrawal 123 was refused"; subject != want {
		t.Errorf("subject is %q, want %q", subject, want)
	}
	const want = `Hello,

we are sorry: a withdrawal from your account at Example Exchange was refused.

  Withdrawal  123
  Amount      0.5 BTC
  To          bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq
  State       refused
  Reason      The address is on the list of Bcc: x@y the tribunal; schönen Gruß

The amount is available in your account again. If the reason leaves you with questions,
please ask our support and name the number of the withdrawal.

Kind regards
Example Exchange

This mail was sent by a program to alice@example.com.
`
	if text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	if _, text := withdrawal.Refused(" \n"); !strings.Contains(text,
		"  Reason      none was given\n") {
		t.Errorf("without details:\n%s", text)
	}
}

func TestTheMailsAboutAnotherAddress(t *testing.T) {
	c := AddressChange{Exchange: "Example Exchange", To: "old@example.com", Account: "alice",
		HeldUntil: time.Date(2026, 11, 30, 10, 5, 59, 0, time.FixedZone("CET", 3600))}
	subject, text := c.Text()
	if want := "Example Exchange: the e-mail address of your account was changed"; subject != want {
		t.Errorf("subject is %q, want %q", subject, want)
	}
	const before = `Hello,

account alice at Example Exchange has another e-mail address from now on.
Mails about it come to this one no more.

Was it not you? Then please tell our support at once: nothing can be
withdrawn from the account before 2026-11-30 09:06 UTC.

Kind regards
Example Exchange

This mail was sent by a program to old@example.com.
`
	if text != before {
		t.Errorf("got\n%s\nwant\n%s", text, before)
	}
	c.To, c.New = "new@example.com", true
	subject, text = c.Text()
	if want := "Example Exchange: this is the e-mail address of your account now"; subject != want {
		t.Errorf("subject is %q, want %q", subject, want)
	}
	const now = `Hello,

account alice at Example Exchange has this e-mail address from now on.
Codes for withdrawals come here; those that were mailed before are void.

To keep your money safe, nothing can be withdrawn from the account
before 2026-11-30 09:06 UTC.

You have no such account? Then please tell our support.

Kind regards
Example Exchange

This mail was sent by a program to new@example.com.
`
	if text != now {
		t.Errorf("got\n%s\nwant\n%s", text, now)
	}
}

func TestTheMailAboutLostKeys(t *testing.T) {
	subject, text := KeysLost{Exchange: "Example Exchange", To: "alice@example.com",
		Account: "alice"}.Text()
	if want := "Example Exchange: API keys of your account have ended"; subject != want {
		t.Errorf("subject is %q, want %q", subject, want)
	}
	const want = `Hello,

API keys of account alice at Example Exchange do not work any more:
we could not read their secrets, so we have ended them. Your balances
and orders are as they were.

Please ask our support for new keys, and give them to your programs.

Kind regards
Example Exchange

This mail was sent by a program to alice@example.com.
`
	if text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

func TestMailsOfAnyTextsCanBeSent(t *testing.T) {
	anything := rapid.OneOf(rapid.String(),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
		rapid.SampledFrom([]string{strings.Repeat("ü", 2*maxText),
			strings.Repeat("a b\r\n", maxDetails)}))
	rapid.Check(t, func(t *rapid.T) {
		w := Withdrawal{Exchange: anything.Draw(t, "exchange"), To: anything.Draw(t, "to"),
			ID: rapid.Uint64().Draw(t, "id"), Amount: anything.Draw(t, "amount"),
			Currency: anything.Draw(t, "currency"), Address: anything.Draw(t, "address")}
		for _, mail := range []func() (string, string){
			func() (string, string) {
				return w.Code(anything.Draw(t, "code"),
					time.Duration(rapid.Int64().Draw(t, "valid")))
			},
			func() (string, string) { return w.Refused(anything.Draw(t, "details")) },
			AddressChange{Exchange: w.Exchange, To: w.To, New: rapid.Bool().Draw(t, "new"),
				Account:   anything.Draw(t, "account"),
				HeldUntil: time.UnixMicro(rapid.Int64().Draw(t, "held"))}.Text,
			KeysLost{Exchange: w.Exchange, To: w.To, Account: anything.Draw(t, "account")}.Text,
		} {
			subject, text := mail()
			succeeds(t, (Message{ID: "1", To: "a@b", Subject: subject, Text: text}).check())
		}
	})
}

func TestDurationsInWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		30 * time.Minute: "30 minutes", time.Hour: "1 hour", 24 * time.Hour: "24 hours",
		90 * time.Minute: "90 minutes", time.Minute: "1 minute",
		90 * time.Second: "90 seconds", time.Second: "1 second",
		1500 * time.Millisecond: "1 second", 0: "0 seconds",
	} {
		if got := inWords(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// An owner confirms the stored address: the mail shows each character unchanged.
func TestTheMailShowsAnAddressUnchanged(t *testing.T) {
	const longest = 256
	form := rapid.StringMatching(`[!-~]{1,256}`)
	check := func(t ender, address string) {
		w := withdrawal
		w.Address = address
		_, code := w.Code("7K2M-9QXD-04TB", time.Minute)
		_, refused := w.Refused("no")
		for _, text := range []string{code, refused} {
			if !strings.Contains(text, "\n  To          "+address+"\n") {
				t.Fatalf("the mail about %q says\n%s", address, text)
			}
			m := Message{ID: "1", To: w.To, Subject: "x", Text: text}
			data, err := m.encode(filesFrom)
			succeeds(t, err)
			if arrived := parse(t, string(data)).text; arrived != text {
				t.Fatalf("the mail about %q arrives as\n%s", address, arrived)
			}
		}
	}
	check(t, strings.Repeat("w", longest))
	for c := '!'; c <= '~'; c++ {
		check(t, string(c))
		check(t, strings.Repeat(string(c), longest))
	}
	rapid.Check(t, func(r *rapid.T) { check(r, form.Draw(r, "address")) })
}
