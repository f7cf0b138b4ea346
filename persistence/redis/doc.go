// Package redis is the store that operators run: one Redis 6.2 or newer, or Valkey, that writes its
// append-only file before it answers (appendfsync always).
//
// Every change is one Lua script. It first checks the owner's token and the sequence before the
// change, and writes only then. Redis runs a script alone and logs it as one transaction. All keys
// of an engine carry the hash tag {engine}.
//
// An Apply is split into calls of about 32 kB, so that no call delays an append for long. Each call
// checks that the watermark is still where the Apply starts, and only the last moves it. The calls
// before it may be repeated. Rows are ordered by id, and existing ones are left out; wallets and
// candles are absolute, nonces only grow. A call that arrives late finds the watermark moved and
// does nothing. Until the last call rows above the watermark may be visible. They are as durable as
// all others, because only released records are applied.
//
// Redis is not trusted permanently. Its role and settings are checked again on each new connection
// that appends, and at intervals. A file beside the exchange stores the acknowledged end of the
// journal, which a copy that lagged behind lacks.
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
