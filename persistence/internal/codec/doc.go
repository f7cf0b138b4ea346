// Package codec holds the code that both stores share: the binary form of history rows, checks of
// written values, filters of queries, and the framing of snapshots.
//
// A row starts with a version byte; numbers are uvarints. The id is not part of a row: it precedes
// the row, big-endian (Redis), or is in its key (Pebble). A checksum (crc32c) follows each row and
// also covers its list and its id. An unknown version, a short row or a wrong checksum is
// persistence.ErrCorrupt, never a guess.
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
