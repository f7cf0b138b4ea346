package api_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"exchange/prove/harness"
)

// A parameter is a parameter of an order with one possible value.
type parameter struct {
	name, value string
	bad         bool // never allowed
}

// orderParameters are the parameters of orders, each with some of its values, good and bad ones. A
// name and its aliases are one parameter.
var orderParameters = []struct {
	names     []string // the first one is the parameter's own
	good, bad []string
}{
	{[]string{"order_type", "orderType"}, []string{"limit", "MARKET"}, []string{"stop", ""}},
	{[]string{"time_in_force", "timeInForce"}, []string{"gtc", "IOC", "fok", "gtd", "Po"},
		[]string{"day", "1"}},
	{[]string{"expire_time"}, []string{"SOON"}, []string{"1", "x", "99999999999", "-1"}},
	{[]string{"post_only", "postOnly"}, []string{"1", "0", "true", "false", "SLIDE"},
		[]string{"yes", "2"}},
	{[]string{"quote_amount", "cost"}, []string{"1000", "0.5", "200000"}, []string{"0", "-1", "x"}},
	{[]string{"display_amount"}, []string{"0.5", "1", "0.02", "0.009", "0.0505"},
		[]string{"0", "x"}},
	{[]string{"trigger_price", "triggerPrice", "stopPrice"}, []string{"90", "110"},
		[]string{"90.01", "0", "x"}},
	{[]string{"trigger_when"}, []string{"rise", "FALL"}, []string{"up", "1"}},
	{[]string{"stopLossPrice"}, []string{"90"}, []string{"90.01", "0"}},
	{[]string{"takeProfitPrice"}, []string{"110"}, []string{"1.001", "x"}},
	{[]string{"oco_trigger_price"}, []string{"90", "100"}, []string{"90.01", "0"}},
	{[]string{"oco_price"}, []string{"80"}, []string{"80.01", "x"}},
	{[]string{"self_trade", "selfTradePrevention"},
		[]string{"none", "cancel_newest", "EXPIRE_MAKER", "cancel_both"}, []string{"all", "1"}},
	{[]string{"trailingPercent"}, nil, []string{"5"}},
	{[]string{"trailingAmount"}, nil, []string{"5"}},
	{[]string{"stopLoss"}, nil, []string{"5"}},
	{[]string{"takeProfit"}, nil, []string{"5"}},
	{[]string{"price"}, []string{"100"}, []string{"100.01", "0", "x"}},
	{[]string{"amount"}, []string{"1"}, []string{"0.0015", "0", "x", "1001"}},
	{[]string{"type"}, []string{"buy", "sell"}, []string{"x"}},
}

// allParameters are all parameters with all values.
var allParameters = func() (list []parameter) {
	for _, p := range orderParameters {
		for _, name := range p.names {
			for _, value := range p.good {
				list = append(list, parameter{name, value, false})
			}
			for _, value := range append(p.bad, "null", "[1]", "{}") {
				list = append(list, parameter{name, value, true})
			}
		}
	}
	return list
}()

// A drawnOrder is an order, by the names of its parameters.
type drawnOrder map[string]parameter

// text returns the order as a form or as JSON. With numbers, JSON has these as numbers, and true,
// false, null, lists and objects as such; otherwise all values are texts.
func (s drawnOrder) text(asJSON, numbers bool) string {
	var b strings.Builder
	for i, name := range slices.Sorted(keysOf(s)) {
		value := harness.Soon(s[name].value)
		switch {
		case !asJSON && i > 0:
			b.WriteByte('&')
		case asJSON && i > 0:
			b.WriteByte(',')
		}
		if !asJSON {
			b.WriteString(name + "=" + url.QueryEscape(value))
			continue
		}
		if !numbers || !json.Valid([]byte(value)) {
			value = strconv.Quote(value)
		}
		b.WriteString(strconv.Quote(name) + ":" + value)
	}
	if asJSON {
		return "{" + b.String() + "}"
	}
	return b.String()
}

func keysOf(s drawnOrder) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for name := range s {
			if !yield(name) {
				return
			}
		}
	}
}

