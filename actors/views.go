package actors

import (
	"sync"
	"sync/atomic"
	"time"

	"exchange/core/market"
	"exchange/core/matching"
	"exchange/core/state"
)

// What everybody asks for (books, tickers, charts) is answered from views: immutable, shared, made at
// most once for each state of the pair and only when somebody asks, and encoded at most once for each
// form that is asked for. While a view is current, a handler takes it without asking any actor.

const (
	// shownLevels is how deep an answer may reach and is always current.
	shownLevels = 100
	// shownOrders bounds the orders of such an answer that are copied for each state of the book.
	shownOrders = 2000
	// deepAge is how old an answer that reaches further may be.
	deepAge = 100 * time.Millisecond
	// keptBodies is how many encoded forms of one view are kept.
	keptBodies = 16
)

// A View is one public state of a pair. Its parts are shared: read only.
type View struct {
	UpdateID uint64
	Depth    *market.Depth   // ReadLevels, ReadDepth; may have more than was asked for
	Ticker   market.Ticker   // ReadTicker
	Candles  []market.Candle // ReadCandles: the newest, oldest of them first
	Older    bool            // ReadCandles: the history has older ones

	at        time.Time
	buy, sell int   // Depth: how many levels, or orders of both sides, the book had
	minute    int64 // ReadTicker: epoch minutes; it is another one in the next

	mu     sync.Mutex
	bodies map[BodyKey][]byte // guarded by mu
}

// A BodyKey names one encoded form of a view, by what was asked for.
type BodyKey [3]int64

// Body is the view in one form, which encode makes if nobody has asked for it before. It is shared: read
// only.
func (v *View) Body(key BodyKey, encode func(*View) []byte) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	if b, ok := v.bodies[key]; ok {
		return b
	}
	b := encode(v)
	if v.bodies == nil {
		v.bodies = make(map[BodyKey][]byte, 1)
	}
	if len(v.bodies) < keptBodies {
		v.bodies[key] = b
	}
	return b
}

// A board shows the newest views of one pair. The committed actor writes it; handlers read it.
type board struct {
	version atomic.Uint64 // update id of the committed state
	views   [viewSlots]atomic.Pointer[View]
}

// Slots of a board. Charts have one for each frame, from slotChart on.
const (
	slotTicker = iota
	slotLevels
	slotDeepLevels
	slotOrders
	slotDeepOrders
	slotChart
	viewSlots = slotChart + market.FrameCount
)

// View answers ReadLevels, ReadDepth, ReadTicker and ReadCandles of a pair: from its board if what is there
// is current, else from the committed state. Errors are those of Ask.
func (e *Engine) View(kind ReadKind, p *Pair, frame market.Frame, limitBuy, limitSell int) (*View, error) {
	arrived := e.released.Load()
	if v := e.committed.boards[p.Number-1].find(kind, frame, limitBuy, limitSell, e.committed.folded.Load() >= arrived); v != nil {
		return v, nil
	}
	r := NewRead(kind)
	r.Pair, r.Frame, r.LimitBuy, r.LimitSell = p.Number, frame, limitBuy, limitSell
	if err := e.Ask(r, nil, 0); err != nil {
		return nil, err
	}
	v := r.View
	r.Free()
	return v, nil
}

// find is a view that may be shown, nil if there is none; current says that the board is as new as all
// that was released.
func (b *board) find(kind ReadKind, frame market.Frame, limitBuy, limitSell int, current bool) *View {
	now := time.Now()
	switch kind {
	case ReadTicker:
		if v := b.views[slotTicker].Load(); current && v != nil && v.UpdateID == b.version.Load() && v.minute == now.Unix()/60 {
			return v
		}
	case ReadCandles:
		if v := b.views[slotChart+int(frame)].Load(); current && v != nil && v.UpdateID == b.version.Load() {
			return v
		}
	default:
		slot, deep, shown := slotsOf(kind)
		if v := b.views[slot].Load(); current && v != nil && v.UpdateID == b.version.Load() && !v.isDeep(limitBuy, limitSell, shown) {
			return v
		}
		if v := b.views[deep].Load(); v != nil && v.isDeep(limitBuy, limitSell, shown) &&
			(now.Sub(v.at) <= deepAge || current && v.UpdateID == b.version.Load()) {
			return v
		}
	}
	return nil
}

// isDeep reports whether an answer reaches beyond what is always current.
func (v *View) isDeep(limitBuy, limitSell, shown int) bool {
	beyond := func(limit, there int) bool { return (limit < 0 || limit > shown) && there > shown }
	return beyond(limitBuy, v.buy) || beyond(limitSell, v.sell)
}

func slotsOf(kind ReadKind) (slot, deep, shown int) {
	if kind == ReadLevels {
		return slotLevels, slotDeepLevels, shownLevels
	}
	return slotOrders, slotDeepOrders, shownOrders
}

// view answers on the committed side: with what is on the board, or a new view that it puts there.
func (c *committed) view(r *Read) {
	p, b := c.state.Pair(r.Pair), c.boards[r.Pair-1]
	if r.View = b.find(r.Kind, r.Frame, r.LimitBuy, r.LimitSell, true); r.View != nil {
		return
	}
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
func (v *View) copyDepth(r *Read, p *state.Pair, b *board) int {
	slot, deep, most := slotsOf(r.Kind)
	v.buy, v.sell = p.Book.Len(), p.Book.Len()
	if r.Kind == ReadLevels {
		v.buy, v.sell = p.Book.LevelCount(matching.Buy), p.Book.LevelCount(matching.Sell)
	}
	if v.isDeep(r.LimitBuy, r.LimitSell, most) {
		slot, most = deep, -1
	}
	v.Depth = new(market.Depth)
	if last := b.views[slot].Load(); last != nil { // memory of about the same size at once: a deep book is megabytes
		d := last.Depth
		v.Depth.BuyLevels, v.Depth.SellLevels = room(d.BuyLevels), room(d.SellLevels)
		v.Depth.BuyOrders, v.Depth.SellOrders = room(d.BuyOrders), room(d.SellOrders)
	}
	if r.Kind == ReadLevels {
		p.Market.Levels(p.Book, most, most, v.Depth)
	} else {
		p.Market.Orders(p.Book, most, most, v.Depth)
	}
	return slot
}
