package replicated

import (
	"bytes"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
	"exchange/persistence/internal/machine"
	"exchange/persistence/memory"
)

// A market part that was agreed on is there after a restart of all nodes, and at a node that joins.
// Each node knows whose file has another one, from the first tick on.
func TestAMarketPartIsKnownToAllMembers(t *testing.T) {
	w := newWorld(t, 1)
	text, other := []byte("pairs: all"), []byte("pairs: none")
	s := w.lead(0)
	e := &machine.Entry{Kind: machine.Market, Token: w.own(s, 1).Token, Batch: text,
		Digest: codec.Digest(text)}
	answer := s.ask(e)
	w.settle()
	must(t, told(t, answer).err)
	for i, n := range w.nodes[:voters] {
		n.crash()
		if n.file = text; i == 1 {
			n.file = other
		}
		n.start()
	}
	s = w.lead(0)
	must(t, s.change(machine.Add, "d", ""))
	w.nodes[3].file = text
	w.nodes[3].start()
	w.pass(2 * electionTicks)
	for _, n := range w.nodes[:voters+1] {
		if !bytes.Equal(n.view.market, text) || n.view.reigning != nil {
			t.Errorf("%s has the market part %q", n.name(), n.view.market)
		}
		if len(n.view.peers) != voters+1 {
			t.Fatalf("%s knows of %d members", n.name(), len(n.view.peers))
		}
		for _, p := range n.view.peers {
			if p.Differs != (p.Name == "b") || p.Market == 0 {
				t.Errorf("%s knows of %s: %+v", n.name(), p.Name, p)
			}
		}
	}
}

// Only the owner at the node that leads tells the nodes a market part.
func TestOnlyTheOwnerSetsAMarketPart(t *testing.T) {
	var heard []byte
	s := openNode(t, options{dir: "node", files: vfs.NewMem(),
		agreed: func(market []byte) { heard = market },
		local:  memory.Open(memory.NewDisk(), persistence.Retention{})}, 0, 1)
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
	next, reigning := s.Market()
	if string(next) != "second" || string(reigning) != "first" || string(heard) != "second" {
		t.Errorf("%s, and %s reigns, heard of %s", next, reigning, heard)
	}
	_, _, err = s.Acquire(t.Context(), persistence.Claim{Owner: "another"})
	must(t, err)
	must(t, s.Close())
}
