package config

import (
	"slices"
	"strings"
	"testing"
)

func codes(c *Config) (all []string) {
	for _, x := range c.Currencies {
		all = append(all, x.Code)
	}
	return all
}

func names(c *Config) (all []string) {
	for _, x := range c.Pairs {
		all = append(all, x.Name)
	}
	return all
}

func TestSyntheticPairsFollowConfiguredOnes(t *testing.T) {
	with := func(file string, flags map[string]string) *Config {
		t.Helper()
		src := Sources{Flags: flags}
		if file != "" {
			src.File = write(t, file)
		}
		return must(Load(src))
	}
	two := map[string]string{"synthetic_pairs": "2"}
	c := with(market, two)
	if got := codes(c); !slices.Equal(got, []string{"BTC", "USDT", "SYN0001", "SYN0002"}) {
		t.Error(got)
	}
	if got := names(c); !slices.Equal(got, []string{"BTC_USDT", "SYN0001_USDT", "SYN0002_USDT"}) {
		t.Error(got)
	}
	if !strings.Contains(c.Summary(), "synthetic_pairs=2") {
		t.Error(c.Summary())
	}
	if c := with("", two); !slices.Equal(names(c), []string{"SYN0001_USDT", "SYN0002_USDT"}) ||
		codes(c)[0] != "USDT" {
		t.Error(names(c), codes(c))
	}
	if c := with("", map[string]string{"synthetic_pairs": "2",
		"demo": "true"}); len(c.Pairs) != 5 || len(c.Currencies) != 5 {
		t.Error(names(c), codes(c))
	}
	// A configured one keeps its rules, and Finish may run again.
	own := `currencies: [{code: SYN0002, sign: x}, {code: USDT}]
pairs: [{name: SYN0002_USDT, price_precision: 3, amount_precision: 8, minimum_order_size: 0.1, maximum_order_size: 1}]
`
	c = with(own, two)
	if err := c.Finish(); err != nil {
		t.Error(err)
	}
	if !slices.Equal(names(c), []string{"SYN0002_USDT", "SYN0001_USDT"}) ||
		c.Pairs[0].PricePrecision != 3 ||
		!slices.Equal(codes(c), []string{"SYN0002", "USDT", "SYN0001"}) {
		t.Error(names(c), codes(c))
	}
	for value, say := range map[string]string{"4001": "synthetic_pairs is 4,001",
		"-1": "synthetic_pairs is -1", "many": `synthetic_pairs is "many"`} {
		if _, err := Load(Sources{File: write(t, market),
			Flags: map[string]string{"synthetic_pairs": value}}); err == nil ||
			!strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v", value, err)
		}
	}
	if c := with(market, map[string]string{"synthetic_pairs": "4000"}); len(c.Pairs) != 4001 {
		t.Error(len(c.Pairs))
	}
}
