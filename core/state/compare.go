package state

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"

	"exchange/core/ledger"
	"exchange/core/matching"
	"exchange/core/trading"
)

// A Comparison goes through two states side by side, a part at a time, so that neither stands still
// for long. Between two parts both states may go on, if they are at the same sequence again at the
// next. A compared part is not looked at again.
type Comparison struct {
	section    section
	index      int // of the next entry of the section's list
	book       *matching.Comparison
	waiting    *matching.StopComparison
	open       ledger.Comparison
	one, other writer
}

// A section of a state is one of its lists, or the rest.
type section int

const (
	general  section = iota // counters, currencies, maintenance
	accounts                // with their pending withdrawals and mails
	open                    // orders of each account
	keys
	pairs
	books
	stops // their queues included
	sections
)

// These bound a part to a millisecond or so: entries, their bytes in an image, and orders. All that
// is in no list is one part.
const (
	entriesAtOnce = 64
	bytesAtOnce   = 128 << 10
	ordersAtOnce  = 2000 // of a book
	openAtOnce    = 500  // orders of accounts, with their client order ids
)

// Next compares the next part. It reports whether that was the last. The error names the first
// difference.
func (c *Comparison) Next(one, other *State) (done bool, err error) {
	if one.seq != other.seq {
		return true, fmt.Errorf("the states are at sequences %d and %d", one.seq, other.seq)
	}
	n := c.length(one)
	if o := c.length(other); o != n {
		return true, fmt.Errorf("the states differ in the number of %v: %d and %d", c.section, n, o)
	}
	switch c.section {
	case open:
		err = c.nextOpen(one, other, n)
	case books:
		err = c.nextOrders(one, other, n)
	case stops:
		err = c.nextStops(one, other, n)
	default:
		size := 0
		for end := min(c.index+entriesAtOnce, n); c.index < end && size < bytesAtOnce &&
			err == nil; c.index++ {
			err = c.entry(one, other)
			size += len(c.one.buf)
		}
	}
	if c.index >= n {
		c.section, c.index = c.section+1, 0
	}
	return c.section == sections || err != nil, err
}

func (c *Comparison) length(s *State) int {
	switch c.section {
	case accounts, open:
		return len(s.accounts)
	case keys:
		return len(s.keys)
	case pairs, books, stops:
		return len(s.pairs)
	}
	return 1
}

// entry compares one entry by its bytes in an image.
func (c *Comparison) entry(one, other *State) error {
	c.write(&c.one, one)
	c.write(&c.other, other)
	if bytes.Equal(c.one.buf, c.other.buf) {
		return nil
	}
	switch c.section {
	case accounts:
		return fmt.Errorf("the states differ in account %s", one.accounts[c.index].Name)
	case keys:
		return fmt.Errorf("the states differ in key number %d", c.index+1)
	case pairs:
		return fmt.Errorf("the states differ in the market of %s", one.pairs[c.index].Name)
	}
	return errors.New("the states differ in counters, currencies or maintenance")
}

func (c *Comparison) write(w *writer, s *State) {
	w.buf, w.size, w.named = w.buf[:0], math.MaxInt, true
	w.adjusted, w.held = true, true
	switch c.section {
	case general:
		w.general(s)
	case accounts:
		w.account(s.accounts[c.index])
		w.uint(s.trades[s.accounts[c.index].ID])
		w.outstanding(s, s.accounts[c.index])
	case keys:
		w.key(s.keys[c.index])
	case pairs:
		w.market(s.pairs[c.index])
	}
}

// general writes what is no account, key or pair, and the numbers of what accounts have.
func (w *writer) general(s *State) {
	w.counters(s)
	w.uint(uint64(len(s.withdrawals)), uint64(s.Mails()))
	w.maintenance(s)
}

// outstanding writes an account's pending withdrawals, and its mails: about these, about refused
// ones, and about its e-mail addresses. There are no other mails.
func (w *writer) outstanding(s *State, a *Account) {
	mail := func(id uint64) {
		if m := s.outbox.mails[id]; m != nil {
			w.uint(m.ID, uint64(m.TimeUs))
			w.mail(m)
		} else {
			w.uint(0)
		}
	}
	for _, d := range a.Withdrawals() {
		w.withdrawal(d)
		mail(s.outbox.codes[d.ID])
	}
	if a.rare != nil {
		for _, id := range slices.Concat(a.rare.notices, a.rare.changes) {
			mail(id)
		}
	}
}

// nextOpen compares some open orders of the next accounts. An account without any counts as one.
func (c *Comparison) nextOpen(one, other *State, n int) error {
	for left := openAtOnce; c.index < n; c.index++ {
		a, b := one.accounts[c.index], other.accounts[c.index]
		var differ *ledger.Difference
		left, differ = c.open.Next(one.ordersOf(a), other.ordersOf(b), left)
		if differ != nil {
			text, otherText := differ.Texts()
			return fmt.Errorf(
				"the states differ in the open orders of account %s: one has %s where the other "+
					"has %s", a.Name, text, otherText)
		}
		if left == 0 {
			return nil
		}
		c.open = ledger.Comparison{}
		left--
	}
	return nil
}

// ordersOf returns an account's open orders, with what they say, for a comparison.
func (s *State) ordersOf(a *Account) ledger.Orders {
	return ledger.Orders{Open: &a.Open, IDs: &a.ClientIDs,
		Says: func(o ledger.OpenOrder) trading.Packed {
			if x := s.Pair(o.Pair).Instructed(o.ID); x != nil {
				return x.Pack()
			}
			return ""
		}}
}

// nextOrders compares some orders of the next book.
func (c *Comparison) nextOrders(one, other *State, n int) error {
	if c.index >= n {
		return nil
	}
	if c.book == nil {
		c.book = new(matching.Comparison)
	}
	p := one.pairs[c.index]
	done, differ := c.book.Next(p.Book, other.pairs[c.index].Book, ordersAtOnce)
	if differ != nil {
		text, otherText := differ.Texts()
		return fmt.Errorf("the states differ in the book of %s: one has %s where the other has %s",
			p.Name, text, otherText)
	}
	if done {
		c.book = nil
		c.index++
	}
	return nil
}

// nextStops compares some stops of the next pair.
func (c *Comparison) nextStops(one, other *State, n int) error {
	if c.index >= n {
		return nil
	}
	if c.waiting == nil {
		c.waiting = new(matching.StopComparison)
	}
	p := one.pairs[c.index]
	done, differ := c.waiting.Next(p.Stops, other.pairs[c.index].Stops, ordersAtOnce)
	if differ != nil {
		text, otherText := differ.Texts()
		return fmt.Errorf("the states differ in the stops of %s: one has %s where the other has %s",
			p.Name, text, otherText)
	}
	if done {
		c.waiting = nil
		c.index++
	}
	return nil
}

// String returns the section's list, as errors name it.
func (s section) String() string {
	return [...]string{"parts", "accounts", "accounts", "keys", "pairs", "books", "pairs"}[s]
}
