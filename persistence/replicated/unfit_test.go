package replicated

import (
	"errors"
	"slices"
	"testing"
	"time"

	"exchange/persistence/internal/machine"
)

// unfitNodes are the ways to make node b unfit to serve.
var unfitNodes = map[string]func(w *world){
	"another key": func(w *world) { w.nodes[1].misfit = errors.New("another key") },
	"a wrong clock": func(w *world) {
		w.clocks[1] = time.Hour
		w.pass(3 * askTicks)
	},
	"an older program": func(w *world) {
		for _, s := range w.nodes[:voters] {
			s.runs(newer)
		}
		w.lead(0)
		w.pass(3 * electionTicks)
		w.nodes[1].best = newer + 1 // an older one is started although a newer one was reported
		w.nodes[1].runs(machine.First)
		w.pass(3)
	},
}

// The leader dies. An unfit node lets the others campaign first, whatever timeouts they draw.
func TestANodeThatCouldNotServeCampaignsLast(t *testing.T) {
	for what, spoil := range unfitNodes {
		for seed := range uint64(20) {
			w := newWorld(t, seed)
			w.lead(0)
			spoil(w)
			a, b, c := w.nodes[0], w.nodes[1], w.nodes[2]
			if !a.view.leading || !b.barred() {
				t.Fatalf("%s: a leads: %v; b is unfit: %v", what, a.view.leading, b.barred())
			}
			before := b.view.elections
			a.crash()
			w.pass(2 * electionTicks)
			if !c.view.leading || b.view.elections > before {
				t.Errorf("%s, seed %d: c leads: %v, after %d elections of b", what, seed,
					c.view.leading, b.view.elections-before)
			}
		}
	}
}

// An unfit node alone has the acknowledged entries. It is elected in the end, replicates them, and
// hands the lead over.
func TestANodeThatCouldNotServeAndHasTheLongestLogIsElected(t *testing.T) {
	for what, spoil := range unfitNodes {
		w := newWorld(t, 1)
		w.lead(0)
		spoil(w)
		a, b, c := w.nodes[0], w.nodes[1], w.nodes[2]
		c.crash()
		tok := w.own(a, 1).Token
		answer := a.ask(appendOf(tok, 0, "acknowledged"))
		w.settle()
		must(t, mustAnswer(t, answer).err)
		a.crash()
		c.start()
		for ticks := 0; !b.view.leading; ticks++ {
			if c.view.leading {
				t.Fatalf("%s: a node leads without the acknowledged entries", what)
			}
			if ticks > 2*unfitFactor*electionTicks {
				t.Fatalf("%s: no node leads", what)
			}
			w.pass(1)
		}
		w.pass(1)
		b.node.transferLead(0, make(chan error, 1))
		b.work(nil)
		w.quiet()
		w.pass(1)
		if !c.view.leading || c.view.beat.End.Seq != 1 {
			t.Errorf("%s: c leads: %v, with a journal up to %d", what, c.view.leading,
				c.view.beat.End.Seq)
		}
	}
}

// The lead goes to a fit node among those that could take it at once. If there is none it goes to
// any, and to a recovered node as soon as it no longer reports unfit.
func TestTheLeadIsHandedToANodeThatCouldServe(t *testing.T) {
	for _, x := range []struct {
		unfit []int
		to    int
	}{{[]int{1}, 2}, {[]int{2}, 1}, {[]int{1, 2}, 1}, {nil, 1}} {
		w := newWorld(t, 1)
		a := w.lead(0)
		w.nodes[1].misfit = errors.New("another key")
		w.pass(askTicks)
		for i, s := range w.nodes[:voters] {
			if s.misfit = nil; slices.Contains(x.unfit, i) {
				s.misfit = errors.New("another key")
			}
		}
		w.pass(clockValidTicks + askTicks)
		for _, p := range a.view.peers {
			if i := slices.Index(nodeNames, p.Name); p.Unfit != slices.Contains(x.unfit, i) {
				t.Errorf("of %v unfit nodes %s is reported unfit: %v", x.unfit, p.Name, p.Unfit)
			}
		}
		a.node.transferLead(0, make(chan error, 1))
		a.work(nil)
		w.quiet()
		if to := w.nodes[x.to]; !to.view.leading {
			t.Errorf("of %v unfit nodes: the lead does not go to %s", x.unfit, nodeNames[x.to])
		}
	}
}
