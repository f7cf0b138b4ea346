package api

import (
	"testing"

	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

const head = `{"success":true,"type":"buy","date":1,"oid":7,"price":100,"amount":`

// record makes a record of a buy of 2 at 100, of which some was filled by trades at 99.5.
func record(kind event.Kind, filled money.Amount, change func(*event.Record)) *event.Record {
	r := &event.Record{Kind: kind, TimeUs: 1_000_000}
	r.Order = event.Order{ID: 7, Side: trading.Buy, Price: 100e8, Amount: 2e8,
		Remaining: 2e8 - filled}
	if filled > 0 {
		r.Order.Trades = []event.Trade{{ID: 3, Maker: 5, Price: 9_950_000_000, Amount: filled}}
	}
	if change != nil {
		change(r)
	}
	return r
}

const tradeAt99 = `,"trades":[{"tid":3,"type":"sell","price":99.5,"amount":0.5,"o_id":5}]`

func TestAnswersShowWhatApplies(t *testing.T) {
	f := func(want string, r *event.Record) {
		t.Helper()
		if got := string(appendPlaced(nil, r)); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	}
	f(head+`1.5,"amount_filled":0.5,"amount_original":2`+tradeAt99+`}`,
		record(event.KindOrder, 5e7, nil))
	f(head+`0,"amount_filled":0.5,"amount_original":2,"amount_cancelled":1.5`+tradeAt99+`}`,
		record(event.KindOrder, 5e7, func(r *event.Record) { r.Order.RestCancelled = true }))
	f(head+`0,"amount_filled":0.5,"amount_original":2`+tradeAt99+`,"status":2,`+
		`"order_type":"market","time_in_force":"ioc","average_price":99.5,"self_trade":`+
		`"cancel_oldest","prevented":[{"o_id":4,"amount":0.1},{"o_id":6,"amount":3}],`+
		`"amount_cancelled":1.5,"cancel_reason":"ioc"}`,
		record(event.KindInstructed, 5e7, func(r *event.Record) {
			r.Order.RestCancelled = true
			r.Instructions = trading.Instructions{Market: true, IOC: true,
				SelfTrade: trading.SelfTradeCancelOldest, Cancelled: trading.CancelledIOC,
				Prevented: []trading.Prevented{{Order: 4, Amount: 1e7}, {Order: 6, Amount: 3e8}}}
		}))
	f(head+`2,"amount_filled":0,"amount_original":2,"trades":[],"status":1,"order_type":"limit",`+
		`"time_in_force":"gtd","expire_time":1900000000.5,"post_only":"slide","price_asked":101,`+
		`"display_amount":0.25}`,
		record(event.KindInstructed, 0, func(r *event.Record) {
			r.Instructions = trading.Instructions{ExpireUs: 1_900_000_000_500_000, PostOnly: true,
				Asked: 101e8, Display: 25e6}
		}))
	f(head+`2,"amount_filled":0,"amount_original":2,"trades":[],"status":1,"order_type":"limit",`+
		`"time_in_force":"gtc","post_only":true}`,
		record(event.KindInstructed, 0, func(r *event.Record) { r.Instructions.PostOnly = true }))
	f(head+`2,"amount_filled":0,"amount_original":2,"trades":[],"status":1,"order_type":"market",`+
		`"time_in_force":"fok","trigger_price":110,"trigger_when":"rise","triggered":false}`,
		record(event.KindStop, 0, func(r *event.Record) {
			r.Instructions = trading.Instructions{Market: true, FOK: true}
			r.Trigger = trading.Trigger{Price: 110e8, When: trading.Rise}
		}))
	f(head+`0,"amount_filled":0.5,"amount_original":0.5`+tradeAt99+`,"status":3,`+
		`"order_type":"market","time_in_force":"ioc","quote_amount":50,"quote_filled":49.75,`+
		`"average_price":99.5}`,
		record(event.KindInstructed, 5e7, func(r *event.Record) {
			r.Order.Amount, r.Order.Remaining = 5e7, 0
			r.Instructions = trading.Instructions{Market: true, IOC: true, Quote: 50e8}
		}))
	f(head+`0,"amount_filled":0,"amount_original":0,"trades":[],"status":2,"order_type":"market",`+
		`"time_in_force":"ioc","quote_amount":50,"quote_filled":0,"cancel_reason":"ioc"}`,
		record(event.KindInstructed, 0, func(r *event.Record) {
			r.Order.Amount, r.Order.Remaining, r.Order.RestCancelled = 0, 0, true
			r.Instructions = trading.Instructions{Market: true, IOC: true, Quote: 50e8,
				Cancelled: trading.CancelledIOC}
		}))
}

func TestRowsShowWhatApplies(t *testing.T) {
	const row = `{"id":7,"pair":"BTC_USDT","type":"sell","status":2,"price":100,"amount":1.5,` +
		`"amount_filled":0.5,"amount_original":2,"date":1000`
	f := func(want string, x *trading.Instructed) {
		t.Helper()
		o := committed.Order{ID: 7, Side: trading.Sell, Status: trading.StatusCancelled,
			Price: 100e8, Amount: 2e8, Remaining: 15e7, TimeUs: 1_000_000}
		if x != nil {
			o.Instructed = x.Pack()
		}
		if got := string(appendOrder(nil, &o, "BTC_USDT")); got != row+want {
			t.Errorf("\n got %s\nwant %s", got, row+want)
		}
	}
	f("}", nil)
	f(`,"order_type":"limit","time_in_force":"gtc","average_price":99.5,"oco_trigger_price":90,`+
		`"oco_price":89,"triggered":true,"amount_cancelled":1.5,"cancel_reason":"switch"}`,
		&trading.Instructed{Triggered: true, Value: money.Price(9_950_000_000).Times(5e7).Balance(),
			Instructions: trading.Instructions{OCO: trading.OCO{Trigger: 90e8, Price: 89e8},
				Cancelled: trading.CancelledSwitch}})
	// It was filled while it was plain, so its mean price is not known.
	f(`,"order_type":"limit","time_in_force":"gtc","display_amount":0.5,"amount_cancelled":1.5,`+
		`"cancel_reason":"owner"}`,
		&trading.Instructed{Instructions: trading.Instructions{Display: 5e7,
			Cancelled: trading.CancelledOwner}})
}
