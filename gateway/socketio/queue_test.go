package socketio

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// newRandom returns a source whose seed is printed, and taken from SEED to replay a failure.
func newRandom(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	if s := os.Getenv("SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, seed))
}

// text returns a delivery whose frame has a text.
func text(tag uint32, p Policy, s string) Delivery {
	return Delivery{Tag: tag, Policy: p, Frames: appendFrame(nil, textFrame, []byte(s))}
}

func shared(d Delivery) Delivery {
	d.Shared = true
	return d
}

// waiting returns the content of an outbox, as polling would have it.
func (q *outbox) waiting() string {
	var body []byte
	for _, e := range q.entries[q.head:] {
		for b := e.Frames; len(b) > 0; {
			kind, payload, rest, _ := nextFrame(b)
			body = appendPoll(body, kind, payload)
			b = rest
		}
	}
	return strings.ReplaceAll(string(body), "\x1e", " ")
}

func TestPoliciesOfWhatWaits(t *testing.T) {
	var q outbox
	f := func(want string, replaced int, list ...Delivery) {
		t.Helper()
		n := 0
		for _, d := range list {
			n += q.push(d)
		}
		if q.waiting() != want || n != replaced {
			t.Errorf("%q waits, %d are replaced; want %q, %d", q.waiting(), n, want, replaced)
		}
	}
	f("a b t1 u1", 0, text(0, Keep, "a"), text(0, Keep, "b"), text(1, Latest, "t1"),
		text(2, Latest, "u1"))
	f("a b t2 u1 c", 1, text(0, Keep, "c"), text(1, Latest, "t2"))
	f("a b t2 u1 c r1 s1 r2", 0, text(3, Resync, "r1"), text(4, Resync, "s1"),
		text(3, Resync, "r2"))
	f("a b t2 u1 c s1 R", 2, shared(text(3, Resync, "R")))
	// the older snapshot goes too
	f("a b t2 u1 c s1 R", 2, text(3, Resync, "r3"), shared(text(3, Resync, "R")))
	f("a b t2 u1 c s1 R r4", 0, text(3, Resync, "r4"))
	f("a b t2 u2 c s1 R r4", 1, text(2, Latest, "u2")) // found after all the moving
	dropped, n := q.dropResync([]uint32{4})
	if !slices.Equal(dropped, []uint32{4, 4, 3}) || n != 3 {
		t.Errorf("%v, %d", dropped, n)
	}
	f("a b t2 u3 c", 1, text(2, Latest, "u3"))
	f("a b t2 u3 c S", 0, shared(text(4, Resync, "S")))
	// a snapshot alone costs nothing
	if dropped, n := q.dropResync(nil); len(dropped) != 0 || n != 0 {
		t.Errorf("%v, %d", dropped, n)
	}
	f("a b t2 u3 c S K K", 0, shared(text(9, Keep, "K")), shared(text(9, Keep, "K")))
	if want := 7*(2+entryOverhead) + len("a"+"b"+"t2"+"u3"+"c"+"K") -
		1*(2+entryOverhead); q.bytes != want {
		t.Errorf("%d bytes count, want %d", q.bytes, want)
	}
}

// Of a state that is final and the states after it, the first is never left out or overtaken.
func TestAFinalStateStays(t *testing.T) {
	var q outbox
	f := func(want string, replaced int, d Delivery) {
		t.Helper()
		if n := q.push(d); q.waiting() != want || n != replaced {
			t.Errorf("%q waits, %d are replaced; want %q, %d", q.waiting(), n, want, replaced)
		}
	}
	f("a1", 0, text(1, Latest, "a1"))
	f("a1 x", 0, text(2, Keep, "x"))
	f("a2 x", 1, text(1, Final, "a2"))
	f("a2 x b1", 0, text(1, Latest, "b1"))
	f("a2 x b2", 1, text(1, Latest, "b2"))
	f("a2 x b3", 1, text(1, Final, "b3"))
	f("a2 x b3 c1", 0, text(1, Final, "c1"))
	f("a2 x b3 c1 d1", 0, text(1, Latest, "d1"))
	q.pieces(nil, 5, 100) // all is with the writer, which writes the first
	f("a2 x b3 c1 d1 d2", 0, text(1, Final, "d2"))
	q.advance(4)
	f("x b3 c1 d1 d2 e1", 0, text(1, Latest, "e1"))
}

func TestAFrameThatIsBeingWrittenIsNotReplaced(t *testing.T) {
	var q outbox
	for _, d := range []Delivery{text(1, Latest, "t1"), text(2, Latest, "u1"),
		text(3, Resync, "r1"), text(1, Latest, "t2")} {
		q.push(d)
	}
	f := func(want string) {
		t.Helper()
		if q.waiting() != want {
			t.Errorf("%q waits, want %q", q.waiting(), want)
		}
	}
	f("t2 u1 r1")
	q.pieces(nil, 1, 100) // the first is with the writer
	q.push(text(1, Latest, "t3"))
	f("t2 u1 r1 t3")
	q.push(text(1, Latest, "t4"))
	f("t2 u1 r1 t4")
	q.advance(1) // a part of it
	if !q.begun || q.flight != 0 {
		t.Error("nothing has begun")
	}
	q.advance(3)
	f("u1 r1 t4")
	q.push(text(2, Latest, "u2"))
	q.pieces(nil, 2, 100)
	q.dropResync(nil)
	f("u2 r1 t4") // with the writer
	q.advance(4)
	q.dropResync(nil)
	f("t4")
	q.advance(4)
	if !q.empty() || q.entries != nil || q.latest != nil || q.bytes != 0 {
		t.Errorf("%+v", q)
	}
}

// An outboxModel is the obvious outbox: a list of deliveries.
type outboxModel struct {
	t     *testing.T
	list  []Delivery
	fixed int  // deliveries that the writer has
	begun bool // a part of the first is written
}

// take gives the writer pieces.
func (m *outboxModel) take(q *outbox, n int) {
	pieces := q.pieces(nil, n, 1<<20)
	if n = min(n, len(m.list)); len(pieces) != n {
		m.t.Fatalf("%d pieces, want %d", len(pieces), n)
	}
	m.fixed = n
}

// held returns the number of bytes that the writer has.
func (m *outboxModel) held() (total int) {
	for _, d := range m.list[:m.fixed] {
		total += len(d.Frames)
	}
	return total
}

// advance notes that n bytes are written.
func (m *outboxModel) advance(q *outbox, n int) {
	q.advance(n)
	m.fixed = 0
	if m.begun {
		m.fixed = 1
	}
	for n > 0 {
		d := &m.list[0]
		if n < len(d.Frames) {
			d.Frames = d.Frames[n:]
			m.fixed, m.begun = 1, true
			break
		}
		n -= len(d.Frames)
		m.list = m.list[1:]
		m.fixed, m.begun = 0, false
	}
}

// without leaves out deliveries that the writer does not have.
func (m *outboxModel) without(such func(Delivery) bool) {
	m.list = append(m.list[:m.fixed:m.fixed],
		slices.DeleteFunc(slices.Clone(m.list[m.fixed:]), such)...)
}

func (m *outboxModel) dropResync(q *outbox) {
	var want []uint32
	for _, d := range m.list[m.fixed:] {
		if d.Policy == Resync && !d.Shared && !slices.Contains(want, d.Tag) {
			want = append(want, d.Tag)
		}
	}
	m.without(func(d Delivery) bool {
		return d.Policy == Resync && slices.Contains(want, d.Tag)
	})
	if got, _ := q.dropResync(nil); !slices.Equal(got, want) {
		m.t.Fatalf("dropped %v, want %v", got, want)
	}
}

func (m *outboxModel) push(q *outbox, d Delivery) {
	q.push(d)
	m.list = slices.Clone(m.list)
	if d.Shared {
		m.without(func(e Delivery) bool { return e.Tag == d.Tag })
	}
	if d.Policy == Latest || d.Policy == Final {
		for i := len(m.list) - 1; i >= m.fixed; i-- {
			if m.list[i].Tag == d.Tag {
				if m.list[i].Policy == Latest {
					m.list[i] = d
					return
				}
				break // a final state stays, and what comes later follows it
			}
		}
	}
	m.list = append(m.list, d)
}

// compare wants the outbox to have what the model has.
func (m *outboxModel) compare(q *outbox, step int) {
	bytes := 0
	got := q.entries[q.head:]
	for i, d := range m.list {
		bytes += cost(&d)
		if len(got) != len(m.list) || string(got[i].Frames) != string(d.Frames) ||
			got[i].Tag != d.Tag {
			m.t.Fatalf("step %d: %v, want %v", step, got, m.list)
		}
	}
	if q.bytes != bytes || len(got) != len(m.list) {
		m.t.Fatalf("step %d: %d bytes of %d, want %d of %d", step, q.bytes, len(got), bytes,
			len(m.list))
	}
}

// An outbox does the same as the model after any course of pushes and writes.
func TestAnOutboxDoesWhatTheObviousOneDoes(t *testing.T) {
	random := newRandom(t)
	for range 300 {
		q, m := &outbox{}, &outboxModel{t: t}
		for step := range 200 {
			switch random.IntN(5) {
			case 0:
				m.take(q, 1+random.IntN(5))
			case 1:
				n := 0
				if total := m.held(); total > 0 {
					n = random.IntN(total + 1)
				}
				m.advance(q, n)
			case 2:
				m.dropResync(q)
			default:
				p := Policy(random.IntN(int(policies)))
				tag := uint32(p)*10 + random.Uint32N(3)
				if p == Final { // of states
					tag = uint32(Latest)*10 + random.Uint32N(3)
				}
				d := text(tag, p, fmt.Sprint(step))
				d.Shared = p == Resync && random.IntN(4) == 0
				m.push(q, d)
			}
			m.compare(q, step)
		}
	}
}

// made returns a delivery that is made in so many parts, which counts in made those that exist.
func made(tag uint32, parts int, made *int) Delivery {
	next := func() []byte {
		if *made == parts {
			return nil
		}
		*made++
		return appendFrame(nil, textFrame, []byte(fmt.Sprint("part", *made)))
	}
	return Delivery{Tag: tag, Policy: Keep, Frames: next(), More: next}
}

func TestALongDeliveryIsMadeAsTheClientTakesIt(t *testing.T) {
	var q outbox
	count := 0
	q.push(made(1, 3, &count))
	q.push(text(1, Keep, "last"))
	bytes := q.bytes
	for want := 1; want <= 3; want++ {
		if count != want || q.bytes != bytes {
			t.Errorf("%d parts are made and %d bytes wait, want %d and %d", count, q.bytes, want,
				bytes)
		}
		pieces := q.pieces(nil, 5, 1000)
		if len(pieces) != 1 { // what follows the delivery goes behind its last part
			t.Fatalf("%d pieces are lent before part %d is written", len(pieces), want)
		}
		q.advance(len(pieces[0]))
	}
	if q.waiting() != "last" {
		t.Errorf("%q waits", q.waiting())
	}
	// polling takes as many parts as fit
	q, count = outbox{}, 0
	q.push(made(1, 3, &count))
	q.push(text(1, Keep, "last"))
	if got := string(q.poll(nil, 12)); got != "part1\x1epart2" || count != 3 {
		t.Errorf("%q, and %d parts are made", got, count)
	}
	if got := string(q.poll(nil, 100)); got != "part3\x1elast" || !q.empty() || q.bytes != 0 {
		t.Errorf("%q, and %d bytes are left", got, q.bytes)
	}
}
