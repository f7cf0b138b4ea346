package main

import (
	"errors"
	"hash/crc32"
	"maps"
	"slices"
	"strings"

	"github.com/shopspring/decimal"
)

// An Account is what the account has, by the event own, and its trades since the maker began.
type Account struct {
	Sequence  uint64 // of the last event
	Known     bool
	Newest    uint64 // trade of the pair, of all accounts, as of the last snapshot
	LastTrade uint64 // the last one that is known
	Snapshots int
	Begin     decimal.Decimal // the coins of the first snapshot
	Balances  map[string]Balance
	Orders    map[uint64]Order
	Trades    map[uint64]Trade
	parts     []*Own
}

// An Own is the event own: what a record has changed, or the whole.
type Own struct {
	Snapshot    bool              `json:"snapshot"`
	Sequence    uint64            `json:"sequence"`
	Prev        uint64            `json:"prev"` // 0, for null: there was none
	Part, Parts int               `json:",omitempty"`
	Orders      []Order           `json:"orders"`
	Trades      []Trade           `json:"trades"`
	Balances    []Balance         `json:"balances"`
	LastTrades  map[string]uint64 `json:"last_trades"`
}

// An Order is a row of orders/own.
type Order struct {
	ID     uint64          `json:"id"`
	Side   string          `json:"type"`
	Status int             `json:"status"`
	Price  decimal.Decimal `json:"price"`
	Rest   decimal.Decimal `json:"amount"`
}

// A Trade is a row of exchanges/own.
type Trade struct {
	ID     uint64          `json:"id"`
	Side   string          `json:"my_side"`
	Amount decimal.Decimal `json:"amount"`
}

// A Balance is a row of wallets.
type Balance struct {
	Currency string          `json:"currency"`
	Balance  decimal.Decimal `json:"balance"`
	Reserve  decimal.Decimal `json:"reserve"`
}

const open = 1 // the status of an order

var errGap = errors.New("an event of the account is missing")

// Apply takes the next event. After an error the account is not known: subscribe again.
func (a *Account) Apply(e *Own, pair, coin string) error {
	if e.Part <= 1 {
		a.parts = a.parts[:0]
	}
	if a.parts = append(a.parts, e); e.Part < e.Parts {
		return nil // an event is applied with its last part
	}
	switch {
	case e.Snapshot:
		a.Orders, a.Newest = map[uint64]Order{}, e.LastTrades[pair]
		a.Snapshots++
		if !a.Known {
			a.LastTrade, a.Balances, a.Trades = a.Newest, map[string]Balance{}, map[uint64]Trade{}
		}
	case e.Prev != a.Sequence:
		return errGap
	}
	if len(a.Orders) > 1000 {
		maps.DeleteFunc(a.Orders, func(_ uint64, o Order) bool { return o.Status != open })
	}
	for _, p := range a.parts {
		for _, o := range p.Orders {
			a.Orders[o.ID] = o
		}
		for _, b := range p.Balances {
			a.Balances[b.Currency] = b
		}
		a.Traded(p.Trades)
	}
	if !a.Known {
		a.Begin, a.Known = a.Balances[coin].Balance, true
	}
	a.Sequence = e.Sequence
	return nil
}

// Traded takes trades that were received or read.
func (a *Account) Traded(rows []Trade) {
	for _, t := range rows {
		a.Trades[t.ID] = t
		a.LastTrade = max(a.LastTrade, t.ID)
	}
}

// Open returns an open order of a side.
func (a *Account) Open(side string) (Order, bool) {
	for _, o := range a.Orders {
		if o.Status == open && o.Side == side {
			return o, true
		}
	}
	return Order{}, false
}

// Shows reports whether the events have come to the answer to a command.
func (a *Account) Shows(order uint64, price decimal.Decimal) bool {
	o, ok := a.Orders[order]
	return ok && (o.Status != open || o.Price.Equal(price))
}

// A Book is the pair's order book by the channel depth. Prices and amounts are texts, as they come.
type Book struct {
	UpdateID  uint64
	Known     bool // there has been a whole book
	Buy, Sell map[string]string
}

// A Depth is the event depth.
type Depth struct {
	Snapshot     bool    `json:"snapshot"`
	UpdateID     uint64  `json:"update_id"`
	PrevUpdateID *uint64 `json:"prev_update_id"`
	Buy, Sell    []Level
	Checksum     *uint32 `json:"checksum"`
}

// A Level is what is offered at a price.
type Level struct{ Price, Amount string }

// Apply takes the next event. False: the book is not known. Subscribe again.
func (b *Book) Apply(d *Depth) bool {
	switch {
	case d.Snapshot:
		b.Buy, b.Sell, b.Known = map[string]string{}, map[string]string{}, true
	case !b.Known:
		return true // the whole book is in flight
	case d.PrevUpdateID == nil || *d.PrevUpdateID != b.UpdateID:
		b.Known = false
		return false
	}
	for side, levels := range map[*map[string]string][]Level{&b.Buy: d.Buy, &b.Sell: d.Sell} {
		for _, l := range levels {
			if (*side)[l.Price] = l.Amount; l.Amount == "0" {
				delete(*side, l.Price)
			}
		}
	}
	b.UpdateID = d.UpdateID
	b.Known = d.Checksum == nil || *d.Checksum == b.Checksum()
	return b.Known
}

// Prices returns the prices of a side, the lowest first.
func Prices(side map[string]string) []string {
	return slices.SortedFunc(maps.Keys(side), func(x, y string) int {
		return decimal.RequireFromString(x).Cmp(decimal.RequireFromString(y))
	})
}

// Checksum returns the checksum of the best ten levels of each side.
func (b *Book) Checksum() uint32 {
	buy, sell := Prices(b.Buy), Prices(b.Sell)
	slices.Reverse(buy)
	var texts []string
	for i := range 10 {
		if i < len(buy) {
			texts = append(texts, buy[i]+":"+b.Buy[buy[i]])
		}
		if i < len(sell) {
			texts = append(texts, sell[i]+":"+b.Sell[sell[i]])
		}
	}
	return crc32.ChecksumIEEE([]byte(strings.Join(texts, ":")))
}
