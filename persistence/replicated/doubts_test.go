package replicated

import (
	"bytes"
	"encoding/binary"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"exchange/persistence"
	"exchange/persistence/internal/machine"
	"exchange/persistence/internal/raftlog"
)

// forged returns a member's frame of a kind, with a payload.
func (s *simulated) forged(kind byte, payload []byte) []byte {
	f := s.node.frame(kind)
	return append(f.begin(), payload...)
}

// lie returns a raft message from a member to another one.
func (s *simulated) lie(to *simulated, change func(*pb.Message)) []byte {
	m := &pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(s.node.id), To: new(to.node.id),
		Term: new(to.node.raw.BasicStatus().GetTerm())}
	change(m)
	b, err := proto.Marshal(m)
	must(s.w.T, err)
	return s.forged(frameMessage, b)
}

// accusations are one member's frames to end another one, or to mislead it irrevocably.
func accusations(s, to *simulated) map[string][]byte {
	last, _ := to.log.LastIndex()
	term := to.node.raw.BasicStatus().GetTerm()
	seen := appendStart(appendStart(nil, to.log.Own()), raftlog.Start{Boot: math.MaxUint64,
		Nonce: "another"})
	set := func(kind pb.MessageType, term, index uint64) []byte {
		return s.lie(to, func(m *pb.Message) {
			m.Type, m.Term, m.Index, m.Commit = kind.Enum(), new(term), new(index), new(index)
		})
	}
	// a plausible entry after the log's end, committed
	entry := func(kind pb.EntryType, list ...machine.Entry) []byte {
		return s.lie(to, func(m *pb.Message) {
			logTerm, _ := to.log.Term(last)
			m.Type, m.Term, m.Commit = pb.MsgApp.Enum(), new(term+1), new(uint64(math.MaxUint64))
			m.Index, m.LogTerm = new(last), new(logTerm)
			for i := range list {
				data := list[i].Encode()
				if kind == pb.EntryConfChangeV2 {
					data, _ = proto.Marshal(&pb.ConfChangeV2{Context: data})
				}
				m.Entries = append(m.Entries, &pb.Entry{Type: kind.Enum(), Data: data,
					Index: new(last + 1 + uint64(i)), Term: new(term + 1)})
			}
		})
	}
	alone := machine.Entry{Kind: machine.Survive, Name: s.name()}
	return map[string][]byte{
		"it survives alone":  entry(pb.EntryConfChangeV2, alone),
		"it survives, plain": entry(pb.EntryNormal, alone),
		"a format of no program": entry(pb.EntryNormal,
			machine.Entry{Kind: machine.Format, Next: 200}),
		"in that format": entry(pb.EntryNormal,
			machine.Entry{Kind: machine.Format, Format: 200, Next: 200}),
		"before that format": entry(pb.EntryNormal,
			machine.Entry{Kind: machine.Check, Format: 200},
			machine.Entry{Kind: machine.Format, Next: 200}),
		"removed": s.forged(frameRemoved,
			binary.BigEndian.AppendUint64(nil, to.node.id)),
		"another start":          s.forged(frameSeen, seen),
		"committed beyond it":    set(pb.MsgHeartbeat, term, last+1),
		"committed in the next":  set(pb.MsgHeartbeat, term+1, math.MaxUint64),
		"the last term":          set(pb.MsgHeartbeat, math.MaxUint64, 0),
		"an answer of that":      set(pb.MsgAppResp, math.MaxUint64, 0),
		"an acknowledgement":     set(pb.MsgAppResp, term, math.MaxUint64),
		"a vote in a term":       set(pb.MsgVote, term+1<<33, math.MaxUint64),
		"a poll in the last one": set(pb.MsgPreVote, math.MaxUint64, math.MaxUint64),
		"an entry that is none": s.lie(to, func(m *pb.Message) {
			m.Type, m.Term = pb.MsgApp.Enum(), new(term+1)
			m.Entries = []*pb.Entry{{Index: new(uint64(1)), Term: new(term + 1),
				Data: []byte{machine.First, 99}}}
		}),
		"an entry of no format": s.lie(to, func(m *pb.Message) {
			m.Type, m.Term = pb.MsgApp.Enum(), new(term+1)
			m.Entries = []*pb.Entry{{Index: new(uint64(1)), Term: new(term + 1),
				Data: []byte("no entry")}}
		}),
		"half a message": s.forged(frameMessage, []byte{1}),
	}
}

