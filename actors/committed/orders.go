package committed

import (
	"context"
	"errors"
	"slices"

	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/state"
	"exchange/core/trading"
	"exchange/persistence"
)

// An OrderQuery selects orders of the client's account, newest first. Zero fields do not filter.
type OrderQuery struct {
	Pair     uint16
	Side     trading.Side
	Status   uint8
	Before   uint64 // only ids below
	Waiting  WaitFilter
	ClientID event.ClientID
	Offset   int // matching rows to skip
	Limit    int
}

// A WaitFilter selects untriggered stops, which wait outside the book, or the other orders; 0: all.
type WaitFilter uint8

// The two kinds of orders.
const (
	OnlyWaiting WaitFilter = iota + 1
	NotWaiting
)

// passes reports whether an open order of a pair matches the filter.
func (f WaitFilter) passes(p *state.Pair, id uint64) bool {
	return f == 0 || p.Waits(id) == (f == OnlyWaiting)
}

func (q *OrderQuery) passes(o *Order) bool {
	return (q.Side == 0 || o.Side == q.Side) && (q.Pair == 0 || o.Pair == q.Pair) &&
		(q.Status == 0 || o.Status == q.Status) && (q.Before == 0 || o.ID < q.Before) &&
		(q.Waiting == 0 || isStop(o) == (q.Waiting == OnlyWaiting))
}

// isStop reports whether an order waits outside the book for its trigger.
func isStop(o *Order) bool {
	if o.Status != trading.StatusActive || o.Instructed == "" {
		return false
	}
	x, ok := o.Instructed.Open()
	return ok && x.Waits()
}

// open returns the part of the query for the committed state.
func (q *OrderQuery) open() ledger.OpenFilter {
	return ledger.OpenFilter{Before: q.Before, Pair: q.Pair, Side: q.Side}
}

// closed returns the part of the query for the store: orders that closed up to a sequence.
func (q *OrderQuery) closed(account uint32, seq uint64) persistence.OrderQuery {
	return persistence.OrderQuery{Account: account, Pair: q.Pair, Side: q.Side, Status: q.Status,
		ClientID: q.ClientID.String(), Before: q.Before, MaxSeq: seq}
}

var orderLists pool[List[Order]]

// Orders lists orders of the client's account, open and closed. The caller frees the list.
func (d *Door) Orders(by Client, q OrderQuery) (*List[Order], error) {
	v, err := d.enter(by)
	if err != nil {
		return nil, err
	}
	l := orderPage{visit: v, query: q, skip: q.Offset, list: newList(&orderLists)}
	defer l.end()
	if q.Waiting == OnlyWaiting { // each is open
		if q.Status != 0 && q.Status != trading.StatusActive {
			return l.list, nil
		}
		l.query.Status = trading.StatusActive
	}
	if err := l.fill(); err != nil {
		l.list.Free()
		return nil, err
	}
	return l.list, nil
}

// An orderPage is a list of orders that is being filled.
type orderPage struct {
	visit
	query OrderQuery
	skip  int // matching rows still to skip
	list  *List[Order]
}

// question returns the first question of the page, which asks for no more than the page needs.
func (l *orderPage) question() Question {
	q := &l.query
	switch {
	case !q.ClientID.IsZero():
		return l.rest()
	case q.Status == trading.StatusActive: // none are in the store
		open := openOrders.get()
		open.OpenFilter, open.waiting = q.open(), q.Waiting
		open.offset, open.Limit = l.skip, q.Limit
		l.skip = 0
		return open
	case q.Status != 0: // all are in the store
		return barriers.get()
	case l.skip > 0: // which open orders are on the page depends on the store's rows
		ids := openIDLists.get()
		ids.OpenFilter, ids.waiting, ids.limit = q.open(), q.Waiting, l.skip
		return ids
	}
	return l.rest()
}

// rest asks for up to a page of open orders.
func (l *orderPage) rest() *OpenOrders {
	open := openOrders.get()
	open.OpenFilter, open.waiting, open.Limit = l.query.open(), l.query.Waiting, l.query.Limit
	open.ClientID = l.query.ClientID
	return open
}

// fill asks the fold, and merges the answer with the store's rows.
func (l *orderPage) fill() error {
	question := l.question()
	if err := l.ask(question); err != nil {
		return err
	}
	switch q := question.(type) {
	case *Barrier:
		defer q.free()
		return l.merge(nil, q.Seq)
	case *openIDs:
		if some, err := l.seek(q); err != nil || !some {
			return err
		}
		open := l.rest()
		if err := l.ask(open); err != nil {
			return err
		}
		return l.open(open)
	}
	return l.open(question.(*OpenOrders))
}

