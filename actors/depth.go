package actors

import (
	"time"

	"exchange/core/market"
	"exchange/core/matching"
	"exchange/core/state"
)

// Depth answers are immutable and shared: however many ask, a book is copied at most once for each of
// its states, and a whole deep book at most once in deepAge.

const (
	// shownLevels is how deep an answer may reach and is always current.
	shownLevels = 100
	// shownOrders bounds the orders of such an answer that are copied for each state of the book.
	shownOrders = 2000
	// deepAge is how old an answer that reaches further may be.
	deepAge = 100 * time.Millisecond
)

// A depthCopy is the newest copy of a book in one form.
type depthCopy struct {
	depth *market.Depth
	at    time.Time
}

type depthKey struct {
	pair uint16
	kind ReadKind
	deep bool
}

// depth answers a read of a book.
func (c *committed) depth(r *Read, p *state.Pair) {
	key := depthKey{pair: p.Number, kind: r.Kind}
	key.deep = c.isDeep(r, p)
	k := c.depths[key]
	if k.depth == nil || k.depth.UpdateID != p.Market.UpdateID && (!key.deep || time.Since(k.at) > deepAge) {
		k = depthCopy{depth: new(market.Depth), at: time.Now()}
		most := -1
		if !key.deep && r.Kind == ReadLevels {
			most = shownLevels
		} else if !key.deep {
			most = shownOrders
		}
		if r.Kind == ReadLevels {
			p.Market.Levels(p.Book, most, most, k.depth)
		} else {
			p.Market.Orders(p.Book, most, most, k.depth)
		}
		c.depths[key] = k
	}
	r.Depth = k.depth
}

// isDeep reports whether an answer reaches beyond what is always current.
func (c *committed) isDeep(r *Read, p *state.Pair) bool {
	beyond := func(limit int, side matching.Side) bool {
		if r.Kind == ReadLevels {
			return (limit < 0 || limit > shownLevels) && p.Book.LevelCount(side) > shownLevels
		}
		return (limit < 0 || limit > shownOrders) && p.Book.Len() > shownOrders
	}
	return beyond(r.LimitBuy, matching.Buy) || beyond(r.LimitSell, matching.Sell)
}
