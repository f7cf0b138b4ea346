package rows

import (
	"fmt"
	"strings"
	"time"

	"exchange/core/event"
	"exchange/core/state"
)

// maxWords is the longest text of an action in the store, in bytes.
const maxWords = 4096

// inWords describes an operator's record for the log of actions. A text that is too long is cut,
// such as that of a key with very many addresses. The record itself is complete.
func inWords(s *state.State, r *event.Record) string {
	text := allWords(s, r)
	if len(text) > maxWords {
		text = strings.ToValidUTF8(text[:maxWords-len("...")], "") + "..."
	}
	return text
}

func allWords(s *state.State, r *event.Record) string {
	name := func(id uint32) string { return s.Account(id).Name }
	pair := func() string { return s.Pair(r.Pair).Name }
	code := func(number uint16) string { return s.Currencies()[number-1].Code }
	switch r.Kind {
	case event.KindAccount:
		return fmt.Sprintf("opened account %s (%s)", r.Account.Name, r.Account.Email)
	case event.KindKey:
		text := fmt.Sprintf("made key %s for account %s, permissions %d, from %v", r.Key.Key,
			name(r.Key.Account), r.Key.Permissions, r.Key.Allow)
		if r.Key.NonceWindow > 0 {
			text += fmt.Sprintf(", for parallel use with %d nonces", r.Key.NonceWindow)
		}
		return text
	case event.KindKeyRevoked:
		return fmt.Sprintf("revoked key %s", s.Keys()[r.KeyRevoked.Number-1].Key.Key)
	case event.KindDeposit:
		d := &r.Deposit
		return fmt.Sprintf("deposit %d: %v %s to account %s, reference %q", d.ID, d.Amount,
			code(d.Currency), name(d.Account), d.Reference)
	case event.KindCancel:
		return fmt.Sprintf("cancelled order %d of account %s in %s", r.Cancel.Order,
			name(r.Cancel.Account), pair())
	case event.KindWithdrawalStatus:
		m := &r.WithdrawalStatus
		text := fmt.Sprintf("withdraw %d (%v %s of account %s) is %s", m.ID, m.Amount,
			code(m.Currency), name(m.Account), event.WithdrawalStatusName(m.To))
		if m.Details != "" {
			text += ": " + m.Details
		}
		if m.DespiteFreeze {
			text += ", though the account is frozen"
		}
		return text
	case event.KindEmail:
		return fmt.Sprintf("account %s has the e-mail address %q, its withdraws are held until %s",
			name(r.Email.Account), r.Email.Address,
			time.UnixMicro(r.Email.HoldEndsUs).UTC().Format(time.RFC3339))
	case event.KindAccountClosed:
		return fmt.Sprintf("account %s closed, its keys have ended", name(r.AccountClosed.Account))
	case event.KindAdjusted:
		j := &r.Adjusted
		return fmt.Sprintf("adjustment %d: -%v %s of account %s, reference %q, reason %q", j.ID,
			j.Amount, code(j.Currency), name(j.Account), j.ClientID, j.Reason)
	case event.KindRefusal:
		return fmt.Sprintf("was refused, for account %s: %s", name(r.Refusal.Account),
			strings.ReplaceAll(event.RefusalName(r.Refusal.Reason), "_", " "))
	case event.KindHalt:
		return fmt.Sprintf("trading on %s halted: %v", pair(), r.Halt.Halted)
	case event.KindFreeze:
		return fmt.Sprintf("account %s frozen: %v", name(r.Freeze.Account), r.Freeze.Frozen)
	case event.KindMaintenance:
		m := &r.Maintenance
		if m.Cancels {
			return fmt.Sprintf("maintenance with cancels: %v %q", m.On, m.Message)
		}
		return fmt.Sprintf("maintenance: %v %q", m.On, m.Message)
	case event.KindFees:
		f := &r.Fees
		return fmt.Sprintf("fees of account %s in %s: own %v, maker %v, taker %v", name(f.Account),
			pair(), f.Own, f.Maker, f.Taker)
	case event.KindNote:
		return r.Note
	}
	return r.Kind.String()
}
