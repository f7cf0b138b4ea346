//go:build prove

package processes

import (
	"os"
	"slices"
	"strings"
	"testing"

	"exchange/persistence"
	"exchange/prove/exchangetest"
)

// with writes another configuration file for a node: with a taker fee, and with limits of fills and
// of public requests.
func with(t *testing.T, s *exchangetest.Server, fee, fills string) (file string) {
	t.Helper()
	file = s.Args[2]
	text := strings.Replace(exchangetest.Settings, "maximum_order_size: 1000000",
		"maximum_order_size: 1000000, taker_fee: "+fee, 1) +
		"limits:\n  max_fills: " + fills + "\n  public_rate: " + fills + "\n"
	succeeds(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// shows expects a serving node to show clients a fee and a limit, each once and no other.
func (c *cluster) shows(s *exchangetest.Server, fee, fills string) {
	c.t.Helper()
	status, body, err := s.Client.Get(nil, "http://"+s.Listen+"/api/v1/exchange-info/")
	if err != nil || status != 200 || !strings.Contains(string(body), `"taker_fee":`+fee) ||
		!strings.Contains(string(body), `"max_fills":`+fills) ||
		!strings.Contains(string(body), `"public":{"per_second":`+fills+`,`) {
		c.t.Errorf("node %s shows %d %s, %v; want the fee %s and %s fills", c.name(s), status, body,
			err, fee, fills)
	}
}

// agreesOnLimits waits until the leader may write the newest format. A new cluster reaches that by
// itself, and until then its nodes do not agree on request limits.
func (c *cluster) agreesOnLimits(led *exchangetest.Server) {
	c.t.Helper()
	exchangetest.Eventually(c.t, "limits on requests may be agreed on", func() bool {
		k, err := c.view(led)
		return err == nil && k.Format == persistence.NewestFormat
	})
}

// The file of the node that formed the cluster counts, whichever node leads. The status names nodes
// with different files. Another market part is applied, counts from the next term on, also after a
// kill of all nodes, and is refused if the file is wrong.
func TestTheNodesShowTheAppliedConfiguration(t *testing.T) {
	c := prepareCluster(t, nil)
	fees := map[string]string{"a": "0.001", "b": "0.002", "c": "0.003"}
	for _, s := range c.nodes {
		with(t, s, fees[c.name(s)], "1000")
		s.Args = slices.DeleteFunc(s.Args, func(a string) bool { return a == "--no-rate-limits" })
		s.Env = append(s.Env, "EXCHANGE_CLUSTER_NODE="+c.name(s),
			"EXCHANGE_CLUSTER_NODES="+strings.Join(c.list, ","))
	}
	c.runs()
	led := c.leader(nil)
	first := fees[c.name(led)]
	c.shows(led, first, "1000")
	for _, s := range c.others(led) {
		c.follows(s, led)
	}
	next := c.others(led)[0]
	c.handsOver(next)
	c.shows(next, first, "1000")
	c.agreesOnLimits(next)
	exchangetest.Eventually(t, "the status names those whose files differ", func() bool {
		own, nodes := c.differs(next)
		return own && nodes == 2 && strings.Contains(next.Log(), "keys=pairs")
	})

	file := with(t, next, "0.004", "x")
	if out, text, code := next.Command("config", "apply", "--config", file); code != 64 {
		t.Errorf("a wrong file is applied: %d %s%s", code, out, text)
	}
	with(t, next, "0.004", "2000")
	out := c.command(led, "config", "apply", "--config", file) // it follows: another one leads now
	if !slices.Equal(strings.Fields(out)[:4],
		[]string{"keys", "pairs", "limits.public_rate", "limits.max_fills"}) {
		t.Error(out)
	}
	c.shows(next, first, "1000")
	c.handsOver(led)
	c.shows(led, "0.004", "2000")
	if out := c.command(led, "actions"); strings.Count(out, "applied another market part, from "+
		"the next term on: pairs, limits.public_rate, limits.max_fills\n") != 1 {
		t.Errorf("the log of actions is\n%s", out)
	}

	for _, s := range c.nodes {
		s.Kill()
	}
	c.runs()
	c.shows(c.leader(nil), "0.004", "2000")
}
