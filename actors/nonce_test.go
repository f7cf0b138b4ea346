package actors

import (
	"testing"

	"exchange/actors/committed"
	"exchange/core/event"
)

func TestNoncesOfReadsOutliveAStop(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		g.ends("nonce 0 of a new key",
			func() (*Command, error) { return g.e.Place(g.key, 0, g.sell(1e5)) },
			refusedFor(event.RefusedNonce))
		g.ends("a read", g.asking(new(committed.Wallet), g.key, 77), accepted)
		g.end()
		g.again()
		g.ends("the same nonce again", g.asking(new(committed.Wallet), g.key, 77),
			committed.ErrNonce.Error())
		g.ends("the next nonce", g.asking(new(committed.Wallet), g.key, 78), accepted)
	})
}

func TestAKeyKeepsABoundedNumberOfNonces(t *testing.T) {
	onGated(t, nil, func(t *testing.T, g *gated) {
		for _, nonces := range []int{-1, 0, event.MaxParallel + 1} {
			_, err := g.e.CreateParallelKey("test", "ann", "too-many", "secret",
				event.PermissionTrade, nil, nonces)
			const want = "a key for parallel use keeps 1 to 1024 nonces"
			if err == nil || err.Error() != want {
				t.Errorf("%d: %v", nonces, err)
			}
		}
	})
}
