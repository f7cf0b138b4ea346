package config

import (
	"fmt"
	"slices"
	"strings"
)

// A applier is the component that applies a change of an option, or of a field of a currency or a
// pair. Only some changes apply while the exchange runs.
type applier uint8

const (
	byStart  applier = iota // a restart only
	byEdge                  // log and gateway of each process, at runtime
	byMarket                // the gateway, from the market part agreed on by the cluster
	byEngine                // the engine of a process outside a cluster
)

// Reasons why a change does not apply now.
const (
	needsStart  = "needs a restart"
	needsApply  = "is agreed on by the nodes of the cluster: use exchange config apply"
	needsPlaces = "needs a restart, as each change of which there are, and in which order"
)

// A Change is a difference between the running configuration and another one.
type Change struct {
	Key           string // of the option; for lists with the entry and its field
	Before, After string // without secrets
	Origin        string // source of the new value
	Refusal       string // why it does not apply now; "": it does
	Engine        bool   // applied by the engine
}

// String describes the change in a line.
func (c Change) String() string {
	text := fmt.Sprintf("%s: %q instead of %q (%s)", c.Key, c.After, c.Before, c.Origin)
	if c.Refusal != "" {
		text += " " + c.Refusal
	}
	return text
}

// Changes returns all differences between the running configuration and its replacement, in the
// order of Options.
func (c *Config) Changes(next *Config) (list []Change) {
	for i := range Options {
		switch o := &Options[i]; o.Key {
		case "currencies":
			list = append(list, changesOf(c, o, next, c.Currencies, next.Currencies,
				currencyFields)...)
		case "pairs":
			list = append(list, changesOf(c, o, next, c.Pairs, next.Pairs, pairFields)...)
		case "trusted_proxies":
			list = c.appendChange(list, o, next, o.Key, fmt.Sprint(c.TrustedProxies),
				fmt.Sprint(next.TrustedProxies), o.appliedBy)
		default:
			list = c.appendChange(list, o, next, o.Key, o.text(c), o.text(next), o.appliedBy)
		}
	}
	return list
}

// appendChange appends the change of a value to a list, if there is one.
func (c *Config) appendChange(list []Change, o *Option, next *Config, key, before, after string,
	by applier) []Change {
	if before == after {
		return list
	}
	x := Change{Key: key, Before: o.redacted(before), After: o.redacted(after),
		Origin: next.origin[o.Key], Engine: by == byEngine}
	if x.Origin == "" {
		x.Origin = "the default"
	}
	switch {
	case c.Cluster.On() && o.market > 0 && by != byEdge:
		x.Refusal = needsApply
	case by == byStart, by == byEngine && c.Cluster.On():
		x.Refusal = needsStart
	}
	return append(list, x)
}

// changesOf compares two lists. Different entries, or another order, are one change.
func changesOf[T any](c *Config, o *Option, next *Config, before, after []T,
	fields []listField[T]) (list []Change) {
	name := fields[0].text
	names := func(of []T) (s []string) {
		for i := range of {
			s = append(s, name(&of[i]))
		}
		return s
	}
	if a, b := names(before), names(after); !slices.Equal(a, b) {
		list = c.appendChange(nil, o, next, o.Key, shortened(a), shortened(b), byStart)
		if len(list) == 0 { // equal in the shortened form
			list = c.appendChange(nil, o, next, o.Key, "", "another list", byStart)
		}
		if list[0].Refusal == needsStart {
			list[0].Refusal = needsPlaces
		}
		return list
	}
	for i := range before {
		for _, f := range fields[1:] {
			list = c.appendChange(list, o, next, o.Key+"."+name(&before[i])+"."+f.key,
				f.text(&before[i]), f.text(&after[i]), f.appliedBy)
		}
	}
	return list
}

// shortened joins names; of many only the first ones and their number.
func shortened(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, " ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], " "),
		len(names)-maxNamed)
}

// Refused returns the changes of a list that do not apply now.
func Refused(list []Change) []Change {
	return slices.DeleteFunc(slices.Clone(list), func(c Change) bool { return c.Refusal == "" })
}
