package replicated

import (
	"fmt"
	"testing"

	"exchange/persistence/internal/machine"
)

// The newest batches come from memory if all requested ones are there, and memory is bounded.
func TestTheNewestBatchesAreInMemory(t *testing.T) {
	var x index
	if x.newest(0, 0) != nil {
		t.Error("an empty index has batches")
	}
	const each = recentBytes / 4
	for i := range uint64(6) {
		x.add(i+1, &machine.Entry{Prev: 10 * i, Next: 10*i + 10, Batch: make([]byte, each)})
	}
	for _, tt := range []struct {
		after, end uint64
		want       string
	}{
		{20, 60, "30 40 50 60"}, {30, 60, "40 50 60"}, {20, 40, "30 40"}, {50, 60, "60"},
		{10, 60, ""}, // one of them has left memory
		{0, 20, ""},
		{25, 60, ""}, // in the middle of a batch
		{30, 55, ""},
		{30, 70, ""}, // not there yet
		{40, 40, ""},
	} {
		var got string
		for i, e := range x.newest(tt.after, tt.end) {
			if i > 0 {
				got += " "
			}
			got += fmt.Sprint(e.Next)
		}
		if got != tt.want {
			t.Errorf("of (%d, %d] %q are in memory, want %q", tt.after, tt.end, got, tt.want)
		}
	}
	if x.bytes > recentBytes || len(x.recent) != 4 {
		t.Errorf("%d batches of %d bytes are in memory", len(x.recent), x.bytes)
	}
}
