package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The market part of a configuration is what clients see of it: currencies, pairs with their fees,
// and the limits on orders, batches, withdrawals and keys. The nodes of a cluster agree on one. As
// text it is a file with the options of the market part alone, each of them.

// MaxMarket is how many bytes the text may have.
const MaxMarket = 4 << 20

// Market returns the market part as text. Two are equal if their texts are.
func (c *Config) Market() []byte {
	var b strings.Builder
	section := ""
	for _, o := range agreedOptions() {
		writeMarket(&b, c, o, &section)
	}
	return []byte(b.String())
}

func agreedOptions() (list []*Option) {
	for i := range Options {
		if Options[i].market {
			list = append(list, &Options[i])
		}
	}
	return list
}

// writeMarket adds one option. section is that of the option before.
func writeMarket(b *strings.Builder, c *Config, o *Option, section *string) {
	prefix, key, nested := strings.Cut(o.Key, ".")
	switch {
	case o.list != nil:
		fmt.Fprintf(b, "%s:\n", o.Key)
		o.write(c, b)
		return
	case nested && prefix != *section:
		fmt.Fprintf(b, "%s:\n", prefix)
		*section = prefix
	}
	fmt.Fprintf(b, "  %s: %s\n", key, o.text(c))
}

// WithMarket returns a copy of the configuration with another market part. It returns an error if
// the text is none, has other options or lacks one, or if the whole would not be valid.
func (c *Config) WithMarket(text []byte) (*Config, error) {
	from, err := readMarket(text)
	if err != nil {
		return nil, err
	}
	merged := *c
	merged.origin = nil
	merged.Currencies, merged.Pairs = from.Currencies, from.Pairs
	for _, o := range agreedOptions() {
		if o.list == nil {
			if err := o.set(&merged, o.text(from)); err != nil {
				return nil, err
			}
		}
	}
	if err := merged.validate(); err != nil {
		return nil, err
	}
	if !bytes.Equal(merged.Market(), text) {
		return nil, errors.New("the market part is not written as this program writes it")
	}
	return &merged, nil
}

// readMarket reads the options of a text, all of the market part and no others.
func readMarket(text []byte) (*Config, error) {
	if len(text) > MaxMarket {
		return nil, fmt.Errorf("the market part has %s bytes; at most %s are possible",
			thousands(len(text)), thousands(MaxMarket))
	}
	l := loader{cfg: &Config{origin: map[string]string{}}}
	l.yaml("the market part", text)
	for _, o := range agreedOptions() {
		if _, ok := l.cfg.origin[o.Key]; !ok {
			l.problem("the market part lacks %s.", o.Key)
		}
		delete(l.cfg.origin, o.Key)
	}
	for key := range l.cfg.origin {
		l.problem("%s is no option of the market part.", key)
	}
	if len(l.problems) > 0 {
		slices.Sort(l.problems)
		return nil, l.problems
	}
	return l.cfg, nil
}

// MarketDiffers returns the keys of the options in which the configuration's market part differs
// from another one. A text that cannot be read differs in all.
func (c *Config) MarketDiffers(text []byte) (keys []string) {
	other, err := readMarket(text)
	for _, o := range agreedOptions() {
		if err != nil || o.alone(c) != o.alone(other) {
			keys = append(keys, o.Key)
		}
	}
	return keys
}

// alone returns the option's text in a market part.
func (o *Option) alone(c *Config) string {
	var b strings.Builder
	section := ""
	writeMarket(&b, c, o, &section)
	return b.String()
}
