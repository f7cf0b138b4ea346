package main

import (
	"strings"
	"testing"
)

func TestDistributionsAreShownSideBySide(t *testing.T) {
	l := newOpenLoop(options{})
	if text := l.note(); text != "" {
		t.Errorf("nothing was measured: %q", text)
	}
	for us := int64(1); us <= 1000; us++ {
		for side, times := range map[*openSide]int64{l.yardstick: 1, l.exchange: 2} {
			if err := side.latencies.RecordValue(us * times); err != nil {
				t.Fatal(err)
			}
		}
	}
	l.background[0] = 3
	text := strings.Join(strings.Fields(l.note()), " ")
	for _, want := range []string{"1,000 requests of the exchange, 3 snapshots",
		" 50 2 0.500 1.000 2.00", " longest 1,000 1.000 2.000 2.00"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "99.95") {
		t.Errorf("1 in 2,000 of 1,000:\n%s", text)
	}
}
