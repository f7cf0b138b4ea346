package api

import (
	"net"
	"slices"
	"sync"

	"exchange/actors/committed"
)

// A text is memory with JSON of answers. Many answers can share one text, and each shows a part of
// it.
type text struct {
	json []byte

	// The budget's mutex guards the rest.
	answers int    // answers that use the text and are not yet sent
	client  client // of the first answer
}

// A piece of an answer.
type piece struct {
	json []byte
	of   *text // the text that json is a part of; nil: a constant
}

func lengthOf(pieces []piece) (bytes int) {
	for _, p := range pieces {
		bytes += len(p.json)
	}
	return bytes
}

// A client is the owner of a large answer: an account, or the address of a public call.
type client struct {
	account uint32 // 0: the address
	address uint64
}

func (c *Call) client() client {
	if c.Key != nil {
		return client{account: c.Key.Account.ID}
	}
	return client{address: c.Address}
}

// largeBytes is the size of the largest answer that an edge copies, and whose memory a Call keeps.
// A Budget bounds larger answers.
const largeBytes = 64 << 10

// End returns a large answer, which uses the budget until its edge closes it; nil: the answer is
// Body. Beyond the budget the call fails with Overloaded, unless mustAnswer is set: a command was
// executed.
func (c *Call) End(b *Budget, mustAnswer bool) *Large {
	switch {
	case c.Status >= 300:
		return nil
	case len(c.body) > largeBytes:
		c.pieces = append(c.pieces[:0], piece{c.body, &text{json: c.body}})
		c.body = nil
	case lengthOf(c.pieces) <= largeBytes:
		return nil
	}
	if pieces := slices.Clone(c.pieces); b.take(pieces, c.client(), mustAnswer) {
		return newLarge(b, pieces)
	}
	c.isBook = false
	c.Fail(Overloaded, "")
	return nil
}

// Body returns an answer that is not large. A shared body is immutable; any other is valid until
// the next use of the call.
func (c *Call) Body() (json []byte, shared bool) {
	switch {
	case c.Status >= 300:
	case len(c.pieces) == 1:
		return c.pieces[0].json, true
	default:
		for _, p := range c.pieces {
			c.body = append(c.body, p.json...)
		}
		c.pieces = c.pieces[:0]
	}
	return c.body, false
}

// A Budget bounds the memory of large answers, which are held until the client has read them, for
// up to timing.write_timeout_ms. limits.answers_bytes bounds all clients together. Otherwise some
// hundred connections that request deep books and read nothing would use all memory. A text that
// several answers share is charged once, to the account or address of the first answer. An account
// or address may use a quarter of the budget.
type Budget struct {
	most int64 // bytes

	mu     sync.Mutex
	held   int64            // bytes
	texts  int              // of answers not yet sent
	shares map[client]int64 // bytes by the client of the first answer
}

// NewBudget makes a budget of some bytes.
func NewBudget(bytes int64) *Budget {
	return &Budget{most: bytes, shares: map[client]int64{}}
}

// A client's share of a budget is 1/clientShare, for texts whose first answers are its own.
const clientShare = 4

// take charges the pieces of an answer to a client, all of them or none. It returns false if they
// would exceed the budget. A client's first answer is possible while the budget is empty, however
// large, and an answer with mustAnswer always is.
func (b *Budget) take(pieces []piece, from client, mustAnswer bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	more := int64(0)
	for _, p := range pieces {
		if p.of != nil && p.of.answers == 0 {
			more += p.of.size()
		}
	}
	share := b.shares[from]
	if !mustAnswer && more > 0 && (b.held > 0 && b.held+more > b.most ||
		share > 0 && share+more > b.most/clientShare) {
		return false
	}
	for _, p := range pieces {
		if p.of == nil {
			continue
		}
		if p.of.answers == 0 {
			p.of.client = from
			b.held += p.of.size()
			b.texts++
			b.shares[from] += p.of.size()
		}
		p.of.answers++
	}
	return true
}

// size is the memory of a text, in bytes.
func (t *text) size() int64 { return int64(cap(t.json)) }

// giveBack undoes take.
func (b *Budget) giveBack(pieces []piece) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range pieces {
		if p.of == nil {
			continue
		}
		if p.of.answers--; p.of.answers > 0 {
			continue
		}
		b.held -= p.of.size()
		b.texts--
		if b.shares[p.of.client] -= p.of.size(); b.shares[p.of.client] == 0 {
			delete(b.shares, p.of.client)
		}
	}
}

// A Large is a large answer. Its edge writes it and closes it afterwards, even after a failure.
type Large struct {
	net.Buffers // still to be written
	Length      int
	budget      *Budget
	pieces      []piece
}

func newLarge(b *Budget, pieces []piece) *Large {
	l := &Large{Length: lengthOf(pieces), budget: b, pieces: pieces}
	for _, p := range pieces {
		l.Buffers = append(l.Buffers, p.json)
	}
	return l
}

// Close implements io.Closer. The edge may call it again.
func (l *Large) Close() error {
	if l.pieces != nil {
		l.budget.giveBack(l.pieces)
		l.pieces, l.Buffers = nil, nil
	}
	return nil
}

// A shownView is the JSON of a view, encoded as far as requested. Each entry is encoded once.
type shownView struct {
	mu     sync.Mutex
	whole  func() *text // guarded by mu
	packed func() *text // the newest packed answer; guarded by mu
	has    span         // the span of packed; guarded by mu
	lists  [2]entries
}

// A span is an answer's part of a view's lists: the entries [from, to) of each.
type span [2]struct{ from, to int }

// entries are a list of a view.
type entries struct {
	mu   sync.Mutex
	text *text    // entries with commas between; replaced when it needs more memory
	ends []uint32 // end of each entry in text: no list of more than 4 GB could be sent
}

// shown returns the JSON that belongs to a view.
func shown(v *committed.View) *shownView {
	return v.Kept(func() any { return new(shownView) }).(*shownView)
}

// body returns the whole view in its one form. The first caller's encode makes it.
func (s *shownView) body(encode func() []byte) piece {
	s.mu.Lock()
	if s.whole == nil {
		s.whole = sync.OnceValue(func() *text { return &text{json: encode()} })
	}
	whole := s.whole
	s.mu.Unlock()
	t := whole() // lists are made meanwhile
	return piece{t.json, t}
}

// part returns the entries [from, to) of a list of the view, with commas between. entry appends the
// entry at an index. No entry after the last requested one is encoded.
func (s *shownView) part(list, from, to int, entry func(b []byte, place int) []byte) piece {
	if from >= to {
		return piece{}
	}
	l := &s.lists[list]
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text == nil {
		l.text = new(text)
	}
	if len(l.ends) < to {
		l.encode(to, entry)
	}
	begin := 0
	if from > 0 {
		begin = int(l.ends[from-1]) + 1
	}
	return piece{l.text.json[begin:l.ends[to-1]], l.text}
}

// encode encodes the entries up to an index (exclusive). mu is held.
func (l *entries) encode(to int, entry func(b []byte, place int) []byte) {
	b := l.text.json
	for place := len(l.ends); place < to; place++ {
		if place > 0 {
			b = append(b, ',')
		}
		b = entry(b, place)
		l.ends = append(l.ends, uint32(len(b)))
	}
	// Pending answers keep the previous memory, which stays charged until they are sent.
	if cap(b) != cap(l.text.json) {
		l.text = new(text)
	}
	l.text.json = b
}
