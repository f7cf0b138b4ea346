//go:build linux

package crash

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"exchange/actors/lineartest"
	"exchange/cmd/exchange/exchangetest"
)

// The answers of three nodes, at whichever of them, are those of one exchange, while the node that
// leads is killed, stopped, cut off or not heard.
func TestHistoriesOverThreeNodesAreLinearizable(t *testing.T) {
	oneIsDecided(t, func() error { return overThreeNodes(t) })
}

// overThreeNodes records a history of a fresh cluster, and checks it.
func overThreeNodes(t *testing.T) error {
	g := newSiege(t, newRandom(t))
	for _, s := range g.nodes {
		if err := os.WriteFile(s.Args[2], []byte(recordedSettings), 0o600); err != nil {
			t.Fatal(err)
		}
		s.Client.ReadTimeout = 5 * time.Second // a node that is stopped does not answer
		s.Run()
	}
	h := newHistory(t, g.leader(nil))
	h.nodes = g.nodes
	for i, c := range h.clients {
		c.s = g.nodes[i%len(g.nodes)]
	}
	faults := []func(*exchangetest.Server) (mend func()){
		func(s *exchangetest.Server) func() { s.Kill(); return s.Run },
		func(s *exchangetest.Server) func() {
			s.Signal(syscall.SIGSTOP)
			return func() { s.Signal(syscall.SIGCONT) }
		},
		func(s *exchangetest.Server) func() { return g.cut(s, true, true) },
		func(s *exchangetest.Server) func() { return g.cut(s, true, false) },
	}
	for i, k := range g.random.Perm(len(faults)) {
		old := g.leader(nil)
		var mend func()
		h.play(func() { mend = faults[k](old) }, func() {
			g.leader(old)
			mend()
			g.alive(old)
			h.s = g.leader(nil)
			h.s.Client.CloseIdleConnections()
			for _, c := range h.clients {
				c.s = h.s
			}
		})
		h.look()
		g.same()
		reigns := 0
		for _, s := range g.nodes {
			reigns += strings.Count(s.Log(), "this node leads and serves")
		}
		if reigns != i+2 {
			return fmt.Errorf("%w: there were %d reigns, and %d faults", lineartest.ErrUndecided,
				reigns, i+1)
		}
	}
	return h.judged()
}
