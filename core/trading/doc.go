// Package trading holds the types that the order book, the journal's records, the store's rows and
// the API share: the side of an order, a resting order, a price level, and an order's instructions.
// They are plain values, so a package can use them without core/matching.
//
//	trading.go       Side, Order, Level
//	instructions.go  Instructions; Instructed, with their outcome
//	codec.go         instructions as bytes
//	prices.go        the furthest price of a band or a collar
package trading
