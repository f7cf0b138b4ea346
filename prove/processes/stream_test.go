//go:build prove

package processes

import (
	"os"
	"testing"

	"exchange/persistence/redistest"
	"exchange/prove/exchangetest"
)

// Subscribers with an unmodified client hold the same book as REST, through kills of the exchange
// and of Redis.
func TestSubscribersKeepTheBookThroughKills(t *testing.T) {
	if _, err := os.Stat("../node_modules/socket.io-client"); err != nil {
		t.Fatal("socket.io-client is not installed: `make smoke` installs it")
	}
	redis := redistest.Start(t)
	s := exchangetest.New(t, redis.URL())
	s.Start()
	w := opened(t, s, 4)
	node := exchangetest.Listen(t, "node", "../clients/stream.mjs", "http://"+s.Listen, "BTC_USDT")
	for range 3 {
		w.load(400, func() {})
		node.Looks()
		w.load(100, func() { s.Kill(); s.Start() })
		node.Looks()
	}
	w.load(100, func() { redis.Kill(); redis.Restart() })
	node.Looks()
	w.load(400, func() {})
	node.SawEnough(20, 2*4)
}