// open fills the page with open orders, and with closed ones unless the query excludes them.
func (l *orderPage) open(q *OpenOrders) error {
	defer q.free()
	if !l.query.ClientID.IsZero() { // the question had no other filters
		q.Orders = slices.DeleteFunc(q.Orders, func(o Order) bool { return !l.query.passes(&o) })
	} else if l.query.Status == trading.StatusActive {
		l.list.Rows, q.Orders = q.Orders, l.list.Rows
		return nil
	}
	return l.merge(q.Orders, q.Seq)
}

// seek skips the orders before the page, by their ids alone, and sets the query to begin at the
// page. It returns false if the account has fewer orders.
func (l *orderPage) seek(ids *openIDs) (some bool, err error) {
	defer ids.free()
	open, last := ids.ids, uint64(0)
	leaf := func(id uint64) bool {
		last = id
		l.skip--
		return l.skip > 0
	}
	err = l.visit.query(func(ctx context.Context, h persistence.History) error {
		return h.Orders(ctx, l.query.closed(ids.account, ids.seq), func(o *Order) bool {
			for len(open) > 0 && open[0] > o.ID {
				id := open[0]
				if open = open[1:]; !leaf(id) {
					return false
				}
			}
			return leaf(o.ID)
		})
	})
	if err != nil {
		return false, &HistoryError{err}
	}
	for i := 0; i < len(open) && l.skip > 0; i++ {
		leaf(open[i])
	}
	if l.skip > 0 {
		return false, nil
	}
	l.query.Before = last
	return true, nil
}

// merge fills the page by id from two lists as of one sequence: open orders of the committed state,
// and closed orders of the store up to that sequence.
func (l *orderPage) merge(open []Order, seq uint64) error {
	if l.query.Status != trading.StatusActive {
		err := l.visit.query(func(ctx context.Context, h persistence.History) error {
			return h.Orders(ctx, l.query.closed(l.by.Key.Account.ID, seq), func(o *Order) bool {
				for len(open) > 0 && open[0].ID > o.ID && len(l.list.Rows) < l.query.Limit {
					l.add(&open[0])
					open = open[1:]
				}
				return l.add(o)
			})
		})
		if err != nil {
			return &HistoryError{err}
		}
	}
	l.all(open)
	return nil
}

// all adds rows until the page is full.
func (l *orderPage) all(list []Order) {
	for i := range list {
		if !l.add(&list[i]) {
			return
		}
	}
}

// add adds a row unless it is before the page. It returns false when the page is full.
func (l *orderPage) add(o *Order) bool {
	switch {
	case len(l.list.Rows) >= l.query.Limit:
		return false
	case l.skip > 0:
		l.skip--
		return true
	}
	return l.list.add(o, l.query.Limit)
}

// Order returns an order of the client's account; false if the account has none with that id, or
// the history no longer has it.
func (d *Door) Order(by Client, id uint64) (Order, bool, error) {
	v, err := d.enter(by)
	if err != nil {
		return Order{}, false, err
	}
	defer v.end()
	return v.order(by.Key.Account.ID, id)
}

// OrderOf is Order for any account, to complete the answer to a command.
func (d *Door) OrderOf(account uint32, id uint64) (Order, bool, error) {
	v, err := d.enterFollowUp()
	if err != nil {
		return Order{}, false, err
	}
	defer v.end()
	return v.order(account, id)
}

// OrderNamed returns the newest order of an account with a client order id, to complete the answer
// to a command; false if there is none, or the history no longer has it.
func (d *Door) OrderNamed(account uint32, id event.ClientID) (o Order, found bool, err error) {
	v, err := d.enterFollowUp()
	if err != nil {
		return o, false, err
	}
	defer v.end()
	q := orders.get()
	q.Account, q.clientID = account, id
	o, found, err = v.one(q)
	if err != nil || found && o.ClientID == id.String() {
		return o, found, err
	}
	found = false
	err = v.query(func(ctx context.Context, h persistence.History) error {
		return h.Orders(ctx, persistence.OrderQuery{Account: account, ClientID: id.String()},
			func(row *Order) bool {
				o, found = *row, true
				return false
			})
	})
	if err != nil {
		err = &HistoryError{err}
	}
	return o, found, err
}

func (v *visit) order(account uint32, id uint64) (o Order, found bool, err error) {
	q := orders.get()
	q.Account, q.ID = account, id
	return v.one(q)
}

// one asks for one order, and falls back to the store.
func (v *visit) one(q *OneOrder) (o Order, found bool, err error) {
	if err := v.ask(q); err != nil {
		return o, false, err
	}
	o, found = q.Order, q.Found
	account, id := q.Account, q.ID
	*q = OneOrder{}
	orders.Put(q)
	if found || id == 0 {
		return o, found, nil
	}
	return v.closedOrder(account, id)
}

