package operate

import (
	"net/netip"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/shopspring/decimal"
)

// An accepted argument means one thing, and is one line of printable text. The error about a
// refused argument is one line too.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{"", "alice", "Alice", "a b", "1", "1e-8", "0", "-1", "10.0.0.0/8",
		"10.1.0.0/8", "::1", "::ffff:10.0.0.0/104", "fe80::1%x", "a@b.c", "A <a@b.c>", "BTC",
		"BTC_USDT", "x\ny",
		"\xff", "read", "0.001", "1.1", strings.Repeat("x", 2000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		plain := func(err error) bool {
			if err == nil {
				return true
			}
			if text := err.Error(); text == "" || !utf8.ValidString(text) ||
				strings.ContainsFunc(text, unicode.IsControl) || len(text) > 500+4*len(s) {
				t.Fatalf("%q is refused with %q", s, text)
			}
			return false
		}
		for what, check := range map[string]func(string) error{"account": checkAccount,
			"e-mail": checkEmail, "key": checkKey, "currency": checkCurrency, "pair": checkPair,
			"reference": checkReference} {
			if plain(check(s)) && (strings.ContainsFunc(s, unicode.IsControl) ||
				!utf8.ValidString(s)) {
				t.Fatalf("%q is taken as %s", s, what)
			}
		}
		if a, err := readAmount(s); plain(err) {
			if d, err := decimal.NewFromString(s); err != nil || !d.Equal(a.Decimal()) ||
				!d.IsPositive() {
				t.Fatalf("%q is taken as the amount %v, it is %v, %v", s, a, d, err)
			}
		}
		if list, err := readNetworks([]string{s}); plain(err) {
			p, err := netip.ParsePrefix(list[0])
			if err != nil || p != p.Masked() || p.Addr().Is4In6() || p.Addr().Zone() != "" {
				t.Fatalf("%q is taken as %q", s, list)
			}
			if again, err := readNetworks(list); err != nil || again[0] != list[0] {
				t.Fatalf("%q is taken as %q, and that as %q, %v", s, list, again, err)
			}
		}
	})
}
