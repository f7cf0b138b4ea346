// Package demomarket keeps the demo's market alive. Two accounts of its own trade on every pair, so
// that a page has something to show and an order of a visitor meets others.
//
//	m, err := demomarket.Open(engine) // makes the accounts, and fills empty books
//	m.Run(ctx)                        // trades until ctx ends or the engine does
//
// The maker, market-1, quotes on both sides around a fair price, and the taker, market-2, takes
// from it. The fair price wanders and reverts to a mean, within a band (assets). Both use ordinary
// orders, cancels and deposits: at most two records a second, and at most 24 open orders on a pair,
// one for each level of a side. Their balances return by trades into the other direction, otherwise
// by a deposit.
//
// A fresh demo has a past: PlayPast plays a day of trading before the first visitor, by orders of
// the same accounts, while the engine's clock is set back (Clock). In a cluster the leader plays
// it, and the next one continues where it broke off.
//
//	accounts.go  the accounts of visitors, and their keys
//	quotes.go  fair prices, and the choice of the next action: pure, by a source of chance
//	market.go  the accounts, and the loop that does it
//	past.go    the day before the first start
package demomarket
