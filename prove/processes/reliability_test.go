//go:build prove && linux

package processes

import (
	"bytes"
	_ "embed"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// reliability returns docs/reliability.md: the course of the campaign, and its limits. commit is
// the commit of the program, "" if that is not known, and redis is the version that was killed and
// cut off.
func reliability(tallies []*tally, seed, commit, redis string) []byte {
	var b bytes.Buffer
	b.WriteString(reliabilityHead)
	var all tally
	for _, y := range tallies {
		fmt.Fprintf(&b, "| %s | %d | %s | %d | %d | %d | %d | %d | %d | 0 |\n", y.injection.name,
			y.rounds, y.injection.what, y.orders, y.cancels, y.trades, y.office, y.in, y.out)
		all.rounds, all.orders, all.cancels, all.trades = all.rounds+y.rounds, all.orders+y.orders,
			all.cancels+y.cancels, all.trades+y.trades
		all.office, all.in, all.out, all.took = all.office+y.office, all.in+y.in, all.out+y.out,
			all.took+y.took
	}
	fmt.Fprintf(&b, "| **all** | **%d** | | %d | %d | %d | %d | %d | %d | **0** |\n", all.rounds,
		all.orders, all.cancels, all.trades, all.office, all.in, all.out)
	if commit != "" {
		commit = ", of commit " + commit
	}
	fmt.Fprintf(&b, "\nIt took %v on %d cores (%s/%s) with Redis %s, %s%s,\nwith the seed %s.\n",
		all.took.Round(time.Second), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, redis,
		time.Now().UTC().Format("2006-01-02"), commit, seed)
	b.WriteString(reliabilityTail)
	return b.Bytes()
}

// The page's text before and after the table.
var (
	//go:embed testdata/reliability_head.md
	reliabilityHead string
	//go:embed testdata/reliability_tail.md
	reliabilityTail string
)

// The page has every round, and one row for each kind.
func TestTheReliabilityPageCountsEveryRound(t *testing.T) {
	page := string(reliability([]*tally{
		{injection: &injections[0], rounds: 7, orders: 100, cancels: 20, trades: 3, office: 50,
			in: 1, out: 2, took: time.Minute},
		{injection: &injections[1], rounds: 5, orders: 1, office: 5, took: time.Minute},
	}, "4711", "abcdef0 with changes", "7.0.15"))
	for _, want := range []string{
		injections[0].name + " | 7 | " + injections[0].what + " | 100 | 20 | 3 | 50 | 1 | 2 | 0 |",
		"| **all** | **12** | | 101 | 20 | 3 | 55 | 1 | 2 | **0** |", "It took 2m0s",
		" with Redis 7.0.15, ", ", of commit abcdef0 with changes,\nwith the seed 4711.\n"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in\n%s", want, page)
		}
	}
	if page := string(reliability(nil, "4711", "", "7.0.15")); strings.Contains(page, "commit") {
		t.Errorf("a commit that nobody knows is in\n%s", page)
	}
}
