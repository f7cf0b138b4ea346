package config

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/shopspring/decimal"

	"exchange/core/money"
)

// The reader of the YAML file. It walks the syntax tree instead of decoding into a struct. So it
// reports all unknown keys and wrong values in one go, each with its line, and reads numbers from
// their text, never through a float.

// yaml reads the file's content into the configuration.
func (l *loader) yaml(name string, data []byte) {
	body, err := parseYAML(data)
	if err != nil {
		l.cfg.unread = true
		l.problem("%s %v.", name, err)
		return
	}
	if body != nil {
		l.lines = map[string]int{}
		l.section(name, "", body)
	}
}

// parseYAML returns the one document in data, nil if it is empty. Its errors begin with the line,
// and show nothing of the text: a password may stand there.
func parseYAML(data []byte) (ast.Node, error) {
	f, err := parser.ParseBytes(data, 0)
	if err != nil {
		var e yaml.Error
		if errors.As(err, &e) && e.GetToken() != nil {
			return nil, fmt.Errorf("line %d: this is not YAML: %s", e.GetToken().Position.Line,
				e.GetMessage())
		}
		return nil, errors.New("is not YAML")
	}
	var body ast.Node
	for _, d := range f.Docs {
		if d.Body == nil || d.Body.Type() == ast.CommentType {
			continue
		}
		if body != nil {
			return nil, fmt.Errorf("line %d: a second document begins here; only one is possible",
				line(d.Body))
		}
		body = d.Body
	}
	return body, nil
}

func line(n ast.Node) int { return n.GetToken().Position.Line }

// section reads the keys below prefix, which is "" or ends with a dot.
func (l *loader) section(file, prefix string, n ast.Node) {
	m, ok := n.(ast.MapNode)
	if !ok {
		if n.Type() == ast.NullType {
			return // a heading whose keys are all commented out
		}
		l.cfg.unread = l.cfg.unread || prefix == ""
		what := "the file"
		if prefix != "" {
			what = strings.TrimSuffix(prefix, ".")
		}
		l.problem("%s line %d: %s must hold keys and values, such as %q.", file, line(n), what,
			firstKey(prefix)+": ...")
		return
	}
	for it := m.MapRange(); it.Next(); {
		key := prefix + it.Key().GetToken().Value
		switch o := optionByKey[key]; {
		case o != nil:
			l.node(o, it.Value(), file, line(it.Key()))
		case len(keysBelow(key+".")) > 0:
			l.section(file, key+".", it.Value())
		default:
			where := "The keys at the top level are"
			if prefix != "" {
				where = fmt.Sprintf("The keys of %s are", strings.TrimSuffix(prefix, "."))
			}
			l.problem("%s line %d: unknown key %q. %s %s.", file, line(it.Key()), key, where,
				strings.Join(keysBelow(prefix), ", "))
		}
	}
}

func (l *loader) node(o *Option, n ast.Node, file string, at int) {
	origin := fmt.Sprintf("%s line %d", file, at)
	if first := l.lines[o.Key]; first != 0 {
		l.problem("%s: %s stands on line %d already: delete one of the two.", origin, o.Key, first)
		return
	}
	l.lines[o.Key] = at
	if o.list != nil {
		for _, p := range o.list(l.cfg, n) { // each has a line of its own
			l.problem("%s: %s", file, p)
			l.cfg.unread = true
		}
		l.cfg.origin[o.Key] = origin
		return
	}
	text, err := scalar(n)
	if err != nil {
		l.problem("%s: %s %v.", origin, o.Key, err)
		return
	}
	l.set(o, text, origin)
}

// scalar returns the text of a plain or quoted value on one line.
func scalar(n ast.Node) (string, error) {
	switch n.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, nil
	case *ast.NullNode:
		return "", errors.New("has no value: write one behind the colon, or delete the line")
	}
	return "", errors.New("must be one plain or quoted value on one line")
}

// keysBelow returns the keys and section names directly below prefix, in the order of the table.
func keysBelow(prefix string) (keys []string) {
	for i := range Options {
		rest, ok := strings.CutPrefix(Options[i].Key, prefix)
		if !ok {
			continue
		}
		rest, _, _ = strings.Cut(rest, ".")
		if !slices.Contains(keys, rest) {
			keys = append(keys, rest)
		}
	}
	return keys
}

func firstKey(prefix string) string { return keysBelow(prefix)[0] }

// A field is one key of an entry of currencies or pairs.
type field struct {
	key      string
	required bool
	set      func(text string) error
}

// entries reads a list of mappings; fields gives the keys of a new entry. It returns what is wrong.
func entries(what string, n ast.Node, fields func() []field) (problems problemList) {
	bad := func(at ast.Node, format string, args ...any) {
		problems = append(problems, fmt.Sprintf("%s, line %d: %s", what, line(at),
			fmt.Sprintf(format, args...)))
	}
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		bad(n, "this must be a list, each entry beginning with \"- \".")
		return problems
	}
	for _, v := range seq.Values {
		fs := fields()
		names := make([]string, len(fs))
		for i := range fs {
			names[i] = fs[i].key
		}
		m, ok := v.(ast.MapNode)
		if !ok {
			bad(v, "an entry has the keys %s.", strings.Join(names, ", "))
			continue
		}
		given := map[string]bool{}
		for it := m.MapRange(); it.Next(); {
			key := it.Key().GetToken().Value
			i := slices.Index(names, key)
			if i < 0 {
				bad(it.Key(), "unknown key %q. An entry has the keys %s.", key,
					strings.Join(names, ", "))
				continue
			}
			given[key] = true
			text, err := scalar(it.Value())
			if err != nil {
				bad(it.Key(), "%s %v.", key, err)
			} else if err := fs[i].set(text); err != nil {
				bad(it.Key(), "%s is %q: %v.", key, text, err)
			}
		}
		for _, f := range fs {
			if f.required && !given[f.key] {
				bad(v, "%s is missing.", f.key)
			}
		}
	}
	return problems
}

