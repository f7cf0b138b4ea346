package actors

import (
	"net/mail"
	"strings"
	"unicode"
)

// Greatest lengths of an e-mail address and of its local part, in bytes: RFC 5321 with RFC 3696's
// erratum 1690.
const (
	maxEmail   = 254
	maxMailbox = 64
)

// isEmail accepts a bare deliverable address in the simple form: no name, no comment, no quotes.
func isEmail(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && a.Address == s && len(s) <= maxEmail &&
		strings.LastIndexByte(s, '@') <= maxMailbox && !strings.ContainsAny(s, "<>") &&
		!strings.ContainsFunc(s, func(r rune) bool {
			return unicode.IsControl(r) || unicode.IsSpace(r) || r == unicode.ReplacementChar
		})
}
