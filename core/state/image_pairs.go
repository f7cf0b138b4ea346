package state

import (
	"errors"
	"fmt"

	"exchange/core/event"
	"exchange/core/matching"
	"exchange/core/trading"
	"exchange/core/wire"
)

// The open orders are most of an image. They are read in three steps. First the orders of each pair
// are skipped, to find the pairs. Then each pair gets its orders, and at last each account gets
// those of the pairs. The second and third steps can run in parallel: no two pairs, and no two
// accounts, share anything.

// An openPart is the part of an image with a pair's open orders.
type openPart struct {
	reader // of the part alone
	pair   *Pair
	orders int // in the book
	found  []openOrder
}

// An openOrder is an account's part of an open order.
type openOrder struct {
	id       uint64
	account  uint32
	side     trading.Side
	clientID []byte // empty: none
}

// pair reads a pair without its open orders, and returns the part that holds them.
func (r *reader) pair(s *State) *openPart {
	number := uint16(len(s.pairs) + 1)
	if !r.must(s.pair(&event.Pair{Number: number, Name: r.text(), Base: r.U16(), Quote: r.U16()})) {
		return nil
	}
	p := s.pairs[number-1]
	p.lastOrder, p.lastTrade, p.timeUs = r.Uint(), r.Uint(), int64(r.Uint())
	p.Halted = r.Flag()
	p.Market.Read(&r.Reader)
	if p.lastOrder > s.lastOrder || p.lastTrade > s.lastTrade || p.timeUs > s.timeUs {
		r.Fail("pair " + p.Name + " is ahead of the state in an id or its time")
	}
	part := &openPart{pair: p, orders: r.count()}
	from := r.Reader
	for i := 0; i < part.orders && !r.Bad(); i++ {
		if r.skipOrder() {
			r.Skip(1) // the hidden part
		}
	}
	for range r.entries {
		if r.UpTo(stopQueued|stopRests)&stopRests != 0 {
			r.Skip(1) // the order's id
		} else {
			r.skipOrder()
		}
	}
	if r.Bad() {
		return nil
	}
	part.reader = reader{Reader: wire.Read(from.Take(from.Len() - r.Len()))}
	return part
}

// skipOrder skips an open order. It reports whether the order has instructions.
func (r *reader) skipOrder() (instructed bool) {
	flags := r.U8()
	r.Skip(6) // id, account, price, amounts, time
	r.Take(r.count())
	if flags&hasInstructions == 0 {
		return false
	}
	new(trading.Instructed).Read(&r.Reader)
	return true
}

