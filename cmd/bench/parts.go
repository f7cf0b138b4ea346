package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// The parts are Go benchmarks of the packages. Each has its own process in each round, so none
// inherits the heap of another. Compared parts take turns.

// A part is a benchmark whose results are in rows.
type part struct {
	pkg       string // below the module
	benchmark string // its full name, with spaces as in the source
	// the flag -benchtime; a number of runs, if preparing takes longer than running
	time     string
	readings []reading

	binary, dir string
}

// A reading says where a benchmark's line has a row's value.
type reading struct {
	metric string // the unit in the benchmark's line
	row    *row
	scale  float64 // from that unit to the row's; 0 is 1
	each   float64 // units of the row's subject in one op of the benchmark; 0 is 1
}

func allParts() []subject {
	return append(append(matchingParts(), instructionParts()...), otherParts()...)
}

func newRow(subject, unit string, a aim) *row { return &row{subject: subject, unit: unit, aim: a} }

func matchingParts() []subject {
	small := newRow("matching, 10,000 resting", "messages/s", aim{least: 8e6, noAllocs: true})
	large := newRow("matching, 1,000,000 resting", "messages/s", aim{leastRatio: 1.0 / 3})
	large.yardstick = small
	dense := newRow("memory of a resting order, 70 in a level", bytesHeld, aim{most: 150})
	sparse := newRow("memory of a resting order, 1 in a level", bytesHeld, aim{most: 150})
	market := func(name string) *part {
		r := newRow("matching: "+name, "messages/s", aim{least: 5e6, noAllocs: true})
		r.yardstick = small
		return &part{pkg: "core/matching", benchmark: "BenchmarkMarkets/" + name, time: "2000000x",
			readings: []reading{{metric: "msgs/s", row: r}}}
	}
	return []subject{
		&part{pkg: "core/matching", benchmark: "BenchmarkMix/resting=10000", time: "2000000x",
			readings: []reading{{metric: "msgs/s", row: small}}},
		&part{pkg: "core/matching", benchmark: "BenchmarkMix/resting=1000000", time: "2000000x",
			readings: []reading{{metric: "msgs/s", row: large}, {metric: "B/order", row: dense}}},
		&part{pkg: "core/matching", benchmark: "BenchmarkMix/a level for each", time: "200000x",
			readings: []reading{{metric: "B/order", row: sparse}}},
		market("quiet book"),
		market("fixed mid"),
		market("trending by 25 %"),
		market("trending by 40 %"),
		market("a 60 % crash"),
	}
}

// instructionParts compare orders with instructions with plain ones.
func instructionParts() []subject {
	timed := func(benchmark, subject string, yardstick *row) *part {
		r := newRow("matching: "+subject, "ns", aim{noAllocs: true})
		r.yardstick = yardstick
		return &part{pkg: "core/matching", benchmark: benchmark, time: "200ms",
			readings: []reading{{metric: "ns/op", row: r}}}
	}
	taking := timed("BenchmarkTaking/plain, market, ioc", "plain, market or ioc, that takes", nil)
	resting := timed("BenchmarkResting/plain", "plain, rest and cancel", nil)
	take := func(name string) *part {
		return timed("BenchmarkTaking/"+name, name+", that takes", taking.readings[0].row)
	}
	rest := func(name, subject string) *part {
		return timed("BenchmarkResting/"+name, subject, resting.readings[0].row)
	}
	alone := timed("BenchmarkPlainBesideStops/stops=0", "plain, beside no stops", nil)
	beside := timed("BenchmarkPlainBesideStops/stops=100000", "plain, beside 100,000 stops",
		alone.readings[0].row)
	beside.readings[0].row.aim.mostRatio = 1 / 0.95
	for _, p := range []*part{alone, beside} {
		p.time = "2000000x"
	}
	return []subject{taking, take("fok"), take("self-trade mode"), take("quote amount"),
		resting, rest("post-only", "post-only, rest and cancel"),
		rest("iceberg", "iceberg, rest and cancel"),
		rest("amend that keeps its place", "amend that keeps its place"),
		rest("amend that loses its place", "amend that loses its place"),
		alone, beside,
		timed("BenchmarkStop/stops=100000", "add a stop to 100,000, and remove it", nil),
		&part{pkg: "core/matching", benchmark: "BenchmarkCascade", time: "5x",
			readings: []reading{{metric: "ns/stop",
				row: newRow("matching: a stop of a cascade of 10,000", "ns", aim{})}}}}
}

