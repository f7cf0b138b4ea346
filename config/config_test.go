package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"exchange/core/money"
)

// other holds for every option a valid value that is not its default.
var other = map[string]string{
	"listen":                  "127.0.0.1:9000",
	"operator":                "localhost:9001",
	"store":                   "redis://127.0.0.1:6379/3",
	"data":                    "/tmp/elsewhere",
	"operator_token_file":     "/tmp/token",
	"secret_key_file":         "/tmp/key",
	"demo":                    "true",
	"no_demo_market":          "true",
	"no_rate_limits":          "true",
	"no_docs":                 "true",
	"no_pages":                "true",
	"contact":                 "api@example.org",
	"accept_redis_durability": "true",
	"cluster.node":            "a",
	"cluster.public_url":      "https://a.example.org",
	"log.level":               "warn",
	"log.format":              "json",
	"currencies":              `[{code: XAU, sign: "Au", minimum_withdraw: 0.5, address_pattern: '^a[^''"]+$'}, {code: EUR}]`,
	"pairs": `[{name: XAU_EUR, price_precision: 3, amount_precision: 4, minimum_order_size: 0.0001, ` +
		`maximum_order_size: 1e3, minimum_order_value: 0.0000000000000005, price_tick: 0.005, amount_step: 0.0001, ` +
		`price_band: 0.05, market_collar: 0.1, stop_collar: 0.2, maker_fee: 0.001, taker_fee: 0.0015}]`,
	"trusted_proxies":  `[10.0.0.0/8, "2001:db8::1"]`,
	"mail.host":        "mail.example.org",
	"mail.tls":         "implicit",
	"cluster.observer": "true",
	"mail.from":        "Example Exchange <exchange@example.org>",
}

func valueOf(o *Option) string {
	if v, ok := other[o.Key]; ok {
		return v
	}
	switch o.Key { // bounded by other options
	case "limits.in_flight", "timing.stall_max_ms", "timing.owner_stale_ms", "snapshot.max_records":
		return "300000"
	}
	if o.max > 0 && o.max < 501 {
		return fmt.Sprint(o.max)
	}
	if o.min > 501 {
		return fmt.Sprint(o.min)
	}
	return "501"
}

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "exchange.yaml")
	worked(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// market is the minimum for a valid configuration.
const market = `
currencies: [{code: BTC}, {code: USDT}]
pairs: [{name: BTC_USDT, price_precision: 2, amount_precision: 8, minimum_order_size: 0.00001, maximum_order_size: 1000000}]
`

// get returns the option's value for comparison, before derived values are filled in.
func get(o *Option, c *Config) any {
	switch o.Key {
	case "currencies":
		return c.Currencies
	case "pairs":
		return c.Pairs
	case "trusted_proxies":
		return c.TrustedProxies
	}
	return reflect.ValueOf(o.at(c)).Elem().Interface()
}

func TestEveryOptionIsReadFromFileEnvironmentAndFlagAlike(t *testing.T) {
	for i := range Options {
		o := &Options[i]
		value := valueOf(o)
		if o.min > 501 || o.max > 0 && o.max < 501 {
			value = thousandsless(o.min + 1)
		}
		want := Default()
		if err := o.set(want, value); err != nil {
			t.Fatal(o.Key, err)
		}
		if reflect.DeepEqual(get(o, want), get(o, Default())) {
			t.Fatalf("%s: %q is the default; this proves nothing", o.Key, value)
		}
		check := func(from string, l *loader) {
			t.Helper()
			if len(l.problems) > 0 {
				t.Errorf("%s from %s: %v", o.Key, from, l.problems)
			}
			if got := get(o, l.cfg); !reflect.DeepEqual(got, get(o, want)) {
				t.Errorf("%s from %s: got %v, want %v", o.Key, from, got, get(o, want))
			}
		}
		fromFile := &loader{cfg: Default()}
		prefix, key, nested := strings.Cut(o.Key, ".")
		text := o.Key + ": " + value + "\n"
		if nested {
			text = prefix + ":\n  " + key + ": " + value + "\n"
		}
		fromFile.yaml("exchange.yaml", []byte(text))
		check("file", fromFile)

		fromEnv := &loader{cfg: Default()}
		fromEnv.environment(map[string]string{o.env(): value})
		check("environment", fromEnv)

		fromFlag := &loader{cfg: Default()}
		fromFlag.set(o, value, "--"+o.FlagName())
		check("flag", fromFlag)
	}
}

func thousandsless(n int) string { return strings.ReplaceAll(Thousands(n), ",", "") }

// Of the sections, the log's options have flags, and those that make a process a node.
func TestOptionsOfTheTopLevelHaveFlags(t *testing.T) {
	for _, o := range Options {
		want := o.list == nil && (!strings.Contains(o.Key, ".") ||
			strings.HasPrefix(o.Key, "log.") || o.flag != "")
		if o.Flag != want {
			t.Errorf("%s: flag %v, want %v", o.Key, o.Flag, want)
		}
		if o.Help == "" || o.Brief == "" {
			t.Errorf("%s is not described", o.Key)
		}
		if o.Type() == "number" && o.max == 0 {
			t.Errorf("%s has no bounds", o.Key)
		}
	}
}

func TestEveryFieldOfConfigIsAnOption(t *testing.T) {
	seen := map[any]bool{}
	c := Default()
	for i := range Options {
		if o := &Options[i]; o.list == nil {
			seen[o.at(c)] = true
		}
	}
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		for i := range v.NumField() {
			f, name := v.Field(i), path+v.Type().Field(i).Name
			switch f.Kind() {
			case reflect.Struct:
				walk(f, name+".")
			case reflect.String, reflect.Int, reflect.Bool:
				if v.Type().Field(i).IsExported() && !seen[f.Addr().Interface()] {
					t.Errorf("%s cannot be configured", name)
				}
			}
		}
	}
	walk(reflect.ValueOf(c).Elem(), "")
}

