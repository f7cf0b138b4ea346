package codec

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
)

func drawBalance(t *rapid.T, name string) money.Balance {
	return money.BalanceFromBits(rapid.Uint64().Draw(t, name), rapid.Uint64().Draw(t, name))
}

// rowCase is one kind of row: drawn, written, and a way to read it back into a comparable value.
type rowCase struct {
	row    []byte
	value  any
	decode func([]byte) (any, error)
}

func drawRow(t *rapid.T) rowCase {
	return rapid.SampledFrom([]func(*rapid.T) rowCase{drawTrade, drawOrder, drawWithdrawal,
		drawCandle, drawAction, drawDeposit}).Draw(t, "kind")(t)
}

func drawID(t *rapid.T) uint64 { return rapid.Uint64Range(1, MaxID).Draw(t, "id") }

func drawSide(t *rapid.T) trading.Side {
	return trading.Side(rapid.IntRange(1, 2).Draw(t, "side"))
}

func drawAmount(t *rapid.T) money.Amount {
	return money.Amount(rapid.Int64Range(0, 1<<63-1).Draw(t, "amount"))
}

func drawPrice(t *rapid.T, name string) money.Price {
	return money.Price(rapid.Int64Range(0, 1<<63-1).Draw(t, name))
}

func drawText(t *rapid.T) string {
	return rapid.StringN(0, MaxClientID, MaxClientID).Draw(t, "text")
}

func drawTrade(t *rapid.T) rowCase {
	id := drawID(t)
	v := persistence.Trade{
		ID: id, Pair: rapid.Uint16().Draw(t, "pair"), TakerSide: drawSide(t),
		Price: drawPrice(t, "price"), Amount: drawAmount(t),
		TimeUs: rapid.Int64().Draw(t, "time"), Taker: rapid.Uint32().Draw(t, "taker"),
		Maker: rapid.Uint32().Draw(t, "maker"), TakerOrder: id / 2, MakerOrder: id / 3,
	}
	if rapid.Bool().Draw(t, "fees") {
		v.TakerFee, v.MakerFee = drawBalance(t, "taker fee"), drawBalance(t, "maker fee")
	}
	return rowCase{AppendTrade(nil, &v), v, func(b []byte) (any, error) {
		var got persistence.Trade
		err := DecodeTrade(b, id, &got)
		return got, err
	}}
}

func drawOrder(t *rapid.T) rowCase {
	amount := drawAmount(t)
	v := persistence.Order{
		ID: drawID(t), Account: rapid.Uint32().Draw(t, "account"),
		Pair: rapid.Uint16().Draw(t, "pair"), Side: drawSide(t),
		Status: uint8(rapid.IntRange(2, 3).Draw(t, "status")),
		Price:  drawPrice(t, "price"), Amount: amount, Remaining: amount / 2,
		TimeUs: rapid.Int64().Draw(t, "time"), ClosedUs: rapid.Int64().Draw(t, "closed"),
		ClosedSeq: rapid.Uint64Range(0, MaxID).Draw(t, "sequence"), ClientID: drawText(t),
		Instructed: drawInstructed(t),
	}
	return rowCase{AppendOrder(nil, &v), v, func(b []byte) (any, error) {
		var got persistence.Order
		err := DecodeOrder(b, v.Account, v.ID, &got)
		return got, err
	}}
}

// drawInstructed draws the instructions of an order: none, some or many.
func drawInstructed(t *rapid.T) trading.Packed {
	if rapid.Bool().Draw(t, "plain") {
		return ""
	}
	x := trading.Instructed{Instructions: trading.Instructions{PostOnly: true,
		Asked:     drawPrice(t, "asked"),
		Cancelled: trading.Reason(rapid.Uint8Range(0, 11).Draw(t, "reason"))},
		Value: drawBalance(t, "value")}
	for range rapid.SampledFrom([]int{0, 2, trading.KeptPrevented}).Draw(t, "prevented") {
		x.Prevented = append(x.Prevented, trading.Prevented{Order: drawID(t),
			Amount: drawAmount(t)})
	}
	if rapid.Bool().Draw(t, "stop") {
		x.Trigger = trading.Trigger{Price: 1 + drawPrice(t, "trigger")/2, When: trading.Fall}
	}
	return x.Pack()
}

