package stream

import (
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"exchange/actors/committed"
	"exchange/core/market"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/gateway/socketio"
)

func TestDepthSendsTextLevelsWithChecksum(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		l := w.listen()
		w.place(0, "BTC_USDT", trading.Sell, 50000.5, 2)
		sum := func(text string) string { return fmt.Sprint(crc32.ChecksumIEEE([]byte(text))) }
		l.say(`42["subscribe","depth.BTC_USDT"]`)
		l.expect("subscribe.success", `{"channel":"depth.BTC_USDT","timestamp":*}`)
		l.expect("depth", `{"pair":"BTC_USDT","update_id":1,"prev_update_id":null,"snapshot":true,`+
			`"timestamp":*,"sell":[{"price":"50000.5","amount":"2"}],"buy":[],"checksum":`+
			sum("50000.5:2")+`}`)
		order := w.place(1, "BTC_USDT", trading.Buy, 49000, 0.25)
		l.expect("depth", `{"pair":"BTC_USDT","update_id":2,"prev_update_id":1,"timestamp":*,`+
			`"sell":[],"buy":[{"price":"49000","amount":"0.25"}],"checksum":`+
			sum("49000:0.25:50000.5:2")+`}`)
		w.cancel(1, order)
		l.expect("depth", `{"pair":"BTC_USDT","update_id":3,"prev_update_id":2,"timestamp":*,`+
			`"sell":[],"buy":[{"price":"49000","amount":"0"}],"checksum":`+sum("50000.5:2")+`}`)
		l.say(`42["unsubscribe","depth.BTC_USDT"]`)
		l.say(`42["subscribe","depth.ETH_BTC"]`) // an empty book has the checksum of no text
		l.expect("subscribe.success", `{"channel":"depth.ETH_BTC","timestamp":*}`)
		l.expect("depth", `{"pair":"ETH_BTC","update_id":0,"prev_update_id":null,"snapshot":true,`+
			`"timestamp":*,"sell":[],"buy":[],"checksum":0}`)
	})
}

// The checksum is of the best ten levels of each side after the batch, and stands in the last event
// of the batch.
func TestChecksumIsInLastEventOfBatch(t *testing.T) {
	var d market.Depth
	text := ""
	for i := range 12 {
		price := money.Price(1+i) * 1e8
		d.SellLevels = append(d.SellLevels,
			trading.Level{Price: 100e8 + price, Amount: money.Amount(1e8).Total()})
		if i < 3 {
			d.BuyLevels = append(d.BuyLevels,
				trading.Level{Price: 100e8 - price, Amount: money.Amount(1e8).Total()})
			text += fmt.Sprintf(":%d:1", 99-i)
		}
		if i < 10 {
			text += fmt.Sprintf(":%d:1", 101+i)
		}
	}
	units := []committed.BookUpdate{{UpdateID: 5}, {UpdateID: 6}, {UpdateID: 7}}
	w := writer{pair: "BTC_USDT", event: "depth", text: true}
	got := string(w.diffs(nil, units, &d))
	want := fmt.Sprintf(`"update_id":7,"prev_update_id":6,"timestamp":0,"sell":[],"buy":[],`+
		`"checksum":%d}]`, crc32.ChecksumIEEE([]byte(text[1:])))
	if !strings.HasSuffix(got, want) || strings.Count(got, "checksum") != 1 {
		t.Errorf("%q\ndoes not end with\n%s", got, want)
	}
	if got := string(w.diffs(nil, units, nil)); strings.Contains(got, "checksum") {
		t.Errorf("%q has a checksum in the middle of a batch", got)
	}
	w.text = false
	if got := string(w.diffs(nil, units, &d)); strings.Contains(got, "checksum") {
		t.Errorf("%q of diff has a checksum", got)
	}
}

func TestFullTradesNameBothOrders(t *testing.T) { bubble(t, testFullTradesNameBothOrders) }

