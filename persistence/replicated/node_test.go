package replicated

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
	"exchange/persistence/internal/machine"
	"exchange/persistence/internal/raftlog"
)

// settle delivers all frames in their order, until none is in flight.
func (w *world) settle() {
	w.Helper()
	for len(w.sent) > 0 {
		f := w.sent[0]
		w.sent = w.sent[1:]
		if s := w.nodes[f.to]; s.node != nil {
			s.work(s.node.receive(nodeNames[f.from], f.frame))
		}
	}
}

// lead lets time pass at some nodes until one of them leads, and returns it.
func (w *world) lead(places ...int) *simulated {
	w.Helper()
	for range 100 * electionTicks {
		for _, i := range places {
			s := w.nodes[i]
			if s.view.leading {
				s.work(s.node.tick())
				w.settle()
				if s.view.leading {
					return s
				}
			}
			s.work(s.node.tick())
			w.settle()
		}
	}
	w.fail("no node leads")
	return nil
}

// ask proposes an entry, and returns the channel of its answer.
func (s *simulated) ask(e *machine.Entry) chan result {
	c := make(chan result, 1)
	s.node.propose(e, c)
	s.work(nil)
	return c
}

// mustAnswer returns an answer that must have arrived.
func mustAnswer(t *testing.T, c chan result) result {
	t.Helper()
	select {
	case r := <-c:
		return r
	default:
		t.Fatal("there is no answer")
		return result{}
	}
}

func claimOf(n int) *machine.Entry {
	return &machine.Entry{Kind: machine.Acquire, Unique: fmt.Sprintf("%032x", n), Owner: "an owner"}
}

// own claims the engine at a leader.
func (w *world) own(s *simulated, n int) machine.Answer {
	w.Helper()
	c := s.ask(claimOf(n))
	w.settle()
	r := mustAnswer(w.T, c)
	must(w.T, r.err)
	return r.answer
}

func appendOf(tok persistence.Token, prev uint64, text string) *machine.Entry {
	return &machine.Entry{Kind: machine.Append, Token: tok, Prev: prev, Next: prev + 1,
		Digest: codec.Digest([]byte(text)), Batch: []byte(text)}
}

// A leader is cut off with an append that no majority has, and another node is elected. The
// append's outcome is unknown to its caller, and its owner fenced.
func TestADroppedProposalIsUnknown(t *testing.T) {
	w := newWorld(t, 1)
	old := w.lead(0)
	tok := w.own(old, 1).Token
	w.cut[0] = [places]bool{false, true, true}
	w.cut[1][0], w.cut[2][0] = true, true
	c := old.ask(appendOf(tok, 0, "lost"))
	leader := w.lead(1, 2)
	newer := w.own(leader, 2)
	if newer.Seq != 0 {
		t.Fatalf("the new owner finds %d", newer.Seq)
	}
	select {
	case r := <-c:
		t.Fatalf("an append that no majority has is answered %+v", r)
	default:
	}
	w.cut = [places][places]bool{}
	leader.work(leader.node.tick())
	w.settle()
	if r := mustAnswer(t, c); !errors.Is(r.err, errUnknown) || persistence.Definite(r.err) {
		t.Fatalf("%+v", r)
	}
	r := mustAnswer(t, old.ask(appendOf(tok, 0, "lost")))
	if !errors.Is(r.err, errNotLeading) || persistence.Definite(r.err) {
		t.Fatalf("%+v", r)
	}
	late, now := leader.ask(appendOf(tok, 0, "lost")), leader.ask(appendOf(newer.Token, 0, "kept"))
	w.settle()
	if r := mustAnswer(t, late); r.answer.Outcome != machine.Fenced {
		t.Fatalf("%+v", r)
	}
	if r := mustAnswer(t, now); r.answer.Outcome != machine.Done {
		t.Fatalf("%+v", r)
	}
	w.recover()
	w.check()
}

// A leader without a majority steps down by itself, and its callers receive an unknown outcome.
func TestALeaderAloneStepsDown(t *testing.T) {
	w := newWorld(t, 1)
	s := w.lead(0)
	tok := w.own(s, 1).Token
	for i := range w.nodes {
		w.cut[0][i], w.cut[i][0] = true, true
	}
	c := s.ask(appendOf(tok, 0, "alone"))
	for range 3 * electionTicks {
		s.work(s.node.tick())
	}
	if r := mustAnswer(t, c); !errors.Is(r.err, errUnknown) || s.view.leading {
		t.Fatalf("%+v, leading %v", r, s.view.leading)
	}
}

