package replicated

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

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
		"one takes part": {at: empty, b: word{Stage: begun}, err: errReplaced},
		"other names": {at: empty, b: word{Names: names[:2], Stage: begun},
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

// What is no word, or comes from no peer, is dropped. A node that takes part answers a word of one
// that does not, and only that.
func TestANodeThatTakesPartAnswersWords(t *testing.T) {
	var sent []word
	f := newFormer(cluster, []string{"a", "b", "c"}, "a", "own", begun, func(_ string, b []byte) {
		got, err := parseFrame(b)
		must(t, err)
		var w word
		must(t, json.Unmarshal(got.payload, &w))
		sent = append(sent, w)
	}, quiet)
	for _, b := range [][]byte{nil, {frameVersion, frameForming}, say(t, word{})[:12],
		say(t, word{Nonce: strings.Repeat("x", maxNonce+1)}),
		say(t, word{Names: []string{strings.Repeat("x", maxWord)}}),
		say(t, word{Stage: begun, Nonce: "n"})} {
		f.receive("b", b)
	}
	for _, from := range []string{"", "a", "d"} {
		f.receive(from, say(t, word{Stage: empty, Nonce: "n"}))
	}
	if len(sent) > 0 {
		t.Fatalf("%+v", sent)
	}
	f.receive("c", say(t, word{Stage: empty, Nonce: "n"}))
	if len(sent) != 1 || sent[0].Echo != "n" || sent[0].Stage != begun {
		t.Fatalf("%+v", sent)
	}
	d := raftlog.Identity{Cluster: cluster, Node: 1, Name: "a"}
	state := machine.Formed(f.names).Encode()
	must(t, f.check(d, state))
	for what, err := range map[string]error{
		"other nodes":     f.check(d, machine.Formed(f.names[:2]).Encode()),
		"another node":    f.check(raftlog.Identity{Cluster: cluster, Name: "b"}, state),
		"another cluster": f.check(raftlog.Identity{Cluster: "x", Name: "a"}, state),
	} {
		if err == nil || !strings.Contains(err.Error(), "the folder is that of node") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
