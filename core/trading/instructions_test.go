package trading

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"exchange/core/money"
	"exchange/core/wire"
)

func decode(x interface{ Read(r *wire.Reader) }, b []byte) (rest []byte, ok bool) {
	r := wire.Read(b)
	x.Read(&r)
	return r.Rest(), !r.Bad()
}

func positive(t *rapid.T, name string) int64 {
	return rapid.OneOf(rapid.Int64Range(1, math.MaxInt64), rapid.Int64Range(1, 300)).Draw(t, name)
}

func drawInstructions(t *rapid.T) Instructions {
	set := rapid.Bool()
	i := Instructions{Market: set.Draw(t, "market"), IOC: set.Draw(t, "ioc"),
		FOK: set.Draw(t, "fok"), PostOnly: set.Draw(t, "post only"),
		SelfTrade:    SelfTrade(rapid.Uint8Range(0, 3).Draw(t, "self-trade")),
		SelfTradeOwn: set.Draw(t, "own"), Derived: set.Draw(t, "derived"),
		Cancelled: Reason(rapid.Uint8Range(0, 11).Draw(t, "reason"))}
	if set.Draw(t, "gtd") {
		i.ExpireUs = positive(t, "end")
	}
	if set.Draw(t, "slide") {
		i.Asked = money.Price(positive(t, "asked"))
	}
	if set.Draw(t, "iceberg") {
		i.Display = money.Amount(positive(t, "display"))
	}
	if set.Draw(t, "by a sum") {
		i.Quote = money.Amount(positive(t, "sum"))
	}
	if set.Draw(t, "oco") {
		i.OCO = OCO{money.Price(positive(t, "trigger")), money.Price(positive(t, "price") - 1)}
	}
	before := uint32(0)
	for range rapid.IntRange(0, 4).Draw(t, "prevented") {
		before = rapid.Uint32Range(before, math.MaxUint32).Draw(t, "before")
		i.Prevented = append(i.Prevented, Prevented{Before: before,
			Order: rapid.Uint64().Draw(t, "order"), Cancel: rapid.Uint64().Draw(t, "cancel"),
			Price:  money.Price(positive(t, "price") - 1),
			Amount: money.Amount(positive(t, "amount") - 1)})
	}
	return i
}

func same(a, b *Instructions) bool {
	c, d := *a, *b
	c.Prevented, d.Prevented = nil, nil
	return reflect.DeepEqual(c, d) && slices.Equal(a.Prevented, b.Prevented)
}

func TestInstructionsRoundTripAlsoIntoUsedOnes(t *testing.T) {
	var used Instructions
	rapid.Check(t, func(t *rapid.T) {
		i := drawInstructions(t)
		b := append(i.Append([]byte("before")), "after"...)
		rest, ok := decode(&used, b[len("before"):])
		if !ok || string(rest) != "after" || !same(&used, &i) {
			t.Fatalf("%+v came back as %+v, with %q after it, %v", i, used, rest, ok)
		}
		whole := i.Append(nil)
		for n := range whole {
			if _, ok := decode(&used, whole[:n:n]); ok {
				t.Fatalf("the first %d of %d bytes are read", n, len(whole))
			}
		}
	})
}

func drawInstructed(t *rapid.T) Instructed {
	x := Instructed{Instructions: drawInstructions(t), Triggered: rapid.Bool().Draw(t, "triggered"),
		Value: money.BalanceFromBits(rapid.Uint64().Draw(t, "high"), rapid.Uint64().Draw(t, "low"))}
	if rapid.Bool().Draw(t, "trigger") {
		x.Trigger = Trigger{money.Price(positive(t, "trigger price")),
			Direction(rapid.Uint8Range(1, 2).Draw(t, "direction"))}
	}
	return x
}

func sameInstructed(a, b *Instructed) bool {
	return same(&a.Instructions, &b.Instructions) && a.Trigger == b.Trigger &&
		a.Triggered == b.Triggered && a.Value == b.Value
}

func TestPackedInstructionsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawInstructed(t)
		p := x.Pack()
		if got, ok := p.Open(); !ok || !sameInstructed(&got, &x) {
			t.Fatalf("%+v came back as %+v, %v", x, got, ok)
		}
		for n := range len(p) {
			if _, ok := p[:n].Open(); ok && n > 0 {
				t.Fatalf("the first %d of %d bytes are read", n, len(p))
			}
		}
		if _, ok := (p + "x").Open(); ok {
			t.Fatal("a byte more is read")
		}
	})
	if x, ok := Packed("").Open(); !ok || !sameInstructed(&x, new(Instructed)) {
		t.Errorf("none are %+v", x)
	}
}

