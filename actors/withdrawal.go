package actors

import (
	"time"

	"exchange/core/event"
	"exchange/core/state"
)

// A withdrawal belongs to its account's wallet: money is reserved there, and the wallet decides
// every change of the status. It decides on working state: of two changes at once the first one
// wins, and the refusal of the second is held back until the first is durable.

// withdrawal reserves money that is to leave. A client id that another withdrawal has is refused
// first, so that a repeat learns that it is one. While the other one is on its way, the refusal is
// held back.
func (w *wallet) withdrawal(c *Command) {
	wish := &c.withdrawal
	if !wish.clientID.IsZero() {
		c.takenBy = w.rareParts().withdrawalIDs.Withdrawal(wish.clientID)
		if c.takenBy != 0 {
			w.refuse(c, event.RefusedWithdrawalID)
			return
		}
	}
	if w.holds(c) {
		return
	}
	if len(w.pending) >= w.out.limits().PendingWithdrawals {
		w.refuse(c, event.RefusedWithdrawalLimit)
		return
	}
	if !w.reserve(c, wish.currency, wish.amount.Balance()) {
		w.refuse(c, event.RefusedFunds)
		return
	}
	wish.id = w.out.nextWithdrawal()
	asked := event.Withdrawal{ID: wish.id, Account: c.account.ID, Key: c.keyNumber(),
		Nonce: c.order.nonce, Currency: wish.currency,
		Amount: wish.amount, Address: wish.address, ClientID: wish.clientID}
	r := c.begin(event.KindWithdrawal, 0)
	r.Withdrawal = asked
	if w.pending == nil {
		w.pending = make(map[uint64]*state.Withdrawal)
	}
	w.pending[wish.id] = state.NewWithdrawal(r)
	if !wish.clientID.IsZero() {
		w.withdrawalIDs.Add(wish.id, wish.clientID,
			func(number uint64) bool { return w.pending[number] != nil })
	}
	w.accept(c)
}

// adjust takes available money out of the account, as an operator's correction. It takes its id,
// and keeps the operator's reference, as a withdrawal with a client id does.
func (w *wallet) adjust(c *Command) {
	wish := &c.withdrawal
	ids := &w.rareParts().withdrawalIDs
	if c.takenBy = ids.Withdrawal(wish.clientID); c.takenBy != 0 {
		w.refuse(c, event.RefusedWithdrawalID)
		return
	}
	if taken := wish.amount.Balance(); !w.reserve(c, wish.currency, taken) {
		w.refuse(c, event.RefusedFunds)
		return
	}
	wish.id = w.out.nextWithdrawal()
	r := c.begin(event.KindAdjusted, 0)
	r.Adjusted = event.Adjusted{ID: wish.id, Account: c.account.ID, Currency: wish.currency,
		Amount: wish.amount, Reason: wish.details, ClientID: wish.clientID}
	c.moved = *state.NewAdjustment(r)
	ids.Add(wish.id, wish.clientID, func(number uint64) bool { return w.pending[number] != nil })
	w.accept(c)
}

// moveWithdrawal gives a withdrawal its next status: its owner confirms it with a code or cancels
// it, an operator approves or refuses it.
func (w *wallet) moveWithdrawal(c *Command) {
	wish := &c.withdrawal
	d := w.pending[wish.id]
	if d == nil || !state.ValidTransition(d.Status, wish.to) {
		w.refuse(c, event.RefusedWithdrawal)
		return
	}
	leaves := wish.to == event.WithdrawalVerified || wish.to == event.WithdrawalApproved
	if leaves && w.holds(c) {
		return
	}
	if wish.to == event.WithdrawalVerified && !w.confirmed(c, d) {
		return
	}
	despite := w.frozen && wish.to == event.WithdrawalApproved
	if despite && !wish.despiteFreeze {
		w.refuse(c, event.RefusedFrozen)
		return
	}
	d.Status, d.Details, d.Stale, d.Renewed = wish.to, wish.details, false, false
	c.moved = *d
	if !d.Pending() {
		delete(w.pending, d.ID)
		if w.rare != nil {
			w.withdrawalIDs.Finish(d.ID)
		}
	}
	r := c.begin(event.KindWithdrawalMoved, 0)
	r.WithdrawalMoved = event.WithdrawalMoved{ID: d.ID, Account: d.Account, Key: c.keyNumber(),
		Nonce: c.order.nonce, Currency: d.Currency, Amount: d.Amount,
		To: wish.to, Details: wish.details, DespiteFreeze: despite}
	if despite {
		w.out.insisted(c)
	}
	w.accept(c)
}

// freeze keeps the account's keys from doing anything and its money from leaving, or ends that. The
// wallet has the last word, because the journal must have no approval behind the freeze.
func (w *wallet) freeze(c *Command) {
	w.frozen = c.record.Freeze.Frozen
	c.encode()
	w.out.toJournal(&c.entry)
}

// withdrawalHold is for how long no money is withdrawn once an account's e-mail address was
// changed: an owner whose address a thief has changed has two days to see the mail and to object.
const withdrawalHold = 48 * time.Hour

// hold gives the account another e-mail address, and holds its money. The wallet has the last
// word, because the journal must have no withdrawal behind the record.
func (w *wallet) hold(c *Command) {
	own := w.rareParts()
	own.heldUs = max(own.heldUs, c.admin.HeldUs)
	c.record.Email.HeldUs, c.admin.HeldUs = own.heldUs, own.heldUs
	for _, d := range w.pending {
		d.VoidCode()
	}
	c.encode()
	w.out.toJournal(&c.entry)
}

// holds refuses a command that withdraws money during a hold. The refusal tells when that ends.
func (w *wallet) holds(c *Command) bool {
	if w.rare == nil || c.timeUs >= w.heldUs {
		return false
	}
	c.takenBy = uint64(w.heldUs)
	w.refuse(c, event.RefusedHeld)
	return true
}

// confirmed checks the code. It returns false if the command is refused. A wrong code is counted. A
// code that is too old, or of an earlier history, has a new one mailed. Behind a renewed code, the
// first that does not fit is taken for the code before it.
func (w *wallet) confirmed(c *Command, d *state.Withdrawal) bool {
	policy := w.out.withdrawalPolicy()
	expired := d.Stale || c.timeUs-d.IssuedUs > policy.CodeValid.Microseconds()
	switch {
	case int(d.Tries) >= policy.CodeTries:
		w.refuse(c, event.RefusedTries)
		return false
	case !expired && w.out.codeFits(d, c.withdrawal.code):
		return true
	case expired || d.Renewed:
		expired = true
		d.Reissue(c.timeUs)
	default:
		d.Tries++
	}
	c.outcome = Refused
	r := c.begin(event.KindCodeRefused, 0)
	r.CodeRefused = event.CodeRefused{Withdrawal: d.ID, Account: d.Account, Key: c.keyNumber(),
		Nonce: c.order.nonce, Expired: expired,
		Tries: d.Tries}
	// Unlike other refusals this one changes something: later changes of the withdrawal rest on it,
	// so it is not held back. All entries that it rests on went to the journal before it, from
	// here.
	w.send(c)
	return false
}