func TestFlagOverridesEnvironmentOverridesFileOverridesDefault(t *testing.T) {
	src := Sources{File: write(t, market+"listen: 127.0.0.1:1\n")}
	load := func(want string) {
		t.Helper()
		c := must(Load(src))
		if c.Listen != want {
			t.Errorf("listen is %s, want %s", c.Listen, want)
		}
		if c.Operator != "unix:operator.sock" {
			t.Errorf("operator is %s, not the default", c.Operator)
		}
	}
	load("127.0.0.1:1")
	src.Environ = []string{"EXCHANGE_LISTEN="}
	load("127.0.0.1:1")
	src.Environ = []string{"EXCHANGE_LISTEN=127.0.0.1:2"}
	load("127.0.0.1:2")
	src.Flags = map[string]string{"listen": "127.0.0.1:3"}
	load("127.0.0.1:3")
}

func TestTheFileMayBeNamedByTheEnvironmentAndStrayNamesAreReported(t *testing.T) {
	c, err := Load(Sources{Environ: []string{"EXCHANGE_CONFIG=" + write(t, market),
		"EXCHANGE_LISTN=x", "EXCHANGE_OPERATOR_TOKEN=t",
		"EXCHANGE_SECRET_KEY=k", "EXCHANGE_A=b", "HOME=/"}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.Ignored, []string{"EXCHANGE_A", "EXCHANGE_LISTN"}) {
		t.Errorf("ignored are %v", c.Ignored)
	}
	if len(c.Pairs) != 1 || c.Pairs[0].MinimumOrderSize != 1000 ||
		!c.Pairs[0].MinimumOrderValue.IsZero() {
		t.Errorf("pairs are %+v", c.Pairs)
	}
}

func TestPathsAreDerivedFromTheStore(t *testing.T) {
	for _, x := range []struct{ store, data, wantData, wantToken, wantKey string }{
		{"pebble:./data", "", "./data", "data/operator.token", "data/exchange.key"},
		{"pebble:/data", "", "/data", "/data/operator.token", "/data/exchange.key"},
		{"redis://h", "", "./data", "data/operator.token", "data/exchange.key"},
		{"pebble:/data", "/etc/x", "/etc/x", "/etc/x/operator.token", "/etc/x/exchange.key"},
	} {
		c := Demo()
		c.Store, c.Data = x.store, x.data
		worked(t, c.Finish())
		if c.Data != x.wantData || c.OperatorTokenFile != x.wantToken ||
			c.SecretKeyFile != x.wantKey {
			t.Errorf("%s: %s %s %s", x.store, c.Data, c.OperatorTokenFile, c.SecretKeyFile)
		}
	}
	c := Demo() // all nodes of a cluster need the same key: that of `exchange cluster init`
	c.Cluster.Node, c.Cluster.nodes, c.Cluster.Folder = "a", threeNodes, "/etc/cluster"
	if err := c.Finish(); err != nil || c.SecretKeyFile != "/etc/cluster/exchange.key" ||
		strings.Contains(c.Summary(), "secret_key_file") {
		t.Error(err, c.SecretKeyFile, c.Summary())
	}
}

func TestRetentionUsesTheDefaultOfTheStore(t *testing.T) {
	for _, x := range []struct {
		store                                string
		trades, orders, wantTrades, wantOrds int
	}{
		{"pebble:x", -1, -1, 0, 0},
		{"redis://h", -1, -1, 1_000_000, 100_000},
		{"redis://h", 0, 7, 0, 7},
		{"pebble:x", 5, 0, 5, 0},
	} {
		c := Demo()
		c.Store, c.History = x.store, History{tradesPerPair: x.trades, ordersPerAccount: x.orders}
		if trades, orders := c.Retention(); trades != x.wantTrades || orders != x.wantOrds {
			t.Errorf("%+v: %d %d", x, trades, orders)
		}
	}
}

// problems loads and returns all problems.
func problems(t *testing.T, src Sources) problemList {
	t.Helper()
	_, err := Load(src)
	var p problemList
	if !errors.As(err, &p) {
		t.Fatalf("got %v, want problemList", err)
	}
	return p
}

func expect(t *testing.T, got problemList, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d problems, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
		return
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("problem %d is\n  %s\nwithout\n  %s", i, got[i], want[i])
		}
	}
}

