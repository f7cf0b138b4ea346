package spec

import (
	"math/big"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// A Deposit is money that came in.
type Deposit struct {
	event.Deposit
	Seq    uint64 // of its record
	TimeUs int64
}

// A Trade is one trade of a record's order, which is the taker.
type Trade struct {
	Seq    uint64 // of its record
	TimeUs int64
	Pair   uint16
	Side   trading.Side
	Taker  uint32 // account
	Order  uint64
	event.Trade
}

// A Closed order is no longer open; Order is its state just before.
type Closed struct {
	Order
	Seq      uint64 // of the record that closed it
	Status   uint8
	ClosedUs int64
}

// An Action is a record caused by an operator.
type Action struct {
	Seq      uint64
	TimeUs   int64
	Operator string
}

// Closed returns an order that is no longer open.
func (m *Exchange) Closed(id uint64) (c Closed, done bool) {
	at, done := m.closed[id]
	if done {
		c = m.ClosedOrders[at]
	}
	return c, done
}

func (m *Exchange) close(o *Order, status uint8, timeUs int64) {
	m.closed[o.ID] = len(m.ClosedOrders)
	m.ClosedOrders = append(m.ClosedOrders, Closed{*o, m.Seq, status, timeUs})
	if !o.ClientID.IsZero() {
		m.closeID(o, timeUs)
	}
}

// A Candle sums up the trades of one pair in one period.
type Candle struct {
	Time                   int64 // start of the period, seconds since the epoch
	Open, High, Low, Close money.Price
	Volume                 money.Total
}

// Candles returns the candles of some trades of one pair, oldest first, by periods in seconds.
func Candles(trades []Trade, seconds int64) (list []Candle) {
	volume := new(big.Int)
	for i := range trades {
		t := &trades[i]
		at := t.TimeUs / 1e6 / seconds * seconds
		if n := len(list); n == 0 || list[n-1].Time != at {
			volume.SetInt64(0)
			list = append(list, Candle{Time: at, Open: t.Price, High: t.Price, Low: t.Price})
		}
		c := &list[len(list)-1]
		volume.Add(volume, big.NewInt(int64(t.Amount)))
		c.High, c.Low, c.Close = max(c.High, t.Price), min(c.Low, t.Price), t.Price
		c.Volume = money.TotalFromBits(halves(volume))
	}
	return list
}