// One member's accusations end no other one, and do not stop the others: impossible messages are
// dropped and counted, and their sender is cut off. Plausible ones silence the node until its next
// start. The folder can be opened again.
func TestAPeerAloneEndsNoNode(t *testing.T) {
	for _, place := range []int{0, 2} { // the leader, and a follower
		w := newWorld(t, 1)
		w.lead(0)
		for what := range accusations(w.nodes[1], w.nodes[place]) {
			w := newWorld(t, 1)
			s := w.lead(0)
			tok := w.own(s, 1).Token
			to, b := w.nodes[place], w.nodes[1]
			says := accusations(b, to)[what]
			for range 3 {
				must(t, to.node.receive("b", says))
				must(t, to.node.receive("b", accusations(b, to)["removed"]))
				must(t, to.node.work())
				w.pass(1)
			}
			w.pass(3 * electionTicks)
			if to.node == nil || to.node.formatErr != nil ||
				to.memberList() != "a1#1 b1#2 c1#3" {
				t.Fatalf("%s: node %s has ended", what, to.name())
			}
			// a follower may have led before, and receives a late answer
			late := what == "an acknowledgement" && place != 0
			if what != "removed" && !late && to.node.impossible == 0 && !to.node.muted() {
				t.Errorf("%s: nothing is counted at node %s", what, to.name())
			}
			for _, x := range w.nodes[:voters] {
				if x.view.leading {
					s = x
				}
			}
			if s != w.nodes[0] {
				tok = w.own(s, 2).Token
			}
			c := s.ask(appendOf(tok, 0, "on"))
			w.settle()
			if err := mustAnswer(t, c).err; err != nil {
				t.Errorf("%s to %s: the others stop: %v", what, to.name(), err)
			}
			to.crash()
			to.start()
			if to.node.muted() {
				t.Errorf("%s: node %s is silent after a start", what, to.name())
			}
		}
	}
}

// A folder that lacks acknowledged entries gets no vote while the leader accuses it, even if the
// third node lags and has no evidence: no other entries replace the acknowledged ones.
func TestAPeerThatLagsEndsNoDoubt(t *testing.T) {
	for what, older := range map[string]bool{"a shorter log": false, "an older start": true} {
		w := newWorld(t, 1)
		s := w.lead(0)
		tok := w.own(s, 1).Token
		w.pass(3)
		b, c := w.nodes[1], w.nodes[2]
		before := c.disk.crash(t, w.rng)
		if older {
			b.crash()
			c.crash()
			c.start()
			w.pass(3)
		} else {
			w.cut[0][1], w.cut[1][0] = true, true
		}
		x := s.ask(appendOf(tok, 0, "X"))
		w.settle()
		must(t, mustAnswer(t, x).err)
		w.pass(2)
		w.cut[0][1], w.cut[1][0] = true, true
		c.crash()
		c.disk, c.unfit = before, true
		if older {
			b.start()
		}
		c.start()
		for range 12 {
			w.pass(electionTicks / 2)
			if b.view.leading || c.view.leading {
				t.Fatalf("%s: a node leads that lacks acknowledged entries", what)
			}
		}
		if c.node != nil && !c.node.muted() {
			t.Errorf("%s: it votes", what)
		}
	}
}

// A peer that has an entry which a node lacks does not prove that the node has acknowledged it,
// unless the peer follows the accusing leader.
func TestAPeerThatIsAheadConfirmsNoDoubt(t *testing.T) {
	w := newWorld(t, 1)
	s, b, c := w.lead(0), w.nodes[1], w.nodes[2]
	tok := w.own(s, 1).Token
	last, err := c.log.LastIndex()
	must(t, err)
	says := b.lie(c, func(m *pb.Message) {
		m.Term, m.Commit = new(m.GetTerm()+1), new(last+1)
	})
	w.cut[0][2] = true
	answer := s.ask(appendOf(tok, 0, "at a and b"))
	w.settle()
	must(t, mustAnswer(t, answer).err)
	must(t, c.node.receive("b", says))
	must(t, c.node.work())
	w.pass(1)
	if c.node == nil || !c.node.muted() {
		t.Fatal("there is no doubt before another node is asked")
	}
	w.cut = [places][places]bool{}
	w.pass(2)
	if c.node == nil || !c.node.muted() {
		t.Error("node c ends, or votes because of a peer that lags")
	}
}

// Only the leader can report that it has trimmed entries; repeated reports are logged once.
func TestOnlyTheLeaderReportsATrimmedLog(t *testing.T) {
	w := newWorld(t, 1)
	w.lead(0)
	c := w.nodes[2]
	var lines bytes.Buffer
	c.node.logger = slog.New(slog.NewTextHandler(&lines, nil))
	for i, want := range map[int]int{0: 1, 1: 0} { // of the leader, and of a follower
		lines.Reset()
		c.node.logBehindAt = 0
		says := w.nodes[i].forged(frameBehind, binary.BigEndian.AppendUint64(nil, math.MaxUint64))
		for range 3 {
			must(t, c.node.receive(nodeNames[i], says))
		}
		if n := strings.Count(lines.String(), "exchange cluster replace"); n != want {
			t.Errorf("node %s says it three times, and the log %d times", nodeNames[i], n)
		}
	}
}

