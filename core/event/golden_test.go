package event

import (
	"encoding/hex"
	"math"
	"reflect"
	"testing"

	"exchange/core/money"
	"exchange/core/trading"
)

// golden is one record of each kind with its stored bytes. Journals hold these bytes permanently:
// the stored format may not change, and a failure here is a fault of the code.
var golden = []struct {
	record Record
	hex    string
}{
	{Record{Kind: KindCurrency, TimeUs: 1_700_000_000_000_001,
		Currency: Currency{Number: 300, Code: "BTC"}},
		"0100000600000001401e18240a0600ac0203425443"},
	{Record{Kind: KindPair, TimeUs: 1_700_000_000_000_002,
		NewPair: Pair{Number: 1, Name: "BTC_USD", Base: 300, Quote: 2}},
		"0200000c00000002401e18240a060001074254435f555344ac0202"},
	{Record{Kind: KindAccount, TimeUs: 1_700_000_000_000_003,
		Account: Account{ID: 70_000, Name: "alice", Email: "a@example.org"}},
		"0300001700000003401e18240a0600f0a20405616c6963650d61406578616d706c652e6f7267"},
	{Record{Kind: KindKey, TimeUs: 1_700_000_000_000_004,
		Key: Key{Number: 3, Account: 70_000, Key: "public", Permissions: AllPermissions,
			Allow: []string{"10.0.0.0/8", "::1/128"}, SealedBy: 0x0102030405060708,
			Sealed: []byte{0xfe, 0xff}}},
		"1900002c00000004401e18240a060003f0a204067075626c696307020a31302e302e302e302f38073a3a312f" +
			"313238080706050403020102feff00"},
	{Record{Kind: KindKeyRevoked, TimeUs: 1_700_000_000_000_005, KeyRevoked: KeyRevoked{Number: 3}},
		"0500000100000005401e18240a060003"},
	{Record{Kind: KindKeyRevoked, TimeUs: 1_700_000_000_000_005, Operator: "jane",
		KeyRevoked: KeyRevoked{Number: 3, Lost: true}},
		"8500000a00000005401e18240a06008380808010046a616e65"},
	{Record{Kind: KindDeposit, TimeUs: 1_700_000_000_000_006,
		Deposit: Deposit{ID: 9, Account: 70_000, Currency: 2, Amount: math.MaxInt64,
			Reference: "wire 1"}},
		"0600001500000006401e18240a060009f0a20402ffffffffffffffff7f06776972652031"},
	{Record{Kind: KindOrder, Pair: 0x0102, TimeUs: 1_700_000_000_000_007,
		Order: Order{ID: 1 << 40, Account: 70_000, Key: 3, Nonce: math.MaxUint64,
			Side: trading.Sell, RestCancelled: true,
			Price: 5_000_000_000_000, Amount: 300, Remaining: 100, FeeAccount: 1,
			ClientID: clientID("my-order_1"), Trades: []Trade{
				{ID: 5, Maker: 1 << 39, MakerAccount: 2, Price: 5_000_000_000_001, Amount: 150,
					MakerRemaining: 0, TakerFee: money.BalanceFromBits(1, 2),
					MakerFee: money.BalanceFromBits(0, 3)},
				{ID: 6, Maker: 12, MakerAccount: 4, Price: 5_000_000_000_000, Amount: 50,
					MakerRemaining: 8}}}},
		"0702015200000007401e18240a0600808080808020f0a20403ffffffffffffffffff018280a0e5b9c291" +
			"01ac0264010a6d792d6f726465725f3102058080808080100281a0e5b9c2910196010002010300060c04" +
			"80a0e5b9c29101320800000000"},
	{Record{Kind: KindCancel, Pair: 1, TimeUs: 1_700_000_000_000_008,
		Cancel: Cancel{ID: 13, Order: 12, Account: 4, Key: 5, Nonce: 6, Side: trading.Buy,
			Price: 700, Remaining: 8}},
		"0801000900000008401e18240a06000d0c04050601bc0508"},
	{Record{Kind: KindRefusal, TimeUs: 1_700_000_000_000_009,
		Refusal: Refusal{Account: 4, Key: 5, Nonce: 7, Reason: RefusedFunds}},
		"0900000400000009401e18240a060004050702"},
	{Record{Kind: KindWithdrawal, TimeUs: 1_700_000_000_000_010,
		Withdrawal: Withdrawal{ID: 300, Account: 70_000, Key: 3, Nonce: 8, Currency: 2, Amount: 500,
			Address: "bc1q"}},
		"1d0000100000000a401e18240a0600ac02f0a204030802f403046263317100"},
	{Record{Kind: KindWithdrawalStatus, TimeUs: 1_700_000_000_000_011, Operator: "ops@127.0.0.1",
		WithdrawalStatus: WithdrawalStatus{ID: 300, Account: 70_000, Key: 3, Nonce: 9, Currency: 2,
			Amount: 500, To: WithdrawalApproved, Details: "no", DespiteFreeze: true}},
		"8b00001d0000000b401e18240a0600ac02f0a204030902f4031e026e6f010d6f7073403132372e302e302e31"},
	{Record{Kind: KindCodeRefused, TimeUs: 1_700_000_000_000_012,
		CodeRefused: CodeRefused{Withdrawal: 300, Account: 70_000, Key: 3, Nonce: 10,
			Expired: true, Tries: 300}},
		"0c00000a0000000c401e18240a0600ac02f0a204030a01ac02"},
	{Record{Kind: KindMailed, TimeUs: 1_700_000_000_000_013, Mailed: Mailed{ID: 4, Error: "550"}},
		"0d0000050000000d401e18240a06000403353530"},
	{Record{Kind: KindHalt, Pair: 1, TimeUs: 1_700_000_000_000_014, Halt: Halt{Halted: true}},
		"0e0100010000000e401e18240a060001"},
	{Record{Kind: KindMaintenance, TimeUs: 1_700_000_000_000_016,
		Maintenance: Maintenance{On: true, Message: "back at 9"}},
		"1000000b00000010401e18240a060001096261636b2061742039"},
	{Record{Kind: KindMaintenance, TimeUs: 1_700_000_000_000_016,
		Maintenance: Maintenance{On: true, Message: "back at 9", Cancels: true}},
		"1000000b00000010401e18240a060002096261636b2061742039"},
	{Record{Kind: KindFees, Pair: 1, TimeUs: 1_700_000_000_000_017,
		Fees: Fees{Account: 70_000, Own: true, Maker: 0, Taker: 150_000}},
		"1101000800000011401e18240a0600f0a2040100f09309"},
	{Record{Kind: KindHistory, TimeUs: 1_700_000_000_000_018,
		History: HistoryID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}},
		"1200001000000012401e18240a06000102030405060708090a0b0c0d0e0f10"},
	{Record{Kind: KindStop, Pair: 1, TimeUs: 1_700_000_000_000_019,
		Order: Order{ID: 14, Account: 4, Key: 5, Nonce: 6, Side: trading.Sell, Price: 700,
			Amount: 300, Remaining: 300, ClientID: clientID("stop")},
		Trigger:      trading.Trigger{Price: 710, When: trading.Fall},
		Instructions: trading.Instructions{IOC: true, Market: true}},
		"1301001200000013401e18240a06000e04050602bc05ac020473746f70c6050203"},
	{Record{Kind: KindTriggered, Pair: 1, TimeUs: 1_700_000_000_000_020,
		Order: Order{ID: 14, Account: 4, Side: trading.Sell, Price: 700, Amount: 300,
			Remaining: 250, RestCancelled: true, FeeAccount: 1, ClientID: clientID("stop"),
			Trades: []Trade{{ID: 7, Maker: 12, MakerAccount: 4, Price: 705, Amount: 50}}},
		Triggered: Triggered{Was: Was{Price: 700, Open: 300}, FromBook: true},
		Instructions: trading.Instructions{IOC: true, Market: true,
			Cancelled: trading.CancelledIOC}},
		"1401002500000014401e18240a06000e04000082bc05ac02fa01010473746f7001070c04c10532000000" +
			"0000bc05ac0201831001"},
	{Record{Kind: KindAmended, Pair: 1, TimeUs: 1_700_000_000_000_021,
		Order: Order{ID: 15, Account: 4, Key: 5, Nonce: 8, Side: trading.Buy, Price: 690,
			Amount: 400, Remaining: 350},
		Amended: Amended{ID: 16, Was: Was{Price: 680, Open: 300}, Kept: true},
		Trigger: trading.Trigger{Price: 720, When: trading.Rise}},
		"1501001800000015401e18240a06000f04050801b2059003de0200000010a805ac0201d0050100"},
	{Record{Kind: KindExpired, Pair: 1, TimeUs: 1_700_000_000_000_022,
		Expired: []Expired{
			{ID: 17, Order: 15, Account: 4, Side: trading.Buy, Price: 690, Open: 350},
			{ID: 18, Order: 13, Account: 70_000, Side: trading.Sell, Price: 800, Open: 1}}},
		"1601001200000016401e18240a060002110f0401b205de02120df0a20402a00601"},
	{Record{Kind: KindSwitch, TimeUs: 1_700_000_000_000_023,
		Switch: Switch{Account: 4, Key: 5, Nonce: 9, Session: true, Armed: true,
			DueUs: 1_700_000_060_000_000, Seconds: 60, Pair: 2, Side: trading.Sell,
			Prefix: clientID("bot-")}},
		"1700001400000017401e18240a060004050903808ec7ddc1c482033c020204626f742d"},
	{Record{Kind: KindSettings, TimeUs: 1_700_000_000_000_024,
		Settings: Settings{Account: 4, Key: 5, Nonce: 10,
			SelfTrade: trading.SelfTradeCancelBoth}},
		"1800000400000018401e18240a060004050a03"},
	{Record{Kind: KindKey, TimeUs: 1_700_000_000_000_025,
		Key: Key{Number: 3, Account: 70_000, Key: "public", Permissions: AllPermissions,
			Allow: []string{"10.0.0.0/8", "::1/128"}, SealedBy: 0x0102030405060708,
			Sealed: []byte{0xfe, 0xff}, NonceWindow: 300}},
		"1900002d00000019401e18240a060003f0a204067075626c696307020a31302e302e302e302f38073a3a312f" +
			"313238080706050403020102feffac02"},
	{Record{Kind: KindSwitchCancel, Pair: 1, TimeUs: 1_700_000_000_000_026,
		Cancel: Cancel{ID: 19, Order: 12, Account: 4, Key: 5, Side: trading.Buy, Price: 700,
			Remaining: 8, Reason: trading.CancelledDisconnect}},
		"1a01000a0000001a401e18240a0600130c04050001bc05080b"},
	{Record{Kind: KindInstructed, Pair: 1, TimeUs: 1_700_000_000_000_027,
		Order: Order{ID: 20, Account: 4, Key: 5, Nonce: 11, Side: trading.Buy, Price: 700,
			Amount: 300, Remaining: 250, FeeAccount: 1, ClientID: clientID("mine"),
			Trades: []Trade{{ID: 8, Maker: 11, MakerAccount: 2, Price: 690, Amount: 50,
				MakerRemaining: 6}}},
		Instructions: trading.Instructions{ExpireUs: 1_700_000_100_000_000, Display: 30,
			SelfTrade: trading.SelfTradeCancelOldest,
			Prevented: []trading.Prevented{{Before: 1, Order: 10, Cancel: 21, Price: 695,
				Amount: 5}}}},
		"1b0100300000001b401e18240a06001404050b01bc05ac02fa0101046d696e6501080b02b20532060000" +
			"0000c80680c2d0f0c1c482031e0201010a15b70505"},
	{Record{Kind: KindNote, Operator: "jane", TimeUs: 1_700_000_000_000_028,
		Note: "removes node d"},
		"9c0000140000001c401e18240a06000e72656d6f766573206e6f64652064046a616e65"},
	{Record{Kind: KindWithdrawal, TimeUs: 1_700_000_000_000_029,
		Withdrawal: Withdrawal{ID: 300, Account: 70_000, Key: 3, Nonce: 8, Currency: 2, Amount: 500,
			Address: "bc1q", ClientID: clientID("mine_1")}},
		"1d0000160000001d401e18240a0600ac02f0a204030802f4030462633171066d696e655f31"},
	{Record{Kind: KindFreeze, TimeUs: 1_700_000_000_000_030,
		Freeze: Freeze{Account: 70_000, Frozen: true}},
		"1e0000040000001e401e18240a0600f0a20401"},
	{Record{Kind: KindAdjusted, Operator: "jane", TimeUs: 1_700_000_000_000_031,
		Adjusted: Adjusted{ID: 301, Account: 70_000, Currency: 2, Amount: 500, Reason: "twice",
			ClientID: clientID("wire_7")}},
		"9f00001a0000001f401e18240a0600ad02f0a20402f40305747769636506776972655f37046a616e65"},
	{Record{Kind: KindEmail, Operator: "jane", TimeUs: 1_700_000_000_000_032,
		Email: Email{Account: 70_000, Address: "a@b.example", HoldEndsUs: 1_700_172_800_000_032}},
		"a000001c00000020401e18240a0600f0a2040b6140622e6578616d706c65a080b49ec5c98203046a616e65"},
	{Record{Kind: KindAccountClosed, Operator: "jane", TimeUs: 1_700_000_000_000_033,
		AccountClosed: AccountClosed{Account: 70_000}},
		"a100000800000021401e18240a0600f0a204046a616e65"},
}

