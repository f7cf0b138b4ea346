// Package matching is the order book of one pair. Limit orders wait in it by price and, at one
// price, by age. Incoming orders trade with them.
//
// # Life cycle
//
// The deciding side matches an incoming order, then rests the remainder:
//
//	book := matching.New()
//	fills, rest, cut := book.Match(trading.Buy, limit, amount, maxFills, fills[:0])
//	// fills have happened: the makers in them are smaller now or gone.
//	// cut: maxFills was reached and more would have crossed; rest must not enter the book.
//	if rest > 0 && !cut {
//		book.Add(trading.Order{ID: id, Side: trading.Buy, Price: limit, Amount: amount,
//			Remaining: rest, ...})
//	}
//	...
//	order, ok := book.Cancel(id)
//
// An order that takes at any price matches with the limit money.MaxPrice (buy) or 1 (sell) and is
// never added.
//
// The replaying side applies records and decides nothing: Fill for each recorded fill, in order,
// then Add for the recorded rest, and Cancel. Fill returns an error when the record does not fit
// the book, which exposes a diverging replay at its first wrong step.
//
// A snapshot is Open. Adding its orders to a new book with AddIceberg, in the order of Open, makes
// an equal book. Its methods give the same answers, now and after any further calls.
//
// # Instructions
//
// A plain order needs Match and Add alone; a book without icebergs costs it one comparison. An
// order with instructions also needs one of these:
//
//   - ioc, market: Match, and no Add
//   - fok: Fillable first, which changes nothing
//   - self-trade prevention, a quote amount: MatchWith
//   - post-only: Crosses or Slide instead of Match
//   - iceberg: AddIceberg instead of Add. Orders and Levels show the displayed part; Get, Next,
//     Cancel and Fill include the hidden part
//   - amend: Amend where the order keeps its priority, otherwise Cancel, Match and Add
//
// Stops holds the orders of a pair that wait for a trade at a price, and the queue of triggered
// ones. Both sides call Trade once for each record with trades, after the orders that the
// record closes were removed, and derive the same queue. An order that both rests in the book and
// waits (one-cancels-other) is in both.
//
// Stops at one trigger price trigger by id, not by age: an amended stop has an old id. So they are
// in lists that are sorted by price and id, and not in levels with queues.
//
// A Schedule orders ids by a time. It is here, not beside the actor that expires orders, because it
// shares the sorted list of stops.
//
// # Rules
//
// The best price trades first; at one price, the oldest order; always at the maker's price. A maker
// that is filled in part keeps its place. An added order queues after all others at its price. A
// book never rests crossed: Add refuses an order that Match would have filled.
//
// The book has no clock, no randomness, no I/O and no goroutine, and it ranges over no map. So the
// same calls give the same results, everywhere and always. Accounts are plain numbers here. An
// account trades with itself, unless the taker forbids it.
//
// When a part of an iceberg is used up, the next one queues after all other orders at its price,
// within the same match. So one match may fill it more than once, and ids do not ascend within a
// level.
//
// # Ownership
//
// A Book belongs to one goroutine at a time; nothing in it locks, reads included. So do Stops and a
// Schedule. Orders, fills and levels are returned as copies. The sequences of Orders, Open,
// Levels and All read lazily: finish one before changing the book or the stops.
//
// A violated precondition panics with "BUG:" before any change.
//
// # Complexity
//
// With n resting orders and m price levels on a side:
//
//	Match         O(1) for each fill, and for each prevented order
//	Fillable      O(1) for each fill that it counts
//	Add           O(log m); O(1) at the best price, mostly O(1) at a price that has a level
//	Cancel        O(1); O(log m) when it empties its level
//	Get, Fill     O(1)
//	Amend         O(1)
//	Best, Len     O(1)
//	AppendLevels  O(1) for each level
//
// With n stops Add and Remove take O(log n). Trade takes two comparisons when it triggers nothing,
// otherwise O(log n) for each stop that it queues.
//
// O(log m) is the search for a price. A new level also moves at most 254 others by one
// position, in one cache-friendly copy, and now and then splits their run (see the type ladder).
// Prices may be anywhere in 1..math.MaxInt64: no cost depends on a tick, a range, or earlier
// prices. Growing the id table is the one step that takes longer with more orders, about 10 ms at a
// million. Shrinking takes 1 or 2 ms, after more cancels and fills than it moves orders.
//
// # Memory
//
// Order records live in blocks addressed by number, with free lists, and hold no pointers for the
// garbage collector to follow. An order costs 48 bytes and 11 to 22 bytes in the id table; a price
// level costs 40 bytes and 12 to 24 bytes in the price index, rarely up to 48. Adds, cancels and
// fills allocate only while the book grows beyond its largest size so far. Memory is kept for the
// next peak, until a book with room for 65,536 orders has no more than 16,384: the next Add or
// Cancel then moves these to a new book. An empty book is 4 kB; the first order on each side
// allocates the blocks, about 50 kB in all.
//
//	book.go      matching, resting, cancelling, filling
//	types.go     Fill, one execution
//	special.go   MatchWith, Fillable, and the prices of post-only orders
//	iceberg.go   hidden parts, and amends that keep an order's priority
//	stops.go     orders that wait for a price, and the queue of triggered ones
//	schedule.go  ids by time
//	read.go      best prices, levels and orders for readers
//	clone.go     a copy of a book, and room for many orders
//	levels.go    the ladder: price levels of one side
//	sorted.go    the sorted list under stops and schedules
//	index.go     the table of ids
//	open.go      all orders and stops, also those after a place
//	slab.go      blocks of records
package matching
