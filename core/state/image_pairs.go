package state

import (
	"errors"
	"fmt"

	"exchange/core/event"
	"exchange/core/matching"
	"exchange/core/money"
	"exchange/core/trading"
)

// The open orders are most of an image. They are read in three steps. First the orders of each pair
// are passed over, to find the pairs. Then each pair gets its orders, and at last each account gets
// those that the pairs have. So the second and the third step can be done side by side: no two
// pairs, and no two accounts, have anything in common.

// An openPart is the part of an image with a pair's open orders.
type openPart struct {
	reader // of the part alone
	pair   *Pair
	orders int // in the book
	found  []openOrder
}

// An openOrder is what an account has of an open order.
type openOrder struct {
	id       uint64
	account  uint32
	side     trading.Side
	timeUs   int64
	clientID []byte // empty: it has none
}

// pair reads a pair without its open orders, and returns the part with these.
func (r *reader) pair(s *State) *openPart {
	number := uint16(len(s.pairs) + 1)
	if !r.must(s.pair(&event.Pair{Number: number, Name: r.text(), Base: r.u16(), Quote: r.u16()})) {
		return nil
	}
	p := s.pairs[number-1]
	p.lastOrder, p.lastTrade, p.timeUs = r.uint(), r.uint(), int64(r.uint())
	p.Halted = r.bool()
	rest, err := p.Market.Decode(r.b)
	if !r.must(err) {
		return nil
	}
	r.b = rest
	if p.lastOrder > s.lastOrder || p.lastTrade > s.lastTrade || p.timeUs > s.timeUs {
		r.fail("pair " + p.Name + " is ahead of the state in an id or its time")
	}
	part := &openPart{pair: p, orders: r.count()}
	from := r.b
	for i := 0; i < part.orders && r.err == ""; i++ {
		if r.skipOrder() {
			r.skip(1) // the hidden part
		}
	}
	if r.version > plainVersion {
		for range r.entries {
			if r.upTo(stopQueued|stopRests)&stopRests != 0 {
				r.skip(1) // the order's id
			} else {
				r.skipOrder()
			}
		}
	}
	if r.err != "" {
		return nil
	}
	part.reader = reader{b: from[:len(from)-len(r.b)], version: r.version}
	return part
}

// skip passes numbers over.
func (r *reader) skip(numbers int) {
	i := 0
	for range numbers {
		for i < len(r.b) && r.b[i] >= 0x80 {
			i++
		}
		i++
	}
	if i > len(r.b) {
		r.fail("its end is missing, within a number")
		return
	}
	r.b = r.b[i:]
}

// skipOrder passes an open order over. It reports whether the order has instructions.
func (r *reader) skipOrder() (instructed bool) {
	flags := r.u8()
	r.skip(6) // id, account, price, amounts, time
	r.take(r.count())
	if flags&hasInstructions == 0 {
		return false
	}
	if rest, ok := new(trading.Instructed).Decode(r.b); ok {
		r.b = rest
	} else {
		r.fail("the instructions of an order have another form")
	}
	return true
}

// open gives the pair its open orders.
func (r *openPart) open(s *State) (err error) {
	defer func() { // a well-formed image of an impossible book makes the book panic
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
		if x != nil && r.err == "" {
			ice = r.iceberg(&o, x)
		}
		if r.err != "" {
			return errors.New(r.err)
		}
		p.Book.AddIceberg(o, ice)
	}
	if r.version > plainVersion {
		r.stops(s, p)
	}
	if r.checkBest(p); r.err != "" {
		return errors.New(r.err)
	}
	return nil
}

// order reads an open order of a pair, with what it says; nil: it is a plain limit order.
func (r *openPart) order(s *State, p *Pair) (o trading.Order, x *trading.Instructed) {
	flags := r.u8()
	o = trading.Order{Side: trading.Side(flags &^ hasInstructions), ID: r.uint(), Account: r.u32(),
		Price:  money.Price(r.amount()),
		Amount: r.amount(), Remaining: r.amount(), TimeUs: int64(r.uint())}
	id := r.take(r.count())
	if r.err != "" || s.Account(o.Account) == nil || o.ID > p.lastOrder {
		r.fail("an order of " + p.Name + " has no account, or is above the last id given")
		return o, nil
	}
	r.found = append(r.found, openOrder{o.ID, o.Account, o.Side, o.TimeUs, id})
	if flags&hasInstructions != 0 {
		x = r.instructed(&o)
		p.put(o.ID, x)
	}
	return o, x
}

