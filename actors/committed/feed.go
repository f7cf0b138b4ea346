package committed

import (
	"cmp"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/market"
	"exchange/core/matching"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
)

// A stream channel is an actor of package stream that watches a pair. The committed actor sends it
// the pair's state first, then each released change in order. The state and the start of the
// changes are of one turn of the committed actor, so nothing is missing or sent twice.

// A BookUpdate is one record that traded, or changed the depth of a pair: an order that was
// accepted, changed or triggered, a cancel, or the expiry of several orders.
type BookUpdate struct {
	UpdateID uint64 // that of the previous update, plus one
	TimeUs   int64
	// Gone are other orders that left the book, published before the order or cancel of the update.
	// An order that was changed or triggered in the book is among them in its old form.
	Gone   []Gone
	Silent bool // neither an order nor a cancel is published, only Gone and Levels

	Cancel    bool
	ID        uint64 // of the order, or of the cancel itself
	Cancelled uint64 // Cancel: the order
	Side      trading.Side
	Price     money.Price
	// displayed rest of the order; of a cancel, the amount displayed before
	Remaining money.Amount
	Trades    []event.Trade // of the order, oldest first
	// every level whose amount changed; empty if no channel watches levels
	Levels []LevelChange
}

// Gone is an order that has left the book, as the book displayed it.
type Gone struct {
	ID        uint64 // id of the order or cancel that removed it
	Order     uint64
	Side      trading.Side
	Price     money.Price
	Remaining money.Amount
}

// A LevelChange is the amount at a price after an update; 0: the level is empty.
type LevelChange struct {
	Side   trading.Side
	Price  money.Price
	Amount money.Total
}

// A WatchKind says how a channel watches a pair.
type WatchKind uint8

// The kinds of watches.
const (
	// WatchUpdates: the channel receives *BookUpdates with every update.
	WatchUpdates WatchKind = iota
	// WatchLevels: the updates also have their Levels.
	WatchLevels
	// WatchDepth: they also have the best levels after the last update, see BookUpdates.
	WatchDepth
	// WatchChanges: the channel receives one Changed when the pair has changed, and no more until
	// it watches again.
	WatchChanges
	// WatchBest: as WatchChanges, when the best price of a side or the amount there has changed.
	WatchBest
	// WatchTrades: as WatchChanges, when the pair has traded.
	WatchTrades
	// WatchStatus: the channel receives *StatusChanges. It belongs to no pair, and is answered with
	// a Status.
	WatchStatus
	// WatchRevocations: the channel receives *Revocations, and no answer. It belongs to no pair and
	// does not end.
	WatchRevocations
)

// hasUpdates reports whether a watcher receives updates.
func (k WatchKind) hasUpdates() bool { return k <= WatchDepth }

// Messages to a channel's actor.
type (
	// BookUpdates are the changes of one batch to a pair. Shared: read only.
	BookUpdates struct {
		List []BookUpdate
		// Best holds the best BestLevels levels of each side after the last update; nil if no
		// channel watches them.
		Best *market.Depth
	}
	// Watched answers a Watch. View is nil if none was requested, and Status is nil unless the
	// status is watched. Shared: read only.
	Watched struct {
		Token  uint64 // the Watch's
		View   *View
		Status *Status
	}
	// Changed signals a change.
	Changed struct{}
)

// BestLevels is the number of levels of each side in BookUpdates.Best.
const BestLevels = 10

// A WatchedView is the initial view of a pair for a channel. Unlike other answers it is never
// stale.
type WatchedView uint8

// The views of a Watch; 0 is none.
const (
	WatchTicker WatchedView = iota + 1
	WatchBook               // its levels
	WatchTop                // the best level of each side; only for channels
	WatchChart              // candles
)

// A Watch is a channel's request to watch.
type Watch struct {
	Channel *actor.PID
	Pair    *directory.Pair // nil: WatchStatus, WatchRevocations
	Kind    WatchKind
	View    WatchedView
	Levels  int // WatchBook: number of best levels of each side; negative: all
	// WatchChart: the candles of this frame from Since (epoch seconds) on, always including the
	// newest
	Frame market.Frame
	Since int64
	Token uint64 // for the answer
	// Over reports that the channel has ended, so the watch is void; nil: it never ends.
	Over func() bool
}

// An Unwatch ends a Watch.
type Unwatch struct {
	Channel *actor.PID
	Pair    uint16 // 0: WatchStatus
}

// A feed holds the watchers of a pair. The committed actor owns it.
type feed struct {
	watchers []pairWatcher
	updates  int // number of watchers with updates
	levels   int // of these, with levels
	bests    int // of these, with the best levels of a batch
	pair     uint16
	forming  *BookUpdates
	touched  bool   // since the last notifyWatchers
	updateID uint64 // of the newest update
}

