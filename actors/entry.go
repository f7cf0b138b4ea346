package actors

import (
	"exchange/actors/metrics"
	"exchange/core/event"
)

// An entry is one record on its way into the journal, and out of it again. The actor that decides
// fills the record, encodes it and submits the entry; the journal, its release and settlement read
// nothing else. Most entries lie in the memory of the command that they answer. An entry without a
// client answers none: an order that expires, a stop that is triggered.
type entry struct {
	record  event.Record  // complete effects
	encoded []byte        // the record's bytes; submit copies them
	trace   metrics.Trace // zero: not traced
	command *Command      // to be answered at the release; nil: there is none
	unit    *unit         // to be given back to its book at the release; nil: there is none
}

// encode makes the record's bytes: the last step before submit.
func (n *entry) encode() { n.encoded = n.record.Append(n.encoded[:0]) }

// begin gives the record its head. The next steps depend on its kind.
func (n *entry) begin(kind event.Kind, pair uint16, timeUs int64, operator string) *event.Record {
	r := &n.record
	r.Kind, r.Pair, r.TimeUs, r.Operator = kind, pair, timeUs, operator
	return r
}

// A unit is an entry that a book makes without a command. At its release the book gets it back.
type unit struct {
	entry
	triggers bool // it is a triggered order
	shared   bool // and has one of the slots that all books share
}
