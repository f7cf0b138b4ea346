package encode

import (
	"encoding/json"
	"testing"

	"exchange/core/market"
	"exchange/core/money"
	"exchange/core/trading"
)

func TestTextIsJSON(t *testing.T) {
	for _, s := range []string{"", "a", `"\`, "\x00\x1f\x7f", "ä€😀", "<script>&", "\xff", "a\xc3"} {
		var back string
		if err := json.Unmarshal(Text(nil, s), &back); err != nil {
			t.Errorf("%q: %v", s, err)
		} else if want := string([]rune(s)); back != want {
			t.Errorf("%q comes back as %q", s, back)
		}
	}
}

func TestSecondsHaveNoZerosAtTheirEnd(t *testing.T) {
	for us, want := range map[int64]string{0: "0", 1: "0.000001", 1_000_000: "1", 1_100_000: "1.1",
		1_700_000_000_123_450: "1700000000.12345", 999_999: "0.999999"} {
		if got := string(Seconds(nil, us)); got != want {
			t.Errorf("%d us are %s, want %s", us, got, want)
		}
	}
}

func TestFormsOfTheMarket(t *testing.T) {
	for _, c := range [][2]string{
		{string(Side(nil, trading.Sell)), `"sell"`},
		{string(Ticker(nil, "BTC_USDT",
			&market.Ticker{TimeUs: 1_500_000, Last: 5e8, Diff: -25e6, High: 6e8, Low: 4e8,
				Sell: 7e8})),
			`{"timestamp":1.5,"pair":"BTC_USDT","last":5,"diff":-0.25,"vol":0,"high":6,"low":4,"buy":0,"sell":7}`},
		{string(Candle(nil, &market.Candle{Time: 60, Open: 2e8, High: 3e8, Low: 1e8, Close: 25e7,
			Volume: money.Amount(5e7).Total()})),
			`{"time":60,"open":2,"high":3,"low":1,"close":2.5,"volume":0.5`},
		{string(Levels(nil, nil)), `[]`},
		{string(Levels(nil, []trading.Level{{Price: 1},
			{Price: 5e8, Amount: money.Amount(25e6).Total()}})),
			`[{"price":0.00000001,"amount":0},{"price":5,"amount":0.25}]`},
		{string(Trade(nil, 7, 5e8, "A_B", trading.Buy, 1_000_000, 1e8)),
			`{"id":7,"price":5,"pair":"A_B","type":"buy","timestamp":1,"amount":1`},
	} {
		if c[0] != c[1] {
			t.Errorf("got  %s\nwant %s", c[0], c[1])
		}
	}
}
