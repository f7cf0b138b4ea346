package loadtest

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"exchange/loadtest/generator"
)

const somePairs = `[{"name":"BTC_USDT","currency1":"BTC","currency2":"USDT","minimum_order_size":0.00001,"maximum_order_size":1000000,"minimum_order_value":0,"price_precision":2,"amount_precision":8},
	{"name":"ETH_BTC","currency1":"ETH","currency2":"BTC","minimum_order_size":0.015,"maximum_order_size":0.1,"minimum_order_value":0.0001,"price_precision":6,"amount_precision":2}]`

func testPairs(t testing.TB) []*pair {
	t.Helper()
	all, err := newPairs([]byte(somePairs))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// serve runs a server of HTTP whose answers a test chooses.
func serve(t *testing.T, handler fasthttp.RequestHandler) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &fasthttp.Server{Handler: handler}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		l.Close()
		<-served
	})
	return l.Addr().String()
}

// newSender returns a sender with a user for each connection. A portable one has no epoll.
func newSender(t *testing.T, o *Options, portable bool) (*test, *sender) {
	t.Helper()
	pairs := testPairs(t)
	x := &test{o: o, base: time.Now(), prog: &progress{}, name: "lt0", field: &field{pairs: pairs}}
	for i := range o.Accounts {
		a := &account{name: fmt.Sprintf("loadtest-%d", i+1), pairs: pairs}
		newUser(a, i, Key{fmt.Sprintf("key-%d", i), "secret"}, 0)
		x.field.accounts = append(x.field.accounts, a)
	}
	if err := x.makeSenders(); err != nil {
		t.Fatal(err)
	}
	l := x.senders[0]
	if portable {
		l.generator.Close()
		l.generator = generator.NewPortable(l, x.generatorOptions(l))
		if err := l.generator.Connect(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(l.generator.Close)
	return x, l
}

// okAnswer returns an answer that a generator has read.
func okAnswer(status int, body string) generator.Answer {
	return generator.Answer{Status: status, Body: []byte(body)}
}
