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

// What everybody asks for (books, tickers, charts) is answered from views: immutable, shared, made
// at most once for each state of the pair and only when somebody asks. The JSON of a view is kept
// beside it. While a view is current, a handler takes it without asking any actor.

const (
	// shownLevels is how deep an answer may reach and is always current.
	shownLevels = 100
	// shownOrders is how many orders of a side an answer may have and is always current, also where
	// they reach deeper; and mostShownOrders bounds those of the levels above, because all of them
	// are copied for each state of the book that somebody asks for: a fifth of a millisecond. It is
	// the one exception from what shownLevels promises.
	shownOrders, mostShownOrders = 2000, 10_000
	// deepAge is how old an answer that reaches further may be.
	deepAge = 100 * time.Millisecond
)

// A View is one public state of a pair. Its parts are shared: read only.
type View struct {
	UpdateID uint64
	Depth    *market.Depth   // ReadLevels, ReadDepth; may have more than was asked for
	Ticker   market.Ticker   // ReadTicker
	Candles  []market.Candle // ReadCandles: the newest, oldest of them first
	Older    bool            // ReadCandles: the history has older ones

	at        time.Time
	buy, sell reach // Depth: of the book that it is a copy of
	minute    int64 // ReadTicker: epoch minutes; it is another one in the next

	keep sync.Once
	kept any // of the view's reader
}

// Kept returns what the view's reader keeps beside it, such as its JSON. make makes it for the
// first caller.
func (v *View) Kept(make func() any) any {
	v.keep.Do(func() { v.kept = make() })
	return v.kept
}

// A viewCache shows the newest views of one pair. The committed actor writes it; handlers read it.
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

// find is a view that may be shown, nil if there is none; current says that the viewCache is as new as
// all that was released.
func (b *viewCache) find(kind ReadKind, frame market.Frame, limitBuy, limitSell int,
	current bool) *View {
	now := time.Now()
	switch kind {
	case ReadTicker:
		if v := b.views[slotTicker].Load(); current && v != nil && v.UpdateID == b.version.Load() &&
			v.minute == now.Unix()/60 {
			return v
		}
	case ReadCandles:
		if v := b.views[slotChart+int(frame)].Load(); current && v != nil &&
			v.UpdateID == b.version.Load() {
			return v
		}
	default:
		slot, deep := slotsOf(kind)
		if v := b.views[slot].Load(); current && v != nil && v.UpdateID == b.version.Load() &&
			!v.isDeep(limitBuy, limitSell) {
			return v
		}
		if v := b.views[deep].Load(); v != nil && v.isDeep(limitBuy, limitSell) &&
			(now.Sub(v.at) <= deepAge || current && v.UpdateID == b.version.Load()) {
			return v
		}
	}
	return nil
}

// isDeep reports whether an answer reaches beyond what is always current.
func (v *View) isDeep(limitBuy, limitSell int) bool {
	return v.buy.endsBefore(limitBuy) || v.sell.endsBefore(limitSell)
}

// A reach is how much of one side of a book is always current.
type reach struct {
	most int  // levels or orders
	more bool // the side may have more
}

func (r reach) endsBefore(limit int) bool { return r.more && (limit < 0 || limit > r.most) }

func reachOf(kind ReadKind, b *matching.Book, side trading.Side) reach {
	deep := b.LevelCount(side) > shownLevels
	if kind == ReadLevels {
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

func slotsOf(kind ReadKind) (slot, deep int) {
	if kind == ReadLevels {
		return slotLevels, slotDeepLevels
	}
	return slotOrders, slotDeepOrders
}

// view answers on the committed side: with what is on the viewCache, or a new view that it puts there.
func (c *Side) view(r *Read) {
	if r.View = c.caches[r.Pair-1].find(r.Kind, r.Frame, r.LimitBuy, r.LimitSell,
		true); r.View != nil {
		return
	}
	c.newView(r)
}

// newView makes one, whatever is on the viewCache.
func (c *Side) newView(r *Read) {
	p, b := c.state.Pair(r.Pair), c.caches[r.Pair-1]
	v := &View{UpdateID: p.Market.UpdateID, at: time.Now()}
	slot := slotTicker
	switch r.Kind {
	case ReadTicker:
		v.Ticker, v.minute = p.Market.Ticker(v.at.UnixMicro()), v.at.Unix()/60
	case ReadCandles:
		slot = slotChart + int(r.Frame)
		v.Candles, v.Older = c.charts[r.Pair-1][r.Frame].newest(c.candles)
	default:
		slot = v.copyDepth(r, p, b)
	}
	b.views[slot].Store(v)
	r.View = v
}

// room is an empty list with memory for as much as there was, and a little more.
func room[T any](last []T) []T {
	if len(last) == 0 {
		return nil
	}
	return make([]T, 0, len(last)+len(last)/32+8)
}

// copyDepth copies the book, and says which slot the copy is for.
func (v *View) copyDepth(r *Read, p *state.Pair, b *viewCache) int {
	slot, deep := slotsOf(r.Kind)
	v.buy, v.sell = reachOf(r.Kind, p.Book, trading.Buy), reachOf(r.Kind, p.Book, trading.Sell)
	buy, sell := v.buy.most, v.sell.most
	if v.isDeep(r.LimitBuy, r.LimitSell) {
		slot, buy, sell = deep, -1, -1
	}
	v.Depth = new(market.Depth)
	// memory of about the same size at once: a deep book is megabytes
	if last := b.views[slot].Load(); last != nil {
		d := last.Depth
		v.Depth.BuyLevels, v.Depth.SellLevels = room(d.BuyLevels), room(d.SellLevels)
		v.Depth.BuyOrders, v.Depth.SellOrders = room(d.BuyOrders), room(d.SellOrders)
	}
	if r.Kind == ReadLevels {
		p.Market.Levels(p.Book, buy, sell, v.Depth)
	} else {
		p.Market.Orders(p.Book, buy, sell, v.Depth)
	}
	if v.Depth.TimeUs == 0 { // the pair never had an order: its empty book is as of now
		v.Depth.TimeUs = v.at.UnixMicro()
	}
	return slot
}
