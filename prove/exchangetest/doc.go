// Package exchangetest runs the real program as a child process, for tests that look at it from
// outside. They kill the program, start it wrongly, or use it with clients of other makers.
//
//	server.go    an exchange, or a process of one
//	cluster.go   three nodes and an observer as one exchange
//	listener.go  programs that hear the event stream
//	mails.go     the mail server of its exchanges
package exchangetest
