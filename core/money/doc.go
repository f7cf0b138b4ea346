// Package money holds the exact numbers of the exchange and turns them into text and back.
//
// Every kind of number has a type of its own, so that the compiler refuses to mix them:
//
//	Price    int64, units of 1e-8: quote currency per one unit of the base currency
//	Amount   int64, units of 1e-8: a quantity of one currency, usually a pair's base
//	Value    128 bits, units of 1e-16: price x amount, exact, in the quote currency
//	Balance  128 bits, units of 1e-16: what an account holds or reserves of one currency
//	Total    128 bits, units of 1e-8: a sum of Amounts, such as a price level or a volume
//
// Price x amount needs 16 fractional digits, and a Balance has them: no product is ever rounded;
// only Rate.FeeRoundedUp rounds. All values are unsigned in meaning. Arithmetic is checked: an
// overflow, or taking away more than there is, panics with "BUG:", because callers compare before
// they subtract, and MaxSupply keeps sums far from the edge.
//
// Text is plain decimal: no exponent, no trailing zeros, no sign. Parsing takes exponents too.
// Everything on the order path appends to a caller's buffer and allocates nothing.
package money
