//go:build prove

package processes

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"exchange/prove/exchangetest"
)

// Changes of the configuration file while the exchange runs.

// An edited server has a file that the test changes.
type edited struct {
	*exchangetest.Server
	t *testing.T
}

func newEdited(t *testing.T) *edited {
	s := exchangetest.New(t, "pebble:"+t.TempDir())
	s.Args = slices.DeleteFunc(s.Args, func(a string) bool { return a == "--no-rate-limits" })
	return &edited{s, t}
}

// writes replaces the file by the tests' settings with replacements (before, after ...) and more
// text after them.
func (e *edited) writes(more string, replacements ...string) {
	e.t.Helper()
	text := strings.NewReplacer(replacements...).Replace(exchangetest.Settings) + more
	succeeds(e.t, os.WriteFile(e.Args[2], []byte(text), 0o600))
}

// reloads lets an operator reload, and returns the changed keys.
func (e *edited) reloads() (keys []string) {
	e.t.Helper()
	out, text, code := e.Command("config", "reload", "--json")
	var a struct {
		Applied []struct{ Key, Before, After, Origin string }
		Faults  []string
	}
	if err := json.Unmarshal([]byte(out), &a); err != nil || code != 0 || a.Applied == nil ||
		len(a.Faults) > 0 {
		e.t.Fatalf("%d %s %s", code, out, text)
	}
	for _, x := range a.Applied {
		if x.Before == x.After || x.Origin == "" {
			e.t.Errorf("%+v", x)
		}
		keys = append(keys, x.Key)
	}
	return keys
}

// refuses expects a refused reload, with these words for the operator and in the log.
func (e *edited) refuses(words ...string) {
	e.t.Helper()
	before := len(e.Log())
	out, text, code := e.Command("config", "reload")
	log := e.Log()[before:]
	for _, word := range words {
		if code != 64 || !strings.Contains(text, word) || !strings.Contains(log, word) {
			e.t.Errorf("%q is missing: %d %s %s\n%s", word, code, out, text, log)
		}
	}
	if stale := e.Metrics()["exchange_config_stale"]; stale != 1 {
		e.t.Errorf("after a refusal stale is %v", stale)
	}
}

// shows expects these parts in exchange-info.
func (e *edited) shows(parts ...string) {
	e.t.Helper()
	status, body, err := e.Client.Get(nil, "http://"+e.Listen+"/api/v1/exchange-info/")
	for _, part := range parts {
		if err != nil || status != 200 || !strings.Contains(string(body), part) {
			e.t.Errorf("clients get %d %s, %v; want %s", status, body, err, part)
		}
	}
}

func publicRate(n string) string { return `"public":{"per_second":` + n + `,` }

func TestTheConfigurationIsReloaded(t *testing.T) {
	e := newEdited(t)
	e.writes("limits: {public_rate: 700}\n")
	e.Start()
	e.shows(publicRate("700"))
	if keys := e.reloads(); len(keys) != 0 {
		t.Errorf("without a change %q have changed", keys)
	}

	e.writes("limits: {public_rate: 800}\nlog: {level: error}\n", "{code: BTC}",
		"{code: BTC, deposit_instructions: Ask the desk.}")
	e.Signal(syscall.SIGHUP)
	exchangetest.Eventually(t, "the signal's limit counts", func() bool {
		_, body, err := e.Client.Get(nil, "http://"+e.Listen+"/api/v1/exchange-info/")
		return err == nil && strings.Contains(string(body), publicRate("800"))
	})
	if e.reloads(); strings.Contains(e.Log(), "the configuration was reloaded\" changes=2") {
		t.Error("the level of the log has not changed")
	}
	e.writes("limits: {public_rate: 800}\n")
	want := []string{"currencies.BTC.deposit_instructions", "log.level"}
	if keys := e.reloads(); !slices.Equal(sorted(keys), want) {
		t.Errorf("%q have changed, want %q", keys, want)
	}
	if !strings.Contains(e.Log(), "key=log.level from=error to=info") {
		t.Error("the log lacks the change")
	}

	// Valid changes are refused together with an invalid one.
	e.writes("limits: {public_rate: 900}\nlisten: 127.0.0.1:1\n", "{code: USDT}",
		"{code: USDT}\n  - {code: EUR}", "price_precision: 2", "price_precision: 3")
	for i, a := range e.Args { // a flag counts more than the file
		if a == "--listen" && e.Args[i+1] != e.Listen {
			t.Fatal(e.Args)
		}
	}
	e.refuses("needs a restart", "currencies", "BTC USDT EUR", "pairs.BTC_USDT.price_precision",
		"exchange.yaml line")
	e.shows(publicRate("800"), `"price_precision":2`)
	e.writes("limits: {public_rate: -1}\n")
	e.refuses("the configuration stays as it was", "limits.public_rate")
	succeeds(t, os.Remove(e.Args[2]))
	e.refuses("the configuration stays as it was", "no such file")
	e.shows(publicRate("800"))

	const maximum = "maximum_order_size: 1000000"
	e.writes("limits: {public_rate: 900, max_fills: 55}\n", maximum, maximum+", taker_fee: 0.002")
	before := e.Metrics()["exchange_config_applied_timestamp_seconds"]
	want = []string{"limits.max_fills", "limits.public_rate", "pairs.BTC_USDT.taker_fee"}
	if keys := e.reloads(); !slices.Equal(sorted(keys), want) {
		t.Errorf("%q have changed, want %q", keys, want)
	}
	values := []string{publicRate("900"), `"max_fills":55`, `"taker_fee":0.002`}
	e.shows(values...)
	if out := does(t, e.Server, "fees", "list"); !strings.Contains(out, "0.002") {
		t.Errorf("operators get\n%s", out)
	}
	m := e.Metrics()
	if m["exchange_config_stale"] != 0 ||
		m["exchange_config_applied_timestamp_seconds"] < before || before < 1.7e9 {
		t.Errorf("since %v, stale %v", m["exchange_config_applied_timestamp_seconds"],
			m["exchange_config_stale"])
	}
	e.Kill()
	e.Start()
	e.shows(values...)
	e.logged()
}

