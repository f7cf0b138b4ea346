package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"exchange/cmd/internal/bars"
)

func TestBenchmarkLinesAreReadByTheirUnits(t *testing.T) {
	f := func(output string, want map[string]float64) {
		t.Helper()
		got, err := parseBenchmark(output)
		if (err != nil) != (want == nil) || !maps.Equal(got, want) {
			t.Errorf("%q: %v, %v", output, got, err)
		}
	}
	const line = "BenchmarkMix/resting=10000-2  \t 1000000\t        85.16 ns/op\t  11742662 " +
		"msgs/s\t       0 allocs/op\n"
	values := map[string]float64{"ns/op": 85.16, "msgs/s": 11742662, "allocs/op": 0}
	f(line, values)
	f("goos: linux\npkg: exchange/core/matching\ncpu: AMD EPYC\n"+line+"PASS\n", values)
	f("BenchmarkAccounts-2   \t       1\t      2825 B/account\nPASS\n",
		map[string]float64{"B/account": 2825})
	f("BenchmarkSmall-2\t1\t1.5e-05 s/op\n", map[string]float64{"s/op": 1.5e-05})
	f("", nil)
	f("PASS\n", nil)
	f("BenchmarkMix-2\n--- FAIL: BenchmarkMix\n", nil)
	f("BenchmarkMix-2\t1\tmany ns/op\n", nil)
	f(line+line, nil)
}

func TestPatternsChooseOneBenchmark(t *testing.T) {
	f := func(name, want string) {
		t.Helper()
		if got := pattern(name); got != want {
			t.Errorf("%q", got)
		}
	}
	f("BenchmarkAccounts", "^BenchmarkAccounts$")
	f("BenchmarkMix/resting=10000", "^BenchmarkMix$/^resting=10000$")
	f("BenchmarkX/a.b (c)", `^BenchmarkX$/^a\.b \(c\)$`)
}