type pairWatcher struct {
	pid  *actor.PID
	kind WatchKind
	// WatchChanges, WatchBest, WatchTrades: a change was sent, and not picked up yet
	notified  bool
	best      [2]trading.Level // WatchBest: the last levels sent
	lastTrade uint64           // WatchTrades: the newest trade sent
}

// bestOf returns the best level of each side, without the number of its orders. A side without
// orders has the price 0.
func bestOf(b *matching.Book) (best [2]trading.Level) {
	for i, side := range [...]trading.Side{trading.Buy, trading.Sell} {
		if price, ok := b.Best(side); ok {
			l, _ := b.At(side, price)
			best[i] = trading.Level{Price: price, Amount: l.Amount}
		}
	}
	return best
}

// watch answers a channel, and adds it as a watcher.
func (c *Side) watch(w *Watch) {
	switch w.Kind {
	case WatchStatus:
		c.watchStatus(w)
		return
	case WatchRevocations:
		c.revocations.add(w.Channel)
		return
	}
	f, p := c.feeds[w.Pair.Number-1], c.state.Pair(w.Pair.Number)
	f.remove(w.Channel)
	by := pairWatcher{pid: w.Channel, kind: w.Kind, lastTrade: p.LastTrade()}
	if w.Kind == WatchBest {
		by.best = bestOf(p.Book)
	}
	f.watchers = append(f.watchers, by)
	f.count(w.Kind, 1)
	c.out.Notify(w.Channel, &Watched{Token: w.Token, View: c.viewFor(w, p)})
}

// viewFor returns the view that a Watch requests, nil if none.
func (c *Side) viewFor(w *Watch, p *state.Pair) *View {
	q := ViewQuestion{Pair: p.Number, Kind: ViewTicker}
	switch w.View {
	case WatchTicker:
	case WatchBook:
		q.Kind, q.LimitBuy, q.LimitSell = ViewLevels, w.Levels, w.Levels
	case WatchTop:
		v := &View{UpdateID: p.Market.UpdateID, at: time.Now(), Depth: new(market.Depth)}
		p.Market.Levels(p.Book, 1, 1, v.Depth)
		v.datedDepth()
		return v
	case WatchChart:
		return &View{UpdateID: p.Market.UpdateID,
			Candles: c.charts[p.Number-1][w.Frame].since(w.Since)}
	default:
		return nil
	}
	if c.view(&q); q.View.UpdateID != p.Market.UpdateID {
		c.newView(&q)
	}
	return q.View
}

func (f *feed) remove(channel *actor.PID) {
	for i := range f.watchers {
		if f.watchers[i].pid == channel {
			f.count(f.watchers[i].kind, -1)
			f.watchers = slices.Delete(f.watchers, i, i+1)
			return
		}
	}
}

func (f *feed) count(kind WatchKind, by int) {
	if kind.hasUpdates() {
		f.updates += by
	}
	if kind == WatchLevels || kind == WatchDepth {
		f.levels += by
	}
	if kind == WatchDepth {
		f.bests += by
	}
}

// unwatch ends a Watch.
func (c *Side) unwatch(w *Unwatch) {
	if w.Pair == 0 {
		c.status.remove(w.Channel)
		return
	}
	c.feeds[w.Pair-1].remove(w.Channel)
}

// dropWatchers drops all watchers, and the buffered account events, whose encoded form belongs to
// the old channels.
func (c *Side) dropWatchers() {
	for _, f := range c.feeds {
		f.watchers, f.updates, f.levels, f.bests = nil, 0, 0, 0
	}
	c.status.channels, c.revocations.channels = nil, nil
	c.own = ownFeeds{most: c.own.most}
}

// noteUpdate records the change of the newest record to its pair.
func (c *Side) noteUpdate(r *event.Record, e *state.Effects) {
	f, p := c.feeds[r.Pair-1], c.state.Pair(r.Pair)
	if f.updateID == p.Market.UpdateID {
		return
	}
	if f.updateID = p.Market.UpdateID; len(f.watchers) == 0 {
		return
	}
	if !f.touched {
		f.touched = true
		c.touched = append(c.touched, f)
	}
	if f.updates == 0 {
		return
	}
	u := BookUpdate{UpdateID: f.updateID, TimeUs: r.TimeUs}
	if u.fill(p, r, e); f.levels > 0 {
		u.Levels = changedLevels(p, &u)
	}
	if f.forming == nil {
		f.forming = new(BookUpdates)
	}
	f.forming.List = append(f.forming.List, u)
}