func TestAllProblemsAreReportedAtOnce(t *testing.T) {
	file := write(t, `listen: nowhere
oprator: 127.0.0.1:1
limits:
  in_flight: many
  inflight: 1
  reads: 0
timing:
  stall_ms: 500
  stall_max_ms: 400
  owner_check_ms: 1001
snapshot: {min_records: 10, max_records: 9}
log:
  level: loud
  format:
store: mysql://root:hunter2@db
currencies:
  - code: btc
  - code: USDT
  - code: USDT
pairs:
  - {name: BTC_USDT, price_precision: 9, amount_precision: 2, minimum_order_size: 0.001, maximum_order_size: 0.0}
  - {name: USDT_USDT, price_precision: 1, amount_precision: 1, minimum_order_size: 2, maximum_order_size: 1}
`)
	got := problems(t, Sources{File: file, Environ: []string{"EXCHANGE_NO_RATE_LIMITS=perhaps"}})
	expect(t, got,
		file+
			` line 2: unknown key "oprator". The keys at the top level are listen, operator, store,`,
		`limits.in_flight is "many" (`+file+` line 4): write a whole number from 16 to 1,000,000.`,
		file+` line 5: unknown key "limits.inflight". The keys of limits are in_flight, `,
		file+` line 14: log.format has no value`,
		`no_rate_limits is "perhaps" (EXCHANGE_NO_RATE_LIMITS): write true or false.`,
		`log.level is "loud" (`+file+` line 13): write one of debug, info, warn, error.`,
		`limits.reads is 0 (`+file+` line 6): write a whole number from 1 to`,
		`listen is "nowhere" (`+file+` line 1): write host:port`,
		`store is "mysql://***@db" (`+file+` line 15): write pebble:FOLDER`,
		`the code "btc" must be`,
		`"USDT" is listed twice`,
		`BTC_USDT needs the currency BTC`,
		`price_precision of BTC_USDT is 9; write 0 to 8`,
		`minimum_order_size of BTC_USDT is 0.001, which has more decimals`,
		`maximum_order_size of BTC_USDT must be above 0`,
		`USDT_USDT trades a currency against itself`,
		`minimum_order_size of USDT_USDT, 2, is above its maximum_order_size, 1`,
		`timing.stall_ms is 500 (`+file+
			` line 8): it must be below timing.stall_max_ms, which is 400.`,
		`timing.owner_check_ms is 1,001 (`+file+
			` line 10): it must not be above half of timing.owner_stale_ms, which is 2,000.`,
		`snapshot.min_records is 10 (`+file+
			` line 11): it must not be above snapshot.max_records, which is 9.`,
	)
	if !strings.HasPrefix(got.Error(), "the configuration has 20 problems:\n  - ") {
		t.Error(got.Error())
	}
}

