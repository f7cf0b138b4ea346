//go:build prove

package processes

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/shopspring/decimal"

	"exchange/prove/exchangetest"
)

// A client's order is placed through one process of a cluster, a node or the observer, and filled
// through another one. As soon as one shows the fill, the client sells exactly that amount through
// a third: money that one process shows can be used at each, so no such order is ever refused.
func TestAFillThatANodeShowsIsSoldThroughAnother(t *testing.T) {
	rounds := 150
	if os.Getenv(chaosVariable) != "" {
		rounds = 10_000
	}
	c, random := newCluster(t, "EXCHANGE_CLUSTER_OBSERVERS=o1"), newRandom(t)
	led := c.led()
	o := c.observer("o1")
	o.Start()
	places := append(slices.Clone(c.nodes), o)
	w := &world{t: t, s: led}
	maker, client := w.account("maker", random), w.account("client", random)
	w.fund("maker", "BTC", "1000")
	w.fund("maker", "USDT", "1000000")
	w.fund("client", "USDT", "100000")
	// order reports whether an order was certainly placed
	order := func(by *trader, at int, side, amount string, price int) bool {
		by.s = places[at]
		form := fmt.Sprintf("amount=%s&pair=BTC_USDT&price=%d&type=%s", amount, price, side)
		for !t.Failed() {
			by.nonce++
			status, body, err := by.send("POST", "/api/v1/order/", form, by.nonce)
			switch {
			case status == 201:
				return true
			case err != nil || strings.Contains(body, "outcome_unknown"):
				return false
			case status != 503:
				t.Errorf("place %d: %s: %d %s", at, form, status, body)
			}
		}
		return false
	}
	if !order(maker, 0, "buy", "1000", 90) { // takes all that the client sells
		t.Fatal("the maker's order is not placed")
	}
	undecided := 0
	for i := 0; i < rounds && !t.Failed(); i++ {
		at, amount := random.Perm(len(places)), decimal.New(int64(1000+random.IntN(1e6)), -8)
		fills := order(client, at[0], "buy", amount.String(), 100)
		filled := make(chan bool, 1)
		var selling sync.WaitGroup
		if fills {
			selling.Go(func() {
				filled <- order(maker, at[i%2+1], "sell", amount.String(), 100)
			})
			client.s = places[at[1]]
			fills = client.holds(t, amount, filled) && order(client, at[2], "sell",
				amount.String(), 90)
		}
		selling.Wait()
		if !fills { // an election on a busy machine
			undecided++
			exchangetest.Eventually(t, "what may rest is cancelled", func() bool {
				_, err := led.Call("POST", "/operator/v1/orders/cancel-all",
					map[string]string{"account": "client"}, nil)
				return err == nil
			})
		}
	}
	t.Logf("%d rounds, %d of them without an outcome", rounds, undecided)
	if undecided > rounds/10 {
		t.Error("too few fills were seen")
	}
	clean(t, led)
}

// holds waits until the trader's node shows the amount as available, and the filling order is
// answered. False: that order's outcome is unknown.
func (t *trader) holds(to *testing.T, amount decimal.Decimal, filled <-chan bool) bool {
	for known := false; !to.Failed(); {
		var rows []walletRow
		if err := t.get("/api/v1/wallets/", &rows); err != nil {
			to.Error(err)
		}
		for _, r := range rows {
			if r.Currency == "BTC" && r.Balance.Sub(r.Reserve).GreaterThanOrEqual(amount) {
				return true
			}
		}
		if known {
			to.Error("a fill that was acknowledged is not shown")
		}
		select {
		case known = <-filled:
			if !known {
				return false
			}
		default:
		}
	}
	return false
}
