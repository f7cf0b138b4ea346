package loadtest

import (
	"bytes"
	"strconv"
	"time"

	"exchange/core/money"
	"exchange/loadtest/generator"
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

// Answered notes an answer.
func (l *sender) Answered(number int, a generator.Answer, latency time.Duration) (rest bool) {
	c, s := l.conns[number], l.stats
	note := func(what, lately *uint64) { s.note(c.op, c.pair, latency, what, lately) }
	defer l.over(c)
	switch {
	case a.Status == 503 && !a.Later || a.Status >= 500 && a.Status != 503,
		bytes.Contains(a.Body, outcomeUnknown):
		// An error of the server says as little of the outcome.
		s.kind(kindOf(a))
		note(&s.unknown, &s.lately.unknown)
	case a.Status/100 == 2:
		if !l.accepted(c, a) {
			s.kind("answer not understood")
			note(&s.unknown, &s.lately.unknown)
			return false
		}
		note(&s.done, &s.lately.done)
	case c.op == opCancel && bytes.Contains(a.Body, alreadyDone):
		l.outcome(c, refused)
		note(&s.late, &s.lately.late)
	default:
		l.outcome(c, refused)
		if c.order >= 0 && (c.op == opCancel && a.Later || c.op == opAmend) { // it may still rest
			o := &c.user.orders[c.order]
			o.canceled = false
			c.user.open = append(c.user.open, openOrder{o.id, c.order})
			c.rests = true
		}
		s.kind(kindOf(a))
		note(&s.refused, &s.lately.refused)
		return a.Later
	}
	return false
}

// Broken notes that a connection has ended. The outcome of a request in flight is unknown.
func (l *sender) Broken(number int, reason string, inFlight bool, latency time.Duration) error {
	c, s := l.conns[number], l.stats
	if inFlight || reason == generator.NotConnected {
		s.kind(reason)
	}
	if inFlight {
		defer l.over(c)
		s.note(c.op, c.pair, latency, &s.unknown, &s.lately.unknown)
	}
	return nil
}

// Unsent counts a request that was due and that no connection was free for.
func (l *sender) Unsent(waited time.Duration) {
	record(l.stats.all, waited)
	record(l.stats.recent, waited)
	l.stats.unsent++
	l.stats.lately.unsent++
}

// outcome notes how an order or a cancel ended.
func (l *sender) outcome(c *conn, to outcome) {
	switch {
	case c.order < 0:
	case c.op == opPlace:
		c.user.orders[c.order].outcome = to
	case c.op == opCancel:
		c.user.orders[c.order].cancel = to
	case c.op == opAmend:
		c.user.orders[c.order].change = to
	}
}

// accepted returns false for an answer that is not one of an exchange.
func (l *sender) accepted(c *conn, a generator.Answer) bool {
	if c.op != opPlace && c.op != opAmend {
		l.outcome(c, done)
		return true
	}
	p, err := readPlaced(a.Body)
	if err != nil {
		return false
	}
	u := c.user
	o := &u.orders[c.order]
	if u.trades, err = readTaken(u.trades, p.trades, o.pair, o.buy); err != nil {
		return false
	}
	if p.prevented != nil && u.prevented(p.prevented) != nil {
		return false
	}
	if c.op == opAmend {
		l.amended(c, &p)
		return true
	}
	o.id, o.filled, o.cut, o.outcome = p.id, p.filled, p.cutOff > 0, done
	if p.remaining > 0 {
		u.open = append(u.open, openOrder{p.id, c.order})
		c.rests = true
	}
	if l.o.NoVerify {
		u.trades = u.trades[:0]
	}
	return true
}

// kindOf names an error: its status and the text without the part that differs from one error to
// the next.
func kindOf(a generator.Answer) string {
	text := a.Body
	if i := bytes.IndexByte(text, ':'); i >= 0 && bytes.HasPrefix(text, []byte(`{"date":`)) {
		if j := bytes.Index(text, []byte(`"error":`)); j >= 0 {
			text = text[j+len(`"error":`):]
		}
	} else if bytes.HasPrefix(text, []byte(`{"detail":`)) {
		text = text[len(`{"detail":`):]
	}
	name := []byte(strconv.Itoa(a.Status) + " ")
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
