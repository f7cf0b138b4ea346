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
)

// The reader of the YAML file. It walks the syntax tree instead of decoding into a struct. So it
// reports all unknown keys and wrong values at once, each with its line, and reads numbers from
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
// and contain nothing of the text, which may hold a password.
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
		for _, p := range o.list(l.cfg, n) { // each has its own line
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
		return "", errors.New("has no value: write one after the colon, or delete the line")
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

// maxTrustedProxies bounds the list: each request from a proxy scans it.
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

// parseNetwork reads a network, or an address as a network of one address.
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
		return p, fmt.Errorf("it has bits set after its prefix; write %s, or %s for "+
			"the one address",
			p.Masked(), p.Addr())
	case p.Bits() == 0:
		return p,
			errors.New("it is every address there is, so any client could claim any address")
	}
	return p, nil
}
