package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/shopspring/decimal"
)

// A Book is one pair's order book as the stream sends it. After each Apply without an error it is
// exactly what GET /api/v1/orderbook/<pair>/?group=1 answers with X-Update-Id equal to UpdateID.
type Book struct {
	UpdateID  uint64
	Known     bool // there has been a whole book
	Sell, Buy map[string]decimal.Decimal
}

// A Diff is the event depth.diff. Prices are kept as text: equal prices have equal texts.
type Diff struct {
	Pair         string  `json:"pair"`
	UpdateID     uint64  `json:"update_id"`
	PrevUpdateID *uint64 `json:"prev_update_id"`
	Snapshot     bool    `json:"snapshot"`
	Sell         []Level `json:"sell"`
	Buy          []Level `json:"buy"`
}

// A Level is what is offered at a price.
type Level struct {
	Price  json.Number     `json:"price"`
	Amount decimal.Decimal `json:"amount"`
}

// Apply takes the next event. After an error the book is not known: subscribe again, and the next
// event is the whole book.
func (b *Book) Apply(d *Diff) error {
	switch {
	case d.Snapshot: // the whole book: at the beginning, and after a loss
		b.Sell, b.Buy, b.Known = map[string]decimal.Decimal{}, map[string]decimal.Decimal{}, true
	case !b.Known:
		return nil // the whole book is in flight
	case d.PrevUpdateID == nil || *d.PrevUpdateID != b.UpdateID:
		b.Known = false
		return fmt.Errorf("update %d does not follow update %d", d.UpdateID, b.UpdateID)
	}
	set(b.Sell, d.Sell)
	set(b.Buy, d.Buy)
	b.UpdateID = d.UpdateID
	return nil
}

// set notes what is at each price now; 0 is nothing.
func set(side map[string]decimal.Decimal, levels []Level) {
	for _, l := range levels {
		if l.Amount.IsZero() {
			delete(side, l.Price.String())
		} else {
			side[l.Price.String()] = l.Amount
		}
	}
}

// Best are the highest price to buy and the lowest to sell, "-" if there is none.
func (b *Book) Best() (buy, sell string) {
	prices := func(side map[string]decimal.Decimal) []string {
		return slices.SortedFunc(maps.Keys(side), func(x, y string) int {
			return decimal.RequireFromString(x).Cmp(decimal.RequireFromString(y))
		})
	}
	buy, sell = "-", "-"
	if p := prices(b.Buy); len(p) > 0 {
		buy = p[len(p)-1]
	}
	if p := prices(b.Sell); len(p) > 0 {
		sell = p[0]
	}
	return buy, sell
}
