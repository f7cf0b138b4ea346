// Package codec has the code that both stores share: the binary form of history rows, checks of
// written values, filters of queries, and the framing of snapshots.
//
// A row starts with a version byte; numbers are uvarints. The id is not part of a row: it stands in
// front of it, big-endian (Redis), or in its key (Pebble). Behind a row a store puts a checksum
// (crc32c) that covers its list and its id too. An unknown version, a short row or a wrong checksum
// is persistence.ErrCorrupt, never a guess.
//
//	rows.go      trades and orders, and the marks of trades
//	funds.go     deposits, references, wallets, withdrawals
//	candle.go    candles
//	action.go    operators' actions
//	seal.go      checksums that cover a row's place
//	decoder.go   reading a row
//	check.go     bounds of written values and of queries
//	snapshot.go  images in chunks
//	token.go     owners' tokens, and the errors that name an owner or a place
package codec
