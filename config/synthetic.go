package config

import (
	"fmt"
	"slices"

	"exchange/core/money"
)

// syntheticQuote is the quote currency of synthetic pairs.
const syntheticQuote = "USDT"

// maxSynthetic leaves room for other currencies in a wallet.
const maxSynthetic = 4_000

// syntheticCode returns the currency of a synthetic pair, counted from 1.
func syntheticCode(i int) string { return fmt.Sprintf("SYN%04d", i) }

// addSynthetic adds the pairs of synthetic_pairs, and their currencies, after the configured ones.
// A pair configured under such a name keeps its rules.
func (c *Config) addSynthetic() {
	if c.syntheticPairs < 1 || c.syntheticPairs > maxSynthetic {
		return // validate reports it
	}
	currencies, pairs := map[string]bool{}, map[string]bool{}
	for _, x := range c.Currencies {
		currencies[x.Code] = true
	}
	for _, x := range c.Pairs {
		pairs[x.Name] = true
	}
	c.Currencies, c.Pairs = slices.Clone(c.Currencies), slices.Clone(c.Pairs)
	add := func(code string) {
		if !currencies[code] {
			c.Currencies = append(c.Currencies, Currency{Code: code})
		}
	}
	add(syntheticQuote)
	for i := range c.syntheticPairs {
		base := syntheticCode(i + 1)
		add(base)
		if name := base + "_" + syntheticQuote; !pairs[name] {
			const coin = 100_000_000 // 1 in units of money.Amount
			c.Pairs = append(c.Pairs, Pair{Name: name, PricePrecision: 2,
				AmountPrecision:  money.FixedDecimals,
				MinimumOrderSize: coin / 100_000, MaximumOrderSize: 1_000_000 * coin,
				MinimumOrderValue: money.Amount(coin).Balance(),
				MarketCollar:      usualCollar, StopCollar: usualCollar})
		}
	}
}
