package matching

import "fmt"

// A StopComparison goes through the stops of two sides, some at a time: rising ones, falling ones,
// then the queue, each in order. Between two steps both may change, if they change alike. A stop
// that comes to a place behind which the comparison is already is not compared; one that is
// triggered meanwhile is compared again in the queue.
type StopComparison struct {
	list       int
	one, other entry // places in the list from which the next step goes on; turns differ

	n            int    // stops of a step
	ones, others []Stop // of the last step
}

// A StopDifference is the first place at which two sides differ. A stop without an id is none.
type StopDifference struct{ one, other Stop }

// Texts returns both stops for a message.
func (d *StopDifference) Texts() (one, other string) {
	text := func(s Stop) string {
		if s.Order.ID == 0 {
			return "nothing"
		}
		return fmt.Sprintf("%+v", s)
	}
	return text(d.one), text(d.other)
}

// Next compares the next n stops, at least one. It reports whether these were the last. A nil
// difference means that they are equal.
func (c *StopComparison) Next(one, other *Stops, n int) (done bool, differ *StopDifference) {
	c.Take(one, n)
	return c.With(other)
}

// Take is the first half of Next: it copies the next n stops of one side.
func (c *StopComparison) Take(one *Stops, n int) {
	c.n = n
	c.ones, c.one = one.appendFrom(c.ones[:0], c.list, c.one, n)
}

// With is the second half of Next: it compares the copies with the other side as it was when they
// were taken.
func (c *StopComparison) With(other *Stops) (done bool, differ *StopDifference) {
	c.others, c.other = other.appendFrom(c.others[:0], c.list, c.other, c.n)
	for i := range max(len(c.ones), len(c.others)) {
		var d StopDifference
		if i < len(c.ones) {
			d.one = c.ones[i]
		}
		if i < len(c.others) {
			d.other = c.others[i]
		}
		if d.one != d.other {
			return true, &d
		}
	}
	if len(c.ones) == c.n {
		return false, nil
	}
	c.list, c.one, c.other = c.list+1, entry{}, entry{}
	return c.list == len(other.lists()), nil
}

// appendFrom appends n stops of a list to dst, from a place on, and returns the place behind them.
func (s *Stops) appendFrom(dst []Stop, list int, from entry, n int) ([]Stop, entry) {
	for e := range s.lists()[list].from(from) {
		if n == 0 {
			break
		}
		dst = append(dst, s.records.at(s.numbers[e.id]).Stop)
		from = entry{e.key, e.id + 1}
		n--
	}
	return dst, from
}
