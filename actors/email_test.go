package actors

import (
	"strings"
	"testing"
)

func TestAnAddressIsOnePlainEmailAddress(t *testing.T) {
	for _, s := range []string{"a@b", "alice@example.org", "alice+exchange@mail.example.org",
		"jürgen@bücher.example", "o'hara@example.org",
		strings.Repeat("a", 64) + "@" + strings.Repeat("b", 60) + ".org"} {
		if !isEmail(s) {
			t.Errorf("%q is not taken", s)
		}
	}
	for _, s := range []string{"", "a", "@", "a@", "@b", "a b@c", "a@b c", " a@b", "a@b ", "<a@b>",
		"A <a@b>", "a@b>", "<a@b", "a<b>@c", "a@b\n", "a@b\r\nBcc: x@y", "a\x00@b",
		"a@b\x7f", "a\xff@b", "a@\xff", "a\u0085@b", "a@b\u2028", "a\ufffd@b", `"a b"@c`, `"a"@b`,
		"a@b, c@d", "a@b (c)", "a@b@c", strings.Repeat("a", 65) + "@b",
		strings.Repeat("a", 64) + "@" + strings.Repeat("b", 190)} {
		if isEmail(s) {
			t.Errorf("%q is taken", s)
		}
	}
}
