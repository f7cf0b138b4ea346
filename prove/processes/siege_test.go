//go:build prove && linux

package processes

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"exchange/persistence"
	"exchange/prove/exchangetest"
)

// A siege is a cluster under load, with a relay on each link from one node to another. The users
// are spread over all nodes and an observer, and each switches to the next when one does not serve
// it.
type siege struct {
	*cluster
	o      *exchangetest.Server // the observer
	w      *world
	random *rand.Rand
	ways   map[way]*relay
	builds int // of the program that nodes were given by rolling upgrades
	reads  int // newest format that the nodes' program reads
	copies int // of a store that replaced nodes have joined with
}

// A way is a directed link from one node to another.
type way struct{ from, to string }

// relays puts a relay on each way of a cluster.
func relays(t *testing.T, ways map[way]*relay) (between func(from, to, address string) string) {
	return func(from, to, address string) string {
		r := newRelay(t, address)
		ways[way{from, to}] = r
		return r.listener.Addr().String()
	}
}

// A blow is one kind of fault of a cluster. It returns when the fault is over.
type blow struct {
	name string
	full int // rounds of the whole campaign
	hit  func(g *siege)

	sampled bool // in every test run
}

var blows = []blow{
	{name: "kill -9 of the node that leads", full: 50, sampled: true,
		hit: func(g *siege) { g.killed(g.leader(nil)) }},
	{name: "kill -9 of a node that follows", full: 50,
		hit: func(g *siege) { g.killed(g.follower()) }},
	{name: "stop of the node that leads", full: 25,
		hit: func(g *siege) { g.stopped(g.leader(nil)) }},
	{name: "stop of a node that follows", full: 25,
		hit: func(g *siege) { g.stopped(g.follower()) }},
	{name: "the node that leads is cut off", full: 20,
		hit: func(g *siege) { g.cutOff(g.leader(nil), true, true) }},
	{name: "a node that follows is cut off", full: 10,
		hit: func(g *siege) { g.cutOff(g.follower(), true, true) }},
	{name: "messages of the leader are lost", full: 10, sampled: true,
		hit: func(g *siege) { g.cutOff(g.leader(nil), true, false) }},
	{name: "messages to the leader are lost", full: 10,
		hit: func(g *siege) { g.cutOff(g.leader(nil), false, true) }},
	{name: "kill -9 of all nodes at once", full: 10, sampled: true, hit: (*siege).allKilled},
	{name: "kill -9 of the observer", full: 10, hit: func(g *siege) { g.o.Kill(); g.o.Start() }},
	{name: "hand-over", full: 10, hit: func(g *siege) { g.handsOver(g.follower()) }},
	{name: "replaced disk", full: 5, sampled: true, hit: (*siege).replaced},
	{name: "rolling upgrade", full: 2, hit: (*siege).upgraded},
}

// After each fault of a cluster nothing acknowledged is missing on any node, nothing is there
// twice, and all nodes have the same state. A test run has some kinds; EXCHANGE_CHAOS sets the
// number of rounds of each, as in TestChaos.
func TestClusterCampaign(t *testing.T) {
	var rounds []*blow
	for i := range blows {
		for range roundsOf(t, blows[i].full, blows[i].sampled) {
			rounds = append(rounds, &blows[i])
		}
	}
	random := newRandom(t)
	random.Shuffle(len(rounds), func(i, j int) { rounds[i], rounds[j] = rounds[j], rounds[i] })
	done := map[string]int{}
	for part := range slices.Chunk(rounds, roundsOfOne) {
		t.Run("of a cluster", func(t *testing.T) { lay(t, random, part, done) })
	}
}

// lay runs the rounds of a cluster, and counts them.
func lay(t *testing.T, random *rand.Rand, rounds []*blow, done map[string]int) {
	g := newSiege(t, random)
	g.reads = persistence.NewestFormat
	g.o = g.observer("o1")
	// so that the beginning of the journal is trimmed
	g.runs(append(slices.Clone(manySnapshots), "EXCHANGE_CLUSTER_OBSERVERS=o1")...)
	g.w = &world{t: t, s: g.leader(nil)}
	g.w.open(6, g.random)
	g.o.Start()
	for _, b := range rounds {
		g.round(b)
		done[b.name]++
	}
	g.everyNode()
	t.Logf("%d rounds, %d requests acknowledged, all there on each node, %d of the replaced disks "+
		"filled by a copy; with earlier clusters: %v", len(rounds), g.w.acks.Load(), g.copies, done)
}

