package socketio

// A Policy is what happens to what waits for a client that is slow.
type Policy uint8

// The policies.
const (
	// Keep is never dropped and never overtaken. When it does not fit, the session is closed.
	Keep Policy = iota
	// Latest has only its newest delivery of each tag waiting: it takes the place of an older one
	// that has not begun to be written.
	Latest
	// Resync is dropped when the client's queue is full: all that waits of the tag, and the tag is
	// reported to who delivered. See Socket.Deliver.
	Resync
	policies // how many there are
)

// A Delivery is some frames for one client.
type Delivery struct {
	Tag    uint32 // the owner's number for a channel; a session's namespaces share them
	Policy Policy
	// one or more whole frames, as AppendFrame makes them. Nobody changes them any more
	Frames []byte
	// Shared says that many clients wait for the same bytes, a snapshot: they do not count against
	// QueueBytes. At most one such waits of a tag, if its policy is not Keep; a Keep one counts
	// while there is one of the tag already. A Shared delivery with Resync stands for the whole
	// state: it replaces what waits of its tag.
	Shared bool

	// it does not count, for nothing waited when it came: what is sent at once may be as large as
	// it likes
	free bool
}

// entryOverhead is what a waiting delivery counts besides its bytes: about the memory that it
// takes, so that a flood of small ones is bounded too.
const entryOverhead = 64

// An outbox is what waits for one client, in order. Its memory is given back when it is empty.
type outbox struct {
	entries []Delivery
	head    int            // entries before it are gone
	gone    int            // how many ever went; the entry at i has the number gone+i-head
	flight  int            // the first so many are with the writer and may not be touched
	begun   bool           // of the first entry a part was written: what is here is the rest
	bytes   int            // that count against the bound
	latest  map[uint32]int // by tag, the number of the Latest entry that waits
	shared  int            // entries that are Shared
}

func (q *outbox) empty() bool { return q.head == len(q.entries) }

// fixed is the position of the first entry that has not begun to be written.
func (q *outbox) fixed() int {
	n := q.flight
	if n == 0 && q.begun {
		n = 1
	}
	return q.head + n
}

func cost(d *Delivery) int {
	if d.Shared || d.free {
		return 0
	}
	return len(d.Frames) + entryOverhead
}

// push lets a delivery wait. It answers how many deliveries that took its place by its policy.
func (q *outbox) push(d Delivery) (replaced int) {
	switch {
	case d.Policy == Latest:
		if n, ok := q.latest[d.Tag]; ok {
			if i := n - q.gone + q.head; i >= q.fixed() {
				d.free = q.entries[i].free
				q.bytes += cost(&d) - cost(&q.entries[i])
				q.count(&q.entries[i], -1)
				q.count(&d, 1)
				q.entries[i] = d
				return 1
			}
		}
		if q.latest == nil {
			q.latest = map[uint32]int{}
		}
		q.latest[d.Tag] = q.gone + len(q.entries) - q.head
	case d.Policy == Resync && d.Shared:
		replaced = q.remove(func(e *Delivery) bool { return e.Policy == Resync && e.Tag == d.Tag })
	case d.Policy == Keep && d.Shared && q.shared > 0:
		for i := q.head; i < len(q.entries); i++ {
			if e := &q.entries[i]; e.Shared && e.Policy == Keep && e.Tag == d.Tag {
				d.Shared = false
				break
			}
		}
	}
	q.bytes += cost(&d)
	q.count(&d, 1)
	if q.head > 32 && q.head > len(q.entries)/2 { // room that is free at the front is used again
		n := copy(q.entries, q.entries[q.head:])
		clear(q.entries[n:])
		q.entries, q.head = q.entries[:n], 0
	}
	q.entries = append(q.entries, d)
	return replaced
}

func (q *outbox) count(d *Delivery, n int) {
	if d.Shared {
		q.shared += n
	}
}

