package loadtest

import (
	"strconv"
	"time"

	"exchange/core/money"
)

// An instruction is an order's terms beside price and amount. Options.Instructed is the share of
// orders with one, and of cancels sent as changes of an order instead.
type instruction uint8

const (
	plain    instruction = iota
	market               // with its worst price
	ioc                  // immediate or cancel
	fok                  // fill or kill
	gtd                  // until a day after the test
	postOnly             // refused if it would trade
	slide                // or moves to a price at which it does not
	noSelf               // its rest is cancelled when it meets the account's own
	overSelf             // the account's own that it meets are cancelled
	iceberg              // displays a part
	stop                 // waits for a fall, or a rise, then rests
	stopNow              // waits, then is a market order
	oco                  // a sell that becomes a stop when the price falls
	instructions
)

var instructionNames = [instructions]string{"a plain order", "market", "ioc", "fok", "gtd",
	"post-only", "post-only that slides", "cancel_newest", "cancel_oldest", "iceberg", "stop",
	"stop-market", "oco"}

func (i instruction) String() string { return instructionNames[i] }

// expires is the lifetime of gtd orders: longer than the verification.
const expires = 24 * time.Hour

// chooseInstruction returns the next order's instruction, and moves the price of those that must
// wait.
func (m *model) chooseInstruction(share int, w *request) instruction {
	if share == 0 || m.rand.IntN(100) >= share {
		return plain
	}
	i := 1 + instruction(m.rand.IntN(int(instructions)-1))
	switch {
	case i == oco && w.buy:
		return ioc
	case i == iceberg && w.lots < 2:
		return postOnly
	case i == oco: // near enough that the market has not reached its trigger
		w.ticks = m.mids[w.pair.index] + m.rand.Int64N(triggerTicks/2)
	case i == stop || i == stopNow: // beyond the market, which must reach its price
		w.ticks = away(m.mids[w.pair.index], w.buy, -2*triggerTicks-m.rand.Int64N(10*triggerTicks))
	}
	return i
}

// triggerTicks is the distance of a waiting order's trigger from its price.
const triggerTicks = 20

// fields appends an order's fields in the order of their names, as the signature requires.
func (o *sentOrder) fields(b []byte, clientID func([]byte) []byte, p *pair) []byte {
	distance := money.Price(triggerTicks * p.tick)
	b = o.amount.Append(append(b, "amount="...))
	b = clientID(append(b, "&client_order_id="...))
	switch o.instruction {
	case iceberg:
		b = (o.amount / 2).Append(append(b, "&display_amount="...))
	case gtd:
		b = strconv.AppendInt(append(b, "&expire_time="...), time.Now().Add(expires).Unix(), 10)
	case oco:
		b = (o.price - 2*distance).Append(append(b, "&oco_price="...))
		b = (o.price - distance).Append(append(b, "&oco_trigger_price="...))
	case market, stopNow:
		b = append(b, "&order_type=market"...)
	}
	b = append(append(b, "&pair="...), p.name...)
	switch o.instruction {
	case postOnly:
		b = append(b, "&post_only=1"...)
	case slide:
		b = append(b, "&post_only=slide"...)
	}
	b = o.price.Append(append(b, "&price="...))
	switch o.instruction {
	case noSelf, stop, stopNow, oco: // the answer does not contain the trades after a trigger
		b = append(b, "&self_trade=cancel_newest"...)
	case overSelf:
		b = append(b, "&self_trade=cancel_oldest"...)
	}
	switch o.instruction {
	case ioc:
		b = append(b, "&time_in_force=ioc"...)
	case fok:
		b = append(b, "&time_in_force=fok"...)
	case gtd:
		b = append(b, "&time_in_force=gtd"...)
	case stop, stopNow:
		trigger := o.price + distance // it sells below its trigger, and buys above
		if o.buy {
			trigger = o.price - distance
		}
		b = trigger.Append(append(b, "&trigger_price="...))
	}
	if o.buy {
		return append(b, "&type=buy"...)
	}
	return append(b, "&type=sell"...)
}

