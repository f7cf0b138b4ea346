package actors

import (
	"context"
	"net"

	"exchange/actors/observing"
)

// observed is a member, as its observers need it.
type observed struct{ *Node }

// Watermark implements observing.Host.
func (h observed) Watermark() uint64 { return h.meter.Watermark.Load() }

// Dead implements observing.Host.
func (h observed) Dead() <-chan struct{} { return h.life.dead }

// Forward implements observing.Host: an observer passes on what clients have signed, and no
// operator's request.
func (h observed) Forward(from string, conn net.Conn) {
	purpose := h.purpose(conn)
	if purpose == callCommands {
		h.forwards(from, conn, true)
		return
	}
	conn.Close()
	h.useless.Warn(h.opts.Log, "a connection of an observer is of no use", from, errPurpose,
		"observer", from, "purpose", purpose)
}

// Scan implements observing.Host.
func (h observed) Scan(ctx context.Context) observing.Scan { return h.committed.GuestScan(ctx) }
