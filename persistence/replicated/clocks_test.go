package replicated

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"exchange/persistence"
	"exchange/persistence/internal/machine"
)

// A node with a wrong clock detects it by the two others, and does not own the engine until the
// clock is set. The others continue.
func TestANodeWithAWrongClockDoesNotAcquire(t *testing.T) {
	for _, ahead := range []time.Duration{maxClockSkew + time.Millisecond, -time.Hour} {
		w := newWorld(t, 1)
		s := w.lead(1)
		w.clocks[1] = ahead
		w.pass(3 * askTicks)
		for i, n := range w.nodes[:voters] {
			if n.view.clockWrong != (i == 1) || i == 1 && n.view.clockAhead != ahead {
				t.Errorf("node %d is ahead by %s: %v", i, n.view.clockAhead, n.view.clockWrong)
			}
		}
		c := s.ask(claimOf(1))
		w.settle()
		if r := mustAnswer(t, c); !errors.Is(r.err, persistence.ErrClock) {
			t.Errorf("%+v", r)
		}
		w.clocks[1] = maxClockSkew
		w.pass(3 * askTicks)
		if w.own(s, 2).Outcome != machine.Done || s.view.clockWrong {
			t.Error("its clock is right, and it does not own the engine")
		}
	}
}

// The first answers show it, before any node may lead.
func TestAWrongClockIsFoundBeforeTheFirstElection(t *testing.T) {
	w := newWorld(t, 1)
	w.lead(0)
	s := w.nodes[1]
	s.crash()
	w.clocks[1] = time.Hour
	s.start()
	w.pass(4)
	if !s.node.clockWrong || s.node.tickCount >= electionTicks {
		t.Errorf("after %d ticks its clock is wrong: %v", s.node.tickCount, s.node.clockWrong)
	}
}

// Two clocks prove neither wrong.
func TestTwoNodesFindNoClockWrong(t *testing.T) {
	w := newWorld(t, 1)
	w.lead(0)
	w.pass(askTicks)
	w.nodes[2].crash()
	w.clocks[0] = time.Hour
	w.pass(2 * (clockValidTicks + askTicks))
	for _, s := range w.nodes[:2] {
		if s.view.clockWrong || s.view.clockAhead != 0 {
			t.Errorf("node %d is ahead by %s", s.at, s.view.clockAhead)
		}
	}
	s := w.lead(0, 1)
	s.node.transferLead(0, make(chan error, 1))
	s.work(nil)
	w.quiet()
	if other := w.nodes[1-s.at]; !other.view.leading {
		t.Error("the lead is not handed over to the only other node")
	}
}

// A difference within the round-trip time does not count.
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
		b = append(b, make([]byte, 16)...) // its last entry, and the leader
		must(t, s.node.receiveClock("b", frame{kind: frameClock, id: 2, payload: b}))
		if got := s.node.peerClocks[2].ahead; got != x.want {
			t.Errorf("%+v: %s", x, got)
		}
	}
}
