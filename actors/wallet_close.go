package actors

import "fmt"

// close ends the account, if nothing is left in it. The wallet has the last word, because the
// journal must have no order, no withdrawal and no money of the account behind the record.
func (w *wallet) close(c *Command) {
	if left := w.left(); left != "" {
		c.outcome = Refused
		c.adminErr = refusef("account %s has %s, so it is not closed", w.account.Name, left)
		w.out.refuseEnd(c)
		return
	}
	w.frozen = true
	c.encode()
	w.out.toJournal(&c.entry)
}

// left says what keeps the account from being closed; "": nothing does. All of it is durable, but
// for commands on their way, and of those it tells no outcome.
func (w *wallet) left() string {
	if n := w.open.Orders().Len(); n > 0 {
		return fmt.Sprintf("open orders: %d", n)
	}
	if w.flight != nil && (w.tickets.out() > 0 || w.queue.Len() > 0) || len(w.inBook) > 0 {
		return "commands on their way (freeze it, and try again)"
	}
	switch {
	case len(w.pending) > 0:
		return fmt.Sprintf("pending withdraws: %d", len(w.pending))
	case w.rare != nil && len(w.switches) > 0:
		return "an armed switch, which cancels orders when it is due (freeze the account, and " +
			"try again later)"
	}
	for _, h := range w.committed.Holdings() {
		if !h.Balance.IsZero() {
			return fmt.Sprintf("a balance of %v %s", h.Balance, w.out.CurrencyCode(h.Currency))
		}
	}
	return ""
}
