package config

import (
	"slices"
	"strings"
	"testing"
)

// shop is a configuration with texts that are not plain.
func shop(t *testing.T) *Config {
	t.Helper()
	c := Default()
	c.Currencies = []Currency{{Code: "BTC", Sign: "\u20bf\"\\'\u00a0\u200b",
		addressPattern: "^it's.*$"}, {Code: "USD", Sign: "$"}}
	c.Pairs = []Pair{{Name: "BTC_USD", PricePrecision: 2, AmountPrecision: 8, MinimumOrderSize: 1,
		MaximumOrderSize: 1_000_000_000, MakerFee: 1234, MarketCollar: usualCollar}}
	c.Limits.MaxFills = 77
	if err := c.Finish(); err != nil {
		t.Fatal(err)
	}
	return c
}

// A market part is read as it was written, into a configuration whose other options stay.
func TestAMarketPartIsReadAsItWasWritten(t *testing.T) {
	c := shop(t)
	text := c.Market()
	other := Default()
	other.Currencies, other.Pairs = demoCurrencies(), demoPairs()
	other.Listen, other.Limits.Reads = "127.0.0.1:1", 99
	if err := other.Finish(); err != nil {
		t.Fatal(err)
	}
	got, err := other.WithMarket(text)
	if err != nil {
		t.Fatal(err)
	}
	if string(got.Market()) != string(text) || !slices.Equal(got.Currencies, c.Currencies) ||
		!slices.Equal(got.Pairs, c.Pairs) || got.Limits.MaxFills != 77 {
		t.Errorf("%s\nis read as\n%s", text, got.Market())
	}
	if got.Listen != "127.0.0.1:1" || got.Limits.Reads != 99 {
		t.Error("other options have changed")
	}
	if other.Limits.MaxFills == 77 || len(other.Pairs) == 1 {
		t.Error("the configuration itself has changed")
	}
	if keys := got.MarketDiffers(text); keys != nil {
		t.Errorf("it differs in %q", keys)
	}
	want := []string{"currencies", "pairs", "limits.max_fills"}
	if keys := other.MarketDiffers(text); !slices.Equal(keys, want) {
		t.Errorf("it differs in %q, want %q", keys, want)
	}
	if keys := c.MarketDiffers([]byte("x: [")); len(keys) != len(agreedOptions()) {
		t.Errorf("what cannot be read differs in %q", keys)
	}
}

// A market part may have as many pairs as a configuration.
func TestAMarketPartHasRoomForAllPairs(t *testing.T) {
	c := shop(t)
	c.Pairs, c.syntheticPairs = nil, maxSynthetic
	c.addSynthetic()
	text := c.Market()
	if _, err := c.WithMarket(text); err != nil {
		t.Errorf("%d pairs, %d bytes: %v", len(c.Pairs), len(text), err)
	}
}

// A program that has an option more reads what an older one has written.
func TestAMarketPartThatLacksAnOptionHasItsDefault(t *testing.T) {
	c := shop(t)
	text := strings.Replace(string(c.Market()), "  max_fills: 77\n", "", 1)
	if got, err := c.WithMarket([]byte(text)); err != nil ||
		got.Limits.MaxFills != Default().Limits.MaxFills {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAMarketPartThatCannotBeReadAgainIsFound(t *testing.T) {
	c := shop(t)
	if err := c.checkMarket(); err != nil {
		t.Error(err)
	}
	c.Currencies[0].addressPattern = "^a\n  b$"
	if err := c.checkMarket(); err == nil {
		t.Error("a pattern of two lines is not found")
	}
}

func TestAHostileMarketPartIsRefused(t *testing.T) {
	c := shop(t)
	text := string(c.Market())
	swapped := func(a, b string) string { return strings.Replace(text, a, b, 1) }
	for what, x := range map[string]struct{ text, want string }{
		"nothing":        {"", "lacks pairs"},
		"another option": {text + "store: pebble:/elsewhere\n", "store is no option of the"},
		"an unknown one": {text + "x: 1\n", "unknown key"},
		"no pairs":       {text[strings.Index(text, "limits:"):], "lacks"},
		"a nested text":  {"pairs:\n" + strings.Repeat("[\n", 1000), "no option of one"},
		"one in a value": {text + "x: [[[\n", "no option of one"},
		"a wrong value":  {swapped("max_fills: 77", "max_fills: x"), "max_fills"},
		"out of range":   {swapped("max_fills: 77", "max_fills: 0"), "max_fills"},
		"a wrong pair":   {swapped("BTC_USD", "BTC_EUR"), "EUR"},
		"no YAML":        {"pairs:\n    x:\n  y: 'z\n", "not YAML"},
		"too long":       {text + strings.Repeat("#", MaxMarket), "at most"},
	} {
		if _, err := c.WithMarket([]byte(x.text)); err == nil ||
			!strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
