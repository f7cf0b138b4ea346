package replicated

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	actornode "exchange/actors/node"
	"exchange/persistence"
	"exchange/persistence/internal/machine"
	"exchange/persistence/internal/raftlog"
	"exchange/persistence/memory"
)

// runs restarts the node with a program that reads formats up to reads.
func (s *simulated) runs(reads uint8) {
	if s.node != nil {
		s.crash()
	}
	s.reads = reads
	s.start()
}

// No entry of a format is proposed before all members read it. A node that joins later must read
// it.
func TestAFormatIsWrittenOnceAllMembersReadIt(t *testing.T) {
	w := newWorld(t, 1)
	w.lead(0)
	w.nodes[0].runs(newer)
	w.nodes[1].runs(newer)
	s := w.lead(0)
	tok := w.own(s, 1).Token
	w.pass(3 * electionTicks)
	if s.view.format != machine.First {
		t.Fatalf("format %d is applied, and node c does not read it", s.view.format)
	}
	e := appendOf(tok, 0, "newer")
	e.Format = newer
	c := s.ask(e)
	refused(t, mustAnswer(t, c).err, "not all members are known to read it")
	w.nodes[2].runs(newer)
	w.pass(3 * electionTicks)
	for _, n := range w.nodes[:voters] {
		if n.view.format != newer {
			t.Errorf("format %d is applied at %s", n.view.format, n.name())
		}
		for _, p := range n.view.peers {
			if p.Reads != newer {
				t.Errorf("%s shows that %s reads format %d", n.name(), p.Name, p.Reads)
			}
		}
	}
	e = appendOf(tok, 0, "newer")
	e.Format = newer
	c = s.ask(e)
	w.settle()
	must(t, mustAnswer(t, c).err)

	must(t, s.change(machine.Add, "d", ""))
	d := w.nodes[3]
	d.start()
	w.pass(2)
	if d.formation != nil || w.counts["too old to join"] != 1 {
		t.Error("a node waits that does not read the applied format")
	}
	d.runs(newer)
	w.pass(2 * electionTicks)
	if got := s.memberList(); got != "a1#1 b1#2 c1#3 d2#4" {
		t.Errorf("the members are %s", got)
	}
	w.check()
}

// A joining node's format is checked before it gets an ID, and a format is enabled once all nodes
// with an ID have reported it: of two pending changes neither misses the other.
func TestALearnerHoldsTheFormatBack(t *testing.T) {
	w := newWorld(t, 1)
	s := w.lead(0)
	must(t, s.change(machine.Add, "d", ""))
	w.nodes[3].start()
	for !strings.Contains(s.memberList(), "d2#4") {
		w.pass(1)
	}
	for _, n := range w.nodes[:voters] {
		n.runs(newer)
	}
	s = w.lead(0, 1, 2)
	w.pass(3 * electionTicks)
	if s.view.format != machine.First {
		t.Errorf("format %d is applied, and a learner does not read it", s.view.format)
	}
	w.nodes[3].runs(newer)
	w.pass(3 * electionTicks)
	if w.nodes[3].view.format != newer {
		t.Errorf("format %d is applied at the learner", w.nodes[3].view.format)
	}
}

// An older program that is started again cannot read new entries, and still votes.
func TestANodeThatCannotReadTheFormatVotes(t *testing.T) {
	w := newWorld(t, 1)
	w.lead(0)
	for _, n := range w.nodes[:voters] {
		n.runs(newer)
	}
	a, b, c := w.nodes[0], w.nodes[1], w.nodes[2]
	w.lead(0)
	w.pass(3 * electionTicks)
	tok := w.own(a, 1).Token
	append := func(prev uint64) {
		t.Helper()
		e := appendOf(tok, prev, "text")
		e.Format = newer
		answer := a.ask(e)
		w.settle()
		must(t, mustAnswer(t, answer).err)
	}
	append(0)
	w.own(a, 2)
	c.best = newer + 1 // started although a newer one was reported
	c.runs(machine.First)
	w.pass(3)
	if c.node.formatErr == nil || c.view.formatErr == nil {
		t.Fatal("an older program reads what a newer one has written")
	}
	applied := c.view.applied
	b.crash()
	tok = w.own(a, 3).Token
	append(1)
	if c.view.applied != applied {
		t.Errorf("it has applied entry %d, and %d was the last that it reads", c.view.applied,
			applied)
	}
	b.start()
	w.pass(2 * electionTicks)
	a.node.transferLead(3, make(chan error, 1))
	a.work(nil)
	w.quiet()
	if !c.view.leading {
		t.Fatal("it is not given the lead")
	}
	answer := c.ask(claimOf(4))
	if err := mustAnswer(t, answer).err; !errors.Is(err, errNotLeading) {
		t.Errorf("a claim at a node that does not read: %v", err)
	}
	w.pass(2)
	if c.view.leading {
		t.Error("a node that cannot read the format still leads")
	}
	a = w.lead(0, 1)
	w.own(a, 5)
	c.runs(newer)
	w.pass(2 * electionTicks)
	if c.view.applied != a.view.applied {
		t.Errorf("a newer program has applied entry %d of %d", c.view.applied, a.view.applied)
	}
}

// A node that starts on a format which it cannot read reports ErrFormat, and does not end.
func TestANodeStartedOnANewerFormatIsNotReady(t *testing.T) {
	files := vfs.NewMem()
	state := machine.Formed([]string{"a"})
	state.Apply(&machine.Entry{Kind: machine.Format, Next: machine.Newest + 1})
	must(t, raftlog.Form(files, "node", raftlog.Identity{Cluster: cluster, Name: "a", Node: 1},
		raftlog.Base{Index: 1, Term: 1, Machine: state.Encode()}))
	ticks := make(chan time.Time)
	s, err := open(options{dir: "node", files: files, tickC: ticks, now: time.Now,
		local: memory.Open(memory.NewDisk(), persistence.Retention{}), random: rand.IntN,
		logger: quiet, fatal: func(err error) { t.Error("fatal:", err) }})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	o, err := engineOptions(s, 0)
	must(t, err)
	n, err := actornode.Start(t.Context(), o)
	must(t, err)
	<-n.Dead()
	if !errors.Is(n.Err(), persistence.ErrFormat) {
		t.Errorf("the node is dead: %v", n.Err())
	}
	if err := s.awaitLead(t.Context()); err != nil || s.Standing().Format != machine.Newest+1 {
		t.Errorf("%+v, %v", s.Standing(), err)
	}
	select {
	case <-n.Ended():
		t.Error("a node that cannot read the format no longer votes")
	case ticks <- time.Now():
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, n.Stop(ctx))
}
