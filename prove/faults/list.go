package main

import "slices"

// A Fault is a possible mistake in a file, named from the module's root. Edit is a text that occurs
// in the file exactly once, ignoring spaces and line breaks, with marks: «new» is inserted, and
// «old→new» replaces old. FAULT is true while this fault is planted. A script of Redis is such a
// file, too. Test, of the package In, must find the fault; "Test/part" is one part of a test.
type Fault struct{ Name, File, Edit, In, Test string }

// A patch is a Fault without the test that finds it.
type patch struct{ name, file, edit string }

// The tests that are played by seeds.
const (
	simulation = "TestSimulation"               // of actors
	threeNodes = "TestThreeNodesAreOneExchange" // of persistence/replicated
)

// faults are all faults that a test finds.
var faults = slices.Concat(simulated(plainFaults, specialFaults, batchFaults, ownFaults,
	sessionFaults), testedFaults, coreFaults, matchingFaults, singleFaults, replicatedFaults)

// simulated returns the faults that the simulation finds.
func simulated(lists ...[]patch) (all []Fault) {
	for _, p := range slices.Concat(lists...) {
		all = append(all, Fault{p.name, p.file, p.edit, "actors", simulation})
	}
	return all
}

// smoke are ten faults, one for each area, that are found in seconds.
var smoke = []string{
	"an instruction of 0 is read",                      // core/trading
	"an amend leaks the reserve of before",             // core/ledger
	"a prevented order counts for nothing",             // core/matching
	"an own trade is folded where it is forbidden",     // core/state
	"an answer goes out before its record is durable",  // actors
	"an upload does not rest",                          // actors/committed
	"a message that does not end keeps its connection", // persistence/line
	"an append is not synced",                          // persistence/internal/wal
	"HEAD is never advanced",                           // persistence/pebble
	"an append that does not follow on is done",        // persistence/internal/machine
}
