package matching_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exchange/core/plantedtest"
)

var onlyPlanted = flag.String("planted", "", "plant only faults with this text in their names")

// A plantedFault is a plantedtest.Fault in this package, with the test that must find it.
type plantedFault struct{ name, file, old, new, test string }

// The tests that find more than one.
const (
	sessions = "TestSessionsAgreeWithTheNaiveBook"
	parts    = "TestAnIcebergGoesBehindItsPriceWithEachPart"
	owns     = "TestSelfTradesArePrevented"
	steps    = "TestMoneyBuysWholeSteps"
	nothing  = "TestAllOrNothingChangesNothing"
	reached  = "TestTradesQueueTheStopsThatTheyReach"
	loop     = "TestStopsAgreeWithALoopOverAll"
)

var plantedFaults = []plantedFault{
	{"an account trades with itself where it must not", "special.go",
		"case t.SelfTrade == trading.SelfTradeNone || maker != t.Account:",
		"case t.SelfTrade == trading.SelfTradeNone || maker != t.Account || FAULT:", sessions},
	{"a prevented order counts for nothing", "special.go", "p.prevented++",
		"if !FAULT { p.prevented++ }", owns},
	{"the older order stays where both must go", "special.go",
		"case end == 0, end == EndSelfTrade &&", "case end == 0, end == EndSelfTrade && !FAULT &&",
		owns},
	{"the newer order goes on where it must not", "special.go",
		"if t.SelfTrade == trading.SelfTradeCancelOldest {\nreturn 0, 0\n",
		"if t.SelfTrade == trading.SelfTradeCancelOldest || FAULT {\nreturn 0, 0\n", owns},
	{"a part is all of an all-or-nothing order", "special.go",
		"case t.Money.IsZero() && p.rest == 0,",
		"case t.Money.IsZero() && (p.rest == 0 || FAULT),", nothing},
	{"an all-or-nothing order does not count on hidden parts", "special.go",
		"if len(b.icebergs) > 0 && b.icebergs[n].Hidden > 0 {",
		"if len(b.icebergs) > 0 && b.icebergs[n].Hidden > 0 && !FAULT {", nothing},
	{"as many fills as may happen are one too many", "special.go",
		"case p.fills+p.prevented == t.MaxFills:",
		"case p.fills+p.prevented == t.MaxFills && !FAULT || p.fills+p.prevented > t.MaxFills:",
		nothing},
	{"money buys a part of a step", "special.go", "n -= n % uint64(step)",
		"if !FAULT { n -= n % uint64(step) }", steps},
	{"money is spent at the limit", "special.go",
		"p.money = p.money.Sub(p.price.Times(taken).Balance())",
		"at := p.price\nif FAULT { at = min(t.Limit, p.price+1) }\n" +
			"p.money = p.money.Sub(at.Times(taken).Balance())", sessions},
	{"a post-only order slides to the best price", "special.go", "slid = (best - 1) / tick * tick",
		"slid = (best - 1) / tick * tick\nif FAULT { slid = best }",
		"TestPostOnlyOrdersSlideNextToTheBestPrice"},
	{"a hidden part is public", "read.go", "if !yield(b.displayed(n)) {",
		"shown := b.displayed(n)\nif FAULT { shown = b.order(n) }\n" +
			"if !yield(shown) {", "TestAnOrderIsWholeToItsOwnerAndAPartToThePublic"},
	{"an iceberg keeps its place with the next part", "iceberg.go", "b.toTail(l, n)\n",
		"if !FAULT { b.toTail(l, n) }\n", parts},
	{"a maker is done when its part is", "iceberg.go",
		"MakerRemaining: o.remaining + iceberg.Hidden}",
		"MakerRemaining: o.remaining + iceberg.Hidden}\nif FAULT { " +
			"f.MakerRemaining = o.remaining }", parts},
	{"a next part does not count in its level", "iceberg.go",
		"l.amount = l.amount.Add(o.remaining)",
		"if !FAULT { l.amount = l.amount.Add(o.remaining) }", sessions},
	{"a plain order takes no hidden part", "book.go", "if len(b.icebergs) > 0 && amount > 0 {",
		"if len(b.icebergs) > 0 && amount > 0 && !FAULT {", parts},
	{"the hidden part of a cancelled order stays", "iceberg.go",
		"delete(b.icebergs, n)\nreturn hidden",
		"if !FAULT { delete(b.icebergs, n) }\nreturn hidden", sessions},
	{"an amend takes from the displayed part first", "iceberg.go",
		"hidden := min(less, iceberg.Hidden)",
		"hidden := min(less, iceberg.Hidden)\nif FAULT { " +
			"hidden = max(0, less-o.remaining+1) }",
		"TestAnAmendTakesFromTheHiddenPartFirst"},
	{"a comparison goes on behind an order that has moved", "compare.go",
		"b.order(n) == o.Order {", "(b.order(n) == o.Order || FAULT) {",
		"TestAComparisonMissesNothingWhenOrdersMoveBackInTheirLevel"},
	{"a sell queues rising stops first", "stops.go", "if taker == trading.Sell {",
		"if taker == trading.Sell && !FAULT {", reached},
	{"a trade at the trigger price itself triggers nothing", "stops.go",
		"if uint64(high) < s.riseAt &&",
		"if (uint64(high) < s.riseAt || FAULT && uint64(high) == s.riseAt) &&",
		"TestPricesAtTheExtremesTrigger"},
	{"only the highest price triggers", "stops.go", "&& uint64(low) > s.fallAt {",
		"&& (uint64(low) > s.fallAt || FAULT) {", reached},
	{"a new stop is not among the nearest", "stops.go",
		"s.ladder(stop.Trigger.When).add(w.entry())\ns.noteNearest()",
		"s.ladder(stop.Trigger.When).add(w.entry())\nif !FAULT { s.noteNearest() }", reached},
	{"of equal triggers the youngest is first", "sorted.go", "return cmp.Compare(e.id, f.id)",
		"if FAULT { return cmp.Compare(f.id, e.id) }\nreturn cmp.Compare(e.id, f.id)",
		"TestAQueueKeepsItsOrderOverTradesAndRemovals"},
	{"a restored queue waits again", "stops.go", "if stop.Queued {\n",
		"if stop.Queued && FAULT {\nw.Queued = false\n}\nif w.Queued {\n", loop},
	{"the newest of the queue goes first", "stops.go",
		"s.turn++\nw.Queued, w.turn = true, s.turn",
		"s.turn++\nw.Queued, w.turn = true, s.turn\nif FAULT { w.turn = ^s.turn }", reached},
}

