package event

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"exchange/core/money"
	"exchange/core/trading"
)

var kinds = []Kind{KindCurrency, KindPair, KindAccount, KindKey, KindKeyRevoked, KindDeposit,
	KindOrder, KindCancel, KindRefusal,
	KindWithdrawal, KindWithdrawalStatus, KindCodeRefused, KindMailed, KindHalt, KindFreeze,
	KindMaintenance, KindFees, KindHistory, KindStop, KindTriggered, KindAmended, KindExpired,
	KindSwitch, KindSettings, KindSwitchCancel, KindInstructed, KindNote, KindAdjusted,
	KindEmail, KindAccountClosed}

func drawText(t *rapid.T, name string) string {
	return string(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, name))
}

func drawAmount(t *rapid.T, name string) money.Amount {
	return money.Amount(rapid.OneOf(rapid.Int64Range(0, math.MaxInt64),
		rapid.Int64Range(0, 300)).Draw(t, name))
}

func drawBalance(t *rapid.T, name string) money.Balance {
	return money.BalanceFromBits(rapid.Uint64().Draw(t, name+" high"),
		rapid.Uint64().Draw(t, name+" low"))
}

func drawClientID(t *rapid.T) ClientID {
	if rapid.Bool().Draw(t, "no client order id") {
		return ClientID{}
	}
	id, err := NewClientID(rapid.StringMatching(`[A-Za-z0-9_-]{0,36}`).Draw(t, "client order id"))
	if err != nil {
		return ClientID{}
	}
	return id
}

func drawSide(t *rapid.T) trading.Side {
	return rapid.SampledFrom([]trading.Side{trading.Buy, trading.Sell}).Draw(t, "side")
}

func drawKey(t *rapid.T) Key {
	k := Key{Number: rapid.Uint32().Draw(t, "number"), Account: rapid.Uint32().Draw(t, "account"),
		Key: drawText(t, "key"), Permissions: rapid.Byte().Draw(t, "permissions"),
		SealedBy: rapid.Uint64().Draw(t, "sealed by")}
	for range rapid.IntRange(0, 3).Draw(t, "prefixes") {
		k.Allow = append(k.Allow, drawText(t, "prefix"))
	}
	if sealed := drawText(t, "sealed"); sealed != "" {
		k.Sealed = []byte(sealed)
	}
	return k
}

func drawOrder(t *rapid.T) Order {
	u32, u64 := rapid.Uint32(), rapid.Uint64()
	o := Order{ID: u64.Draw(t, "id"), Account: u32.Draw(t, "account"), Key: u32.Draw(t, "key"),
		Nonce: u64.Draw(t, "nonce"), Side: drawSide(t),
		RestCancelled: rapid.Bool().Draw(t, "cut"), Price: money.Price(drawAmount(t, "price")),
		Amount: drawAmount(t, "amount"), Remaining: drawAmount(t, "remaining"),
		FeeAccount: u32.Draw(t, "fee account"), ClientID: drawClientID(t)}
	for range rapid.IntRange(0, 5).Draw(t, "trades") {
		o.Trades = append(o.Trades, Trade{ID: u64.Draw(t, "trade"), Maker: u64.Draw(t, "maker"),
			MakerAccount: u32.Draw(t, "maker account"), Price: money.Price(drawAmount(t, "price")),
			Amount: drawAmount(t, "amount"), MakerRemaining: drawAmount(t, "left"),
			TakerFee: drawBalance(t, "taker fee"), MakerFee: drawBalance(t, "maker fee")})
	}
	return o
}

func drawCancel(t *rapid.T) Cancel {
	u32, u64 := rapid.Uint32(), rapid.Uint64()
	return Cancel{ID: u64.Draw(t, "id"), Order: u64.Draw(t, "order"),
		Account: u32.Draw(t, "account"), Key: u32.Draw(t, "key"), Nonce: u64.Draw(t, "nonce"),
		Side: drawSide(t), Price: money.Price(drawAmount(t, "price")),
		Remaining: drawAmount(t, "remaining")}
}

