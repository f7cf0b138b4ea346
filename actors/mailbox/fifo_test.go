package mailbox

import "testing"

func TestAFIFOKeepsItsOrderAndItsMemoryShort(t *testing.T) {
	var q FIFO[int]
	next, want := 0, 0
	push := func() {
		q.Push(next)
		next++
	}
	pop := func() {
		t.Helper()
		first := *q.First()
		if got := q.Pop(); got != want || first != want {
			t.Fatalf("%d and %d come, want %d", first, got, want)
		}
		want++
	}
	for range 10 {
		push()
	}
	for range 100_000 { // never empty
		push()
		pop()
	}
	if *q.Last() != next-1 || q.Len() != 10 || cap(q.list) > 100 {
		t.Errorf("%d wait, the last is %d, in memory for %d", q.Len(), *q.Last(), cap(q.list))
	}
	for range 2 * keepCapacity {
		push()
	}
	for q.Len() > 0 {
		pop()
	}
	if cap(q.list) != 0 {
		t.Errorf("an empty queue has memory for %d", cap(q.list))
	}
}