// accountsAtOnce is how many accounts get their open orders in one go through all of them.
const accountsAtOnce = 1 << 16

// openAccounts gives the accounts the open orders that the pairs have.
func openAccounts(s *State, parts []*openPart, each func(int, func(int) error) error) error {
	n := (len(s.accounts) + accountsAtOnce - 1) / accountsAtOnce
	return each(n, func(i int) error {
		from := i * accountsAtOnce
		return openSome(s.accounts[from:min(from+accountsAtOnce, len(s.accounts))], parts)
	})
}

// openSome gives accounts whose ids follow each other the orders that the pairs have.
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
			a.ClientIDs.Expect(int(n.ids))
		}
	}
	for _, part := range parts {
		for i := range part.found {
			o := &part.found[i]
			if at := o.account - first; at < uint32(len(accounts)) {
				if err := accounts[at].restore(o, part.pair.Number); err != nil {
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

// restore gives an account an open order of a pair.
func (a *Account) restore(o *openOrder, pair uint16) error {
	a.Open.Restore(o.id, pair, o.side)
	if len(o.clientID) == 0 {
		return nil
	}
	id, err := event.NewClientID(o.clientID)
	if err != nil {
		return errors.New("a client order id has characters that none may have")
	}
	if _, taken := a.ClientIDs.Order(id); taken {
		return fmt.Errorf("two orders of account %s have one client order id", a.Name)
	}
	a.ClientIDs.Open(o.id, id, o.timeUs)
	return nil
}

// instructed reads what an order says, and what has become of it.
func (r *reader) instructed(o *trading.Order) *trading.Instructed {
	x := new(trading.Instructed)
	rest, ok := x.Decode(r.b)
	if !ok || r.version == plainVersion || plain(x) || x.Cancelled != 0 ||
		len(x.Prevented) > trading.KeptPrevented ||
		x.Triggered && x.Trigger.When == 0 && x.OCO == (trading.OCO{}) {
		r.fail("the instructions of an order have another form, or say nothing")
		return x
	}
	r.b = rest
	as := event.Order{ID: o.ID, Side: o.Side, Price: o.Price}
	r.must(together(&as, &x.Instructions, x.Triggered))
	return x
}

// iceberg reads the hidden part of an order in the book.
func (r *reader) iceberg(o *trading.Order, x *trading.Instructed) matching.Iceberg {
	hidden := r.amount()
	if hidden > 0 && x.Display == 0 || atOnce(&x.Instructions) || x.Waits() {
		r.fail("an order in a book hides a part against its instructions, or cannot rest by them")
	}
	if hidden == 0 {
		return matching.Iceberg{}
	}
	return matching.Iceberg{Display: x.Display, Hidden: hidden}
}

// stops reads the orders of a pair that wait for a trigger.
func (r *openPart) stops(s *State, p *Pair) {
	for range r.entries {
		flags := r.upTo(stopQueued | stopRests)
		var stop matching.Stop
		if flags&stopRests != 0 {
			id := r.uint()
			o, rests := p.Book.Get(id)
			x := p.Instructed(id)
			if !rests || x == nil || !twofold(x) {
				r.fail("an order that rests and waits does not rest, or waits for nothing")
				return
			}
			stop = secondHalf(&o, x)
		} else {
			o, x := r.order(s, p)
			if r.err != "" || x == nil || !x.Waits() ||
				x.OCO != (trading.OCO{}) || x.Quote != 0 || o.Remaining != o.Amount {
				r.fail("an order waits for nothing, or was filled in part")
				return
			}
			if _, rests := p.Book.Get(o.ID); rests {
				r.fail("an order waits and rests")
				return
			}
			stop = matching.Stop{Order: o, Trigger: x.Trigger}
		}
		stop.Queued = flags&stopQueued != 0
		p.Stops.Add(stop)
	}
	r.checkTwofold(p)
}

// checkTwofold looks for orders in the book whose other halves do not wait.
func (r *reader) checkTwofold(p *Pair) {
	for id, x := range p.instructed {
		if _, waits := p.Stops.Get(id); twofold(x) && !waits {
			r.fail("the other half of an order does not wait")
		}
	}
}

// checkBest compares the market's best prices with the book's.
func (r *reader) checkBest(p *Pair) {
	buy, _ := p.Book.Best(trading.Buy)
	sell, _ := p.Book.Best(trading.Sell)
	if t := p.Market.Ticker(0); t.Buy != buy || t.Sell != sell || t.TimeUs > p.timeUs {
		r.fail("the market of " + p.Name + " has other best prices than its book, or is ahead")
	}
}
