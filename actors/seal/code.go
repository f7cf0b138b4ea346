package seal

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"strings"

	"exchange/core/event"
	"exchange/core/state"
)

// A code has 12 characters of an unambiguous alphabet, and so 60 bits. A client may request and
// cancel withdrawals without limit, each with its own code and tries, and guessing is still
// hopeless.
const (
	codeLength   = 12
	codeAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ" // Crockford's: without I, L, O and U
	codeGroup    = 4
)

// Code returns the code with which its owner confirms a withdrawal, in groups such as
// 7K2M-9QXD-04TB. It is derived under the server's key from everything that the owner confirms, so
// it is not stored. It is derived from the history's id, too: after a restore, other withdrawals
// may get the same ids and times.
func (s *Sealer) Code(history event.HistoryID, w *state.Withdrawal) string {
	code := s.keys[0].code(history, w)
	return string(code[:codeGroup]) + "-" + string(code[codeGroup:2*codeGroup]) + "-" + string(
		code[2*codeGroup:])
}

func (k *cipherKey) code(history event.HistoryID, w *state.Withdrawal) []byte {
	mac := hmac.New(sha256.New, k.codes)
	mac.Write(confirmed(history, w))
	bits := binary.BigEndian.Uint64(mac.Sum(nil))
	code := make([]byte, codeLength)
	for i := range code {
		code[i] = codeAlphabet[bits&31]
		bits >>= 5
	}
	return code
}

// confirmed returns the bytes that a code is bound to. Each part but the address, which comes last,
// has a fixed length, so no two withdrawals have the same bytes.
func confirmed(history event.HistoryID, w *state.Withdrawal) []byte {
	b := append([]byte(nil), history[:]...)
	b = binary.BigEndian.AppendUint64(b, w.ID)
	b = binary.BigEndian.AppendUint32(b, w.Issue)
	b = binary.BigEndian.AppendUint32(b, w.Account)
	b = binary.BigEndian.AppendUint16(b, w.Currency)
	b = binary.BigEndian.AppendUint64(b, uint64(w.Amount))
	b = binary.BigEndian.AppendUint64(b, uint64(w.TimeUs))
	return append(b, w.Address...)
}

// CodeFits reports whether a text is that code, under any key that is not retired: a code mailed
// before a rotation is valid as long as its key is. So a thief of a key can make codes until it is
// retired, and the exchange restarted. Case, blanks and dashes do not matter, nor does O for 0, and
// I or L for 1. Its duration does not depend on how much of the text is right.
func (s *Sealer) CodeFits(history event.HistoryID, w *state.Withdrawal, text string) bool {
	given, fits := []byte(plainCode.Replace(strings.ToUpper(text))), 0
	for i := range s.keys {
		fits |= subtle.ConstantTimeCompare(s.keys[i].code(history, w), given)
	}
	return fits == 1
}

var plainCode = strings.NewReplacer(" ", "", "-", "", "O", "0", "I", "1", "L", "1")
