package replicated

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
	"exchange/persistence/internal/machine"
	"exchange/persistence/internal/raftlog"
)

func copyOf(d *disk, left int) *disk {
	return &disk{mem: d.mem.CrashClone(vfs.CrashCloneCfg{}), left: left}
}

// survive runs on the disk of a node that is down.
func (d *disk) survive(sure bool) (*Survivor, error) {
	s := &Survival{Cluster: cluster, Node: "a", Sure: sure, Shorter: "a", Fatal: func(error) {}}
	return s.run(d.files(), folder)
}

// lonely returns a world whose nodes were killed with five batches; a has one more entry, which may
// have no majority.
func lonely(t *testing.T) *world {
	w := newWorld(t, 1)
	s := w.lead(0)
	tok := w.own(s, 1).Token
	for i := range uint64(5) {
		c := s.ask(appendOf(tok, i, "batch"))
		w.settle()
		must(t, mustAnswer(t, c).err)
	}
	w.cut[0][1], w.cut[0][2] = true, true
	s.ask(appendOf(tok, 5, "at a alone"))
	w.cut = [places][places]bool{}
	w.sent = nil
	for _, s := range w.nodes[:voters] {
		s.crash()
	}
	return w
}

// After a crash at any point the node is one of three, or alone.
func TestACrashInASurvivalLeavesTheOldOrTheNewMembership(t *testing.T) {
	w := lonely(t)
	a := w.nodes[0].disk
	before, after := 0, 0
	for left := 0; ; left++ {
		d := copyOf(a, left)
		_, err := d.survive(true)
		if err != nil && !errors.Is(err, errPower) {
			t.Fatal(err)
		}
		d = d.crash(t, w.rng)
		log, base, failed := raftlog.Open(folder, raftlog.Options{FS: d.files(), AtNeed: true,
			Fatal: func(error) {}})
		must(t, failed)
		state, last, failed := endState(log, base)
		must(t, errors.Join(failed, log.Close()))
		switch n := len(state.Members()); {
		case n == 1 && log.State().GetCommit() == last && log.State().GetTerm() > 0:
			after++
		case n != 3 || err == nil:
			t.Fatalf("%d changes before the crash: %d members, commit %d of %d; %v", left, n,
				log.State().GetCommit(), last, err)
		default:
			before++
		}
		if err == nil {
			break
		}
	}
	if before == 0 || after == 0 {
		t.Errorf("%d times as before, %d times alone", before, after)
	}
}

// A survivor serves alone, with all of its log. No old ID counts again: the others are ignored when
// they come back, also one that joined them meanwhile, and are notified of their removal. They do
// not believe a single node.
func TestASurvivorIgnoresTheOldMembers(t *testing.T) {
	w := lonely(t)
	s := w.nodes[0]
	looked, err := s.disk.survive(false)
	must(t, err)
	if looked.Folders[0].Seq != 6 || looked.Folders[0].Term == 0 || len(looked.Gone) != 2 {
		t.Errorf("%+v", looked)
	}
	if _, err := copyOf(w.nodes[1].disk, -1).survive(true); err == nil {
		t.Error("node a survives in the folder of b")
	}
	if _, err := s.disk.survive(true); err != nil {
		t.Fatal(err)
	}
	if _, err := s.disk.survive(true); !errors.Is(err, persistence.ErrInvalid) {
		t.Errorf("it survives twice: %v", err)
	}
	s.start()
	if w.lead(0); s.memberList() != "a1#1" || s.view.beat.End.Seq != 6 || !s.view.lost {
		t.Fatalf("the members are %s; %+v", s.memberList(), s.view)
	}
	tok := w.own(s, 2)
	c := s.ask(appendOf(tok.Token, 6, "alone"))
	if must(t, mustAnswer(t, c).err); s.view.lost {
		t.Error("the view does not show that something was appended")
	}
	if s.node.acceptsFrom("d", frame{kind: frameMessage, id: 4}) {
		t.Error("frames of a node that joined the others meanwhile are accepted")
	}

	b := w.nodes[1]
	b.start()
	for range 4 * electionTicks {
		if b.node != nil {
			b.tick()
			w.quiet()
		}
	}
	if b.node == nil || b.view.leading || len(b.node.removedDoubt.against) != 1 {
		t.Fatal("b ends, or serves")
	}
	b.crash()
	b.spare, b.disk = true, newDisk()
	must(t, s.change(machine.Add, "b", ""))
	b.start()
	for range 3 {
		w.pass(1)
	}
	if got := s.memberList(); got != "a1#1 b2#4294967297" {
		t.Errorf("the members are %s", got)
	}

	old := w.nodes[2]
	old.start()
	for tick := 0; tick < 8*electionTicks && old.node != nil; tick++ {
		w.pass(1)
	}
	if b.node == nil || b.memberList() != s.memberList() {
		t.Error("a node that joins after it does not get the entry of the survival")
	}
	if old.node != nil {
		t.Errorf("two of three report that c is removed, and it still runs: against it are %v",
			old.node.removedDoubt.against)
	}
}

// A folder with valid checksums is opened, whatever peers have reported about its node. One that is
// shorter than another, or whose node has ended, must be named.
func TestAShorterFolderSurvivesOnlyIfNamed(t *testing.T) {
	w := lonely(t)
	a, b := w.nodes[0].disk, w.nodes[1].disk
	files := vfs.NewMem()
	for name, d := range map[string]*disk{"a": a, "b": b} {
		copied, err := vfs.Clone(d.mem, files, folder, files.PathJoin(name, logFolder))
		must(t, err)
		if !copied {
			t.Fatal("there is no folder")
		}
	}
	open := func(name string) *raftlog.Log {
		log, _, err := raftlog.Open(files.PathJoin(name, logFolder), raftlog.Options{FS: files,
			AtNeed: true, Anyway: true, Fatal: func(error) {}})
		must(t, err)
		return log
	}
	log := open("a")
	must(t, errors.Join(log.Retire(), log.Remove(), log.Close()))
	survive := func(node, other, shorter string, sure bool) (*Survivor, error) {
		s := &Survival{Folder: node, Cluster: cluster, Node: node, Others: []string{other, "none"},
			Shorter: shorter, Sure: sure, Fatal: func(error) {}}
		return s.run(files, files.PathJoin(node, logFolder))
	}
	v, err := survive("a", "b", "", false)
	must(t, err)
	if own, other := v.Folders[0], v.Folders[1]; own.Seq != 6 || own.Ended == "" ||
		other.Node != "b" || other.Seq != 5 || other.Term == 0 || v.Folders[2].Fault == nil {
		t.Errorf("%+v", v.Folders)
	}
	for _, c := range []struct{ node, other, shorter string }{
		{"b", "a", ""}, {"b", "a", "a"}, {"a", "b", ""}, {"a", "b", "b"},
	} {
		if _, err := survive(c.node, c.other, c.shorter, true); !errors.Is(err,
			persistence.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	_, err = survive("a", "b", "a", true)
	must(t, err)
	if log = open("a"); log.Ended() != "" {
		t.Error("its node is still ended")
	}
	must(t, log.Close())
}
