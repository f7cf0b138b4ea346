//go:build prove

package processes

import (
	"encoding/json"
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

// writes replaces the file by the settings of tests with replacements (before, after ...) and more
// text behind them.
func (e *edited) writes(more string, replacements ...string) {
	e.t.Helper()
	text := strings.NewReplacer(replacements...).Replace(exchangetest.Settings) + more
	if err := os.WriteFile(e.Args[2], []byte(text), 0o600); err != nil {
		e.t.Fatal(err)
	}
}

// reloads has an operator reload, and returns the keys that have changed.
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

// refuses wants a reload to be refused, with these words for the operator and in the log.
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

// shows wants clients to be told these parts of exchange-info.
func (e *edited) shows(parts ...string) {
	e.t.Helper()
	status, body, err := e.Client.Get(nil, "http://"+e.Listen+"/api/v1/exchange-info/")
	for _, part := range parts {
		if err != nil || status != 200 || !strings.Contains(string(body), part) {
			e.t.Errorf("clients are told %d %s, %v; want %s", status, body, err, part)
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
	if e.reloads(); strings.Contains(e.Log(), "the configuration was taken up\" changes=2") {
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

	// Changes that are good are refused with one that is not.
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
	if err := os.Remove(e.Args[2]); err != nil {
		t.Fatal(err)
	}
	e.refuses("the configuration stays as it was", "no such file")
	e.shows(publicRate("800"))

	e.writes("limits: {public_rate: 900}\n")
	before := e.Metrics()["exchange_config_applied_timestamp_seconds"]
	if keys := e.reloads(); !slices.Equal(keys, []string{"limits.public_rate"}) {
		t.Errorf("%q have changed", keys)
	}
	m := e.Metrics()
	if m["exchange_config_stale"] != 0 ||
		m["exchange_config_applied_timestamp_seconds"] < before || before < 1.7e9 {
		t.Errorf("since %v, stale %v", m["exchange_config_applied_timestamp_seconds"],
			m["exchange_config_stale"])
	}
	e.Kill()
	e.Start()
	e.shows(publicRate("900"))
	out, _, _ := e.Command("actions")
	const tookUp = "took up another configuration: "
	for _, words := range []string{tookUp + "limits.public_rate 900 instead of 800\n", "  SIGHUP  ",
		tookUp + "log.level error instead of info, currencies.BTC.deposit_instructions Ask the " +
			"desk. instead of none, limits.public_rate 800 instead of 700\n"} {
		if strings.Count(out, words) != 1 {
			t.Errorf("the log of actions lacks %q\n%s", words, out)
		}
	}
}

// trades has t0 sell and t1 buy, and wants both orders to end with a status.
func (e *edited) trades(w *world, price string, status int) {
	e.t.Helper()
	for i, side := range []string{"sell", "buy"} {
		x := w.traders[i]
		x.nonce++
		got, body, err := x.send("POST", "/api/v1/order/",
			"amount=0.01&pair=BTC_USDT&price="+price+"&type="+side, x.nonce)
		if err != nil || got != status {
			e.t.Errorf("a %s at %s: %d %s, %v", side, price, got, body, err)
		}
	}
}

// Fees, minimums and limits change without a restart. What was traded keeps its fees, also over a
// kill.
func TestFeesAndLimitsAreReloaded(t *testing.T) {
	e := newEdited(t)
	e.Start()
	w := opened(t, e.Server, 2)
	e.trades(w, "100", 201)
	const maximum = "maximum_order_size: 1000000"
	e.writes("limits: {max_fills: 55, open_orders_per_account_and_book: 77}\n", maximum,
		maximum+", taker_fee: 0.002, maker_fee: 0.001, minimum_order_value: 0.5")
	want := []string{"limits.max_fills", "limits.open_orders_per_account_and_book",
		"pairs.BTC_USDT.maker_fee", "pairs.BTC_USDT.minimum_order_value",
		"pairs.BTC_USDT.taker_fee"}
	if keys := sorted(e.reloads()); !slices.Equal(keys, want) {
		t.Errorf("%q have changed, want %q", keys, want)
	}
	told := []string{`"taker_fee":0.002`, `"maker_fee":0.001`, `"minimum_order_value":0.5`,
		`"max_fills":55`, `"open_orders_per_account_and_book":77`}
	e.shows(told...)
	e.trades(w, "100", 201)
	e.trades(w, "10", 400)
	if out, _, _ := e.Command("fees", "list"); !strings.Contains(out, "0.002") {
		t.Errorf("operators are told\n%s", out)
	}
	e.Kill()
	e.Start()
	e.shows(told...)
	e.trades(w, "10", 400)
	e.writes("", maximum, maximum+", taker_fee: 0.003")
	e.reloads()
	e.trades(w, "10", 201)
	out, text, code := e.Command("export", "trades", "--format", "csv")
	var fees []string
	for _, line := range strings.Split(strings.TrimSpace(out), "\n")[1:] {
		columns := strings.Split(strings.TrimSpace(line), ",")
		fees = append(fees, strings.Join(columns[len(columns)-2:], " "))
	}
	if got := strings.Join(fees, ", "); got != "0 0, 0.00002 0.001, 0.00003 0" {
		t.Errorf("the trades have the fees %s: %d %s %s", got, code, out, text)
	}
	if err := e.Audit(); err != nil {
		t.Error(err)
	}
	if code := e.Terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

// differs reports whether a process says that its file differs, and at how many nodes it says so.
func (c *cluster) differs(s *exchangetest.Server) (own bool, nodes int) {
	c.t.Helper()
	out := c.command(s, "cluster", "status")
	return strings.Contains(out, "differs from the applied one"), strings.Count(out, "differs\n")
}

// A node takes up what is its own, and names the command for what the nodes agree on. What they
// have agreed on is no change, for an observer neither. With it in the file a process differs no
// more once it has reloaded.
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
	text, err := os.ReadFile(e.Args[2])
	if err != nil {
		t.Fatal(err)
	}
	write := func(more string) {
		t.Helper()
		if err := os.WriteFile(e.Args[2], append(text, more...), 0o600); err != nil {
			t.Fatal(err)
		}
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

// A standby takes over with the file of that moment: while it waited, it could take up no fees.
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
	if code := second.Terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
