package api

import (
	"bytes"

	"exchange/actors/directory"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/gateway/params"
)

// An instruction is a parameter that can make an order other than a plain limit order.
type instruction struct {
	name    string
	aliases []string // other names, from clients of other venues
	// words are all possible values in lower case, the one of a plain order first, if a plain order
	// has one; nil: the value is a number, or the instruction is not offered.
	words   []string
	choices string // the words, for the error text
}

// Numbers of the instructions.
const (
	orderType = iota
	timeInForce
	expireTime
	postOnly
	quoteAmount
	displayAmount
	triggerPrice
	triggerWhen
	stopLossPrice
	takeProfitPrice
	ocoTriggerPrice
	ocoPrice
	selfTrade
	notOffered // from here on, recognised and refused
)

// instructions are all instructions of the API.
var instructions = [...]instruction{
	orderType: {name: "order_type", aliases: []string{"orderType"},
		words: []string{"limit", "market"}, choices: "limit or market"},
	timeInForce: {name: "time_in_force", aliases: []string{"timeInForce"},
		words: []string{"gtc", "ioc", "fok", "gtd", "po"}, choices: "gtc, ioc, fok, gtd or po"},
	expireTime: {name: "expire_time"},
	postOnly: {name: "post_only", aliases: []string{"postOnly"},
		words: []string{"slide"}, choices: "1, 0, true, false or slide"},
	quoteAmount:   {name: "quote_amount", aliases: []string{"cost"}},
	displayAmount: {name: "display_amount"},
	triggerPrice:  {name: "trigger_price", aliases: []string{"triggerPrice", "stopPrice"}},
	triggerWhen: {name: "trigger_when", words: []string{"rise", "fall"},
		choices: "rise or fall"},
	stopLossPrice:   {name: "stopLossPrice"},
	takeProfitPrice: {name: "takeProfitPrice"},
	ocoTriggerPrice: {name: "oco_trigger_price"},
	ocoPrice:        {name: "oco_price"},
	selfTrade: {name: "self_trade", aliases: []string{"selfTradePrevention"},
		words: []string{"none", "cancel_newest", "cancel_oldest", "cancel_both",
			"expire_taker", "expire_maker", "expire_both"}, // names of another venue
		choices: "none, cancel_newest, cancel_oldest or cancel_both"},
	notOffered:     {name: "trailingPercent"},
	notOffered + 1: {name: "trailingAmount"},
	notOffered + 2: {name: "stopLoss"},
	notOffered + 3: {name: "takeProfit"},
}

// instructionNamed finds the number of an instruction by its name or an alias.
var instructionNamed = func() map[string]int {
	all := map[string]int{}
	for n := range instructions {
		x := &instructions[n]
		all[x.name] = n
		for _, alias := range x.aliases {
			all[alias] = n
		}
	}
	return all
}()

// instructionOf finds the number of an instruction by the name of a parameter. A form writes an
// object as separate parameters: stopLoss[triggerPrice] is a part of stopLoss.
func instructionOf(name []byte) (n int, known bool) {
	if n, known = instructionNamed[string(name)]; known {
		return n, true
	}
	whole, _, part := bytes.Cut(name, []byte("["))
	n, known = instructionNamed[string(whole)]
	return n, part && known && n >= notOffered
}

// A force is a time in force: the index of its word.
type force uint8

const (
	forceGTC force = iota
	forceIOC
	forceFOK
	forceGTD
	forcePO
)

func (f force) String() string { return instructions[timeInForce].words[f] }

// An intent holds the instructions of one request as read, not yet checked against each other. The
// fields of missing or bad ones are zero.
type intent struct {
	pair *directory.Pair // of the order; nil: unknown
	sent uint32          // bit set of the sent instructions, by number
	bad  uint32          // bit set of those with bad values

	market   bool
	force    force
	expireUs int64
	postOnly bool
	slide    bool
	quote    money.Amount
	display  money.Amount
	trigger  money.Price // of any of the three names
	when     trading.Direction
	oco      trading.OCO
	mode     trading.SelfTrade
	derived  bool // it has no price of its own
}