// After a restart a node counts its proposals from 1 again. An entry of the earlier start, applied
// only now, does not answer the proposal with its number.
func TestAnAnswerOfAnEarlierStartGoesToNoCaller(t *testing.T) {
	w := newWorld(t, 1)
	s := w.lead(0)
	for i := range w.nodes {
		w.cut[0][i] = true
	}
	s.ask(claimOf(1))
	for _, n := range w.nodes[:voters] {
		n.crash()
		n.start()
	}
	w.cut, w.sent = [places][places]bool{}, nil
	for !s.view.leading { // and not a frame more, so the first claim is not applied
		if len(w.sent) == 0 {
			s.work(s.node.tick())
			continue
		}
		f := w.sent[0]
		w.sent = w.sent[1:]
		w.nodes[f.to].work(w.nodes[f.to].node.receive(nodeNames[f.from], f.frame))
	}
	claim := s.ask(claimOf(2))
	w.settle()
	if r := mustAnswer(t, claim); r.answer.Token != persistence.Token("2:"+claimOf(2).Unique) {
		t.Fatalf("the second claim is answered %+v", r)
	}
}

// Two followers exchange no raft messages, and still receive each other's start.
func TestAllPeersReceiveAStart(t *testing.T) {
	w := newWorld(t, 1)
	w.lead(0)
	w.settle()
	s := w.nodes[2]
	s.crash()
	s.start()
	for range askTicks {
		s.work(s.node.tick())
		w.settle()
	}
	if seen := w.nodes[1].log.RecordedStart(s.node.id); seen != s.log.Own() {
		t.Errorf("a node has seen the start %+v of its peer, which is %+v", seen, s.log.Own())
	}
}

// Peers that have seen a later start refuse an older copy of a folder, and its node ends, also if
// the copy counts a voter that was removed since. The folder is not opened again.
func TestAnOlderCopyOfAFolderEndsItsNode(t *testing.T) {
	for _, counted := range []int{voters, voters + 1} {
		t.Run(fmt.Sprint(counted, " voters"), func(t *testing.T) { endsAnOlderCopy(t, counted) })
	}
}

func endsAnOlderCopy(t *testing.T, counted int) {
	w := newWorld(t, 1)
	leader := w.lead(0)
	if counted > voters {
		must(t, leader.change(machine.Add, "d", ""))
		w.nodes[3].start()
		w.pass(electionTicks)
		must(t, leader.change(machine.Promote, "d", ""))
		w.pass(1)
	}
	tok := w.own(leader, 1).Token
	s := w.nodes[2]
	older := s.disk.mem.CrashClone(vfs.CrashCloneCfg{})
	if counted > voters {
		must(t, leader.change(machine.Remove, "d", ""))
	}
	s.crash()
	s.start()
	w.pass(askTicks + 1) // the others have to have seen the newer start
	leader.ask(appendOf(tok, 0, "one"))
	w.settle()
	w.endsBecauseItIsOlder(s, older)
}

// A copy of the time when its node was the only voter leads at once: then one accuser is enough,
// because there may be no two.
func TestAnOlderCopyOfTheOnlyVoterEndsItsNode(t *testing.T) {
	w := newWorld(t, 1)
	s := w.lead(0)
	for _, name := range []string{"c", "b"} {
		must(t, s.change(machine.Remove, name, ""))
		w.pass(1)
	}
	older := s.disk.mem.CrashClone(vfs.CrashCloneCfg{})
	must(t, s.change(machine.Add, "d", ""))
	w.nodes[3].start()
	w.pass(electionTicks)
	must(t, s.change(machine.Promote, "d", ""))
	s.crash()
	s.start()
	w.pass(askTicks + 1)
	w.endsBecauseItIsOlder(s, older)
}

