package replicated

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/raft/v3"

	"exchange/persistence"
	"exchange/persistence/internal/machine"
)

// pass lets time pass at all nodes, and delivers all frames.
func (w *world) pass(ticks int) {
	w.Helper()
	for range ticks {
		for _, s := range w.nodes {
			if s.node != nil || s.formation != nil {
				s.tick()
			}
		}
		w.quiet()
	}
}

// change proposes a membership change at a node, and returns its error.
func (s *simulated) change(kind machine.Kind, name, replaces string) error {
	s.w.Helper()
	e := &machine.Entry{Kind: kind, Name: name, Replaces: replaces}
	c := s.ask(e)
	s.w.quiet()
	r := mustAnswer(s.w.T, c)
	if r.err != nil {
		return r.err
	}
	return r.answer.Err(e)
}

// refused wants a change to be refused for a reason.
func refused(t *testing.T, err error, why string) {
	t.Helper()
	if !errors.Is(err, persistence.ErrInvalid) || !strings.Contains(err.Error(), why) {
		t.Errorf("it is %v, want %q", err, why)
	}
}

// memberList returns the members of a node: names, roles and IDs.
func (s *simulated) memberList() string {
	var list []string
	for _, m := range s.node.machine.Members() {
		list = append(list, fmt.Sprint(m.Name, m.Role, "#", m.ID))
	}
	return strings.Join(list, " ")
}

// A learner receives the log, and does not count until it is promoted. A change is refused that
// would leave no majority of living nodes, or remove the leader.
func TestALearnerIsPromotedOnceItHasTheLog(t *testing.T) {
	w := newWorld(t, 1)
	s := w.lead(0)
	tok := w.own(s, 1).Token
	for i := range uint64(30) {
		must(t, mustAnswer(t, func() chan result {
			c := s.ask(appendOf(tok, i, "batch"))
			w.settle()
			return c
		}()).err)
	}
	refused(t, s.change(machine.Promote, "d", ""), "no such node")
	refused(t, s.change(machine.Remove, "x", ""), "no such node")
	refused(t, s.change(machine.Remove, "a", ""), "hand the lead over first")
	must(t, s.change(machine.Add, "d", ""))
	refused(t, s.change(machine.Promote, "d", ""), "has not joined")
	d := w.nodes[3]
	d.start()
	w.pass(1)
	d.tick()
	w.pass(1)
	if d.node == nil || s.memberList() != "a1#1 b1#2 c1#3 d2#4" {
		t.Fatalf("the members are %s", s.memberList())
	}
	if p := s.node.peers; len(p) != 4 || p[0].Role != persistence.RoleVoter || p[3].Name != "d" ||
		p[3].Role != persistence.RoleLearner || s.node.logBytes == 0 {
		t.Errorf("%+v, %d bytes", p, s.node.logBytes)
	}
	c := make(chan error, 1)
	s.node.transferLead(4, c)
	select {
	case err := <-c:
		if !errors.Is(err, errNoTarget) {
			t.Error(err)
		}
	default:
		t.Error("the lead is handed to a learner")
	}
	w.cut[0][3] = true
	for range maxLag + 1 {
		s.ask(&machine.Entry{Kind: machine.Check, Token: tok})
	}
	w.settle()
	refused(t, s.change(machine.Promote, "d", ""), "it is promoted once it has the log")
	w.cut = [places][places]bool{}
	w.pass(3)
	must(t, s.change(machine.Promote, "d", ""))
	must(t, s.change(machine.Remove, "c", ""))
	w.pass(1)
	if c := w.nodes[2]; c.node != nil || !c.spare {
		t.Error("a removed node still runs")
	}
	w.nodes[1].crash()
	w.pass(electionTicks + 1)
	refused(t, s.change(machine.Remove, "d", ""), "no majority")
	if got := s.memberList(); got != "a1#1 b1#2 d1#4" {
		t.Errorf("the members are %s", got)
	}
	w.nodes[1].start()
	w.recover()
	w.check()
}