// open adds the open orders to the pair.
func (r *openPart) open(s *State) (err error) {
	defer func() { // a well-formed image of an impossible book panics in the book
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	p := r.pair
	r.found = make([]openOrder, 0, r.orders)
	p.Book.Reserve(r.orders)
	for range r.orders {
		o, x := r.order(s, p)
		var ice matching.Iceberg
		if x != nil && !r.Bad() {
			ice = r.iceberg(&o, x)
		}
		if r.Bad() {
			return errors.New(r.Fault())
		}
		p.Book.AddIceberg(o, ice)
	}
	r.stops(s, p)
	if r.checkBest(p); r.Bad() {
		return errors.New(r.Fault())
	}
	return nil
}

// order reads an open order of a pair, with its instructions; nil: a plain limit order.
func (r *openPart) order(s *State, p *Pair) (o trading.Order, x *trading.Instructed) {
	flags := r.U8()
	o = trading.Order{Side: trading.Side(flags &^ hasInstructions), ID: r.Uint(), Account: r.U32(),
		Price:  r.Price(),
		Amount: r.Amount(), Remaining: r.Amount(), TimeUs: int64(r.Uint())}
	id := r.Take(r.count())
	if r.Bad() || s.Account(o.Account) == nil || o.ID > p.lastOrder {
		r.Fail("an order of " + p.Name + " has no account, or is above the last id given")
		return o, nil
	}
	r.found = append(r.found, openOrder{o.ID, o.Account, o.Side, id})
	if flags&hasInstructions != 0 {
		x = r.instructed(&o)
		p.put(o.ID, x)
	}
	return o, x
}

// accountsAtOnce is the number of accounts filled in one pass over all open orders.
const accountsAtOnce = 1 << 16

// openAccounts adds the open orders of the pairs to the accounts.
func openAccounts(s *State, parts []*openPart, each func(int, func(int) error) error) error {
	n := (len(s.accounts) + accountsAtOnce - 1) / accountsAtOnce
	return each(n, func(i int) error {
		from := i * accountsAtOnce
		return openSome(s.accounts[from:min(from+accountsAtOnce, len(s.accounts))], parts)
	})
}

// openSome adds the open orders of the pairs to consecutive accounts.
func openSome(accounts []*Account, parts []*openPart) error {
	type room struct{ orders, ids int32 }
	rooms, first := make([]room, len(accounts)), accounts[0].ID
	for _, part := range parts {
		for i := range part.found {
			o := &part.found[i]
			if at := o.account - first; at < uint32(len(rooms)) {
				rooms[at].orders++
				if len(o.clientID) > 0 {
					rooms[at].ids++
				}
			}
		}
	}
	for i, a := range accounts {
		if n := rooms[i]; n.orders > 0 {
			a.Open.Expect(int(n.orders))
		}
	}
	for _, part := range parts {
		for i := range part.found {
			o := &part.found[i]
			if at := o.account - first; at < uint32(len(accounts)) {
				if err := accounts[at].restore(o, part.pair.Number,
					int(rooms[at].ids)); err != nil {
					return err
				}
			}
		}
	}
	for _, a := range accounts {
		if twice := a.Open.Restored(); twice != 0 {
			return fmt.Errorf("order %d is in two books", twice)
		}
	}
	return nil
}

// restore adds an open order of a pair to an account. ids is the number of its orders with ids.
func (a *Account) restore(o *openOrder, pair uint16, ids int) error {
	a.Open.Restore(o.id, pair, o.side)
	if len(o.clientID) == 0 {
		return nil
	}
	id, err := event.NewClientID(o.clientID)
	if err != nil {
		return errors.New("a client order id has characters that none may have")
	}
	if !a.ClientIDs.RestoreOpen(o.id, id, ids) {
		return fmt.Errorf("two orders of account %s have one client order id", a.Name)
	}
	return nil
}

// instructed reads an order's instructions, and their outcome so far.
func (r *reader) instructed(o *trading.Order) *trading.Instructed {
	x := new(trading.Instructed)
	if x.Read(&r.Reader); plain(x) || x.Cancelled != 0 ||
		len(x.Prevented) > trading.KeptPrevented ||
		x.Triggered && x.Trigger.When == 0 && x.OCO == (trading.OCO{}) {
		r.Fail("the instructions of an order have another form, or are empty")
		return x
	}
	as := event.Order{ID: o.ID, Side: o.Side, Price: o.Price}
	r.must(checkCombination(&as, &x.Instructions, x.Triggered))
	return x
}

// iceberg reads the hidden part of an order in the book.
func (r *reader) iceberg(o *trading.Order, x *trading.Instructed) matching.Iceberg {
	hidden := r.Amount()
	if hidden > 0 && x.Display == 0 || atOnce(&x.Instructions) || x.Waits() {
		r.Fail("an order in a book hides a part against its instructions, or cannot rest by them")
	}
	if hidden == 0 {
		return matching.Iceberg{}
	}
	return matching.Iceberg{Display: x.Display, Hidden: hidden}
}

// stops reads the orders of a pair that wait for a trigger.
func (r *openPart) stops(s *State, p *Pair) {
	for range r.entries {
		flags := r.UpTo(stopQueued | stopRests)
		var stop matching.Stop
		if flags&stopRests != 0 {
			id := r.Uint()
			o, rests := p.Book.Get(id)
			x := p.Instructed(id)
			if !rests || x == nil || !restsAndWaits(x) {
				r.Fail("an order that rests and waits does not rest, or waits for nothing")
				return
			}
			stop = secondHalf(&o, x)
		} else {
			o, x := r.order(s, p)
			if r.Bad() || x == nil || !x.Waits() ||
				x.OCO != (trading.OCO{}) || x.Quote != 0 || o.Remaining != o.Amount {
				r.Fail("an order waits for nothing, or was filled in part")
				return
			}
			if _, rests := p.Book.Get(o.ID); rests {
				r.Fail("an order waits and rests")
				return
			}
			stop = matching.Stop{Order: o, Trigger: x.Trigger}
		}
		stop.Queued = flags&stopQueued != 0
		p.Stops.Add(stop)
	}
	r.checkOCO(p)
}

// checkOCO refuses orders in the book whose other halves do not wait.
func (r *reader) checkOCO(p *Pair) {
	for id, x := range p.instructed {
		if _, waits := p.Stops.Get(id); restsAndWaits(x) && !waits {
			r.Fail("the other half of an order does not wait")
		}
	}
}

// checkBest compares the market's best prices with the book's.
func (r *reader) checkBest(p *Pair) {
	buy, _ := p.Book.Best(trading.Buy)
	sell, _ := p.Book.Best(trading.Sell)
	if t := p.Market.Ticker(0); t.Buy != buy || t.Sell != sell || t.TimeUs > p.timeUs {
		r.Fail("the market of " + p.Name + " has other best prices than its book, or is ahead")
	}
}
