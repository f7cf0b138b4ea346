package config

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// shop is a configuration with texts that need quoting.
func shop(t *testing.T) *Config {
	t.Helper()
	c := Default()
	c.Currencies = []Currency{{Code: "BTC", Sign: "\u20bf\"\\'\u00a0\u200b",
		addressPattern: "^it's.*$"}, {Code: "USD", Sign: "$"}}
	c.Pairs = []Pair{{Name: "BTC_USD", PricePrecision: 2, AmountPrecision: 8, MinimumOrderSize: 1,
		MaximumOrderSize: 1_000_000_000, MakerFee: 1234, MarketCollar: usualCollar}}
	c.Limits.MaxFills = 77
	worked(t, c.Finish())
	return c
}

// A market part round-trips into a configuration whose other options stay.
func TestAMarketPartRoundTrips(t *testing.T) {
	c := shop(t)
	text := c.Market()
	other := Default()
	other.Currencies, other.Pairs = demoCurrencies(), demoPairs()
	other.Listen, other.Limits.Reads = "127.0.0.1:1", 99
	worked(t, other.Finish())
	got := must(other.WithMarket(text))
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

// A newer program with more options reads an older one's text. Missing options come from the file,
// and do not differ.
func TestAMarketPartOfAnOlderFormatLeavesTheRestToTheFile(t *testing.T) {
	c, other := shop(t), shop(t)
	other.Limits.MaxFills, other.Limits.PublicRate, other.Stream.IntervalMs = 78, 7, 9
	for _, key := range []string{"limits.public_rate", "stream.interval_ms"} {
		o := optionByKey[key]
		o.market++ // of a format that only this test has
		t.Cleanup(func() { o.market-- })
	}
	text := other.MarketOf(firstMarket)
	for _, key := range []string{"public_rate", " interval_ms"} {
		if strings.Contains(string(text), key) {
			t.Errorf("an older program cannot read\n%s", text)
		}
	}
	if list := other.Markets(); len(list) != 2 || !bytes.Equal(list[0], other.Market()) ||
		!bytes.Equal(list[1], text) {
		t.Errorf("the texts of the formats are %s", list)
	}
	got, err := c.WithMarket(text)
	if err != nil || got.Limits.MaxFills != 78 || got.Limits.PublicRate != 100 ||
		got.Stream.IntervalMs != 100 {
		t.Errorf("%+v, %v", got, err)
	}
	if keys := c.MarketDiffers(text); !slices.Equal(keys, []string{"limits.max_fills"}) {
		t.Errorf("it differs in %q", keys)
	}
	if keys := other.MarketDiffers(text); keys != nil {
		t.Errorf("it differs in %q", keys)
	}
	want := []string{"limits.public_rate", "limits.max_fills", "stream.interval_ms"}
	if keys := c.MarketDiffers(other.Market()); !slices.Equal(keys, want) {
		t.Errorf("it differs in %q, want %q", keys, want)
	}
	whole, err := c.WithMarket(other.Market())
	if err != nil || whole.Limits.PublicRate != 7 || whole.Stream.IntervalMs != 9 {
		t.Errorf("%+v, %v", whole, err)
	}
}

// Deposit instructions are the node's own, whatever the nodes agree on.
func TestAMarketPartLeavesDepositInstructionsToTheFile(t *testing.T) {
	c, other := shop(t), shop(t)
	c.Currencies[0].DepositInstructions = "here"
	other.Currencies[0].DepositInstructions = "there"
	if keys := c.MarketDiffers(other.Market()); keys != nil {
		t.Errorf("it differs in %q", keys)
	}
	got, err := c.WithMarket(other.Market())
	if err != nil || got.Currencies[0].DepositInstructions != "here" {
		t.Errorf("%+v, %v", got, err)
	}
}

// Each format keeps its options: an added option is part of the next format.
func TestTheOptionsOfAFormatStayThose(t *testing.T) {
	all := map[uint8]int{}
	for _, o := range agreedOptions() {
		all[o.market]++
	}
	if len(all) != 1 || all[firstMarket] != 31 {
		t.Errorf("the formats have these numbers of options: %v", all)
	}
}

// A limit of the market part above the machine's own limits is refused, with the reason.
func TestAMarketPartFitsTheMachine(t *testing.T) {
	c, other := shop(t), shop(t)
	c.Limits.InFlight, c.Limits.InFlightPerAccount, c.Limits.InFlightCancels = 100, 50, 10
	_, err := c.WithMarket(other.Market())
	if err == nil || !strings.Contains(err.Error(), "limits.in_flight_per_account is 256: it must "+
		"not be above limits.in_flight, which is 100") {
		t.Error(err)
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
		"too long":       {text + strings.Repeat("#", maxMarket), "at most"},
	} {
		if _, err := c.WithMarket([]byte(x.text)); err == nil ||
			!strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
