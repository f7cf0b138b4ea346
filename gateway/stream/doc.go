// Package stream sends the events of the markets to subscribers: the channels ticker, diff, trades
// and orderbook.20, of all pairs or of one, and book_<pair>. Package socketio has the transport and
// the protocol.
//
//	h := stream.New(engine, stream.Options{})
//	server.Namespace("/", h.Hooks(func(*socketio.Socket) bool { return false }))
//	...
//	h.Close() // when the server has no sessions any more
//
// Only committed events are sent. They flow one way:
//
//	committed actor ──events──▶ channel ──frames──▶ shard ──Deliver──▶ socketio
//	  one turn: a state,        an actor for each   a goroutine        one write for each
//	  and the events            kind and pair,      for each core,     subscriber and flush
//	  after it                  encodes once        owns subscribers
//
// A channel belongs to one pair: a subscription to all pairs is a subscription to each. A
// subscriber joins a channel in the turn in which the channel learns the pair's state. It gets that
// state and all events after it, without a gap and nothing twice. A shard takes all messages since
// its last flush, joins the frames of each channel, and gives each subscriber all of its channels
// at once. So the busier the shard is, the fewer writes there are.
//
// The treatment of a slow subscriber depends on the channel, see policies in names.go. It costs
// other subscribers nothing.
//
//	hub.go      the channels and shards of an engine, and the hooks for socketio
//	names.go    the names of channels, and sets of them
//	channel.go  the actor of one channel
//	payload.go  the frames of events
//	shard.go    a goroutine with its clients, and its flush
//	client.go   one client: its channels, its requests and their answers
//	stats.go    counts
package stream