// closedOrder looks up an order in the store.
func (v *visit) closedOrder(account uint32, id uint64) (o Order, found bool, err error) {
	err = v.query(func(ctx context.Context, h persistence.History) (err error) {
		o, err = h.Order(ctx, account, id)
		return err
	})
	return storedOrder(o, err)
}

// storedOrder converts the store's answer for one order.
func storedOrder(o Order, err error) (Order, bool, error) {
	switch {
	case errors.Is(err, persistence.ErrNotFound):
		return o, false, nil
	case err != nil:
		return o, false, &HistoryError{err}
	}
	return o, true, nil
}

// OpenOrders asks for an account's open orders, newest first. The store has the closed ones, up to
// Seq. If it asks for the order with a client order id, the wallet answers it after all its
// commands in flight.
type OpenOrders struct {
	Account uint32
	ledger.OpenFilter
	ClientID event.ClientID // of a single order; zero: no filter
	waiting  WaitFilter
	offset   int // matching rows to skip
	Limit    int

	Seq    uint64
	Orders []Order
}

var openOrders pool[OpenOrders]

func (q *OpenOrders) free() {
	*q = OpenOrders{Orders: kept(q.Orders)}
	openOrders.Put(q)
}

func (q *OpenOrders) of(account uint32) { q.Account = account }

// from looks up only the orders that it returns: skipping one costs a few nanoseconds.
func (q *OpenOrders) from(c *Side) (needs uint64) {
	s, skip := c.state, q.offset
	q.Seq = s.Seq()
	a := s.Account(q.Account)
	if !q.ClientID.IsZero() {
		id, _ := a.ClientIDs.Order(q.ClientID)
		if o, p, ok := s.OpenOrder(a, id); ok {
			q.Orders = append(q.Orders, openRow(a, o, p))
		}
		return q.Seq
	}
	for open := range a.Open.NewestOf(q.OpenFilter) {
		switch {
		case len(q.Orders) >= q.Limit:
			return q.Seq
		case !q.waiting.passes(s.Pair(open.Pair), open.ID):
		case skip > 0:
			skip--
		default:
			o, p, _ := s.OpenOrder(a, open.ID)
			q.Orders = append(q.Orders, openRow(a, o, p))
		}
	}
	return q.Seq
}

// openIDs asks for the ids of an account's open orders, newest first, without looking up the
// orders.
type openIDs struct {
	account uint32
	ledger.OpenFilter
	waiting WaitFilter
	limit   int

	seq uint64
	ids []uint64
}

var openIDLists pool[openIDs]

func (q *openIDs) free() {
	*q = openIDs{ids: kept(q.ids)}
	openIDLists.Put(q)
}

func (q *openIDs) of(account uint32) { q.account = account }

func (q *openIDs) from(c *Side) (needs uint64) {
	q.seq = c.state.Seq()
	for o := range c.state.Account(q.account).Open.NewestOf(q.OpenFilter) {
		if len(q.ids) >= q.limit {
			break
		}
		if q.waiting.passes(c.state.Pair(o.Pair), o.ID) {
			q.ids = append(q.ids, o.ID)
		}
	}
	return q.seq
}

// OneOrder asks for an order of an account that is open or closed recently. If it is not found, it
// is in the store or does not exist.
type OneOrder struct {
	Account uint32
	ID      uint64
	// clientID, if not zero, makes from fill in ID: that of the order that has or may have it; 0:
	// only the store may have it.
	clientID event.ClientID

	Order Order
	Found bool
}

var orders pool[OneOrder]

func (q *OneOrder) of(account uint32) { q.Account = account }

func (q *OneOrder) from(c *Side) (needs uint64) {
	a := c.state.Account(q.Account)
	if !q.clientID.IsZero() {
		if q.ID = a.ClientIDs.Newest(q.clientID); q.ID == 0 {
			return c.state.Seq()
		}
	}
	if o, p, ok := c.state.OpenOrder(a, q.ID); ok {
		q.Order, q.Found = openRow(a, o, p), true
	} else if closed := c.recent.find(q.Account, q.ID); closed != nil {
		q.Order, q.Found = *closed, true
	} else {
		return c.recent.evicted
	}
	return 0
}

func openRow(a *state.Account, o trading.Order, p *state.Pair) Order {
	row := Order{ID: o.ID, Account: a.ID, Pair: p.Number, Side: o.Side,
		Status: trading.StatusActive, Price: o.Price, Amount: o.Amount, Remaining: o.Remaining,
		TimeUs: o.TimeUs, ClientID: a.ClientIDs.Of(o.ID).String()}
	if x := p.Instructed(o.ID); x != nil {
		row.Instructed = x.Pack()
	}
	return row
}
