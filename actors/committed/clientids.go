package committed

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"exchange/actors/metrics"
	"exchange/core/event"
	"exchange/persistence"
)

// A ClientIDLook says whether a closed order of an account has a client order id. It knows all
// records up to Seq. Open orders are the wallet's.
type ClientIDLook struct {
	Seq   uint64
	Order uint64 // the newest such order; 0: none that was placed within the time asked for
}

// LookUpClientID looks for the newest closed order of an account with a client order id. Only
// orders that were placed after a time count.
//
// It asks the filter first, which mostly proves that there is none. The next place are the orders
// in memory that the store may not have yet, and the last one is the store. The order matters: an
// order that leaves the memory between the two looks is in the store.
//
// Any goroutine may call it. An error is a HistoryError: the store did not say. The caller ends the
// pending look when its command is in the wallet's mailbox, or comes to nothing.
func (d *Door) LookUpClientID(account uint32, id event.ClientID,
	placedAfterUs int64) (ClientIDLook, *PendingLook, error) {
	c := d.side
	look, excluded := d.FilterClientID(account, id, placedAfterUs)
	if excluded {
		return look, nil, nil
	}
	d.meter.StoreLooks.Add(1)
	name := id.String()
	pending := d.looks.begin(ownName{account, name})
	order, placedUs, watermark := c.named.newest(account, name)
	if order == 0 {
		ctx, cancel := context.WithTimeout(context.Background(), d.patience()/2)
		defer cancel()
		o, err := d.history.ClientOrder(ctx, watermark, account, name)
		if err != nil && !errors.Is(err, persistence.ErrNotFound) {
			d.meter.Failures[metrics.OperationClientID].Add(1)
			return look, pending, &HistoryError{err}
		}
		order, placedUs = o.ID, o.TimeUs
	}
	if placedUs > placedAfterUs {
		look.Order = order
	}
	return look, pending, nil
}

// Announce begins a pending look for a command that will not reach its wallet at once, because it
// is sent with others whose looks may ask the store.
func (d *Door) Announce(account uint32, id event.ClientID) *PendingLook {
	return d.looks.begin(ownName{account, id.String()})
}

// pendingLooks are the looks that ask the store, up to the moment in which their commands are in
// their wallets' mailboxes. A question for an order by its client order id waits for those of the
// id: otherwise the wallet would not know of the order yet, and "no such order" would not stay
// true.
type pendingLooks struct {
	mu sync.Mutex
	of map[ownName][]*PendingLook // guarded by mu
}

// A PendingLook is one of them. The nil one was never pending.
type PendingLook struct {
	looks *pendingLooks
	name  ownName
	ended atomic.Bool
}

func (p *pendingLooks) begin(name ownName) *PendingLook {
	look := &PendingLook{looks: p, name: name}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = make(map[ownName][]*PendingLook)
	}
	p.of[name] = append(p.of[name], look)
	return look
}

// FilterClientID is the part of LookUpClientID that waits for nothing. It reports whether the look
// is complete: the filter has proved that there is no such order.
func (d *Door) FilterClientID(account uint32, id event.ClientID,
	placedAfterUs int64) (look ClientIDLook, excluded bool) {
	look = ClientIDLook{Seq: d.side.folded.Load()}
	if excluded = d.side.filter.excludes(account, id, placedAfterUs); excluded {
		d.meter.FilteredLooks.Add(1)
	}
	return look, excluded
}

// End says that the command of a look is in its wallet's mailbox, or came to nothing.
func (l *PendingLook) End() {
	if l == nil {
		return
	}
	l.ended.Store(true)
	p := l.looks
	p.mu.Lock()
	defer p.mu.Unlock()
	others := slices.DeleteFunc(p.of[l.name], func(o *PendingLook) bool { return o == l })
	if p.of[l.name] = others; len(others) == 0 {
		delete(p.of, l.name)
	}
}

// awaitLooks waits until the looks for the client order id of a question that are pending now have
// ended. It returns false if they take too long.
func (d *Door) awaitLooks(q *NamedOrder) bool {
	p := &d.looks
	p.mu.Lock()
	pending := slices.Clone(p.of[ownName{q.Account, q.ClientID.String()}])
	p.mu.Unlock()
	if len(pending) == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.patience())
	defer cancel()
	return d.scheduler.Until(ctx, d.dead, func() bool {
		return !slices.ContainsFunc(pending, func(l *PendingLook) bool { return !l.ended.Load() })
	})
}

// Always is a time for LookUpClientID after which all orders were placed.
const Always = math.MinInt64

// namedOrders are the closed orders with a client order id that the store may not have yet. The
// committed actor writes, and any goroutine reads.
type namedOrders struct {
	mu        sync.Mutex
	orders    map[ownName]namedClosed // guarded by mu: the newest of each name
	watermark uint64                  // guarded by mu: the store has all orders up to there
}

// An ownName is a client order id of an account.
type ownName struct {
	account uint32
	id      string
}

// A namedClosed is an order of a projection that is on its way to the store.
type namedClosed struct {
	order    uint64
	placedUs int64
	writes   *persistence.Writes // the projection
	row      int                 // place among its orders
	older    *namedClosed        // of the same name, nil mostly; the actor's
}

// newest returns the newest order with a name, 0 if there is none. In that case the store has it,
// once its own watermark is at the one returned, or it does not exist.
func (n *namedOrders) newest(account uint32, id string) (order uint64, placedUs int64,
	watermark uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	o := n.orders[ownName{account, id}]
	return o.order, o.placedUs, n.watermark
}

