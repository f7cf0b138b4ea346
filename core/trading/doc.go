// Package trading has the words that the order book, the journal's records, the store's rows and
// the API share. They are the side of an order, a resting order, a price level, and an order's
// instructions, each a plain value. So a package can speak of orders without knowing how the book
// keeps them (core/matching).
//
//	trading.go       Side, Order, Level
//	instructions.go  Instructions and their words; Instructed, with what became of them
//	codec.go         instructions as bytes
//	prices.go        the furthest price of a band or a collar
package trading