// root returns the module's folder.
func root(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func toPlant(list []plantedFault) (faults []plantedtest.Fault) {
	for _, f := range list {
		faults = append(faults, plantedtest.Fault{Name: f.name, File: "core/matching/" + f.file,
			Old: f.old, New: f.new})
	}
	return faults
}

// Each mistake of a list is found by a test, and without a mistake none of the tests fails.
func TestPlantedFaultsAreFound(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "matching.test")
	plantedtest.Build(t, root(t), plantedtest.Overlay(t, root(t), dir, toPlant(plantedFaults)),
		"exchange/core/matching", binary)
	clean := map[string]bool{}
	for _, f := range plantedFaults {
		if !strings.Contains(f.name, *onlyPlanted) {
			continue
		}
		run := func(planted string) (out []byte, failed bool) {
			return plantedtest.Run(t, binary, ".", planted, "-test.run", "^"+f.test+"$", "-test.v",
				"-test.timeout", "2m")
		}
		if !clean[f.test] {
			clean[f.test] = true
			if out, failed := run(""); failed {
				t.Fatalf("%s without a planted fault:\n%s", f.test, out)
			}
		}
		out, failed := run(f.name)
		if !failed {
			t.Errorf("%s: %s has not noticed", f.name, f.test)
		} else if found, err := plantedtest.Finding(out, f.test); err != nil {
			t.Errorf("%s: it was not %s that has found it, because %v:\n%s", f.name, f.test, err,
				out)
		} else {
			t.Logf("%s: %s", f.name, found)
		}
	}
}

func TestTheDocumentationNamesEveryPlantedFault(t *testing.T) {
	page, err := os.ReadFile("../../docs/proof.md")
	if err != nil {
		t.Fatal(err)
	}
	const head = "| planted fault in the book | in | found by |\n|---|---|---|\n"
	want := head
	for _, f := range plantedFaults {
		want += fmt.Sprintf("| %s | `%s` | %s |\n", f.name, f.file, f.test)
	}
	if !strings.Contains(string(page), want+"\n") {
		t.Errorf("docs/proof.md has not\n%s", want)
	}
}
