package actors

import "fmt"

// tickets numbers a wallet's commands in flight, and tracks up to which number all have returned.
// The account's admission limit bounds how many are out.
type tickets struct {
	base uint64 // all up to here have returned
	back []bool // back[i]: ticket base+1+i has returned
}

func (t *tickets) draw() uint64 {
	t.back = append(t.back, false)
	return t.last()
}

func (t *tickets) last() uint64 { return t.base + uint64(len(t.back)) }

// out returns an upper bound of tickets in flight, which is 0 exactly if there are none.
func (t *tickets) out() int { return len(t.back) }

func (t *tickets) allBack(upTo uint64) bool { return t.base >= upTo }

func (t *tickets) giveBack(ticket uint64) {
	if ticket <= t.base || ticket > t.last() || t.back[ticket-t.base-1] {
		panic(fmt.Sprintf("BUG: ticket %d comes back to a wallet that has %d to %d out", ticket,
			t.base+1, t.last()))
	}
	t.back[ticket-t.base-1] = true
	n := 0
	for n < len(t.back) && t.back[n] {
		n++
	}
	if n > 0 {
		t.base += uint64(n)
		t.back = t.back[:copy(t.back, t.back[n:])]
	}
}
