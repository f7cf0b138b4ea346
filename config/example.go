package config

import (
	"fmt"
	"strings"
)

const exampleHead = `# Configuration of ` + "`exchange serve --config FILE`" + `.
#
# Every option is here with its default, commented out as "#key: value" without a blank. Take away the
# "#" to change one. A flag goes before an environment variable, which goes before this file; a variable
# that is empty counts as not set. Check a file with ` + "`exchange config check --config FILE`" +
	`.
#
# Secrets do not belong here: EXCHANGE_OPERATOR_TOKEN, EXCHANGE_SECRET_KEY, EXCHANGE_MAIL_PASSWORD and,
# with the password of a Redis in it, EXCHANGE_STORE.
`

// exampleWidth is the length of a line of comment in the sample file.
const exampleWidth = 100

// Example returns a sample configuration file with every option, explained, and with the demo's
// pairs.
func Example() string {
	var b strings.Builder
	b.WriteString(exampleHead)
	market := Config{Currencies: demoCurrencies(), Pairs: demoPairs()}
	section := ""
	for i := range Options {
		o := &Options[i]
		b.WriteByte('\n')
		prefix, key, nested := strings.Cut(o.Key, ".")
		indent := ""
		if !nested {
			prefix, key = "", o.Key
		} else {
			indent = "  "
			if prefix != section {
				fmt.Fprintf(&b, "%s:\n", prefix)
			}
		}
		section = prefix
		writeComment(&b, indent+"# ", o.Help)
		writeComment(&b, indent+"# ", o.where())
		switch {
		case o.list != nil && o.write == nil:
			fmt.Fprintf(&b, "#%s: []\n", key)
		case o.list != nil:
			fmt.Fprintf(&b, "%s:\n", key)
			o.write(&market, &b)
		default:
			fmt.Fprintf(&b, "%s#%s: %s\n", indent, key, exampleValue(o))
		}
	}
	return b.String()
}

func exampleValue(o *Option) string {
	switch {
	case o.Default != "":
		return o.Default
	case o.Type() == "bool":
		return "false"
	}
	return `""`
}

// where returns a sentence with the option's range, its variable and its flag. It mentions whether
// the nodes of a cluster agree on it, and whether a reload applies it.
func (o *Option) where() string {
	s := ""
	if r := o.valueRange(); r != "" {
		s = "Values: " + r + "; "
	}
	s += "environment: " + o.env()
	if o.list != nil {
		s += ", as YAML such as '[" + map[string]string{"currencies": "{code: BTC}",
			"pairs": "{name: BTC_USDT, ...}", "trusted_proxies": "10.0.0.0/8"}[o.Key] + "]'"
	}
	if o.Flag {
		s += "; flag: --" + o.FlagName()
	}
	if o.market > 0 {
		s += "; the nodes of a cluster agree on it"
	}
	if o.appliedBy != byStart {
		s += "; a reload takes it up"
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// Reference describes every option for the help of the command line.
func Reference() string {
	var b strings.Builder
	for i := range Options {
		o := &Options[i]
		fmt.Fprintf(&b, "%s", o.Key)
		if o.Default != "" {
			fmt.Fprintf(&b, "   (default %s)", o.Default)
		}
		b.WriteByte('\n')
		writeComment(&b, "    ", o.Help)
		writeComment(&b, "    ", o.where())
		b.WriteByte('\n')
	}
	return b.String()
}

// writeComment writes text in lines that begin with prefix.
func writeComment(b *strings.Builder, prefix, text string) {
	line := prefix
	for _, word := range strings.Fields(text) {
		if len(line)+len(word) > exampleWidth && line != prefix {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = prefix
		}
		line += word + " "
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
}
