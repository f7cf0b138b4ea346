package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// More orders than an exchange can take: twice as many as the highest rate of a closed loop. So
// many orders may be in flight as the closed loop has connections. The rest is refused at
// admission, with 503.

// overload has an exchange on Pebble that admits as many orders at once as there are connections of
// a closed loop.
type overload struct {
	server
	refusal, accepted, memory, back *row
	crowd                           *clients
}

// How an overload is made.
const (
	// as many connections as the closed loop has: a request that is refused does not wait for the
	// others
	overloadTimes  = 4
	overloadFactor = 2
	// backWindow is the length of one piece of the closed loop afterwards. At backShare of the best
	// rate, that rate counts as back.
	backWindow = 250 * time.Millisecond
	backShare  = 0.9
	backMost   = 10 * time.Second
)

// noop is the row of its CPU.
func newOverload(o options, noop *row) *overload {
	l := &overload{server: server{title: "overload", options: o}}
	// Cancels have slots of their own, which no orders take.
	l.settings = fmt.Sprintf(
		"limits: {in_flight: %d, in_flight_cancels: %d, in_flight_per_account: %d}\n",
		2*o.connections, o.connections, o.connections)
	l.refusal = &row{subject: "overload: CPU of a refusal", unit: "us/request",
		group: groupOverload, yardstick: noop, aim: aim{mostRatio: 1.2}}
	l.accepted = &row{subject: "overload: accepted, of what refusals leave", unit: "x",
		group: groupOverload, aim: aim{least: 0.9}}
	l.memory = &row{subject: "overload: most memory, of that before", unit: "x",
		group: groupOverload, aim: aim{most: 1.5}}
	l.back = &row{subject: "overload: until the best rate is back", unit: "s", group: groupOverload,
		aim: aim{most: 2}}
	return l
}

func (l *overload) rows() []*row { return []*row{l.refusal, l.accepted, l.memory, l.back} }

func (l *overload) begin(_ context.Context, dir string) error {
	if err := startExchange(&l.server, dir, nil); err != nil {
		return err
	}
	var err error
	if l.crowd, err = l.more("crowd", overloadTimes*l.options.connections, 1); err != nil {
		return err
	}
	_, err = l.clients.run(l.options.length)
	return err
}

// A load is one run with its cost.
type load struct {
	result
	exchange, generator time.Duration // CPU
}

// each returns the exchange's CPU time for a request, in seconds.
func (l load) each() float64 { return l.exchange.Seconds() / float64(l.requests) }

// busy returns the CPU time of exchange and generator in a second, in seconds.
func (l load) busy() float64 { return (l.exchange + l.generator).Seconds() / l.took.Seconds() }

func (l *overload) load(loop func() (result, error)) (r load, err error) {
	exchange, err1 := cpuOf(l.pids)
	generator := ownCPU()
	r.result, err = loop()
	after, err2 := cpuOf(l.pids)
	r.exchange, r.generator = after-exchange, ownCPU()-generator
	return r, errors.Join(err, err1, err2)
}

func (l *overload) measure(context.Context) error {
	best, err := l.load(func() (result, error) { return l.clients.run(l.options.length) })
	if err != nil {
		return err
	}
	before, err := memoryOf(l.pids[0])
	if err != nil {
		return err
	}
	if err := forgetPeak(l.pids[0]); err != nil {
		return err
	}
	over, err := l.load(func() (result, error) {
		return l.crowd.runOpen(overloadFactor*best.rate(), l.options.length, newLatencies())
	})
	if err != nil {
		return err
	}
	peak, err := peakOf(l.pids[0])
	if err != nil {
		return err
	}
	if over.away == 0 {
		return fmt.Errorf("nothing was refused of %.0f requests a second, %d times the best rate",
			overloadFactor*best.rate(), overloadFactor)
	}
	back, err := l.untilBack(best.rate())
	if err != nil {
		return err
	}
	refusals, err := l.refuseAll()
	if err != nil {
		return err
	}
	accepted, expected := shareOut(best, over, refusals)
	l.refusal.values = append(l.refusal.values, refusals.each()*1e6)
	l.accepted.values = append(l.accepted.values, accepted/expected)
	l.memory.values = append(l.memory.values, float64(peak)/float64(before))
	l.back.values = append(l.back.values, back.Seconds())
	return nil
}

// refuseAll loads during maintenance: every request is signed well, and refused. A refusal at
// admission also parses the fields, which the gateway's own rows measure as a part.
func (l *overload) refuseAll() (r load, err error) {
	if err := operate(l.operator, "maintenance", map[string]any{"on": true}, nil); err != nil {
		return r, err
	}
	if r, err = l.load(func() (result, error) {
		return l.clients.run(l.options.length)
	}); err != nil {
		return r, err
	}
	if r.away != r.requests {
		return r, fmt.Errorf("%d of %d requests were refused during maintenance", r.away,
			r.requests)
	}
	return r, operate(l.operator, "maintenance", map[string]any{"on": false}, nil)
}

// shareOut returns the orders that were accepted in a second, and the expected number. The expected
// orders have the CPU time that refusals and the generator leave on the same cores. An order costs
// as much as in a closed loop, and a refusal as much as when all is refused.
func shareOut(best, over, refusals load) (accepted, expected float64) {
	seconds := over.took.Seconds()
	left := best.busy() - (over.generator.Seconds()+float64(over.away)*refusals.each())/seconds
	return float64(over.requests-over.away) / seconds, left / best.each()
}

// untilBack loads in a closed loop again, until it has the best rate or long after.
func (l *overload) untilBack(rate float64) (time.Duration, error) {
	start := time.Now()
	for {
		r, err := l.clients.run(backWindow)
		if err != nil {
			return 0, err
		}
		if took := time.Since(start); r.rate() >= backShare*rate || took > backMost {
			return took, nil
		}
	}
}

// memoryOf returns the resident memory of a process, in bytes.
func memoryOf(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	f := bytes.Fields(b)
	if len(f) < 2 {
		return 0, fmt.Errorf("/proc/%d/statm has %q", pid, b)
	}
	pages, err := strconv.ParseInt(string(f[1]), 10, 64)
	return pages * int64(os.Getpagesize()), err
}

// forgetPeak resets the highest memory of a process.
func forgetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

// peakOf returns the highest memory of a process since then, in bytes.
func peakOf(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmHWM:" && f[2] == "kB" {
			kilobytes, err := strconv.ParseInt(f[1], 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/status has no peak of memory", pid)
}
