package market

// A ring is a queue of minutes, oldest first. Its memory grows with its content, up to the minutes
// of a window beside the newest, and is reused.
type ring struct {
	minutes []Candle // all slots, used and free; the length is the capacity
	head    int      // index of the oldest minute
	n       int
}

// ringMin is the first capacity: about 1 kB, for a rarely traded pair.
const ringMin = 16

func (r *ring) oldest() *Candle { return &r.minutes[r.head] }

func (r *ring) drop() {
	r.n--
	if r.head++; r.head == len(r.minutes) {
		r.head = 0
	}
}

func (r *ring) push(c *Candle) {
	if r.n == len(r.minutes) {
		r.grow()
	}
	at := r.head + r.n
	if at >= len(r.minutes) {
		at -= len(r.minutes)
	}
	r.minutes[at] = *c
	r.n++
}

func (r *ring) grow() {
	if r.n >= windowMinutes-1 {
		panic("BUG: more minutes are kept than the window has")
	}
	older, newer := r.parts()
	minutes := make([]Candle, min(max(2*r.n, ringMin), windowMinutes-1))
	copy(minutes[copy(minutes, older):], newer)
	r.minutes, r.head = minutes, 0
}

// parts returns all minutes in order, older first, in two runs.
func (r *ring) parts() (older, newer []Candle) {
	if end := r.head + r.n; end > len(r.minutes) {
		return r.minutes[r.head:], r.minutes[:end-len(r.minutes)]
	}
	return r.minutes[r.head : r.head+r.n], nil
}
