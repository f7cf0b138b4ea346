package observing

import (
	"errors"
	"net"
	"time"

	"exchange/persistence"
	"exchange/persistence/line"
)

// Call is the kind of an observer's connection to the member that it follows, and Version that of
// all that is said on it. Its greeting has eight bytes that no other process with the observer's
// name has.
const (
	Call    = 'f'
	Version = 6
)

// Kinds of questions.
const (
	askFeed    = iota + 1 // sequence, digest, whether it resumes: see feed.go
	askControl            // a status, and the market when it has changed, again and again
	askReach              // the sequence that is reached
	askTrades             // this and those behind it: a horizon, and a query
	askOrders
	askOrder
	askOrdersByID
	askDeposits
	askWithdrawals
	askWithdrawal
	askCandles
)

// A status is what a member tells of the cluster, and of itself.
type status struct {
	Watermark uint64 // of its rows
	persistence.Standing
}

// A market has the market parts of Replica.Market; nil: there is none.
type market struct{ Next, Current []byte }

// The queries that have no struct of package persistence.
type (
	orderQuery struct {
		Account uint32
		ID      uint64
	}
	ordersQuery struct {
		Account uint32
		IDs     []uint64
	}
	idQuery struct{ ID uint64 }
)

// Bounds of what is said, in bytes.
const (
	longest      = 66 << 20 // the largest batch, and a page of what is before it
	longestQuery = 1 << 20
	feedWindow   = 1 << 20   // of the feed that are on their way
	pageBytes    = 256 << 10 // from which on a page has no more rows
	pageRows     = 200
)

// Bounds of what an observer asks for at a time.
const (
	maxQueries = 64
	maxRunning = 4 // queries that are under way
)

// usualSilence is after how long a side that hears nothing, or cannot write, gives up.
const usualSilence = 3 * time.Second

// pageWait is how long an answer stays open for an observer that does not take it.
const pageWait = 10 * time.Second

// errStartOver is why an observer's store has ended whose journal no member continues: it was away
// for too long, or the cluster has lost what it had. Its process goes on with a store and a node
// that start again, as after any end: Open, and node.Start.
var errStartOver = errors.New("too far behind every member's journal: reloading from a " +
	"snapshot")

// newSession makes a session of an observer's connection. answer is nil at the observer.
func newSession(conn net.Conn, silence time.Duration,
	answer func(q *line.Question) ([]byte, error)) *line.Session {
	o := line.Options{Longest: longestQuery, Takes: longest, Waiting: 4 * longestQuery,
		Beat: silence / 4, Silence: silence}
	if answer != nil {
		o.Longest, o.Takes, o.Waiting = longest, longestQuery, longest
	}
	return line.NewSession(conn, o, line.Questions{Open: maxQueries + 3, Answer: answer,
		Patience: max(pageWait, silence), Errors: []error{errStartOver, persistence.ErrNotFound,
			persistence.ErrGap, persistence.ErrCorrupt, persistence.ErrInvalid}})
}
