package replicated

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"exchange/persistence"
	"exchange/persistence/internal/machine"
)

// A node whose clock is wrong finds so by the two others, and does not own the engine until its
// clock is set. The others go on.
func TestANodeWithAWrongClockDoesNotAcquire(t *testing.T) {
	for _, ahead := range []time.Duration{mostAhead + time.Millisecond, -time.Hour} {
		w := newWorld(t, 1)
		s := w.lead(1)
		w.clocks[1] = ahead
		w.pass(3 * askTicks)
		for i, n := range w.nodes[:voters] {
			if n.view.wrong != (i == 1) || i == 1 && n.view.ahead != ahead {
				t.Errorf("node %d is ahead by %s: %v", i, n.view.ahead, n.view.wrong)
			}
		}
		c := s.ask(claimOf(1))
		w.settle()
		if r := told(t, c); !errors.Is(r.err, persistence.ErrClock) {
			t.Errorf("%+v", r)
		}
		w.clocks[1] = mostAhead
		w.pass(3 * askTicks)
		if w.own(s, 2).Outcome != machine.Done || s.view.wrong {
			t.Error("it does not own the engine, and its clock is right")
		}
	}
}

// The first answers tell, before any node may lead.
func TestAWrongClockIsKnownBeforeTheFirstElection(t *testing.T) {
	w := newWorld(t, 1)
	w.lead(0)
	s := w.nodes[1]
	s.crash()
	w.clocks[1] = time.Hour
	s.start()
	w.pass(4)
	if !s.node.wrong || s.node.ticks >= electionTicks {
		t.Errorf("after %d ticks its clock is wrong: %v", s.node.ticks, s.node.wrong)
	}
}

// Of two clocks none is known to be the wrong one.
func TestTwoNodesFindNoClockWrong(t *testing.T) {
	w := newWorld(t, 1)
	w.lead(0)
	w.pass(askTicks)
	w.nodes[2].crash()
	w.clocks[0] = time.Hour
	w.pass(2 * (clockTicks + askTicks))
	for _, s := range w.nodes[:2] {
		if s.view.wrong || s.view.ahead != 0 {
			t.Errorf("node %d is ahead by %s", s.at, s.view.ahead)
		}
	}
	s := w.lead(0, 1)
	s.node.hand(0, make(chan error, 1))
	s.work(nil)
	w.quiet()
	if other := w.nodes[1-s.at]; !other.view.leading {
		t.Error("the lead is not handed over to the only other node")
	}
}

// What may be the time on the way counts for nothing.
func TestASlowLinkMakesNoClockWrong(t *testing.T) {
	w := newWorld(t, 1)
	s := w.nodes[0]
	asked := s.node.now()
	for _, x := range []struct{ took, its, want time.Duration }{
		{2 * time.Second, 0, 0}, {2 * time.Second, time.Second, 0},
		{2 * time.Second, 2 * time.Second, 0},
		{2 * time.Second, 3 * time.Second, time.Second},
		{2 * time.Second, -time.Second, -time.Second},
		{0, time.Second, time.Second},
	} {
		w.clocks[0] = x.took
		b := binary.BigEndian.AppendUint64(make([]byte, 8), uint64(asked.UnixMicro()))
		b = binary.BigEndian.AppendUint64(b, uint64(asked.Add(x.its).UnixMicro()))
		b = append(b, make([]byte, 16)...) // its last entry, and the one that leads
		must(t, s.node.clock("b", frame{kind: frameClock, id: 2, payload: b}))
		if got := s.node.clocks[2].ahead; got != x.want {
			t.Errorf("%+v: %s", x, got)
		}
	}
}
