package operator_test

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
	"exchange/prove/harness"
)

// Changes of the cluster by an operator are in the log of actions, once they are done; requests
// that are refused, of unknown outcome, or without a change of their own are not.
func TestChangesOfTheClusterAreInTheLogOfActions(t *testing.T) {
	harness.Bubble(t, func(t *testing.T) {
		h, c := harness.ANode(t)
		ask := harness.AsOperator(t, h.Gateway)
		var want []string
		does := func(route, body string, fails error, note string) {
			t.Helper()
			c.Set(func(*operator.Standing) { c.Fails = fails })
			a := ask("POST", "/operator/v1/cluster/"+route, body,
				"Authorization: Bearer "+harness.OperatorToken, "X-Operator: jane")
			if (a.Status == 200) != (fails == nil) {
				t.Errorf("%s %s: %d %s", route, body, a.Status, a.Body)
			}
			if note != "" {
				want = append(want, note)
			}
		}
		leads := func(more ...operator.NodeStanding) {
			c.Set(func(s *operator.Standing) {
				*s = harness.NewFakeCluster().View
				s.Leader, s.Nodes = "a", append(s.Nodes, more...)
				s.Nodes[2].Silent = 99
			})
		}
		const d = `{"node":"d","address":"h:1"}`
		leads()
		does("add", d, actors.NewRequestError("it may not"), "")
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
		does("apply", `{"market":"cGFpcnM="}`, actors.NewRequestError("orders are open"), "")
		does("transfer", `{"to":"c"}`, nil, "asked for the lead to be handed over from node a to c")
		leads()
		does("transfer", `{}`, nil, "asked for the lead to be handed over from node a to any other")
		h.Gateway.SetFollower(nil, nil)
		leads()
		does("remove", `{"node":"c"}`, nil, "") // this node does not serve yet
		h.Gateway.SetEngine(h.Engine)

		var got []string
		// no request waits for a hand-over's
		harness.Eventually(t, "the notes are written", func() bool {
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
func actionsOf(t *testing.T, ask func(method, path, body string, headers ...string) harness.Answer,
	name string) (words []string) {
	t.Helper()
	a := ask("GET", "/operator/v1/actions", "")
	var list struct{ Actions []struct{ Who, What string } }
	if err := json.Unmarshal([]byte(a.Body), &list); err != nil {
		t.Fatalf("%s: %v", a.Body, err)
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
	*harness.FakeCluster
	release func()
}

func (c blockedCluster) Transfer(ctx context.Context, to string, begins func()) error {
	err := c.FakeCluster.Transfer(ctx, to, begins)
	c.release()
	return err
}

// A store that takes no writes is a reason to hand leadership over, so the hand-over does not wait
// for its note. The note is still written.
func TestAHandOverDoesNotWaitForItsNote(t *testing.T) {
	harness.Bubble(t, func(t *testing.T) {
		var log harness.Captured
		c := &blockedCluster{FakeCluster: harness.NewFakeCluster()}
		h, store := harness.NewStubborn(t, func(*actors.Options) {})
		h.Retune(func(o *edge.Options) {
			o.Cluster, o.Log = c, slog.New(slog.NewTextHandler(&log, nil))
		})
		c.Set(func(s *operator.Standing) { s.Leader = "a" })
		ask := harness.AsOperator(t, h.Gateway)
		c.release = sync.OnceFunc(store.Block())
		defer c.release() // a hand-over that is refused does not
		ask("POST", "/operator/v1/cluster/transfer", `{"to":"c"}`).Must(t, 200)
		const note = "asked for the lead to be handed over from node a to c"
		harness.Eventually(t, "the note is in the log of actions", func() bool {
			return slices.Contains(actionsOf(t, ask, "operator"), note)
		})
		if text := log.String(); strings.Contains(text, note) {
			t.Errorf("the note was waited for in vain: %s", text)
		}
	})
}
