package event

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"exchange/core/money"
	"exchange/core/trading"
)

func drawPositive(t *rapid.T, name string) money.Amount {
	return money.Amount(rapid.OneOf(rapid.Int64Range(1, math.MaxInt64),
		rapid.Int64Range(1, 300)).Draw(t, name))
}

// drawInstructions draws instructions that fit the record's order, and sets whether its rest is
// cancelled.
func drawInstructions(t *rapid.T, r *Record) {
	set := rapid.Bool()
	i := trading.Instructions{Market: set.Draw(t, "market"), IOC: set.Draw(t, "ioc"),
		FOK: set.Draw(t, "fok"), PostOnly: set.Draw(t, "post only"),
		Derived:   set.Draw(t, "derived"),
		SelfTrade: trading.SelfTrade(rapid.Uint8Range(0, 3).Draw(t, "self-trade")),
		Cancelled: trading.Reason(rapid.Uint8Range(0, 11).Draw(t, "reason"))}
	if set.Draw(t, "gtd") {
		i.ExpireUs = int64(drawPositive(t, "end"))
	}
	if set.Draw(t, "slide") {
		i.Asked = money.Price(drawPositive(t, "asked"))
	}
	if set.Draw(t, "iceberg") {
		i.Display = drawPositive(t, "display")
	}
	if set.Draw(t, "by a sum") {
		i.Quote = drawPositive(t, "sum")
	}
	if set.Draw(t, "oco") {
		i.OCO = trading.OCO{Trigger: money.Price(drawPositive(t, "oco trigger")),
			Price: money.Price(drawAmount(t, "oco price"))}
	}
	before := uint32(0)
	for range rapid.IntRange(0, 4).Draw(t, "prevented") {
		before = rapid.Uint32Range(before, uint32(len(r.Order.Trades))).Draw(t, "before")
		i.Prevented = append(i.Prevented, trading.Prevented{Before: before,
			Order: rapid.Uint64().Draw(t, "order"), Cancel: rapid.Uint64().Draw(t, "cancel"),
			Price:  money.Price(drawAmount(t, "price")),
			Amount: drawAmount(t, "amount")})
	}
	r.Instructions, r.Order.RestCancelled = i, i.Cancelled != 0
}

func drawTrigger(t *rapid.T) trading.Trigger {
	return trading.Trigger{Price: money.Price(drawPositive(t, "trigger price")),
		When: rapid.SampledFrom([]trading.Direction{trading.Rise, trading.Fall}).Draw(t, "when")}
}

func drawWas(t *rapid.T) Was {
	return Was{Price: money.Price(drawAmount(t, "was price")), Open: drawAmount(t, "was open")}
}

func drawSpecial(t *rapid.T, r *Record) {
	switch r.Kind {
	case KindEmail:
		r.Email = drawEmail(t)
		return
	case KindAccountClosed:
		r.AccountClosed = AccountClosed{rapid.Uint32().Draw(t, "account")}
		return
	}
	u32, u64 := rapid.Uint32(), rapid.Uint64()
	switch r.Kind {
	case KindInstructed:
		r.Order = drawOrder(t)
		if drawInstructions(t, r); r.Instructions.IsZero() {
			r.Instructions.PostOnly = true
		}
	case KindStop:
		o := drawOrder(t)
		o.Remaining, o.FeeAccount, o.Trades = o.Amount, 0, nil
		r.Order, r.Trigger = o, drawTrigger(t)
		drawInstructions(t, r)
	case KindTriggered:
		r.Order = drawOrder(t)
		r.Order.Key, r.Order.Nonce = 0, 0
		r.Triggered = Triggered{Was: drawWas(t), FromBook: rapid.Bool().Draw(t, "from book")}
		drawInstructions(t, r)
	case KindAmended:
		r.Order = drawOrder(t)
		r.Amended = Amended{ID: u64.Draw(t, "change"), Was: drawWas(t),
			Kept: rapid.Bool().Draw(t, "kept")}
		if rapid.Bool().Draw(t, "waits") {
			r.Trigger = drawTrigger(t)
		}
		drawInstructions(t, r)
	case KindExpired:
		for range rapid.SampledFrom([]int{1, 2, MaxExpired}).Draw(t, "expired") {
			r.Expired = append(r.Expired, Expired{ID: u64.Draw(t, "id"),
				Order: u64.Draw(t, "order"), Account: u32.Draw(t, "account"), Side: drawSide(t),
				Price: money.Price(drawAmount(t, "price")), Open: drawAmount(t, "open")})
		}
	case KindSwitch:
		r.Switch = Switch{Account: u32.Draw(t, "account"), Key: u32.Draw(t, "key"),
			Nonce: u64.Draw(t, "nonce"), Session: rapid.Bool().Draw(t, "session"),
			Armed: rapid.Bool().Draw(t, "armed"), DueUs: int64(drawAmount(t, "due")),
			Seconds: rapid.Uint32Range(0, MaxSwitchSeconds).Draw(t, "seconds"),
			Pair:    rapid.Uint16().Draw(t, "of pair"),
			Side:    trading.Side(rapid.Uint8Range(0, 2).Draw(t, "of side")),
			Prefix:  drawClientID(t)}
	case KindSettings:
		r.Settings = Settings{Account: u32.Draw(t, "account"), Key: u32.Draw(t, "key"),
			Nonce:     u64.Draw(t, "nonce"),
			SelfTrade: trading.SelfTrade(rapid.Uint8Range(0, 3).Draw(t, "self-trade"))}
	case KindSwitchCancel:
		r.Cancel = drawCancel(t)
		r.Cancel.Nonce, r.Cancel.Reason = 0, rapid.SampledFrom([]trading.Reason{
			trading.CancelledSwitch, trading.CancelledDisconnect}).Draw(t, "reason")
	}
}

