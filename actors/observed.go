package actors

import (
	"context"

	"exchange/actors/observing"
)

// observed is a member, as its observers need it.
type observed struct{ *Node }

// Watermark implements observing.Host.
func (h observed) Watermark() uint64 { return h.meter.Watermark.Load() }

// Dead implements observing.Host.
func (h observed) Dead() <-chan struct{} { return h.life.Dead() }

// Scan implements observing.Host.
func (h observed) Scan(ctx context.Context) observing.Scan { return h.committed.GuestScan(ctx) }