func TestTheFirstPreventedOrdersAreKept(t *testing.T) {
	x := Instructed{Instructions: everything(), Trigger: Trigger{math.MaxInt64, Fall},
		Triggered: true, Value: money.BalanceFromBits(math.MaxUint64, math.MaxUint64)}
	x.Prevented = nil
	for k := range uint64(KeptPrevented + 1) {
		x.Prevented = append(x.Prevented, Prevented{Before: math.MaxUint32,
			Order: math.MaxUint64 - k, Cancel: math.MaxUint64, Price: math.MaxInt64,
			Amount: math.MaxInt64})
	}
	p := x.Pack()
	got, ok := p.Open()
	if !ok || !slices.Equal(got.Prevented, x.Prevented[:KeptPrevented]) || len(p) > maxPacked {
		t.Errorf("%d of %d prevented orders come back, in %d bytes: %v", len(got.Prevented),
			len(x.Prevented), len(p), ok)
	}
	if _, ok := Packed(x.Append(nil)).Open(); ok {
		t.Error("more prevented orders are read")
	}
}

func TestTriggersHaveOneForm(t *testing.T) {
	f := func(what string, b ...byte) {
		t.Helper()
		if x, ok := Packed(b).Open(); ok {
			t.Errorf("%s is read as %+v", what, x)
		}
	}
	f("a trigger without a price", 0, 1, 0, 0, 0)
	f("both directions", 0, 3, 5, 0, 0)
	f("an unknown flag", 0, 8, 0, 0)
	for _, wrong := range []Trigger{{Price: 1}, {When: Rise}, {Price: -1, When: Rise},
		{Price: 1, When: 3}} {
		func() {
			defer func() {
				if p, _ := recover().(string); !strings.HasPrefix(p, "BUG: ") {
					t.Errorf("%+v: panic %q", wrong, p)
				}
			}()
			(&Instructed{Trigger: wrong}).Pack()
		}()
	}
}

// everything has all instructions set.
func everything() Instructions {
	return Instructions{Market: true, IOC: true, FOK: true, PostOnly: true, ExpireUs: 300,
		Asked: 5, Display: 6, Quote: 700, SelfTrade: SelfTradeCancelBoth,
		Prevented: []Prevented{{Before: 0, Order: 8, Cancel: 9, Price: 10, Amount: 11},
			{Before: 1, Order: 12, Cancel: 13, Price: 14, Amount: 15}},
		OCO: OCO{Trigger: 16, Price: 0}, Cancelled: CancelledDisconnect, Derived: true}
}

// Journals, histories and images hold these bytes permanently.
func TestTheStoredInstructionsAreStillTheSame(t *testing.T) {
	f := func(i Instructions, want string) {
		t.Helper()
		if got := hex.EncodeToString(i.Append(nil)); got != want {
			t.Errorf("%+v is written as\n%s, stored are\n%s", i, got, want)
		}
		b, err := hex.DecodeString(want)
		var back Instructions
		if rest, ok := decode(&back, b); err != nil || !ok || len(rest) > 0 || !same(&back, &i) {
			t.Errorf("%s is read as %+v", want, back)
		}
	}
	f(Instructions{}, "00")
	f(Instructions{Market: true, IOC: true, Cancelled: CancelledIOC}, "8310"+"01")
	f(everything(), "ff3f"+"ac02"+"05"+"06"+"bc05"+"03"+"02"+"0008090a0b"+"010c0d0e0f"+"1000"+"0b")
}

func TestThePackedFormIsStillTheSame(t *testing.T) {
	f := func(x Instructed, want string) {
		t.Helper()
		if got := hex.EncodeToString([]byte(x.Pack())); got != want {
			t.Errorf("%+v is packed as %s, stored are %s", x, got, want)
		}
	}
	f(Instructed{Trigger: Trigger{300, Fall}, Value: money.BalanceFromBits(1, 2)}, "0002ac020201")
	f(Instructed{Instructions: Instructions{PostOnly: true}, Triggered: true}, "10"+"04"+"0000")
}

