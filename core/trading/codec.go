package trading

import (
	"encoding/binary"
	"fmt"

	"exchange/core/money"
	"exchange/core/wire"
)

// The stored form of an order's instructions, in records, history rows and state images alike:
// flags (uvarint), then the fields of the set bits, in the order of the bits. A zero field is
// absent, so a value has exactly one form.
const (
	hasMarket = 1 << iota
	hasIOC
	hasFOK
	hasExpire    // microseconds
	hasPostOnly  //
	hasAsked     // price
	hasDisplay   // amount
	hasQuote     // amount
	hasSelfTrade // mode, a byte, with ownMode if it is the order's own
	hasPrevented // count, and each: before which trade, order, its cancel, price, amount
	hasOCO       // trigger price, price
	hasCancelled // reason, a byte
	hasDerived

	allInstructions = hasDerived<<1 - 1
)

const ownMode = 4

// maxPrevented bounds the orders that one record prevents from trading with their own account. The
// configured max_fills is below it.
const maxPrevented = 1_000_000

// IsZero reports whether the instructions are those of a plain limit order.
func (i *Instructions) IsZero() bool { return i.flags() == 0 }

func (i *Instructions) flags() (flags uint64) {
	for bit, set := range [...]bool{i.Market, i.IOC, i.FOK, i.ExpireUs != 0, i.PostOnly,
		i.Asked != 0, i.Display != 0, i.Quote != 0, i.SelfTrade != 0 || i.SelfTradeOwn,
		len(i.Prevented) > 0, i.OCO != OCO{}, i.Cancelled != 0, i.Derived} {
		if set {
			flags |= 1 << bit
		}
	}
	return flags
}

// Append writes the instructions to dst. It panics when Read would refuse the bytes.
func (i *Instructions) Append(dst []byte) []byte {
	if err := i.check(); err != "" {
		panic("BUG: instructions are written with " + err)
	}
	flags := i.flags()
	dst = binary.AppendUvarint(dst, flags)
	if flags&hasExpire != 0 {
		dst = binary.AppendUvarint(dst, uint64(i.ExpireUs))
	}
	if flags&hasAsked != 0 {
		dst = binary.AppendUvarint(dst, uint64(i.Asked))
	}
	if flags&hasDisplay != 0 {
		dst = binary.AppendUvarint(dst, uint64(i.Display))
	}
	if flags&hasQuote != 0 {
		dst = binary.AppendUvarint(dst, uint64(i.Quote))
	}
	if flags&hasSelfTrade != 0 {
		mode := byte(i.SelfTrade)
		if i.SelfTradeOwn {
			mode |= ownMode
		}
		dst = append(dst, mode)
	}
	if flags&hasPrevented != 0 {
		dst = binary.AppendUvarint(dst, uint64(len(i.Prevented)))
		for k := range i.Prevented {
			p := &i.Prevented[k]
			dst = binary.AppendUvarint(dst, uint64(p.Before))
			dst = binary.AppendUvarint(dst, p.Order)
			dst = binary.AppendUvarint(dst, p.Cancel)
			dst = binary.AppendUvarint(dst, uint64(p.Price))
			dst = binary.AppendUvarint(dst, uint64(p.Amount))
		}
	}
	if flags&hasOCO != 0 {
		dst = binary.AppendUvarint(dst, uint64(i.OCO.Trigger))
		dst = binary.AppendUvarint(dst, uint64(i.OCO.Price))
	}
	if flags&hasCancelled != 0 {
		dst = append(dst, byte(i.Cancelled))
	}
	return dst
}

// check names the first contradiction within the instructions; "" if there is none.
func (i *Instructions) check() string {
	switch {
	case i.ExpireUs < 0 || i.Asked < 0 || i.Display < 0 || i.Quote < 0:
		return fmt.Sprintf("the end %d us, price asked for %d, display %d, quote sum %d",
			i.ExpireUs, int64(i.Asked), int64(i.Display), int64(i.Quote))
	case i.SelfTrade > SelfTradeCancelBoth:
		return fmt.Sprintf("the self-trade mode %d", i.SelfTrade)
	case i.OCO != OCO{} && (i.OCO.Trigger < 1 || i.OCO.Price < 0):
		return fmt.Sprintf("the prices %d and %d of an OCO", int64(i.OCO.Trigger),
			int64(i.OCO.Price))
	case i.Cancelled > CancelledDisconnect:
		return fmt.Sprintf("the reason %d", i.Cancelled)
	case len(i.Prevented) > maxPrevented:
		return fmt.Sprintf("%d prevented orders", len(i.Prevented))
	}
	before := uint32(0)
	for k := range i.Prevented {
		p := &i.Prevented[k]
		if p.Price < 0 || p.Amount < 0 || p.Before < before {
			return fmt.Sprintf("%d units at %d units prevented before trade %d, after trade %d",
				int64(p.Amount), int64(p.Price), p.Before, before)
		}
		before = p.Before
	}
	return ""
}

