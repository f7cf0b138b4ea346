// Package stream sends what happens in the markets to subscribers: the channels ticker, diff,
// trades and orderbook.20, of all pairs or of one, and book_<pair>. Transport and protocol are
// socketio's.
//
//	h := stream.New(engine, stream.Options{})
//	server.Namespace("/", h.Hooks(func(*socketio.Socket) bool { return false }))
//	...
//	h.Close() // when the server has no sessions any more
//
// Only what is committed is sent. It flows one way:
//
//	committed actor ──Units, Watched──▶ channel ──frames──▶ shard ──Deliver──▶ socketio
//	   (one turn: a state,              an actor for each    a goroutine        one write for each
//	    and what follows it)            kind and pair,       for each core,     subscriber and flush
//	                                    encodes once         owns subscribers
//
// A channel belongs to one pair: subscribing to all pairs is subscribing to each. A subscriber
// joins a channel in the turn in which the channel learns the pair's state, and gets that state and
// everything after it: there is no gap and nothing twice. A shard takes all that has come since its
// last flush, joins what belongs to one channel, and gives each subscriber all of its channels at
// once; so the busier it is, the fewer writes there are.
//
// What happens to a slow subscriber depends on the channel, see policies in names.go. It costs the
// others nothing.
package stream
