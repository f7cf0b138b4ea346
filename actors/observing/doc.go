// Package observing lets a process serve clients as a node that follows does, without a log, a
// store, a vote, and the server's key: an observer. Any number of observers follow the members of a
// cluster.
//
// An observer's Store is a persistence.Replica. It follows one member at a time: another one when
// that ends, falls silent or refuses. It has one session with the member (persistence/line), on
// which it asks, and each answer goes on as fast as the observer takes it:
//
//	feed   the newest image of the member's state, and each batch behind it, as applied there;
//	       without what only the server needs (core/event/withhold.go)
//	talk   what the member knows of the cluster, and how far its rows are
//	reach  the sequence that a read needs
//	rows   queries of the history, with the reader's horizon
//
// What clients have signed goes to the node that leads, over a connection of its own: forwarding of
// package actors.
//
// The rows are the member's, and what the observer's fold makes of rows is dropped as soon as the
// member has them. The member may be ahead: it leaves out rows from behind the reader's horizon. It
// may also be behind what was dropped, when it is another one than before: then it is not asked
// until it has come that far.
//
// A member never waits for an observer, and never grows with it: an observer that takes nothing for
// some seconds, asks too much at once, or says what makes no sense, is disconnected. An observer
// that the journal of no member reaches any more has to begin anew: see errStartOver.
//
//	talk.go     what both sides say, and bounds
//	store.go    the observer's store
//	follow.go   how it follows a member
//	history.go  how it asks for rows
//	serve.go    a member's side
//	feed.go     a member's feed
//	rows.go     a member's rows
package observing
