// Package money holds the exact numbers of the exchange and turns them into text and back.
//
// Every kind of number has a type of its own, so that the compiler refuses to mix them:
//
//	Price    int64, units of 1e-8: quote currency per one unit of the base currency
//	Amount   int64, units of 1e-8: a quantity of one currency, usually a pair's base
//	Value    128 bits, units of 1e-16: price x amount, exact, in the quote currency
//	Balance  128 bits, units of 1e-16: an account's money of one currency, or a reserve of it
//	Total    128 bits, units of 1e-8: a sum of Amounts, such as a price level or a volume
//
// Price x amount needs 16 fractional digits, and a Balance has them. So no product is ever rounded;
// only Rate.FeeRoundedUp rounds. All values are unsigned in meaning. Arithmetic is checked: an
// overflow, or a negative difference, panics with "BUG:". Callers compare before they subtract, and
// MaxSupply keeps sums far from the edge.
//
// Text is plain decimal: no exponent, no trailing zeros, no sign. Parsing accepts exponents too.
// Everything on the order path appends to a caller's buffer and allocates nothing.
//
//	money.go    the types and their arithmetic
//	rate.go     rates, and fees rounded up
//	text.go     text in, text out
//	decimal.go  the bridge to shopspring/decimal
package money
