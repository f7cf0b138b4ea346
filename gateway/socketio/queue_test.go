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
		n := must(strconv.ParseUint(s, 10, 64))
		seed = n
	}
	t.Logf("SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, seed))
}

// text returns a delivery whose frame has a text.
func text(tag uint32, p Policy, s string) Delivery {
	return Delivery{Tag: tag, Policy: p, Frames: appendFrame(nil, textFrame, []byte(s))}
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

// without leaves out deliveries that the writer does not have, and returns how many.
func (m *outboxModel) without(such func(Delivery) bool) (n int) {
	rest := slices.DeleteFunc(slices.Clone(m.list[m.fixed:]), such)
	n = len(m.list) - m.fixed - len(rest)
	m.list = append(m.list[:m.fixed:m.fixed], rest...)
	return n
}

func (m *outboxModel) dropResync(q *outbox) {
	var want []uint32
	for _, d := range m.list[m.fixed:] {
		if d.Policy == Resync && !d.Shared && !slices.Contains(want, d.Tag) {
			want = append(want, d.Tag)
		}
	}
	dropped := m.without(func(d Delivery) bool {
		return d.Policy == Resync && slices.Contains(want, d.Tag)
	})
	// the tags of a list before are another's
	if got, n := q.dropResync([]uint32{30}); !slices.Equal(got[1:], want) || n != dropped {
		m.t.Fatalf("dropped %v, %d deliveries, want %v, %d", got, n, want, dropped)
	}
}

// push returns the number of deliveries that are replaced.
func (m *outboxModel) push(d Delivery) (replaced int) {
	m.list = slices.Clone(m.list)
	switch {
	case d.Shared && d.Policy == Keep: // a second one counts
		d.Shared = !slices.ContainsFunc(m.list, func(e Delivery) bool {
			return e.Shared && e.Policy == Keep && e.Tag == d.Tag
		})
	case d.Shared:
		replaced = m.without(func(e Delivery) bool { return e.Tag == d.Tag })
	}
	if d.Policy == Latest || d.Policy == Final {
		for i := len(m.list) - 1; i >= m.fixed; i-- {
			if m.list[i].Tag == d.Tag {
				if m.list[i].Policy == Latest {
					m.list[i] = d
					return 1
				}
				break // a final state stays, and later ones follow it
			}
		}
	}
	m.list = append(m.list, d)
	return replaced
}

// compare checks that the outbox equals the model.
func (m *outboxModel) compare(q *outbox, step int) {
	bytes := 0
	got := q.entries[q.head:]
	for i, d := range m.list {
		if !d.Shared {
			bytes += len(d.Frames) + entryOverhead
		}
		if len(got) != len(m.list) || string(got[i].Frames) != string(d.Frames) ||
			got[i].Tag != d.Tag {
			m.t.Fatalf("step %d: %v, want %v", step, got, m.list)
		}
	}
	if q.bytes != bytes || len(got) != len(m.list) {
		m.t.Fatalf("step %d: %d bytes of %d, want %d of %d", step, q.bytes, len(got), bytes,
			len(m.list))
	}
	if len(m.list) == 0 && (q.entries != nil || q.latest != nil) {
		m.t.Fatalf("step %d: an empty outbox keeps memory", step)
	}
}

// An outbox does the same as the model after any course of pushes and writes.
func TestOutboxMatchesModel(t *testing.T) {
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
				d.Shared = (p == Resync || p == Keep) && random.IntN(4) == 0
				if got, want := q.push(d), m.push(d); got != want {
					t.Fatalf("step %d: %d are replaced, want %d", step, got, want)
				}
			}
			m.compare(q, step)
		}
	}
}

// made returns a delivery of that many parts, which counts the parts made so far.
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
		if len(pieces) != 1 { // later deliveries go after its last part
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
