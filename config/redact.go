package config

import "strings"

// RedactURL returns the address of a store without its secret parts: the user and the password, and
// everything after a question mark. It also accepts invalid URLs: messages about such text need it,
// because net/url's own errors repeat the password.
func RedactURL(s string) string {
	if strings.HasPrefix(s, pebblePrefix) {
		return s // a path: nothing in it is secret, and an '@' is part of it
	}
	scheme, rest, ok := strings.Cut(s, "://")
	if ok {
		scheme += "://"
	} else {
		scheme, rest = "", s
	}
	// The last '@' ends the password, which may contain unescaped ones.
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = "***" + rest[at:]
	}
	if q := strings.IndexByte(rest, '?'); q >= 0 {
		rest = rest[:q] + "?***"
	}
	return scheme + rest
}