func testFullTradesNameBothOrders(t *testing.T) {
	w := newWorld(t, nil)
	l := w.listen()
	l.subscribe("trades.full.BTC_USDT", "trades.full", "trades.ETH_USDT")
	first := w.place(0, "BTC_USDT", trading.Sell, 100, 1)
	second := w.place(1, "BTC_USDT", trading.Sell, 101, 1)
	taker := w.place(2, "BTC_USDT", trading.Buy, 101, 1.5)
	// each once, though two names cover the channel
	l.expect("trades.full", fmt.Sprintf(`{"id":1,"price":100,"pair":"BTC_USDT","type":"buy",`+
		`"timestamp":*,"amount":1,"taker_order":%d,"maker_order":%d}`, taker, first))
	l.expect("trades.full", fmt.Sprintf(`{"id":2,"price":101,"pair":"BTC_USDT","type":"buy",`+
		`"timestamp":*,"amount":0.5,"taker_order":%d,"maker_order":%d}`, taker, second))
	w.place(0, "ETH_USDT", trading.Buy, 7, 1)
	seller := w.place(1, "ETH_USDT", trading.Sell, 7, 1)
	got := map[string]string{}
	for range 2 {
		s := l.next()
		got[s.name] = string(s.body)
	}
	if !matches(fmt.Sprintf(`{"id":3,"price":7,"pair":"ETH_USDT","type":"sell","timestamp":*,`+
		`"amount":1,"taker_order":%d,"maker_order":%d}`, seller, seller-1),
		got["trades.full"]) || !matches(`{"id":3,"price":7,"pair":"ETH_USDT","type":"sell",`+
		`"timestamp":*,"amount":1}`, got["trades"]) {
		t.Error(got)
	}
}

// bbo sends only the best prices and the amounts there.
func TestBBOSendsOnlyBestPrices(t *testing.T) { bubble(t, testBBOSendsOnlyBestPrices) }

func testBBOSendsOnlyBestPrices(t *testing.T) {
	w := newWorld(t, nil)
	w.hub.opts.BBOInterval = time.Millisecond
	l := w.listen()
	l.say(`42["subscribe","bbo.BTC_USDT"]`)
	l.expect("subscribe.success", `{"channel":"bbo.BTC_USDT","timestamp":*}`)
	l.expect("bbo", `{"pair":"BTC_USDT","update_id":0,"timestamp":*,"buy":null,"sell":null}`)
	w.place(0, "BTC_USDT", trading.Sell, 100, 1)
	l.expect("bbo", `{"pair":"BTC_USDT","update_id":1,"timestamp":*,"buy":null,`+
		`"sell":{"price":100,"amount":1}}`)
	w.place(0, "BTC_USDT", trading.Sell, 101, 1) // worse than the best
	w.place(1, "BTC_USDT", trading.Buy, 99, 0.5)
	l.expect("bbo", `{"pair":"BTC_USDT","update_id":3,"timestamp":*,`+
		`"buy":{"price":99,"amount":0.5},"sell":{"price":100,"amount":1}}`)
	w.place(1, "BTC_USDT", trading.Buy, 98, 2)
	w.place(1, "BTC_USDT", trading.Buy, 99, 0.25) // more at the same price
	l.expect("bbo", `{"pair":"BTC_USDT","update_id":5,"timestamp":*,`+
		`"buy":{"price":99,"amount":0.75},"sell":{"price":100,"amount":1}}`)
	w.place(1, "BTC_USDT", trading.Buy, 97, 2) // not sent; a new subscriber starts after it
	other := w.listen()
	other.say(`42["subscribe","bbo.BTC_USDT"]`)
	other.expect("subscribe.success", `{"channel":"bbo.BTC_USDT","timestamp":*}`)
	if s := other.next(); !strings.Contains(string(s.body), `{"price":99,"amount":0.75}`) {
		t.Errorf("%s %s", s.name, s.body)
	}
	w.place(1, "BTC_USDT", trading.Buy, 100, 1)
	want := `{"pair":"BTC_USDT","update_id":7,"timestamp":*,"buy":{"price":99,"amount":0.75},` +
		`"sell":{"price":101,"amount":1}}`
	l.expect("bbo", want)
	other.expect("bbo", want)
}

// The newest candle is sent when it changes, and once more when it has closed.
func TestCandlesCloseOnce(t *testing.T) { bubble(t, testCandlesCloseOnce) }

