package metrics

// Bounds of series.
const (
	ShownPairs      = shownPairs
	ShownCurrencies = shownCurrencies
)
