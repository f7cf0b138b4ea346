package replicated

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	pb "go.etcd.io/raft/v3/raftpb"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
	"exchange/persistence/internal/machine"
	"exchange/persistence/memory"
)

// An agreed market part is there after a restart of all nodes, and at a joining node. Each node
// sees from the first tick whose file differs, and when it no longer does.
func TestMembersReportTheirMarketParts(t *testing.T) {
	w := newWorld(t, 1)
	text, other := []byte("pairs: all"), []byte("pairs: none")
	s := w.lead(0)
	e := &machine.Entry{Kind: machine.Market, Token: w.own(s, 1).Token, Batch: text,
		Digest: codec.Digest(text)}
	answer := s.ask(e)
	w.settle()
	must(t, mustAnswer(t, answer).err)
	for i, n := range w.nodes[:voters] {
		n.crash()
		switch n.file.Set([][]byte{text}); i {
		case 0: // a newer program, whose file is equal in the older format
			n.file.Set([][]byte{[]byte("pairs: all\nlimits: few"), text})
		case 1:
			n.file.Set([][]byte{other})
		}
		n.start()
	}
	s = w.lead(0)
	must(t, s.change(machine.Add, "d", ""))
	w.nodes[3].file.Set([][]byte{text})
	w.nodes[3].start()
	w.pass(2 * electionTicks)
	for _, n := range w.nodes[:voters+1] {
		if !bytes.Equal(n.view.market, text) || n.view.termMarket != nil {
			t.Errorf("%s has the market part %q", n.name(), n.view.market)
		}
		if len(n.view.peers) != voters+1 {
			t.Fatalf("%s sees %d members", n.name(), len(n.view.peers))
		}
		for _, p := range n.view.peers {
			if p.Differs != (p.Name == "b") || p.Market == 0 {
				t.Errorf("%s sees %s: %+v", n.name(), p.Name, p)
			}
		}
	}
	w.nodes[1].file.Set([][]byte{text}) // its file is reloaded
	w.pass(2 * electionTicks)
	for _, n := range w.nodes[:voters+1] {
		for _, p := range n.view.peers {
			if p.Differs {
				t.Errorf("now %s sees %s: %+v", n.name(), p.Name, p)
			}
		}
	}
}

// A market part is an entry of the enabled format, so that an older program can read it.
func TestMarketPartUsesTheAppliedFormat(t *testing.T) {
	ticks := make(chan time.Time)
	s := openNode(t, options{dir: "node", files: vfs.NewMem(), tickC: ticks, maxFormat: newer,
		local: memory.Open(memory.NewDisk(), persistence.Retention{})}, 0, 1)
	_, _, err := s.Acquire(t.Context(), persistence.Claim{Owner: "an owner"})
	must(t, err)
	must(t, s.SetMarket(t.Context(), []byte("older"), true))
	for s.Standing().Format < newer {
		ticks <- time.Now()
	}
	must(t, s.SetMarket(t.Context(), []byte("newer"), true))
	want := map[string]uint8{"older": machine.First, "newer": newer}
	first, err := s.log.FirstIndex()
	must(t, err)
	must(t, s.log.Read(first-1, s.Standing().Applied, func(entry *pb.Entry) error {
		e, err := decode(entry, newer)
		if e != nil && e.Kind == machine.Market {
			if e.Format != want[string(e.Batch)] {
				t.Errorf("%s is of format %d", e.Batch, e.Format)
			}
			delete(want, string(e.Batch))
		}
		return err
	}))
	if len(want) > 0 {
		t.Errorf("the log lacks %v", want)
	}
}

// Only the owner at the leader sets a market part.
func TestOnlyTheOwnerSetsAMarketPart(t *testing.T) {
	var agreed []byte
	s := openNode(t, options{dir: "node", files: vfs.NewMem(),
		onMarket: func(market []byte) { agreed = market },
		local:    memory.Open(memory.NewDisk(), persistence.Retention{})}, 0, 1)
	if err := s.SetMarket(t.Context(), []byte("first"), true); !errors.Is(err, errNotLeading) {
		t.Errorf("without a claim: %v", err)
	}
	_, _, err := s.Acquire(t.Context(), persistence.Claim{Owner: "an owner"})
	must(t, err)
	for what, text := range map[string][]byte{"no text": nil,
		"a text that is too long": make([]byte, machine.MaxMarket+1)} {
		if err := s.SetMarket(t.Context(), text, true); !errors.Is(err, persistence.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, s.SetMarket(t.Context(), []byte("first"), true))
	must(t, s.SetMarket(t.Context(), []byte("second"), false))
	next, current := s.Market()
	if string(next) != "second" || string(current) != "first" || string(agreed) != "second" {
		t.Errorf("next %s, current %s, agreed %s", next, current, agreed)
	}
	_, _, err = s.Acquire(t.Context(), persistence.Claim{Owner: "another"})
	must(t, err)
	must(t, s.Close())
}
