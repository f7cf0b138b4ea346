// Package line takes messages over a connection between two nodes: whole, in order, and many at
// once. What gathers while the last write is under way is the next write, so a busy connection has
// few, and a quiet one has no delay. A side that has nothing to say sends beats, and a side that
// hears nothing for a while takes the connection for broken.
//
// A connection begins with a greeting, which says what it is for, and its answer. Then it has
// messages of its user's own form, or is a session: either side asks numbered questions, and each
// is answered page by page, no faster than the other side takes the pages.
//
//	line.go      messages
//	greeting.go  what a connection is for
//	session.go   questions
//	answer.go    answers of the other side
package line
