package mailbox

// A FIFO is a queue with a single user. It keeps its memory while it is short.
type FIFO[T any] struct {
	list []T
	head int // index of the first
}

// keepCapacity is the largest capacity that an empty FIFO keeps. Each wallet has two of them.
const keepCapacity = 1 << 6

// Len returns the number of entries.
func (q *FIFO[T]) Len() int { return len(q.list) - q.head }

// Push appends an entry.
func (q *FIFO[T]) Push(x T) {
	if q.head > 0 && len(q.list) == cap(q.list) {
		n := copy(q.list, q.list[q.head:])
		clear(q.list[n:])
		q.list, q.head = q.list[:n], 0
	}
	q.list = append(q.list, x)
}

// First returns a pointer to the first entry of a queue that is not empty. It is valid until the
// next Push or Pop.
func (q *FIFO[T]) First() *T { return &q.list[q.head] }

// Last returns a pointer to the last entry, under the same conditions.
func (q *FIFO[T]) Last() *T { return &q.list[len(q.list)-1] }

// Pop removes the first entry of a queue that is not empty.
func (q *FIFO[T]) Pop() T {
	var none T
	x := q.list[q.head]
	q.list[q.head] = none
	if q.head++; q.head == len(q.list) {
		q.list, q.head = q.list[:0], 0
		if cap(q.list) > keepCapacity {
			q.list = nil
		}
	}
	return x
}
