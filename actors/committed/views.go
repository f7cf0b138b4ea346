package committed

import (
	"sync"
	"sync/atomic"
	"time"

	"exchange/core/market"
	"exchange/core/matching"
	"exchange/core/state"
	"exchange/core/trading"
)

// Books, tickers and charts are answered from views, because all clients ask for them. A view is
// immutable and shared. It is made at most once for each state of the pair, and only on demand, and
// caches its JSON. While it is current, handlers use it without asking an actor.

const (
	// shownLevels is the depth up to which answers are always current.
	shownLevels = 100
	// shownOrders is the number of orders of a side up to which answers are always current, even
	// beyond shownLevels. mostShownOrders bounds the orders of the top levels, because they are
	// copied for each requested state of the book: a fifth of a millisecond. It is the only
	// exception to shownLevels.
	shownOrders, mostShownOrders = 2000, 10_000
	// deepAge is the maximum age of a deeper answer.
	deepAge = 100 * time.Millisecond
	// depthKept is the minimum lifetime of an unused copy of a book; at most twice that. A copy and
	// its JSON take more memory than the book, which may have shrunk.
	depthKept = 10 * time.Second
)

// A ViewKind is the kind of public state in a view.
type ViewKind uint8

// The views of a pair.
const (
	ViewLevels  ViewKind = iota // its book by level
	ViewOrders                  // its book by order
	ViewTicker                  // its ticker now
	ViewCandles                 // its newest candles of a frame
)

// A ViewQuestion asks for a view. A view that is deeper than the always current part of a book may
// be up to deepAge old.
type ViewQuestion struct {
	Pair                uint16
	Kind                ViewKind
	frame               market.Frame // ViewCandles
	LimitBuy, LimitSell int          // of a book: entries of each side; negative: all

	Seq  uint64
	View *View // shared: read only
}

var viewQuestions pool[ViewQuestion]

func (q *ViewQuestion) from(c *Side) (needs uint64) {
	q.Seq = c.state.Seq()
	c.view(q)
	return 0
}

// A View is one public state of a pair. Its parts are shared: read only.
type View struct {
	UpdateID uint64
	Depth    *market.Depth   // ViewLevels, ViewOrders; may have more than requested
	Ticker   market.Ticker   // ViewTicker
	Candles  []market.Candle // ViewCandles: the newest, oldest of them first
	Older    bool            // ViewCandles: the history has older ones

	at        time.Time
	buy, sell reach // Depth: the always current part of the copied book
	minute    int64 // ViewTicker: epoch minute, after which the view is not current

	recentlyUsed atomic.Bool // used by a client since the last forgetDepths

	keep sync.Once
	kept any // of the view's reader
}

// Kept returns the value that the view's reader caches in it, such as its JSON. make makes the
// value for the first caller.
func (v *View) Kept(make func() any) any {
	v.keep.Do(func() { v.kept = make() })
	return v.kept
}

// A viewCache holds the newest views of one pair. The committed actor writes it; handlers read it.
type viewCache struct {
	version atomic.Uint64 // update id of the committed state
	views   [viewSlots]atomic.Pointer[View]
}

// Slots of a viewCache. Charts have one for each frame, from slotChart on.
const (
	slotTicker = iota
	slotLevels
	slotDeepLevels
	slotOrders
	slotDeepOrders
	slotChart
	viewSlots = slotChart + market.FrameCount
)

// find returns a valid view, nil if there is none. current: the cache is up to date with everything
// released.
func (b *viewCache) find(kind ViewKind, frame market.Frame, limitBuy, limitSell int,
	current bool) *View {
	now := time.Now()
	switch kind {
	case ViewTicker:
		if v := b.views[slotTicker].Load(); current && v != nil && v.UpdateID == b.version.Load() &&
			v.minute == now.Unix()/60 {
			return v
		}
	case ViewCandles:
		if v := b.views[slotChart+int(frame)].Load(); current && v != nil &&
			v.UpdateID == b.version.Load() {
			return v
		}
	default:
		slot, deep := slotsOf(kind)
		if v := b.views[slot].Load(); current && v != nil && v.UpdateID == b.version.Load() &&
			!v.isDeep(limitBuy, limitSell) {
			return v.taken()
		}
		if v := b.views[deep].Load(); v != nil && v.isDeep(limitBuy, limitSell) &&
			(now.Sub(v.at) <= deepAge || current && v.UpdateID == b.version.Load()) {
			return v.taken()
		}
	}
	return nil
}

