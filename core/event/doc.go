// Package event defines the records of the journal: their content and their encoding.
//
// A record holds the complete effects of one command: its assigned numbers, its trades, its
// unfilled rest. A replay decides nothing, and never uses the clock, randomness or configuration. A
// command refused at admission leaves no record. A command refused later has reached its wallet and
// used its nonce, so it leaves a refusal record.
//
// Records travel in batches, the unit of a durable append (little-endian):
//
//	batch   version u8 | flags u8 | epoch u32 | prev u64 | count u32 | record... | crc32c u32
//	record  kind u8 | pair u16 | length u32 | time_us u64 | payload
//
// Record i of a batch (from 0) has sequence prev+1+i. pair is 0 for a record of no pair. The
// checksum covers everything before it.
//
// How the encoding grows: a payload may get new fields at its end, under a new kind if an old
// program could not work without them. A reader fails at an unknown version, flag or kind, and at
// trailing bytes in a payload. It never skips bytes that it does not understand.
//
//	event.go               the kinds of records and their fields, statuses, reasons of refusals
//	codec.go               batches and records as bytes
//	instructions.go        records of orders with instructions, of switches and of settings
//	instructions_codec.go  those as bytes
//	withhold.go            records for observers
package event
