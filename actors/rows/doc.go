// Package rows derives the history rows of a journal record. The live engine writes them with it,
// and an audit derives them again and compares them with the store.
//
//	rows.go   a record's orders, trades, deposits, withdrawals and actions; a candle's row
//	words.go  an operator's record in words, for the log of actions
//	said.go   those words, phrased for people
package rows