func drawEmail(t *rapid.T) Email {
	return Email{rapid.Uint32().Draw(t, "account"), drawText(t, "address"),
		rapid.Int64Min(0).Draw(t, "held")}
}

func drawAdjusted(t *rapid.T) Adjusted {
	return Adjusted{ID: rapid.Uint64().Draw(t, "id"), Account: rapid.Uint32().Draw(t, "account"),
		Currency: rapid.Uint16().Draw(t, "currency"), Amount: drawAmount(t, "amount"),
		Reason: drawText(t, "reason"), ClientID: drawClientID(t)}
}

func drawRecord(t *rapid.T) Record {
	u16, u32, u64 := rapid.Uint16(), rapid.Uint32(), rapid.Uint64()
	r := Record{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Pair: u16.Draw(t, "pair"),
		TimeUs: rapid.Int64().Draw(t, "time"), Operator: drawText(t, "operator")}
	switch r.Kind {
	case KindCurrency:
		r.Currency = Currency{u16.Draw(t, "number"), drawText(t, "code")}
	case KindPair:
		r.NewPair = Pair{u16.Draw(t, "number"), drawText(t, "name"), u16.Draw(t, "base"),
			u16.Draw(t, "quote")}
	case KindAccount:
		r.Account = Account{u32.Draw(t, "id"), drawText(t, "name"), drawText(t, "email")}
	case KindKey:
		r.Key = drawKey(t)
		r.Key.NonceWindow = uint16(rapid.IntRange(0, MaxParallel).Draw(t, "nonces"))
	case KindKeyRevoked:
		r.KeyRevoked = KeyRevoked{u32.Draw(t, "number"), rapid.Bool().Draw(t, "lost")}
	case KindDeposit:
		r.Deposit = Deposit{u64.Draw(t, "id"), u32.Draw(t, "account"), u16.Draw(t, "currency"),
			drawAmount(t, "amount"), drawText(t, "reference")}
	case KindOrder:
		r.Order = drawOrder(t)
	case KindCancel:
		r.Cancel = drawCancel(t)
	case KindRefusal:
		r.Refusal = Refusal{u32.Draw(t, "account"), u32.Draw(t, "key"), u64.Draw(t, "nonce"),
			rapid.Byte().Draw(t, "reason")}
	case KindWithdrawal:
		r.Withdrawal = Withdrawal{ID: u64.Draw(t, "id"), Account: u32.Draw(t, "account"),
			Key: u32.Draw(t, "key"), Nonce: u64.Draw(t, "nonce"),
			Currency: u16.Draw(t, "currency"), Amount: drawAmount(t, "amount"),
			Address: drawText(t, "address"), ClientID: drawClientID(t)}
	case KindWithdrawalStatus:
		r.WithdrawalStatus = WithdrawalStatus{u64.Draw(t, "id"), u32.Draw(t, "account"),
			u32.Draw(t, "key"), u64.Draw(t, "nonce"), u16.Draw(t, "currency"),
			drawAmount(t, "amount"),
			rapid.Byte().Draw(t, "to"), drawText(t, "details"),
			rapid.Bool().Draw(t, "despite freeze")}
	case KindCodeRefused:
		r.CodeRefused = CodeRefused{u64.Draw(t, "id"), u32.Draw(t, "account"), u32.Draw(t, "key"),
			u64.Draw(t, "nonce"), rapid.Bool().Draw(t, "expired"),
			u32.Draw(t, "tries")}
	case KindMailed:
		r.Mailed = Mailed{u64.Draw(t, "id"), drawText(t, "error")}
	case KindHalt:
		r.Halt = Halt{rapid.Bool().Draw(t, "halted")}
	case KindAdjusted:
		r.Adjusted = drawAdjusted(t)
	case KindFreeze:
		r.Freeze = Freeze{u32.Draw(t, "account"), rapid.Bool().Draw(t, "frozen")}
	case KindMaintenance:
		r.Maintenance = Maintenance{On: rapid.Bool().Draw(t, "on"), Message: drawText(t, "message")}
		r.Maintenance.Cancels = r.Maintenance.On && rapid.Bool().Draw(t, "cancels")
	case KindFees:
		rate := rapid.Uint32Range(0, uint32(money.MaxRate))
		r.Fees = Fees{u32.Draw(t, "account"), rapid.Bool().Draw(t, "own"),
			money.Rate(rate.Draw(t, "maker")), money.Rate(rate.Draw(t, "taker"))}
	case KindHistory:
		copy(r.History[:], rapid.SliceOfN(rapid.Byte(), len(r.History), len(r.History)).Draw(t,
			"history"))
	case KindNote:
		r.Note = drawText(t, "note") + "."
	default:
		drawSpecial(t, &r)
	}
	return r
}