func drawWithdrawal(t *rapid.T) rowCase {
	v := persistence.Withdrawal{
		ID: drawID(t), Account: rapid.Uint32().Draw(t, "account"),
		Currency: rapid.Uint16().Draw(t, "currency"), Amount: drawAmount(t),
		Status: uint8(rapid.IntRange(0, 255).Draw(t, "status")),
		TimeUs: rapid.Int64().Draw(t, "time"), ClosedUs: rapid.Int64().Draw(t, "closed"),
		ClosedSeq: rapid.Uint64Range(0, MaxID).Draw(t, "sequence"), Address: drawText(t),
		Details:  rapid.StringN(0, maxDetails, maxDetails).Draw(t, "details"),
		ClientID: drawText(t),
	}
	return rowCase{AppendWithdrawal(nil, &v), v, func(b []byte) (any, error) {
		var got persistence.Withdrawal
		err := DecodeWithdrawal(b, v.ID, &got)
		return got, err
	}}
}

func drawCandle(t *rapid.T) rowCase {
	id := drawID(t)
	v := persistence.Candle{
		Pair: rapid.Uint16().Draw(t, "pair"), Frame: rapid.Uint8().Draw(t, "frame"),
		Time: int64(id), Open: drawPrice(t, "open"), High: drawPrice(t, "high"),
		Low: drawPrice(t, "low"), Close: drawPrice(t, "close"),
		Volume: money.TotalFromBits(rapid.Uint64().Draw(t, "volume"),
			rapid.Uint64().Draw(t, "volume's low half")),
	}
	return rowCase{AppendCandle(nil, &v), v, func(b []byte) (any, error) {
		var got persistence.Candle
		err := DecodeCandle(b, v.Pair, v.Frame, id, &got)
		return got, err
	}}
}

func drawAction(t *rapid.T) rowCase {
	v := persistence.Action{Seq: drawID(t), TimeUs: rapid.Int64().Draw(t, "time"),
		Operator: drawText(t), What: rapid.StringN(0, 200, maxWhat).Draw(t, "what")}
	return rowCase{AppendAction(nil, &v), v, func(b []byte) (any, error) {
		var got persistence.Action
		err := DecodeAction(b, v.Seq, &got)
		return got, err
	}}
}

func drawDeposit(t *rapid.T) rowCase {
	v := persistence.Deposit{ID: drawID(t), Account: rapid.Uint32().Draw(t, "account"),
		Currency: rapid.Uint16().Draw(t, "currency"), Amount: drawAmount(t),
		TimeUs: rapid.Int64().Draw(t, "time"), Reference: drawText(t)}
	return rowCase{AppendDeposit(nil, &v), v, func(b []byte) (any, error) {
		var got persistence.Deposit
		err := DecodeDeposit(b, v.Account, v.ID, &got)
		return got, err
	}}
}

func TestRowsComeBackAndCutOnesAreCorrupt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawRow(t)
		got, err := c.decode(c.row)
		if err != nil || got != c.value {
			t.Fatalf("%+v came back as %+v, %v", c.value, got, err)
		}
		cut := c.row[:rapid.IntRange(0, len(c.row)-1).Draw(t, "cut")]
		if _, err := c.decode(cut); !errors.Is(err, persistence.ErrCorrupt) {
			t.Fatalf("%d of %d bytes: error is %v", len(cut), len(c.row), err)
		}
		if _, err := c.decode(append(bytes.Clone(c.row), 0)); !errors.Is(err,
			persistence.ErrCorrupt) {
			t.Fatalf("a byte more: error is %v", err)
		}
		other := bytes.Clone(c.row)
		other[0] = versionMore + 1
		if _, err := c.decode(other); !errors.Is(err, persistence.ErrCorrupt) {
			t.Fatalf("an unknown version: error is %v", err)
		}
	})
}

func TestAnOrdersInstructionsAreCheckedAsItsRowIsRead(t *testing.T) {
	o := persistence.Order{ID: 7, Account: 3, Side: trading.Buy, Status: trading.StatusDone}
	for _, wrong := range []trading.Packed{"\x00\x03\x05\x00\x00", "\xff\xff\x01"} {
		o.Instructed = wrong
		var got persistence.Order
		if err := DecodeOrder(AppendOrder(nil, &o), 3, 7, &got); !errors.Is(err,
			persistence.ErrCorrupt) {
			t.Errorf("instructions %x are read: %v", string(wrong), err)
		}
		w := persistence.Writes{Orders: []persistence.Order{o}}
		if err := CheckWrites(1, 2, &w); !errors.Is(err, persistence.ErrInvalid) {
			t.Errorf("instructions %x are written: %v", string(wrong), err)
		}
	}
}

