package observing

import (
	"errors"
	"net"
	"time"

	"exchange/persistence"
	"exchange/persistence/line"
)

// Call is the kind of an observer's connection to the followed member, and Version its protocol
// version. Its greeting contains eight random bytes that identify the observer's process.
const (
	Call    = 'f'
	Version = 7
)

// Kinds of requests.
const (
	askFeed    = iota + 1 // sequence, digest, whether it resumes: see feed.go
	askControl            // a status, and the market part when changed; repeatedly
	askReach              // the reached sequence
	askRead               // a client's signed read: the answer to it
	askTrades             // this and the following: a horizon, and a query
	askOrders
	askOrder
	askWithdrawal
	askCandles
)

// A status is a member's cluster view, and its watermark.
type status struct {
	Watermark uint64 // of the member's rows
	persistence.Standing
}

// A market contains the market parts of Replica.Market; nil: none.
type market struct{ Next, Current []byte }

// The queries without a struct in package persistence.
type (
	orderQuery struct {
		Account uint32
		ID      uint64
	}
	idQuery struct{ ID uint64 }
)

// Bounds of messages, in bytes.
const (
	longest      = 66 << 20 // the largest batch, plus a page before it
	longestQuery = 1 << 20
	longestRead  = 256 << 10 // a client's signed read, with its body
	feedWindow   = 1 << 20   // bytes of the feed in flight
	pageBytes    = 256 << 10 // size at which a page is full
	pageRows     = 200
)

// Bounds of an observer's concurrent requests.
const (
	maxQueries = 64
	maxRunning = 4 // running queries
	maxReads   = 128
)

// usualSilence is the time without a received message, or a completed write, after which a side
// gives up.
const usualSilence = 3 * time.Second

// pageWait is how long an answer stays open for an observer that does not take it.
const pageWait = 10 * time.Second

// errStartOver is the end of an observer's store whose journal no member continues: it was away for
// too long, or the cluster has lost records. Its process continues with a new store and node, by
// Open and node.Start.
var errStartOver = errors.New("too far behind every member's journal: reloading from a " +
	"snapshot")

// newSession makes a session of an observer's connection. answer is nil at the observer.
func newSession(conn net.Conn, silence time.Duration,
	answer func(q *line.Question) ([]byte, error)) *line.Session {
	o := line.Options{Longest: longestQuery, Takes: longest,
		Waiting: 4*longestQuery + maxReads*longestRead,
		Beat:    silence / 4, Silence: silence}
	if answer != nil {
		o.Longest, o.Takes, o.Waiting = longest, longestQuery, longest
	}
	return line.NewSession(conn, o, line.Questions{Open: maxQueries + maxReads + 3, Answer: answer,
		Patience: max(pageWait, silence), Errors: []error{errStartOver, persistence.ErrNotFound,
			persistence.ErrGap, persistence.ErrCorrupt, persistence.ErrInvalid}})
}
