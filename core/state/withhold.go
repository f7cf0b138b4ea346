package state

import (
	"fmt"

	"exchange/core/event"
)

// WithholdImage yields the observers' form of an image, piece by piece, until yield returns false:
// without the data that event.WithholdBatch removes from records. Its state shows clients the same.
// It builds no books, so it takes little more memory than the accounts and keys. Errors are those
// of Decode.
func WithholdImage(image []byte, yield func(piece []byte) bool) error {
	r, s, err := beginImage(image)
	if err != nil {
		return err
	}
	if r.Bad() {
		return fmt.Errorf("%w: %s", ErrImage, r.Fault())
	}
	s.withhold()
	w := writer{size: pieceBytes, yield: yield}
	w.begin(s)
	for rest := r.Rest(); !w.done; {
		n := min(len(rest), pieceBytes)
		w.buf = append(w.buf, rest[:n]...)
		if rest = rest[n:]; len(rest) == 0 {
			break
		}
		w.over()
	}
	if !w.done {
		yield(w.buf)
	}
	return nil
}

// withhold removes data that an observer must not receive. The mails of the outbox stay, emptied: a
// new history renews the codes of some of them.
func (s *State) withhold() {
	for _, a := range s.accounts {
		if a.Email != "" {
			a.Email = event.Withheld
		}
	}
	for _, k := range s.keys {
		k.Sealed = nil
	}
	for m := range s.outbox.after(0) {
		m.Withdrawal.Address, m.Withdrawal.Details = "", ""
		if m.Change.Account != 0 {
			m.Change.To = event.Withheld
		}
	}
}