// endsBecauseItIsOlder starts a node repeatedly with a copy of its folder. The node must end, and
// the folder must not be opened again.
func (w *world) endsBecauseItIsOlder(s *simulated, older *vfs.MemFS) {
	t := w.T
	t.Helper()
	s.node = nil
	s.disk = &disk{mem: older, left: -1}
	for range 3 { // however often
		s.down()
		s.start()
	}
	for range 5 * electionTicks {
		for _, x := range w.nodes {
			if x.node != nil && x != s {
				x.work(x.node.tick())
			}
		}
		must(t, s.node.tick())
		if err := s.node.work(); err != nil {
			if !errors.Is(err, errOlderCopy) {
				t.Fatal(err)
			}
			_, _, err := raftlog.Open(folder, raftlog.Options{FS: s.disk.files(), AtNeed: true})
			if !errors.Is(err, persistence.ErrCorrupt) {
				t.Errorf("the folder of the copy is opened again: %v", err)
			}
			return
		}
		for len(w.sent) > 0 {
			f := w.sent[0]
			w.sent = w.sent[1:]
			to := w.nodes[f.to]
			if to.node == nil {
				continue
			}
			must(t, to.node.receive(nodeNames[f.from], f.frame))
			if to != s {
				to.work(nil)
			}
		}
	}
	t.Fatal("the node resumes with an older copy")
}

// Malformed frames are dropped, and the node continues.
func TestMalformedFramesAreDropped(t *testing.T) {
	w := newWorld(t, 1)
	s := w.lead(0)
	w.own(s, 1)
	term := s.view.term + 5
	message := func(change func(*pb.Message)) []byte {
		m := &pb.Message{Type: pb.MsgApp.Enum(), From: new(uint64(2)), To: new(uint64(1)),
			Term: new(term), LogTerm: new(uint64(1)), Index: new(uint64(1)),
			Entries: []*pb.Entry{{Index: new(uint64(2)), Term: new(uint64(1))}}}
		change(m)
		b, err := proto.Marshal(m)
		must(t, err)
		f := frame{kind: frameMessage, id: 2, start: w.nodes[1].log.Own()}
		return append(f.begin(), b...)
	}
	head := frame{kind: frameMessage, id: 2, start: w.nodes[1].log.Own()}
	for what, b := range map[string][]byte{
		"nothing":         {},
		"another version": {9, frameMessage},
		"half a start":    head.begin()[:12],
		"no message":      append(head.begin(), 1),
		"of another node": message(func(m *pb.Message) { m.From = new(uint64(3)) }),
		"to another node": message(func(m *pb.Message) { m.To = new(uint64(3)) }),
		"without a term":  message(func(m *pb.Message) { m.Term = nil }),
		"a proposal":      message(func(m *pb.Message) { m.Type = pb.MsgProp.Enum() }),
		"a snapshot": message(func(m *pb.Message) {
			m.Type, m.Snapshot = pb.MsgSnap.Enum(), &pb.Snapshot{}
		}),
		"a gap in it":     message(func(m *pb.Message) { m.Entries[0].Index = new(uint64(9)) }),
		"a term too high": message(func(m *pb.Message) { m.Entries[0].Term = new(term + 1) }),
		"a change of members": message(func(m *pb.Message) {
			m.Entries[0].Type = pb.EntryConfChange.Enum()
		}),
		"a vote with entries": message(func(m *pb.Message) { m.Type = pb.MsgVote.Enum() }),
	} {
		clear(s.node.cuts)
		must(t, s.node.receive("b", b))
		must(t, s.node.work())
		if !s.view.leading || s.view.term >= term {
			t.Fatalf("%s: the node is %+v", what, s.view)
		}
	}
	for _, from := range []string{"", "a", "c", "d"} {
		must(t, s.node.receive(from, message(func(*pb.Message) {})))
		must(t, s.node.work())
		if !s.view.leading {
			t.Fatalf("node %q is believed to be another one", from)
		}
	}
	clear(s.node.cuts)
	must(t, s.node.receive("b", message(func(*pb.Message) {})))
	must(t, s.node.work())
	if s.view.leading { // the same without a fault
		t.Fatalf("the node is %+v", s.view)
	}
}

// The error about a peer with another program names both versions.
func TestAFrameOfAnotherVersionNamesBoth(t *testing.T) {
	_, err := parseFrame([]byte{frameVersion + 1, frameMessage})
	want := fmt.Sprintf("of version %d and this program reads version %d; run the newer program",
		frameVersion+1, frameVersion)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
}

// FuzzFrame: a parsed frame is encoded to the same bytes.
func FuzzFrame(f *testing.F) {
	start := raftlog.Start{Boot: 3, Nonce: "nonce"}
	f.Add((&frame{kind: frameMessage, id: 7, start: start}).begin())
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := parseFrame(b)
		if err != nil {
			return
		}
		if again := append(got.begin(), got.payload...); string(again) != string(b) {
			t.Fatalf("%x is read as %+v", b, got)
		}
		m := &pb.Message{}
		if proto.Unmarshal(got.payload, m) == nil {
			sound(m)
		}
	})
}