// faults returns the names that are wrong by themselves: bad values, and a parameter under a second
// name, which is reported at the first of them.
func (s drawnOrder) faults() (names []string) {
	for _, p := range orderParameters {
		var sent []string
		for _, name := range p.names {
			if _, there := s[name]; there {
				sent = append(sent, name)
			}
		}
		switch {
		case len(sent) > 1:
			names = append(names, sent[0])
		case len(sent) == 1 && s[sent[0]].bad:
			names = append(names, sent[0])
		}
	}
	for _, name := range []string{"pair", "type"} {
		if _, there := s[name]; !there {
			names = append(names, name)
		}
	}
	return names
}

// value returns the value of a parameter in lower case and the name under which it is sent, "" if
// it is not.
func (s drawnOrder) value(parameter string) (value, name string) {
	for _, p := range orderParameters {
		if p.names[0] != parameter {
			continue
		}
		for _, name := range p.names {
			if x, there := s[name]; there {
				return strings.ToLower(x.value), name
			}
		}
	}
	return "", ""
}

// clashes returns the names at which an order with only good values is refused: bad combinations,
// and missing parameters. It repeats the page of order types in a naive way.
func (s drawnOrder) clashes() (names []string) {
	at := func(wrong bool, parameter string) {
		if _, name := s.value(parameter); name != "" {
			parameter = name
		}
		if wrong && !slices.Contains(names, parameter) {
			names = append(names, parameter)
		}
	}
	has := func(parameter string) bool { _, name := s.value(parameter); return name != "" }
	is := func(parameter string, values ...string) bool {
		value, name := s.value(parameter)
		return name != "" && slices.Contains(values, value)
	}
	market, gtd := is("order_type", "market"), is("time_in_force", "gtd")
	takes := market || is("time_in_force", "ioc", "fok")
	loss, profit := has("stopLossPrice"), has("takeProfitPrice")
	stop := has("trigger_price") || loss || profit

	at(market && is("time_in_force", "gtc", "gtd", "po"), "time_in_force")
	at(gtd != has("expire_time"), "expire_time")
	at(takes && is("post_only", "1", "true", "slide"), "post_only")
	at(takes && has("display_amount"), "display_amount")
	at(loss && profit, "stopLossPrice")
	at(has("trigger_price") && loss != profit, "trigger_price")
	at(has("trigger_when") && (loss || profit || !stop), "trigger_when")
	at(has("oco_price") && !has("oco_trigger_price"), "oco_price")
	noOCO := is("type", "buy") || market || stop || is("time_in_force", "ioc", "fok", "gtd")
	at(has("oco_trigger_price") && (noOCO || has("price") && is("oco_trigger_price", "100")),
		"oco_trigger_price")
	takesOnce := has("oco_trigger_price") && !noOCO && !has("oco_price")
	neverTakes := is("post_only", "1", "true", "slide")
	at(takesOnce && neverTakes, "post_only")
	at(takesOnce && !neverTakes && is("time_in_force", "po"), "time_in_force")
	at(!market && !has("price"), "price")
	at(!has("quote_amount") && !has("amount"), "amount")
	at(has("quote_amount") && (has("amount") || stop || !market || is("type", "sell") ||
		has("price") && is("quote_amount", "0.5", "200000")), "quote_amount")
	at(has("display_amount") && has("amount") && !has("quote_amount") &&
		!is("display_amount", "0.5"), "display_amount")
	// without a price it is checked against the book's, and only if all else is good
	at(len(names) == 0 && is("quote_amount", "0.5", "200000"), "quote_amount")
	return names
}

// An instructionsBench is an exchange with orders on both sides of a book, at which instructions
// are tried.
type instructionsBench struct{ *harness.Exchange }

func newInstructionsBench(t testing.TB, observed bool) instructionsBench {
	h := harness.RuledHarnessOf(t, observed)
	h.Post("alice", "/api/v1/order/", harness.Order("sell", "BTC_USDT", "2000", "100"))
	h.Post("alice", "/api/v1/order/", harness.Order("buy", "BTC_USDT", "500", "95"))
	return instructionsBench{h}
}