// logged expects the reloads in the log of actions.
func (e *edited) logged() {
	e.t.Helper()
	out := does(e.t, e.Server, "actions")
	const tookUp = "took up another configuration: "
	for _, words := range []string{"limits.public_rate 900 instead of 800", "  SIGHUP  ",
		tookUp + "log.level error instead of info, currencies.BTC.deposit_instructions Ask the " +
			"desk. instead of none, limits.public_rate 800 instead of 700\n"} {
		if strings.Count(out, words) != 1 {
			e.t.Errorf("the log of actions lacks %q\n%s", words, out)
		}
	}
}

// Clients continue to trade while limits and rules change, and acknowledged requests survive a
// kill.
func TestReloadsDoNotDisturbTrading(t *testing.T) {
	e := &edited{exchangetest.New(t, "pebble:"+t.TempDir()), t}
	e.Start()
	w := opened(t, e.Server, 3)
	for range 2 {
		w.load(50, func() {
			for i := range 20 {
				e.writes(fmt.Sprintf("limits: {in_flight: %d, in_flight_per_account: %d, "+
					"public_rate: %d}\n", 2_016+i%3, 1+i%4, 100+i), "minimum_order_size: 0.00001",
					fmt.Sprintf("minimum_order_size: 0.00000%d", 1+i%2))
				if keys := e.reloads(); len(keys) == 0 {
					t.Error("nothing has changed")
				}
			}
			w.acks.Store(0)
		})
		w.load(50, e.Kill)
		e.Start()
		w.compare()
	}
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

// differs reports whether a process shows that its file differs, and the number of differing nodes.
func (c *cluster) differs(s *exchangetest.Server) (own bool, nodes int) {
	c.t.Helper()
	var a struct {
		Differs []string `json:"config_differs"`
		Nodes   []struct {
			Differs bool `json:"config_differs"`
		}
	}
	succeeds(c.t, json.Unmarshal([]byte(c.command(s, "cluster", "status", "--json")), &a))
	for _, n := range a.Nodes {
		if n.Differs {
			nodes++
		}
	}
	return len(a.Differs) > 0, nodes
}

// A node applies its own options, and names the command for those that the nodes agree on. Agreed
// values are no change, for an observer neither. With them in its file a reloaded process no longer
// differs.
func TestANodeReloadsItsOwnOptions(t *testing.T) {
	c := prepareCluster(t, nil)
	for _, s := range c.nodes {
		with(t, s, "0.001", "1000")
		s.Env = append(s.Env, "EXCHANGE_CLUSTER_NODE="+c.name(s),
			"EXCHANGE_CLUSTER_NODES="+strings.Join(c.list, ","))
	}
	c.runs("EXCHANGE_CLUSTER_OBSERVERS=o1")
	led := c.leader(nil)
	o := c.observer("o1")
	with(t, o, "0.001", "1000")
	o.Start()
	e := &edited{c.others(led)[0], t}
	c.follows(e.Server, led)
	text := must[[]byte](t)(os.ReadFile(e.Args[2]))
	write := func(more string) {
		t.Helper()
		succeeds(t, os.WriteFile(e.Args[2], append(text, more...), 0o600))
	}
	write("  public_burst: 777\nlog: {level: debug}\n")
	e.refuses("limits.public_burst", "exchange config apply")
	write("log: {level: debug}\n")
	if keys := e.reloads(); !slices.Equal(keys, []string{"log.level"}) {
		t.Errorf("%q have changed", keys)
	}
	write("  max_fills_: 1\n")
	e.refuses("unknown key")

	with(t, e.Server, "0.002", "2000")
	e.refuses("pairs.BTC_USDT.taker_fee", "exchange config apply")
	c.agreesOnLimits(led)
	c.command(led, "config", "apply", "--config", e.Args[2])
	all := append(slices.Clone(c.nodes), o)
	for _, s := range all {
		exchangetest.Eventually(t, "all files differ from what is applied", func() bool {
			own, nodes := c.differs(s)
			return own && (nodes == len(c.nodes) || s == o)
		})
	}
	for _, s := range all {
		with(t, s, "0.002", "2000")
		keys := (&edited{s, t}).reloads()
		if len(keys) > 0 && (s != e.Server || !slices.Equal(keys, []string{"log.level"})) {
			t.Errorf("of what is applied %q have changed", keys)
		}
		if own, _ := c.differs(s); own {
			t.Error("a file that is equal differs")
		}
	}
	exchangetest.Eventually(t, "no file differs from what is applied", func() bool {
		return !slices.ContainsFunc(all, func(s *exchangetest.Server) bool {
			own, nodes := c.differs(s)
			return own || nodes > 0
		})
	})
}

// A standby takes over with its current file: while it waited, it could not apply fees.
func TestAStandbyTakesOverWithTheFileOfThen(t *testing.T) {
	c, second, _ := owners(t)
	c.standsBy(second)
	e := &edited{second, t}
	const maximum = "maximum_order_size: 1000000"
	e.writes("limits: {max_fills: 55}\n", maximum, maximum+", taker_fee: 0.002")
	c.s.Kill()
	serves(t, second)
	e.shows(`"taker_fee":0.002`, `"max_fills":55`)
	if m := second.Metrics(); m["exchange_config_stale"] != 0 {
		t.Error("its configuration is stale")
	}
	stops(t, second)
}
