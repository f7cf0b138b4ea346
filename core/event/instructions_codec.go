package event

import (
	"fmt"

	"exchange/core/money"
	"exchange/core/trading"
)

// appendSpecial writes a record about an order with instructions, a switch or settings.
func (r *Record) appendSpecial(dst []byte) []byte {
	switch r.Kind {
	case KindInstructed:
		if r.Instructions.IsZero() {
			panic("BUG: an order without instructions is written as one with instructions")
		}
		return r.appendInstructions(r.Order.append(dst))
	case KindStop:
		return r.appendInstructions(trigger(r.Order.appendStop(dst), r.Trigger, false))
	case KindTriggered:
		if r.Order.Key != 0 || r.Order.Nonce != 0 {
			panic("BUG: a triggered order is written with a key or a nonce")
		}
		dst = r.Triggered.Was.append(r.Order.append(dst))
		return r.appendInstructions(flag(dst, r.Triggered.FromBook))
	case KindAmended:
		dst = r.Amended.Was.append(uv(r.Order.append(dst), r.Amended.ID))
		return r.appendInstructions(trigger(flag(dst, r.Amended.Kept), r.Trigger, true))
	case KindExpired:
		return appendExpired(dst, r.Expired)
	case KindSwitch:
		return r.Switch.append(dst)
	case KindSettings:
		s := &r.Settings
		dst = uv(uv(uv(dst, uint64(s.Account)), uint64(s.Key)), s.Nonce)
		if s.SelfTrade > trading.SelfTradeCancelBoth {
			panic(fmt.Sprintf("BUG: settings are written with the self-trade mode %d", s.SelfTrade))
		}
		return append(dst, byte(s.SelfTrade))
	case KindSwitchCancel:
		c := &r.Cancel
		if c.Nonce != 0 || !sweeps(c.Reason) {
			panic(fmt.Sprintf("BUG: a cancel by a switch is written with nonce %d and reason %d",
				c.Nonce, c.Reason))
		}
		return append(c.append(dst), byte(c.Reason))
	}
	panic(fmt.Sprintf("BUG: a record of %v is written", r.Kind))
}

// appendStop writes a waiting order: it has no trades yet, and all of it remains.
func (o *Order) appendStop(dst []byte) []byte {
	if o.Remaining != o.Amount || o.FeeAccount != 0 || len(o.Trades) > 0 {
		panic(fmt.Sprintf("BUG: order %d is written as one that waits, with %d of %d units open",
			o.ID, int64(o.Remaining), int64(o.Amount)))
	}
	dst = amount(amount(o.appendStart(dst), money.Amount(o.Price)), o.Amount)
	return o.ClientID.append(dst)
}

func sweeps(r trading.Reason) bool {
	return r == trading.CancelledSwitch || r == trading.CancelledDisconnect
}

func (r *Record) appendInstructions(dst []byte) []byte {
	if !r.instructionsFit() {
		panic(fmt.Sprintf("BUG: order %d is written with the reason %v, its rest cancelled: %v, "+
			"or with a prevented order after its %d trades", r.Order.ID,
			r.Instructions.Cancelled, r.Order.RestCancelled, len(r.Order.Trades)))
	}
	return r.Instructions.Append(dst)
}

// instructionsFit reports whether the instructions match the order beside them. Prevented orders
// follow the order of the trades.
func (r *Record) instructionsFit() bool {
	i := &r.Instructions
	n := len(i.Prevented)
	return r.Order.RestCancelled == (i.Cancelled != 0) &&
		(n == 0 || int(i.Prevented[n-1].Before) <= len(r.Order.Trades))
}

func (w *Was) append(dst []byte) []byte {
	return amount(amount(dst, money.Amount(w.Price)), w.Open)
}

// trigger writes a trigger; an optional absent one as a price of 0.
func trigger(dst []byte, t trading.Trigger, optional bool) []byte {
	if optional && t == (trading.Trigger{}) {
		return append(dst, 0)
	}
	if t.Price < 1 || t.When != trading.Rise && t.When != trading.Fall {
		panic(fmt.Sprintf("BUG: a record is written with a trigger at %d, direction %d",
			int64(t.Price), t.When))
	}
	return append(amount(dst, money.Amount(t.Price)), byte(t.When))
}

func appendExpired(dst []byte, list []Expired) []byte {
	if len(list) == 0 {
		panic("BUG: a record is written that expires no order")
	}
	dst = uv(dst, atMost(len(list), MaxExpired))
	for i := range list {
		x := &list[i]
		dst = append(uv(uv(uv(dst, x.ID), x.Order), uint64(x.Account)), side(x.Side))
		dst = amount(amount(dst, money.Amount(x.Price)), x.Open)
	}
	return dst
}

