package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// While the exchange runs it can take up some options of a changed configuration, and no others.
// Every option, and every field of a currency and a pair, is in one of the tables below.

// A reach says what takes an option up.
type reach uint8

const (
	byStart  reach = iota + 1 // a start alone
	byEdge                    // the log and the gateway of each process, while it runs
	byMarket                  // the gateway, from what the nodes of a cluster agree on
	byEngine                  // the engine of a process that is no node of a cluster
)

// reaches has the options by what takes them up. Those of lists are in the tables of their fields.
var reaches = map[reach][]string{
	byEdge: {"log.level"},
	byMarket: {"limits.public_rate", "limits.public_burst", "limits.read_rate",
		"limits.read_burst", "limits.command_rate", "limits.command_burst", "limits.cancel_rate",
		"limits.cancel_burst", "limits.failure_rate", "limits.failure_burst"},
	byEngine: {"limits.in_flight", "limits.in_flight_per_account", "limits.in_flight_cancels",
		"limits.batch", "limits.max_fills", "limits.open_orders_per_account",
		"limits.open_orders_per_book", "limits.open_orders_per_account_and_book",
		"limits.stops_per_account", "limits.stops_per_book", "limits.gtd_per_account",
		"limits.gtd_per_book", "limits.triggers_in_flight", "limits.pending_withdraws",
		"limits.keys_per_account", "limits.accounts", "limits.fold_lag"},
	byStart: {"listen", "operator", "store", "data", "archive", "operator_token_file",
		"secret_key_file", "demo", "no_demo_market", "no_rate_limits", "no_docs", "no_pages",
		"contact", "synthetic_pairs", "accept_redis_durability", "trusted_proxies", "tls.cert_file",
		"tls.key_file", "operator_tls.cert_file", "operator_tls.key_file", "metrics.listen",
		"metrics.token_file", "metrics.cert_file", "metrics.key_file", "log.format",

		"cluster.node", "cluster.nodes", "cluster.observer", "cluster.follow",
		"cluster.observers", "cluster.folder", "cluster.tick_ms", "cluster.log_max",
		"cluster.public_url",

		"history.trades_per_pair", "history.orders_per_account", "history.candles",
		"withdraw.code_tries",

		"limits.reads", "limits.reads_per_account", "limits.connections",
		"limits.connections_per_address", "limits.rate_entries", "limits.body_bytes",
		"limits.answers_bytes", "limits.header_bytes", "limits.client_order_id_hours",
		"limits.client_order_id_filter_mb", "limits.projection_lag", "limits.batch_bytes",

		"stream.connections", "stream.connections_per_address", "stream.messages_per_second",
		"stream.queue_bytes", "stream.stall_ms", "stream.interval_ms", "stream.bbo_interval_ms",
		"stream.orders_in_flight", "stream.own_bytes", "stream.ping_interval_ms",
		"stream.ping_timeout_ms",

		"timing.request_timeout_ms", "timing.stall_ms", "timing.stall_max_ms",
		"timing.stop_max_ms", "timing.owner_check_ms", "timing.owner_stale_ms",
		"timing.projection_ms", "timing.code_valid_ms", "timing.switch_grace_ms",
		"timing.snapshot_min_ms", "timing.idle_timeout_ms", "timing.read_timeout_ms",
		"timing.write_timeout_ms", "snapshot.min_records", "snapshot.max_records",

		"mail.host", "mail.port", "mail.tls", "mail.username", "mail.password", "mail.from",
		"mail.timeout_ms", "mail.ca_file"},
}

var reachOf = func() map[string]reach {
	of := map[string]reach{}
	for r, keys := range reaches {
		for _, key := range keys {
			of[key] = r
		}
	}
	return of
}()

// A listField is a field of a currency or a pair, with its name in the file.
type listField[T any] struct {
	name  string
	reach reach
	text  func(*T) string
}

var currencyFields = []listField[Currency]{
	{"sign", byStart, func(x *Currency) string { return x.Sign }},
	{"minimum_withdraw", byStart, func(x *Currency) string { return x.MinimumWithdrawal.String() }},
	{"address_pattern", byStart, func(x *Currency) string { return x.addressPattern }},
	{"deposit_instructions", byEdge, func(x *Currency) string { return x.DepositInstructions }},
}

