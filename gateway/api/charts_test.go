package api_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"exchange/actors"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/prove/harness"
)

// Tickers and candles are compared with the sums over all trades of the public list, each time from
// the first trade.

type marketTrade struct {
	us     int64
	price  money.Price
	amount money.Amount
}

// marketTrades reads all trades of a pair from the API, oldest first.
func marketTrades(t *testing.T, h *harness.Exchange, pair string) []marketTrade {
	t.Helper()
	var all []marketTrade
	for before := ""; ; {
		list := harness.Decode[[]struct{ ID, Price, Timestamp, Amount json.Number }](t,
			h.Do("GET", "/api/v1/exchanges/?limit=1000&pair="+pair+before, "", ""))
		for _, x := range list {
			at, err1 := money.ParsePrice(x.Timestamp.String())
			price, err2 := money.ParsePrice(x.Price.String())
			amount, err3 := money.ParseAmount(x.Amount.String())
			if err1 != nil || err2 != nil || err3 != nil {
				t.Fatalf("a trade %+v", x)
			}
			all = append(all, marketTrade{int64(at) / 100, price, amount})
		}
		if len(list) < 1000 {
			slices.Reverse(all)
			return all
		}
		before = "&before=" + list[len(list)-1].ID.String()
	}
}

type frame struct {
	name    string
	seconds int64
}

var frames = []frame{{"1", 60}, {"5", 300}, {"15", 900}, {"30", 1800}, {"60", 3600},
	{"240", 14_400}, {"D", 86_400}}

// A candle in the API's form.
type candle struct {
	time int64
	text string
}

// candlesOf are all candles of the trades, newest first.
func candlesOf(trades []marketTrade, seconds int64) (list []candle) {
	for from := 0; from < len(trades); {
		at := trades[from].us / 1e6 / seconds * seconds
		first := trades[from]
		high, low, last, volume := first.price, first.price, first.price, money.Total{}
		for ; from < len(trades) && trades[from].us/1e6/seconds*seconds == at; from++ {
			x := trades[from]
			high, low, last, volume = max(high, x.price), min(low, x.price), x.price,
				volume.Add(x.amount)
		}
		list = append(list, candle{at,
			fmt.Sprintf(`{"time":%d,"open":%v,"high":%v,"low":%v,"close":%v,"volume":%v}`, at,
				first.price, high, low, last, volume)})
	}
	slices.Reverse(list)
	return list
}

// tickerOf is the ticker of the trades at a moment, without its time and the best prices.
func tickerOf(trades []marketTrade, pair string, now time.Time) string {
	begin := now.UTC().Truncate(time.Minute).Add(-1439 * time.Minute).UnixMicro()
	var last, before, high, low money.Price
	var volume money.Total
	for _, x := range trades {
		last = x.price
		if x.us < begin {
			before = x.price
			continue
		}
		if low == 0 || x.price < low {
			low = x.price
		}
		if before == 0 {
			before = x.price
		}
		high, volume = max(high, x.price), volume.Add(x.amount)
	}
	return fmt.Sprintf(`"pair":%q,"last":%v,"diff":%s,"vol":%v,"high":%v,"low":%v,`, pair, last,
		signedText(last-before), volume, high, low)
}

func signedText(v money.Price) string {
	if v < 0 {
		return "-" + (-v).String()
	}
	return v.String()
}

// withHistory is an exchange whose journal has trades of pair 1 of some days: alice with herself.
// They mostly begin in another minute, sometimes in another hour or day, and end before now.
func withHistory(t *testing.T, random *rand.Rand, n int,
	change func(*actors.Options)) *harness.Exchange {
	h := harness.New(t, change)
	h.Account("alice")
	h.Account("bob")
	for _, d := range [][2]string{{"alice", "BTC"}, {"alice", "ETH"}, {"bob", "USDT"}} {
		h.Deposit(d[0], "1000000", d[1], d[0]+d[1])
	}
	times := []int64{time.Now().Add(-time.Minute).UnixMicro()}
	for range n - 1 {
		gap := random.Int64N(1e6)
		switch random.IntN(100) {
		case 0:
			gap += random.Int64N(8 * 3600e6)
		case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10:
			gap = 0
		default:
			gap += random.Int64N(150e6)
		}
		times = append(times, times[len(times)-1]-gap)
	}
	slices.Reverse(times)
	var records []event.Record
	for i, at := range times {
		id, price, amount := uint64(2*i+1), money.Price(1+random.Int64N(1000)*random.Int64N(1e8)),
			money.Amount(1+random.Int64N(1e9))
		records = append(records,
			event.Record{Kind: event.KindOrder, Pair: 1, TimeUs: at,
				Order: event.Order{ID: id, Account: 1, Side: trading.Sell, Price: price,
					Amount: amount, Remaining: amount}},
			event.Record{Kind: event.KindOrder, Pair: 1, TimeUs: at,
				Order: event.Order{ID: id + 1, Account: 1, Side: trading.Buy, Price: price,
					Amount: amount,
					Trades: []event.Trade{{ID: uint64(i + 1), Maker: id, MakerAccount: 1,
						Price: price, Amount: amount}}}})
	}
	h.Journal(records...)
	return h
}