// fill fills in an update from its record.
func (u *BookUpdate) fill(p *state.Pair, r *event.Record, e *state.Effects) {
	switch r.Kind {
	case event.KindOrder:
		u.fillOrder(p, &r.Order)
	case event.KindCancel, event.KindSwitchCancel:
		x := &r.Cancel
		u.Cancel, u.ID, u.Cancelled, u.Side, u.Price = true, x.ID, x.Order, x.Side, x.Price
		if u.Remaining = x.Remaining; len(e.Left) > 0 {
			u.Remaining = e.Left[0].Remaining // without what was hidden
		}
	default:
		u.Gone = gone(r, e.Left)
		if u.Silent = r.Kind == event.KindExpired ||
			len(r.Order.Trades) == 0 && !r.Order.Rests(); !u.Silent {
			u.fillOrder(p, &r.Order)
		}
	}
}

// fillOrder fills in an order that was matched, with its displayed rest.
func (u *BookUpdate) fillOrder(p *state.Pair, o *event.Order) {
	u.ID, u.Side, u.Price = o.ID, o.Side, o.Price
	if o.Rests() {
		u.Remaining = o.Remaining - p.Book.Iceberg(o.ID).Hidden
	}
	if len(o.Trades) > 0 {
		// the decoder owns the record's memory
		u.Trades = append([]event.Trade(nil), o.Trades...)
	}
}

// gone returns the orders that left the book with a record, with the ids of what removed them. The
// removal of the other half of an OCO has no id of its own, and gets the order's.
func gone(r *event.Record, left []trading.Order) []Gone {
	list := make([]Gone, len(left))
	for i := range left {
		o := &left[i]
		list[i] = Gone{Order: o.ID, Side: o.Side, Price: o.Price, Remaining: o.Remaining}
	}
	switch at := 0; r.Kind {
	case event.KindExpired: // some of them may have waited outside the book
		for i := range r.Expired {
			if x := &r.Expired[i]; at < len(list) && list[at].Order == x.Order {
				list[at].ID = x.ID
				at++
			}
		}
	default:
		if len(left) > 0 && left[0].ID == r.Order.ID {
			if list[0].ID = r.Order.ID; r.Kind == event.KindAmended {
				list[0].ID = r.Amended.ID
			}
			at++
		}
		for i := range r.Instructions.Prevented {
			list[at+i].ID = r.Instructions.Prevented[i].Cancel
		}
	}
	return list
}

// changedLevels returns the levels that an update changed, with their new amounts: at the prices of
// its trades, in their order, and at the price where the order rests or rested. If other orders
// left, the levels are sorted by price, each once.
func changedLevels(p *state.Pair, u *BookUpdate) []LevelChange {
	list := make([]LevelChange, 0, 2)
	add := func(side trading.Side, price money.Price) {
		l, _ := p.Book.At(side, price)
		list = append(list, LevelChange{side, price, l.Amount})
	}
	for i := range u.Trades {
		if i == 0 || u.Trades[i].Price != u.Trades[i-1].Price { // equal ones are neighbours
			add(u.Side.Opposite(), u.Trades[i].Price)
		}
	}
	if u.Remaining > 0 {
		add(u.Side, u.Price)
	}
	if len(u.Gone) == 0 {
		return list
	}
	for i := range u.Gone {
		add(u.Gone[i].Side, u.Gone[i].Price)
	}
	slices.SortFunc(list, func(a, b LevelChange) int {
		return cmp.Or(cmp.Compare(a.Side, b.Side), cmp.Compare(a.Price, b.Price))
	})
	return slices.Compact(list)
}

// notifyWatchers sends the watchers the changes of the batch that ends.
func (c *Side) notifyWatchers() {
	for i, f := range c.touched {
		updates, p := f.forming, c.state.Pair(f.pair)
		f.forming, f.touched, c.touched[i] = nil, false, nil
		if f.bests > 0 {
			updates.Best = new(market.Depth)
			p.Market.Levels(p.Book, BestLevels, BestLevels, updates.Best)
		}
		for j := range f.watchers {
			switch w := &f.watchers[j]; {
			case w.kind.hasUpdates():
				c.out.Notify(w.pid, updates)
			case !w.notified && w.isDue(p):
				w.notified = true
				c.out.Notify(w.pid, Changed{})
			}
		}
	}
	c.touched = c.touched[:0]
}

// isDue reports whether the watched value differs from the last one sent.
func (w *pairWatcher) isDue(p *state.Pair) bool {
	switch w.kind {
	case WatchBest:
		return w.best != bestOf(p.Book)
	case WatchTrades:
		return w.lastTrade != p.LastTrade()
	}
	return true
}
