// Package stream sends the events of the markets to subscribers: tickers, best prices, books,
// trades and candles of all pairs or of one, and the status of the exchange. docs/stream.md lists
// all channels. Package socketio implements the transport and the protocol.
//
//	h := stream.New(api, stream.Options{})
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
// A channel belongs to one pair: a subscription to all pairs is a subscription to each. Only status
// belongs to none. The actor of a channel starts with the channel's first client. A subscriber
// joins a channel in the turn in which the channel receives the pair's state. It gets that state
// and all events after it, without gaps or duplicates. A shard takes all messages since its last
// flush, joins the frames of each channel, and sends each subscriber all of its channels in one
// write. So the busier the shard, the fewer the writes.
//
// The treatment of a slow subscriber depends on the channel, see kind in families.go. It costs
// other subscribers nothing.
//
//	hub.go      the channels and shards of an engine, and the hooks for socketio
//	families.go the kinds of channels
//	names.go    the names of channels, and sets of them
//	channel.go  the actor of one channel
//	payload.go  the frames of events
//	shard.go    a goroutine with its clients, and its flush
//	client.go   one client: its channels, its requests and their answers
//	orders.go   orders over the socket
//	early.go    frames of a client that are held until a subscription to a family is answered
//	login.go    a socket's authorization for an account
//	logins.go   logging in and out, and the logins of a hub
//	own.go      account events for an account's clients
//	own_payload.go  the frames of account events
//	account_feed.go     an actor for a part of the accounts, which encodes their events
//	stats.go    counts
package stream
