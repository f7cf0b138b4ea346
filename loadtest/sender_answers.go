package loadtest

import (
	"bytes"
	"strconv"
	"time"

	"exchange/core/money"
	"exchange/loadtest/generator"
)

func priceOf(w request) money.Price   { return money.Price(w.ticks * w.pair.tick) }
func amountOf(w request) money.Amount { return money.Amount(w.lots * w.pair.lot) }

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

// Answered notes an answer. Each item of a batch counts like a request.
func (l *sender) Answered(number int, a generator.Answer, latency time.Duration) (rest bool) {
	before := l.stats.done
	rest = l.outcomes(l.conns[number], a, latency)
	if len(l.o.Stages) > 0 {
		l.stats.finish(l.phase.Schedule, time.Since(l.phase.Begin), l.stats.done-before)
	}
	return rest
}

// outcomes notes the outcomes of a request's items.
func (l *sender) outcomes(c *conn, a generator.Answer, latency time.Duration) (rest bool) {
	if l.o.Batch > 0 && a.Status == 200 && c.items[0].op <= opAmend {
		l.availability[c.at].noteSuccess()
		l.results(c, a.Body, latency)
		return false
	}
	if a.Status >= 500 {
		l.availability[c.at].noteFailure()
	} else {
		l.availability[c.at].noteSuccess()
	}
	for i := range c.items {
		rest = l.answered(c, &c.items[i], a, latency)
	}
	return rest
}

// results notes the answers to the items of a batch. Missing ones have no outcome.
func (l *sender) results(c *conn, body []byte, latency time.Duration) {
	n := 0
	err := eachResult(body, func(a generator.Answer) {
		if n < len(c.items) {
			l.answered(c, &c.items[n], a, latency)
		}
		n++
	})
	if err != nil && n >= len(c.items) || n > len(c.items) { // all have outcomes, and there is more
		l.stats.kind(notUnderstood)
	}
	for ; n < len(c.items); n++ {
		l.stats.kind(notUnderstood)
		l.noteUnknown(c, &c.items[n], latency)
	}
}

const notUnderstood = "answer not understood"

// noteUnknown notes an item whose outcome is unknown.
func (l *sender) noteUnknown(c *conn, x *item, latency time.Duration) {
	l.stats.note(x, c.at, latency, isUnknown)
	l.over(c.user, x)
}

// answered notes the answer to one item.
func (l *sender) answered(c *conn, x *item, a generator.Answer, latency time.Duration) (rest bool) {
	s, u := l.stats, c.user
	note := func(r result) { s.note(x, c.at, latency, r) }
	defer l.over(u, x)
	switch {
	case a.Status == 503 && !a.Later || a.Status >= 500 && a.Status != 503,
		bytes.Contains(a.Body, outcomeUnknown):
		// An error of the server leaves the outcome as unknown.
		s.kind(kindOf(a))
		note(isUnknown)
	case a.Status/100 == 2:
		if !l.accepted(u, x, a) {
			s.kind(notUnderstood)
			note(isUnknown)
			return false
		}
		note(isDone)
	case x.op == opCancel && bytes.Contains(a.Body, alreadyDone):
		u.outcome(x, refused)
		note(isLate)
	default:
		u.outcome(x, refused)
		if x.order >= 0 && (x.op == opCancel && a.Later || x.op == opAmend) { // it may still rest
			o := &u.orders[x.order]
			o.cancelSent = false
			u.open = append(u.open, openOrder{o.id, x.order})
			x.rests = true
		}
		if x.op == opAmend && bytes.Contains(a.Body, alreadyDone) {
			note(isLate)
			return false
		}
		s.kind(kindOf(a))
		note(isRefused)
		return a.Later
	}
	return false
}

// Broken notes that a connection ended. The outcome of a request in flight is unknown.
func (l *sender) Broken(number int, reason string, inFlight bool, latency time.Duration) error {
	c, s := l.conns[number], l.stats
	if inFlight || reason == generator.NotConnected {
		l.availability[c.at].noteFailure()
		s.kind(reason)
	}
	for i := range c.items {
		if inFlight {
			l.noteUnknown(c, &c.items[i], latency)
		}
	}
	return nil
}

// Unsent counts a request that was due without a free connection.
func (l *sender) Unsent(stage int, waited time.Duration) {
	for range max(1, l.o.Batch) {
		l.stats.noteUnsent(stage, waited)
	}
}

// outcome notes how an order or a cancel ended.
func (u *user) outcome(x *item, to outcome) {
	switch {
	case x.order < 0:
	case x.op == opPlace:
		u.orders[x.order].outcome = to
	case x.op == opCancel:
		u.orders[x.order].cancelOutcome = to
	case x.op == opAmend:
		u.orders[x.order].change = to
	}
}

// accepted returns false for an answer that is not one of an exchange.
func (l *sender) accepted(u *user, x *item, a generator.Answer) bool {
	if x.op != opPlace && x.op != opAmend {
		u.outcome(x, done)
		return true
	}
	p, err := readPlaced(a.Body)
	if err != nil {
		return false
	}
	o := &u.orders[x.order]
	if u.trades, err = readTaken(u.trades, p.trades, o.pair, o.buy); err != nil {
		return false
	}
	if p.prevented != nil && u.prevented(p.prevented) != nil {
		return false
	}
	if x.op == opAmend {
		u.amended(x, &p)
		return true
	}
	if u.lag != nil {
		u.lag.noteAck(p.id, time.Now())
	}
	o.id, o.filled, o.cut, o.outcome = p.id, p.filled, p.cutOff > 0, done
	l.witness.offer(seen{u.account, p.id, p.filled, int(o.at)})
	if p.remaining > 0 {
		u.open = append(u.open, openOrder{p.id, x.order})
		x.rests = true
	}
	if l.o.NoVerify {
		u.trades = u.trades[:0]
	}
	return true
}

// kindOf names an error: its status and the text without the part that varies.
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
