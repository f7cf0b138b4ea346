// Package ratelimit counts how often clients come: one token bucket for each of them.
//
// A bucket holds at most burst tokens and gets rate new ones a second. A request takes one; without
// one it is refused and takes nothing, so who waits as long as told gets through.
//
//	l := ratelimit.New(100, 200, 100_000)
//	a := l.Take(ratelimit.AddressKey(address), now)
//	if !a.OK { ... } // come back in a.RetryAfter seconds
//
// A bucket is one number: the time at which it will be full again, if nobody takes from it. A token
// taken moves it one token's interval away; a token is there while it is less than a whole bucket
// ahead of now. Nothing happens with time, so there is no timer and no clock in here: now comes
// from outside, in nanoseconds of any clock that does not go back.
//
// # When there are more clients than may be remembered
//
// A limiter has memory for a fixed number of buckets, so a flood of addresses costs none. Whoever
// is not remembered has a full bucket: forgetting a full one changes nothing. When there is no room
// for a new client, the one goes whose bucket is nearest to full. That is first of all the full
// ones: at 100 tokens a second, each client 10 ms after its only request. When all of them owe
// tokens, then
//
//   - a new client is never refused for want of room. A flood cannot lock anybody out;
//   - what is forgotten is the smallest debt of all, so an honest client that is forgotten gains by
//     it;
//   - who is at its limit owes a whole bucket and is forgotten last: not before every other place
//     of its shard is taken by someone who owes as much. To shake off one debt, an attacker must
//     run up a thousand others of its size within the time in which they are paid back, from a
//     thousand other addresses, which would have served him without this.
//
// The other two ways were left out. To refuse newcomers lets a flood shut the door. To let a
// newcomer take over the debt of the one it replaces keeps the sum of all tokens exact, but makes
// clients pay who have not come before. A random or the longest unused victim would forget a whole
// bucket of debt for every few requests.
//
// Clients are spread over shards by a hash with a secret seed: a lock for each, and nobody can
// choose addresses that share one. Each shard has its part of the memory and forgets within itself.
package ratelimit
