package main

import (
	"context"
	"fmt"
	"strconv"

	"exchange/loadtest"
)

// Ways are orders of the load tester on one exchange: one in each request, in batches, and over
// sockets.
type ways struct {
	server
	dir         string // with the program, and for reports
	list        []way
	rates, cpus []*row
}

// A way is how orders reach the exchange; the first one is the yardstick of the others.
type way struct {
	title      string
	args       []string // of the load tester
	leastRatio float64
	mostCPU    float64 // times the CPU of the yardstick; 0: any
}

// The sizes of batches, and of the two other ways.
const (
	batchItems       = 20
	batchConnections = 8
	orderSockets     = 64
)

func newWays(o options) *ways {
	n, sockets := strconv.Itoa(o.connections), strconv.Itoa(orderSockets)
	w := &ways{server: server{title: "ways of orders", options: o}}
	w.list = []way{
		{title: "one in each request", args: []string{"--accounts", n, "--connections", n}},
		{title: fmt.Sprintf("in batches of %d on %d connections", batchItems, batchConnections),
			args: []string{"--accounts", n, "--connections", strconv.Itoa(batchConnections),
				"--batch", strconv.Itoa(batchItems)}, leastRatio: 3, mostCPU: 0.35},
		{title: "over " + sockets + " sockets",
			args: []string{"--accounts", sockets, "--sockets", sockets}, leastRatio: 1.5}}
	for i, x := range w.list {
		w.rates = append(w.rates, &row{subject: "orders " + x.title, unit: "orders/s",
			group: groupRate, aim: aim{leastRatio: x.leastRatio}})
		w.cpus = append(w.cpus, &row{subject: "CPU: orders " + x.title, unit: "us/order",
			group: groupCPU, aim: aim{mostRatio: x.mostCPU}})
		if i > 0 {
			w.rates[i].yardstick, w.cpus[i].yardstick = w.rates[0], w.cpus[0]
		}
	}
	return w
}

func (w *ways) rows() []*row { return append(append([]*row{}, w.rates...), w.cpus...) }

// begin warms the exchange up, and makes the accounts.
func (w *ways) begin(ctx context.Context, dir string) error {
	w.dir = dir
	if err := startExchange(&w.server, dir, nil); err != nil {
		return err
	}
	_, err := w.loadtest(ctx, dir, w.list[0].args...)
	return err
}

// measure takes each way once, and then in the opposite order, so a change meanwhile changes all.
func (w *ways) measure(ctx context.Context) error {
	n := len(w.list)
	sums := make([]struct{ orders, seconds, cpu float64 }, n)
	for turn := range 2 * n {
		i := min(turn, 2*n-1-turn)
		r, err := w.loadtest(ctx, w.dir, w.list[i].args...)
		if err == nil && (r.Unknown > 0 || len(r.Samples) < 2) {
			err = fmt.Errorf("%s: %d orders without an outcome, %d samples of the exchange",
				w.list[i].title, r.Unknown, len(r.Samples))
		}
		if err != nil {
			return err
		}
		sums[i].orders += float64(r.Requests)
		sums[i].seconds += r.Seconds
		sums[i].cpu += serverCPU(&r)
	}
	for i, s := range sums {
		w.rates[i].values = append(w.rates[i].values, s.orders/s.seconds)
		w.cpus[i].values = append(w.cpus[i].values, s.cpu*1e6/s.orders)
	}
	return nil
}

// serverCPU returns the seconds that the exchange has used during a load.
func serverCPU(r *loadtest.Report) float64 {
	return r.Samples[len(r.Samples)-1].CPU - r.Samples[0].CPU
}
