// Package line exchanges messages over a connection between two nodes: whole, in order, and many at
// once. Messages that gather during one write form the next write, so a busy connection has few
// writes, and a quiet one has no delay. An idle side sends beats; a side that receives nothing for
// a while takes the connection for broken.
//
// A connection begins with a greeting, which states its purpose, and its answer. Then it carries
// messages of its user's own form, or is a session: either side asks numbered questions, and each
// is answered page by page, no faster than the other side consumes the pages.
//
//	line.go      messages
//	greeting.go  what a connection is for
//	session.go   questions
//	answer.go    answers of the other side
package line
