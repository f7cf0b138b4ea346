package actors

import (
	"exchange/actors/metrics"
	"exchange/core/event"
)

// release sends the settlements of a durable batch to the wallets, its records to the committed
// side, and then the answers. Only the journal's writer calls it, so all see one order.
func (e *Engine) release(b *batch) {
	e.opener.settlingSeq.Store(b.next)
	for i, n := range b.entries {
		e.settle(b.prev+1+uint64(i), n)
	}
	e.committed.Release(b.data, b.next)
	e.releaseSignal.notify()
	e.count(b)
	for _, n := range b.entries {
		if n.trace.Sent != 0 {
			e.meter.Traced(&n.trace, b.appending, b.durable)
		}
		switch c := n.command; {
		case n.own != nil:
			e.root.Send(e.PairByNumber(n.record.Pair).Book, n.own)
		case c == nil: // no client awaits it
		case c.partOf != nil:
			e.toWallet(c.account, &releasedCancel{c})
		case c.account == nil:
			e.registry.done(c)
		default:
			e.finish(c, c.outcome)
		}
	}
}

// count counts a durable batch before the answers: an answered client finds it counted.
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

// finish returns a command's slot and answers: from here on the handler owns the command. One
// without a handler is freed.
func (e *Engine) finish(c *Command, o Outcome) {
	e.returnSlot(c)
	if c.internal {
		c.Free()
		return
	}
	if c.trace.Sent != 0 {
		c.trace.Answered = metrics.Now()
	}
	c.answer(o)
}

// settle sends a settlement to each existing wallet that an entry's record changes.
func (e *Engine) settle(seq uint64, n *entry) {
	r, c := &n.record, n.command
	var base, quote uint16
	if r.Pair != 0 {
		p := e.PairByNumber(r.Pair)
		base, quote = p.BaseNumber, p.QuoteNumber
	}
	list := e.ledgerSettler.Settle(r, base, quote)
	for i := range list {
		t := &list[i]
		wallet := e.dir.Account(t.Account).Wallet()
		if wallet == nil { // it will start with a state that contains the record
			continue
		}
		own := c != nil && c.account != nil && t.Account == c.account.ID
		m := settlements.Get().(*settled)
		m.seq, m.timeUs, m.accepted, m.command = seq, r.TimeUs, acceptedOrder{}, inFlightPart{}
		t.CopyTo(&m.settlement)
		if i == 0 { // the acting account
			m.accepted = acceptedBy(r)
		}
		if own {
			m.command = c.inFlightPart()
		}
		e.root.Send(wallet, m)
	}
}
