package metrics

// Bounds of series, for tests of gateway.
const (
	ShownPairs      = shownPairs
	ShownCurrencies = shownCurrencies
)
