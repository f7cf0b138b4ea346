package config

import "exchange/core/money"

// Demo returns the configuration of `serve --demo` before flags and environment: the defaults with
// the demo's currencies and pairs. validate restricts it to loopback addresses, since its keys are
// public.
func Demo() *Config {
	c := Default()
	c.Demo = true
	c.Currencies, c.Pairs = demoCurrencies(), demoPairs()
	return c
}

func demoCurrencies() []Currency {
	const (
		bitcoin  = `^(bc1[02-9ac-hj-np-z]{11,87}|[13][1-9A-HJ-NP-Za-km-z]{24,34})$`
		ethereum = `^0x[0-9A-Fa-f]{40}$`
	)
	return []Currency{{Code: "BTC", Sign: "₿", addressPattern: bitcoin},
		{Code: "ETH", Sign: "Ξ", addressPattern: ethereum},
		{Code: "USDT", Sign: "₮", addressPattern: ethereum}}
}

func demoPairs() []Pair {
	const coin = 100_000_000 // 1 in units of money.Amount
	pair := func(name string, pricePrecision int, leastValue money.Amount) Pair {
		return Pair{Name: name, PricePrecision: pricePrecision,
			AmountPrecision:  money.FixedDecimals,
			MinimumOrderSize: coin / 100_000, MaximumOrderSize: 1_000_000 * coin,
			MinimumOrderValue: leastValue.Balance(), MarketCollar: usualCollar,
			StopCollar: usualCollar}
	}
	return []Pair{pair("BTC_USDT", 2, coin), pair("ETH_USDT", 2, coin),
		pair("ETH_BTC", 6, coin/100_000)}
}
