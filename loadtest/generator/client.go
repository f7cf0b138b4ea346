package generator

import "time"

// A Client chooses the requests of a generator and receives their answers. A generator calls its
// client from one goroutine at a time; Generator.Inspect excludes those calls.
type Client interface {
	// Request returns the next request of a connection, which was due in that stage of the
	// schedule. The generator writes it before it calls the client again. In a closed loop the
	// stage is 0, and nil means that the connection sends no more in this phase.
	Request(conn, stage int) []byte
	// Answered receives an answer, whose body is valid until it returns. It reports whether the
	// connection should rest before its next request.
	Answered(conn int, a Answer, latency time.Duration) (rest bool)
	// Broken receives the reason why a connection ended or could not be made. If a request was in
	// flight, then its outcome is unknown. An error ends the phase; otherwise the generator
	// redials.
	Broken(conn int, reason string, inFlight bool, latency time.Duration) error
	// Unsent receives the waiting time of a request that was due in a stage and will not be sent.
	Unsent(stage int, waited time.Duration)
}

// The reasons passed to Client.Broken.
const (
	NotConnected = "connection refused or not made"
	brokenSend   = "connection broken while sending"
	closedByPeer = "connection closed by the server"
	notAnAnswer  = "answer not understood"
	noAnswer     = "no answer in time"
)

// A Pace is how well an open loop keeps its schedule.
type Pace struct {
	Sent uint64
	// Late requests were sent more than lateBy after they were due, although a connection was
	// free. The wait for a free connection is the server's, this delay is the generator's own.
	Late    uint64
	Longest time.Duration // of these delays, including those that are not late
}

// Add adds a later Pace.
func (p *Pace) Add(q Pace) {
	p.Sent += q.Sent
	p.Late += q.Late
	p.Longest = max(p.Longest, q.Longest)
}

// A Phase is one run of a generator.
type Phase struct {
	Schedule *Schedule // of requests that are due; nil: a closed loop
	// With several generators on one schedule, each sends every Step-th of its requests, from
	// number First on. Step 0 is 1.
	First, Step uint64
	Begin       time.Time     // of the schedule or the closed loop; zero: now
	Length      time.Duration // of a closed loop
	// SendsLate sends all requests of the schedule, however long that takes. Otherwise those not
	// sent by its end go to Client.Unsent.
	SendsLate bool
}

// length returns for how long requests may be due.
func (p *Phase) length() time.Duration {
	if p.Schedule != nil {
		return p.Schedule.Length()
	}
	return p.Length
}

// number returns the number in the schedule of the phase's n-th request.
func (p *Phase) number(n uint64) uint64 { return p.First + n*max(p.Step, 1) }

// share returns the phase's part of that many requests of the schedule.
func (p *Phase) share(all uint64) uint64 {
	step := max(p.Step, 1)
	return (max(all, p.First) - p.First + step - 1) / step
}