const goldenBatchHead = "0400040302010c0b0a0908070605100f0e0d1ff93dc0"

// sentToObservers lists for each field of a record whether observers receive it. A missing field
// has not been considered: only the server may need it.
var sentToObservers = map[string]bool{
	"Kind": true, "Pair": true, "TimeUs": true,
	"Operator":            false, // its presence decides how an order's end is named
	"Currency.Number":     true,
	"Currency.Code":       true,
	"NewPair.Number":      true,
	"NewPair.Name":        true,
	"NewPair.Base":        true,
	"NewPair.Quote":       true,
	"Account.ID":          true,
	"Account.Name":        true,
	"Account.Email":       false, // its presence decides whether a withdrawal is possible
	"Key.Number":          true,
	"Key.Account":         true,
	"Key.Key":             true, // the public part
	"Key.Permissions":     true,
	"Key.Allow":           true, // an observer checks the source address
	"Key.SealedBy":        true, // changes when a secret is sealed again
	"Key.Sealed":          false,
	"Key.NonceWindow":     true,
	"KeyRevoked.Number":   true,
	"KeyRevoked.Lost":     true, // its state has the mail, emptied
	"Deposit.ID":          true,
	"Deposit.Account":     true,
	"Deposit.Currency":    true,
	"Deposit.Amount":      true,
	"Deposit.Reference":   false, // the operator's; hidden from clients
	"Order":               true,
	"Cancel":              true,
	"Refusal":             true,
	"Withdrawal":          true, // its owner sees the address
	"Adjusted":            true, // its owner sees the reason
	"Email.Account":       true,
	"Email.Address":       false, // as that of a new account
	"Email.HoldEndsUs":    true,
	"AccountClosed":       true,
	"CodeRefused":         true, // counts; codes are in no record
	"Mailed.ID":           true,
	"Mailed.Error":        false, // a mail server's text, with the address
	"Halt":                true,
	"Freeze":              true,
	"Maintenance.On":      true,
	"Maintenance.Cancels": true,
	"Fees":                true,
	"History":             true,
	"Note":                false,
	"Instructions":        true,
	"Trigger":             true,
	"Triggered":           true,
	"Amended":             true,
	"Expired":             true,
	"Switch":              true,
	"Settings":            true,
	"WithdrawalStatus":    true, // its owner sees the details
	"Maintenance.Message": true, // it is for clients
}

func TestTheStoredFormatIsStillTheSame(t *testing.T) {
	for i := range golden {
		g := &golden[i]
		if got := hex.EncodeToString(g.record.Append(nil)); got != g.hex {
			t.Errorf("%v is written as\n%s, stored are\n%s", g.record.Kind, got, g.hex)
		}
		b, err := hex.DecodeString(g.hex)
		var r Record
		if err == nil {
			_, err = r.Decode(b)
		}
		if err != nil || !reflect.DeepEqual(r, g.record) {
			t.Errorf("the stored %v is read as %+v, %v", g.record.Kind, r, err)
		}
	}
	empty := EndBatch(BeginBatch(nil), 0x01020304, 0x05060708090a0b0c, 0x0d0e0f10)
	if got := hex.EncodeToString(empty); got != goldenBatchHead {
		t.Errorf("a batch is written as\n%s, stored are\n%s", got, goldenBatchHead)
	}
	here := map[Kind]bool{}
	for _, g := range golden {
		here[g.record.Kind] = true
	}
	if len(here) != len(kinds) {
		t.Errorf("%d of %d kinds are here", len(here), len(kinds))
	}
}