// add takes in the row of an order with a client order id, which was just put into a projection.
func (n *namedOrders) add(w *persistence.Writes, row int) {
	o := &w.Orders[row]
	name := ownName{o.Account, o.ClientID}
	added := namedClosed{order: o.ID, placedUs: o.TimeUs, writes: w, row: row}
	n.mu.Lock()
	defer n.mu.Unlock()
	if before, used := n.orders[name]; used {
		added.older = &before
	}
	n.orders[name] = added
}

// projected forgets the orders of a projection that the store has, some at a time.
func (n *namedOrders) projected(to uint64, w *persistence.Writes) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.watermark = to
	for i := range w.Orders {
		if i%namedAtOnce == namedAtOnce-1 { // let others look
			n.mu.Unlock()
			n.mu.Lock()
		}
		name := ownName{w.Orders[i].Account, w.Orders[i].ClientID}
		o, there := n.orders[name]
		switch {
		case !there:
		case o.writes == w: // projections end in the order in which they began
			delete(n.orders, name)
		default:
			for p := &o; p.older != nil; p = p.older {
				if p.older.writes == w {
					p.older = nil
					break
				}
			}
			n.orders[name] = o
		}
	}
	if len(n.orders) == 0 && len(w.Orders) > namedAtOnce { // give a burst's memory back
		n.orders = make(map[ownName]namedClosed)
	}
}

// namedAtOnce is how many orders are forgotten while others wait to look: some 50 us of work.
const namedAtOnce = 512

// rows appends the rows of a name, newest first. Only the committed actor may call it.
func (n *namedOrders) rows(list []Order, account uint32, id string) []Order {
	n.mu.Lock()
	defer n.mu.Unlock()
	o, there := n.orders[ownName{account, id}]
	for p := &o; there && p != nil; p = p.older {
		list = append(list, p.writes.Orders[p.row])
	}
	return list
}

// A FilterFiller fills the filter of client order ids after a start from the store's history, in
// the background. Until it has ended, looks go to the store.
type FilterFiller struct {
	side     *Side
	store    persistence.History
	log      *slog.Logger
	accounts uint32 // those of the start; all orders of later ones are folded while it runs
	fromUs   int64  // only orders that were placed from there on
	stop     <-chan struct{}
	worked   time.Time // begin of the present piece of work
}

// NewFilterFiller makes the filler of a side that was recovered; nil: it has no filter. Its work
// ends with stop.
func NewFilterFiller(c *Side, store persistence.History, nowUs int64, log *slog.Logger,
	stop <-chan struct{}) *FilterFiller {
	if c.filter == nil {
		return nil
	}
	return &FilterFiller{side: c, store: store, log: log,
		accounts: uint32(len(c.state.Accounts())), fromUs: c.filter.holdsFrom(nowUs), stop: stop}
}

const (
	// fillPiece is the length of a piece of the filler's work, and fillPause how many times longer
	// the filler pauses after it.
	fillPiece = 5 * time.Millisecond
	fillPause = 3
	// fillAgain is the pause after an error of the store.
	fillAgain = time.Second
)

// Run fills the filter, or ends with the engine.
func (f *FilterFiller) Run() {
	_ = f.run(func(d time.Duration) (goOn bool) {
		select {
		case <-f.stop:
			return false
		case <-time.After(d):
			return true
		}
	})
}

// errEnded ends a query when the engine has ended.
var errEnded = errors.New("the engine has ended")

// run fills the filter, and reports whether it did. pause waits, and returns false when the engine
// has ended.
func (f *FilterFiller) run(pause func(time.Duration) (goOn bool)) bool {
	start := time.Now()
	f.worked = start
	ctx := persistence.WithPace(context.Background(), func() error {
		if worked := time.Since(f.worked); worked >= fillPiece {
			if !pause(fillPause * worked) {
				return errEnded
			}
			f.worked = time.Now()
		}
		return nil
	})
	failing := false
	for account := uint32(1); account <= f.accounts; {
		err := f.account(ctx, account)
		if err == nil {
			account, failing, err = account+1, false, persistence.GoOn(ctx)
		}
		switch {
		case err == nil:
			continue
		case errors.Is(err, errEnded):
			return false
		case errors.Is(err, persistence.ErrVersion):
			f.log.Error("each client order id is looked up in the store, because a row of another "+
				"version keeps the filter from being filled", "account", account, "error", err)
			return false
		case errors.Is(err, persistence.ErrCorrupt):
			f.log.Error("each client order id is looked up in the store, because a damaged row "+
				"keeps the filter from being filled: run exchange audit, restore a backup",
				"account", account, "error", err)
			return false
		case !failing:
			f.log.Warn("the filter of client order ids is not filled, trying again", "account",
				account, "error", err)
		}
		failing = true
		if !pause(fillAgain) {
			return false
		}
	}
	f.side.filter.filled(f.fromUs)
	f.log.Info("the filter of client order ids is filled", "accounts", f.accounts, "took",
		time.Since(start).Round(time.Millisecond))
	return true
}

// clockErrorUs is how far back in an account's orders the filler looks behind the first one that is
// too old: a book whose clock was ahead has given later times to earlier orders.
const clockErrorUs = int64(time.Hour / time.Microsecond)

// account adds the orders of an account. They come with descending ids, which is the order in which
// they were placed.
func (f *FilterFiller) account(ctx context.Context, account uint32) error {
	tooOld := max(f.fromUs, Always+clockErrorUs) - clockErrorUs
	return f.store.Orders(ctx, persistence.OrderQuery{Account: account},
		func(o *persistence.Order) bool {
			if o.ClientID != "" && o.TimeUs >= f.fromUs {
				f.side.filter.addStored(o.Account, o.ClientID)
			}
			return o.TimeUs >= tooOld
		})
}