func TestTicksAndStepsFitTheRestOfAPair(t *testing.T) {
	f := func(rules string, want ...string) {
		t.Helper()
		text := "currencies: [{code: BTC}, {code: EUR}]\npairs:\n" +
			"  - {name: BTC_EUR, price_precision: 2, amount_precision: 3, " +
			"minimum_order_size: 0.005, maximum_order_size: 100, " + rules + "}\n"
		if len(want) == 0 {
			if _, err := Load(Sources{File: write(t, text)}); err != nil {
				t.Errorf("%s: %v", rules, err)
			}
			return
		}
		expect(t, problems(t, Sources{File: write(t, text)}), want...)
	}
	f("price_tick: 0.05, amount_step: 0.005")
	f("price_tick: 0, amount_step: 0")
	f("price_tick: 0.005", "price_tick of BTC_EUR is 0.005, which has more decimals than its "+
		"price_precision of 2")
	f("amount_step: 0.0005", "amount_step of BTC_EUR is 0.0005, which has more decimals than its "+
		"amount_precision of 3")
	f("amount_step: 0.002", "minimum_order_size of BTC_EUR is 0.005, which is no multiple of its "+
		"amount_step, 0.002")
	f("amount_step: 0.015", "minimum_order_size of BTC_EUR is 0.005",
		"maximum_order_size of BTC_EUR is 100, which is no multiple of its amount_step, 0.015")
	f("price_tick: -1", `price_tick is "-1": write a number of at most 8 fractional digits`)
}

func TestWrongFiles(t *testing.T) {
	for _, x := range []struct{ text, want string }{
		{"a: 1\na: 2\n", "line 2: this is not YAML: mapping key"},
		{"store: \"redis://:hunter2\nb: 1", "line 1: this is not YAML"},
		{"- a\n", "line 1: the file must hold keys and values"},
		{market + "limits: 3\n",
			`line 4: limits must hold keys and values, such as "in_flight: ..."`},
		{"demo: true\n---\ndemo: true\n", "a second document begins here"},
		{"demo: true\nstore: [a]\n", "line 2: store must be one plain or quoted value"},
		{"demo: true\nstore: &x y\n", "line 2: store must be one plain or quoted value"},
		{market + "limits:\n  command_rate: 5\nlimits.command_rate: 6\n",
			"line 6: limits.command_rate stands on line 5 already"},
		{"pairs: 5\n", "pairs, line 1: this must be a list"},
		{"pairs: [5]\n", "pairs, line 1: an entry has the keys name, "},
		{market + "history: {trades_per_pair: -2}", "history.trades_per_pair is -2"},
		{"currencies: [{code: A}]\n", "pairs is empty: list at least one."},
		{strings.Repeat("#", maxFileBytes+1), "is longer than 1,048,576 bytes"},
	} {
		got := problems(t, Sources{File: write(t, x.text)})
		if !strings.Contains(got.Error(), x.want) {
			t.Errorf("%.40q: got\n  %s\nwithout\n  %s", x.text, got, x.want)
		}
		if len(got) != 1 || strings.Contains(got.Error(), "hunter2") {
			t.Errorf("%.40q: one problem without a password is expected, not %s", x.text, got)
		}
	}
	expect(t, problems(t, Sources{File: filepath.Join(t.TempDir(), "none.yaml")}),
		"no such file or directory; `exchange config example > exchange.yaml` makes one.")
	expect(t, problems(t, Sources{Environ: []string{"EXCHANGE_PAIRS=[{name: 3}]"}}),
		"EXCHANGE_PAIRS: pairs, line 1: price_precision is missing", "amount_precision",
		"minimum_order_size", "maximum_order_size")
	expect(t, problems(t, Sources{Environ: []string{"EXCHANGE_PAIRS=# nothing"}}),
		"EXCHANGE_PAIRS: this is empty")
	expect(t, problems(t, Sources{}),
		"`exchange config example > exchange.yaml` makes a sample), or --demo")
}

func TestWrongPairsNameTheirLine(t *testing.T) {
	file := write(t, `pairs:
  - name: A_B
    price_precision: two
    amount_precision: 2
    minimum_order_size: 0.000000001
    maximum_order_size: -5
    minimum_order_value: 1e999999999
    color: blue
`)
	expect(t, problems(t, Sources{File: file}),
		file+`: pairs, line 3: price_precision is "two": write a whole number.`,
		file+
			`: pairs, line 5: minimum_order_size is "0.000000001": write a number of at most 8 fractional digits`,
		file+`: pairs, line 6: maximum_order_size is "-5"`,
		file+`: pairs, line 7: minimum_order_value is "1e999999999"`,
		file+`: pairs, line 8: unknown key "color". An entry has the keys name, price_precision,`,
	)
}