func readCurrencies(c *Config, n ast.Node) problemList {
	var list []*Currency
	problems := entries("currencies", n, func() []field {
		x := &Currency{}
		list = append(list, x)
		return []field{
			{"code", true, setText(&x.Code)},
			{"sign", false, setText(&x.Sign)},
			{"minimum_withdraw", false, setAmount(&x.MinimumWithdrawal)},
			{"address_pattern", false, setText(&x.addressPattern)},
			{"deposit_instructions", false, setText(&x.DepositInstructions)},
		}
	})
	c.Currencies = values(list)
	return problems
}

func readPairs(c *Config, n ast.Node) problemList {
	var list []*Pair
	problems := entries("pairs", n, func() []field {
		x := &Pair{MarketCollar: usualCollar, StopCollar: usualCollar}
		list = append(list, x)
		return []field{
			{"name", true, setText(&x.Name)},
			{"price_precision", true, setInt(&x.PricePrecision)},
			{"amount_precision", true, setInt(&x.AmountPrecision)},
			{"minimum_order_size", true, setAmount(&x.MinimumOrderSize)},
			{"maximum_order_size", true, setAmount(&x.MaximumOrderSize)},
			{"minimum_order_value", false, setBalance(&x.MinimumOrderValue)},
			{"price_tick", false, setPrice(&x.PriceTick)},
			{"amount_step", false, setAmount(&x.AmountStep)},
			{"price_band", false, setRate(&x.PriceBand)},
			{"market_collar", false, setRate(&x.MarketCollar)},
			{"stop_collar", false, setRate(&x.StopCollar)},
			{"maker_fee", false, setRate(&x.MakerFee)},
			{"taker_fee", false, setRate(&x.TakerFee)},
		}
	})
	c.Pairs = values(list)
	return problems
}

// maxTrustedProxies bounds the list: each request from a proxy looks through it.
const maxTrustedProxies = 64

func readTrustedProxies(c *Config, n ast.Node) (problems problemList) {
	bad := func(at ast.Node, format string, args ...any) {
		problems = append(problems, fmt.Sprintf("trusted_proxies, line %d: %s", line(at),
			fmt.Sprintf(format, args...)))
	}
	seq, ok := n.(*ast.SequenceNode)
	switch {
	case !ok:
		bad(n, "this must be a list of networks or addresses, such as [10.0.0.0/8, 192.0.2.1].")
		return problems
	case len(seq.Values) > maxTrustedProxies:
		bad(n, "list at most %d.", maxTrustedProxies)
		return problems
	}
	c.TrustedProxies = nil
	for _, v := range seq.Values {
		text, err := scalar(v)
		if err != nil {
			bad(v, "an entry %v.", err)
		} else if p, err := parseNetwork(text); err != nil {
			bad(v, "%q is not possible: %v.", text, err)
		} else {
			c.TrustedProxies = append(c.TrustedProxies, p)
		}
	}
	return problems
}

// parseNetwork reads a network, or an address as the network of it alone.
func parseNetwork(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		a, err := netip.ParseAddr(s)
		if err != nil || a.Zone() != "" {
			return p,
				errors.New("write a network such as 10.0.0.0/8 or 2001:db8::/32, or an address")
		}
		p = netip.PrefixFrom(a, a.BitLen())
	}
	switch {
	case p.Addr().Is4In6():
		return p, errors.New("write it as an IPv4 network")
	case p != p.Masked():
		return p, fmt.Errorf("it has bits behind its prefix; write %s, or %s for the one address",
			p.Masked(), p.Addr())
	case p.Bits() == 0:
		return p,
			errors.New("it is every address there is, so any client could claim any address")
	}
	return p, nil
}

func values[T any](list []*T) []T {
	out := make([]T, len(list))
	for i, p := range list {
		out[i] = *p
	}
	return out
}

func setText(at *string) func(string) error {
	return func(s string) error { *at = s; return nil }
}

func setInt(at *int) func(string) error {
	return func(s string) (err error) { *at, err = parseInt(s); return err }
}

func setRate(at *money.Rate) func(string) error {
	return func(s string) (err error) {
		if *at, err = money.ParseRate(s); err != nil {
			return errors.New(
				"write a fraction from 0 to 1 of at most 8 digits, such as 0.001 for 0.1 %")
		}
		return nil
	}
}

func setAmount(at *money.Amount) func(string) error {
	return func(s string) (err error) {
		if *at, err = money.ParseAmount(s); err != nil {
			return errFixed
		}
		return nil
	}
}

func setPrice(at *money.Price) func(string) error {
	return func(s string) (err error) {
		if *at, err = money.ParsePrice(s); err != nil {
			return errFixed
		}
		return nil
	}
}

var errFixed = errors.New(
	"write a number of at most 8 fractional digits, below 92,233,720,368")

// maxNumberText bounds the text of a decimal, and maxExponent its exponent, so that a short text
// such as 1e999999999 cannot ask for gigabytes.
const (
	maxNumberText = 64
	maxExponent   = 64
)

func setBalance(at *money.Balance) func(string) error {
	return func(s string) error {
		bad := errors.New("write a number of at most 16 fractional digits that is not negative")
		if len(s) > maxNumberText {
			return bad
		}
		d, err := decimal.NewFromString(s)
		if err != nil || d.Exponent() > maxExponent || d.Exponent() < -2*maxExponent {
			return bad
		}
		if *at, err = money.BalanceFromDecimal(d); err != nil {
			return bad
		}
		return nil
	}
}