func otherParts() []subject {
	naive := newRow("gateway's work for an order, JSON, a naive handler", "us", aim{})
	timed := func(pkg, benchmark, subject string) *part {
		return &part{pkg: pkg, benchmark: benchmark, time: "200ms",
			readings: []reading{{metric: "ns/op", row: newRow(subject, "ns", aim{})}}}
	}
	work := func(body, subject string) *part {
		r := newRow(subject, "us", aim{most: 2, noAllocs: true})
		if r.yardstick = naive; body == "naive" {
			r = naive
		}
		return &part{pkg: "gateway", benchmark: "BenchmarkGatewayWork/" + body, time: "200ms",
			readings: []reading{{metric: "ns/op", scale: 1e-3, row: r}}}
	}
	apply := func(shape string, records float64) *part {
		return &part{pkg: "core/state", benchmark: "BenchmarkApply/" + shape, time: "200ms",
			readings: []reading{{metric: "ns/record", each: records,
				row: newRow("fold: apply a record, "+shape, "ns", aim{})}}}
	}
	start := func(store, subject string, most float64) *part {
		return &part{pkg: "actors", benchmark: "BenchmarkRecovery/" + store, time: "1x",
			readings: []reading{{metric: "s/start", row: newRow(subject, "s", aim{most: most})}}}
	}
	return []subject{
		timed("core/event", "BenchmarkAppend/order of 1 trades",
			"event: encode an order with 1 trade"),
		timed("core/event", "BenchmarkAppend/order of 100 trades",
			"event: encode an order with 100 trades"),
		timed("core/event", "BenchmarkDecode/order of 1 trades",
			"event: decode an order with 1 trade"),
		timed("core/event", "BenchmarkDecode/order of 100 trades",
			"event: decode an order with 100 trades"),
		timed("core/ledger", "BenchmarkSettle/1 trades with 1 accounts",
			"ledger: settle an order with 1 trade"),
		timed("core/ledger", "BenchmarkSettle/100 trades with 100 accounts",
			"ledger: settle an order with 100 trades"),
		apply("rest and cancel", 2),
		apply("rest and fill", 2),
		apply("sweep of 100", 101),
		work("naive", naive.subject),
		work("json", "gateway's work for an order, JSON"),
		work("form", "gateway's work for an order, form"),
		&part{pkg: "actors", benchmark: "BenchmarkOrders/store=none/clients=64", time: "300ms",
			readings: []reading{{metric: "orders/s",
				row: newRow("engine alone, 64 clients", "orders/s", aim{})}}},
		start("journal=1000000", "recovery of 1,000,000 records", 5),
		start("snapshot=10000accounts,10000orders/journal=100000",
			"recovery of a snapshot and 100,000 records", 1),
		&part{pkg: "actors", benchmark: "BenchmarkAccounts", time: "1x",
			readings: []reading{{metric: "B/account",
				row: newRow("memory of an account with a key", bytesHeld, aim{most: 2048})}}},
	}
}

// packages returns the packages of the parts, each once.
func packages(parts []subject) (list []string) {
	seen := map[string]bool{}
	for _, s := range parts {
		if pkg := s.(*part).pkg; !seen[pkg] {
			seen[pkg] = true
			list = append(list, "exchange/"+pkg)
		}
	}
	return list
}

func (p *part) name() string { return p.pkg + " " + p.benchmark }

func (p *part) rows() (rows []*row) {
	for _, r := range p.readings {
		rows = append(rows, r.row)
	}
	return rows
}

// begin finds where the package's files are: like go test, the benchmark runs there.
func (p *part) begin(ctx context.Context, dir string) error {
	b, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "exchange/"+p.pkg).Output()
	p.dir, p.binary = strings.TrimSpace(string(b)), filepath.Join(dir, path.Base(p.pkg)+".test")
	return err
}

func (p *part) measure(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, p.binary, "-test.run", "^$", "-test.bench",
		pattern(p.benchmark), "-test.benchtime", p.time, "-test.benchmem", "-test.timeout", "5m")
	cmd.Dir = p.dir
	// a benchmark that is stopped leaves its files
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Dir(p.binary))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w\n%s%s", err, out.Bytes(), errs.Bytes())
	}
	values, err := parseBenchmark(out.String())
	if err != nil {
		return err
	}
	for _, r := range p.readings {
		if err := r.take(values); err != nil {
			return err
		}
	}
	return nil
}

func (p *part) end() {}

// take adds a round's value to the row. Allocations are of one operation, so a row of bytes that
// stay has none.
func (r *reading) take(values map[string]float64) error {
	v, ok := values[r.metric]
	if !ok {
		return fmt.Errorf("no %s in what the benchmark printed", r.metric)
	}
	r.row.values = append(r.row.values, v*orOne(r.scale))
	if n, ok := values["allocs/op"]; ok && r.row.unit != bytesHeld {
		r.row.allocs = append(r.row.allocs, n/orOne(r.each))
	}
	return nil
}

func orOne(v float64) float64 {
	if v == 0 {
		return 1
	}
	return v
}

// pattern returns a regular expression for -test.bench that chooses one benchmark.
func pattern(name string) string {
	elements := strings.Split(name, "/")
	for i, e := range elements {
		elements[i] = "^" + regexp.QuoteMeta(e) + "$"
	}
	return strings.Join(elements, "/")
}

// parseBenchmark returns the values, by their units, of the only benchmark that a test binary has
// run. The benchmark's line is a name, the number of runs, and pairs of a value and a unit.
func parseBenchmark(output string) (values map[string]float64, err error) {
	for line := range strings.Lines(output) {
		f := strings.Fields(line)
		if !strings.HasPrefix(line, "Benchmark") || len(f) < 4 || len(f)%2 != 0 {
			continue
		}
		if values != nil {
			return nil, errors.New("more than one benchmark has run")
		}
		values = map[string]float64{}
		for i := 2; i < len(f); i += 2 {
			if values[f[i+1]], err = strconv.ParseFloat(f[i], 64); err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
		}
	}
	if values == nil {
		return nil, errors.New("no benchmark has run")
	}
	return values, nil
}