func (i *intent) has(n int) bool { return i.sent>>n&1 == 1 }

// good reports whether an instruction was sent with a good value.
func (i *intent) good(n int) bool { return (i.sent&^i.bad)>>n&1 == 1 }

// instructed reports whether the form has any instruction.
func (c *Call) instructed() bool {
	for i := range c.Form.All() {
		switch name := c.Form.All()[i].Name; string(name) {
		case "amount", "client_order_id", "pair", "price", "type":
			continue // nearly all orders have these and no other
		default:
			_, known := instructionOf(name)
			if known && c.Form.All()[i].Kind != params.Null {
				return true
			}
		}
	}
	return false
}

// readIntent reads all instructions of the form, and adds a field error for each bad value.
func (c *Call) readIntent(i *intent) {
	for k := range c.Form.All() {
		p := &c.Form.All()[k]
		n, known := instructionOf(p.Name)
		if !known || i.has(n) || p.Kind == params.Null {
			continue
		}
		i.sent |= 1 << n
		noted := len(c.fields)
		if !c.rejectDuplicate(&instructions[n]) {
			c.readInstruction(i, n, p)
		}
		if len(c.fields) > noted {
			i.bad |= 1 << n
		}
	}
}

// rejectDuplicate returns true after adding a field error for an instruction under two names.
func (c *Call) rejectDuplicate(x *instruction) bool {
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
			c.addError(first, givenTwice(name))
			return true
		}
	}
	return false
}

// sentAs returns the name under which the client sent an instruction.
func (c *Call) sentAs(n int) string {
	x := &instructions[n]
	for _, alias := range x.aliases {
		if _, given := c.Form.Get(alias); given {
			return alias
		}
	}
	return x.name
}

// readInstruction reads one value.
func (c *Call) readInstruction(i *intent, n int, p *params.Param) {
	switch n {
	case orderType:
		i.market = c.word(n, p) == 1
	case timeInForce:
		i.force = force(max(c.word(n, p), 0))
	case expireTime:
		i.expireUs = c.expireTime(p)
	case postOnly:
		on, flag := Flag(p.Value)
		i.slide = !flag && c.word(n, p) == 0
		i.postOnly = on || i.slide
	case quoteAmount:
		i.quote = c.positiveAmount(p)
	case displayAmount:
		i.display = c.positiveAmount(p)
	case triggerPrice, stopLossPrice, takeProfitPrice:
		i.trigger = c.priceIn(p, i.pair)
	case triggerWhen:
		i.when = trading.Direction(1 + c.word(n, p))
	case ocoTriggerPrice:
		i.oco.Trigger = c.priceIn(p, i.pair)
	case ocoPrice:
		i.oco.Price = c.priceIn(p, i.pair)
	case selfTrade:
		i.mode = selfTradeOf(c.word(n, p))
	default:
		c.addError(string(p.Name), FieldNotOffered)
	}
}

// word returns the index of a value among the words of its instruction. It returns -1 after adding
// a field error for any other value.
func (c *Call) word(n int, p *params.Param) int {
	x := &instructions[n]
	if isScalar(p) {
		for i, word := range x.words {
			if isWord(p.Value, word) {
				return i
			}
		}
	}
	c.addError(string(p.Name), fieldChoice+" It must be "+x.choices+".")
	return -1
}

// isWord reports whether a text is a word of lower case letters, in either case. Letters of other
// alphabets are never the same, unlike to bytes.EqualFold.
func isWord(text []byte, word string) bool {
	if len(text) != len(word) {
		return false
	}
	for i, c := range text {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

// selfTradeOf returns the mode that a word of self_trade names: its index, or that of its alias. A
// bad word names none.
func selfTradeOf(word int) trading.SelfTrade {
	if word > int(trading.SelfTradeCancelBoth) {
		word -= int(trading.SelfTradeCancelBoth)
	}
	return trading.SelfTrade(max(word, 0))
}
