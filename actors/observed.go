package actors

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/observing"
	"exchange/core/event"
	"exchange/persistence"
)

// observed is a member, as its observers need it.
type observed struct{ *Node }

// Watermark implements observing.Host.
func (h observed) Watermark() uint64 { return h.meter.Watermark.Load() }

// Dead implements observing.Host.
func (h observed) Dead() <-chan struct{} { return h.life.dead }

// Forward implements observing.Host: an observer passes on clients' commands, and no operator's
// request.
func (h observed) Forward(from string, conn net.Conn) {
	purpose := h.purpose(conn)
	if purpose == callCommands {
		h.forwards(from, conn)
		return
	}
	conn.Close()
	h.useless.Warn(h.opts.Log, "a connection of an observer is of no use", from, errPurpose,
		"observer", from, "purpose", purpose)
}

// Scan implements observing.Host.
func (h observed) Scan(ctx context.Context) observing.Scan { return h.committed.GuestScan(ctx) }

// Lent implements observing.Host.
func (h observed) Lent(given bool) {
	if given {
		h.traffic.Given.Add(1)
	} else {
		h.traffic.Refused.Add(1)
	}
}

// errNotPortable: see Options.KeyMaterial.
var errNotPortable = errors.New("BUG: the material of keys is not made for observers")

// Material implements observing.Host.
func (h observed) Material(ctx context.Context, number uint32, after uint64) ([]byte, error) {
	err := h.life.until(ctx, func() bool { return h.committed.Folded() >= after })
	if err != nil {
		return nil, fmt.Errorf("this member has not folded sequence %d: %w", after, err)
	}
	var key event.Key
	var account string
	p := &urgentProbe{probe{func(actor.Actor) {
		s := h.committed.State()
		if keys := s.Keys(); number == 0 || int(number) > len(keys) || keys[number-1].Revoked {
			return
		}
		key = s.Keys()[number-1].Key
		key.Allow, key.Sealed = slices.Clone(key.Allow), slices.Clone(key.Sealed)
		account = s.Account(key.Account).Name
	}, make(chan struct{})}}
	h.committed.Send(p)
	select {
	case <-p.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if key.Number == 0 {
		return nil, persistence.ErrNotFound
	}
	secret, err := openSecret(&key, account, h.sealer)
	if err != nil {
		return nil, err
	}
	material, ok := h.opts.KeyMaterial(secret).(encoding.BinaryMarshaler)
	if !ok {
		return nil, errNotPortable
	}
	return material.MarshalBinary()
}
