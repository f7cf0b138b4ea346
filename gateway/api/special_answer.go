package api

import (
	"strconv"

	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/gateway/encode"
)

// The fields of answers about orders with instructions, after those of all orders.

// An outcome is the result of an order with instructions.
type outcome struct {
	trading.Instructed
	price     money.Price
	filled    money.Amount
	complete  bool // Value is that of all its trades, unless it is 0
	cancelled money.Amount
}

// appendOutcome writes the instructions of a record's order, and their result.
func appendOutcome(b []byte, rec *event.Record) []byte {
	o := &rec.Order
	x := outcome{Instructed: trading.Instructed{Instructions: rec.Instructions,
		Trigger: rec.Trigger}, price: o.Price, filled: o.Amount - o.Remaining}
	traded := money.Amount(0)
	for i := range o.Trades {
		t := &o.Trades[i]
		traded += t.Amount
		x.Value = x.Value.Add(t.Price.Times(t.Amount).Balance())
	}
	x.complete = traded == x.filled
	status := trading.StatusActive
	switch {
	case o.RestCancelled:
		status, x.cancelled = trading.StatusCancelled, o.Remaining
	case o.Remaining == 0:
		status = trading.StatusDone
	}
	b = strconv.AppendInt(append(b, `,"status":`...), int64(status), 10)
	return x.append(b)
}

// appendInstructed writes the instructions of an order's row, and their result.
func appendInstructed(b []byte, o *committed.Order) []byte {
	with, ok := o.Instructed.Open()
	if !ok {
		panic("BUG: the instructions of order " + strconv.FormatUint(o.ID, 10) +
			" cannot be read")
	}
	x := outcome{Instructed: with, price: o.Price, filled: o.Amount - o.Remaining, complete: true}
	if o.Status == trading.StatusCancelled {
		x.cancelled = o.Remaining
	}
	return x.append(b)
}

// append writes the members that apply.
func (x *outcome) append(b []byte) []byte {
	b = x.appendKind(b)
	if x.Quote != 0 {
		b = x.Quote.Append(append(b, `,"quote_amount":`...))
		if x.complete {
			b = x.Value.Append(append(b, `,"quote_filled":`...))
		}
	}
	if x.filled > 0 && x.complete && !x.Value.IsZero() {
		b = x.Value.Average(x.filled).Append(append(b, `,"average_price":`...))
	}
	if x.Display != 0 {
		b = x.Display.Append(append(b, `,"display_amount":`...))
	}
	b = x.appendTrigger(b)
	if x.SelfTrade != trading.SelfTradeNone || x.SelfTradeOwn {
		b = encode.Text(append(b, `,"self_trade":`...), SelfTradeName(x.SelfTrade))
	}
	b = appendPrevented(b, x.Prevented)
	if x.cancelled > 0 {
		b = x.cancelled.Append(append(b, `,"amount_cancelled":`...))
	}
	if x.Cancelled != 0 {
		b = encode.Text(append(b, `,"cancel_reason":`...), x.Cancelled.String())
	}
	return b
}

// appendKind writes the type of the order, its lifetime, and whether it may take.
func (x *outcome) appendKind(b []byte) []byte {
	b = encode.Text(append(b, `,"order_type":`...), OrderTypeName(&x.Instructions))
	b = encode.Text(append(b, `,"time_in_force":`...), TimeInForceName(&x.Instructions))
	if x.ExpireUs != 0 {
		b = encode.Seconds(append(b, `,"expire_time":`...), x.ExpireUs)
	}
	switch {
	case x.PostOnly && x.Asked != 0:
		b = append(b, `,"post_only":"slide"`...)
	case x.PostOnly:
		b = append(b, `,"post_only":true`...)
	}
	if x.Asked != 0 && x.Asked != x.price {
		b = x.Asked.Append(append(b, `,"price_asked":`...))
	}
	return b
}

// appendTrigger writes the trigger of an order that waits, or has waited.
func (x *outcome) appendTrigger(b []byte) []byte {
	if x.Trigger.When != 0 {
		b = x.Trigger.Price.Append(append(b, `,"trigger_price":`...))
		b = encode.Text(append(b, `,"trigger_when":`...), DirectionName(x.Trigger.When))
	}
	if x.OCO.Trigger != 0 {
		b = x.OCO.Trigger.Append(append(b, `,"oco_trigger_price":`...))
		if x.OCO.Price != 0 {
			b = x.OCO.Price.Append(append(b, `,"oco_price":`...))
		}
	}
	if x.Trigger.When != 0 || x.OCO.Trigger != 0 {
		b = strconv.AppendBool(append(b, `,"triggered":`...), x.Triggered)
	}
	return b
}

func appendPrevented(b []byte, list []trading.Prevented) []byte {
	for i := range list {
		if i == 0 {
			b = append(b, `,"prevented":[`...)
		} else {
			b = append(b, ',')
		}
		b = strconv.AppendUint(append(b, `{"o_id":`...), list[i].Order, 10)
		b = append(list[i].Amount.Append(append(b, `,"amount":`...)), '}')
	}
	if len(list) > 0 {
		b = append(b, ']')
	}
	return b
}

// SelfTradeName returns a mode in the API's words.
func SelfTradeName(mode trading.SelfTrade) string { return instructions[selfTrade].words[mode] }

// DirectionName returns a direction in the API's words.
func DirectionName(d trading.Direction) string {
	return instructions[triggerWhen].words[d-trading.Rise]
}

// OrderTypeName returns the type of an order in the API's words.
func OrderTypeName(i *trading.Instructions) string {
	if i.Market {
		return "market"
	}
	return "limit"
}

// TimeInForceName returns the time in force in the API's words.
func TimeInForceName(i *trading.Instructions) string {
	force := forceGTC
	switch {
	case i.FOK:
		force = forceFOK
	case i.IOC:
		force = forceIOC
	case i.ExpireUs != 0:
		force = forceGTD
	}
	return force.String()
}
