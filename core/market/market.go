package market

import (
	"exchange/core/matching"
	"exchange/core/money"
	"exchange/core/trading"
)

// A Market is the public side of one pair. The zero Market is a pair without history.
type Market struct {
	// UpdateID counts the records that traded, or changed a displayed amount or order position, by
	// 1 each. It never falls, not even over restarts, and identifies a state of the book.
	UpdateID uint64
	// TimeUs is the time of the last such record, in microseconds since the epoch.
	TimeUs int64

	tradeUs int64              // time of the newest trade; 0 before the first
	candles [FrameCount]Candle // the newest of each frame; zero before the first trade
	// minutes before the newest, within the newest trade's window
	past   ring
	before money.Price // price of the last trade before all of these minutes; 0: none

	buy, sell money.Price // best prices, 0 if none
	bestUs    int64       // time of their last change; 0: never
}

// Changed notes a record that traded, or changed the displayed book.
func (m *Market) Changed(timeUs int64) { m.UpdateID, m.TimeUs = m.UpdateID+1, timeUs }

// A Depth is a copy of a book, or of its best part, at one update id. It is in one of two forms:
// by level or by order. Best first, and oldest first at equal prices.
type Depth struct {
	TimeUs int64

	BuyLevels, SellLevels []trading.Level
	BuyOrders, SellOrders []trading.Order
}

// Levels copies the best n levels of each side into d; a negative n means all. d's memory is
// reused.
func (m *Market) Levels(b *matching.Book, buy, sell int, d *Depth) {
	d.TimeUs = m.TimeUs
	d.BuyOrders, d.SellOrders = d.BuyOrders[:0], d.SellOrders[:0]
	d.BuyLevels = b.AppendLevels(d.BuyLevels[:0], trading.Buy, buy)
	d.SellLevels = b.AppendLevels(d.SellLevels[:0], trading.Sell, sell)
}

// Orders copies the first n orders of each side into d; a negative n means all. d's memory is
// reused.
func (m *Market) Orders(b *matching.Book, buy, sell int, d *Depth) {
	d.TimeUs = m.TimeUs
	d.BuyLevels, d.SellLevels = d.BuyLevels[:0], d.SellLevels[:0]
	d.BuyOrders = b.AppendOrders(d.BuyOrders[:0], trading.Buy, buy)
	d.SellOrders = b.AppendOrders(d.SellOrders[:0], trading.Sell, sell)
}