// try sends an order. A bad one is refused at each bad name and at no other, and nothing is
// reserved or written for it. A good one is only tried.
func (b instructionsBench) try(t testing.TB, s drawnOrder, asJSON, numbers bool) {
	t.Helper()
	defer func(of testing.TB) { b.T = of }(b.T)
	b.T = t
	s["pair"] = parameter{name: "pair", value: "BTC_USDT"}
	text, kind := s.text(asJSON, numbers), harness.FormType
	nonce := b.Nonces["bob"] + 1 // a request refused for its fields does not use it
	headers := harness.Signed("bob", nonce, text)
	if asJSON {
		kind, headers = harness.JsonType, harness.SignedJSON("bob", nonce, text)
	}
	for name, x := range s {
		if asJSON && numbers && x.value == "null" {
			delete(s, name) // it is absent
		}
	}
	faults := s.faults()
	wrong := faults
	if len(faults) == 0 {
		wrong = s.clashes()
	}
	if len(wrong) == 0 {
		b.Nonces["bob"] = nonce
		a := b.Do("POST", "/api/v1/order-test/", kind, text, headers...)
		if a.Status != 200 || !strings.HasPrefix(a.Body, `{"valid":true,`) {
			t.Fatalf("%s: %d %s", text, a.Status, a.Body)
		}
		return
	}
	before := b.Hash()
	got := harness.BadFieldsOf(t, text, b.Do("POST", "/api/v1/order/", kind, text, headers...))
	for _, name := range wrong {
		if !slices.Contains(got, name) {
			t.Fatalf("%s: wrong are %v, named are %v", text, wrong, got)
		}
	}
	for _, name := range got {
		_, sent := s[name]
		required := slices.Contains([]string{"price", "amount", "type", "expire_time"}, name)
		if !sent && !required || len(faults) == 0 && !slices.Contains(wrong, name) {
			t.Fatalf("%s: wrong are %v, named are %v", text, wrong, got)
		}
	}
	if b.Hash() != before {
		t.Fatalf("%s: an order that is refused for its fields leaves something", text)
	}
}

// plainDrawnOrder is a plain limit order.
func plainDrawnOrder() drawnOrder {
	return drawnOrder{"type": {"type", "sell", false}, "price": {"price", "100", false},
		"amount": {"amount", "1", false}}
}

// Each value of each parameter beside each one of each other, in an order that is good otherwise.
func TestEachTwoInstructionsGoTogetherOrAreRefused(t *testing.T) {
	b := newInstructionsBench(t, false)
	for i, first := range allParameters {
		for k, second := range allParameters[i:] {
			for n, also := range []parameter{{"type", "buy", false},
				{"time_in_force", "gtd", false}, {"order_type", "market", false}} {
				if (first.bad || second.bad) && (i+k)%3 != n {
					continue // of these each once is enough
				}
				s := plainDrawnOrder()
				s[also.name] = also
				s[first.name], s[second.name] = first, second
				b.try(t, s, (i+k)%2 == 1, k%3 == 1)
			}
		}
	}
	if err := harness.AtRest(b.Engine); err != nil {
		t.Error(err)
	}
}

// Any instructions may come together, in a form or in JSON.
func FuzzOrderInstructions(f *testing.F) {
	benches := harness.BenchesOf(f, func(observed bool) instructionsBench {
		return newInstructionsBench(f, observed)
	})
	for i := range allParameters {
		f.Add([]byte{byte(i)}, i%2 == 1, i%3 == 1)
		f.Add([]byte{byte(i), byte(7 * i), byte(11 * i), byte(13 * i)}, i%2 == 0, i%3 == 0)
	}
	f.Fuzz(func(t *testing.T, chosen []byte, asJSON, numbers bool) {
		s := plainDrawnOrder()
		for _, c := range chosen[:min(len(chosen), 24)] {
			if x := allParameters[int(c)%len(allParameters)]; c < 250 {
				s[x.name] = x
			} else { // fields of a plain order may be missing
				delete(s, [...]string{"price", "amount", "type"}[c%3])
			}
		}
		for _, b := range benches {
			b.try(t, s, asJSON, numbers)
		}
	})
}
