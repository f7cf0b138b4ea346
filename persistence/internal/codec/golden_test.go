package codec

import (
	"encoding/hex"
	"reflect"
	"testing"

	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
)

// goldenRows is one row of each kind, by its number among the kinds, with its stored bytes; orders
// also with a client id or instructions. Histories hold these bytes permanently: if the test fails,
// the code is wrong.
var goldenRows = []struct {
	name  string
	kind  int
	value any
	hex   string
}{
	{"trade", 0, persistence.Trade{ID: 7, TakerSide: trading.Sell, Pair: 300, Price: 5, Amount: 600,
		TimeUs: 1_700_000_000_000_001, Taker: 8, Maker: 70_000, TakerOrder: 10, MakerOrder: 11},
		"0502ac0205d8048180f9c0c1c4820308f0a2040a0b"},
	{"trade with fees", 0, persistence.Trade{ID: 7, TakerSide: trading.Buy, Pair: 1, Price: 5,
		Amount: 6, TimeUs: 1, Taker: 8, Maker: 9, TakerOrder: 10, MakerOrder: 11,
		TakerFee: money.BalanceFromBits(1, 2), MakerFee: money.BalanceFromBits(0, 3)},
		"05050105060108090a0b01020003"},
	{"order that is done", 1, persistence.Order{ID: 7, Account: 3, Side: trading.Buy,
		Status: trading.StatusDone, Pair: 300, Price: 5_000_000_000_000, Amount: 600,
		TimeUs: 1_700_000_000_000_001, ClosedUs: 1_700_000_000_000_000, ClosedSeq: 900},
		"050d8407ac0280a0e5b9c29101d804008180f9c0c1c4820301"},
	{"cancelled order with a client id", 1, persistence.Order{ID: 7, Account: 3,
		Side: trading.Sell, Status: trading.StatusCancelled, Pair: 1, Price: 5, Amount: 600,
		Remaining: 200, TimeUs: 1, ClosedUs: 90, ClosedSeq: 9, ClientID: "my-order_1"},
		"051a090105d804c80101b2010a6d792d6f726465725f31"},
	{"order with instructions", 1, persistence.Order{ID: 7, Account: 3,
		Side: trading.Sell, Status: trading.StatusCancelled, Pair: 1, Price: 5, Amount: 600,
		Remaining: 200, TimeUs: 1, ClosedUs: 90, ClosedSeq: 9, ClientID: "mine",
		Instructed: instructed.Pack()},
		"053a090105d804c80101b201046d696e650e831401010408051e010606d00f00"},
	{"deposit", 2, persistence.Deposit{ID: 7, Account: 3, Currency: 300, Amount: 200, TimeUs: 3,
		Reference: "wire 1"},
		"05ac02c8010306776972652031"},
	{"wallet", 3, persistence.Wallet{Account: 3, Name: "ann", Seq: 500,
		Holdings: []persistence.Holding{{Currency: "BTC", Balance: money.BalanceFromBits(1, 2),
			Reserve: money.BalanceFromBits(0, 1)}}},
		"05f40303616e6e010342544301020001"},
	{"withdrawal", 4, persistence.Withdrawal{ID: 7, Account: 3, Currency: 300, Amount: 200,
		Status: persistence.WithdrawalRefused, TimeUs: 5, ClosedUs: 6, ClosedSeq: 400,
		Address: "bc1q", Details: "no"},
		"0528900303ac02c80105020462633171026e6f00"},
	{"withdrawal with a client id", 4, persistence.Withdrawal{ID: 7, Account: 3, Currency: 300,
		Amount: 200, Status: persistence.WithdrawalRefused, TimeUs: 5, ClosedUs: 6, ClosedSeq: 400,
		Address: "bc1q", Details: "no", ClientID: "mine"},
		"0528900303ac02c80105020462633171026e6f046d696e65"},
	{"candle", 5, persistence.Candle{Pair: 1, Frame: 2, Time: 60, Open: 500, High: 900, Low: 100,
		Close: 400, Volume: money.TotalFromBits(1, 300)},
		"05f403a0069f06c70101ac02"},
	{"action", 6, persistence.Action{Seq: 7, TimeUs: 1_700_000_000_000_001, Operator: "ops",
		What: "halt"},
		"058180f9c0c1c48203036f70730468616c74"},
}

// instructed is a stop that was triggered, partly filled, and cancelled.
var instructed = trading.Instructed{Instructions: trading.Instructions{Market: true, IOC: true,
	Prevented: []trading.Prevented{{Before: 1, Order: 4, Cancel: 8, Price: 5, Amount: 30}},
	Cancelled: trading.CancelledIOC}, Trigger: trading.Trigger{Price: 6, When: trading.Fall},
	Triggered: true, Value: money.BalanceFromBits(0, 2000)}

func TestStoredRowBytesAreUnchanged(t *testing.T) {
	for _, g := range goldenRows {
		b, err := hex.DecodeString(g.hex)
		if err != nil {
			t.Fatal(err)
		}
		value, again, err := kinds[g.kind](b)
		if err != nil || !reflect.DeepEqual(value, g.value) {
			t.Errorf("%s: the stored row is read as %+v, %v", g.name, value, err)
		}
		if got := hex.EncodeToString(again); err == nil && got != g.hex {
			t.Errorf("%s is written as\n%s, stored are\n%s", g.name, got, g.hex)
		}
	}
}