var pairFields = []listField[Pair]{
	{"price_precision", byStart, func(x *Pair) string { return strconv.Itoa(x.PricePrecision) }},
	{"amount_precision", byStart, func(x *Pair) string { return strconv.Itoa(x.AmountPrecision) }},
	{"minimum_order_size", byEngine, func(x *Pair) string { return x.MinimumOrderSize.String() }},
	{"maximum_order_size", byEngine, func(x *Pair) string { return x.MaximumOrderSize.String() }},
	{"minimum_order_value", byEngine, func(x *Pair) string { return x.MinimumOrderValue.String() }},
	{"price_tick", byStart, func(x *Pair) string { return x.PriceTick.String() }},
	{"amount_step", byStart, func(x *Pair) string { return x.AmountStep.String() }},
	{"price_band", byEngine, func(x *Pair) string { return x.PriceBand.String() }},
	{"market_collar", byEngine, func(x *Pair) string { return x.MarketCollar.String() }},
	{"stop_collar", byEngine, func(x *Pair) string { return x.StopCollar.String() }},
	{"maker_fee", byEngine, func(x *Pair) string { return x.MakerFee.String() }},
	{"taker_fee", byEngine, func(x *Pair) string { return x.TakerFee.String() }},
}

// Reasons why a change waits.
const (
	needsStart  = "needs a restart"
	needsApply  = "is agreed on by the nodes of the cluster: use exchange config apply"
	needsPlaces = "needs a restart, as each change of which there are, and in which order"
)

// A Change is a difference between the configuration that a process runs with and another one.
type Change struct {
	Key           string // of the option; for lists with the entry and its field
	Before, After string // without secrets
	Origin        string // of the value that is to count
	Refusal       string // why it does not count now; "": it can be taken up
	Engine        bool   // the engine takes it up
}

// String describes the change in a line.
func (c Change) String() string {
	text := fmt.Sprintf("%s: %q instead of %q (%s)", c.Key, c.After, c.Before, c.Origin)
	if c.Refusal != "" {
		text += " " + c.Refusal
	}
	return text
}

// Changes returns all differences between the configuration that a process runs with and the one
// that is to take its place, in the order of Options.
func (c *Config) Changes(next *Config) (list []Change) {
	for i := range Options {
		switch o := &Options[i]; o.Key {
		case "currencies":
			list = append(list, changesOf(c, o, next, c.Currencies, next.Currencies,
				currencyFields, func(x *Currency) string { return x.Code })...)
		case "pairs":
			list = append(list, changesOf(c, o, next, c.Pairs, next.Pairs, pairFields,
				func(x *Pair) string { return x.Name })...)
		case "trusted_proxies":
			list = c.changed(list, o, next, o.Key, fmt.Sprint(c.TrustedProxies),
				fmt.Sprint(next.TrustedProxies), reachOf[o.Key])
		default:
			list = c.changed(list, o, next, o.Key, o.text(c), o.text(next), reachOf[o.Key])
		}
	}
	return list
}

// changed adds the change of a value to a list, if it is one.
func (c *Config) changed(list []Change, o *Option, next *Config, key, before, after string,
	by reach) []Change {
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

// changesOf compares two lists. Entries that are not the same ones in the same order are one
// change.
func changesOf[T any](c *Config, o *Option, next *Config, before, after []T, fields []listField[T],
	name func(*T) string) (list []Change) {
	names := func(of []T) (s []string) {
		for i := range of {
			s = append(s, name(&of[i]))
		}
		return s
	}
	if a, b := names(before), names(after); !slices.Equal(a, b) {
		list = c.changed(nil, o, next, o.Key, shortened(a), shortened(b), byStart)
		if len(list) == 0 { // as far as it is shown
			list = c.changed(nil, o, next, o.Key, "", "another list", byStart)
		}
		if list[0].Refusal == needsStart {
			list[0].Refusal = needsPlaces
		}
		return list
	}
	for i := range before {
		for _, f := range fields {
			list = c.changed(list, o, next, o.Key+"."+name(&before[i])+"."+f.name,
				f.text(&before[i]), f.text(&after[i]), f.reach)
		}
	}
	return list
}

// shortened joins names, of many only the first ones and their number.
func shortened(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, " ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], " "),
		len(names)-maxNamed)
}

// Refused returns those of a list that cannot be taken up.
func Refused(list []Change) []Change {
	return slices.DeleteFunc(slices.Clone(list), func(c Change) bool { return c.Refusal == "" })
}