func TestTickersAndCandlesAreThoseOfAllTrades(t *testing.T) {
	random := harness.Seeded(t)
	h := withHistory(t, random, 1500, nil)
	check := func() {
		t.Helper()
		for _, pair := range harness.ListPairs {
			trades := marketTrades(t, h, pair)
			checkTicker(t, h, pair, trades)
			for _, f := range frames {
				for range 20 {
					checkChart(t, h, pair, f, candlesOf(trades, f.seconds), random)
				}
			}
		}
	}
	check()
	h.Crash()
	h.Start()
	check()
}

// checkTicker repeats the request if the minute has turned meanwhile.
func checkTicker(t *testing.T, h *harness.Exchange, pair string, trades []marketTrade) {
	t.Helper()
	for {
		before := time.Now()
		a := h.Do("GET", "/api/v1/ticker/?pair="+pair, "", "")
		all := h.Do("GET", "/api/v1/ticker/", "", "")
		if after := time.Now(); after.Unix()/60 != before.Unix()/60 {
			continue
		}
		harness.WellFormed(t, pair, a)
		if want := tickerOf(trades, pair, before); !strings.Contains(a.Body, want) {
			t.Fatalf("the ticker is %s, want %s", a.Body, want)
		}
		if one := strings.Trim(a.Body, "[]"); !strings.Contains(all.Body, one) {
			t.Fatalf("the ticker is %s, among all it is not: %s", one, all.Body)
		}
		at := harness.Decode[[]struct{ Timestamp float64 }](t, a)[0].Timestamp
		made := float64(before.Unix() / 60 * 60)
		if len(trades) > 0 {
			made = max(made, float64(trades[len(trades)-1].us)/1e6)
		}
		if at < made || at > float64(time.Now().UnixMicro())/1e6 {
			t.Fatalf("the ticker is of %f, want %f at least", at, made)
		}
		return
	}
}

// checkChart requests a random part of a chart that has all these candles.
func checkChart(t *testing.T, h *harness.Exchange, pair string, f frame, all []candle,
	random *rand.Rand) {
	t.Helper()
	q := &query{random: random, defaultLimit: 720, mostLimit: 2000}
	q.limit = q.defaultLimit
	if q.flip() {
		n := []int{1, 2, 100, 719, 720, 721, 1000, 2000, 2001, 1 << 40}[random.IntN(10)]
		q.limit = min(n, q.mostLimit)
		q.add("limit", n)
	}
	// Only the order of times counts, so they stay in units of 1e-8 seconds, as parsed.
	bound := func(name string, unset money.Price) money.Price {
		if random.IntN(2) == 0 {
			return unset
		}
		whole := int64(random.IntN(3))
		if len(all) > 0 && random.IntN(6) > 0 {
			whole = all[random.IntN(len(all))].time +
				int64(random.IntN(3)-1)*f.seconds*int64(random.IntN(2))
		} else if random.IntN(3) == 0 {
			whole = []int64{0, 92_000_000_000, 1e9}[random.IntN(3)]
		}
		v := max(0, money.Price(whole)*1e8+
			[]money.Price{0, 0, 1, -1, 50_000_000, -99_999_999}[random.IntN(6)])
		q.add(name, v)
		return v
	}
	since, until := bound("since", -1<<62), bound("until", 1<<62)
	path := "/api/charts/" + pair + "/" + f.name + "/chart" + q.String()
	a := h.Do("GET", path, "", "")
	var texts []string
	for _, c := range all {
		if at := money.Price(c.time) * 1e8; at >= since && at <= until && len(texts) < q.limit {
			texts = append(texts, c.text)
		}
	}
	if expected := "[" + strings.Join(texts, ",") + "]"; a.Status != 200 || a.Body != expected {
		t.Fatalf("%s: %d, %d candles, want %d of %d\n got %.300s\nwant %.300s", path, a.Status,
			strings.Count(a.Body, "time"), len(texts), len(all), a.Body, expected)
	}
}
