// Command ring runs the tests of one of the three rings, and reports failures with their output,
// skipped tests with their reasons, and the ten slowest tests.
//
//	go run ./prove/ring test [PACKAGE ...]   the gate: all tests without a build tag
//	go run ./prove/ring race                 the packages of race.txt under the race detector
//	go run ./prove/ring smoke                the tests of smoke.txt, which start programs
//	go run ./prove/ring prove                everything; WHAT and SINCE choose, see prove.go
//
//	main.go     the command
//	report.go   the events of go test -json, for people
//	smoke.go    lists of tests, and which are retried
//	prove.go    the parts of make prove, and where it resumes
//	page.go     docs/reliability.md
package main