func TestInstructionsHaveOneForm(t *testing.T) {
	f := func(what string, vs ...uint64) {
		t.Helper()
		var b []byte
		for _, v := range vs {
			b = binary.AppendUvarint(b, v)
		}
		var i Instructions
		if _, ok := decode(&i, b); ok {
			t.Errorf("%s is read as %+v", what, i)
		}
	}
	f("an unknown instruction", allInstructions+1)
	f("an end of 0", hasExpire, 0)
	f("an end of 64 bits", hasExpire, 1<<63)
	f("a price asked of 0", hasAsked, 0)
	f("a display of 0", hasDisplay, 0)
	f("a sum of 0", hasQuote, 0)
	f("the mode none", hasSelfTrade, 0)
	f("an unknown mode", hasSelfTrade, 8)
	f("no prevented order", hasPrevented, 0)
	f("too many prevented orders", hasPrevented, maxPrevented+1)
	f("a prevented order that is not there", hasPrevented, 2, 0, 1, 2, 3, 4)
	f("prevented orders out of order", hasPrevented, 2, 1, 1, 2, 3, 4, 0, 1, 2, 3, 4)
	f("a prevented amount of 64 bits", hasPrevented, 1, 1, 1, 2, 3, 1<<63)
	f("an OCO without a trigger", hasOCO, 0, 5)
	f("no reason", hasCancelled, 0)
	f("an unknown reason", hasCancelled, uint64(CancelledDisconnect)+1)
}

func TestImpossibleInstructionsAreNotWritten(t *testing.T) {
	f := func(what string, i Instructions) {
		t.Helper()
		defer func() {
			if p, _ := recover().(string); !strings.HasPrefix(p, "BUG: ") {
				t.Errorf("%s: panic %q", what, p)
			}
		}()
		i.Append(nil)
	}
	f("a negative end", Instructions{ExpireUs: -1})
	f("a negative price", Instructions{Asked: -1})
	f("a negative display", Instructions{Display: -1})
	f("a negative sum", Instructions{Quote: -1})
	f("an unknown mode", Instructions{SelfTrade: 4})
	f("an OCO without a trigger", Instructions{OCO: OCO{Price: 1}})
	f("an OCO at a negative price", Instructions{OCO: OCO{Trigger: 1, Price: -1}})
	f("an unknown reason", Instructions{Cancelled: 12})
	f("too many prevented orders", Instructions{Prevented: make([]Prevented, maxPrevented+1)})
	f("a negative amount", Instructions{Prevented: []Prevented{{Amount: -1}}})
	f("prevented orders out of order", Instructions{Prevented: []Prevented{{Before: 1}, {}}})
}

func TestAHugeCountOfPreventedOrdersTakesNoMemory(t *testing.T) {
	b := binary.AppendUvarint(binary.AppendUvarint(nil, hasPrevented), maxPrevented)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		var i Instructions
		if _, ok := decode(&i, b); ok {
			t.Fatal("accepted")
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / 100; each > 10<<10 {
		t.Errorf("%d bytes for a refused list", each)
	}
}

func TestInstructionsAllocateNothing(t *testing.T) {
	i := everything()
	b := i.Append(nil)
	var back Instructions
	r := wire.Read(b)
	back.Read(&r)
	if n := testing.AllocsPerRun(100, func() {
		b = i.Append(b[:0])
		r = wire.Read(b)
		back.Read(&r)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestEveryReasonHasItsOwnName(t *testing.T) {
	seen := map[string]bool{}
	for r := CancelledIOC; r <= CancelledDisconnect; r++ {
		if name := r.String(); name == "" || seen[name] {
			t.Errorf("reason %d is named %q", r, name)
		}
		seen[r.String()] = true
	}
	if none, beyond := Reason(0).String(), (CancelledDisconnect + 1).String(); none+beyond != "" {
		t.Errorf("no reason is named %q, one beyond the last %q", none, beyond)
	}
}

// Any bytes are damage, or packed instructions that repack to the same bytes.
func FuzzPacked(f *testing.F) {
	for _, x := range []Instructed{{}, {Instructions: everything(), Triggered: true,
		Trigger: Trigger{7, Fall}, Value: money.BalanceFromBits(1, 2)},
		{Trigger: Trigger{8, Rise}}} {
		f.Add(string(x.Pack()))
	}
	f.Fuzz(func(t *testing.T, text string) {
		x, ok := Packed(text).Open()
		if !ok {
			return
		}
		again, ok := x.Pack().Open()
		if !ok || !sameInstructed(&again, &x) {
			t.Fatalf("%+v came back as %+v", x, again)
		}
	})
}

// Any bytes are damage, or instructions that are equal after writing and reading again.
func FuzzInstructions(f *testing.F) {
	for _, i := range []Instructions{{}, everything(), {PostOnly: true, Asked: 7},
		{OCO: OCO{Trigger: 1, Price: 2}}} {
		b := i.Append(nil)
		f.Add(b)
		f.Add(b[:len(b)-1])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var i, again Instructions
		rest, ok := decode(&i, b)
		if !ok {
			return
		}
		written := i.Append(nil)
		if len(written) > len(b)-len(rest) {
			t.Fatalf("%x is written as %x, which is longer", b, written)
		}
		if rest, ok = decode(&again, written); !ok || len(rest) > 0 || !same(&again, &i) {
			t.Fatalf("%+v came back as %+v", i, again)
		}
	})
}
