package seal

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
)

// Text is keys, all of them, or refused in words that contain nothing of it; and a key opens
// exactly what it seals.
func FuzzKeys(f *testing.F) {
	one := strings.Repeat("ab", KeyBytes)
	for _, s := range []string{"", " \n", one, one + "\n",
		one + "\n" + strings.Repeat("cd", KeyBytes), one + " " + one, one[1:], one + "ab",
		strings.ToUpper(one), strings.Repeat("zz", KeyBytes), one + "\x00"} {
		f.Add(s, []byte("sealed"))
	}
	f.Fuzz(func(t *testing.T, text string, sealed []byte) {
		s, err := parse(text, "the text")
		if err != nil {
			for _, word := range strings.Fields(text) {
				if len(word) >= 8 && strings.Contains(err.Error(), word) {
					t.Fatalf("the error reveals the key: %v", err)
				}
			}
			return
		}
		keys, err := parseKeys(text, "the text")
		if err != nil || len(keys) == 0 ||
			hex.EncodeToString(keys[0]) != strings.ToLower(strings.Fields(text)[0]) {
			t.Fatalf("%q is %d keys, %v", text, len(keys), err)
		}
		if secret, err := s.Open(s.Seal(sealed, []byte("key")), s.ID(),
			[]byte("key")); err != nil || !bytes.Equal(secret, sealed) {
			t.Fatalf("%q came back as %q, %v", sealed, secret, err)
		}
		if _, err := s.Open(sealed, s.ID(), []byte("key")); err == nil {
			t.Fatalf("%q was never sealed, and opens", sealed)
		}
	})
}