// Two voters are believed.
func TestTwoVotersEndANode(t *testing.T) {
	for what, want := range map[string]error{"removed": persistence.ErrRemoved,
		"another start": errOlderCopy} {
		w := newWorld(t, 1)
		s := w.lead(0)
		for _, from := range []string{"", "a", "d"} { // in the name of others
			must(t, s.node.receive(from, accusations(w.nodes[1], s)[what]))
		}
		must(t, s.node.work())
		for i, x := range w.nodes[1:voters] {
			if err := s.node.work(); err != nil {
				t.Fatalf("%s after %d accusations: %v", what, i, err)
			}
			if err := s.node.receive(x.name(), accusations(x, s)[what]); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.node.work(); !errors.Is(err, want) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A peer that claims an unassigned ID does not block the node to which the ID is assigned, and
// invented IDs take no memory.
func TestAnUnassignedIDBelongsToNoPeer(t *testing.T) {
	w := newWorld(t, 1)
	s := w.lead(0)
	b := w.nodes[1]
	for id := uint64(4); id < 500; id++ {
		f := b.node.frame(frameClock)
		f.id, f.start = id, raftlog.Start{Boot: math.MaxUint64, Nonce: "none"}
		must(t, s.node.receive("b", f.begin()))
	}
	must(t, s.node.work())
	if len(s.node.lastFrame) > voters+1 || len(s.node.futureIDs) != 1 {
		t.Errorf("%d peers are stored", len(s.node.lastFrame))
	}
	f := w.nodes[2].node.frame(frameClock)
	f.id, f.start = 4, raftlog.Start{Boot: math.MaxUint64, Nonce: "none"}
	must(t, s.node.receive("c", f.begin()))
	must(t, s.change(machine.Add, "d", ""))
	w.nodes[3].start()
	w.pass(3 * electionTicks)
	if got := s.memberList(); got != "a1#1 b1#2 c1#3 d2#4" {
		t.Errorf("the members are %s", got)
	}
	if got := s.log.RecordedStart(4); got != w.nodes[3].log.Own() {
		t.Errorf("of d the start %+v is stored", got)
	}
}

// forge lets the hostile member send a frame to another one, with fields at their limits.
func (w *world) forge() {
	s, to := w.nodes[w.bad], w.nodes[w.forges.IntN(places)]
	if s.node == nil || to.node == nil || to == s || to.stuck > 0 {
		return
	}
	edges := []uint64{0, 1, to.node.id, math.MaxUint32, math.MaxInt64, math.MaxUint64}
	edge := func() uint64 { return edges[w.forges.IntN(len(edges))] }
	var says []byte
	if all := accusations(s, to); w.forges.IntN(2) == 0 {
		names := []string{"removed", "another start", "committed beyond it",
			"committed in the next", "the last term", "an acknowledgement", "a vote in a term",
			"an entry that is none", "an entry of no format", "half a message",
			"it survives alone", "it survives, plain", "a format of no program"}
		says = all[names[w.forges.IntN(len(names))]]
	} else {
		f := s.node.frame(byte(w.forges.IntN(12)))
		if w.forges.IntN(4) == 0 {
			f.id = edge()
		}
		// an invented first start would only lock out its sender
		if w.forges.IntN(4) == 0 && to.log.RecordedStart(s.node.id).Boot != 0 {
			f.start.Boot = edge()
		}
		says = f.begin()
		for range w.forges.IntN(5) {
			says = binary.BigEndian.AppendUint64(says, edge())
		}
	}
	w.counts["hostile frames"]++
	for _, x := range w.nodes { // a leader's statement about another log counts
		if x.node != nil && x.node.raw.BasicStatus().Lead == s.node.id &&
			bytes.Equal(says, accusations(s, to)["committed beyond it"]) {
			return
		}
	}
	before := to.node.impossible
	err := to.node.receive(s.name(), says)
	if to.node.impossible > before {
		w.counts["cut off"]++
	}
	to.work(err)
}

// harms makes one member of a world hostile. Folders are then intact: accusations are false.
func (w *world) harms(seed uint64) {
	w.forges = rand.New(rand.NewPCG(seed, 79))
	w.bad = w.forges.IntN(voters)
}