// Read reads what Append wrote; i is unusable if r turns bad. Prevented reuses its memory.
func (i *Instructions) Read(r *wire.Reader) {
	flags := r.UpTo(allInstructions)
	*i = Instructions{Market: flags&hasMarket != 0, IOC: flags&hasIOC != 0, FOK: flags&hasFOK != 0,
		PostOnly: flags&hasPostOnly != 0, Derived: flags&hasDerived != 0,
		Prevented: i.Prevented[:0]}
	if flags&hasExpire != 0 {
		i.ExpireUs = notZero(r)
	}
	if flags&hasAsked != 0 {
		i.Asked = money.Price(notZero(r))
	}
	if flags&hasDisplay != 0 {
		i.Display = money.Amount(notZero(r))
	}
	if flags&hasQuote != 0 {
		i.Quote = money.Amount(notZero(r))
	}
	if flags&hasSelfTrade != 0 {
		mode := oneOf(r, ownMode|byte(SelfTradeCancelBoth))
		i.SelfTrade, i.SelfTradeOwn = SelfTrade(mode&^ownMode), mode&ownMode != 0
	}
	if flags&hasPrevented != 0 {
		i.prevented(r)
	}
	if flags&hasOCO != 0 {
		i.OCO = OCO{Trigger: money.Price(notZero(r)), Price: r.Price()}
	}
	if flags&hasCancelled != 0 {
		i.Cancelled = Reason(oneOf(r, byte(CancelledDisconnect)))
	}
}

func (i *Instructions) prevented(r *wire.Reader) {
	n, before := r.UpTo(maxPrevented), uint32(0)
	if n == 0 {
		r.Fail("no prevented orders are there")
	}
	for ; n > 0 && !r.Bad(); n-- {
		p := Prevented{Before: r.U32(), Order: r.Uint(), Cancel: r.Uint(), Price: r.Price(),
			Amount: r.Amount()}
		if p.Before < before {
			r.Fail("prevented orders are not in order")
		}
		before = p.Before
		i.Prevented = append(i.Prevented, p)
	}
}

// Packed is an Instructed as bytes, a comparable value; "" is a plain limit order. Its content is
// the instructions, the direction of the trigger with a flag, the trigger price if there is a
// trigger, and the value.
type Packed string

// maxPacked is the length of the longest Packed that KeptPrevented prevented orders make.
const maxPacked = 8192

// KeptPrevented is how many prevented orders a packed order keeps, the first ones. The record that
// prevented them holds all.
const KeptPrevented = 100

const (
	directionMask = 3
	wasTriggered  = 4
)

// Pack returns the instructions as bytes.
func (x *Instructed) Pack() Packed {
	kept := *x
	kept.Prevented = x.Prevented[:min(len(x.Prevented), KeptPrevented)]
	return Packed(kept.Append(nil))
}

// Append writes the bytes that Read reads to dst. It panics when Read would refuse the bytes.
func (x *Instructed) Append(dst []byte) []byte {
	t := x.Trigger
	if t.When > Fall || t.Price < 0 || (t.Price == 0) != (t.When == 0) {
		panic(fmt.Sprintf("BUG: a trigger is written with price %d, direction %d", int64(t.Price),
			t.When))
	}
	dst = x.Instructions.Append(dst)
	flags := byte(t.When)
	if x.Triggered {
		flags |= wasTriggered
	}
	dst = append(dst, flags)
	if t.When != 0 {
		dst = binary.AppendUvarint(dst, uint64(t.Price))
	}
	return wire.AppendBalance(dst, x.Value)
}

// Read reads what Append wrote; x is unusable if r turns bad. Prevented reuses its memory.
func (x *Instructed) Read(r *wire.Reader) {
	x.Instructions.Read(r)
	flags := r.Byte()
	x.Triggered = flags&wasTriggered != 0
	x.Trigger = Trigger{When: Direction(flags & directionMask)}
	if x.Trigger.When > Fall || flags > wasTriggered|directionMask {
		r.Fail("a trigger has another direction")
	} else if x.Trigger.When != 0 {
		x.Trigger.Price = money.Price(notZero(r))
	}
	x.Value = r.Balance()
}

// Open decodes packed instructions; "" decodes to those of a plain limit order. ok is false for
// bytes that Pack does not produce.
func (p Packed) Open() (x Instructed, ok bool) {
	if p == "" {
		return x, true
	}
	if len(p) > maxPacked {
		return x, false
	}
	r := wire.Read([]byte(p))
	x.Read(&r)
	return x, r.End() && len(x.Prevented) <= KeptPrevented
}

// notZero reads a number that is not 0: a field of 0 is left out.
func notZero(r *wire.Reader) int64 {
	v := r.Int63()
	if v == 0 {
		r.Fail("a field of 0 is there")
	}
	return v
}

// oneOf reads a byte from 1 to the largest.
func oneOf(r *wire.Reader, largest byte) byte {
	v := r.Byte()
	if v == 0 || v > largest {
		r.Fail("a byte is out of range")
	}
	return v
}
