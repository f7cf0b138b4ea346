// Package exchangetest runs the real program as a child process, for black-box tests. They kill the
// program, start it wrongly, or use it with third-party clients.
//
//	server.go    an exchange, or a process of one
//	cluster.go   three nodes and an observer as one exchange
//	listener.go  programs that receive the event stream
//	mails.go     the mail server of its exchanges
package exchangetest
