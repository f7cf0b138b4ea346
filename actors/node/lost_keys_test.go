package node

import (
	"bytes"
	"sync/atomic"
	"testing"

	"exchange/actors"
	"exchange/actors/seal"
	"exchange/core/event"
)

// The leader revokes lost keys for all, in its first term.
func TestLeaderRevokesLostKeys(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var lost atomic.Bool
		c := newCluster(t, func(_ int, o *actors.Options) {
			if o.RevokeLost = lost.Load(); lost.Load() {
				other := must[*seal.Sealer](t)(seal.New(bytes.Repeat([]byte{7}, seal.KeyBytes)))
				o.Sealer = func(bool) (*seal.Sealer, error) { return other, nil }
			}
		})
		r := c.next()
		must[actors.Admin](t)(r.CreateAccount("test", "ann", ""))
		must[actors.Admin](t)(r.CreateKey("test", "ann", "key-of-ann", "secret",
			event.AllPermissions,
			nil))
		c.caughtUp(r)
		c.killAll()
		lost.Store(true)
		c.startAll()
		r = c.next()
		if r.Key([]byte("key-of-ann")) != nil {
			t.Error("a key whose secret is lost can be used")
		}
		must[actors.Admin](t)(r.CreateKey("test", "ann", "key-2", "secret", event.AllPermissions,
			nil))
		c.caughtUp(r)
		if c.nodes[r.at].keys.SkipLost() {
			t.Error("a later term of this node would revoke keys, too")
		}
	})
}
