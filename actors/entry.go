package actors

import (
	"exchange/actors/metrics"
	"exchange/core/event"
)

// An entry is one record in flight through the journal. The deciding actor fills the record,
// encodes it and submits the entry; the journal, its release and settlement read nothing else. Most
// entries are part of their Command. An expiry or a triggered stop has no command.
type entry struct {
	record  event.Record  // complete effects
	encoded []byte        // the record's bytes; submit copies them
	trace   metrics.Trace // zero: not traced
	command *Command      // to answer at the release; nil: none
	own     *ownEntry     // returned to its book at the release; nil: none
}

// encode writes the record's bytes: the last step before submit.
func (n *entry) encode() { n.encoded = n.record.Append(n.encoded[:0]) }

// begin writes the record's header. The next steps depend on its kind.
func (n *entry) begin(kind event.Kind, pair uint16, timeUs int64, operator string) *event.Record {
	r := &n.record
	r.Kind, r.Pair, r.TimeUs, r.Operator = kind, pair, timeUs, operator
	return r
}

// An ownEntry is an entry that a book makes without a command. Its release returns it to the book.
type ownEntry struct {
	entry
	isTrigger       bool // its record is a triggered order
	holdsSharedSlot bool // it holds one of the slots that all books share
}
