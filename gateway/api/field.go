package api

import (
	"strconv"

	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/gateway/encode"
	"exchange/gateway/params"
)

// Digits parses 1 to 19 digits: a nonce, or an id in a path.
func Digits(b []byte) (n uint64, ok bool) {
	if len(b) == 0 || len(b) > 19 {
		return 0, false
	}
	for _, c := range b {
		if c-'0' > 9 {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, true
}

// Integer parses a whole number of a body or a query, below 1e19, in any form: 12, 12.0 or 1.2e1.
func Integer(b []byte) (n uint64, ok bool) { return money.ParseWhole(b) }

// PermissionName returns the name of one permission of a key.
func PermissionName(p uint8) string {
	switch p {
	case event.PermissionRead:
		return "read"
	case event.PermissionTrade:
		return "trade"
	case event.PermissionWithdraw:
		return "withdraw"
	}
	return "unknown"
}

// Texts of field errors. The answer has them in a list under the name of the field.
const (
	FieldRequired   = "This field is required."
	fieldNotScalar  = "A number or a string is required."
	FieldDuplicate  = "This field appears more than once."
	FieldPositive   = "A number above 0 is required."
	fieldChoice     = "Not a valid choice."
	FieldFlag       = fieldChoice + " It must be 1, 0, true or false."
	FieldPair       = "Unknown pair."
	FieldNeedsPair  = "Not possible without pair."
	FieldCurrency   = "Unknown currency."
	FieldNotOffered = "Not offered."
	FieldInteger    = "A valid integer is required."
	fieldAddress    = "1 to 256 printable ASCII characters without blanks are required."
)

// A fieldError is one bad field. A call reports all its bad fields at once.
type fieldError struct{ name, text string }

// addError adds a field error, for failOnBadFields.
func (c *Call) addError(name, text string) { c.fields = append(c.fields, fieldError{name, text}) }

// failOnBadFields returns true after writing 400 with the call's field errors, if there are any.
func (c *Call) failOnBadFields() bool {
	if len(c.fields) == 0 {
		return false
	}
	c.Status = 400
	b := append(c.body[:0], '{')
	for i, f := range c.fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = encode.Text(b, f.name)
		b = append(b, `:[`...)
		b = encode.Text(b, f.text)
		b = append(b, ']')
	}
	c.body = append(b, '}')
	return true
}

// MaxOffset is the largest offset in a list.
const MaxOffset = 100_000

// Each method below reads one parameter of the query, and adds a field error for a bad value.

// limit returns a count above 0. It lowers a count above most to most.
func (c *Call) limit(name string, unset, most int) int {
	p, ok := c.Query.Get(name)
	if !ok {
		return unset
	}
	n, ok := Integer(p.Value)
	if !ok || n == 0 {
		c.addError(name, FieldInteger+" It must be above 0.")
		return unset
	}
	return int(min(n, uint64(most)))
}

func (c *Call) offset() int {
	p, ok := c.Query.Get("offset")
	if !ok {
		return 0
	}
	n, ok := Integer(p.Value)
	if !ok || n > MaxOffset {
		c.addError("offset", FieldInteger+" It must be 0 to "+strconv.Itoa(MaxOffset)+".")
		return 0
	}
	return int(n)
}

// before returns the exclusive upper bound of ids, 0 without it.
func (c *Call) before() uint64 {
	p, ok := c.Query.Get("before")
	if !ok {
		return 0
	}
	n, ok := Integer(p.Value)
	if !ok || n == 0 {
		c.addError("before", FieldInteger+" It must be above 0.")
	}
	return n
}

// after returns the exclusive lower bound of ids, 0 without it.
func (c *Call) after() uint64 {
	p, ok := c.Query.Get("after")
	if !ok {
		return 0
	}
	n, ok := Integer(p.Value)
	if !ok {
		c.addError("after", FieldInteger)
	}
	return n
}

// side returns buy or sell, 0 without the parameter.
func (c *Call) side(name string) trading.Side {
	p, ok := c.Query.Get(name)
	if !ok {
		return 0
	}
	s := sideOf(p.Value)
	if s == 0 {
		c.addError(name, fieldChoice+" It must be buy or sell.")
	}
	return s
}

// pair returns the number of a pair, 0 without the parameter.
func (c *Call) pair() uint16 {
	p, ok := c.Query.Get("pair")
	if !ok {
		return 0
	}
	pair := c.public.Pair(p.Value)
	if pair == nil {
		c.addError("pair", FieldPair)
		return 0
	}
	return pair.Number
}

// everPair returns the number of the requested pair, also when it is no longer configured; 0
// without the parameter.
func (c *Call) everPair() uint16 {
	p, ok := c.Query.Get("pair")
	if !ok {
		return 0
	}
	number := c.public.EverPair(p.Value)
	if number == 0 {
		c.addError("pair", FieldPair)
	}
	return number
}

// currency returns a configured currency, nil without the parameter.
func (c *Call) currency(name string) *directory.Currency {
	p, ok := c.Query.Get(name)
	if !ok {
		return nil
	}
	known := c.public.Currency(p.Value)
	if known == nil {
		c.addError(name, FieldCurrency)
	}
	return known
}

// everCurrency returns the number of the requested currency, also when it is no longer configured;
// 0 without the parameter.
func (c *Call) everCurrency(name string) uint16 {
	p, ok := c.Query.Get(name)
	if !ok {
		return 0
	}
	number := c.public.EverCurrency(p.Value)
	if number == 0 {
		c.addError(name, FieldCurrency)
	}
	return number
}

// ascending returns true for ordering=id, false for -id. Without the parameter a list ascends if it
// begins after an id.
func (c *Call) ascending() bool {
	p, ok := c.Query.Get("ordering")
	if !ok {
		_, after := c.Query.Get("after")
		return after
	}
	if string(p.Value) == "-id" {
		return false
	}
	if string(p.Value) != "id" {
		c.addError("ordering", fieldChoice+" It must be id or -id.")
	}
	return true
}

// Parameters with a client's own id of an order.
const (
	clientIDName  = "client_order_id"
	clientIDAlias = "clientOrderId"
)

// clientID returns the parameter client_order_id of the query or the body, or its alias, zero
// without both.
func (c *Call) clientID(from *params.Set) event.ClientID {
	name := clientIDName
	p, ok := from.Get(name)
	if alias, also := from.Get(clientIDAlias); also {
		if ok {
			c.addError(clientIDName, givenTwice(clientIDAlias))
			return event.ClientID{}
		}
		name, p = clientIDAlias, alias
	} else if !ok {
		return event.ClientID{}
	}
	return c.clientIDIn(name, p)
}

// clientIDIn returns a client order id, or the beginning of one.
func (c *Call) clientIDIn(name string, p *params.Param) event.ClientID {
	var id event.ClientID
	err := error(event.ErrClientID)
	if isScalar(p) {
		id, err = event.NewClientID(p.Value)
	}
	if err != nil {
		c.addError(name, "A text of 1 to 36 of A-Z, a-z, 0-9, _ and - is required.")
	}
	return id
}

// givenTwice is the text for a parameter that is also given under another name.
func givenTwice(also string) string { return "Given twice, also as " + also + "." }

func sideOf(text []byte) trading.Side {
	switch string(text) {
	case "buy":
		return trading.Buy
	case "sell":
		return trading.Sell
	}
	return 0
}

// flag returns a flag of the query or the body, false without it. It adds a field error for a bad
// one.
func (c *Call) flag(from *params.Set, name string) (on bool) {
	p, ok := from.Get(name)
	if !ok {
		return false
	}
	if on, ok = Flag(p.Value); !ok {
		c.addError(name, FieldFlag)
	}
	return on
}

// Flag reads a flag: 1, 0, or true or false in either case. A boolean of JSON has the same text.
func Flag(text []byte) (on, ok bool) {
	on = isWord(text, "1") || isWord(text, "true")
	return on, on || isWord(text, "0") || isWord(text, "false")
}

// isScalar reports whether a value can be a number or a text: not true, null, an object or an
// array.
func isScalar(p *params.Param) bool {
	return p.Kind == params.String || p.Kind == params.Number || p.Kind == params.Form
}
