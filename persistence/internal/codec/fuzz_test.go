package codec

import (
	"errors"
	"reflect"
	"testing"

	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
)

// kinds reads a row of each kind, and writes it again.
var kinds = []func(row []byte) (value any, again []byte, err error){
	func(row []byte) (any, []byte, error) {
		var v persistence.Trade
		err := DecodeTrade(row, 7, &v)
		return v, AppendTrade(nil, &v), err
	},
	func(row []byte) (any, []byte, error) {
		var v persistence.Order
		err := DecodeOrder(row, 3, 7, &v)
		return v, AppendOrder(nil, &v), err
	},
	func(row []byte) (any, []byte, error) {
		var v persistence.Deposit
		err := DecodeDeposit(row, 3, 7, &v)
		return v, AppendDeposit(nil, &v), err
	},
	func(row []byte) (any, []byte, error) {
		var v persistence.Wallet
		err := DecodeWallet(row, 3, &v)
		return v, AppendWallet(nil, &v), err
	},
	func(row []byte) (any, []byte, error) {
		var v persistence.Withdrawal
		err := DecodeWithdrawal(row, 7, &v)
		return v, AppendWithdrawal(nil, &v), err
	},
	func(row []byte) (any, []byte, error) {
		var v persistence.Candle
		err := DecodeCandle(row, 1, 2, 60, &v)
		return v, AppendCandle(nil, &v), err
	},
	func(row []byte) (any, []byte, error) {
		var v persistence.Action
		err := DecodeAction(row, 7, &v)
		return v, AppendAction(nil, &v), err
	},
}

// Any bytes are damage, or a row that survives writing and reading. No filter leaves out a damaged
// row.
func FuzzRows(f *testing.F) {
	fee := money.BalanceFromBits(1, 2)
	for i, row := range [][]byte{
		AppendTrade(nil, &persistence.Trade{TakerSide: trading.Sell, Pair: 300, Price: 5, Amount: 6,
			TimeUs: 7, Taker: 8, Maker: 9, TakerOrder: 10, MakerOrder: 11, TakerFee: fee}),
		AppendOrder(nil, &persistence.Order{Side: trading.Buy, Status: trading.StatusDone,
			Pair: 1, Price: 5, Amount: 6, Remaining: 1, TimeUs: 7, ClosedUs: 6, ClosedSeq: 9,
			ClientID: "mine"}),
		AppendDeposit(nil, &persistence.Deposit{Currency: 1, Amount: 2, TimeUs: 3,
			Reference: "paid"}),
		AppendWallet(nil, &persistence.Wallet{Name: "ann", Seq: 5,
			Holdings: []persistence.Holding{{Currency: "BTC", Balance: fee}}}),
		AppendWithdrawal(nil, &persistence.Withdrawal{Status: persistence.WithdrawalRefused,
			Amount:  5,
			Address: "there", Details: "no"}),
		AppendCandle(nil, &persistence.Candle{Open: 5, High: 9, Low: 1, Close: 4,
			Volume: money.TotalFromBits(0, 3)}),
		AppendAction(nil, &persistence.Action{TimeUs: 1, Operator: "me", What: "halt"}),
	} {
		f.Add(byte(i), row)
		f.Add(byte(i), row[:len(row)-1])
	}
	stop := trading.Instructed{Instructions: trading.Instructions{IOC: true,
		Cancelled: trading.CancelledIOC}, Trigger: trading.Trigger{Price: 9, When: trading.Rise},
		Triggered: true, Value: money.BalanceFromBits(0, 30)}
	f.Add(byte(1), AppendOrder(nil, &persistence.Order{Side: trading.Buy,
		Status: trading.StatusCancelled, Pair: 1, Price: 5, Amount: 6, Remaining: 1,
		Instructed: stop.Pack()}))
	f.Fuzz(func(t *testing.T, kind byte, row []byte) {
		read := kinds[int(kind)%len(kinds)]
		value, again, err := read(row)
		if err != nil {
			if !errors.Is(err, persistence.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if len(again) > len(row) {
			t.Fatalf("%x is written as %x, which is longer", row, again)
		}
		if same, _, err := read(again); err != nil || !reflect.DeepEqual(same, value) {
			t.Fatalf("%+v came back as %+v, %v", value, same, err)
		}
		switch v := value.(type) {
		case persistence.Trade:
			q := persistence.TradeQuery{Pair: v.Pair, TakerSide: v.TakerSide, Account: v.Taker,
				MySide: v.TakerSide}
			mark := string(AppendMark(nil, At("marks"), &v, v.Taker))
			if TradeSide(row) != v.TakerSide || !TradeMatches(row, &q) || !MarkMatches(mark, &q) {
				t.Fatalf("a query for %+v leaves it out", v)
			}
			q.Pair ^= 1 << 8
			if q.Pair != 0 && (TradeMatches(row, &q) || MarkMatches(mark, &q)) {
				t.Fatalf("a query for pair %d takes %+v", q.Pair, v)
			}
		case persistence.Order:
			q := persistence.OrderQuery{Side: v.Side, Status: v.Status, MaxSeq: v.ClosedSeq}
			if !OrderMatches(row, &q) {
				t.Fatalf("a query for %+v leaves it out", v)
			}
		}
	})
}

// A name of a snapshot has one spelling.
func FuzzParseSnapshot(f *testing.F) {
	f.Add(Snapshot{Seq: 5, Epoch: 2, Unique: "0a1b", Chunks: 3, Size: 700_000, CRC: 0xfe}.String())
	for _, s := range []string{"", "1", "1.2.x", "1.2.x:1:2", "1.2.x:3:4:0000000f",
		"1.2.x:3:4:0000000f ", "1.2.x:3:4:0000000f:1", "-1.2.x:3:4:0000000f", "1.2.x:3:4:f",
		"1.2.:3:4:0000000f", "1.2.x:3:-4:0000000f", "1.2.x 3 4 0000000f", "1.2.é:3:4:0000000f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSnapshot(text)
		if err != nil {
			if !errors.Is(err, persistence.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if s.String() != text {
			t.Fatalf("%q is %q", text, s)
		}
	})
}
