package replicated

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"exchange/persistence"
	"exchange/persistence/internal/machine"
	"exchange/persistence/internal/raftlog"
)

// Nodes crash, frames are lost, and a disk is replaced while three nodes form their cluster. It
// forms once, and goes on.
func TestAClusterFormsUnderCrashes(t *testing.T) {
	all := map[string]int{}
	for seed := *fromSeed; seed < *fromSeed+uint64(*seeds); seed++ {
		w := emptyWorld(t, seed)
		for range 800 {
			if w.rng.IntN(10) == 0 {
				w.fault()
			} else {
				w.step(true)
			}
		}
		w.recover()
		w.check()
		for k, n := range w.counts {
			all[k] += n
		}
		for _, s := range w.nodes {
			if s.again {
				all["formed again"]++
			}
		}
	}
	t.Log(all)
	for _, k := range []string{"formed", "formed again", "crashes"} {
		if all[k] < *seeds/50+1 {
			t.Errorf("%s: %d times in %d simulations", k, all[k], *seeds)
		}
	}
}

// say returns the frame with a word.
func say(t *testing.T, w word) []byte {
	t.Helper()
	text, err := json.Marshal(w)
	must(t, err)
	return append((&frame{kind: frameForming}).begin(), text...)
}

// A word counts if it answers this start, and if all words are of the same cluster.
func TestAnOldWordLetsNoNodeGoOn(t *testing.T) {
	names := []string{"a", "b", "c"}
	for what, c := range map[string]struct {
		at   stage
		b, c word
		may  bool
		why  string
		err  error
	}{
		"none has a log": {at: empty, b: word{Stage: empty}, c: word{Stage: empty}, may: true},
		"one has a log":  {at: empty, b: word{Stage: formed}, c: word{Stage: empty}, may: true},
		"an old word": {at: empty, b: word{Stage: empty, Echo: "old"},
			why: "b (not heard of), c"},
		"one takes part": {at: empty, b: word{Stage: begun}, why: "b (the cluster has begun"},
		"one leads": {at: empty, b: word{Stage: begun, Leads: true},
			why: "b (the cluster has begun, and this one leads"},
		"one leads, and another one follows": {at: empty, b: word{Stage: begun},
			c: word{Stage: begun, Leads: true}, err: errReplaced},
		"both follow": {at: empty, b: word{Stage: begun}, c: word{Stage: begun},
			why: "b (the cluster has begun"},
		"the other one awaits it": {at: empty, b: word{Stage: begun, Leads: true},
			c: word{Stage: begun, Awaited: true}, why: "b (the cluster has begun"},
		"one has a newer format": {at: empty, b: word{Stage: begun, Awaited: true, Format: 99},
			c: word{Stage: begun, Awaited: true}, why: "b (the cluster has begun"},
		"both have it": {at: empty, b: word{Stage: begun, Awaited: true, Format: 99},
			c: word{Stage: begun, Awaited: true, Format: 98}, err: persistence.ErrFormat},
		"this node is awaited": {at: empty, b: word{Stage: begun, Leads: true, Awaited: true},
			why: "b (the cluster has begun"},
		"other names": {at: empty, b: word{Names: names[:2], Stage: formed},
			why: "b (it names"},
		"another cluster": {at: formed, b: word{Cluster: "x", Stage: begun},
			why: "b (it names"},
		"one lacks its log": {at: formed, b: word{Stage: formed}, c: word{Stage: empty},
			why: "c (it has"},
		"all have logs": {at: formed, b: word{Stage: formed}, c: word{Stage: formed},
			may: true},
		"a late one": {at: formed, b: word{Stage: begun}, may: true},
	} {
		f := newFormer(cluster, names, "a", "own", c.at, func(string, []byte) {}, quiet)
		for i, w := range []word{c.b, c.c} {
			if w.Stage == 0 {
				continue
			}
			if w.Cluster == "" {
				w.Cluster = cluster
			}
			if w.Names == nil {
				w.Names = names
			}
			if w.Echo == "" {
				w.Echo = "own"
			}
			f.receive(names[i+1], say(t, w))
		}
		may, why, err := f.next()
		if may != c.may || !errors.Is(err, c.err) || !strings.Contains(why, c.why) {
			t.Errorf("%s: %v %q %v", what, may, why, err)
		}
	}
}

// What is no word, or comes from no peer, is dropped, and an offer for another start, too. A node
// that takes part answers a word of one that does not, and only that.
func TestANodeThatTakesPartAnswersWords(t *testing.T) {
	w := newWorld(t, 1)
	s := w.lead(0)
	d := w.nodes[3]
	d.start()
	for _, b := range [][]byte{say(t, word{})[:12], say(t, word{Cluster: "x", Stage: empty}),
		say(t, word{Cluster: cluster, Nonce: strings.Repeat("x", maxNonce+1)}),
		say(t, word{Cluster: cluster, Names: []string{strings.Repeat("x", maxWord)}}),
		say(t, word{Cluster: cluster, Stage: begun, Nonce: "n"})} {
		must(t, s.node.receive("d", b))
		d.former.receive("x", b)
	}
	if len(w.sent) > 0 || len(d.former.nonces) > 0 {
		t.Fatalf("%d answers, %v", len(w.sent), d.former.nonces)
	}
	d.former.tick()
	for len(w.sent) > 0 {
		w.deliver(false)
	}
	if d.former != nil || w.counts["refused without a log"] != 1 {
		t.Fatal("a node that no one awaits is not refused")
	}
	state := machine.Formed(nodeNames[:voters]).Encode()
	o := offer{id: 4, nonce: "n", base: raftlog.Base{Index: 7, Term: 2, Machine: state}}
	b := o.append(nil)
	got, err := parseOffer(b, machine.Newest)
	if err != nil || got.id != 4 || got.nonce != "n" || got.base.Index != 7 ||
		got.base.Term != 2 || string(got.base.Machine) != string(state) {
		t.Fatalf("%+v %v", got, err)
	}
	for _, b := range [][]byte{nil, b[:25], b[:len(b)-1]} {
		if _, err := parseOffer(b, machine.Newest); err == nil {
			t.Errorf("%d bytes are an offer", len(b))
		}
	}
	f := newFormer(cluster, nodeNames, "d", "other", empty, nil, quiet)
	f.receive("a", append((&frame{kind: frameOffer, id: 1}).begin(), b...))
	if f.offer != nil {
		t.Error("an offer for another start is taken")
	}
	f.nonce = "n"
	f.receive("a", append((&frame{kind: frameOffer, id: 1}).begin(), b...))
	if f.offer == nil {
		t.Error("the offer is not taken")
	}
	for what, d := range map[string]raftlog.Identity{"another node": {Cluster: cluster, Name: "b"},
		"another cluster": {Cluster: "x", Name: "d"}} {
		if err := f.check(d); err == nil ||
			!strings.Contains(err.Error(), "it is that of node") {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, f.check(raftlog.Identity{Cluster: cluster, Node: 1, Name: "d"}))
}