// decodes checks whether bytes are a record, or damaged.
func decodes(t *testing.T) func(what string, sound bool, b []byte) {
	return func(what string, sound bool, b []byte) {
		t.Helper()
		var r Record
		if _, err := r.Decode(b); sound && err != nil || !sound && !errors.Is(err, errDamaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestRecordsOfOrdersWithImpossibleInstructionsAreRefused(t *testing.T) {
	f := decodes(t)
	order := func(key uint64, side byte, instructions ...byte) []byte {
		return payload(KindInstructed, numbers(1, 1, key, 0), []byte{side}, numbers(1, 1, 1, 0, 0,
			0), instructions)
	}
	const postOnly, cancelled, prevented = 1 << 4, 1 << 11, 1 << 9
	f("an order", true, order(1, 1, numbers(postOnly)...))
	f("an order whose rest is cancelled", true, order(1, 0x81, append(numbers(cancelled), 1)...))
	f("an order whose instructions leave no trace", false, order(1, 1, 0))
	f("a cancelled rest without a reason", false, order(1, 0x81, numbers(postOnly)...))
	f("a reason of a rest that is not cancelled", false, order(1, 1, append(numbers(cancelled),
		1)...))
	f("an unknown instruction", false, order(1, 1, numbers(1<<13)...))
	f("an order prevented before a trade that is not there", false, order(1, 1,
		numbers(prevented, 1, 1, 5, 6, 7, 8)...))
	f("an order prevented after the last trade", true, order(1, 1,
		numbers(prevented, 1, 0, 5, 6, 7, 8)...))

	stop := func(trigger, when byte) []byte {
		return payload(KindStop, numbers(1, 1, 1, 1), []byte{1}, numbers(1, 1), []byte{0, trigger,
			when, 0})
	}
	f("a stop", true, stop(5, 2))
	f("a stop without a trigger price", false, stop(0, 2))
	f("a stop without a direction", false, stop(5, 0))
	f("a stop of direction 3", false, stop(5, 3))

	triggered := func(key, nonce uint64, left byte) []byte {
		return payload(KindTriggered, numbers(1, 1, key, nonce), []byte{1}, numbers(1, 1, 1, 0, 0,
			0), numbers(1, 1), []byte{left, 0})
	}
	f("a triggered order", true, triggered(0, 0, 1))
	f("a triggered order with a key", false, triggered(1, 0, 1))
	f("a triggered order with a nonce", false, triggered(0, 1, 1))
	f("a triggered order with another flag", false, triggered(0, 0, 2))

	expired := func(count uint64, there int, side byte) []byte {
		one := bytes.Join([][]byte{numbers(1, 1, 1), {side}, numbers(1, 1)}, nil)
		return payload(KindExpired, numbers(count), bytes.Repeat(one, there))
	}
	f("the most orders that expire", true, expired(MaxExpired, MaxExpired, 1))
	f("no order that expires", false, expired(0, 0, 1))
	f("too many orders that expire", false, expired(MaxExpired+1, MaxExpired+1, 1))
	f("fewer orders than there should be", false, expired(2, 1, 1))
	f("an expired order of side 0", false, expired(1, 1, 0))

}

func TestImpossibleSwitchesSettingsAndSweptOrdersAreRefused(t *testing.T) {
	f := decodes(t)
	armed := func(flags byte, seconds uint64, side byte, prefix ...byte) []byte {
		return payload(KindSwitch, numbers(1, 1, 1), []byte{flags}, numbers(1, seconds, 0),
			[]byte{side}, prefix)
	}
	f("a switch", true, armed(3, MaxSwitchSeconds, 2, 1, 'a'))
	f("a switch with another flag", false, armed(4, 5, 2, 0))
	f("a switch of more than a day", false, armed(2, MaxSwitchSeconds+1, 2, 0))
	f("a switch of side 3", false, armed(2, 5, 3, 0))
	f("a switch with a prefix of another alphabet", false, armed(2, 5, 2, 1, ' '))
	f("settings of mode 4", false, payload(KindSettings, numbers(1, 1, 1, 4)))

	swept := func(nonce uint64, reason byte) []byte {
		return payload(KindSwitchCancel, numbers(1, 1, 1, 1, nonce), []byte{1}, numbers(1, 1),
			[]byte{reason})
	}
	f("an order that a switch cancelled", true, swept(0, byte(trading.CancelledSwitch)))
	f("one with a nonce", false, swept(1, byte(trading.CancelledSwitch)))
	f("one that its owner cancelled", false, swept(0, byte(trading.CancelledOwner)))
}

func TestUnreadableRecordsOfOrdersWithInstructionsAreNotWritten(t *testing.T) {
	f := func(what string, r Record) {
		t.Helper()
		defer func() {
			if p, _ := recover().(string); !strings.HasPrefix(p, "BUG: ") {
				t.Errorf("%s: panic %q", what, p)
			}
		}()
		r.Append(nil)
	}
	o := Order{Side: trading.Buy}
	stop := trading.Trigger{Price: 1, When: trading.Rise}
	with := func(kind Kind, change func(r *Record)) Record {
		r := Record{Kind: kind, Order: o, Trigger: stop}
		r.Instructions.PostOnly = true
		change(&r)
		return r
	}
	f("an order without instructions", Record{Kind: KindInstructed, Order: o})
	f("a reason alone", with(KindInstructed, func(r *Record) { r.Instructions.Cancelled = 1 }))
	f("a cancelled rest alone", with(KindAmended, func(r *Record) { r.Order.RestCancelled = true }))
	f("an order prevented after a missing trade", with(KindTriggered,
		func(r *Record) { r.Instructions.Prevented = []trading.Prevented{{Before: 1}} }))
	f("a stop with a trade", with(KindStop, func(r *Record) { r.Order.Trades = []Trade{{}} }))
	f("a stop that is filled in part", with(KindStop, func(r *Record) { r.Order.Amount = 1 }))
	f("a stop with a fee account", with(KindStop, func(r *Record) { r.Order.FeeAccount = 1 }))
	f("a stop without a trigger",
		with(KindStop, func(r *Record) { r.Trigger = trading.Trigger{} }))
	f("an amend with half a trigger", with(KindAmended, func(r *Record) { r.Trigger.When = 0 }))
	f("a triggered order with a key", with(KindTriggered, func(r *Record) { r.Order.Key = 1 }))
	f("a triggered order with a nonce", with(KindTriggered, func(r *Record) { r.Order.Nonce = 1 }))
	f("a negative price before", with(KindAmended, func(r *Record) { r.Amended.Was.Price = -1 }))
	f("a negative amount before", with(KindTriggered,
		func(r *Record) { r.Triggered.Was.Open = -1 }))
	f("no expired order", Record{Kind: KindExpired})
	f("too many expired orders", Record{Kind: KindExpired, Expired: make([]Expired, MaxExpired+1)})
	f("an expired order of no side", Record{Kind: KindExpired, Expired: make([]Expired, 1)})
	f("a switch of two days", Record{Kind: KindSwitch, Switch: Switch{Seconds: 172_800}})
	f("a switch before all time", Record{Kind: KindSwitch, Switch: Switch{DueUs: -1}})
	f("a switch of side 3", Record{Kind: KindSwitch, Switch: Switch{Side: 3}})
	f("settings of mode 4", Record{Kind: KindSettings, Settings: Settings{SelfTrade: 4}})
	f("a swept order without a reason", Record{Kind: KindSwitchCancel,
		Cancel: Cancel{Side: trading.Buy}})
	f("a swept order with a nonce", Record{Kind: KindSwitchCancel, Cancel: Cancel{Side: trading.Buy,
		Nonce: 1, Reason: trading.CancelledSwitch}})
}