func TestEveryRecordRoundTripsAlsoIntoAUsedRecord(t *testing.T) {
	var used Record // still carries values of earlier records
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecord(t)
		b := append(r.Append([]byte("before")), "after"...)
		var fresh Record
		for _, into := range []*Record{&fresh, &used} {
			rest, err := into.Decode(b[len("before"):])
			if err != nil || string(rest) != "after" {
				t.Fatalf("rest %q, %v", rest, err)
			}
		}
		if !reflect.DeepEqual(fresh, r) {
			t.Fatalf("came back as %+v", fresh)
		}
		if !bytes.Equal(used.Append(nil), r.Append(nil)) {
			t.Fatalf("came back into a used record as %+v", used)
		}
		for i := range reflect.TypeFor[Record]().NumField() { // also parts that are not written
			want, got := reflect.ValueOf(fresh).Field(i), reflect.ValueOf(used).Field(i)
			if !want.IsZero() && fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
				t.Fatalf("came back into a used record as %+v, want %+v", got, want)
			}
		}
	})
}

func TestDecodedRecordsShareNoMemoryWithTheirBytes(t *testing.T) {
	for i := range golden {
		g := &golden[i]
		b := g.record.Append(nil)
		var r Record
		if _, err := r.Decode(b); err != nil {
			t.Fatal(err)
		}
		for i := range b {
			b[i] = 0xff
		}
		if !reflect.DeepEqual(r, g.record) {
			t.Errorf("%v changed with its bytes: %+v", g.record.Kind, r)
		}
	}
}

func TestBatchesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := rapid.SliceOfN(rapid.Custom(drawRecord), 0, 5).Draw(t, "records")
		epoch, prev := rapid.Uint32().Draw(t, "epoch"), rapid.Uint64().Draw(t, "prev")
		b := BeginBatch([]byte("left of an earlier batch"))
		for i := range records {
			b = records[i].Append(b)
		}
		opened, err := OpenBatch(EndBatch(b, epoch, prev, uint32(len(records))))
		if err != nil || opened.Epoch != epoch || opened.Prev != prev ||
			int(opened.Count) != len(records) {
			t.Fatalf("%+v, %v", opened, err)
		}
		rest := opened.Records
		for i := range records {
			var r Record
			if rest, err = r.Decode(rest); err != nil ||
				!reflect.DeepEqual(r, records[i]) {
				t.Fatalf("record %d is %+v, %v", i, r, err)
			}
		}
		if len(rest) != 0 {
			t.Fatalf("%d bytes are left", len(rest))
		}
	})
}

// goldenBatch holds one record of each kind.
func goldenBatch() []byte {
	b := BeginBatch(nil)
	for i := range golden {
		b = golden[i].record.Append(b)
	}
	return EndBatch(b, 7, 41, uint32(len(golden)))
}

