package actors

import (
	"sync"
	"sync/atomic"
	"time"

	"exchange/actors/directory"
	"exchange/core/market"
	"exchange/core/matching"
	"exchange/core/state"
	"exchange/core/trading"
)

// What everybody asks for (books, tickers, charts) is answered from views: immutable, shared, made
// at most once for each state of the pair and only when somebody asks, and encoded at most twice:
// as a whole, and as lists of which answers show parts. While a view is current, a handler takes it
// without asking any actor.

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

	whole func() []byte // guarded by mu
	mu    sync.Mutex
	lists [2]entries
}

// entries is a list of a view as JSON, as far as anybody has asked for it.
type entries struct {
	mu   sync.Mutex
	text []byte   // with commas between
	ends []uint32 // where each ends in text: a list of more than 4 GB is none that could be sent
}

// Body is the whole view in its one form, which encode makes if nobody has asked for it before. It
// is shared: read only.
func (v *View) Body(encode func(*View) []byte) []byte {
	v.mu.Lock()
	if v.whole == nil {
		v.whole = sync.OnceValue(func() []byte { return encode(v) })
	}
	whole := v.whole
	v.mu.Unlock()
	return whole() // lists are made meanwhile
}

// Part is what stands from one place to another (exclusive) in a list of the view, as JSON with
// commas between. entry appends what is at a place. However many parts are asked for, each place is
// encoded once, and none behind the last that was asked for. It is shared: read only.
func (v *View) Part(list, from, to int, entry func(b []byte, place int) []byte) []byte {
	if from >= to {
		return nil
	}
	l := &v.lists[list]
	l.mu.Lock()
	defer l.mu.Unlock()
	for place := len(l.ends); place < to; place++ {
		if place > 0 {
			l.text = append(l.text, ',')
		}
		l.text = entry(l.text, place)
		l.ends = append(l.ends, uint32(len(l.text)))
	}
	begin := 0
	if from > 0 {
		begin = int(l.ends[from-1]) + 1
	}
	return l.text[begin:l.ends[to-1]]
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

// View answers ReadLevels, ReadDepth, ReadTicker and ReadCandles of a pair: from its board if what
// is there is current, else from the committed state. Errors are those of Ask.
func (e *Engine) View(kind ReadKind, p *directory.Pair, frame market.Frame,
	limitBuy, limitSell int) (*View,
	error) {
	arrived := e.released.Load()
	if v := e.committed.boards[p.Number-1].find(kind, frame, limitBuy, limitSell,
		e.committed.folded.Load() >= arrived); v != nil {
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

// find is a view that may be shown, nil if there is none; current says that the board is as new as
// all that was released.
func (b *board) find(kind ReadKind, frame market.Frame, limitBuy, limitSell int,
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

// view answers on the committed side: with what is on the board, or a new view that it puts there.
func (c *committed) view(r *Read) {
	if r.View = c.boards[r.Pair-1].find(r.Kind, r.Frame, r.LimitBuy, r.LimitSell,
		true); r.View != nil {
		return
	}
	c.newView(r)
}

// newView makes one, whatever is on the board.
func (c *committed) newView(r *Read) {
	p, b := c.state.Pair(r.Pair), c.boards[r.Pair-1]
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
