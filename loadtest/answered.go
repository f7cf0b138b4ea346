package loadtest

import (
	"bytes"
	"strconv"

	"exchange/core/money"
)

func priceOf(w wish) money.Price   { return money.Price(w.ticks * w.pair.tick) }
func amountOf(w wish) money.Amount { return money.Amount(w.lots * w.pair.lot) }

// pairOf finds one of an account's pairs by its number.
func (m *model) pairOf(of []*pair, index uint16) *pair {
	for _, p := range of {
		if p.index == int(index) {
			return p
		}
	}
	return nil
}

var (
	outcomeUnknown = []byte(`"outcome_unknown"`)
	alreadyDone    = []byte("Order already done")
)

// answered notes what an answer says.
func (l *loop) answered(c *conn, a answer) {
	s := l.stats
	switch {
	case a.status == 503 && !a.later || a.status >= 500 && a.status != 503,
		bytes.Contains(a.body, outcomeUnknown):
		// An error of the server says as little of the outcome.
		s.kind(kindOf(a))
		l.finish(c, &s.unknown, &s.lately.unknown, false)
	case a.status/100 == 2:
		if !l.accepted(c, a) {
			s.kind("answer not understood")
			l.finish(c, &s.unknown, &s.lately.unknown, false)
			return
		}
		l.finish(c, &s.done, &s.lately.done, false)
	case c.op == opCancel && bytes.Contains(a.body, alreadyDone):
		l.outcome(c, refused)
		l.finish(c, &s.late, &s.lately.late, false)
	default:
		l.outcome(c, refused)
		if c.op == opCancel && a.later && c.order >= 0 { // it still rests
			o := &c.user.orders[c.order]
			o.canceled = false
			c.user.open = append(c.user.open, openOrder{o.id, c.order})
		}
		s.kind(kindOf(a))
		l.finish(c, &s.refused, &s.lately.refused, a.later)
	}
}

// outcome notes how an order or a cancel ended.
func (l *loop) outcome(c *conn, to outcome) {
	switch {
	case c.order < 0:
	case c.op == opPlace:
		c.user.orders[c.order].outcome = to
	case c.op == opCancel:
		c.user.orders[c.order].cancel = to
	}
}

// accepted is false for an answer that is not one of an exchange.
func (l *loop) accepted(c *conn, a answer) bool {
	if c.op != opPlace {
		l.outcome(c, done)
		return true
	}
	p, err := readPlaced(a.body)
	if err != nil {
		return false
	}
	u := c.user
	o := &u.orders[c.order]
	if u.trades, err = readTaken(u.trades, p.trades, o.pair, o.buy); err != nil {
		return false
	}
	o.id, o.filled, o.cut, o.outcome = p.id, p.filled, p.cutOff > 0, done
	if p.remaining > 0 {
		u.open = append(u.open, openOrder{p.id, c.order})
	}
	return true
}

// kindOf names an error: its status and the text without what differs from one to the next.
func kindOf(a answer) string {
	text := a.body
	if i := bytes.IndexByte(text, ':'); i >= 0 && bytes.HasPrefix(text, []byte(`{"date":`)) {
		if j := bytes.Index(text, []byte(`"error":`)); j >= 0 {
			text = text[j+len(`"error":`):]
		}
	} else if bytes.HasPrefix(text, []byte(`{"detail":`)) {
		text = text[len(`{"detail":`):]
	}
	name := []byte(strconv.Itoa(a.status) + " ")
	digits := false
	for _, d := range text[:min(len(text), 120)] {
		switch {
		case d >= '0' && d <= '9' || digits && d == '.':
			if !digits {
				name = append(name, 'N')
			}
			digits = true
			continue
		case d == '"' || d == '{' || d == '}' || d == '[' || d == ']' || d == '\\':
		case d < ' ' || d > '~':
			name = append(name, '?')
		default:
			name = append(name, d)
		}
		digits = false
	}
	return string(name)
}
