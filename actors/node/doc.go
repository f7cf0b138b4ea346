// Package node is one of several processes that keep one journal together. A node folds what others
// append, and builds an engine of package actors on its running fold while it leads. While it
// follows it shows what is public, and takes its clients' commands to the node that leads.
//
//	n, err := node.Start(ctx, options) // recovers, and follows
//	f, err := n.Follow(ctx)            // serves clients while it follows; f.End()
//	e, err := n.Lead(ctx)              // waits until it leads; again after <-e.Dead()
//	err = n.Stop(ctx)
//
//	node.go         the fold, and the goroutine that follows the journal
//	term.go         an engine on the fold, from its beginning to its end
//	market.go       the market part that all nodes have agreed on
//	follower.go     what a node that follows shows, and its clients' commands
//	forwarder.go    these commands, on their way to the node that leads
//	session.go      the connection there that they come over, and its clients' sessions
//	request.go      one of them, carried out
//	signed.go       what an observer passes on, as it was signed
//	connections.go  what connections between nodes are for; operators' requests
//	members.go      a member, as its observers need it
package node
