package generator

import "time"

// A Client chooses the requests of a generator and takes their answers. A generator calls its
// client from one goroutine at a time; Generator.Look waits until it does not.
type Client interface {
	// Request returns the next request of a connection. The generator has written it before it
	// calls the client again. In a closed loop nil means that the connection sends no more in
	// this phase.
	Request(conn int) []byte
	// Answered takes an answer, whose body is valid until it returns. It reports whether the
	// connection is to rest before its next request.
	Answered(conn int, a Answer, latency time.Duration) (rest bool)
	// Broken takes the reason why a connection has ended or could not be made. If a request was
	// in flight, then its outcome is unknown. An error ends the phase; otherwise the generator
	// dials again.
	Broken(conn int, reason string, inFlight bool, latency time.Duration) error
	// Unsent takes how long a request has waited that was due and is not sent any more.
	Unsent(waited time.Duration)
}

// The reasons that a Client is given.
const (
	NotConnected = "connection refused or not made"
	brokenSend   = "connection broken while sending"
	closedByPeer = "connection closed by the server"
	notAnAnswer  = "answer not understood"
	noAnswer     = "no answer in time"
)

// A Pace tells how well an open loop keeps its schedule.
type Pace struct {
	Sent uint64
	// Late requests were sent more than lateBy after they were due, although a connection was
	// free. The wait for a free connection is the server's, this delay is the generator's own.
	Late    uint64
	Longest time.Duration // of these delays, also of those that are not late
}

// Add adds what came after.
func (p *Pace) Add(q Pace) {
	p.Sent += q.Sent
	p.Late += q.Late
	p.Longest = max(p.Longest, q.Longest)
}

// A Phase is one run of a generator.
type Phase struct {
	Rate   float64 // requests a second that are due; 0: a closed loop
	Length time.Duration
	// SendsLate sends all requests that were due within Length, however long that takes.
	// Otherwise those that were not sent by then are given to Client.Unsent.
	SendsLate bool
}
