package metrics

import (
	"testing"
	"time"
)

// A hanging lookup hides nothing, and no second one begins beside it. Its late result counts.
func TestHangingLookupDelaysNoScrape(t *testing.T) {
	p := poll[int]{fresh: time.Hour}
	lookups, found := make(chan struct{}), make(chan *int)
	lookup := func() *int {
		lookups <- struct{}{}
		return <-found
	}
	waited := make(chan *int)
	go func() { waited <- p.newest(time.Hour, lookup) }()
	<-lookups
	for range 3 {
		if v := p.newest(time.Nanosecond, lookup); v != nil {
			t.Fatalf("%d was never found", *v)
		}
	}
	seven := 7
	found <- &seven
	if v := <-waited; v != &seven {
		t.Errorf("the scrape that waited got %v", v)
	}
	if v := p.newest(time.Hour, lookup); v != &seven {
		t.Errorf("a fresh value is looked up again, with %v", v)
	}
}

// A failed lookup keeps the previous value, which counts for a while.
func TestFailedLookupKeepsPreviousValue(t *testing.T) {
	p := poll[int]{fresh: -1}
	seven, eight := 7, 8
	for i, c := range []struct{ finds, want *int }{{nil, nil}, {&seven, &seven}, {nil, &seven},
		{&eight, &eight}} {
		if v := p.newest(time.Hour, func() *int { return c.finds }); v != c.want {
			t.Errorf("look %d: %v, want %v", i+1, v, c.want)
		}
	}
	p.at = time.Now().Add(-pollKept)
	if v := p.newest(time.Hour, func() *int { return nil }); v != nil {
		t.Errorf("%d is too old", *v)
	}
}
