package demomarket

import (
	"context"
	"fmt"
	random "math/rand/v2"
	"strings"
	"testing"
	"time"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/market"
)

// past returns the client order ids of all orders of the past, and counts each.
func past(t *testing.T, m *Market) map[string]int {
	t.Helper()
	ids := map[string]int{}
	for i := range m.traders {
		q := committed.OrderQuery{Limit: 1000}
		for {
			list, err := m.engine.Orders(committed.Client{Key: m.traders[i].key,
				Nonce: m.traders[i].next()}, q)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range list.Rows {
				if strings.HasPrefix(o.ClientID, pastPrefix) {
					ids[o.ClientID]++
				}
				q.Before = o.ID
			}
			n := len(list.Rows)
			list.Free()
			if n == 0 {
				break
			}
		}
	}
	return ids
}

// stopped is a context that ends after a number of checks.
type stopped struct {
	context.Context
	checks int
}

func (s *stopped) Err() error {
	if s.checks--; s.checks < 0 {
		return context.Canceled
	}
	return nil
}

// A fresh demo plays the day before, once, also if it is killed meanwhile. Its records have the
// times of that day, and later ones the right time. The market continues at the last price.
func TestAFreshDemoHasAPast(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		x := newExchange(t)
		x.demo = true
		begin := time.Now().Add(-pastLength)
		e := x.start()
		for _, steps := range []int{0, 1, 150} { // and then it is killed
			n, err := PlayPast(&stopped{t.Context(), steps}, e, &x.clock)
			if err == nil || n != 6*steps {
				t.Errorf("of %d steps it has played %d orders, %v", steps, n, err)
			}
			e.Abandon()
			worked(t, x.store.Close())
			if e = x.start(); !x.due {
				t.Errorf("after %d steps no past is due", steps)
			}
		}
		orders, err := PlayPast(t.Context(), e, &x.clock)
		if err != nil || orders != pastOrders-149*6 { // one step once more, which changes nothing
			t.Errorf("the rest has %d orders, %v", orders, err)
		}
		x.clock.SetRight()
		m := must(Open(e))
		checkPast(t, m)
		checkDay(t, m, begin)
		report, err := e.Audit(t.Context(), nil, func(uint64, uint64) {})
		if err != nil || len(report.Differences) > 0 {
			t.Errorf("the audit: %+v, %v", report, err)
		}
		if n, err := PlayPast(t.Context(), e, &x.clock); n > 0 || err != nil {
			t.Errorf("the market has traded since, and %d orders are played, %v", n, err)
		}
		x.stop(e)
	})
}

// checkPast wants each order of the past, once.
func checkPast(t *testing.T, m *Market) {
	t.Helper()
	ids := past(t, m)
	for id, n := range ids {
		if n > 1 {
			t.Errorf("%s was placed %d times", id, n)
		}
	}
	if len(ids) != pastOrders {
		t.Errorf("%d orders were placed, want %d", len(ids), pastOrders)
	}
}

// begunPast returns an exchange whose past was stopped after its first step.
func begunPast(t *testing.T) (*exchange, *actors.Engine, *Market) {
	t.Helper()
	x := newExchange(t)
	x.demo = true
	e := x.start()
	if _, err := PlayPast(&stopped{t.Context(), 1}, e, &x.clock); err == nil {
		t.Fatal("the past was not stopped")
	}
	m := must(traders(e))
	m.chance = random.New(random.NewPCG(2, 0))
	return x, e, m
}

// The exchange refuses the client order ids of the newest closed orders, however late it is. So a
// past that continues later places nothing twice.
func TestLateResumedPastHasEachOrderOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		x, e, m := begunPast(t)
		deals := m.deals(0, 1)
		x.clock.stand(time.Now().Add(time.Hour))
		if played, err := m.played(); err != nil || played < 1 {
			t.Fatalf("order %d is the newest, %v", played, err)
		}
		worked(t, m.dealAll(deals))
		orders := past(t, m)
		if len(orders) != 2*len(deals) {
			t.Errorf("there are %v", orders)
		}
		for id, n := range orders {
			if n != 1 {
				t.Errorf("%s was placed %d times", id, n)
			}
		}
		x.stop(e)
	})
}

// A crash may leave a part of a step's orders. The past continues with that step, because later
// steps need all its orders.
func TestPastResumesWithinAStep(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		x, e, m := begunPast(t)
		m.deals(0, 1)
		begun := m.deals(1, 1)[0]
		x.clock.stand(time.Now().Add(-time.Hour))
		maker := m.trader(quote)
		must(e.Place(maker.key, maker.next(), &actors.OrderRequest{Pair: begun.pair,
			Side: begun.side, Price: begun.price, Amount: begun.amount,
			ClientID: must(event.NewClientID(fmt.Sprint(pastPrefix, begun.number)))})).Free()
		if played, err := m.played(); err != nil || played != begun.number {
			t.Errorf("order %d is the newest, want %d: %v", played, begun.number, err)
		}
		if _, err := PlayPast(t.Context(), e, &x.clock); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // m's nonces are higher than those of PlayPast then
		checkPast(t, m)
		x.stop(e)
	})
}

// checkDay wants a candle for each hour of a day on each pair, and the market at the last price.
func checkDay(t *testing.T, m *Market, begin time.Time) {
	t.Helper()
	frame, _ := market.ParseFrame("60")
	for _, p := range m.pairs {
		chart, err := m.engine.Candles(committed.Client{}, committed.ChartQuery{Pair: p,
			Frame: frame, Until: 1 << 60, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		list := chart.View.Candles[chart.From:chart.To]
		if len(list) < 24 || len(list) > 26 ||
			list[len(list)-1].Time < begin.Add(-time.Hour).Unix() {
			t.Errorf("%s has %d candles of an hour: %+v", p.Name, len(list), list)
		}
		v := must(m.view(p))
		last := float64(list[0].Close) / 1e8
		if p.Quote == "USDT" && (v.fair < last*0.99 || v.fair > last*1.01) {
			t.Errorf("%s continues at %v after %v", p.Name, v.fair, last)
		}
	}
}

// An exchange that has traded gets no past, however old that is, nor one that has begun without.
func TestAnExchangeThatHasTradedGetsNoPast(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		x := newExchange(t)
		e := x.start()
		if _, err := Open(e); err != nil {
			t.Fatal(err)
		}
		x.stop(e)
		x.demo, x.over = true, true
		if e = x.start(); x.due || x.clock.Error() != 0 {
			t.Error("a past that is over is due")
		}
		x.stop(e)
		x.over = false
		e = x.start() // its demo stopped before the past was over
		if n, err := PlayPast(t.Context(), e, &x.clock); n > 0 || err != nil {
			t.Errorf("%d orders are played, %v", n, err)
		}
		x.stop(e)

		x = newExchange(t)
		x.stop(x.start())
		x.demo = true
		if e = x.start(); x.due || x.clock.Error() != 0 {
			t.Error("an exchange without trades has records of now, and a past is due")
		}
		x.stop(e)
	})
}
