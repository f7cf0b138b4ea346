//go:build prove && linux

package processes

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"exchange/actors/lineartest"
	"exchange/prove/exchangetest"
)

// The answers of three nodes and an observer are those of one exchange. The leader is killed,
// stopped, cut off or not received, and another node and the observer are killed.
func TestHistoriesOverThreeNodesAreLinearizable(t *testing.T) {
	oneIsDecided(t, func() error { return overThreeNodes(t) })
}

// overThreeNodes records a history of a fresh cluster, and checks it.
func overThreeNodes(t *testing.T) error {
	g := newSiege(t, newRandom(t))
	for _, s := range g.nodes {
		succeeds(t, os.WriteFile(s.Args[2], []byte(recordedSettings), 0o600))
		s.Env = append(s.Env, "EXCHANGE_CLUSTER_OBSERVERS=o1")
		s.Client.ReadTimeout = 5 * time.Second // a node that is stopped does not answer
		s.Run()
	}
	h := newHistory(t, g.leader(nil))
	observer := g.observer("o1")
	observer.Client.ReadTimeout = 5 * time.Second
	observer.Start()
	h.nodes, h.observer = append(slices.Clone(g.nodes), observer), observer
	h.spread()
	kill := func(s *exchangetest.Server) func() { s.Kill(); return s.Run }
	faults := []struct {
		deposes bool // it strikes the node that leads, and another one leads then
		strike  func(*exchangetest.Server) (mend func())
	}{
		{true, kill},
		{true, func(s *exchangetest.Server) func() {
			s.Signal(syscall.SIGSTOP)
			return func() { s.Signal(syscall.SIGCONT) }
		}},
		{true, func(s *exchangetest.Server) func() { return g.cut(s, true, true) }},
		{true, func(s *exchangetest.Server) func() { return g.cut(s, true, false) }},
		{false, func(*exchangetest.Server) func() { return kill(g.follower()) }},
		{false, func(*exchangetest.Server) func() { return kill(observer) }},
	}
	led := 1 // terms
	for _, k := range g.random.Perm(len(faults)) {
		f, old := faults[k], g.leader(nil)
		var mend func()
		h.play(func() { mend = f.strike(old) }, func() {
			if f.deposes {
				g.leader(old)
			}
			mend()
			for _, s := range h.nodes {
				exchangetest.Eventually(t, "every node serves", func() bool {
					return s.Ready() == nil
				})
				s.Client.CloseIdleConnections()
			}
			h.s = g.leader(nil)
			h.spread()
		})
		h.look()
		g.same()
		if f.deposes {
			led++
		}
		terms := 0
		for _, s := range g.nodes {
			terms += strings.Count(s.Log(), "this node leads and serves")
		}
		if terms != led {
			return fmt.Errorf("%w: there were %d terms, of which faults caused %d",
				lineartest.ErrUndecided, terms, led)
		}
	}
	return h.judged()
}

// spread lets the clients send to all nodes, and to the observer.
func (h *recorded) spread() {
	for i, c := range h.clients {
		c.s = h.nodes[i%len(h.nodes)]
	}
}
