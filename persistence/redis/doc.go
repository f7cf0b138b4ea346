// Package redis is the store that operators run: one Redis 6.2 or newer, or Valkey, that writes its
// append-only file before it answers (appendfsync always).
//
// Every change is one Lua script. It first checks the owner's token and the sequence that the
// change follows, and writes only then. Redis runs a script alone and logs it as one transaction.
// All keys of an engine carry the hash tag {engine}.
//
// An Apply is cut into calls of about 32 kB, so that no call holds up an append for long. Each
// call checks that the watermark is still where the Apply starts, and only the last moves it. The
// calls before it can be made again without harm. Rows go to the place of their id and are left out
// if they are there, wallets and candles are absolute, nonces only grow. A call that arrives late
// finds the watermark moved and does nothing. Until the last call rows above the watermark may be
// visible. They are as durable as all others, because only released records are applied.
//
// Redis is not believed for ever. Its role and settings are looked at again on each new connection
// that appends, and now and then. A file beside the exchange remembers the acknowledged end of the
// journal, which a copy that was behind does not have.
//
// See docs/storage.md for the keys and for how Redis must be set.
//
//	store.go         opening, connections, errors
//	durability.go    whether acknowledged writes are in the append-only file
//	acknowledged.go  the file of the acknowledged end
//	journal.go       owners, appends, reads, trims
//	scripts.go       the Lua scripts
//	apply.go         one Apply as calls
//	rows.go          rows into their lists
//	history.go       queries
//	client_ids.go    the index of client ids
//	references.go    the index of deposits' references
//	wallets.go       wallets and nonces
//	snapshot.go      images
//	rewrite.go       when Redis rewrites its append-only file
//	verify.go        checks of all rows
package redis
