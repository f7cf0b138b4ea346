package loadtest

import (
	"fmt"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"exchange/loadtest/generator"
	"exchange/prove/memnet"
)

const somePairs = `[{"name":"BTC_USDT","currency1":"BTC","currency2":"USDT","minimum_order_size":0.00001,"maximum_order_size":1000000,"minimum_order_value":0,"price_precision":2,"amount_precision":8},
	{"name":"ETH_BTC","currency1":"ETH","currency2":"BTC","minimum_order_size":0.015,"maximum_order_size":0.1,"minimum_order_value":0.0001,"price_precision":6,"amount_precision":2}]`

func testPairs(t testing.TB) []*pair {
	t.Helper()
	return must(newPairs([]byte(somePairs)))
}

// A way connects a test's clients with its servers.
type way struct {
	listen    func() (net.Listener, error)
	generator func(generator.Client, generator.Options) (*generator.Generator, error)
	dial      func(network, address string, timeout time.Duration) (net.Conn, error)
	rest      fasthttp.DialFunc
}

var inMemory = way{
	func() (net.Listener, error) { return network.Listen(""), nil }, portable, network.DialTimeout,
	func(address string) (net.Conn, error) { return network.DialTimeout("tcp", address, 0) }}

// portable makes a generator without epoll.
func portable(c generator.Client, o generator.Options) (*generator.Generator, error) {
	return generator.NewPortable(c, o), nil
}

var listen func() (net.Listener, error)

func (w way) use() { listen, newGenerator, dial, dialRest = w.listen, w.generator, w.dial, w.rest }

// network connects clients and servers in memory.
var network memnet.Network

func TestMain(m *testing.M) {
	inMemory.use()
	l := network.Listen("")
	go fasthttp.Serve(l, func(*fasthttp.RequestCtx) {}) //nolint:errcheck // it ends with the test
	// The first answer starts a clock for all servers of the process, which is of no test's bubble.
	c := fasthttp.HostClient{Addr: l.Addr().String(), Dial: dialRest}
	if _, _, err := c.Get(nil, "http://"+c.Addr); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// bubble runs a test with its own clock, which advances when all its goroutines wait.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(lastEnd)
		test(t)
	})
}

// lastEnd waits until the goroutines of clients and servers have ended.
func lastEnd() { time.Sleep(time.Minute) }

// otherWays run a test, too: over sockets it needs the real clock.
var otherWays []func(t *testing.T, test func(t *testing.T))

// allWays runs a test in a bubble, and by each other way.
func allWays(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { bubble(t, test) })
	for _, run := range otherWays {
		run(t, test)
	}
}

// serve runs an HTTP server with answers chosen by a test.
func serve(t *testing.T, handler fasthttp.RequestHandler) (address string) {
	t.Helper()
	l := must(listen())
	s := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		time.Sleep(20 * time.Microsecond) // in a bubble a closed loop would take no time at all
		handler(ctx)
	}}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		l.Close()
		<-served
	})
	return l.Addr().String()
}

// newSender returns a sender with a user for each connection.
func newSender(t *testing.T, o *Options) (*test, *sender) {
	t.Helper()
	pairs := testPairs(t)
	x := &test{o: o, base: time.Now(), prog: &progress{}, name: "lt0", field: &field{pairs: pairs}}
	for i := range o.Accounts {
		a := &account{name: fmt.Sprintf("loadtest-%d", i+1), pairs: pairs}
		newUser(a, i, Key{fmt.Sprintf("key-%d", i), "secret"}, 0)
		x.field.accounts = append(x.field.accounts, a)
	}
	worked(t, x.makeSenders(t.Context()))
	for _, l := range x.clients {
		t.Cleanup(l.generator.Close)
	}
	return x, x.clients[0]
}

// okAnswer returns an answer that a generator has read.
func okAnswer(status int, body string) generator.Answer {
	return generator.Answer{Status: status, Body: []byte(body)}
}

// must returns the value of a call that must not fail.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// worked fails the test at an error.
func worked(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
