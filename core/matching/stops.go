package matching

import (
	"fmt"
	"math"

	"exchange/core/money"
	"exchange/core/trading"
)

// Stops are the orders of one pair that wait for a trade at their trigger prices, and the queue of
// triggered ones that wait to enter the book. Both sides derive the queue from the trades, so no
// record reports a triggering. One goroutine at a time may use it.
type Stops struct {
	// Nearest triggers, unreachable by any price if none: a rise is triggered from riseAt on, a
	// fall up to fallAt.
	riseAt, fallAt uint64

	rising  sorted // by trigger price
	falling sorted // by the complement of the trigger price
	queue   sorted // by turn
	turn    uint64 // of the last queued order

	inBookCount int // stops that also rest in the book
	records     slab[waiting]
	free        []uint32          // unused records
	numbers     map[uint64]uint32 // of the records, by order id
	ids         []uint64          // scratch of one Trade
}

// A Stop is an order that a trade triggers.
type Stop struct {
	// Order is the order as it will enter the book. For one that also rests in the book it is the
	// id, account and side only; the book has the rest.
	Order   trading.Order
	Trigger trading.Trigger
	InBook  bool // it rests in the book: one-cancels-other
	Queued  bool // it was triggered
}

// waiting is the record of a stop. The turn is that of a queued one.
type waiting struct {
	Stop
	turn uint64
}

// NewStops returns stops without any order.
func NewStops() *Stops {
	return &Stops{riseAt: math.MaxUint64, numbers: map[uint64]uint32{}}
}

// Add inserts a waiting order; a Queued one goes to the end of the queue. It panics when the id is
// there already, or the stop is impossible.
func (s *Stops) Add(stop Stop) {
	o := &stop.Order
	open := o.Price >= 1 && o.Remaining >= 1 && o.Remaining <= o.Amount
	switch {
	case stop.Trigger.Price < 1 || stop.Trigger.When != trading.Rise &&
		stop.Trigger.When != trading.Fall:
		panic(fmt.Sprintf("BUG: stop %d added with the trigger %+v", o.ID, stop.Trigger))
	case o.Side != trading.Buy && o.Side != trading.Sell:
		panic(fmt.Sprintf("BUG: side %d is neither buy nor sell", o.Side))
	case stop.InBook && (o.Price != 0 || o.Amount != 0 || o.Remaining != 0),
		!stop.InBook && !open:
		panic(fmt.Sprintf("BUG: stop %d added with price %d and %d remaining of %d, rests: %v",
			o.ID, int64(o.Price), int64(o.Remaining), int64(o.Amount), stop.InBook))
	}
	if _, found := s.numbers[o.ID]; found {
		panic(fmt.Sprintf("BUG: stop %d added twice", o.ID))
	}
	var n uint32
	if last := len(s.free) - 1; last >= 0 {
		n, s.free = s.free[last], s.free[:last]
	} else {
		n = s.records.grow()
	}
	s.numbers[o.ID] = n
	w := s.records.at(n)
	*w = waiting{Stop: stop}
	if stop.InBook {
		s.inBookCount++
	}
	if stop.Queued {
		s.enqueue(w)
		return
	}
	s.ladder(stop.Trigger.When).add(w.entry())
	s.noteNearest()
}

// Get returns a stop; false when it is not there.
func (s *Stops) Get(id uint64) (Stop, bool) {
	n, ok := s.numbers[id]
	if !ok {
		return Stop{}, false
	}
	return s.records.at(n).Stop, true
}

// Remove deletes a stop, queued or not, and returns it; false when it is not there.
func (s *Stops) Remove(id uint64) (Stop, bool) {
	n, ok := s.numbers[id]
	if !ok {
		return Stop{}, false
	}
	w := s.records.at(n)
	list := &s.queue
	if !w.Queued {
		list = s.ladder(w.Trigger.When)
	}
	if !list.remove(w.entry()) {
		panic(fmt.Sprintf("BUG: stop %d is not in its list", id))
	}
	s.noteNearest()
	if w.InBook {
		s.inBookCount--
	}
	delete(s.numbers, id)
	s.free = append(s.free, n)
	stop := w.Stop
	if len(s.numbers) == 0 && s.records.used >= emptyFrom { // release a burst's memory
		*s = *NewStops()
	}
	return stop, true
}