func testCandlesCloseOnce(t *testing.T) {
	w := newWorld(t, nil)
	l := w.listen()
	l.say(`42["subscribe","candles.D.BTC_USDT","candles.7.BTC_USDT","candles","candles.BTC_USDT"]`)
	for _, name := range []string{"candles.7.BTC_USDT", "candles", "candles.BTC_USDT"} {
		l.expect("subscribe.error", `{"channel":"`+name+`","message":"unknown channel"}`)
	}
	l.expect("subscribe.success", `{"channel":"candles.D.BTC_USDT","timestamp":*}`)
	w.place(0, "BTC_USDT", trading.Sell, 100, 1) // there is no candle before the first trade
	w.place(1, "BTC_USDT", trading.Buy, 100, 0.5)
	l.expect("candles", `{"time":*,"open":100,"high":100,"low":100,"close":100,"volume":0.5,`+
		`"pair":"BTC_USDT","timeframe":"D","closed":false}`)
	// an update contains several candles: those of a batch, or since the last state
	channel := w.hub.channel(w.hub.names.topic(candles+family(market.Day), 0))
	show := func(days ...int64) {
		var list []market.Candle
		for _, day := range days {
			list = append(list, market.Candle{Time: day * 86_400, Open: 1e8, High: 3e8, Low: 1e8,
				Close: 2e8})
		}
		w.engine.Notify(channel, &committed.Watched{View: &committed.View{Candles: list}})
	}
	is := func(day int64, closed bool) {
		t.Helper()
		l.expect("candles", fmt.Sprintf(`{"time":%d,"open":1,"high":3,"low":1,"close":2,`+
			`"volume":0,"pair":"BTC_USDT","timeframe":"D","closed":%v}`, day*86_400, closed))
	}
	show(30_000)
	is(30_000, false)
	show(30_000) // as it was
	show(30_000, 30_002, 30_003)
	is(30_000, true)
	is(30_002, true)
	is(30_003, false)
	other := w.listen() // it begins with the newest
	other.subscribe("candles.D.BTC_USDT")
	show(30_003, 30_004)
	is(30_003, true)
	is(30_004, false)
	for _, want := range []string{`"time":2592259200,`, `"time":2592259200,`,
		`"time":2592345600,`} {
		if s := other.next(); !strings.Contains(string(s.body), want) {
			t.Errorf("%s %s, want %s", s.name, s.body, want)
		}
	}
}

// Between two flushes the newest state is kept, and all closed candles.
func TestFlushContainsClosedCandles(t *testing.T) { bubble(t, testFlushContainsClosedCandles) }

func testFlushContainsClosedCandles(t *testing.T) {
	s, c, _ := deafShard(newWorld(t, nil))
	at := s.hub.names.topic(candles, 0)
	c.set(&name{topic: at}, true)
	s.handle(&admitted{topic: at, clients: []*client{c}})
	for _, m := range []frames{{at, []byte("a1 "), nil}, {at, []byte("a2 "), nil},
		{at, []byte("b1 "), []byte("A ")}, {at, []byte("c1 "), []byte("B ")},
		{at, []byte("c2 "), nil}} {
		s.gather(&m)
	}
	s.distribute()
	got := ""
	for _, d := range c.out {
		got += fmt.Sprintf("%d:%s", d.Policy, d.Frames)
	}
	if want := fmt.Sprintf("%d:A B %d:c2 ", socketio.Final, socketio.Latest); got != want {
		t.Errorf("%q is sent, want %q", got, want)
	}
}

// Channels without clients so far have no actor: there are fifteen for each pair.
func TestChannelStartsWithFirstClient(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		started := func() (n int) {
			for i := range w.hub.channels {
				if w.hub.channels[i].Load() != nil {
					n++
				}
			}
			return n
		}
		if n := started(); n != 0 || len(w.hub.channels) != 15*3+1 {
			t.Errorf("%d of %d channels are started", n, len(w.hub.channels))
		}
		w.listen().subscribe("candles.60.BTC_USDT", "status")
		w.listen().subscribe("candles.60.BTC_USDT", "depth.ETH_BTC")
		if n := started(); n != 3 {
			t.Errorf("%d channels are started for three", n)
		}
	})
}