func TestReadingsAreScaledAndCountAllocationsOfWhatTheRowCounts(t *testing.T) {
	f := func(r reading, value float64, allocs ...float64) {
		t.Helper()
		if err := r.take(map[string]float64{"ns/op": 2000, "allocs/op": 4}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(r.row.values, []float64{value}) || !slices.Equal(r.row.allocs, allocs) {
			t.Errorf("%+v", r.row)
		}
	}
	f(reading{metric: "ns/op", row: &row{}}, 2000, 4)
	f(reading{metric: "ns/op", scale: 1e-3, each: 2, row: &row{}}, 2, 2)
	f(reading{metric: "ns/op", row: &row{unit: bytesHeld}}, 2000)
	if err := (&reading{metric: "msgs/s", row: &row{}}).take(nil); err == nil {
		t.Error("a metric that was not printed is read")
	}
}

func TestVerdictsCompareMediansWithAims(t *testing.T) {
	base := &row{values: []float64{10, 20, 30}}
	f := func(a aim, values, allocs []float64, want string) {
		t.Helper()
		r := &row{yardstick: base, aim: a, values: values, allocs: allocs}
		if got := r.verdict(); got != want {
			t.Errorf("%v: %q, want %q", a, got, want)
		}
	}
	// The ratios are 0.5, 0.4 and 0.1; those of the medians would be 0.25.
	values, none, some := []float64{5, 8, 3}, []float64{0, 0, 1}, []float64{1, 2, 3}
	f(aim{}, values, nil, "")
	f(aim{least: 5}, values, nil, "met")
	f(aim{least: 6}, values, nil, "short: 5")
	f(aim{most: 5}, values, nil, "met")
	f(aim{most: 4}, values, nil, "short: 5")
	f(aim{leastRatio: 0.4}, values, nil, "met")
	f(aim{leastRatio: 0.41}, values, nil, "short: 0.40 x")
	f(aim{mostRatio: 0.4}, values, nil, "met")
	f(aim{mostRatio: 0.39}, values, nil, "short: 0.40 x")
	f(aim{noAllocs: true}, values, none, "met")
	f(aim{least: 6, noAllocs: true}, values, some, "short: 5, 2 allocs")
	f(aim{noAllocs: true}, values, nil, "not measured")
	f(aim{least: 5}, nil, nil, "not measured")
	base = &row{}
	f(aim{leastRatio: 0.4}, values, nil, "not measured")
}

// Numbers are short, and what is shown of several is their median.
func TestTable(t *testing.T) {
	noop := &row{subject: "no-op", unit: "requests/s", values: []float64{100_000, 80_000, 90_000}}
	rows := []*row{noop,
		{subject: "Pebble", unit: "requests/s", yardstick: noop, aim: aim{leastRatio: 0.5},
			values: []float64{40_000, 40_000, 27_000}},
		{subject: "work", unit: "us", aim: aim{most: 2, noAllocs: true},
			values: []float64{1.5, 1.25, 1}, allocs: []float64{0, 0, 0}},
		{subject: "Redis", unit: "requests/s", yardstick: noop, aim: aim{leastRatio: 0.3}},
		{subject: "even", unit: "B", values: []float64{999.6, 1, 5, 3}},
		{subject: "less", unit: "ms", values: []float64{0, 0.0198, 0.5741}},
		{subject: "more", unit: "ns", values: []float64{65.57, 999.4, 11742662.4}}}
	var b strings.Builder
	printTable(&b, "a machine", options{rounds: 3, connections: 64}, rows)
	want := `a machine; rounds: 3; connections over HTTP: 64

subject         value  unit        ratio  x of yardstick  aim                            allocs  lowest-highest
no-op          90,000  requests/s                                                                80,000-100,000
Pebble         40,000  requests/s   0.40  no-op           >= 0.50 x       short: 0.40 x          27,000-40,000, 0.30-0.50 x
work             1.25  us                                 <= 2, 0 allocs  met                 0  1-1.5
Redis    not measured  requests/s         no-op           >= 0.30 x       not measured
even                4  B                                                                         1-1,000
less           0.0198  ms                                                                        0-0.574
more              999  ns                                                                        65.6-11,742,662
`
	if got := strings.TrimSuffix(b.String(), explanation); got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
}

func TestAPictureShowsRowsAsTimesOfTheirAims(t *testing.T) {
	noop := &row{subject: "no-op", values: []float64{100, 100, 100}}
	c := pictureOf("a machine", options{rounds: 3}, []*row{noop,
		{subject: "half", unit: "requests/s", yardstick: noop, aim: aim{leastRatio: 0.5},
			values: []float64{25, 50, 20}},
		{subject: "quick", unit: "ms", aim: aim{most: 10}, values: []float64{5, 2.5, 10}},
		{subject: "both", yardstick: noop, aim: aim{least: 50, mostRatio: 0.5},
			values: []float64{100, 100, 100}},
		{subject: "nothing", aim: aim{least: 1}},
		{subject: "no allocations", aim: aim{noAllocs: true}, values: []float64{1},
			allocs: []float64{0}}})
	want := []bars.Row{
		{Name: "half", Value: 0.5, Low: 0.4, High: 1, Poor: true,
			Text: "25 requests/s, 0.25 x (>= 0.50 x)"},
		{Name: "quick", Value: 2, Low: 1, High: 4, Text: "5 ms (<= 10)"},
		{Name: "both", Value: 0.5, Low: 0.5, High: 0.5, Poor: true,
			Text: "100 , 1.00 x (>= 50, <= 0.50 x)"}}
	if !slices.Equal(c.Rows, want) {
		t.Errorf("%+v, want\n%+v", c.Rows, want)
	}
}

func TestChosenRowsBringTheirYardsticks(t *testing.T) {
	f := func(only string, want ...string) {
		t.Helper()
		o := options{rounds: 1, length: time.Second, connections: 1}
		rows := rowsOf(allParts(), allServers(o))
		some := choose(rows, regexp.MustCompile(only))
		var got []string
		for _, r := range rows {
			if r.wanted {
				got = append(got, r.subject)
			}
		}
		if some != (want != nil) || !slices.Equal(got, want) {
			t.Errorf("%s: %q", only, got)
		}
	}
	f("^matching, 1,000,000 resting", "matching, 10,000 resting", "matching, 1,000,000 resting")
	f("^HTTP: Pebble$", "HTTP: no-op handler", "HTTP: Pebble")
	f("^HTTP: Pebble, 200 pairs", "HTTP: no-op handler", "HTTP: Pebble",
		"HTTP: Pebble, 200 pairs and 10,000 accounts")
	f("^refused: Redis", "refused: Redis, appendfsync always")
	f("nothing like it")
}

func TestSubjectsAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rowsOf(allParts(), allServers(options{})) {
		if seen[r.subject] {
			t.Error(r.subject)
		}
		seen[r.subject] = true
	}
}
