package actors

import (
	"exchange/actors/metrics"
	"exchange/core/event"
)

// An entry is one record in flight through the journal. The deciding actor fills the record,
// encodes it and submits the entry; the journal, its release and settlement read nothing else. Most
// entries lie in the memory of their command. Entries such as an expiry or a triggered stop have no
// command.
type entry struct {
	record  event.Record  // complete effects
	encoded []byte        // the record's bytes; submit copies them
	trace   metrics.Trace // zero: not traced
	command *Command      // to answer at the release; nil: none
	unit    *unit         // returned to its book at the release; nil: none
}

// encode writes the record's bytes: the last step before submit.
func (n *entry) encode() { n.encoded = n.record.Append(n.encoded[:0]) }

// begin writes the record's header. The next steps depend on its kind.
func (n *entry) begin(kind event.Kind, pair uint16, timeUs int64, operator string) *event.Record {
	r := &n.record
	r.Kind, r.Pair, r.TimeUs, r.Operator = kind, pair, timeUs, operator
	return r
}

// A unit is an entry that a book makes without a command. Its release returns it to the book.
type unit struct {
	entry
	triggers bool // it is a triggered order
	shared   bool // it holds a slot shared by all books
}
