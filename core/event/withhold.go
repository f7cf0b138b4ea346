package event

import "fmt"

// Observers fold the journal's records without a server key. Data that only the server needs is
// withheld: their records hold fixed texts instead, and fold to a state that shows clients the
// same.

// Withheld replaces a withheld text that must not be empty.
const Withheld = "-"

// withhold removes what an observer must not receive from a record: sealed secrets, e-mail
// addresses, references of deposits, names and words of operators, and errors of mails. It reports
// whether the record changed. A test lists each field of a record and its treatment.
func (r *Record) withhold() (changed bool) {
	take := func(text *string) {
		if *text != "" && *text != Withheld {
			*text, changed = Withheld, true
		}
	}
	take(&r.Operator)
	if text := r.Kind.info().withheld; text != nil {
		take(text(r))
	}
	if r.Kind == KindKey {
		changed = changed || r.Key.Sealed != nil
		r.Key.Sealed = nil
	}
	return changed
}

// withholds reports whether withhold may change a record with this first byte.
func withholds(head byte) bool {
	k := Kind(head &^ operatorFlag)
	return k == KindKey || k.info().withheld != nil || head&operatorFlag != 0
}

// WithholdBatch writes the observers' form of a batch to dst[:0]: the same records in the same
// order. Orders and cancels of clients are copied unchanged.
func WithholdBatch(dst, batch []byte) ([]byte, error) {
	b, err := OpenBatch(batch)
	if err != nil {
		return nil, err
	}
	var r Record
	dst = BeginBatch(dst)
	for rest := b.Records; len(rest) > 0; {
		record := rest
		if rest, err = skipRecord(record); err != nil {
			return nil, err
		}
		if !withholds(record[0]) {
			dst = append(dst, record[:len(record)-len(rest)]...)
			continue
		}
		if _, err = r.Decode(record); err != nil {
			return nil, err
		}
		r.withhold()
		dst = r.Append(dst)
	}
	return EndBatch(dst, b.Epoch, b.Prev, b.Count), nil
}

// skipRecord returns the bytes after the first record of b.
func skipRecord(b []byte) (rest []byte, err error) {
	if len(b) < recordHeader {
		return nil, fmt.Errorf("%w: %d bytes are too few for a record", errDamaged, len(b))
	}
	n := uint64(le.Uint32(b[3:]))
	if n > uint64(len(b)-recordHeader) {
		return nil, fmt.Errorf("%w: a %v record of %d bytes in a batch with %d left", errDamaged,
			Kind(b[0]&^operatorFlag), n, len(b)-recordHeader)
	}
	return b[recordHeader+int(n):], nil
}
