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
// forms once, and works.
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

type msg = formingMessage

// say returns a formingMessage's frame.
func say(t *testing.T, w formingMessage) []byte {
	t.Helper()
	text, err := json.Marshal(w)
	must(t, err)
	return append((&frame{kind: frameForming}).begin(), text...)
}

// A message counts if it echoes this start, and if all messages are of one cluster.
func TestAStaleMessageAdvancesNoNode(t *testing.T) {
	names := []string{"a", "b", "c"}
	for what, c := range map[string]struct {
		at   stage
		b, c msg
		may  bool
		why  string
		err  error
	}{
		"none has a log": {at: stageEmpty, b: msg{Stage: stageEmpty}, c: msg{Stage: stageEmpty},
			may: true},
		"one has a log": {at: stageEmpty, b: msg{Stage: stageFormed}, c: msg{Stage: stageEmpty},
			may: true},
		"a stale message": {at: stageEmpty, b: msg{Stage: stageEmpty, Echo: "old"},
			why: "b (no answer), c"},
		"one takes part": {at: stageEmpty, b: msg{Stage: stageActive},
			why: "b (the cluster has begun"},
		"one leads": {at: stageEmpty, b: msg{Stage: stageActive, Leads: true},
			why: "b (the cluster has begun, and this leader"},
		"one leads, and another one follows": {at: stageEmpty, b: msg{Stage: stageActive},
			c: msg{Stage: stageActive, Leads: true}, err: errReplaced},
		"both follow": {at: stageEmpty, b: msg{Stage: stageActive}, c: msg{Stage: stageActive},
			why: "b (the cluster has begun"},
		"the other one awaits it": {at: stageEmpty, b: msg{Stage: stageActive, Leads: true},
			c: msg{Stage: stageActive, Awaited: true}, why: "b (the cluster has begun"},
		"one has a newer format": {at: stageEmpty,
			b: msg{Stage: stageActive, Awaited: true, Format: 99},
			c: msg{Stage: stageActive, Awaited: true}, why: "b (the cluster has begun"},
		"both have it": {at: stageEmpty, b: msg{Stage: stageActive, Awaited: true, Format: 99},
			c: msg{Stage: stageActive, Awaited: true, Format: 98}, err: persistence.ErrFormat},
		"this node is awaited": {at: stageEmpty,
			b:   msg{Stage: stageActive, Leads: true, Awaited: true},
			why: "b (the cluster has begun"},
		"other names": {at: stageEmpty, b: msg{Names: names[:2], Stage: stageFormed},
			why: "b (it names"},
		"another cluster": {at: stageFormed, b: msg{Cluster: "x", Stage: stageActive},
			why: "b (it names"},
		"one lacks its log": {at: stageFormed, b: msg{Stage: stageFormed},
			c: msg{Stage: stageEmpty}, why: "c (it has"},
		"all have logs": {at: stageFormed, b: msg{Stage: stageFormed}, c: msg{Stage: stageFormed},
			may: true},
		"a late one": {at: stageFormed, b: msg{Stage: stageActive}, may: true},
	} {
		f := newFormation(cluster, names, "a", "own", c.at, func(string, []byte) {}, quiet)
		for i, w := range []msg{c.b, c.c} {
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

// Malformed messages, those of strangers, and offers for another start are dropped. A member
// answers only nodes that do not take part yet.
func TestAMemberAnswersNodesWithoutALog(t *testing.T) {
	w := newWorld(t, 1)
	s := w.lead(0)
	d := w.nodes[3]
	d.start()
	for _, b := range [][]byte{say(t, msg{})[:12], say(t, msg{Cluster: "x", Stage: stageEmpty}),
		say(t, msg{Cluster: cluster, Nonce: strings.Repeat("x", maxNonce+1)}),
		say(t, msg{Cluster: cluster, Names: []string{strings.Repeat("x", maxFormingBytes)}}),
		say(t, msg{Cluster: cluster, Stage: stageActive, Nonce: "n"})} {
		must(t, s.node.receive("d", b))
		d.formation.receive("x", b)
	}
	if len(w.sent) > 0 || len(d.formation.nonces) > 0 {
		t.Fatalf("%d answers, %v", len(w.sent), d.formation.nonces)
	}
	d.formation.tick()
	for len(w.sent) > 0 {
		w.deliver(false)
	}
	if d.formation != nil || w.counts["refused without a log"] != 1 {
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
	f := newFormation(cluster, nodeNames, "d", "other", stageEmpty, nil, quiet)
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
