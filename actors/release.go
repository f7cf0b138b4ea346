package actors

import (
	"exchange/actors/metrics"
	"exchange/core/event"
)

// release sends the settlements of a durable batch to the wallets, its records to the committed
// side, and then the answers. Only the journal's writer calls it, so all see one order.
func (e *Engine) release(b *batch) {
	e.opening.releasing.Store(b.next)
	for i, n := range b.entries {
		e.settle(b.prev+1+uint64(i), n)
	}
	e.committed.Release(b.data, b.next)
	e.releases.told()
	e.count(b)
	for _, n := range b.entries {
		if n.trace.Sent != 0 {
			e.meter.Traced(&n.trace, b.appending, b.durable)
		}
		switch c := n.command; {
		case n.unit != nil:
			e.root.Send(e.Numbered(n.record.Pair).Book, n.unit)
		case c == nil: // no client asked for it
		case c.partOf != nil:
			e.toWallet(c.account, &releasedCancel{c})
		case c.account == nil:
			e.registry.done(c)
		default:
			e.finish(c, c.outcome)
		}
	}
}

// count counts a durable batch before it is answered: a client with an answer finds it counted.
func (e *Engine) count(b *batch) {
	j := &e.meter.Journal
	j.Lock()
	for _, n := range b.entries {
		r := &n.record
		j.Records[r.Kind]++
		switch r.Kind {
		case event.KindOrder, event.KindInstructed, event.KindTriggered, event.KindAmended:
			j.Trades += uint64(len(r.Order.Trades))
			if r.Kind != event.KindOrder {
				j.Prevented += uint64(len(r.Instructions.Prevented))
			}
		case event.KindExpired:
			j.Expired += uint64(len(r.Expired))
		case event.KindRefusal:
			j.Refused[r.Refusal.Reason]++
		}
	}
	j.BatchRecords.Observe(int64(len(b.entries)))
	j.BatchBytes.Observe(int64(len(b.data)))
	j.Append.Observe(b.durable - b.appending)
	j.Unlock()
}

// finish gives a command's slot back and answers: from here on the handler owns the command. One
// that no handler waits for is over.
func (e *Engine) finish(c *Command, o Outcome) {
	e.giveBack(c)
	if c.unasked {
		c.Free()
		return
	}
	if c.trace.Sent != 0 {
		c.trace.Answered = metrics.Now()
	}
	c.answer(o)
}

// settle sends one settlement to each wallet that there is of those that an entry's record touches.
func (e *Engine) settle(seq uint64, n *entry) {
	r, c := &n.record, n.command
	var base, quote uint16
	if r.Pair != 0 {
		p := e.Numbered(r.Pair)
		base, quote = p.BaseNumber, p.QuoteNumber
	}
	list := e.settler.Settle(r, base, quote)
	for i := range list {
		t := &list[i]
		wallet := e.dir.Account(t.Account).Wallet()
		if wallet == nil { // it will begin with a state that has the record
			continue
		}
		own := c != nil && c.account != nil && t.Account == c.account.ID
		m := settlements.Get().(*settled)
		m.seq, m.timeUs, m.accepted, m.command = seq, r.TimeUs, acceptedOrder{}, ownCommand{}
		t.CopyTo(&m.settlement)
		if i == 0 { // the acting account
			m.accepted = acceptedBy(r)
		}
		if own {
			m.command = c.own()
		}
		e.root.Send(wallet, m)
	}
}
