//go:build !race

package socketio

import (
	"testing"
	"testing/synctest"
)

// Under the race detector pools forget, so this runs without it.
func TestDeliverAllocatesNothing(t *testing.T) { synctest.Test(t, testDeliverAllocatesNothing) }

func testDeliverAllocatesNothing(t *testing.T) {
	r := echo(t, Options{})
	c := r.ws()
	go func() {
		for b := make([]byte, 1<<16); ; {
			if _, err := c.NetConn().Read(b); err != nil {
				return
			}
		}
	}()
	s := r.socket(0)
	frames := AppendFrame(nil, "/", "trade", []byte(`{"price":1}`))
	one := []Delivery{{Frames: frames}}
	three := []Delivery{{Tag: 1, Frames: frames}, {Tag: 2, Policy: Latest, Frames: frames},
		{Tag: 3, Policy: Resync, Frames: frames}}
	for name, list := range map[string][]Delivery{"one": one, "three": three} {
		if n := testing.AllocsPerRun(1000, func() {
			if _, ok := s.Deliver(list, nil); !ok {
				t.Fatal("not delivered")
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	if n := testing.AllocsPerRun(100, func() {
		frames = AppendFrame(frames[:0], "/x", "trade", []byte(`{"price":1}`))
	}); n > 1 {
		t.Errorf("AppendFrame: %v allocations", n)
	}
}