func TestAnyBytesAreARowOrCorrupt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "bytes")
		if len(b) > 0 && rapid.Bool().Draw(t, "right version") {
			b[0] = rapid.SampledFrom([]byte{Version, versionMore}).Draw(t, "version")
		}
		var tr persistence.Trade
		var o persistence.Order
		var p persistence.Deposit
		var w persistence.Wallet
		var d persistence.Withdrawal
		var c persistence.Candle
		var a persistence.Action
		TradeSide(b)
		TradeMatches(b, &persistence.TradeQuery{Account: 1, Pair: 1, TakerSide: 1, MySide: 1})
		OrderMatches(b, &persistence.OrderQuery{Side: 1, Status: 2, MaxSeq: 3})
		for _, err := range []error{DecodeTrade(b, 1, &tr), DecodeOrder(b, 1, 1, &o),
			DecodeDeposit(b, 1, 1, &p), DecodeWallet(b, 1, &w),
			DecodeWithdrawal(b, 1, &d), DecodeCandle(b, 1, 1, 1, &c), DecodeAction(b, 1, &a)} {
			if err != nil && !errors.Is(err, persistence.ErrCorrupt) {
				t.Fatal(err)
			}
		}
	})
}

func TestTheIndexOfAnOrderDecidesLikeItsRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := persistence.Order{
			ID: 1, Side: trading.Side(rapid.IntRange(1, 2).Draw(t, "side")),
			Status:    uint8(rapid.IntRange(2, 3).Draw(t, "status")),
			ClosedSeq: rapid.Uint64Range(0, 300).Draw(t, "sequence"), ClientID: "x",
			Instructed: drawInstructed(t),
		}
		q := persistence.OrderQuery{
			Side:   trading.Side(rapid.IntRange(0, 2).Draw(t, "want side")),
			Status: uint8(rapid.IntRange(0, 3).Draw(t, "want status")),
			MaxSeq: rapid.Uint64Range(0, 300).Draw(t, "up to"),
		}
		want := (q.Side == 0 || q.Side == o.Side) && (q.Status == 0 || q.Status == o.Status) &&
			(q.MaxSeq == 0 || o.ClosedSeq <= q.MaxSeq)
		row := AppendOrder(nil, &o)
		if got := OrderMatches(row, &q); got != want {
			t.Fatalf("the row of %+v under %+v: %v", o, q, got)
		}
	})
}

func TestTheRowAndTheMarkOfATradeDecideLikeTheTrade(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := func(name string, low, high int) int {
			return rapid.IntRange(low, high).Draw(t, name)
		}
		me := uint32(some("account", 1, 3))
		tr := persistence.Trade{
			ID: 1, Pair: uint16(some("pair", 1, 2) * some("by", 1, 30_000)),
			TakerSide: trading.Side(some("side", 1, 2)),
			Price:     money.Price(some("price", 0, 1e9)),
			Amount:    money.Amount(some("amount", 0, 1e9)), TimeUs: rapid.Int64().Draw(t, "time"),
			Taker: me, Maker: uint32(some("other", 1, 3)),
		}
		if rapid.Bool().Draw(t, "maker") {
			tr.Taker, tr.Maker = tr.Maker, tr.Taker
		}
		q := persistence.TradeQuery{Account: me, TakerSide: trading.Side(some("want side", 0, 2)),
			MySide: trading.Side(some("want mine", 0, 2))}
		if rapid.Bool().Draw(t, "in pair") {
			q.Pair = tr.Pair + uint16(some("another", 0, 1))
		}
		mine := tr.TakerSide
		if tr.Taker != me {
			mine = mine.Opposite()
		}
		want := (q.Pair == 0 || tr.Pair == q.Pair) &&
			(q.TakerSide == 0 || tr.TakerSide == q.TakerSide) && (q.MySide == 0 || mine == q.MySide)
		if got := TradeMatches(AppendTrade(nil, &tr), &q); got != want {
			t.Fatalf("the row of %+v under %+v: %v", tr, q, got)
		}
		if got := MarkMatches(string(AppendMark(nil, At("marks"), &tr, me)), &q); got != want {
			t.Fatalf("the mark of %+v under %+v: %v", tr, q, got)
		}
	})
}

func TestASnapshotsNameComesBack(t *testing.T) {
	s := NewSnapshot(12, 3)
	s.Chunks, s.Size, s.CRC = 4, 1<<40, 0xabc
	got, err := ParseSnapshot(s.String())
	if err != nil || got != s {
		t.Fatalf("%v came back as %v, %v", s, got, err)
	}
	for _, text := range []string{"", "1", "1.2.x", "1.2.x:1:2", s.String() + " ",
		s.String() + ":1", "-1.2.x:1:2:00000abc", "1.2.x:1:2:abc"} {
		if _, err := ParseSnapshot(text); !errors.Is(err, persistence.ErrCorrupt) {
			t.Errorf("%q: error is %v", text, err)
		}
	}
}