// newSiege prepares a cluster with relays, and starts none of its nodes.
func newSiege(t *testing.T, random *rand.Rand) *siege {
	t.Helper()
	g := &siege{random: random, ways: map[way]*relay{}}
	g.cluster = prepareCluster(t, relays(t, g.ways))
	return g
}

// round injects a fault under load. Then it compares the states of all nodes, and the leader's
// data.
func (g *siege) round(b *blow) {
	g.t.Helper()
	begin := time.Now()
	g.load(func() { b.hit(g) })
	g.same()
	led := g.leader(nil)
	g.w.turnTo(led)
	g.w.compare()
	g.t.Logf("%s: %s", b.name, time.Since(begin).Round(time.Millisecond))
}

// everyNode lets each node lead in turn, and compares all of its data.
func (g *siege) everyNode() {
	g.t.Helper()
	for _, s := range g.nodes {
		if led := g.leader(nil); led != s {
			g.follows(s, led)
			g.handsOver(s)
		}
		g.w.turnTo(s)
		g.w.compare()
	}
}

// load lets every user act before, during and after a fault.
func (g *siege) load(fault func()) {
	g.t.Helper()
	w := g.w
	var wg sync.WaitGroup
	var stop atomic.Bool
	users, places := w.office(), g.places()
	for i, t := range w.traders {
		t.s = places[i%len(places)]
		users = append(users, func() (bool, error) { return g.act(t) })
	}
	errs := make([]error, len(users))
	for i, act := range users {
		wg.Go(func() {
			for errs[i] == nil && !stop.Load() {
				goOn, err := act()
				if errs[i] = err; !goOn {
					beOff(503)
				}
			}
		})
	}
	acknowledges := func(what string, n int64) {
		g.t.Helper()
		until := w.acks.Load() + n
		exchangetest.Eventually(g.t, "requests are acknowledged "+what+" the fault",
			func() bool { return w.acks.Load() >= until })
	}
	acknowledges("before", 20+g.random.Int64N(100))
	fault()
	acknowledges("after", 20)
	stop.Store(true)
	wg.Wait()
	succeeds(g.t, errors.Join(errs...))
}

// act lets a trader act, which switches to the next node if nothing is acknowledged.
func (g *siege) act(t *trader) (goOn bool, err error) {
	before := t.last
	goOn, err = t.act()
	if t.last != before {
		g.w.acks.Add(1)
		return true, err
	}
	places := g.places()
	t.s = places[(slices.Index(places, t.s)+1)%len(places)]
	return goOn, err
}

// places are the processes that users may use.
func (g *siege) places() []*exchangetest.Server { return append(slices.Clone(g.nodes), g.o) }

// follower returns a follower.
func (g *siege) follower() *exchangetest.Server {
	return g.others(g.leader(nil))[g.random.IntN(2)]
}

// alive waits until a node is up and follows or leads.
func (g *siege) alive(s *exchangetest.Server) {
	g.t.Helper()
	exchangetest.Eventually(g.t, "node "+g.name(s)+" is there again", func() bool {
		k, err := g.view(s)
		return err == nil && (k.Role == "leader" || k.Role == "follower" && k.Leader != "")
	})
}

func (g *siege) killed(s *exchangetest.Server) {
	s.Kill()
	g.leader(s)
	s.Run()
	g.alive(s)
}

func (g *siege) allKilled() {
	for _, i := range g.random.Perm(len(g.nodes)) {
		g.nodes[i].Signal(syscall.SIGKILL)
	}
	for _, s := range g.nodes {
		<-s.Exited()
	}
	for _, i := range g.random.Perm(len(g.nodes)) {
		g.nodes[i].Run()
	}
	for _, s := range g.nodes {
		g.alive(s)
	}
}

