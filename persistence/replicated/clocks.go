package replicated

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"exchange/persistence"
)

const (
	// mostAhead is how far from the median of all clocks a node's may be for the node to own the
	// engine: orders expire, and codes end, by its clock.
	mostAhead = 500 * time.Millisecond
	// clockTicks is for how long an answer counts.
	clockTicks = 3 * askTicks
)

// A reading is what a peer's clock was ahead of this node's. Of the values that the time of the
// question's way allows it is the one that is nearest to 0: a slow link makes no clock wrong.
type reading struct {
	ahead time.Duration
	tick  uint64
}

// askClocks asks all peers for their clocks, and tells them if this node could not serve for
// another reason.
func (n *node) askClocks() {
	f, unfit := n.frame(frameClock), n.frame(frameUnfit)
	for _, m := range n.machine.Members() {
		if m.ID != n.id && m.ID != 0 {
			if n.unfit() != nil {
				n.send(m.Name, unfit.begin())
			}
			b := binary.BigEndian.AppendUint64(f.begin(), n.ownMarket())
			n.send(m.Name, binary.BigEndian.AppendUint64(b, uint64(n.now().UnixMicro())))
		}
	}
	n.judgeClock() // answers may be too old by now
}

// judgeClock compares this node's clock with what the peers have said. So each node needs two
// others that it hears of to find its own clock wrong.
func (n *node) judgeClock() {
	all := []time.Duration{0}
	for _, m := range n.machine.Members() {
		if m.ID == n.id || m.ID == 0 {
			continue
		}
		if r, ok := n.clocks[m.ID]; ok && n.ticks-r.tick <= clockTicks {
			all = append(all, r.ahead)
		}
	}
	slices.Sort(all)
	n.median = [2]time.Duration{all[(len(all)-1)/2], all[len(all)/2]}
	n.ahead = -n.nearest(0)
	wrong := max(n.ahead, -n.ahead) > mostAhead
	switch {
	case wrong && !n.wrong:
		n.logger.Error("ALARM: this node's clock is wrong: it leads no more, until the clock "+
			"is set", "ahead_of_the_others", n.ahead, "at_most", mostAhead)
	case !wrong && n.wrong:
		n.logger.Info("this node's clock is right again", "ahead_of_the_others", n.ahead)
	}
	n.wrong = wrong
}

// nearest returns the median of all clocks. Of an even number it is the one between the two in the
// middle that is nearest to a clock: so of two clocks none is known to be wrong.
func (n *node) nearest(clock time.Duration) time.Duration {
	return min(max(n.median[0], clock), n.median[1])
}

// clock takes a question, which it answers with the same and this node's clock, or an answer.
func (n *node) clock(from string, f frame) error {
	now := n.now()
	if len(f.payload) != 16 && len(f.payload) != 40 {
		return nil
	}
	n.markets[f.id] = binary.BigEndian.Uint64(f.payload)
	switch payload := f.payload[8:]; len(payload) {
	case 8:
		r := n.frame(frameClock)
		b := binary.BigEndian.AppendUint64(r.begin(), n.ownMarket())
		last, err := n.log.LastIndex()
		if err != nil {
			return err
		}
		b = binary.BigEndian.AppendUint64(append(b, payload...), uint64(now.UnixMicro()))
		b = binary.BigEndian.AppendUint64(b, last)
		n.send(from, binary.BigEndian.AppendUint64(b, n.raw.BasicStatus().Lead))
	case 32:
		last, lead := binary.BigEndian.Uint64(payload[16:]), binary.BigEndian.Uint64(payload[24:])
		if err := n.bearsOut(from, f.id, last, lead); err != nil {
			return err
		}
		asked := time.UnixMicro(int64(binary.BigEndian.Uint64(payload)))
		its := time.UnixMicro(int64(binary.BigEndian.Uint64(payload[8:])))
		if now.Before(asked) {
			return nil // this node's clock was set meanwhile
		}
		// It was read between the two.
		n.clocks[f.id] = reading{max(its.Sub(now), 0) + min(its.Sub(asked), 0), n.ticks}
		n.judgeClock()
	}
	return nil
}

// looksWrong reports whether a peer's clock is one that does not own the engine, as far as is known
// here. Such a peer would hand the lead back.
func (n *node) looksWrong(peer uint64) bool {
	r, ok := n.clocks[peer]
	if !ok || n.ticks-r.tick > clockTicks {
		return false
	}
	off := r.ahead - n.nearest(r.ahead)
	return max(off, -off) > mostAhead
}

// saysUnfit reports whether a peer has said lately that it could not own the engine.
func (n *node) saysUnfit(peer uint64) bool {
	said, ok := n.unfits[peer]
	return ok && n.ticks-said <= clockTicks
}

// rightClock returns why this node may not own the engine; nil: its clock is right.
func (n *node) rightClock() error {
	if !n.wrong {
		return nil
	}
	return fmt.Errorf("%w: it is %s ahead of the others, and %s are the most", persistence.ErrClock,
		n.ahead, mostAhead)
}