// Concurrent changes are made one after the other, and a change requested before the leader has
// applied an entry of its term waits. A deposed leader makes none.
func TestChangesWaitForTheirTurn(t *testing.T) {
	w := newWorld(t, 1)
	s := w.lead(0)
	ask := func(s *simulated, kind machine.Kind, name string) chan result {
		return s.ask(&machine.Entry{Kind: kind, Name: name})
	}
	waiting := []chan result{ask(s, machine.Add, "d"), ask(s, machine.Remove, "c"),
		ask(s, machine.Remove, "d"), ask(s, machine.Remove, "a")}
	w.pass(5)
	for _, c := range waiting[:3] {
		r := mustAnswer(t, c)
		must(t, r.err)
		must(t, r.answer.Err(&machine.Entry{}))
	}
	refused(t, mustAnswer(t, waiting[3]).err, "hand the lead over first")
	if got := s.memberList(); got != "a1#1 b1#2" {
		t.Errorf("the members are %s", got)
	}
	waiting = nil
	for range maxQueued + 1 {
		waiting = append(waiting, ask(s, machine.Add, "d"))
	}
	if r := mustAnswer(t, ask(s, machine.Add, "d")); !errors.Is(r.err, errChanging) {
		t.Errorf("the queue exceeds its limit: %v", r.err)
	}
	s.node.transferLead(2, make(chan error, 1))
	s.work(nil)
	b := w.nodes[1]
	begun := func() bool { return b.node.raw.BasicStatus().RaftState == raft.StateLeader }
	for ; len(w.sent) > 0 && !begun(); b.work(nil) {
		w.deliver(false)
		s.work(nil)
	}
	if !begun() || b.node.appliedTerm == b.node.raw.BasicStatus().GetTerm() {
		t.Fatal("no other node starts to lead")
	}
	begins := ask(b, machine.Remove, "a")
	w.pass(3)
	must(t, mustAnswer(t, begins).err)
	var refusals int
	for _, c := range waiting[1:] {
		if errors.Is(mustAnswer(t, c).err, errNotLeading) {
			refusals++
		}
	}
	if refusals == 0 {
		t.Error("a deposed leader makes changes")
	}
}

// A node that was removed while it was down is notified by its peers when it comes back, and its
// folder is not opened again.
func TestARemovedNodeIsNotified(t *testing.T) {
	w := newWorld(t, 1)
	s := w.lead(0)
	c := w.nodes[2]
	c.crash()
	w.pass(2 * electionTicks)
	must(t, s.change(machine.Remove, "c", ""))
	c.start()
	for range 4 * electionTicks {
		if c.node == nil {
			break
		}
		c.tick()
		w.quiet()
	}
	if c.node != nil || w.counts["removed"] != 1 {
		t.Fatal("it still runs")
	}
}

// A removed node ends once it is notified, though a majority may have needed it. So its notifiers
// keep the change committed after a crash.
func TestAMembershipChangeIsCommittedAfterACrash(t *testing.T) {
	w := newWorld(t, 1)
	s := w.lead(0)
	must(t, s.change(machine.Remove, "c", ""))
	at := s.view.applied
	s.crash()
	s.start()
	if got := s.log.State().GetCommit(); got < at {
		t.Errorf("entry %d was committed, and after the crash %d is", at, got)
	}
}

// While a voter is replaced, raft has both sets of voters.
func TestAMembershipIsRaftsConfiguration(t *testing.T) {
	for _, list := range [][]machine.Member{nil, {{ID: 1, Role: machine.Voter}}} {
		if got := configuration(list); len(got.Voters) != len(list) || got.AutoLeave != nil {
			t.Errorf("%v", got)
		}
	}
	got := configuration([]machine.Member{{ID: 3, Role: machine.Leaving},
		{ID: 1, Role: machine.Voter}, {ID: 5, Role: machine.Voter}, {Role: machine.Awaited},
		{ID: 4, Role: machine.Learner}})
	if !slices.Equal(got.Voters, []uint64{1, 5}) || !slices.Equal(got.VotersOutgoing,
		[]uint64{1, 3}) || !slices.Equal(got.Learners, []uint64{4}) || !got.GetAutoLeave() {
		t.Errorf("%v", got)
	}
}

// No node keeps state of former members: a cluster whose nodes come and go for years does not grow.
func TestANodeThatHasLeftIsForgotten(t *testing.T) {
	w := newWorld(t, 1)
	s := w.lead(0)
	for range 3 {
		must(t, s.change(machine.Add, "d", ""))
		w.nodes[3].start()
		w.pass(3 * askTicks)
		must(t, s.change(machine.Promote, "d", ""))
		w.pass(3 * askTicks)
		for _, p := range s.view.peers {
			if p.Newest != (p.Name == "d") {
				t.Errorf("%s joined last: %v", p.Name, p.Newest)
			}
		}
		must(t, s.change(machine.Remove, "d", ""))
		w.pass(3 * askTicks)
	}
	for _, x := range w.nodes[:voters] {
		n := x.node
		for what, size := range map[string]int{"frames": len(n.lastFrame),
			"formats": len(n.peerFormats), "markets": len(n.peerMarkets),
			"clocks": len(n.peerClocks)} {
			if most := voters; size > most || size < voters-1 {
				t.Errorf("node %s has %d entries in %s: %+v", x.name(), size, what, n.lastFrame)
			}
		}
		if len(n.offeredAt)+len(n.futureIDs) > 0 {
			t.Errorf("node %s keeps %v and %v", x.name(), n.offeredAt, n.futureIDs)
		}
	}
}
