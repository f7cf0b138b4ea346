package config

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
)

// The market part of a configuration is the part visible to clients: currencies, pairs with their
// fees, limits on orders, batches, withdrawals, keys, requests and packets, and the validity of
// codes. Bounds on the memory, connections and files of a machine are the node's own, and so are
// its timeouts. The nodes of a cluster agree on one market part. Its text is a file with all
// options of the market part, and no others.
//
// Older programs refuse an option added to it. So the text is written in the format of entries that
// all members of the cluster read, and lacks the options of newer formats. Until then such an
// option is the node's own.

// firstMarket is the first format of cluster entries, whose market part has today's options. An
// added option has the number of the format that introduces it.
const firstMarket = 11

// maxMarket bounds the text, in bytes.
const maxMarket = 4 << 20

// Market returns the whole market part as text. Two are equal if their texts are.
func (c *Config) Market() []byte { return c.MarketOf(math.MaxUint8) }

// MarketOf returns the market part as text of a format of entries.
func (c *Config) MarketOf(format uint8) []byte {
	var b strings.Builder
	section := ""
	for _, o := range agreedOptions() {
		if o.market <= format {
			writeMarket(&b, c, o, &section)
		}
	}
	return []byte(b.String())
}

// Markets returns the market part as text of each format, the newest first.
func (c *Config) Markets() (texts [][]byte) {
	newest := uint8(firstMarket)
	for _, o := range agreedOptions() {
		newest = max(newest, o.market)
	}
	for format := newest; format >= firstMarket; format-- {
		texts = append(texts, c.MarketOf(format))
	}
	return texts
}

func agreedOptions() (list []*Option) {
	for i := range Options {
		if Options[i].market > 0 {
			list = append(list, &Options[i])
		}
	}
	return list
}

// writeMarket adds one option. section is that of the previous option.
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

// WithMarket returns a copy of the configuration with another market part. Options missing in the
// text, because an older program wrote it, stay unchanged. It returns an error if the text is no
// market part, has other options, or makes the whole invalid.
func (c *Config) WithMarket(text []byte) (*Config, error) {
	merged, err := c.overlaid(text)
	if err != nil {
		return nil, err
	}
	if err := merged.validate(); err != nil {
		return nil, err
	}
	return merged, nil
}

// overlaid is WithMarket for a whole that may be invalid.
func (c *Config) overlaid(text []byte) (*Config, error) {
	from, err := readMarket(text)
	if err != nil {
		return nil, err
	}
	merged := *c
	merged.origin = nil
	for _, o := range agreedOptions() {
		if _, given := from.origin[o.Key]; given && o.list == nil {
			if err := o.set(&merged, o.text(from)); err != nil {
				return nil, err
			}
		}
	}
	merged.Currencies, merged.Pairs = from.Currencies, from.Pairs
	own := map[string]string{}
	for _, x := range c.Currencies {
		own[x.Code] = x.DepositInstructions
	}
	for i := range merged.Currencies {
		x := &merged.Currencies[i]
		x.DepositInstructions = own[x.Code]
	}
	return &merged, nil
}

// checkMarket returns an error if the configuration's own market part could not be read again.
func (c *Config) checkMarket() error {
	text := c.Market()
	again, err := c.WithMarket(text)
	if err == nil && !bytes.Equal(again.Market(), text) {
		err = errors.New("it is read as another one: look for line breaks in its texts")
	}
	if err != nil {
		return fmt.Errorf("the nodes cannot agree on the market part of this configuration "+
			"(currencies, pairs and limits): %w", err)
	}
	return nil
}

// marketLine is the form of a line. Nothing is nested deeper, so no text makes its reader recurse.
var marketLine = regexp.MustCompile(`^ {0,4}(- )?[a-z_]+:( [^ \[{&*!|>%@` + "`" + `].*)?$`)

// readMarket reads a text's options, which must be of the market part. Their origins show which
// ones the text has.
func readMarket(text []byte) (*Config, error) {
	if len(text) > maxMarket {
		return nil, fmt.Errorf("the market part has %s bytes; at most %s are possible",
			Thousands(len(text)), Thousands(maxMarket))
	}
	for line := range bytes.Lines(text) {
		if !marketLine.Match(bytes.TrimSuffix(line, []byte("\n"))) {
			return nil, fmt.Errorf("the market part has the line %.100q, which is no option of one",
				line)
		}
	}
	l := loader{cfg: Default()}
	l.yaml("the market part", text)
	for _, o := range agreedOptions() {
		if _, ok := l.cfg.origin[o.Key]; !ok && o.list != nil {
			l.problem("the market part lacks %s.", o.Key)
		}
	}
	for key := range l.cfg.origin {
		if optionByKey[key].market == 0 {
			l.problem("%s is no option of the market part.", key)
		}
	}
	if len(l.problems) > 0 {
		slices.Sort(l.problems)
		return nil, l.problems
	}
	return l.cfg, nil
}

// MarketDiffers returns the keys of the options in which the configuration's market part differs
// from another one. An unreadable text differs in all. An option missing in the text does not
// differ.
func (c *Config) MarketDiffers(text []byte) (keys []string) {
	other, err := c.overlaid(text)
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

// PackMarket returns the text of a market part compressed, for an operator's request.
func PackMarket(text []byte) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(text)
	err = errors.Join(err, w.Close())
	return b.Bytes(), err
}

// UnpackMarket decompresses the result of PackMarket. It cuts a text longer than maxMarket one byte
// above that: reading the part refuses it.
func UnpackMarket(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("the market part is not packed as gzip: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(r, maxMarket+1))
	if err != nil {
		return nil, fmt.Errorf("the market part is damaged: %w", err)
	}
	return text, nil
}
