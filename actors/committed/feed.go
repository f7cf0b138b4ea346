package committed

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
)

// A stream channel is an actor of the room that sends the stream, and watches a pair. The committed
// actor first tells it the pair's state, and then each release in order. The state and the first
// release come from one turn of that actor, so nothing is missing in between and nothing comes
// twice.

// A BookUpdate is one record that changed the depth of a pair: an accepted order, or a cancel.
type BookUpdate struct {
	UpdateID  uint64 // one more than that of the update before
	TimeUs    int64
	Cancel    bool
	ID        uint64 // of the order, or of the cancel itself
	Cancelled uint64 // Cancel: the order
	Side      trading.Side
	Price     money.Price
	Remaining money.Amount  // rest of the order; of a cancel, the amount that rested until then
	Trades    []event.Trade // of the order, oldest first
	// every level that has another amount now; empty if no channel watches levels
	Levels []LevelChange
}

// A LevelChange is the amount at a price after an update; 0: the level is gone.
type LevelChange struct {
	Side   trading.Side
	Price  money.Price
	Amount money.Total
}

// A WatchKind says how a channel watches a pair.
type WatchKind uint8

// The kinds of watching.
const (
	// WatchUpdates: the actor gets *BookUpdates with every update.
	WatchUpdates WatchKind = iota
	// WatchLevels: the updates have their Levels, too.
	WatchLevels
	// WatchChanges: the actor gets a Changed when the pair has changed, and no other one until it
	// asks again.
	WatchChanges
)

// Messages to a channel's actor.
type (
	// BookUpdates are what one batch did to a pair. Shared: read only.
	BookUpdates struct{ List []BookUpdate }
	// Watched answers a Watch. View is nil if none was asked for. Shared: read only.
	Watched struct {
		Token uint64 // the Watch's
		View  *View
	}
	// Changed tells of a change.
	Changed struct{}
)

// A WatchedView is the view of a pair with which a channel begins. Unlike other answers it is never
// a little old.
type WatchedView uint8

// The views of a Watch; 0 is none.
const (
	WatchTicker WatchedView = iota + 1
	WatchBook               // its levels
)

// A Watch is a channel's wish.
type Watch struct {
	Channel *actor.PID
	Pair    *directory.Pair
	Kind    WatchKind
	View    WatchedView
	Levels  int    // WatchBook: so many of the best of each side, all if negative
	Token   uint64 // for the answer
}

// An Unwatch ends a Watch.
type Unwatch struct {
	Channel *actor.PID
	Pair    uint16
}

// A feed has the watchers of a pair. The committed actor owns it.
type feed struct {
	watchers []watcher
	updates  int // watchers that get updates
	levels   int // of these, with levels
	forming  *BookUpdates
	touched  bool // since the last round
}

type watcher struct {
	pid  *actor.PID
	kind WatchKind
	told bool // WatchChanges: of a change that it has not looked at yet
}

// watch answers a channel, and tells it from now on.
func (c *Side) watch(w *Watch) {
	f := c.feeds[w.Pair.Number-1]
	f.remove(w.Channel)
	f.watchers = append(f.watchers, watcher{pid: w.Channel, kind: w.Kind})
	f.count(w.Kind, 1)
	answer := &Watched{Token: w.Token}
	if w.View != 0 {
		q := ViewOf{Pair: w.Pair.Number, Kind: ViewTicker}
		if w.View == WatchBook {
			q.Kind, q.LimitBuy, q.LimitSell = ViewLevels, w.Levels, w.Levels
		}
		if c.view(&q); q.View.UpdateID != c.state.Pair(q.Pair).Market.UpdateID {
			c.newView(&q)
		}
		answer.View = q.View
	}
	c.out.Tell(w.Channel, answer)
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
	if kind != WatchChanges {
		f.updates += by
	}
	if kind == WatchLevels {
		f.levels += by
	}
}

// noteUpdate keeps the change that the newest record made to its pair.
func (c *Side) noteUpdate(r *event.Record) {
	f := c.feeds[r.Pair-1]
	if len(f.watchers) == 0 || r.Kind != event.KindOrder && r.Kind != event.KindCancel {
		return
	}
	if !f.touched {
		f.touched = true
		c.touched = append(c.touched, f)
	}
	if f.updates == 0 {
		return
	}
	p := c.state.Pair(r.Pair)
	u := BookUpdate{UpdateID: p.Market.UpdateID, TimeUs: r.TimeUs}
	if r.Kind == event.KindCancel {
		x := &r.Cancel
		u.Cancel, u.ID, u.Cancelled, u.Side, u.Price, u.Remaining = true, x.ID, x.Order, x.Side,
			x.Price, x.Remaining
	} else {
		o := &r.Order
		u.ID, u.Side, u.Price = o.ID, o.Side, o.Price
		if o.Rests() {
			u.Remaining = o.Remaining
		}
		if len(o.Trades) > 0 {
			// the record's memory is the decoder's
			u.Trades = append([]event.Trade(nil), o.Trades...)
		}
	}
	if f.levels > 0 {
		u.Levels = changedLevels(p, &u)
	}
	if f.forming == nil {
		f.forming = new(BookUpdates)
	}
	f.forming.List = append(f.forming.List, u)
}

// changedLevels returns the levels that an update changed, as they are after it: at the prices of
// its trades, in their order, and at the price where the order rests or rested.
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
	return list
}

// tellWatchers ends a batch: it tells the watchers of the batch's pairs.
func (c *Side) tellWatchers() {
	for i, f := range c.touched {
		updates := f.forming
		f.forming, f.touched, c.touched[i] = nil, false, nil
		for j := range f.watchers {
			switch w := &f.watchers[j]; {
			case w.kind != WatchChanges:
				c.out.Tell(w.pid, updates)
			case !w.told:
				w.told = true
				c.out.Tell(w.pid, Changed{})
			}
		}
	}
	c.touched = c.touched[:0]
}
