package replicated

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"exchange/persistence"
)

const (
	// maxClockSkew bounds an owner's distance from the median of all clocks: orders and codes
	// expire by the owner's clock.
	maxClockSkew = 500 * time.Millisecond
	// clockValidTicks is the age in ticks from which a peer's answer no longer counts.
	clockValidTicks = 3 * askTicks
)

// A clockReading is a peer's clock relative to this node's. The round-trip time leaves a range; the
// reading is its value nearest to 0, so that a slow link makes no clock wrong.
type clockReading struct {
	ahead time.Duration
	tick  uint64 // of the answer
}

// askClocks asks all peers for their clocks, and notifies them if this node is unfit to serve.
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
	n.judgeClock() // answers may have expired
}

// judgeClock compares this node's clock with the peers' valid answers. A node therefore needs
// answers of two others to find its own clock wrong.
func (n *node) judgeClock() {
	all := []time.Duration{0}
	for _, m := range n.machine.Members() {
		if m.ID == n.id || m.ID == 0 {
			continue
		}
		if r, ok := n.peerClocks[m.ID]; ok && n.tickCount-r.tick <= clockValidTicks {
			all = append(all, r.ahead)
		}
	}
	slices.Sort(all)
	n.clockMedian = [2]time.Duration{all[(len(all)-1)/2], all[len(all)/2]}
	n.clockAhead = -n.nearestMedian(0)
	wrong := max(n.clockAhead, -n.clockAhead) > maxClockSkew
	switch {
	case wrong && !n.clockWrong:
		n.logger.Error("ALARM: this node's clock is wrong: it does not lead until the "+
			"clock is set", "ahead_of_the_others", n.clockAhead, "at_most", maxClockSkew)
	case !wrong && n.clockWrong:
		n.logger.Info("this node's clock is right again", "ahead_of_the_others", n.clockAhead)
	}
	n.clockWrong = wrong
}

// nearestMedian returns the median of all clocks. Of an even number it is the value between the
// middle two that is nearest to clock, so that two clocks prove neither wrong.
func (n *node) nearestMedian(clock time.Duration) time.Duration {
	return min(max(n.clockMedian[0], clock), n.clockMedian[1])
}

// receiveClock handles a clock frame. It answers a request, and evaluates an answer.
func (n *node) receiveClock(from string, f frame) error {
	now := n.now()
	if len(f.payload) != 16 && len(f.payload) != 40 {
		return nil
	}
	n.peerMarkets[f.id] = binary.BigEndian.Uint64(f.payload)
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
		if err := n.corroborate(from, f.id, last, lead); err != nil {
			return err
		}
		asked := time.UnixMicro(int64(binary.BigEndian.Uint64(payload)))
		its := time.UnixMicro(int64(binary.BigEndian.Uint64(payload[8:])))
		if now.Before(asked) {
			return nil // this node's clock was set meanwhile
		}
		// The peer read its clock between asked and now.
		n.peerClocks[f.id] = clockReading{max(its.Sub(now), 0) + min(its.Sub(asked), 0),
			n.tickCount}
		n.judgeClock()
	}
	return nil
}

// peerClockWrong reports whether a peer's clock keeps it from owning the engine, by its last
// reading. Such a peer would hand the lead back.
func (n *node) peerClockWrong(peer uint64) bool {
	r, ok := n.peerClocks[peer]
	if !ok || n.tickCount-r.tick > clockValidTicks {
		return false
	}
	off := r.ahead - n.nearestMedian(r.ahead)
	return max(off, -off) > maxClockSkew
}

// peerUnfit reports whether a peer has recently reported that it could not own the engine.
func (n *node) peerUnfit(peer uint64) bool {
	at, ok := n.peerUnfits[peer]
	return ok && n.tickCount-at <= clockValidTicks
}

// rightClock returns ErrClock while this node's clock keeps it from owning the engine.
func (n *node) rightClock() error {
	if !n.clockWrong {
		return nil
	}
	return fmt.Errorf("%w: it is %s ahead of the median, and at most %s are allowed",
		persistence.ErrClock, n.clockAhead, maxClockSkew)
}
