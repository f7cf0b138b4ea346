package actors

import "fmt"

// close closes the account, if it is empty. The wallet decides last, because the journal must have
// no order, withdrawal or money of the account after the record.
func (w *wallet) close(c *Command) {
	if left := w.left(); left != "" {
		c.outcome = Refused
		c.adminErr = requestErrorf("account %s has %s, so it is not closed", w.account.Name, left)
		w.out.refuseClose(c)
		return
	}
	w.frozen = true
	c.encode()
	w.out.toJournal(&c.entry)
}

// left returns what keeps the account from being closed; "": nothing. All of it is durable, except
// commands in flight, whose outcome it does not reveal.
func (w *wallet) left() string {
	if n := w.open.Orders().Len(); n > 0 {
		return fmt.Sprintf("open orders: %d", n)
	}
	if w.flight != nil && (w.tickets.out() > 0 || w.queue.Len() > 0) || len(w.inBook) > 0 {
		return "commands in flight (freeze it, and try again)"
	}
	switch {
	case len(w.pendingWithdrawals) > 0:
		return fmt.Sprintf("pending withdrawals: %d", len(w.pendingWithdrawals))
	case w.rare != nil && len(w.switches) > 0:
		return "an armed switch, which cancels orders when it is due (freeze the account, and " +
			"try again later)"
	}
	for _, h := range w.balances.Holdings() {
		if !h.Balance.IsZero() {
			return fmt.Sprintf("a balance of %v %s", h.Balance, w.out.CurrencyCode(h.Currency))
		}
	}
	return ""
}
