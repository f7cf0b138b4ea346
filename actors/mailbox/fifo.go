package mailbox

// A FIFO is a queue that its owner alone uses. It keeps its memory while it is short.
type FIFO[T any] struct {
	list []T
	head int // place of the first
}

// keepPlaces is the longest memory that an empty FIFO keeps. Each wallet has two of them.
const keepPlaces = 1 << 6

// Len returns how many wait.
func (q *FIFO[T]) Len() int { return len(q.list) - q.head }

// Push puts one at the end.
func (q *FIFO[T]) Push(x T) {
	if q.head > 0 && len(q.list) == cap(q.list) {
		n := copy(q.list, q.list[q.head:])
		clear(q.list[n:])
		q.list, q.head = q.list[:n], 0
	}
	q.list = append(q.list, x)
}

// First returns the place of the first, which there must be. It is valid until the next Push or
// Pop.
func (q *FIFO[T]) First() *T { return &q.list[q.head] }

// Last returns the place of the last, which there must be. It is valid until the next Push or Pop.
func (q *FIFO[T]) Last() *T { return &q.list[len(q.list)-1] }

// Pop takes the first, which there must be.
func (q *FIFO[T]) Pop() T {
	var none T
	x := q.list[q.head]
	q.list[q.head] = none
	if q.head++; q.head == len(q.list) {
		q.list, q.head = q.list[:0], 0
		if cap(q.list) > keepPlaces {
			q.list = nil
		}
	}
	return x
}
