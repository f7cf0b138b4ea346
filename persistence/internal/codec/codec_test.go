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

func TestRowsRoundTripAndTruncatedOnesAreCorrupt(t *testing.T) {
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
	})
}

func TestOrderInstructionsAreCheckedOnRead(t *testing.T) {
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

func TestDownloadDetectsEveryDamage(t *testing.T) {
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

// A journal's batches follow each other, from the reader's position to the journal's end.
func TestChainHasNoGap(t *testing.T) {
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