// replaced deletes a node's folders, and lets it join with empty ones.
func (g *siege) replaced() {
	s := g.nodes[g.random.IntN(len(g.nodes))]
	name, entry := g.name(s), g.entry(s)
	s.Kill()
	g.leader(s)
	g.emptied(s)
	const copied = "fetching a copy of another node's store"
	before := strings.Count(s.Log(), copied)
	stands := func(role string) bool {
		k, err := g.view(g.leader(s))
		return err == nil && slices.Contains(k.Nodes, member{name, role})
	}
	replaces := func(wait string) {
		g.leader(s).Command("cluster", "replace", "--wait", wait, name, entry)
	}
	exchangetest.Eventually(g.t, "node "+name+" is awaited", func() bool {
		replaces("0s") // refused while the node counts as one that lives
		return stands("awaited")
	})
	s.Run()
	exchangetest.Eventually(g.t, "node "+name+" is a voter", func() bool {
		replaces("30s") // ends early if another node leads meanwhile
		return stands("voter")
	})
	g.alive(s)
	g.copies += min(strings.Count(s.Log(), copied)-before, 1)
}

// upgraded upgrades one node after the other to another build, as operators do: the followers, and
// at last the leader. Each one ends in order. The other build reads one more format, which is
// enabled only when all nodes have it.
func (g *siege) upgraded() {
	g.builds++
	version, before := fmt.Sprintf("v%d-of-the-siege", g.builds), g.reads
	g.reads++
	program := exchangetest.Build(g.t, version, g.reads-persistence.NewestFormat)
	if code := g.o.Terminate(); code != 0 { // it has to read what they write
		g.t.Fatalf("the observer ends with %d", code)
	}
	g.o.Use(program)
	g.o.Start()
	led := g.leader(nil)
	for _, s := range append(g.others(led), led) {
		g.writes(before)
		if code := s.Terminate(); code != 0 {
			g.t.Fatalf("node %s ends with %d", g.name(s), code)
		}
		s.Use(program)
		s.Run()
		g.alive(s)
		its := must[clusterView](g.t)(g.view(g.leader(nil)))
		exchangetest.Eventually(g.t, "node "+g.name(s)+" lacks nothing", func() bool {
			own, err := g.view(s)
			return err == nil && own.Folded >= its.Folded
		})
		if !strings.Contains(s.Log(), version) {
			g.t.Fatalf("node %s does not run %s", g.name(s), version)
		}
	}
	g.writes(g.reads)
}

// writes waits until all nodes show a format as the newest enabled one.
func (g *siege) writes(format int) {
	g.t.Helper()
	for _, s := range g.nodes {
		exchangetest.Eventually(g.t, fmt.Sprintf("node %s may write format %d", g.name(s), format),
			func() bool {
				k, err := g.view(s)
				return err == nil && k.Format == format
			})
	}
}

func (g *siege) stopped(s *exchangetest.Server) {
	s.Signal(syscall.SIGSTOP)
	g.leader(s)
	g.w.serves()
	s.Signal(syscall.SIGCONT)
	g.alive(s)
}

// cutOff cuts the links from a node, those to it, or both. The others continue.
func (g *siege) cutOff(s *exchangetest.Server, from, to bool) {
	mend := g.cut(s, from, to)
	g.leader(s)
	g.w.serves()
	mend()
	g.alive(s)
}

// cut is cutOff until the returned function is called.
func (g *siege) cut(s *exchangetest.Server, from, to bool) (mend func()) {
	var cut []*relay
	for way, r := range g.ways {
		if from && way.from == g.name(s) || to && way.to == g.name(s) {
			cut = append(cut, r)
		}
	}
	mode := []int32{swallow, refuse}[g.random.IntN(2)]
	for _, r := range cut {
		r.set(mode)
	}
	return func() {
		for _, r := range cut {
			r.set(pass)
			r.cut() // a stream that has lost bytes is of no use
		}
	}
}

// serves waits until more requests are acknowledged.
func (w *world) serves() {
	w.t.Helper()
	until := w.acks.Load() + 10
	exchangetest.Eventually(w.t, "the other nodes serve",
		func() bool { return w.acks.Load() >= until })
}