// mayEnd reports whether the server may have cancelled the rest of an acknowledged order without a
// cancel, and without mentioning it in its answer.
func (o *sentOrder) mayEnd() bool {
	switch o.instruction {
	case stop, stopNow, oco: // when it was triggered
		return true
	case noSelf:
		return o.isInDoubt()
	}
	return false
}

// isInDoubt reports whether a change of the order has no outcome.
func (o *sentOrder) isInDoubt() bool { return o.changed && o.change == unknown }

// mayHave reports whether the order may now have a price and an amount.
func (o *sentOrder) mayHave(price money.Price, amount money.Amount, p *pair) bool {
	if o.isInDoubt() && price == o.newPrice && amount == o.newAmount {
		return true
	}
	if amount != o.amount {
		return false
	}
	switch o.instruction {
	case slide: // as it was placed
		return o.buy && price <= o.price || !o.buy && price >= o.price
	case oco: // when it was triggered
		return price == o.price || price == o.price-money.Price(2*triggerTicks*p.tick)
	}
	return price == o.price
}

// fault returns why its instruction forbids the row of an acknowledged order; "": it allows it.
func (o *sentOrder) fault(row *orderRow) string {
	switch {
	case o.instruction.neverRests() && row.status == statusActive:
		return "rests"
	case o.instruction == fok && row.filled != 0 && row.filled != row.initial:
		return "is filled in part"
	case o.instruction == postOnly && o.filled > 0, o.instruction == slide && o.filled > 0:
		return "has traded at once"
	}
	return ""
}

// endsOthers reports whether the order may have removed others of its account from the book without
// mentioning it in an answer.
func (o *sentOrder) endsOthers() bool {
	return o.instruction == overSelf && (o.outcome == unknown || o.isInDoubt())
}

// neverRests reports whether the order is closed when it is answered.
func (i instruction) neverRests() bool { return i == market || i == ioc || i == fok }

// change chooses the next price of an order, and its next amount, which is no smaller.
func (m *model) change(o *sentOrder, p *pair) (money.Price, money.Amount) {
	price := o.price + money.Price((m.rand.Int64N(7)-3)*p.tick)
	amount := o.amount
	if m.rand.IntN(3) == 0 && amount < money.Amount(2*p.maxLots*p.lot) {
		amount += money.Amount(p.lot)
	}
	return max(price, money.Price(p.tick)), amount
}

// amend writes the change of an order.
func (w *writer) amend(id uint64, price money.Price, amount money.Amount) {
	b := amount.Append(append(w.form[:0], "amount="...))
	b = strconv.AppendUint(append(b, "&order="...), id, 10)
	w.form = price.Append(append(b, "&price="...))
}

// mayChange reports whether the test changes such orders: not those whose own rules tie their
// prices together.
func (i instruction) mayChange() bool {
	return i != oco && i != stop && i != stopNow && i != slide && i != postOnly && i != iceberg
}

// amended notes the answer to a change.
func (u *user) amended(x *item, p *placed) {
	o := &u.orders[x.order]
	o.changed = false // it may be changed again
	o.price, o.amount, o.change = o.newPrice, o.newAmount, done
	o.cut = o.cut || p.cutOff > 0
	if p.remaining > 0 {
		u.open = append(u.open, openOrder{o.id, x.order})
		x.rests = true
	}
}

// prevented notes the orders removed from the book according to an answer.
func (u *user) prevented(list []byte) error {
	return eachItem(list, func(item []byte) error {
		return eachField(item, func(name, v []byte) bool {
			if string(name) == "o_id" {
				if u.evicted == nil {
					u.evicted = map[uint64]bool{}
				}
				u.evicted[number(v)] = true
			}
			return true
		})
	})
}