// taken marks the view as used by a client.
func (v *View) taken() *View {
	if !v.recentlyUsed.Load() { // a write would invalidate the cache line of other processors
		v.recentlyUsed.Store(true)
	}
	return v
}

// forgetDepths drops the copies of books that no client used since the last call.
func (c *Side) forgetDepths(now time.Time) {
	if now.Sub(c.forgot) < depthKept {
		return
	}
	c.forgot = now
	for _, b := range c.caches {
		for _, slot := range [...]int{slotLevels, slotDeepLevels, slotOrders, slotDeepOrders} {
			if v := b.views[slot].Load(); v != nil && !v.recentlyUsed.Swap(false) {
				b.views[slot].Store(nil)
			}
		}
	}
}

// isDeep reports whether an answer exceeds the always current part.
func (v *View) isDeep(limitBuy, limitSell int) bool {
	return v.buy.endsBefore(limitBuy) || v.sell.endsBefore(limitSell)
}

// A reach is the always current part of one side of a book.
type reach struct {
	most int  // levels or orders
	more bool // the side may have more
}

func (r reach) endsBefore(limit int) bool { return r.more && (limit < 0 || limit > r.most) }

func reachOf(kind ViewKind, b *matching.Book, side trading.Side) reach {
	deep := b.LevelCount(side) > shownLevels
	if kind == ViewLevels {
		return reach{shownLevels, deep}
	}
	levels, orders := 0, 0
	for l := range b.Levels(side) {
		levels, orders = levels+1, orders+l.Orders
		if levels == shownLevels || orders > mostShownOrders {
			break
		}
	}
	most := min(max(orders, shownOrders), mostShownOrders)
	return reach{most, (deep || orders > most) && b.Len() > most}
}

func slotsOf(kind ViewKind) (slot, deep int) {
	if kind == ViewLevels {
		return slotLevels, slotDeepLevels
	}
	return slotOrders, slotDeepOrders
}

// view answers with the cached view, or with a new one that it caches.
func (c *Side) view(q *ViewQuestion) {
	if q.View = c.caches[q.Pair-1].find(q.Kind, q.frame, q.LimitBuy, q.LimitSell,
		true); q.View != nil {
		return
	}
	c.newView(q)
}

// newView makes a view, even if the cache has one.
func (c *Side) newView(q *ViewQuestion) {
	p, b := c.state.Pair(q.Pair), c.caches[q.Pair-1]
	v := &View{UpdateID: p.Market.UpdateID, at: time.Now()}
	slot := slotTicker
	switch q.Kind {
	case ViewTicker:
		v.Ticker, v.minute = p.Market.Ticker(v.at.UnixMicro()), v.at.Unix()/60
	case ViewCandles:
		slot = slotChart + int(q.frame)
		v.Candles, v.Older = c.charts[q.Pair-1][q.frame].newest(c.candles)
	default:
		slot = v.copyDepth(q, p, b)
	}
	b.views[slot].Store(v.taken())
	q.View = v
}

// room returns an empty list with capacity for the entries of last, and a few more.
func room[T any](last []T) []T {
	if len(last) == 0 {
		return nil
	}
	return make([]T, 0, len(last)+len(last)/32+8)
}

// copyDepth copies the book, and returns the slot of the copy.
func (v *View) copyDepth(q *ViewQuestion, p *state.Pair, b *viewCache) int {
	slot, deep := slotsOf(q.Kind)
	v.buy, v.sell = reachOf(q.Kind, p.Book, trading.Buy), reachOf(q.Kind, p.Book, trading.Sell)
	buy, sell := v.buy.most, v.sell.most
	if v.isDeep(q.LimitBuy, q.LimitSell) {
		slot, buy, sell = deep, -1, -1
	}
	v.Depth = new(market.Depth)
	// one allocation of about the last size: a deep book takes megabytes
	if last := b.views[slot].Load(); last != nil {
		d := last.Depth
		v.Depth.BuyLevels, v.Depth.SellLevels = room(d.BuyLevels), room(d.SellLevels)
		v.Depth.BuyOrders, v.Depth.SellOrders = room(d.BuyOrders), room(d.SellOrders)
	}
	if q.Kind == ViewLevels {
		p.Market.Levels(p.Book, buy, sell, v.Depth)
	} else {
		p.Market.Orders(p.Book, buy, sell, v.Depth)
	}
	v.datedDepth()
	return slot
}

// datedDepth sets the time of the view in the empty book of a pair that never had an order.
func (v *View) datedDepth() {
	if v.Depth.TimeUs == 0 {
		v.Depth.TimeUs = v.at.UnixMicro()
	}
}