func TestAddresses(t *testing.T) {
	for _, x := range []struct{ listen, operator, demo, want string }{
		{"127.0.0.1:1", "127.0.0.1:2", "true", ""},
		{"localhost:1", "[::1]:2", "true", ""},
		{"127.0.0.1:0", "127.0.0.1:0", "true", ""},
		{"0.0.0.0:1", "127.0.0.1:2", "", ""},
		{"example.org:1", "127.0.0.1:2", "", ""},
		{"0.0.0.0:1", "127.0.0.1:2", "true", "with demo only a loopback address"},
		{":1", "127.0.0.1:2", "true", "with demo only a loopback address"},
		{"example.org:1", "127.0.0.1:2", "true", "with demo only a loopback address"},
		{"127.0.0.1:1", ":2", "",
			"only a loopback address such as 127.0.0.1:8081 is possible, because the operator's " +
				"bearer token would"},
		{"127.0.0.1:1", "10.0.0.1:2", "", "only a loopback address"},
		{"127.0.0.1:1", "0.0.0.0:2", "true", "only a loopback address"},
		{":2", "127.0.0.1:2", "", "it has the port of listen"},
		{"127.0.0.1:2", "127.0.0.1:2", "", "it has the port of listen"},
		{"127.0.0.1:2", "127.0.0.2:2", "", ""},
		{"127.0.0.1:65536", "127.0.0.1:2", "", "write host:port"},
		{"127.0.0.1", "127.0.0.1:2", "", "write host:port"},
		{"127.0.0.1:http", "127.0.0.1:2", "", "write host:port"},
		{"127.0.0.1:1", "unix:operator.sock", "", ""},
		{"127.0.0.1:1", "unix:/run/exchange/operator.sock", "true", ""},
		{"127.0.0.1:1", "unix:", "", "name the socket"},
	} {
		src := Sources{Flags: map[string]string{"listen": x.listen, "operator": x.operator}}
		if x.demo != "" {
			src.Flags["demo"] = x.demo
		} else {
			src.File = write(t, market)
		}
		loads(t, src, x.want, x)
	}
}

// loads loads the options of a case, and checks the problems: none if want is "". The error is nil
// if they are accepted.
func loads(t *testing.T, src Sources, want string, of any) (*Config, error) {
	t.Helper()
	c, err := Load(src)
	switch {
	case err == nil && want != "":
		t.Errorf("%+v is taken", of)
	case err != nil && (want == "" || !strings.Contains(err.Error(), want)):
		t.Errorf("%+v: %v", of, err)
	}
	return c, err
}

func TestAListenerOfOperatorsOrMetricsIsPublicWithTLSOnly(t *testing.T) {
	of := func(operator string, files ...string) map[string]string {
		options := map[string]string{"OPERATOR": operator}
		for _, name := range files {
			options[name+"_FILE"] = "x.pem"
		}
		return options
	}
	const cert, key = "OPERATOR_TLS_CERT", "OPERATOR_TLS_KEY"
	for _, x := range []struct {
		options map[string]string // variables of the environment
		want    string
	}{
		{of("0.0.0.0:2", cert, key), ""},
		{of("10.0.0.1:2", cert, key), ""},
		{of("127.0.0.1:2", cert, key), ""},
		{of("127.0.0.1:2"), ""},
		{of("unix:operator.sock", cert, key), "a socket, which has no TLS"},
		{of("0.0.0.0:2"), "set operator_tls.cert_file and operator_tls.key_file"},
		{of("0.0.0.0:2", "TLS_CERT", "TLS_KEY"), "only a loopback address"}, // the other listener's
		{of("0.0.0.0:2", cert), "operator_tls.key_file is empty"},
		{of("0.0.0.0:2", key), "operator_tls.cert_file is empty"},
		{of("127.0.0.1:2", "TLS_KEY"), "tls.cert_file is empty"},
		{of("127.0.0.1:2", "TLS_CERT"), "tls.key_file is empty"},
		{map[string]string{"METRICS_LISTEN": "127.0.0.1:9"}, ""},
		{map[string]string{"METRICS_LISTEN": "0.0.0.0:9"},
			"set metrics.cert_file and metrics.key_file"},
		{map[string]string{"METRICS_LISTEN": "0.0.0.0:9", "METRICS_CERT_FILE": "c",
			"METRICS_KEY_FILE": "k"}, ""},
		{map[string]string{"METRICS_LISTEN": "0.0.0.0:9", "METRICS_CERT_FILE": "c"},
			"metrics.key_file is empty"},
		{map[string]string{"METRICS_LISTEN": "127.0.0.1:8080"}, "it has the port of listen"},
		{map[string]string{"METRICS_LISTEN": "127.0.0.1:9", "OPERATOR": "127.0.0.1:9"},
			"it has the port of operator"},
		{map[string]string{"METRICS_LISTEN": "nowhere"}, "write host:port"},
	} {
		src := Sources{File: write(t, market)}
		for name, value := range x.options {
			src.Environ = append(src.Environ, "EXCHANGE_"+name+"="+value)
		}
		loads(t, src, x.want, x)
	}
}

