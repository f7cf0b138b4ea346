package seal

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"strings"
)

// A code has 12 characters of an alphabet in which none looks like another, and so 60 bits: withdraws can be
// asked for and cancelled as often as one likes, each with its own code and its own tries, and guessing is
// hopeless all the same.
const (
	codeLength   = 12
	codeAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ" // Crockford's: without I, L, O and U
	codeGroup    = 4
)

// Code is what the owner of a withdraw confirms it with, in groups such as 7K2M-9QXD-04TB. It is derived from
// the withdraw's id and the number of the issue under the server's key: it need not be stored anywhere.
func (s *Sealer) Code(withdraw uint64, issue uint32) string {
	code := s.keys[0].code(withdraw, issue)
	return string(code[:codeGroup]) + "-" + string(code[codeGroup:2*codeGroup]) + "-" + string(code[2*codeGroup:])
}

func (k *cipherKey) code(withdraw uint64, issue uint32) []byte {
	mac := hmac.New(sha256.New, k.codes)
	var b [12]byte
	binary.BigEndian.PutUint64(b[:], withdraw)
	binary.BigEndian.PutUint32(b[8:], issue)
	mac.Write(b[:])
	bits := binary.BigEndian.Uint64(mac.Sum(nil))
	code := make([]byte, codeLength)
	for i := range code {
		code[i] = codeAlphabet[bits&31]
		bits >>= 5
	}
	return code
}

// CodeFits reports whether a text is that code, under any of the keys: one that was mailed before a rotation is good as
// long as its key is there. So whoever has stolen a key can make codes until no process has it. Case, blanks and dashes do
// not matter, nor does O for 0, and I or L for 1. How long it takes does not tell how much of it is right.
func (s *Sealer) CodeFits(withdraw uint64, issue uint32, text string) bool {
	given, fits := []byte(plainCode.Replace(strings.ToUpper(text))), 0
	for i := range s.keys {
		fits |= subtle.ConstantTimeCompare(s.keys[i].code(withdraw, issue), given)
	}
	return fits == 1
}

var plainCode = strings.NewReplacer(" ", "", "-", "", "O", "0", "I", "1", "L", "1")
