package node

import (
	"context"

	"exchange/actors/observing"
)

// observedMember is the host of a member's observers.
type observedMember struct{ *Node }

// Watermark implements observing.Host.
func (h observedMember) Watermark() uint64 { return h.meter.Watermark.Load() }

// Dead implements observing.Host.
func (h observedMember) Dead() <-chan struct{} { return h.life.Dead() }

// Scan implements observing.Host.
func (h observedMember) Scan(ctx context.Context) observing.Scan {
	return h.committed.ObserverScan(
		ctx)
}
