package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// A reload applies nothing of the market part that the nodes have not agreed on.
func TestOptionsAppliedByTheMarketArePartOfIt(t *testing.T) {
	for i := range Options {
		if o := &Options[i]; o.appliedBy == byMarket && o.market == 0 {
			t.Errorf("%s is none of the market part", o.Key)
		}
	}
}

// unlike gives a value of any type another one.
func unlike(t *testing.T, v reflect.Value) {
	t.Helper()
	v = reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem() // may be unexported
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(v.Uint() + 1)
	case reflect.Struct: // a balance
		unlike(t, v.Field(v.NumField()-1))
	case reflect.Slice:
		v.Set(reflect.ValueOf([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}))
	default:
		t.Fatalf("what differs from a %s?", v.Type())
	}
}

// A new field of the configuration, of a pair or a currency must decide, too.
func TestADifferenceInAnyFieldIsAChange(t *testing.T) {
	expect := func(what string, c, next *Config) {
		t.Helper()
		if list := c.Changes(next); len(list) != 1 || list[0].Before == list[0].After {
			t.Errorf("another %s makes the changes %v", what, list)
		}
		if list := next.Changes(next); list != nil {
			t.Errorf("%s: a configuration differs from itself: %v", what, list)
		}
	}
	var each func(path string, c *Config, at func(*Config) reflect.Value)
	each = func(path string, c *Config, at func(*Config) reflect.Value) {
		for i := range at(c).NumField() {
			f := at(c).Type().Field(i)
			name := path + f.Name
			field := func(c *Config) reflect.Value { return at(c).Field(i) }
			switch {
			case slices.Contains([]string{"Ignored", "origin", "unread", "Currencies", "Pairs",
				"Password"}, name[strings.LastIndex(name, ".")+1:]):
				continue
			case f.Type.Kind() == reflect.Struct && f.Type.PkgPath() == at(c).Type().PkgPath() &&
				f.Type != reflect.TypeFor[Config]() && path+f.Name != "":
				each(name+".", c, field)
				continue
			}
			next := *c
			unlike(t, field(&next))
			expect(name, c, &next)
		}
	}
	c := shop(t)
	each("", c, func(c *Config) reflect.Value { return reflect.ValueOf(c).Elem() })
	next := *c
	next.Mail.Password = "another"
	if list := c.Changes(&next); len(list) != 1 || list[0].After != "***" {
		t.Errorf("another password: %v", list)
	}
	for i := range reflect.TypeFor[Pair]().NumField() {
		next := *c
		next.Pairs = slices.Clone(c.Pairs)
		unlike(t, reflect.ValueOf(&next.Pairs[0]).Elem().Field(i))
		expect("pair's "+reflect.TypeFor[Pair]().Field(i).Name, c, &next)
	}
	for i := range reflect.TypeFor[Currency]().NumField() {
		next := *c
		next.Currencies = slices.Clone(c.Currencies)
		unlike(t, reflect.ValueOf(&next.Currencies[0]).Elem().Field(i))
		expect("currency's "+reflect.TypeFor[Currency]().Field(i).Name, c, &next)
	}
}

// changesTo returns the changes made by a file, a line each.
func changesTo(t *testing.T, before, after string, cluster bool) string {
	t.Helper()
	read := func(text string) *Config {
		l := loader{cfg: Default()}
		l.yaml("FILE", []byte(text))
		if err := l.cfg.Finish(); err != nil || len(l.problems) > 0 {
			t.Fatal(err, l.problems)
		}
		if cluster {
			l.cfg.Cluster.Node = "a"
		}
		return l.cfg
	}
	var lines []string
	for _, x := range read(before).Changes(read(after)) {
		lines = append(lines, x.String())
	}
	return strings.Join(lines, "\n")
}

func TestChangesReportWhetherTheyApplyNow(t *testing.T) {
	const market = "currencies: [{code: A, deposit_instructions: one}, {code: B}, {code: C}]\n" +
		"pairs:\n- {name: A_B, price_precision: 2, amount_precision: 2, minimum_order_size: 1, " +
		"maximum_order_size: 9, maker_fee: 0.001}\n"
	changed := strings.NewReplacer("one", "two", "price_precision: 2", "price_precision: 3").
		Replace(market)
	for _, x := range []struct{ what, before, after, want, clustered string }{
		{"nothing", market, market + "log: {level: info}\n", "", ""},
		{"what counts now", market, market + "log: {level: warn}\nlimits: {read_rate: 7}\n",
			`log.level: "warn" instead of "info" (FILE line 4)` + "\n" +
				`limits.read_rate: "7" instead of "100" (FILE line 5)`,
			`log.level: "warn" instead of "info" (FILE line 4)` + "\n" +
				`limits.read_rate: "7" instead of "100" (FILE line 5) is agreed on by the nodes ` +
				`of the cluster: use exchange config apply`},
		{"a default again", market + "listen: 127.0.0.1:1\n", market,
			`listen: "127.0.0.1:8080" instead of "127.0.0.1:1" (the default) needs a restart`,
			`listen: "127.0.0.1:8080" instead of "127.0.0.1:1" (the default) needs a restart`},
		{"fields", market, changed,
			`currencies.A.deposit_instructions: "two" instead of "one" (FILE line 1)` + "\n" +
				`pairs.A_B.price_precision: "3" instead of "2" (FILE line 2) needs a restart`,
			`currencies.A.deposit_instructions: "two" instead of "one" (FILE line 1)` + "\n" +
				`pairs.A_B.price_precision: "3" instead of "2" (FILE line 2) is agreed on by the ` +
				`nodes of the cluster: use exchange config apply`},
		{"entries", market, strings.Replace(changed, "{code: B}, {code: C}", "{code: B}", 1),
			`currencies: "A B" instead of "A B C" (FILE line 1) needs a restart, as each change ` +
				`of which there are, and in which order` + "\n" +
				`pairs.A_B.price_precision: "3" instead of "2" (FILE line 2) needs a restart`,
			`currencies: "A B" instead of "A B C" (FILE line 1) is agreed on by the nodes of ` +
				`the cluster: use exchange config apply` + "\n" +
				`pairs.A_B.price_precision: "3" instead of "2" (FILE line 2) is agreed on by the ` +
				`nodes of the cluster: use exchange config apply`},
	} {
		for cluster, want := range map[bool]string{false: x.want, true: x.clustered} {
			got := changesTo(t, x.before, x.after, cluster)
			if got != want {
				t.Errorf("%s, cluster %t:\n%s\nwant\n%s", x.what, cluster, got, want)
			}
		}
	}
}

// A change of many pairs is one line, even if the line does not name the different ones.
func TestAChangeOfManyPairsIsShort(t *testing.T) {
	c, next := Default(), Default()
	for i := range 50 {
		c.Pairs = append(c.Pairs, Pair{Name: fmt.Sprint("P", i, "_B")})
	}
	next.Pairs = slices.Clone(c.Pairs)
	next.Pairs[49].Name = "Q_B"
	list := c.Changes(next)
	if len(list) != 1 || list[0].Refusal == "" || len(list[0].String()) > 300 {
		t.Errorf("%v", list)
	}
	if refused := Refused(append(list, Change{Key: "x"})); len(refused) != 1 {
		t.Errorf("refused are %v", refused)
	}
}
