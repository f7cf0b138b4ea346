// Command faults plants likely programming mistakes into the exchange, one at a time, and expects
// the named test to find each: so the tests can fail.
//
//	go run ./prove/faults                  list all faults, with the test that finds each
//	go run ./prove/faults -plant           plant each fault, and run its test
//	go run ./prove/faults -plant -only X   those whose name, file or package contains X
//	go run ./prove/faults -plant -smoke    ten of them, one a room
//	go run ./prove/faults -plant -log F    skip faults that F lists as found
//
// A mistake is planted in a copy of a file (go build -overlay), so the exchange itself contains no
// switches for it. All mistakes are in one build, each inactive until the environment names it.
//
//	main.go          the command
//	plant.go         the copies of files, and their builds
//	run.go           runs of tests, and what counts as found
//	list.go          all faults
//	simulation*.go   faults that the simulation finds
//	actors.go        faults that a test of actors or gateway finds
//	core.go, matching.go                 faults in core
//	stores.go, stores_replicated.go      faults in the stores
package main
