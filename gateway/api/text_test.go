package api

import "testing"

func texts(bytes ...int) (all []piece) {
	for _, n := range bytes {
		json := make([]byte, n)
		all = append(all, piece{json, &text{json: json}})
	}
	return all
}

// One account or address has a share of the budget, for answers that it requested first. The rest
// is for other clients.
func TestNoClientTakesTheWholeBudget(t *testing.T) {
	m := NewBudget(400)
	greedy, other := client{address: 1}, client{account: 1}
	one, two, large := texts(60), texts(60), texts(300)
	part := []piece{{one[0].json[10:20], one[0].of}}
	for i, c := range []struct {
		pieces []piece
		from   client
		want   bool
	}{
		{one, greedy, true}, {two, greedy, false}, {texts(40), greedy, true},
		{texts(1), greedy, false},
		{part, greedy, true}, // a part of an existing text
		{one, other, true},   // whose owner is another
		{large, other, true}, // the first may be large
		{texts(1), client{account: 2}, false},
		{[]piece{bookBegin, bookEnd}, client{account: 2}, true}, // constants cost nothing
	} {
		if got := m.take(c.pieces, c.from, false); got != c.want {
			t.Errorf("answer %d: %v, with %d bytes in all and %v", i, got, m.held, m.shares)
		}
	}
	m.giveBack(one)
	m.giveBack(one)
	if m.held != 400 {
		t.Errorf("%d bytes wait, and a part of the first text still does", m.held)
	}
	m.giveBack(part)
	m.giveBack(large)
	if m.held != 40 || m.texts != 1 || len(m.shares) != 1 {
		t.Errorf("%d bytes of %d texts wait for %v", m.held, m.texts, m.shares)
	}
}

// Packing is for medium answers: one that the budget bounds is never copied for it.
func TestAnswersOfSomeSizeArePacked(t *testing.T) {
	for _, x := range []struct {
		bytes int
		want  bool
	}{{leastPacked - 1, false}, {leastPacked, true}, {mostPacked, true}, {mostPacked + 1, false}} {
		plain := &Call{Status: 200, body: make([]byte, x.bytes)}
		shared := &Call{Status: 200, pieces: texts(10, x.bytes-10)}
		if plain.IsBulky() != x.want || shared.IsBulky() != x.want {
			t.Errorf("%d bytes are packed: %v and %v", x.bytes, plain.IsBulky(), shared.IsBulky())
		}
	}
}

// The outcome of a command is sent at any size, because neither "not known" nor "refused" would be
// true.
func TestTheAnswerToACommandNeedsNoRoom(t *testing.T) {
	m := NewBudget(100_000)
	if !m.take(texts(50_000), client{account: 1}, false) {
		t.Fatal("the first answer has no room")
	}
	answer := func(must bool) (*Call, *Large) {
		c := &Call{Status: 200, body: make([]byte, 200_000)}
		return c, c.End(m, must)
	}
	if c, large := answer(false); large != nil || c.Failure != Overloaded || c.Status != 503 {
		t.Errorf("an optional answer beside a pending one was sent: %v", c.Failure)
	}
	c, large := answer(true)
	if large == nil || large.Length != 200_000 || c.Failure != nil {
		t.Fatalf("a mandatory answer was not sent: %v", c.Failure)
	}
	if texts, bytes := m.Waiting(); texts != 2 || bytes != 250_000 {
		t.Errorf("%d texts of %d bytes wait", texts, bytes)
	}
	for range 2 { // an edge may close it again
		if err := large.Close(); err != nil {
			t.Error(err)
		}
	}
	if texts, bytes := m.Waiting(); texts != 1 || bytes != 50_000 {
		t.Errorf("in the end %d texts of %d bytes wait", texts, bytes)
	}
}

// A list that grows beyond its memory is another text. Answers from the memory before keep theirs.
func TestEachMemoryOfAListCountsOnce(t *testing.T) {
	var s shownView
	m, entry := NewBudget(1<<20), func(b []byte, _ int) []byte { return append(b, "entry"...) }
	first := s.part(sellList, 0, 1, entry)
	same := s.part(sellList, 0, 1, entry)
	if first.of != same.of || first.of == nil {
		t.Error("one memory is two texts")
	}
	long := s.part(sellList, 1, 1000, entry)
	if long.of == first.of {
		t.Error("two memories are one text")
	}
	for _, p := range []piece{first, same, long} {
		m.take([]piece{p}, client{}, false)
	}
	if texts, bytes := m.Waiting(); texts != 2 ||
		bytes != int64(cap(first.of.json)+cap(long.of.json)) {
		t.Errorf("%d texts of %d bytes wait", texts, bytes)
	}
}
