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

// A code has 12 characters of an alphabet in which none looks like another, and so 60 bits:
// withdraws can be asked for and cancelled as often as one likes, each with its own code and its
// own tries, and guessing is hopeless all the same.
const (
	codeLength   = 12
	codeAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ" // Crockford's: without I, L, O and U
	codeGroup    = 4
)

// Code is what the owner of a withdraw confirms it with, in groups such as 7K2M-9QXD-04TB. It is
// derived under the server's key from all that the owner confirms, so it need not be stored
// anywhere, and from the history's id: after a restore, ids and times may be given to other
// withdraws.
func (s *Sealer) Code(history event.HistoryID, w *state.Withdraw) string {
	code := s.keys[0].code(history, w)
	return string(code[:codeGroup]) + "-" + string(code[codeGroup:2*codeGroup]) + "-" + string(
		code[2*codeGroup:])
}

func (k *cipherKey) code(history event.HistoryID, w *state.Withdraw) []byte {
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

// confirmed is what a code is bound to. All but the address, which comes last, has a fixed length,
// so no two withdraws give the same bytes.
func confirmed(history event.HistoryID, w *state.Withdraw) []byte {
	b := append([]byte(nil), history[:]...)
	b = binary.BigEndian.AppendUint64(b, w.ID)
	b = binary.BigEndian.AppendUint32(b, w.Issue)
	b = binary.BigEndian.AppendUint32(b, w.Account)
	b = binary.BigEndian.AppendUint16(b, w.Currency)
	b = binary.BigEndian.AppendUint64(b, uint64(w.Amount))
	b = binary.BigEndian.AppendUint64(b, uint64(w.TimeUs))
	return append(b, w.Address...)
}

// CodeFits reports whether a text is that code, under any of the keys: one that was mailed before a
// rotation is good as long as its key is there. So whoever has stolen a key can make codes until no
// process has it. Case, blanks and dashes do not matter, nor does O for 0, and I or L for 1. How
// long it takes does not tell how much of it is right.
func (s *Sealer) CodeFits(history event.HistoryID, w *state.Withdraw, text string) bool {
	given, fits := []byte(plainCode.Replace(strings.ToUpper(text))), 0
	for i := range s.keys {
		fits |= subtle.ConstantTimeCompare(s.keys[i].code(history, w), given)
	}
	return fits == 1
}

var plainCode = strings.NewReplacer(" ", "", "-", "", "O", "0", "I", "1", "L", "1")
