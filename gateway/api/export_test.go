package api

import "exchange/actors/committed"

// Waiting returns the number of texts of large answers, and their bytes. For tests of what edges
// give back.
func (b *Budget) Waiting() (texts int, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.texts, b.held
}

// Whole returns a view's JSON as a whole; the first call makes it by encode. For tests of how often
// a view is encoded.
func Whole(v *committed.View, encode func() []byte) []byte { return shown(v).body(encode).json }

// Part returns the entries [from, to) of a view's first list as JSON; entry appends those not
// encoded before. For tests of how often a view is encoded.
func Part(v *committed.View, from, to int, entry func(b []byte, place int) []byte) []byte {
	return shown(v).part(sellList, from, to, entry).json
}

// FieldAddress is the rule of an address.
const FieldAddress = fieldAddress
