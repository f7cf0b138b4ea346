//go:build prove && linux

package processes

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

const roundsHead = "| injected | rounds | what happens | orders | cancels | trades | " +
	"money and keys | no outcome: in | not in | missing, or more than was acknowledged |\n" +
	"|---|---|---|---|---|---|---|---|---|---|\n"

// reliability returns the table of docs/reliability.md with the rounds of the campaign. redis is
// the tested version.
func reliability(tallies []*tally, seed, redis string) []byte {
	var b bytes.Buffer
	b.WriteString(roundsHead)
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
	fmt.Fprintf(&b, "\nIt took %v with Redis %s and the seed %s.\n",
		all.took.Round(time.Second), redis, seed)
	return b.Bytes()
}

// The page counts every round, with one row for each kind.
func TestTheReliabilityPageCountsEveryRound(t *testing.T) {
	page := string(reliability([]*tally{
		{injection: &injections[0], rounds: 7, orders: 100, cancels: 20, trades: 3, office: 50,
			in: 1, out: 2, took: time.Minute},
		{injection: &injections[1], rounds: 5, orders: 1, office: 5, took: time.Minute},
	}, "4711", "7.0.15"))
	for _, want := range []string{
		injections[0].name + " | 7 | " + injections[0].what + " | 100 | 20 | 3 | 50 | 1 | 2 | 0 |",
		"| **all** | **12** | | 101 | 20 | 3 | 55 | 1 | 2 | **0** |",
		"It took 2m0s with Redis 7.0.15 and the seed 4711.\n"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in\n%s", want, page)
		}
	}
}