func TestDownloadFindsEveryDamage(t *testing.T) {
	image := bytes.Repeat([]byte("0123456789"), 80_000)
	var chunks [][]byte
	s := NewSnapshot(1, 1)
	if err := s.Upload(iotest.HalfReader(bytes.NewReader(image)),
		func(i uint32, chunk []byte) error {
			chunks = append(chunks, bytes.Clone(chunk))
			return nil
		}); err != nil {
		t.Fatal(err)
	}
	load := func(s Snapshot, chunks [][]byte, kept bool) ([]byte, error) {
		r := s.Download(context.Background(), func(_ context.Context, i uint32) ([]byte, error) {
			if int(i) >= len(chunks) || chunks[i] == nil {
				return nil, ErrNoChunk
			}
			return chunks[i], nil
		}, func(context.Context) (bool, error) { return kept, nil })
		defer r.Close()
		return io.ReadAll(r)
	}
	if got, err := load(s, chunks, true); err != nil || !bytes.Equal(got, image) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	f := func(what string, s Snapshot, chunks [][]byte, kept bool, want error) {
		t.Helper()
		if _, err := load(s, chunks, kept); !errors.Is(err, want) {
			t.Errorf("%s: error is %v, want %v", what, err, want)
		}
	}
	for i := range chunks {
		bad := append([][]byte(nil), chunks...)
		bad[i] = bytes.Clone(bad[i])
		bad[i][len(bad[i])/2] ^= 1
		f("a flipped bit", s, bad, true, persistence.ErrCorrupt)
		bad[i] = nil
		f("a missing chunk", s, bad, true, persistence.ErrCorrupt)
		f("a missing chunk of a replaced image", s, bad, false, persistence.ErrNoSnapshot)
	}
	f("swapped chunks", s, [][]byte{chunks[1], chunks[0], chunks[2], chunks[3]}, true,
		persistence.ErrCorrupt)
	short := s
	short.Chunks--
	f("a chunk less", short, chunks, true, persistence.ErrCorrupt)
	f("an empty chunk", s, append([][]byte{binary.BigEndian.AppendUint32(nil, 0)}, chunks[1:]...),
		true, persistence.ErrCorrupt)
}

func TestCandleTimesAreTheQuerys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		edges := rapid.SampledFrom([]int64{-1 << 63, -1, 0, 1, 60, MaxID, MaxID + 1, 1<<63 - 1})
		times := rapid.OneOf(edges, rapid.Int64Range(-5, 100))
		q := persistence.CandleQuery{Since: times.Draw(t, "since"), Until: times.Draw(t, "until")}
		time := rapid.OneOf(rapid.SampledFrom([]int64{0, 1, 60, MaxID}),
			rapid.Int64Range(0, 100)).Draw(t, "time")
		want := time >= q.Since && (q.Until == 0 || time <= q.Until)
		since, before, any := CandleTimes(&q)
		got := any && uint64(time) >= since && (before == 0 || uint64(time) < before)
		if got != want {
			t.Fatalf("%+v and time %d: %v, want %v (%d, %d, %v)", q, time, got, want, since, before,
				any)
		}
	})
}

// A journal's batches follow on each other, from where the reader is to where the journal ends.
func TestAChainHasNoGap(t *testing.T) {
	for _, c := range []struct {
		after, end uint64
		batches    [][2]uint64
		whole      bool
	}{
		{0, 3, [][2]uint64{{0, 1}, {1, 3}}, true},
		{2, 3, [][2]uint64{{1, 3}}, true},
		{0, 3, [][2]uint64{{0, 1}, {2, 3}}, false},
		{0, 3, [][2]uint64{{0, 1}, {0, 3}}, false},
		{0, 3, [][2]uint64{{1, 3}}, false},
		{0, 3, [][2]uint64{{0, 1}, {1, 1}, {1, 3}}, false},
		{0, 3, [][2]uint64{{0, 1}}, false},
		{0, 3, nil, false},
	} {
		chain := Chain{After: c.after, End: c.end}
		var err error
		for _, b := range c.batches {
			batch := []byte("a batch")
			err = errors.Join(err, chain.Next(b[0], b[1], Digest(batch), batch))
		}
		if err = errors.Join(err, chain.Done()); (err == nil) != c.whole ||
			err != nil && !errors.Is(err, persistence.ErrCorrupt) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
