// Package ratelimit limits the rate of requests by a token bucket for each client.
//
// A bucket holds at most burst tokens and gets rate new ones a second. A request takes one token.
// Without a token the request is refused and takes nothing, so a client that waits for RetryAfter
// gets through.
//
//	l := ratelimit.New(100, 200, 100_000)
//	a := l.Take(ratelimit.AddressKey(address), now)
//	if !a.OK { ... } // come back in a.RetryAfter seconds
//
// A bucket is one number: the time at which it will be full again, if no request takes from it.
// Each token taken moves that time by one token's interval. A token is left while the time is less
// than a whole bucket ahead of now. The package has no timer and no clock: the caller passes now,
// in nanoseconds of any monotonic clock.
//
//	limiter.go  the limiter, its buckets and their order of eviction
//	address.go  the client that an address stands for
//
// # When there are more clients than the limiter may remember
//
// A limiter has memory for a fixed number of buckets, so a flood of addresses costs none. A client
// that is not remembered has a full bucket, so forgetting a full bucket changes nothing. When there
// is no room for a new client, the limiter forgets the bucket that is nearest to full. Full buckets
// go first: at 100 tokens a second, each client's 10 ms after its only request. When all clients
// owe tokens, then
//
//   - a new client is never refused for want of room, so a flood cannot lock clients out;
//   - the smallest debt of all is forgotten, so an honest client that is forgotten gains by it;
//   - a client at its limit owes a whole bucket and is forgotten last, after every other bucket of
//     its shard owes as much. To shake off one debt, an attacker must run up a thousand others of
//     its size while they are paid back, from a thousand other addresses. Those addresses would
//     have served the attacker without this.
//
// Three other ways were left out. Refusing new clients lets a flood shut the door. Passing the
// forgotten debt on to the new client keeps the sum of all tokens exact, but makes a newcomer pay.
// A random victim, or the longest unused one, would forget a whole bucket of debt for every few
// requests.
//
// A hash with a secret seed spreads clients over shards, so an attacker cannot choose addresses
// that share one. Each shard has a lock and a part of the memory, and forgets within itself.
package ratelimit
