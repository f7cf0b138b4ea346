package state

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"

	"exchange/core/compare"
	"exchange/core/ledger"
	"exchange/core/matching"
	"exchange/core/trading"
)

// A Comparison compares two states in chunks, so that neither blocks for long. Between two chunks
// both states may advance, if they are at the same sequence again at the next. A compared chunk is
// not compared again.
type Comparison struct {
	section    section
	index      int // next entry in the section's list
	open       compare.Lists[ledger.OpenOrder]
	book       compare.Lists[matching.Resting]
	waiting    compare.Lists[matching.Stop]
	one, other writer
}

// A section of a state is one of its lists, or everything else.
type section int

const (
	general  section = iota // counters, currencies, maintenance
	accounts                // with their pending withdrawals and mails
	open                    // orders of each account
	keys
	pairs
	books
	stops // including their queues
	sections
)

// sectionTexts are the names of the lists, and of an entry of each.
var sectionTexts = [sections]struct{ list, entry string }{
	general:  {"parts", "counters, currencies or maintenance"},
	accounts: {"accounts", "account "},
	open:     {"accounts", "the open orders of account "},
	keys:     {"keys", "key number "},
	pairs:    {"pairs", "the market of "},
	books:    {"books", "the book of "},
	stops:    {"pairs", "the stops of "},
}

// Bounds of a chunk, about a millisecond: entries, their bytes in an image, and orders. Everything
// outside the lists is one chunk.
const (
	entriesAtOnce = 64
	bytesAtOnce   = 128 << 10
	ordersAtOnce  = 500
)

// Next compares the next chunk. It reports whether that was the last. The error names the first
// difference.
func (c *Comparison) Next(one, other *State) (done bool, err error) {
	if one.seq != other.seq {
		return true, fmt.Errorf("the states are at sequences %d and %d", one.seq, other.seq)
	}
	n := c.length(one)
	if o := c.length(other); o != n {
		return true, fmt.Errorf("the states differ in the number of %s: %d and %d",
			sectionTexts[c.section].list, n, o)
	}
	switch c.section {
	case open:
		err = some(c, &c.open, one, other, (*State).openOf)
	case books:
		err = some(c, &c.book, one, other, func(s *State, i int) compare.Side[matching.Resting] {
			return compare.Side[matching.Resting]{After: s.pairs[i].Book.Open}
		})
	case stops:
		err = some(c, &c.waiting, one, other, func(s *State, i int) compare.Side[matching.Stop] {
			return compare.Side[matching.Stop]{After: s.pairs[i].Stops.All}
		})
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

// differ returns the error that names the present entry.
func (c *Comparison) differ(s *State) error {
	name := ""
	switch c.section {
	case accounts, open:
		name = s.accounts[c.index].Name
	case keys:
		name = strconv.Itoa(c.index + 1)
	case pairs, books, stops:
		name = s.pairs[c.index].Name
	}
	return fmt.Errorf("the states differ in %s%s", sectionTexts[c.section].entry, name)
}

// entry compares one entry by its bytes in an image.
func (c *Comparison) entry(one, other *State) error {
	c.write(&c.one, one)
	c.write(&c.other, other)
	if bytes.Equal(c.one.buf, c.other.buf) {
		return nil
	}
	return c.differ(one)
}

func (c *Comparison) write(w *writer, s *State) {
	w.buf, w.size = w.buf[:0], math.MaxInt
	switch c.section {
	case general:
		w.general(s)
	case accounts:
		w.account(s.accounts[c.index])
		w.uint(s.tradeCounts[s.accounts[c.index].ID])
		w.closedIDs(s.accounts[c.index])
		w.outstanding(s, s.accounts[c.index])
	case keys:
		w.key(s.keys[c.index])
	case pairs:
		w.market(s.pairs[c.index])
	}
}

// general writes everything but accounts, keys and pairs, and the numbers of accounts' entries.
func (w *writer) general(s *State) {
	w.counters(s)
	w.uint(uint64(len(s.withdrawals)), uint64(s.Mails()))
	w.maintenance(s)
}

// outstanding writes an account's pending withdrawals, and all its mails: about these, about
// refused ones, and about its e-mail addresses.
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
		for _, id := range slices.Concat(a.rare.noticeMails, a.rare.changeMails) {
			mail(id)
		}
	}
}

// some compares some entries of the lists of the next accounts or pairs. An empty list counts as an
// entry.
func some[T comparable](c *Comparison, lists *compare.Lists[T], one, other *State,
	list func(*State, int) compare.Side[T]) error {
	for n := ordersAtOnce; n > 0 && c.index < c.length(one); n-- {
		left, differ := lists.Next(list(one, c.index), list(other, c.index), n)
		if differ != nil {
			return fmt.Errorf("%w: one has %s where the other has %s", c.differ(one), differ.One,
				differ.Other)
		}
		if n = left; left > 0 {
			c.index++
		}
	}
	return nil
}

// openOf returns an account's open orders, with their instructions.
func (s *State) openOf(account int) compare.Side[ledger.OpenOrder] {
	a := s.accounts[account]
	return compare.Side[ledger.OpenOrder]{After: a.Open.Oldest, More: func(o ledger.OpenOrder) any {
		is := openDetail{Naming: a.ClientIDs.Naming(o.ID)}
		if x := s.Pair(o.Pair).Instructed(o.ID); x != nil {
			is.instructions = x.Pack()
		}
		if is == (openDetail{}) {
			return nil
		}
		return is
	}}
}

// An openDetail is an open order's client order id and instructions, "" for a plain one.
type openDetail struct {
	ledger.Naming
	instructions trading.Packed
}

func (n openDetail) String() string {
	return fmt.Sprintf("%v, instructions %x", n.Naming, string(n.instructions))
}
