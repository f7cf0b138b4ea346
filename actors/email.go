package actors

import (
	"net/mail"
	"strings"
	"unicode"
)

// Longest e-mail address and what may stand before its @, in bytes: RFC 5321 with RFC 3696's
// erratum 1690.
const (
	maxEmail   = 254
	maxMailbox = 64
)

// isEmail takes a bare address in the simple form, which a mail can be sent to: no name, no
// comment, no quotes.
func isEmail(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && a.Address == s && len(s) <= maxEmail &&
		strings.LastIndexByte(s, '@') <= maxMailbox && !strings.ContainsAny(s, "<>") &&
		!strings.ContainsFunc(s, func(r rune) bool {
			return unicode.IsControl(r) || unicode.IsSpace(r) || r == unicode.ReplacementChar
		})
}
