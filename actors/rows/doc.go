// Package rows says which rows of the history a journal record gives rise to. The live engine
// writes them with it, and an audit derives the same rows anew and looks for them in the store.
//
//	rows.go   a record's orders, trades, deposits, withdrawals and actions; a candle's row
//	words.go  an operator's record in words, for the log of actions
//	said.go   those words, said for people
package rows
