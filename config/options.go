package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

const envPrefix = "EXCHANGE_"

// Option is one option of the configuration.
type Option struct {
	// Key is its path in the YAML file: "listen", "limits.in_flight".
	Key string
	// Flag: `serve` has a flag for it. The others are set in the file or the environment only.
	Flag bool
	flag string // name of the flag; "": derived from Key
	// Default is the text of the default; "" is the empty text, no list, or false.
	Default string
	// min and max bound a whole number, inclusive.
	min, max int
	// A whole number must be below, at most, or at most half of another option.
	must, than string
	// choices are the only allowed texts; empty: any.
	choices []string
	// Brief is one line for the help of the command line.
	Brief string
	// Help is a paragraph: meaning, unit, trade-off, and the meaning of zero or an empty text.
	Help string

	at    func(*Config) any                   // *string, *int or *bool; nil for a list
	list  func(*Config, ast.Node) problemList // reads a list
	write func(*Config, *strings.Builder)     // writes a list as YAML; nil: its default is empty
	// removes the password from the text; nil: it has none
	redact func(string) string
	named  bool // Summary describes it in words
	// market is the format of cluster entries that added the option to the market part; 0: it is
	// the node's own.
	market    uint8
	appliedBy applier // component that applies a change; for a list, its fields decide
}

// Required relation of a number to another option.
const (
	below      = "be below"
	atMost     = "not be above"
	atMostHalf = "not be above half of"
)

func (o *Option) inRange(n int) bool { return o.min <= n && n <= o.max }

// env returns the name of the option's environment variable.
func (o *Option) env() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(o.Key, ".", "_"))
}

// FlagName returns the name of the option's flag, without dashes in front.
func (o *Option) FlagName() string {
	if o.flag != "" {
		return o.flag
	}
	return strings.NewReplacer("_", "-", ".", "-").Replace(o.Key)
}

// Type returns the kind of the option's value: "text", "number", "bool" or "list".
func (o *Option) Type() string {
	if o.list != nil {
		return "list"
	}
	switch o.at(&Config{}).(type) {
	case *int:
		return "number"
	case *bool:
		return "bool"
	}
	return "text"
}

// valueRange describes the possible values in words, "" if any text is.
func (o *Option) valueRange() string {
	switch {
	case len(o.choices) > 0:
		return "one of " + strings.Join(o.choices, ", ")
	case o.max > 0:
		return fmt.Sprintf("from %s to %s", Thousands(o.min), Thousands(o.max))
	case o.Type() == "bool":
		return "true or false"
	}
	return ""
}

// set reads a value from the text of a flag, a variable or a YAML scalar. validate checks ranges
// later.
func (o *Option) set(c *Config, text string) error {
	if o.list != nil {
		n, err := parseYAML([]byte(text))
		if err != nil {
			return problemList{err.Error() + "."}
		}
		if n == nil {
			return problemList{"this is empty; leave it out, or write a list."}
		}
		if p := o.list(c, n); len(p) > 0 {
			return p
		}
		return nil
	}
	switch at := o.at(c).(type) {
	case *string:
		*at = text
	case *int:
		v, err := parseInt(text)
		if err != nil {
			return fmt.Errorf("write a whole number %s", o.valueRange())
		}
		*at = v
	case *bool:
		v, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("write true or false")
		}
		*at = v
	}
	return nil
}

// text returns the option's value as text, comparable with Default; never called for a list.
func (o *Option) text(c *Config) string {
	switch at := o.at(c).(type) {
	case *int:
		return strconv.Itoa(*at)
	case *bool:
		if *at {
			return "true"
		}
		return ""
	case *string:
		return *at
	}
	panic("BUG: " + o.Key + " is of an unknown type")
}

// show returns text in a form that messages may repeat.
func (o *Option) show(text string) string { return strconv.Quote(o.redacted(text)) }

// redacted returns text without its secret parts.
func (o *Option) redacted(text string) string {
	if o.redact != nil {
		return o.redact(text)
	}
	return text
}

// parseInt reads a whole number; 20_000 is 20000.
func parseInt(s string) (int, error) {
	v, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
	if err != nil {
		return 0, errors.New("write a whole number")
	}
	return int(v), nil
}

// Thousands writes 1000000 as 1,000,000.
func Thousands[N int | int64 | uint64](n N) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Options is the table of all options, in the order of the sample file.
var Options = slices.Concat(serverOptions, clusterOptions, marketOptions, limitOptions,
	streamOptions, timingOptions, mailOptions)

var optionByKey = func() map[string]*Option {
	m := make(map[string]*Option, len(Options))
	for i := range Options {
		m[Options[i].Key] = &Options[i]
	}
	return m
}()
