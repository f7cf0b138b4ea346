// Package operate has the commands that talk to a running exchange: the operator's, over the
// operator's listener, and those that use the public API.
//
//	client.go, stream.go, request.go  the connection, long answers, and repeated requests
//	arguments.go           checks that need no server
//	verb.go, verbs.go      commands that make one request: the mechanism, and all of them
//	answer.go              answers as text, and whether they are complete
//	audit.go, backup.go, deposit_file.go, export.go, members.go, statement.go
//	                       the commands of several requests
//	call.go                a request of the public API, signed as a client signs it
//	health.go              whether a server lives
//	loadtest.go, loadtest_comparison.go  load tests
package operate
