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
// the book, so a replay that went astray is noticed at its first wrong step.
//
// A snapshot is Orders of both sides. Adding them to a new book, each side in the order of Orders,
// makes an equal book. Its methods give the same answers, now and after any further calls.
//
// # Rules
//
// The best price trades first; at one price, the oldest order; always at the maker's price. A maker
// that is filled in part keeps its place. An added order goes behind all others at its price. A
// book never rests crossed: Add refuses an order that Match would have filled.
//
// The book has no clock, no randomness, no I/O and no goroutine, and it ranges over no map. So the
// same calls give the same results, everywhere and always. It knows accounts as plain numbers and
// lets an account trade with itself.
//
// # Ownership
//
// A Book belongs to one goroutine at a time; nothing in it locks, reads included. Orders, fills and
// levels are handed out as copies. The sequences of Orders and Levels read the book as they go:
// finish one before changing the book.
//
// A broken promise of the caller panics with "BUG:" before anything has changed.
//
// # Complexity
//
// With n resting orders and m price levels on a side:
//
//	Match         O(1) for each fill
//	Add           O(log m); O(1) at the best price, mostly O(1) at a price that has a level
//	Cancel        O(1); O(log m) when it empties its level
//	Get, Fill     O(1)
//	Best, Len     O(1)
//	AppendLevels  O(1) for each level
//
// O(log m) is the search for a price. A new level also moves at most 254 others by one
// position, in one cache-friendly copy, and now and then splits their run (see the type ladder).
// Prices may be anywhere in 1..math.MaxInt64: no cost depends on a tick, a range, or earlier
// prices. Growing the id table is the one step that takes longer with more orders, about 10 ms at a
// million.
//
// # Memory
//
// Order records live in blocks addressed by number, with free lists, and hold no pointers for the
// garbage collector to follow. An order costs 48 bytes and 11 to 22 bytes in the id table; a price
// level costs 40 bytes and 12 to 24 bytes in the price index, rarely up to 48. Adds, cancels and
// fills allocate only while the book grows beyond its largest size so far. Memory is kept for the
// next peak: to shrink a book, restore it into a new one. An empty book is 4 kB; the first order on
// each side brings the blocks, about 50 kB in all.
//
//	book.go    matching, resting, cancelling, filling
//	types.go   Fill, one execution
//	read.go    best prices, levels and orders for readers
//	levels.go  the ladder: price levels of one side
//	index.go   the table of ids
//	compare.go two books, some orders at a time
//	slab.go    blocks of records
package matching
