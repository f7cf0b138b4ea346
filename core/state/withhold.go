package state

import (
	"fmt"

	"exchange/core/event"
)

// WithholdImage yields an image as observers get it, piece by piece, until yield returns false:
// without what only the server needs, as event.WithholdBatch takes it out of records. Its state
// shows clients the same. It makes no books, so it takes little more memory than the accounts and
// keys. Errors are those of Decode.
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
	for rest := r.Rest(); !w.left; {
		n := min(len(rest), pieceBytes)
		w.buf = append(w.buf, rest[:n]...)
		if rest = rest[n:]; len(rest) == 0 {
			break
		}
		w.over()
	}
	if !w.left {
		yield(w.buf)
	}
	return nil
}

// withhold takes out of a state what an observer must not have. The mails of the outbox stay: a new
// history makes the codes of some of them anew. But they say nothing.
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
