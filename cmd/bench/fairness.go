package main

import (
	"context"
	"errors"
	"fmt"
)

// One account that floods an exchange on which others trade, beside as many requests of as many
// accounts. The requests in flight of an account are bounded, so the one account is no worse for
// the others than the many.
type fairness struct {
	server
	beside [2]*row // the many, the one
	floods [2]*clients
	others *clients
}

const (
	// floodTimes is how many connections a flood has, of those of the other measurements.
	floodTimes = 4
	// othersConnections send this many requests a second, however slow the exchange is.
	othersConnections = 16
	othersRate        = 400
)

func newFairness(o options) *fairness {
	f := &fairness{server: server{title: "fairness", options: o}}
	f.settings = fmt.Sprintf("limits: {keys_per_account: %d}\n", floodTimes*o.connections)
	f.beside[0] = &row{
		subject: "orders and cancels of others, p99: beside a flood of many accounts", unit: "ms",
		group: groupOverload}
	f.beside[1] = &row{subject: "orders and cancels of others, p99: beside a flood of one account",
		unit: "ms", group: groupOverload,
		yardstick: f.beside[0], aim: aim{mostRatio: 1.5}}
	return f
}

func (f *fairness) rows() []*row { return f.beside[:] }

func (f *fairness) begin(_ context.Context, dir string) error {
	if err := startExchange(&f.server, dir, nil); err != nil {
		return err
	}
	n := floodTimes * f.options.connections
	var err, err1, err2 error
	f.floods[0], err = f.more("many", n, 1)
	f.floods[1], err1 = f.more("one", n, n)
	f.others, err2 = f.more("other", othersConnections, 1)
	return errors.Join(err, err1, err2)
}

func (f *fairness) measure(context.Context) error {
	for i, flood := range f.floods {
		flooded := make(chan error, 1)
		go func() {
			_, err := flood.run(f.options.length)
			flooded <- err
		}()
		latencies := newLatencies()
		_, err := f.others.runOpen(othersRate, f.options.length, latencies)
		if err := errors.Join(err, <-flooded); err != nil {
			return err
		}
		f.beside[i].values = append(f.beside[i].values,
			milliseconds(latencies.ValueAtPercentile(99)))
	}
	return nil
}
