// Package event defines the records of the journal: what they say and how they are written.
//
// A record holds the complete effects of one command: the numbers it was given, the trades it made,
// what is left of it. Nothing has to be decided again when it is replayed, and replay never asks
// the clock, randomness or configuration. A command that was refused is a record too, when it had
// reached its wallet: it used its nonce.
//
// Records travel in batches, the unit of a durable append (little-endian):
//
//	batch   version u8 | flags u8 | epoch u32 | prev u64 | count u32 | record... | crc32c u32
//	record  kind u8 | pair u16 | length u32 | time_us u64 | payload
//
// Record i of a batch (from 0) has sequence prev+1+i. pair is 0 where a record belongs to none. The
// checksum covers everything before it.
//
// How it grows: a payload may get new fields at its end, under a new kind if an old program could
// not read on without them. A reader stops loudly at a version, a flag or a kind it does not know,
// and at bytes left over in a payload: it never skips what it does not understand.
package event
