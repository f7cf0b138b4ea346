package event

import "fmt"

// Observers fold the journal's records and have no server key. What only the server needs does not
// go to them: the records that they get have fixed texts in its place, and fold to a state that
// shows clients the same.

// Withheld stands where a text must not be empty, and only the server needs it.
const Withheld = "-"

// withhold takes out of a record what an observer must not have: sealed secrets, e-mail addresses,
// references of deposits, names and words of operators, and errors of mails. It reports whether
// the record was changed. A test lists each field of a record, and what becomes of it.
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

// withholds reports whether withhold may change a record that begins so.
func withholds(head byte) bool {
	k := Kind(head &^ operatorFlag)
	return k == KindKey || k.info().withheld != nil || head&operatorFlag != 0
}

// WithholdBatch writes a batch behind dst[:0] as observers get it: of the same records, in the same
// places. Orders and cancels of clients are copied as they are.
func WithholdBatch(dst, batch []byte) ([]byte, error) {
	b, err := OpenBatch(batch)
	if err != nil {
		return nil, err
	}
	var r Record
	dst = BeginBatch(dst)
	for rest := b.Records; len(rest) > 0; {
		record := rest
		if rest, err = behind(record); err != nil {
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

// behind returns what follows the first record of b.
func behind(b []byte) (rest []byte, err error) {
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