const (
	switchSession = 1 << iota
	switchArmed

	allSwitchFlags = switchArmed<<1 - 1
)

func (s *Switch) append(dst []byte) []byte {
	if s.DueUs < 0 || s.Seconds > MaxSwitchSeconds || s.Side > trading.Sell {
		panic(fmt.Sprintf("BUG: a switch is written with %d seconds, due at %d us, of side %d",
			s.Seconds, s.DueUs, s.Side))
	}
	flags := byte(0)
	if s.Session {
		flags |= switchSession
	}
	if s.Armed {
		flags |= switchArmed
	}
	dst = append(uv(uv(uv(dst, uint64(s.Account)), uint64(s.Key)), s.Nonce), flags)
	dst = uv(uv(uv(dst, uint64(s.DueUs)), uint64(s.Seconds)), uint64(s.Pair))
	return s.Prefix.append(append(dst, byte(s.Side)))
}

// special reads a record that appendSpecial writes. It returns false for an unknown kind.
func (d *decoder) special(r *Record) bool {
	switch r.Kind {
	case KindInstructed:
		d.order(&r.Order)
		if d.instructions(r); r.Instructions.IsZero() {
			d.fail()
		}
	case KindStop:
		o := &r.Order
		d.orderStart(o)
		o.Price, o.Amount = d.Price(), d.Amount()
		d.clientID(&o.ClientID)
		o.Remaining, o.FeeAccount, o.Trades = o.Amount, 0, o.Trades[:0]
		r.Trigger = d.trigger(false)
		d.instructions(r)
	case KindTriggered:
		d.order(&r.Order)
		if r.Order.Key != 0 || r.Order.Nonce != 0 {
			d.fail()
		}
		r.Triggered = Triggered{Was: d.was(), FromBook: d.Flag()}
		d.instructions(r)
	case KindAmended:
		d.order(&r.Order)
		r.Amended = Amended{ID: d.Uint(), Was: d.was(), Kept: d.Flag()}
		r.Trigger = d.trigger(true)
		d.instructions(r)
	case KindExpired:
		d.expired(r)
	case KindSwitch:
		d.switched(&r.Switch)
	case KindSettings:
		r.Settings = Settings{Account: d.U32(), Key: d.U32(), Nonce: d.Uint(),
			SelfTrade: trading.SelfTrade(d.byteUpTo(byte(trading.SelfTradeCancelBoth)))}
	case KindSwitchCancel:
		d.cancel(&r.Cancel)
		r.Cancel.Reason = trading.Reason(d.Byte())
		if r.Cancel.Nonce != 0 || !sweeps(r.Cancel.Reason) {
			d.fail()
		}
	default:
		return false
	}
	return true
}

func (d *decoder) instructions(r *Record) {
	if r.Instructions.Read(&d.Reader); !r.instructionsFit() {
		d.fail()
	}
}

func (d *decoder) was() Was { return Was{Price: d.Price(), Open: d.Amount()} }

func (d *decoder) trigger(optional bool) (t trading.Trigger) {
	t.Price = d.Price()
	if t.Price == 0 {
		if !optional {
			d.fail()
		}
		return t
	}
	t.When = trading.Direction(d.byteUpTo(byte(trading.Fall)))
	if t.When == 0 {
		d.fail()
	}
	return t
}

func (d *decoder) byteUpTo(most byte) byte {
	b := d.Byte()
	if b > most {
		d.fail()
	}
	return b
}

func (d *decoder) expired(r *Record) {
	r.Expired = r.Expired[:0]
	n := d.UpTo(MaxExpired)
	if n == 0 {
		d.fail()
	}
	for ; n > 0 && !d.Bad(); n-- {
		r.Expired = append(r.Expired, Expired{ID: d.Uint(), Order: d.Uint(), Account: d.U32(),
			Side: d.side(), Price: d.Price(), Open: d.Amount()})
	}
}

func (d *decoder) switched(s *Switch) {
	*s = Switch{Account: d.U32(), Key: d.U32(), Nonce: d.Uint()}
	flags := d.byteUpTo(allSwitchFlags)
	s.Session, s.Armed = flags&switchSession != 0, flags&switchArmed != 0
	s.DueUs, s.Seconds = int64(d.Amount()), uint32(d.UpTo(MaxSwitchSeconds))
	s.Pair, s.Side = d.U16(), trading.Side(d.byteUpTo(byte(trading.Sell)))
	d.clientID(&s.Prefix)
}