// The log is truncated once each node has it, the journal is trimmed, and the local store does not
// need it, and not before.
func TestALogIsTrimmedWhenNothingNeedsIt(t *testing.T) {
	w := newWorld(t, 1)
	s := w.lead(0)
	tok := w.own(s, 1).Token
	for i := range uint64(40) {
		c := s.ask(appendOf(tok, i, fmt.Sprint("batch ", i)))
		w.settle()
		must(t, mustAnswer(t, c).err)
	}
	first := func(place int) uint64 {
		for range 10 {
			for _, s := range w.nodes {
				if s.node != nil {
					s.work(s.node.tick())
				}
			}
			w.settle()
		}
		n, _ := w.nodes[place].log.FirstIndex()
		return n
	}
	trim := func() {
		t.Helper()
		c := s.ask(&machine.Entry{Kind: machine.Trim, Token: tok, Next: 30})
		w.settle()
		must(t, mustAnswer(t, c).err)
	}
	for _, n := range w.nodes[:voters] {
		n.node.trim.allowedSeq = 35
	}
	if n := first(0); n != 1 {
		t.Fatalf("it begins at %d without a trim", n)
	}
	w.nodes[2].node.trim.allowedSeq = 0
	trim()
	if a, b, c := first(0), first(1), first(2); a < 30 || a != b || c != 1 {
		t.Fatalf("they begin at %d, %d and %d", a, b, c)
	}
	// one node is down: the entries that it lacks are kept
	w.nodes[2].crash()
	for i := uint64(40); i < 90; i++ {
		s.ask(appendOf(tok, i, fmt.Sprint("batch ", i)))
		w.settle()
	}
	before := first(0)
	for i, n := range w.nodes[:2] {
		n.node.trim.allowedSeq = 80 + uint64(i)
	}
	c := s.ask(&machine.Entry{Kind: machine.Trim, Token: tok, Next: 85})
	w.settle()
	must(t, mustAnswer(t, c).err)
	if n := first(0); n < before || n > 50 {
		t.Fatalf("it begins at %d, and before the second trim at %d", n, before)
	}
	w.nodes[2].start()
	w.recover()
	w.check()
	if last, _ := w.nodes[2].log.LastIndex(); last < 90 {
		t.Fatalf("the node that was down has %d entries", last)
	}
}

// raftLogger's panics end the process; all else is a line.
func TestAPanicOfRaftIsOne(t *testing.T) {
	var l raft.Logger = raftLogger{quiet}
	l.Infof("%d", 1)
	l.Warning("a warning")
	l.Error("an error")
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	l.Fatalf("%d", 1)
}

// confirm asks a node whether a token is the owner's.
func (s *simulated) confirm(tok persistence.Token) chan confirmResult {
	c := make(chan confirmResult, 1)
	s.node.confirm(confirmRequest{s.w.Context(), tok, c})
	s.work(nil)
	return c
}

// A cut-off node that still believes it leads confirms no owner. Requests during a round wait for
// the next one.
func TestACutOffNodeConfirmsNoOwner(t *testing.T) {
	w := newWorld(t, 1)
	old := w.lead(0)
	tok := w.own(old, 1).Token
	first, second := old.confirm(tok), old.confirm(tok)
	if len(first) > 0 || len(old.node.confirms.next) != 1 {
		t.Fatal("a request is answered without a round, or two share one")
	}
	w.settle()
	for _, c := range []chan confirmResult{first, second} {
		must(t, (<-c).err)
	}
	for i := range w.nodes {
		w.cut[0][i], w.cut[i][0] = true, true
	}
	next := w.lead(1, 2)
	w.own(next, 2)
	stale := old.confirm(tok)
	if !old.view.leading || len(stale) > 0 {
		t.Fatalf("a node that is cut off has answered: %+v", old.view)
	}
	w.cut = [places][places]bool{}
	w.settle()
	for range 3 * electionTicks {
		for _, s := range w.nodes[:voters] {
			s.tick()
		}
		w.settle()
	}
	if r := <-stale; r.err == nil {
		t.Fatal("an owner that was followed is confirmed")
	}
}