// remove drops the entries that have not begun to be written and that f says, and keeps the order
// of the others.
func (q *outbox) remove(f func(*Delivery) bool) (removed int) {
	to := q.fixed()
	for from := to; from < len(q.entries); from++ {
		e := &q.entries[from]
		if f(e) {
			q.bytes -= cost(e)
			q.count(e, -1)
			removed++
			continue
		}
		if e.Policy == Latest {
			q.latest[e.Tag] = q.gone + to - q.head
		}
		q.entries[to] = *e
		to++
	}
	clear(q.entries[to:])
	if q.entries = q.entries[:to]; q.empty() {
		q.entries, q.latest, q.head = nil, nil, 0
	}
	return removed
}

// dropResync drops what waits of every Resync tag that counts against the bound. It appends those
// tags to list, each once.
func (q *outbox) dropResync(list []uint32) (_ []uint32, removed int) {
	first := len(list)
	for i := q.fixed(); i < len(q.entries); i++ {
		if e := &q.entries[i]; e.Policy == Resync && cost(e) > 0 && !has(list[first:], e.Tag) {
			list = append(list, e.Tag)
		}
	}
	if tags := list[first:]; len(tags) > 0 {
		removed = q.remove(func(e *Delivery) bool { return e.Policy == Resync && has(tags, e.Tag) })
	}
	return list, removed
}

// resyncBytes are those of all that dropResync would drop.
func (q *outbox) resyncBytes() (n int) {
	for i := q.fixed(); i < len(q.entries); i++ {
		if e := &q.entries[i]; e.Policy == Resync {
			n += cost(e)
		}
	}
	return n
}

// has is for short lists: the tags of one client.
func has(list []uint32, tag uint32) bool {
	for _, x := range list {
		if x == tag {
			return true
		}
	}
	return false
}

// pieces appends what waits to list, up to most pieces and about limit bytes, and gives it to the
// writer: until advance, nothing of it is dropped or replaced.
func (q *outbox) pieces(list [][]byte, most, limit int) [][]byte {
	for i := q.head; i < len(q.entries) && len(list) < most && limit > 0; i++ {
		b := q.entries[i].Frames
		list = append(list, b)
		limit -= len(b)
	}
	q.flight = len(list)
	return list
}

// advance says that n bytes of what waits were written, and takes back what is with the writer.
func (q *outbox) advance(n int) {
	q.flight = 0
	for n > 0 {
		left := len(q.entries[q.head].Frames)
		if n < left {
			q.take(n)
			return
		}
		n -= left
		q.pop()
	}
}

// take removes bytes from the front of the first entry, not all of them.
func (q *outbox) take(n int) {
	e := &q.entries[q.head]
	q.bytes -= cost(e)
	e.Frames = e.Frames[n:]
	q.bytes += cost(e)
	q.begun = true
}

// pop removes the first entry.
func (q *outbox) pop() {
	e := &q.entries[q.head]
	q.bytes -= cost(e)
	q.count(e, -1)
	if e.Policy == Latest && q.latest[e.Tag] == q.gone {
		delete(q.latest, e.Tag)
	}
	*e = Delivery{}
	q.head++
	q.gone++
	q.begun = false
	if q.empty() {
		q.entries, q.latest, q.head = nil, nil, 0
	}
}

// poll appends packets that wait to a polling body, as long as it has no more than limit bytes; the
// first goes however long it is.
func (q *outbox) poll(body []byte, limit int) []byte {
	for !q.empty() {
		e := &q.entries[q.head]
		for len(e.Frames) > 0 {
			kind, payload, rest, ok := nextFrame(e.Frames)
			if !ok {
				panic("BUG: a delivery that is not made of whole frames")
			}
			if len(body) > 0 && len(body)+1+pollSize(kind, payload) > limit {
				return body
			}
			body = appendPoll(body, kind, payload)
			q.take(len(e.Frames) - len(rest))
		}
		q.pop()
	}
	return body
}
