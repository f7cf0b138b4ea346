package state

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"exchange/core/matching"
)

// A Comparison goes through two states side by side, a part at a time, so that neither stands
// still for long. Between two parts both states may go on, if they are at the same sequence again
// at the next. What was compared once is not looked at again.
type Comparison struct {
	section    section
	index      int // of the next entry of the section's list
	book       *matching.Comparison
	one, other writer
}

// A section of a state is a list, or what is no list.
type section int

const (
	general section = iota // counters, currencies, pending withdrawals, mails, maintenance
	accounts
	keys
	pairs
	books
	sections
)

// These bound a part to a millisecond or so: entries, their bytes in an image, and orders. What is
// no list, with all pending withdrawals and mails, is one part.
const (
	entriesAtOnce = 64
	bytesAtOnce   = 128 << 10
	ordersAtOnce  = 2000
)

// Next compares the next part. It reports whether that was the last. The error names the first
// difference.
func (c *Comparison) Next(one, other *State) (done bool, err error) {
	if one.seq != other.seq {
		return true, fmt.Errorf("the states are at sequences %d and %d", one.seq, other.seq)
	}
	n := c.length(one)
	if o := c.length(other); o != n {
		return true, fmt.Errorf("the states have %d and %d %v", n, o, c.section)
	}
	if c.section == books {
		err = c.nextOrders(one, other, n)
	} else {
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
	case accounts:
		return len(s.accounts)
	case keys:
		return len(s.keys)
	case pairs, books:
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
	return errors.New("the states differ in counters, currencies, withdrawals, mails or " +
		"maintenance")
}

func (c *Comparison) write(w *writer, s *State) {
	w.buf, w.size = w.buf[:0], math.MaxInt
	switch c.section {
	case general:
		w.general(s)
	case accounts:
		w.account(s.accounts[c.index])
		w.uint(s.trades[s.accounts[c.index].ID])
	case keys:
		w.key(s.keys[c.index])
	case pairs:
		w.market(s.pairs[c.index])
	}
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

// String returns the section's list, as errors name it.
func (s section) String() string {
	return [...]string{"parts", "accounts", "keys", "pairs", "books"}[s]
}
