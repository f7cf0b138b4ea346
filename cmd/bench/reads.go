package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// Public answers that clients poll are measured on an exchange with a deep book. Each question has
// a yardstick of its own: a handler that sends a fixed body of the same length. The rates of one
// round are measured one right after the other.

// deepOrders is how many orders rest in the book that is read.
const deepOrders = 100_000

// A question is one public request.
type question struct {
	path       string
	leastRatio float64
	megabytes  bool // the rate is shown in megabytes a second: the answer is long
	rate, bare *row
	asked      *clients // of the exchange
	yardstick  *clients
	length     int // of the answer
}

// reads is the exchange that is asked.
type reads struct {
	server
	questions []*question
	orders    *row // orders while whole books are read from the exchange
	ordersBy  *row // orders while the same is read from the yardstick
}

func newReads(o options) *reads {
	r := &reads{server: server{title: "reads", options: o, rate: &row{}, cpu: &row{}}}
	for _, q := range []*question{
		{path: "/api/v1/ticker/", leastRatio: 0.8},
		{path: "/api/charts/BTC_USDT/1/chart", leastRatio: 0.8},
		{path: "/api/v1/orderbook/BTC_USDT/?group=1&limit_sell=20&limit_buy=20", leastRatio: 0.8},
		{path: "/api/v1/orderbook/BTC_USDT/", leastRatio: 0.5, megabytes: true},
	} {
		unit := "requests/s"
		if q.megabytes {
			unit = "MB/s"
		}
		q.bare = &row{subject: "a fixed body as long as " + q.path, unit: unit, group: groupReads}
		q.rate = &row{subject: "GET " + q.path, unit: unit, group: groupReads, yardstick: q.bare,
			aim: aim{leastRatio: q.leastRatio}}
		r.questions = append(r.questions, q)
	}
	r.ordersBy = &row{subject: "orders while such bodies are read from a fixed handler",
		unit: "requests/s", group: groupReads}
	r.orders = &row{subject: fmt.Sprintf("orders while books of %d orders are read", deepOrders),
		unit: "requests/s", group: groupReads,
		yardstick: r.ordersBy, aim: aim{leastRatio: 0.9}}
	return r
}

func (r *reads) rows() (list []*row) {
	for _, q := range r.questions {
		list = append(list, q.bare, q.rate)
	}
	return append(list, r.ordersBy, r.orders)
}

// begin starts the exchange and fills its book, trades a little, and starts a yardstick for each
// answer.
func (r *reads) begin(_ context.Context, dir string) error {
	if err := startExchange(&r.server, dir, nil); err != nil {
		return err
	}
	if _, err := r.clients.run(r.options.length); err != nil { // trades, for ticker and chart
		return err
	}
	if err := deepen(r.clients, deepOrders); err != nil {
		return err
	}
	for _, c := range r.clients.conns { // more of them only: the book stays deep
		c.user.places, c.placesOnly = c.user.deep, true
	}
	for _, q := range r.questions {
		if err := r.prepare(q); err != nil {
			return fmt.Errorf("%s: %w", q.path, err)
		}
	}
	return nil
}

func (r *reads) prepare(q *question) error {
	resp, err := http.Get("http://" + r.address + q.path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		return fmt.Errorf("%d %.100s %v", resp.StatusCode, body, err)
	}
	q.length = len(body)
	address, err := r.noop(q.length)
	if err != nil {
		return err
	}
	n := r.options.connections
	if q.megabytes {
		n = 4 // more would only wait for each other's megabytes
	}
	if q.asked, err = dialFixed(r.address, q.path, n); err != nil {
		return err
	}
	q.yardstick, err = dialFixed(address, "/", n)
	return err
}

func (r *reads) measure(context.Context) error {
	for _, q := range r.questions {
		for _, side := range []struct {
			conns *clients
			to    *row
		}{{q.yardstick, q.bare}, {q.asked, q.rate}} {
			got, err := side.conns.run(r.options.length)
			if err != nil {
				return err
			}
			rate := got.rate()
			if q.megabytes {
				rate *= float64(q.length) / 1e6
			}
			side.to.values = append(side.to.values, rate)
		}
	}
	return r.measureOrders()
}

// measureOrders places and cancels orders while whole books are read, from the yardstick and then
// from the exchange. Reading costs a machine that is full anyway, and that cost is in both.
func (r *reads) measureOrders() error {
	book := r.questions[len(r.questions)-1]
	for _, side := range []struct {
		readers *clients
		to      *row
	}{{book.yardstick, r.ordersBy}, {book.asked, r.orders}} {
		var readers sync.WaitGroup
		var failed error
		readers.Go(func() { _, failed = side.readers.runOf(1, r.options.length) })
		got, err := r.clients.run(r.options.length)
		readers.Wait()
		if err != nil || failed != nil {
			return fmt.Errorf("%v, %v", err, failed)
		}
		side.to.values = append(side.to.values, got.rate())
	}
	return nil
}
