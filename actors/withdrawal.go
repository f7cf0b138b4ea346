package actors

import (
	"time"

	"exchange/core/event"
	"exchange/core/state"
)

// A withdrawal belongs to its account's wallet, which reserves its money and decides every change
// of its status. The wallet decides on working state: the first of two simultaneous changes wins,
// and the second's refusal is held back until the first is durable.

// withdrawal reserves money for a withdrawal. The client id of another withdrawal is refused first,
// so that a repeat is recognised. While the other one is in flight, the refusal is held back.
func (w *wallet) withdrawal(c *Command) {
	req := &c.withdrawal
	if !req.clientID.IsZero() {
		c.takenBy = w.rareParts().withdrawalIDs.Withdrawal(req.clientID)
		if c.takenBy != 0 {
			w.refuse(c, event.RefusedWithdrawalID)
			return
		}
	}
	if w.refuseIfHeld(c) {
		return
	}
	if len(w.pendingWithdrawals) >= w.out.limits().PendingWithdrawals {
		w.refuse(c, event.RefusedWithdrawalLimit)
		return
	}
	if !w.reserve(c, req.currency, req.amount.Balance()) {
		w.refuse(c, event.RefusedFunds)
		return
	}
	req.id = w.out.nextWithdrawal()
	record := event.Withdrawal{ID: req.id, Account: c.account.ID, Key: c.keyNumber(),
		Nonce: c.order.nonce, Currency: req.currency,
		Amount: req.amount, Address: req.address, ClientID: req.clientID}
	r := c.begin(event.KindWithdrawal, 0)
	r.Withdrawal = record
	if w.pendingWithdrawals == nil {
		w.pendingWithdrawals = make(map[uint64]*state.Withdrawal)
	}
	w.pendingWithdrawals[req.id] = state.NewWithdrawal(r)
	if !req.clientID.IsZero() {
		w.withdrawalIDs.Add(req.id, req.clientID,
			func(number uint64) bool { return w.pendingWithdrawals[number] != nil })
	}
	w.accept(c)
}

// adjust takes available money out of the account, as an operator's correction. It takes a
// withdrawal's id, and keeps the operator's reference as a client id.
func (w *wallet) adjust(c *Command) {
	req := &c.withdrawal
	ids := &w.rareParts().withdrawalIDs
	if c.takenBy = ids.Withdrawal(req.clientID); c.takenBy != 0 {
		w.refuse(c, event.RefusedWithdrawalID)
		return
	}
	if taken := req.amount.Balance(); !w.reserve(c, req.currency, taken) {
		w.refuse(c, event.RefusedFunds)
		return
	}
	req.id = w.out.nextWithdrawal()
	r := c.begin(event.KindAdjusted, 0)
	r.Adjusted = event.Adjusted{ID: req.id, Account: c.account.ID, Currency: req.currency,
		Amount: req.amount, Reason: req.details, ClientID: req.clientID}
	c.changedWithdrawal = *state.NewAdjustment(r)
	ids.Add(req.id, req.clientID,
		func(number uint64) bool { return w.pendingWithdrawals[number] != nil })
	w.accept(c)
}

// setWithdrawalStatus gives a withdrawal its next status: its owner confirms it with a code or
// cancels it, an operator approves or refuses it.
func (w *wallet) setWithdrawalStatus(c *Command) {
	req := &c.withdrawal
	d := w.pendingWithdrawals[req.id]
	if d == nil || !state.ValidTransition(d.Status, req.nextStatus) {
		w.refuse(c, event.RefusedWithdrawal)
		return
	}
	next := req.nextStatus
	leaves := next == event.WithdrawalVerified || next == event.WithdrawalApproved
	if leaves && w.refuseIfHeld(c) {
		return
	}
	if next == event.WithdrawalVerified && !w.checkCode(c, d) {
		return
	}
	despite := w.frozen && next == event.WithdrawalApproved
	if despite && !req.despiteFreeze {
		w.refuse(c, event.RefusedFrozen)
		return
	}
	d.Status, d.Details, d.Stale, d.Renewed = next, req.details, false, false
	c.changedWithdrawal = *d
	if !d.Pending() {
		delete(w.pendingWithdrawals, d.ID)
		if w.rare != nil {
			w.withdrawalIDs.Finish(d.ID)
		}
	}
	r := c.begin(event.KindWithdrawalStatus, 0)
	r.WithdrawalStatus = event.WithdrawalStatus{ID: d.ID, Account: d.Account, Key: c.keyNumber(),
		Nonce: c.order.nonce, Currency: d.Currency, Amount: d.Amount,
		To: next, Details: req.details, DespiteFreeze: despite}
	if despite {
		w.out.logDespiteFreeze(c)
	}
	w.accept(c)
}

// freeze blocks the account's keys and its withdrawals, or ends that. The wallet decides last,
// because the journal must have no approval after the freeze.
func (w *wallet) freeze(c *Command) {
	w.frozen = c.record.Freeze.Frozen
	c.encode()
	w.out.toJournal(&c.entry)
}

// withdrawalHold is the hold on withdrawals after a change of the e-mail address: the owner has two
// days to see the mail and object to a thief's change.
const withdrawalHold = 48 * time.Hour

// changeEmail changes the account's e-mail address, and holds its money. The wallet decides last,
// because the journal must have no withdrawal after the record.
func (w *wallet) changeEmail(c *Command) {
	own := w.rareParts()
	own.holdEndsUs = max(own.holdEndsUs, c.admin.HoldEndsUs)
	c.record.Email.HoldEndsUs, c.admin.HoldEndsUs = own.holdEndsUs, own.holdEndsUs
	for _, d := range w.pendingWithdrawals {
		d.VoidCode()
	}
	c.encode()
	w.out.toJournal(&c.entry)
}

// refuseIfHeld refuses a withdrawal's command during a hold. The refusal carries the hold's end.
func (w *wallet) refuseIfHeld(c *Command) bool {
	if w.rare == nil || c.timeUs >= w.holdEndsUs {
		return false
	}
	c.holdEndsUs = w.holdEndsUs
	w.refuse(c, event.RefusedHeld)
	return true
}

// checkCode checks the code. It returns false if the command is refused. A wrong code is counted. A
// code that is too old, or of an earlier history, is replaced by mail. After a renewal, the first
// code that does not match counts as the old one.
func (w *wallet) checkCode(c *Command, d *state.Withdrawal) bool {
	policy := w.out.withdrawalPolicy()
	expired := d.Stale || c.timeUs-d.IssuedUs > policy.CodeValid.Microseconds()
	switch {
	case int(d.Tries) >= policy.CodeTries:
		w.refuse(c, event.RefusedTries)
		return false
	case !expired && w.out.codeMatches(d, c.withdrawal.code):
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
	// Unlike other refusals this one changes something that later changes of the withdrawal depend
	// on, so it is not held back. All entries that it depends on went to the journal before it,
	// from here.
	w.send(c)
	return false
}
