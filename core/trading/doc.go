// Package trading has the words that the order book, the journal's records, the store's rows and
// the API share. They are the side of an order, a resting order, and a price level, each a plain
// value. So a package can speak of orders without knowing how the book keeps them (core/matching).
//
//	trading.go  Side, Order, Level
package trading
