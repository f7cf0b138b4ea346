// Package node is one of several processes that keep one journal together. A node folds the
// journal, and while it is the leader builds an engine of package actors on its running fold. As a
// follower it serves public data, and forwards its clients' commands to the leader.
//
//	n, err := node.Start(ctx, options) // recovers, and follows
//	f, err := n.Follow(ctx)            // serves clients while it follows; f.End()
//	e, err := n.Lead(ctx)              // waits until it leads; again after <-e.Dead()
//	err = n.Stop(ctx)
//
//	node.go         the fold, and the goroutine that follows the journal
//	term.go         a term: an engine on the fold
//	market.go       the market part that the nodes have agreed on
//	follower.go     the follower API
//	forwarder.go    forwards clients' commands to the leader
//	session.go      the leader's side of such a connection
//	request.go      one forwarded request at the leader
//	signed.go       signed requests forwarded by observers
//	connections.go  kinds of connections between nodes; operators' requests
//	members.go      the host for observers
package node