func TestEveryChangeOfOneByteOfABatchIsRefused(t *testing.T) {
	b := goldenBatch()
	for i := range b {
		was := b[i]
		for change := 1; change < 256; change++ {
			b[i] = was ^ byte(change)
			if _, err := OpenBatch(b); !errors.Is(err, errDamaged) {
				t.Fatalf("byte %d changed from %02x to %02x: %v", i, was, b[i], err)
			}
		}
		b[i] = was
	}
	if _, err := OpenBatch(b); err != nil {
		t.Fatal(err)
	}
}

func TestEveryTruncationOfABatchIsRefused(t *testing.T) {
	b := goldenBatch()
	for n := range b {
		if _, err := OpenBatch(b[:n:n]); !errors.Is(err, errDamaged) {
			t.Fatalf("the first %d of %d bytes: %v", n, len(b), err)
		}
	}
}

func TestEveryTruncationOfARecordIsRefused(t *testing.T) {
	for i := range golden {
		whole := golden[i].record.Append(nil)
		for n := range whole {
			var r Record
			if _, err := r.Decode(whole[:n:n]); !errors.Is(err, errDamaged) {
				t.Fatalf("%v: the first %d of %d bytes: %v", golden[i].record.Kind, n, len(whole),
					err)
			}
			if n < recordHeader {
				continue
			}
			// The same with a matching length: the payload itself ends too early.
			cut := append([]byte(nil), whole[:n]...)
			le.PutUint32(cut[3:], uint32(n-recordHeader))
			if _, err := r.Decode(cut[:n:n]); !errors.Is(err, errDamaged) {
				t.Fatalf("%v: a payload of %d of %d bytes: %v", golden[i].record.Kind,
					n-recordHeader, len(whole)-recordHeader, err)
			}
		}
	}
}

func TestBytesLeftOverInAPayloadAreRefused(t *testing.T) {
	for i := range golden {
		b := append(golden[i].record.Append(nil), 0)
		le.PutUint32(b[3:], uint32(len(b)-recordHeader))
		var r Record
		_, err := r.Decode(b)
		if !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), "left over") {
			t.Errorf("%v with a byte too many: %v", golden[i].record.Kind, err)
		}
	}
}

func TestUnknownKindsVersionsAndFlagsAreNamed(t *testing.T) {
	for _, kind := range []Kind{0, 4, 10, 15, Kind(newestKind + 1), 127} {
		b := (&Record{Kind: KindRefusal}).Append(nil)
		b[0] = byte(kind)
		var r Record
		want := fmt.Sprintf("of kind %d and this program reads kinds 1 to %d; run the ", kind,
			newestKind)
		if _, err := r.Decode(b); err == nil || errors.Is(err, errDamaged) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("kind %d: %v", kind, err)
		}
	}
	f := func(at int, value byte, text string) {
		t.Helper()
		b := EndBatch(BeginBatch(nil), 1, 2, 0)
		b[at] = value
		body := len(b) - batchTrailer
		le.PutUint32(b[body:], crc32.Checksum(b[:body], castagnoli))
		if _, err := OpenBatch(b); err == nil || errors.Is(err, errDamaged) ||
			!strings.Contains(err.Error(), text) {
			t.Errorf("byte %d is %d: %v", at, value, err)
		}
	}
	f(0, 3, "of version 3 and this program reads version 4; run the program")
	f(0, 5, "of version 5 and this program reads version 4; run the newer program")
	f(1, 0x80, "of flags 128 and this program reads flags 0; run the newer program")
}

// payload returns a record with this payload.
func payload(kind Kind, b ...[]byte) []byte {
	p := bytes.Join(b, nil)
	head := make([]byte, recordHeader)
	head[0] = byte(kind)
	le.PutUint32(head[3:], uint32(len(p)))
	return append(head, p...)
}

