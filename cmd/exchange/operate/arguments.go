package operate

import (
	"net/mail"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"exchange/actors"
	"exchange/cmd/exchange/cli"
	"exchange/core/money"
)

// Checks that need no server. The server makes its own; these fail sooner, and name the argument.

var (
	validName     = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
	validCurrency = regexp.MustCompile(`^[A-Z0-9]{1,12}$`)
	validPair     = regexp.MustCompile(`^[A-Z0-9]{1,12}_[A-Z0-9]{1,12}$`)
	validKey      = regexp.MustCompile(`^[A-Za-z0-9._-]{4,64}$`)
)

// maxEmail is the maximum length of an e-mail address, in characters.
const maxEmail = 254

var permissions = []string{"read", "trade", "withdraw"}

func checkAccount(name string) error {
	if !validName.MatchString(name) {
		return cli.Usage(
			"the account name %q must be 1 to 64 of a-z, 0-9, '.', '_' and '-', and begin with a "+
				"letter or a digit", name)
	}
	return nil
}

func checkEmail(s string) error {
	if s == "" {
		return nil
	}
	if a, err := mail.ParseAddress(s); err != nil || a.Address != s || len(s) > maxEmail {
		return cli.Usage("the e-mail address %q must be one address, such as alice@example.org", s)
	}
	return nil
}

func checkKey(key string) error {
	if !validKey.MatchString(key) {
		return cli.Usage("the key %q must be 4 to 64 of A-Z, a-z, 0-9, '.', '_' and '-'", key)
	}
	return nil
}

func checkCurrency(code string) error {
	if !validCurrency.MatchString(code) {
		return cli.Usage("the currency %q must be 1 to 12 of A-Z and 0-9, such as BTC", code)
	}
	return nil
}

func checkPair(name string) error {
	if !validPair.MatchString(name) {
		return cli.Usage("the pair %q must be two currencies with _ between, such as BTC_USDT",
			name)
	}
	return nil
}

func checkReference(s string) error {
	return checkText("the reference", s, actors.MaxReference)
}

// checkMessage checks a text for clients; empty: none.
func checkMessage(s string) error {
	if s == "" {
		return nil
	}
	return checkText("--message", s, actors.MaxMessage)
}

// checkText checks one line of text that people read; most is in bytes.
func checkText(what, s string, most int) error {
	bad := func(r rune) bool { return !unicode.IsPrint(r) }
	if s == "" || len(s) > most || !utf8.ValidString(s) || strings.TrimSpace(s) != s ||
		strings.ContainsFunc(s, bad) {
		return cli.Usage(
			"%s %.80q must be 1 to %d printable characters, without blanks at its ends",
			what, s, most)
	}
	return nil
}

// readPermissions returns the listed permissions, each once, in the usual order.
func readPermissions(given []string) ([]string, error) {
	for _, s := range given {
		if !slices.Contains(permissions, s) {
			return nil, cli.Usage("the permission %q does not exist: write %s, separated by commas",
				s,
				strings.Join(permissions, ", "))
		}
	}
	if len(given) == 0 {
		return nil, cli.Usage("a key needs at least one permission: %s",
			strings.Join(permissions, ", "))
	}
	return slices.DeleteFunc(slices.Clone(permissions), func(s string) bool {
		return !slices.Contains(given, s)
	}), nil
}

// readNetworks returns the listed networks in their usual form; a single address is a network of
// one.
func readNetworks(given []string) ([]string, error) {
	networks := []string{}
	for _, s := range given {
		n, err := netip.ParsePrefix(s)
		if err != nil {
			var a netip.Addr
			if a, err = netip.ParseAddr(s); err == nil {
				n, err = a.Prefix(a.BitLen())
			}
			if err != nil || a.Zone() != "" {
				return nil,
					cli.Usage(
						"--allow is %q: write a network such as 10.0.0.0/8 or 2001:db8::/32, or "+
							"an address", s)
			}
		}
		if n.Addr().Is4In6() {
			return nil, cli.Usage("--allow is %q: write it as an IPv4 network", s)
		}
		if n != n.Masked() {
			return nil,
				cli.Usage(
					"--allow is %q, which has bits set after its prefix: write %s, or %s for the "+
						"one address", s, n.Masked(), n.Addr())
		}
		if text := n.String(); !slices.Contains(networks, text) {
			networks = append(networks, text)
		}
	}
	return networks, nil
}

func readAmount(s string) (money.Amount, error) {
	a, err := money.ParseAmount(s)
	if err != nil || a == 0 {
		return 0,
			cli.Usage(
				"the amount %q must be a number above 0, with at most 8 fractional digits and "+
					"below 92,233,720,368", s)
	}
	return a, nil
}

func readRate(flag, s string) (money.Rate, error) {
	r, err := money.ParseRate(s)
	if err != nil {
		return 0,
			cli.Usage(
				"%s is %q: write a fraction from 0 to 1 with at most 8 digits after the point, "+
					"such as 0.001 for 0.1 %%", flag, s)
	}
	return r, nil
}

// readAdjustment reads an amount below 0, and returns the amount to take.
func readAdjustment(s string) (money.Amount, error) {
	size, down := strings.CutPrefix(s, "-")
	a, err := money.ParseAmount(size)
	switch {
	case err != nil || down && a == 0:
		return 0, cli.Usage("the amount %q must be a number below 0, such as -0.5, with at most 8 "+
			"fractional digits and above -92,233,720,368", s)
	case !down:
		return 0, cli.Usage("the amount %q is not below 0, and an adjustment only takes money: to "+
			"credit an account use `exchange deposit`", s)
	}
	return a, nil
}
