package mail

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Withdrawal holds the facts of a mail about a withdrawal. Its texts can come from any client. Each
// becomes one line of bounded length, so Send accepts every mail of Code and Refused.
type Withdrawal struct {
	Exchange string // the exchange's name for its users
	To       string // the recipient's mail address
	ID       uint64
	Amount   string // decimal
	Currency string // code, such as BTC
	Address  string // destination of the money
}

// Lengths of the values in a text, in bytes.
const (
	maxName    = 80
	maxValue   = 80
	maxPlace   = 300
	maxDetails = 2000
)

// Code returns the mail with the code that confirms the withdrawal. The code is valid for validFor
// from now. It is in the text only: many telephones show a subject while they are locked.
func (w Withdrawal) Code(code string, validFor time.Duration) (subject, text string) {
	subject = fmt.Sprintf("%s: please confirm withdrawal %d", line(w.Exchange, maxName), w.ID)
	return subject, fmt.Sprintf(`Hello,

a withdrawal from your account at %s waits for you to confirm it:

%s
Your code is

  %s

and it is valid for %s. Please look at the amount and the address once more before you
use it: a withdrawal that was sent cannot be taken back.

Was it not you? Then do not use the code and give it to nobody: without it nothing leaves
your account. Please cancel the withdrawal on your account page, and ask our support to revoke
all your API keys and to give you new ones: somebody else may have one of them.

%s`, line(w.Exchange, maxName), w.table("new: waits for your code"),
		line(code, maxValue), inWords(validFor), w.farewell())
}

// Refused returns the mail about a refused withdrawal; details is the reason and may be empty.
func (w Withdrawal) Refused(details string) (subject, text string) {
	reason := line(details, maxDetails)
	if reason == "" {
		reason = "none was given"
	}
	subject = fmt.Sprintf("%s: withdrawal %d was refused", line(w.Exchange, maxName), w.ID)
	return subject, fmt.Sprintf(`Hello,

we are sorry: a withdrawal from your account at %s was refused.

%s  Reason      %s

The amount is available in your account again. If the reason leaves you with questions,
please ask our support and name the number of the withdrawal.

%s`, line(w.Exchange, maxName), w.table("refused"), reason, w.farewell())
}

// AddressChange holds the facts of a mail about a changed e-mail address of an account. The former
// and the new address each get one.
type AddressChange struct {
	Exchange string // the exchange's name for its users
	To       string // the recipient's mail address
	New      bool   // the recipient's is the new address
	Account  string // name
	// HeldUntil is the end of the hold on the account's money.
	HeldUntil time.Time
}

// Text returns the mail. It names no other address: one of the two may be a stranger's.
func (c AddressChange) Text() (subject, text string) {
	exchange := line(c.Exchange, maxName)
	end := c.HeldUntil.UTC().Add(time.Minute - 1).Truncate(time.Minute) // rounded up to the minute
	until := end.Format("2006-01-02 15:04 MST")
	if c.New {
		return exchange + ": this is the e-mail address of your account now",
			fmt.Sprintf(`Hello,

account %s at %s has this e-mail address from now on.
Codes for withdrawals come here; those that were mailed before are void.

To keep your money safe, nothing can be withdrawn from the account
before %s.

You have no such account? Then please tell our support.

%s`, line(c.Account, maxName), exchange, until, closing(exchange, c.To))
	}
	return exchange + ": the e-mail address of your account was changed", fmt.Sprintf(`Hello,

account %s at %s has another e-mail address from now on.
Mails about it come to this one no more.

Was it not you? Then please tell our support at once: nothing can be
withdrawn from the account before %s.

%s`, line(c.Account, maxName), exchange, until, closing(exchange, c.To))
}

// KeysLost holds the facts of a mail about API keys of an account that no longer work, because the
// exchange lost the key that sealed their secrets.
type KeysLost struct {
	Exchange string // the exchange's name for its users
	To       string // the recipient's mail address
	Account  string // name
}

// Text returns the mail.
func (k KeysLost) Text() (subject, text string) {
	exchange := line(k.Exchange, maxName)
	return exchange + ": API keys of your account have ended", fmt.Sprintf(`Hello,

API keys of account %s at %s do not work any more:
we could not read their secrets, so we have ended them. Your balances
and orders are as they were.

Please ask our support for new keys, and give them to your programs.

%s`, line(k.Account, maxName), exchange, closing(exchange, k.To))
}

// table shows the withdrawal. Pages and program use the same name for its state.
func (w Withdrawal) table(state string) string {
	return fmt.Sprintf("  Withdrawal  %d\n  Amount      %s %s\n  To          %s\n"+
		"  State       %s\n", w.ID, line(w.Amount, maxValue), line(w.Currency, maxValue),
		line(w.Address, maxPlace), state)
}

func (w Withdrawal) farewell() string { return closing(line(w.Exchange, maxName), w.To) }

func closing(exchange, to string) string {
	return fmt.Sprintf("Kind regards\n%s\n\nThis mail was sent by a program to %s.\n", exchange,
		line(to, maxAddress))
}

// line returns s as one line of at most limit bytes. Unprintable characters become blanks, and so
// do invisible ones that change the order of others. Consecutive blanks become one.
func line(s string, limit int) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsGraphic(r) || r == utf8.RuneError
	}), " ")
	const more = "…"
	if len(s) <= limit {
		return s
	}
	cut := limit - len(more)
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strings.TrimRight(s[:cut], " ") + more
}

// inWords returns a duration in words: in whole hours, minutes or seconds, the largest unit that
// divides it. It drops parts of a second, so the words never exceed d.
func inWords(d time.Duration) string {
	for _, x := range []struct {
		unit time.Duration
		name string
	}{{time.Hour, "hour"}, {time.Minute, "minute"}} {
		if n := d / x.unit; n > 0 && d%x.unit == 0 {
			return count(int64(n), x.name)
		}
	}
	return count(int64(d/time.Second), "second")
}

func count(n int64, name string) string {
	if n != 1 {
		name += "s"
	}
	return fmt.Sprintf("%d %s", n, name)
}
