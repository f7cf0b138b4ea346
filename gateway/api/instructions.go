package api

import (
	"bytes"

	"exchange/gateway/params"
)

// An instruction is a parameter that would make an order more than a plain limit order. None of
// them is offered yet. One that asks for nothing is accepted, because a plain order is just that;
// any other is refused, because an order without it is not the one that the client wants.
type instruction struct {
	name    string
	aliases []string // names of the same in other clients
	plain   string   // the word that asks for nothing; "": no word does
	flag    bool     // 0 and false ask for nothing, 1 and true for it
	others  []string // words that ask for something, if not all texts do
	choices string   // all words, for a client that sent none of them
	bit     uint32   // its own
}

// instructions are all that clients may know.
var instructions = []instruction{
	{name: "order_type", aliases: []string{"orderType"}, plain: "limit",
		others: []string{"market"}, choices: "limit or market"},
	{name: "time_in_force", aliases: []string{"timeInForce"}, plain: "gtc",
		others: []string{"ioc", "fok", "gtd", "po"}, choices: "gtc, ioc, fok, gtd or po"},
	{name: "expire_time"},
	{name: "post_only", aliases: []string{"postOnly"}, flag: true,
		others: []string{"slide"}, choices: "1, 0, true, false or slide"},
	{name: "quote_amount", aliases: []string{"cost"}},
	{name: "display_amount"},
	{name: "trigger_price", aliases: []string{"triggerPrice", "stopPrice"}},
	{name: "trigger_when", others: []string{"rise", "fall"}, choices: "rise or fall"},
	{name: "stopLossPrice"},
	{name: "takeProfitPrice"},
	{name: "oco_trigger_price"},
	{name: "oco_price"},
	{name: "self_trade", aliases: []string{"selfTradePrevention"}, plain: "none",
		others: []string{"cancel_newest", "cancel_oldest", "cancel_both", "expire_taker",
			"expire_maker", "expire_both"},
		choices: "none, cancel_newest, cancel_oldest or cancel_both"},
	{name: "trailingPercent"},
	{name: "trailingAmount"},
	{name: "stopLoss"},
	{name: "takeProfit"},
}

// instructionNamed finds an instruction by its name or an alias.
var instructionNamed = func() map[string]*instruction {
	all := map[string]*instruction{}
	for i := range instructions {
		x := &instructions[i]
		x.bit = 1 << i
		all[x.name] = x
		for _, alias := range x.aliases {
			all[alias] = x
		}
	}
	return all
}()

// instructions notes each parameter of an order that asks for more than is offered.
func (c *Call) instructions() {
	var given uint32
	for i := range c.Form.All() {
		p := &c.Form.All()[i]
		switch string(p.Name) {
		case "amount", "client_order_id", "pair", "price", "type":
			continue // nearly all orders have these and no other
		}
		x := instructionNamed[string(p.Name)]
		if x == nil || given&x.bit != 0 {
			continue
		}
		given |= x.bit
		if c.twice(x) {
			continue
		}
		if text := x.refusal(p); text != "" {
			c.bad(string(p.Name), text)
		}
	}
}

// refusal returns why a parameter is not accepted, "" if it asks for nothing.
func (x *instruction) refusal(p *params.Param) string {
	is := func(word string) bool { return bytes.EqualFold(p.Value, []byte(word)) }
	switch {
	case x.flag && (p.Kind == params.Bool || isScalar(p)) && (is("0") || is("false")),
		x.plain != "" && isScalar(p) && is(x.plain):
		return ""
	case x.flag && (p.Kind == params.Bool || isScalar(p)) && (is("1") || is("true")),
		x.choices == "":
		return FieldNotOffered
	}
	for _, word := range x.others {
		if isScalar(p) && is(word) {
			return FieldNotOffered
		}
	}
	return FieldChoice + " It must be " + x.choices + "."
}

// twice notes an instruction that is given under two names, and reports whether it is.
func (c *Call) twice(x *instruction) bool {
	first := ""
	for i := range 1 + len(x.aliases) {
		name := x.name
		if i > 0 {
			name = x.aliases[i-1]
		}
		_, given := c.Form.Get(name)
		switch {
		case given && first == "":
			first = name
		case given:
			c.bad(first, givenTwice(name))
			return true
		}
	}
	return false
}
