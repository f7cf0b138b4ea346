package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"exchange/actors"
	"exchange/gateway/edge"
	"exchange/gateway/operator"
)

// Changes of the cluster by an operator are in the log of actions, once they are done; requests
// that are refused, of unknown outcome, or without a change of their own are not.
func TestChangesOfTheClusterAreInTheLogOfActions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h, c := aNode(t)
		ask := asOperator(t, h.gateway)
		var want []string
		does := func(route, body string, fails error, note string) {
			t.Helper()
			c.set(func(*operator.Standing) { c.fails = fails })
			a := ask("POST", "/operator/v1/cluster/"+route, body,
				"Authorization: Bearer "+operatorToken, "X-Operator: jane")
			if (a.status == 200) != (fails == nil) {
				t.Errorf("%s %s: %d %s", route, body, a.status, a.body)
			}
			if note != "" {
				want = append(want, note)
			}
		}
		leads := func(more ...operator.NodeStanding) {
			c.set(func(s *operator.Standing) {
				*s = newFakeCluster().view
				s.Leader, s.Nodes = "a", append(s.Nodes, more...)
				s.Nodes[2].Silent = 99
			})
		}
		const d = `{"node":"d","address":"h:1"}`
		leads()
		does("add", d, actors.Refuse("it may not"), "")
		does("add", d, errors.New("no answer"), "")
		does("add", d, nil, "added node d at h:1 to the cluster")
		leads(operator.NodeStanding{Name: "d", Role: operator.Awaited, Address: "h:1"})
		does("add", d, nil, "")
		leads(operator.NodeStanding{Name: "d", Role: operator.Learner, Match: 50})
		does("add", d, nil, "made node d a voter")
		leads()
		does("replace", `{"node":"d","address":"h:1","old":"b"}`, nil,
			"had node d at h:1 begin to replace node b")
		does("replace", `{"node":"c","address":"h:2","old":"c"}`, nil,
			"had node c at h:2 begin to replace node c")
		does("remove", `{"node":"c"}`, nil, "removed node c from the cluster")
		does("apply", `{"market":"cGFpcnM="}`, nil,
			"applied another market part, from the next term on: pairs")
		does("apply", `{"market":""}`, nil, "")
		does("apply", `{"market":"cGFpcnM="}`, actors.Refuse("orders are open"), "")
		does("transfer", `{"to":"c"}`, nil, "asked for the lead to be handed over from node a to c")
		leads()
		does("transfer", `{}`, nil, "asked for the lead to be handed over from node a to any other")
		h.gateway.SetFollower(nil, nil)
		leads()
		does("remove", `{"node":"c"}`, nil, "") // this node does not serve yet
		h.gateway.SetEngine(h.engine)

		var got []string
		eventually(t, "the notes are written", func() bool { // no request waits for a hand-over's
			got = actionsOf(t, ask, "jane")
			return len(got) >= len(want)
		})
		if !slices.Equal(got, want) {
			t.Errorf("the log of actions has\n%s\nwant\n%s", strings.Join(got, "\n"),
				strings.Join(want, "\n"))
		}
	})
}

// actionsOf returns the words of an operator's actions, oldest first.
func actionsOf(t *testing.T, ask func(method, path, body string, headers ...string) answer,
	name string) (words []string) {
	t.Helper()
	a := ask("GET", "/operator/v1/actions", "")
	var list struct{ Actions []struct{ Who, What string } }
	if err := json.Unmarshal([]byte(a.body), &list); err != nil {
		t.Fatalf("%s: %v", a.body, err)
	}
	for _, x := range list.Actions {
		if strings.HasPrefix(x.Who, name+" from ") {
			words = append(words, x.What)
		}
	}
	slices.Reverse(words)
	return words
}

// A blockedCluster hands leadership over, and only then lets the store take a note.
type blockedCluster struct {
	*fakeCluster
	release func()
}

func (c blockedCluster) Transfer(ctx context.Context, to string, begins func()) error {
	err := c.fakeCluster.Transfer(ctx, to, begins)
	c.release()
	return err
}

// A store that takes no writes is a reason to hand leadership over, so the hand-over does not wait
// for its note. The note is still written.
func TestAHandOverDoesNotWaitForItsNote(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log captured
		c := &blockedCluster{fakeCluster: newFakeCluster()}
		h, store := newStubborn(t, func(*actors.Options) {})
		h.retune(func(o *edge.Options) {
			o.Cluster, o.Log = c, slog.New(slog.NewTextHandler(&log, nil))
		})
		c.set(func(s *operator.Standing) { s.Leader = "a" })
		ask := asOperator(t, h.gateway)
		c.release = sync.OnceFunc(store.block())
		defer c.release() // a hand-over that is refused does not
		ask("POST", "/operator/v1/cluster/transfer", `{"to":"c"}`).must(t, 200)
		const note = "asked for the lead to be handed over from node a to c"
		eventually(t, "the note is in the log of actions", func() bool {
			return slices.Contains(actionsOf(t, ask, "operator"), note)
		})
		if text := log.String(); strings.Contains(text, note) {
			t.Errorf("the note was waited for in vain: %s", text)
		}
	})
}