func numbers(vs ...uint64) (b []byte) {
	for _, v := range vs {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

func TestNumbersAndTextsOutOfRangeAreRefused(t *testing.T) {
	f := func(what string, b []byte) {
		t.Helper()
		var r Record
		if _, err := r.Decode(b); !errors.Is(err, errDamaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	order := func(side, clientID []byte, trades ...uint64) []byte {
		return payload(KindOrder, numbers(1, 1, 1, 1), side, numbers(1, 1, 1, 0), clientID,
			numbers(trades...))
	}
	var r Record
	if _, err := r.Decode(order([]byte{1}, numbers(0), 0)); err != nil {
		t.Fatalf("the order that the cases below spoil: %v", err)
	}
	f("a currency number of 17 bits", payload(KindCurrency, numbers(1<<16, 0)))
	f("a key number of 34 bits", payload(KindKeyRevoked, numbers(1<<33)))
	f("an amount of 64 bits", payload(KindDeposit, numbers(1, 1, 1, 1<<63, 0)))
	f("a number of 65 bits", payload(KindDeposit, bytes.Repeat([]byte{0xff}, 9), []byte{2},
		numbers(1, 1, 1, 0)))
	f("a number without an end", payload(KindKeyRevoked, bytes.Repeat([]byte{0x80}, 5)))
	f("a text longer than its payload by one", payload(KindCurrency, numbers(1, 4), []byte("BTC")))
	f("a text of 2^63 bytes", payload(KindCurrency, numbers(1, 1<<63), []byte("BTC")))
	f("a text above its bound", payload(KindCurrency, numbers(1, maxText+1),
		bytes.Repeat([]byte("x"), maxText+1)))
	f("side 0", order([]byte{0}, numbers(0), 0))
	f("side 3", order([]byte{3}, numbers(0), 0))
	f("an unknown flag beside the side", order([]byte{0x41}, numbers(0), 0))
	f("a client order id of another alphabet",
		order([]byte{1}, append(numbers(2), "a b"[:2]...), 0))
	f("a client order id of 37 bytes",
		order([]byte{1}, append(numbers(37), strings.Repeat("a", 37)...), 0))
	f("one trade that is not there", order([]byte{1}, numbers(0), 1))
	f("more trades than there may be", order([]byte{1}, numbers(0), maxTrades+1))
	f("side 0 of a cancel", payload(KindCancel, numbers(1, 1, 1, 1, 1), []byte{0}, numbers(1, 1)))
}

func TestHugeCountsAndLengthsTakeNoMemory(t *testing.T) {
	const huge = math.MaxUint32
	inputs := [][]byte{
		payload(KindOrder, numbers(1, 1, 1, 1), []byte{1}, numbers(1, 1, 1, 0, 0, maxTrades, 1, 1)),
		payload(KindKey, numbers(1, 1, 0), []byte{1}, numbers(MaxAllow, 1)),
		payload(KindKey, numbers(1, 1, 0), []byte{1}, numbers(0), make([]byte, 8), numbers(huge)),
		payload(KindAccount, numbers(1, huge)),
		payload(KindAccount, numbers(1, maxText)),
	}
	long := payload(KindAccount)
	le.PutUint32(long[3:], huge)
	inputs = append(inputs, long)
	batch := EndBatch(BeginBatch(nil), 1, 1, huge)

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		for _, b := range inputs {
			var r Record
			if _, err := r.Decode(b); err == nil {
				t.Fatal("accepted")
			}
		}
		if b, err := OpenBatch(batch); err != nil || len(b.Records) != 0 {
			t.Fatal(b, err)
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / 100; each > 100<<10 {
		t.Errorf("%d bytes for some refused records", each)
	}
}

func TestUnreadableRecordsAreNotWritten(t *testing.T) {
	f := func(what string, r Record) {
		t.Helper()
		defer func() {
			if p, _ := recover().(string); !strings.HasPrefix(p, "BUG: ") {
				t.Errorf("%s: panic %q", what, p)
			}
		}()
		r.Append(nil)
	}
	sound := Order{Side: trading.Buy}
	with := func(change func(o *Order)) Record {
		o := sound
		change(&o)
		return Record{Kind: KindOrder, Order: o}
	}
	long := strings.Repeat("x", maxText+1)
	f("no kind", Record{})
	f("a long text", Record{Kind: KindAccount, Account: Account{Name: long}})
	f("a long secret", Record{Kind: KindKey, Key: Key{Sealed: []byte(long)}})
	f("many prefixes", Record{Kind: KindKey, Key: Key{Allow: make([]string, MaxAllow+1)}})
	f("a negative deposit", Record{Kind: KindDeposit, Deposit: Deposit{Amount: -1}})
	f("an order of no side", with(func(o *Order) { o.Side = 0 }))
	f("a negative price", with(func(o *Order) { o.Price = -1 }))
	f("a negative amount", with(func(o *Order) { o.Amount = -1 }))
	f("a negative rest", with(func(o *Order) { o.Remaining = -1 }))
	f("a negative trade", with(func(o *Order) { o.Trades = []Trade{{Amount: -1}} }))
	f("too many trades", with(func(o *Order) { o.Trades = make([]Trade, maxTrades+1) }))
	f("a cancel of no side", Record{Kind: KindCancel})
	f("a cancel with a negative rest",
		Record{Kind: KindCancel, Cancel: Cancel{Side: trading.Buy, Remaining: -1}})
}

func TestTheLongestTextsRoundTrip(t *testing.T) {
	long := strings.Repeat("x", maxText)
	r := Record{Kind: KindKey, Key: Key{Key: long, Allow: make([]string, MaxAllow),
		Sealed: []byte(long)}}
	var back Record
	if _, err := back.Decode(r.Append(nil)); err != nil || !reflect.DeepEqual(back.Key, r.Key) {
		t.Error(err)
	}
}

func TestClientIDs(t *testing.T) {
	f := func(text string, valid bool) {
		t.Helper()
		a, errA := NewClientID(text)
		b, errB := NewClientID([]byte(text))
		if a != b || (errA == nil) != valid || (errB == nil) != valid {
			t.Fatalf("%q: %v, %v", text, errA, errB)
		}
		if valid && (a.String() != text || string(a.Append([]byte("x"))) != "x"+text ||
			a.IsZero()) {
			t.Errorf("%q came back as %q", text, a)
		}
		if !valid && errA != ErrClientID {
			t.Errorf("%q: %v", text, errA)
		}
	}
	f("a", true)
	f("azAZ09_-", true)
	f(strings.Repeat("x", MaxClientID), true)
	f("", false)
	f(strings.Repeat("x", MaxClientID+1), false)
	for b := range 256 {
		c := byte(b)
		f("a"+string([]byte{c}), strings.ContainsRune(
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", rune(c)))
	}
	short, _ := NewClientID("ab")
	long, _ := NewClientID("abc")
	if short == long || !(ClientID{}).IsZero() || (ClientID{}).String() != "" {
		t.Error("different ids are equal, or none is not empty")
	}
}

func TestTradingRecordsAllocateNothing(t *testing.T) {
	for i := range golden {
		r := &golden[i].record
		if r.Kind != KindOrder && r.Kind != KindCancel && r.Kind != KindRefusal &&
			r.Kind < KindStop || r.Kind == KindKey || r.Kind >= KindNote {
			continue
		}
		b := r.Append(nil)
		var back Record
		back.Decode(b)
		if n := testing.AllocsPerRun(100, func() { b = r.Append(b[:0]) }); n != 0 {
			t.Errorf("writing a record of %v: %v allocations", r.Kind, n)
		}
		if n := testing.AllocsPerRun(100, func() {
			if _, err := back.Decode(b); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("reading a record of %v: %v allocations", r.Kind, n)
		}
	}
}

func clientID(s string) ClientID {
	id, err := NewClientID(s)
	if err != nil {
		panic(err)
	}
	return id
}