func TestStores(t *testing.T) {
	for store, want := range map[string]string{
		"pebble:./data":                     "",
		"pebble:/a@b":                       "",
		"redis://localhost":                 "",
		"redis://u:hunter2@localhost:1/0":   "",
		"rediss://:hunter2@h:1/12":          "",
		"":                                  `store is "": write pebble:FOLDER`,
		"pebble:":                           "name a folder",
		"redis://":                          "the host is missing",
		"redis://:hunter2@h:1/x":            `store is "redis://***@h:1/x"`,
		"redis://:hunter2/x@h:1":            `percent-encode`,
		"redis://:hunter2@h:1/-1":           "the database must be a number",
		"unix:///run/redis.sock":            "",
		"unix://u:hunter2@/run/a.sock?db=3": "",
		"unix://run/redis.sock":             "with three slashes",
		"unix:///":                          "/path/of/the/socket",
		"unix://:hunter2@/a.sock?db=x":      "the database must be a number",
		"hunter2@h:6379":                    `store is "***@h:6379"`,
		"http://:hunter2@h?password=hunter": `store is "http://***@h?***"`,
	} {
		c := Demo()
		c.Store = store
		err := c.Finish()
		switch {
		case err == nil && want != "":
			t.Errorf("%q is taken", store)
		case err != nil && (want == "" || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v", store, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter") ||
			strings.Contains(c.Summary(), "hunter") {
			t.Errorf("%q: the password is shown", store)
		}
	}
}

func TestRedactURLHidesThePasswordOfBadURLsToo(t *testing.T) {
	for in, want := range map[string]string{
		"pebble:/a@b?c":                 "pebble:/a@b?c",
		"redis://h:6379/0":              "redis://h:6379/0",
		"redis://user:pw@h:6379/0?a=pw": "redis://***@h:6379/0?***",
		"redis://:p/w?x@y%zz@h:6379":    "redis://***@h:6379",
		"redis://h?password=a@b":        "redis://***@b",
		"user:pw@h":                     "***@h",
		"":                              "",
	} {
		if got := RedactURL(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestDemo(t *testing.T) {
	c, err := Load(Sources{Flags: map[string]string{"demo": "true"}})
	if err != nil {
		t.Fatal(err)
	}
	d := Demo()
	worked(t, d.Finish())
	if !reflect.DeepEqual(c.Pairs, d.Pairs) || !reflect.DeepEqual(c.Currencies, d.Currencies) {
		t.Error("Load and Demo differ")
	}
	var text []string
	for _, p := range c.Pairs {
		text = append(text, p.Name, p.MinimumOrderSize.String(), p.MaximumOrderSize.String(),
			p.MinimumOrderValue.String())
	}
	const want = "BTC_USDT 0.00001 1000000 1 ETH_USDT 0.00001 1000000 1 " +
		"ETH_BTC 0.00001 1000000 0.00001"
	if got := strings.Join(text, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	expect(t, problems(t, Sources{File: write(t, market),
		Flags: map[string]string{"demo": "true"}}), "leave out either demo or currencies and pairs")
}

func TestTheExampleIsValidAndShowsTheDefaults(t *testing.T) {
	text := Example()
	c := must(Load(Sources{File: write(t, text)}))
	if !reflect.DeepEqual(c.Pairs, demoPairs()) ||
		!reflect.DeepEqual(c.Currencies, demoCurrencies()) {
		t.Errorf("%+v %+v", c.Currencies, c.Pairs)
	}
	all := regexp.MustCompile(`(?m)^( *)#([a-z_]+:)`).ReplaceAllString(text, "$1$2")
	l := loader{cfg: Default()}
	l.yaml("exchange.yaml", []byte(all))
	if len(l.problems) > 0 {
		t.Fatal(l.problems)
	}
	for i := range Options {
		o := &Options[i]
		if o.list != nil {
			continue
		}
		if l.cfg.origin[o.Key] == "" {
			t.Errorf("the example leaves out %s", o.Key)
		}
		if got := o.text(l.cfg); got != o.Default {
			t.Errorf("%s: the example says %q, the default is %q", o.Key, got, o.Default)
		}
	}
	for n, line := range strings.Split(text, "\n") {
		if len([]rune(line)) > exampleWidth+8 {
			t.Errorf("line %d has %d characters", n+1, len(line))
		}
	}
	for i := range Options {
		if ref := Reference(); !strings.Contains(ref, Options[i].env()) {
			t.Errorf("the reference leaves out %s", Options[i].Key)
		}
	}
}

func TestTrustedProxies(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		c, err := Load(Sources{Flags: map[string]string{"demo": "true"},
			Environ: []string{"EXCHANGE_TRUSTED_PROXIES=" + text}})
		switch {
		case err != nil:
			if !strings.Contains(err.Error(), want) || want == "" {
				t.Errorf("%s: %v", text, err)
			}
		case fmt.Sprint(c.TrustedProxies) != want:
			t.Errorf("%s: %v, want %s", text, c.TrustedProxies, want)
		case len(c.TrustedProxies) > 0 != strings.Contains(c.Summary(),
			", trusted proxies "+strings.Trim(want, "[]")):
			t.Errorf("%s: %s", text, c.Summary())
		}
	}
	f("[]", "[]")
	f("[10.0.0.0/8]", "[10.0.0.0/8]")
	f("[192.0.2.1, 2001:db8::1, 2001:db8:1::/48]", "[192.0.2.1/32 2001:db8::1/128 2001:db8:1::/48]")
	f("10.0.0.0/8", "trusted_proxies, line 1: this must be a list")
	f("[10.0.0.1/8]",
		`"10.0.0.1/8" is not possible: it has bits set after its prefix; write 10.0.0.0/8, or 10.0.0.1 for the one address.`)
	f("[10.0.0.0/33]", "write a network")
	f("[proxy.example.org]", "write a network")
	f("[fe80::1%eth0]", "write a network")
	f(`["::ffff:10.0.0.0/104"]`, "write it as an IPv4 network")
	f("[0.0.0.0/0]", "every address there is")
	f(`["::/0"]`, "every address there is")
	f("[{a: b}]", "must be one plain or quoted value")
	f("["+strings.Repeat("10.0.0.0/8, ", maxTrustedProxies)+"10.0.0.0/8]", "list at most 64")
	expect(t, problems(t, Sources{
		File: write(t, "demo: true\ntrusted_proxies:\n  - 10.0.0.0/8\n  - nowhere\n")}),
		`trusted_proxies, line 4: "nowhere" is not possible`)
}

func TestWhereTheOperatorsSocketIs(t *testing.T) {
	for _, x := range []struct{ operator, data, want string }{
		{"unix:operator.sock", "./data", "data/operator.sock"},
		{"unix:operator.sock", "/var/lib/exchange", "/var/lib/exchange/operator.sock"},
		{"unix:./operator.sock", "/var/lib/exchange", "./operator.sock"},
		{"unix:/run/operator.sock", "data", "/run/operator.sock"},
		{"127.0.0.1:8081", "data", ""},
	} {
		if got := SocketPath(x.operator, x.data); got != x.want {
			t.Errorf("%+v: %q", x, got)
		}
	}
}

func TestSummaryListsDifferencesFromTheDefaults(t *testing.T) {
	c := Demo()
	c.Store, c.AcceptRedisDurability = "redis://:hunter2@h/1", true
	c.Limits.InFlight, c.NoRateLimits = 30_000, true
	worked(t, c.Finish())
	want := "listen 127.0.0.1:8080, operator unix:operator.sock, store redis://***@h/1, data " +
		"./data, demo, pairs BTC_USDT ETH_USDT ETH_BTC, " +
		"keeps 1,000,000 trades per pair and 100,000 closed orders per account, the durability " +
		"of Redis is NOT checked: " +
		"a crash of Redis may lose what was acknowledged, no_rate_limits=true, " +
		"accept_redis_durability=true, limits.in_flight=30000"
	if got := c.Summary(); got != want {
		t.Errorf("got\n  %s\nwant\n  %s", got, want)
	}
	// not in the data folder
	c.OperatorTokenFile, c.SecretKeyFile = "/run/token", "/run/key"
	if got := c.Summary(); !strings.Contains(got,
		", operator_token_file=/run/token, secret_key_file=/run/key, no_rate") {
		t.Errorf("got\n  %s", got)
	}
}

func TestAConfigurationOfAProgramIsCheckedToo(t *testing.T) {
	c := Demo()
	c.Limits.Reads, c.Timing.StallMs, c.Limits.InFlightCancels = 0, 60_000, 20_000
	expect(t, c.Finish().(problemList), "limits.reads is 0: write",
		"limits.in_flight_cancels is 20,000: it must be below limits.in_flight, which is 20,000.",
		"timing.stall_ms is 60,000: it must be below timing.stall_max_ms, which is 60,000.")
	c = Default()
	c.Currencies = []Currency{{Code: "A", Sign: "a\nb"}, {Code: "B", Sign: strings.Repeat("x", 9)}}
	c.Pairs = []Pair{{Name: "A_B", MinimumOrderSize: 1, MaximumOrderSize: money.MaxAmount,
		AmountPrecision: 8}, {Name: "AB"}}
	c.SecretKeyFile, c.OperatorTokenFile = "x", "./x"
	expect(t, c.Finish().(problemList), "is the same file", "the sign of A", "the sign of B",
		`the name "AB" must be`, "must be above 0", "must be above 0")
}

func TestDepositInstructionsAreLinesOfText(t *testing.T) {
	load := func(text string) Sources {
		return Sources{File: write(t, strings.Replace(market, "{code: BTC}",
			"{code: BTC, deposit_instructions: "+text+"}", 1))}
	}
	c, err := Load(load(`"Ask the desk:\ndesk@example.org"`))
	if err != nil || c.Currencies[0].DepositInstructions != "Ask the desk:\ndesk@example.org" {
		t.Errorf("%+v, %v", c, err)
	}
	for _, text := range []string{`"a\tb"`, `"` + strings.Repeat("é", 1001) + `"`} {
		got := strings.Join(problems(t, load(text)), "\n")
		if !strings.Contains(got, "the deposit_instructions of BTC must be at most 1000 ") {
			t.Errorf("%.20s: %q", text, got)
		}
	}
}

func TestAddressPatternsAreChecked(t *testing.T) {
	wrong := func(pattern string) string {
		text := strings.Replace(market, "{code: BTC}",
			"{code: BTC, address_pattern: '"+pattern+"'}", 1)
		if text == market {
			t.Fatal("there is no BTC")
		}
		return strings.Join(problems(t, Sources{File: write(t, text)}), "\n")
	}
	for pattern, want := range map[string]string{
		"bc1[a-z]+$": "begin it with ^ and end it with $",
		"^bc1[a-z]+": "begin it with ^ and end it with $",
		"^bc1[a-z+$": "no regular expression (RE2)",
		"^a)|(b$":    "no regular expression (RE2)",
		// RE2 has no back references
		`^(a)\1$`: "no regular expression (RE2)",
		// quotes the text after it, too
		`^bc1\Q.x$`:                          "no regular expression (RE2)",
		"^" + strings.Repeat("a", 511) + "$": "has 513 bytes; write at most 512",
	} {
		if got := wrong(pattern); !strings.Contains(got, "the address_pattern of BTC ") ||
			!strings.Contains(got, want) {
			t.Errorf("%.40s: %q", pattern, got)
		}
	}
}

// The whole address must match, even if a pattern matches a part of it.
func TestAddressPatternsMatchTheWholeAddress(t *testing.T) {
	if (Currency{}).Addresses() != nil {
		t.Error("a currency without a pattern has one")
	}
	for _, x := range []struct{ pattern, takes, refuses string }{
		{"^a|b$", "b", "ab"}, {"^a|b$", "a", "xb"}, {"^(?m)a$", "a", "a\nb"},
		{"^a$|^b$", "b", "a b"}, {`^a\$`, "a$", "a"},
	} {
		p := Currency{addressPattern: x.pattern}.Addresses()
		if !p.MatchString(x.takes) || p.MatchString(x.refuses) {
			t.Errorf("%s: %q is taken: %v, %q: %v", x.pattern, x.takes, p.MatchString(x.takes),
				x.refuses, p.MatchString(x.refuses))
		}
	}
	for _, c := range demoCurrencies() {
		address := "0x" + strings.Repeat("0aF", 13) + "1"
		if c.Code == "BTC" {
			address = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"
		}
		if !c.Addresses().MatchString(address) || c.Addresses().MatchString("somewhere") {
			t.Errorf("%s: the pattern is %s", c.Code, c.addressPattern)
		}
	}
}

// must returns the value of a call that must not fail.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// worked fails the test at an error.
func worked(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