// Amend changes the price and the amounts of a stop that does not rest in the book. It keeps its
// place, also in the queue. Amend reports false when the stop is not there.
func (s *Stops) Amend(id uint64, price money.Price, amount, remaining money.Amount) bool {
	n, ok := s.numbers[id]
	if !ok {
		return false
	}
	w := s.records.at(n)
	if w.InBook || price < 1 || remaining < 1 || remaining > amount {
		panic(fmt.Sprintf("BUG: stop %d amended to price %d and %d remaining of %d, rests: %v", id,
			int64(price), int64(remaining), int64(amount), w.InBook))
	}
	w.Order.Price, w.Order.Amount, w.Order.Remaining = price, amount, remaining
	return true
}

// emptyFrom is the number of records from which the memory is released with the last stop.
const emptyFrom = 1 << 12

// Trade queues the stops that the trades of one record trigger, and returns how many. low and high
// are the lowest and the highest price of the trades, taker is the taker's side. A buy's trades
// queue the rising stops first, then the falling ones; a sell's the other way round. Rising ones
// are queued by ascending, falling ones by descending trigger price, equal ones by id.
func (s *Stops) Trade(low, high money.Price, taker trading.Side) (triggered int) {
	if uint64(high) < s.riseAt && uint64(low) > s.fallAt {
		return 0
	}
	return s.trigger(low, high, taker)
}

func (s *Stops) trigger(low, high money.Price, taker trading.Side) int {
	if taker == trading.Sell {
		s.ids = s.falling.takeUpTo(^uint64(low), s.ids[:0])
		s.ids = s.rising.takeUpTo(uint64(high), s.ids)
	} else {
		s.ids = s.rising.takeUpTo(uint64(high), s.ids[:0])
		s.ids = s.falling.takeUpTo(^uint64(low), s.ids)
	}
	for _, id := range s.ids {
		s.enqueue(s.records.at(s.numbers[id]))
	}
	s.noteNearest()
	return len(s.ids)
}

// Head returns the stop that enters the book next; false when none is queued. The caller removes
// it.
func (s *Stops) Head() (Stop, bool) {
	if s.queue.count == 0 {
		return Stop{}, false
	}
	return s.Get(s.queue.first().id)
}

// Len returns the number of stops, queued ones included.
func (s *Stops) Len() int { return len(s.numbers) }

// Waiting returns the number of stops that do not rest in the book as well.
func (s *Stops) Waiting() int { return len(s.numbers) - s.inBookCount }

// Queued returns the number of queued stops.
func (s *Stops) Queued() int { return s.queue.count }

// ladder returns the list of the stops for a price movement.
func (s *Stops) ladder(d trading.Direction) *sorted {
	if d == trading.Rise {
		return &s.rising
	}
	return &s.falling
}

// entry returns the entry of a stop in its list.
func (w *waiting) entry() entry {
	switch {
	case w.Queued:
		return entry{w.turn, w.Order.ID}
	case w.Trigger.When == trading.Rise:
		return entry{uint64(w.Trigger.Price), w.Order.ID}
	}
	return entry{^uint64(w.Trigger.Price), w.Order.ID}
}

// enqueue appends a stop that is in neither ladder to the queue.
func (s *Stops) enqueue(w *waiting) {
	s.turn++
	w.Queued, w.turn = true, s.turn
	s.queue.add(w.entry())
}

func (s *Stops) noteNearest() {
	s.riseAt, s.fallAt = math.MaxUint64, 0
	if s.rising.count > 0 {
		s.riseAt = s.rising.first().key
	}
	if s.falling.count > 0 {
		s.fallAt = ^s.falling.first().key
	}
}
