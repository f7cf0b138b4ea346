//go:build prove

package clients

import (
	"testing"

	"exchange/prove/exchangetest"
)

// A use is a third-party client's session on the demo.
type use struct {
	name string
	does func(t *testing.T, s *exchangetest.Server)
}

// uses are in an order in which each finds the expected state: the first one a new one.
var uses = []use{
	{"ccxt", func(t *testing.T, s *exchangetest.Server) { inCCXT(t, s, "ccxt.mjs", "ccxt") }},
	{"instructions", func(t *testing.T, s *exchangetest.Server) {
		inCCXT(t, s, "instructions.mjs", "ccxt-2.0.1")
	}},
	{"trading page", func(t *testing.T, s *exchangetest.Server) {
		inCCXT(t, s, tradingExamples(t), "ccxt")
	}},
	{"docs page", pageSigns},
	{"stream of the docs page", pageTrades},
	{"Python", pythonTrades},
	{"shell", func(t *testing.T, s *exchangetest.Server) {
		order(t, s, "amount=5&pair=BTC_USDT&price=60000&type=buy") // as the demo's market would
		shellTrades(t, s)
	}},
	{"stream", streamHears},
}

// All uses of a single exchange work through an observer, and every instruction through a follower,
// while subscribers there receive all events.
func TestClientsWorkThroughEachProcessOfACluster(t *testing.T) {
	for entry, uses := range map[exchangetest.Entry][]use{exchangetest.Observer: uses,
		exchangetest.Follower: uses[1:2]} {
		t.Run(string(entry), func(t *testing.T) {
			c := exchangetest.NewCluster(t)
			c.Demo()
			at, s := c.Start(entry)
			installed(t, "socket.io-client")
			node := exchangetest.Listen(t, "node", "stream.mjs", "http://"+s.Listen, "BTC_USDT")
			python := exchangetest.Listen(t, "/usr/bin/python3", "polling.py", "http://"+s.Listen,
				"BTC_USDT")
			python.Says("connected")
			at.AwaitSubscribers(4)
			for _, u := range uses {
				if !t.Run(u.name, func(t *testing.T) { u.does(t, s) }) {
					t.FailNow() // the next ones would find another state
				}
			}
			node.SawEnough(20, 4)
			python.ReceivedTrades()
			if err := s.Audit(); err != nil {
				t.Error(err)
			}
		})
	}
}
