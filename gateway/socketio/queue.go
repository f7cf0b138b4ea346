package socketio

// A Policy is the treatment of deliveries that wait for a slow client.
type Policy uint8

// The policies.
const (
	// Keep is never dropped and never overtaken. If it does not fit, the session is closed.
	Keep Policy = iota
	// Latest keeps only the newest waiting delivery of each tag. It replaces an older one whose
	// write has not started.
	Latest
	// Final is never dropped either. It replaces the waiting Latest delivery of its tag whose write
	// has not started: it is the last state in its series. Later ones follow it.
	Final
	// Resync is dropped, with all queued deliveries of its tag, when the client's queue is full.
	// The tag is reported to the owner. See Socket.Deliver.
	Resync
	policies // number of policies
)

// A Delivery is some frames for one client.
type Delivery struct {
	Tag    uint32 // the owner's number for a channel, shared by a session's namespaces
	Policy Policy
	// one or more whole frames of AppendFrame, which do not change any more
	Frames []byte
	// Shared marks a snapshot whose bytes many clients share, so QueueBytes excludes it. At most
	// one such delivery of a tag is queued, unless its policy is Keep; QueueBytes includes a second
	// Keep one. A Shared delivery with Resync is the whole state: it replaces all queued deliveries
	// of its tag.
	Shared bool

	// More makes the next frames of the delivery once Frames are written, until it returns none. So
	// a long delivery is made as the client reads it, and QueueBytes includes only its current
	// part. More is called under a lock of the session, one call at a time, and must not wait. Only
	// a Keep delivery has it.
	More func() []byte

	// QueueBytes excludes the delivery, because the queue was empty when it was added
	free bool
}

// entryOverhead is the cost of a waiting delivery besides its bytes, about its memory, so that a
// flood of small ones is bounded too.
const entryOverhead = 64

// An outbox is the queue of deliveries for one client. When empty it keeps no memory.
type outbox struct {
	entries []Delivery
	head    int            // index of the first entry that waits
	gone    int            // number of removed entries ever; entry i has the number gone+i-head
	flight  int            // number of first entries lent to the writer, which must not change
	begun   bool           // a part of the first entry was written, and the rest is left
	bytes   int            // cost of all entries
	latest  map[uint32]int // by tag, number of the Latest entry that waits
	shared  int            // number of Shared entries
}

func (q *outbox) empty() bool { return q.head == len(q.entries) }

// fixed returns the index of the first entry whose write has not begun.
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

// next makes the next frames of a delivery; false: none.
func (d *Delivery) next() bool {
	if d.More == nil {
		return false
	}
	d.Frames = d.More()
	return len(d.Frames) > 0
}

// push queues a delivery. It returns the number of deliveries that it replaced by its policy.
func (q *outbox) push(d Delivery) (replaced int) {
	switch {
	case d.Policy == Latest || d.Policy == Final:
		if q.replace(&d) {
			return 1
		}
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
	q.addShared(&d, 1)
	if q.head > 32 && q.head > len(q.entries)/2 { // use the room at the front again
		n := copy(q.entries, q.entries[q.head:])
		clear(q.entries[n:])
		q.entries, q.head = q.entries[:n], 0
	}
	q.entries = append(q.entries, d)
	return replaced
}

// replace replaces the queued Latest delivery of the same tag, if its write has not started.
// Otherwise it records the number that a Latest delivery will get.
func (q *outbox) replace(d *Delivery) bool {
	n, waits := q.latest[d.Tag]
	if d.Policy == Final { // a later one follows it in any case
		delete(q.latest, d.Tag)
	}
	if i := n - q.gone + q.head; waits && i >= q.fixed() {
		d.free = q.entries[i].free
		q.bytes += cost(d) - cost(&q.entries[i])
		q.addShared(&q.entries[i], -1)
		q.addShared(d, 1)
		q.entries[i] = *d
		return true
	}
	if d.Policy == Final {
		return false
	}
	if q.latest == nil {
		q.latest = map[uint32]int{}
	}
	q.latest[d.Tag] = q.gone + len(q.entries) - q.head
	return false
}

func (q *outbox) addShared(d *Delivery, n int) {
	if d.Shared {
		q.shared += n
	}
}

// remove drops the entries for which f returns true and whose write has not begun. It keeps the
// order of the others.
func (q *outbox) remove(f func(*Delivery) bool) (removed int) {
	to := q.fixed()
	for from := to; from < len(q.entries); from++ {
		e := &q.entries[from]
		if f(e) {
			q.bytes -= cost(e)
			q.addShared(e, -1)
			removed++
			continue
		}
		switch e.Policy {
		case Latest:
			q.latest[e.Tag] = q.gone + to - q.head
		case Final:
			delete(q.latest, e.Tag)
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

// dropResync drops the queued deliveries of every Resync tag that counts against the bound. It
// appends those tags to list, each once.
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

// resyncBytes returns the cost of the deliveries that dropResync would drop.
func (q *outbox) resyncBytes() (n int) {
	for i := q.fixed(); i < len(q.entries); i++ {
		if e := &q.entries[i]; e.Policy == Resync {
			n += cost(e)
		}
	}
	return n
}

// has reports whether a short list has a tag.
func has(list []uint32, tag uint32) bool {
	for _, x := range list {
		if x == tag {
			return true
		}
	}
	return false
}

// pieces appends queued frames to list for the writer, up to most pieces and about limit bytes.
// Until advance none of them is dropped or replaced. A delivery with More is the last of them.
func (q *outbox) pieces(list [][]byte, most, limit int) [][]byte {
	for i := q.head; i < len(q.entries) && len(list) < most && limit > 0; i++ {
		b := q.entries[i].Frames
		list = append(list, b)
		limit -= len(b)
		if q.entries[i].More != nil {
			break // the frames that follow it are not made yet
		}
	}
	q.flight = len(list)
	return list
}

// advance removes n written bytes. The writer holds no pieces any more.
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

// take removes bytes from the front of the first entry, but not all of them.
func (q *outbox) take(n int) {
	e := &q.entries[q.head]
	q.bytes -= cost(e)
	e.Frames = e.Frames[n:]
	q.bytes += cost(e)
	q.begun = true
}

// pop removes the first entry, or replaces its frames by the next ones.
func (q *outbox) pop() {
	e := &q.entries[q.head]
	q.bytes -= cost(e)
	if e.next() {
		q.bytes += cost(e)
		q.begun = false
		return
	}
	q.addShared(e, -1)
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

// poll appends waiting packets to a polling body of at most limit bytes. The first packet goes
// regardless of its length.
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
