package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/shopspring/decimal"

	"exchange/core/money"
)

// A listField is a field of a list's entries: of a currency or a pair.
type listField[T any] struct {
	key       string
	required  bool
	appliedBy applier
	at        func(*T) any        // *string, *int or a *money type
	quote     func(string) string // its text in YAML; nil: unchanged
}

// The first field is the entry's name.
var currencyFields = []listField[Currency]{
	{key: "code", required: true, at: func(x *Currency) any { return &x.Code }},
	{key: "sign", at: func(x *Currency) any { return &x.Sign }, quote: strconv.Quote},
	{key: "minimum_withdraw", at: func(x *Currency) any { return &x.MinimumWithdrawal }},
	{key: "address_pattern", at: func(x *Currency) any { return &x.addressPattern },
		quote: func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }},
	{key: "deposit_instructions", appliedBy: byEdge,
		at: func(x *Currency) any { return &x.DepositInstructions }},
}

var pairFields = []listField[Pair]{
	{key: "name", required: true, at: func(x *Pair) any { return &x.Name }},
	{key: "price_precision", required: true, at: func(x *Pair) any { return &x.PricePrecision }},
	{key: "amount_precision", required: true, at: func(x *Pair) any { return &x.AmountPrecision }},
	{key: "minimum_order_size", required: true, appliedBy: byEngine,
		at: func(x *Pair) any { return &x.MinimumOrderSize }},
	{key: "maximum_order_size", required: true, appliedBy: byEngine,
		at: func(x *Pair) any { return &x.MaximumOrderSize }},
	{key: "minimum_order_value", appliedBy: byEngine,
		at: func(x *Pair) any { return &x.MinimumOrderValue }},
	{key: "price_tick", at: func(x *Pair) any { return &x.PriceTick }},
	{key: "amount_step", at: func(x *Pair) any { return &x.AmountStep }},
	{key: "price_band", appliedBy: byEngine, at: func(x *Pair) any { return &x.PriceBand }},
	{key: "market_collar", appliedBy: byEngine, at: func(x *Pair) any { return &x.MarketCollar }},
	{key: "stop_collar", appliedBy: byEngine, at: func(x *Pair) any { return &x.StopCollar }},
	{key: "maker_fee", appliedBy: byEngine, at: func(x *Pair) any { return &x.MakerFee }},
	{key: "taker_fee", appliedBy: byEngine, at: func(x *Pair) any { return &x.TakerFee }},
}

func (f *listField[T]) text(x *T) string {
	switch at := f.at(x).(type) {
	case *string:
		return *at
	case *int:
		return strconv.Itoa(*at)
	case fmt.Stringer:
		return at.String()
	}
	panic("BUG: " + f.key + " is of an unknown type")
}

func (f *listField[T]) set(x *T, text string) (err error) {
	switch at := f.at(x).(type) {
	case *string:
		*at = text
	case *int:
		*at, err = parseInt(text)
	case *money.Rate:
		if *at, err = money.ParseRate(text); err != nil {
			err = errors.New(
				"write a fraction from 0 to 1 of at most 8 digits, such as 0.001 for 0.1 %")
		}
	case *money.Amount:
		if *at, err = money.ParseAmount(text); err != nil {
			err = errFixed
		}
	case *money.Price:
		if *at, err = money.ParsePrice(text); err != nil {
			err = errFixed
		}
	case *money.Balance:
		*at, err = parseBalance(text)
	}
	return err
}

var errFixed = errors.New(
	"write a number of at most 8 fractional digits, below 92,233,720,368")

// maxNumberText bounds the text of a decimal, and maxExponent its exponent, so that a short text
// such as 1e999999999 cannot allocate gigabytes.
const (
	maxNumberText = 64
	maxExponent   = 64
)

func parseBalance(s string) (money.Balance, error) {
	if len(s) <= maxNumberText {
		d, err := decimal.NewFromString(s)
		if err == nil && d.Exponent() <= maxExponent && d.Exponent() >= -2*maxExponent {
			if b, err := money.BalanceFromDecimal(d); err == nil {
				return b, nil
			}
		}
	}
	return money.Balance{}, errors.New(
		"write a number of at most 16 fractional digits that is not negative")
}

// readEntries reads a list of mappings, and returns its problems, too. Fields missing in an entry
// come from usual.
func readEntries[T any](what string, n ast.Node, fields []listField[T], usual T) (list []T,
	problems problemList) {
	bad := func(at ast.Node, format string, args ...any) {
		problems = append(problems, fmt.Sprintf("%s, line %d: %s", what, line(at),
			fmt.Sprintf(format, args...)))
	}
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		bad(n, "this must be a list, each entry beginning with \"- \".")
		return nil, problems
	}
	names := make([]string, len(fields))
	for i := range fields {
		names[i] = fields[i].key
	}
	for _, v := range seq.Values {
		m, ok := v.(ast.MapNode)
		if !ok {
			bad(v, "an entry has the keys %s.", strings.Join(names, ", "))
			continue
		}
		x, given := usual, map[string]bool{}
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
			} else if err := fields[i].set(&x, text); err != nil {
				bad(it.Key(), "%s is %q: %v.", key, text, err)
			}
		}
		for _, f := range fields {
			if f.required && !given[f.key] {
				bad(v, "%s is missing.", f.key)
			}
		}
		list = append(list, x)
	}
	return list, problems
}

// writeEntries writes a list as YAML, without the fields that are the node's own.
func writeEntries[T any](b *strings.Builder, list []T, fields []listField[T]) {
	for i := range list {
		before := "  - "
		for _, f := range fields {
			if f.appliedBy == byEdge {
				continue
			}
			text := f.text(&list[i])
			if f.quote != nil {
				text = f.quote(text)
			}
			fmt.Fprintf(b, "%s%s: %s\n", before, f.key, text)
			before = "    "
		}
	}
}
