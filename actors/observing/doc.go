// Package observing lets a process serve clients like a follower, without a log, a store, a vote,
// and the server's key: an observer. Any number of observers follow the members of a cluster.
//
// An observer's Store is a persistence.Replica. It follows one member at a time, and switches to
// another one when that ends, falls silent or refuses. It has one session with the member
// (persistence/line) for its requests. Each answer is streamed as fast as the observer reads it:
//
//	feed     the newest image of the member's state, and each batch after it, as applied there;
//	         without server secrets (core/event/withhold.go)
//	control  the member's cluster view, its watermark, and the market part
//	reach    the sequence that a read must wait for
//	read     a client's signed read, which the member answers as that of its own client
//	rows     queries of the history for public reads and for the answers to commands, with the
//	         reader's horizon
//
// Clients' other signed requests go to the leader, over a separate connection: see forwarder in
// package node.
//
// The rows are the member's; those of the observer's fold are dropped as soon as the member has
// them. The member may be ahead: it leaves out rows after the reader's horizon. A new member may
// also lag behind the dropped rows: then it is not queried until it has caught up.
//
// A member never waits for an observer, and bounds its memory: an observer that reads nothing for
// some seconds, asks too much at once, or sends malformed messages, is disconnected. An observer
// that is too far behind every member's journal must start over: see errStartOver.
//
//	protocol.go the protocol, and its bounds
//	store.go    the observer's store
//	follow.go   how it follows a member
//	history.go  the observer's queries of rows
//	serve.go    a member's side of the session
//	feed.go     a member's feed
//	rows.go     a member's rows
package observing
