package state

import (
	"fmt"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/prove/spec"
)

// special draws an order with instructions, or the next step of one; n chooses.
func (d *decider) special(r *event.Record, n int) {
	switch n {
	case 0, 1, 2, 3:
		d.instructed(r)
	case 4, 5:
		d.stop(r)
	case 6, 7, 8:
		d.amend(r)
	case 9:
		r.Kind, r.Settings = event.KindSettings, event.Settings{Account: d.account(),
			SelfTrade: trading.SelfTrade(d.pick(4))}
		r.Settings.Key, r.Settings.Nonce = d.key(r.Settings.Account)
	default:
		d.arm(r)
	}
}

// price is mostly one of a few, and now and then at an edge of the numbers.
func (d *decider) price() money.Price {
	if d.pick(20) == 0 {
		return []money.Price{1, 2, money.MaxPrice - 1, money.MaxPrice}[d.pick(4)]
	}
	return money.Price(1+d.pick(8)) * 50_000_000
}

func (d *decider) amount() money.Amount {
	if d.pick(20) == 0 {
		return []money.Amount{1, 2, money.MaxAmount - 1, money.MaxAmount}[d.pick(4)]
	}
	return money.Amount(1+d.pick(20)) * 12_345_678
}

// order draws an order of any account, also of a frozen one: the order was in flight at the freeze.
func (d *decider) order(r *event.Record, kind event.Kind) {
	r.Kind, r.Operator, r.Pair = kind, "", uint16(1+d.pick(len(d.x.Pairs)))
	r.Order = event.Order{Account: d.account(), Side: trading.Side(1 + d.pick(2)),
		Price: d.price(), Amount: d.amount()}
	if r.Order.Key, r.Order.Nonce = d.key(r.Order.Account); d.pick(2) == 0 {
		r.Order.ClientID, _ = event.NewClientID(fmt.Sprint("order-", d.pick(20)))
	}
}

// mayOrder drops a request in maintenance, or without the money for it.
func (d *decider) mayOrder(r *event.Record) {
	o := &r.Order
	currency, need := d.x.Need(r.Pair, o.Side, o.Price, o.Amount)
	if was, _ := d.x.Open(o.ID); was != nil {
		_, has := d.x.Need(r.Pair, was.Side, was.Price, was.Remaining)
		_, need = d.x.Need(r.Pair, was.Side, o.Price, o.Amount-(was.Amount-was.Remaining))
		need.Sub(need, has)
	} else if quote := r.Instructions.Quote; quote != 0 {
		need = spec.Units(quote.Balance())
	}
	if d.x.Maintenance.On || need.Sign() > 0 && need.Cmp(d.available(o.Account, currency)) > 0 {
		r.Kind = 0
	}
}

func (d *decider) instructed(r *event.Record) {
	d.order(r, event.KindInstructed)
	o, i := &r.Order, &r.Instructions
	if d.pick(2) == 0 {
		i.SelfTrade = trading.SelfTrade(d.pick(4))
	}
	switch d.pick(8) {
	case 0:
		i.IOC, i.Market = true, d.pick(2) == 0
	case 1:
		i.FOK = true
	case 2:
		o.Side, i.Market, i.IOC, i.Quote = trading.Buy, true, true, 1+d.amount()/2
		if d.pick(2) == 0 {
			i.IOC, i.FOK = false, true
		}
		o.Amount = 0
	case 3:
		if i.PostOnly = true; d.pick(2) == 0 {
			i.Asked = o.Price
		}
	case 4:
		i.Display = (o.Amount-1)/money.Amount(1+d.pick(20)) + 1
	case 5:
		o.Side, i.OCO.Trigger = trading.Sell, max(1, (o.Price-1)/money.Price(1+d.pick(3)))
		if d.pick(2) == 0 {
			i.OCO.Price = d.price()
		}
	default:
		i.ExpireUs = d.timeUs + int64(d.pick(8))
	}
	if i.IsZero() {
		r.Kind = event.KindOrder
	}
	d.mayOrder(r)
}

func (d *decider) stop(r *event.Record) {
	d.order(r, event.KindStop)
	o, i := &r.Order, &r.Instructions
	r.Trigger = trading.Trigger{Price: d.price(), When: trading.Rise + trading.Direction(d.pick(2))}
	i.SelfTrade = trading.SelfTrade(d.pick(4))
	switch d.pick(6) {
	case 0:
		i.IOC, i.Market = true, true
	case 1:
		i.FOK = true
	case 2:
		if i.PostOnly = true; d.pick(2) == 0 {
			i.Asked = o.Price
		}
	case 3:
		i.Display = (o.Amount-1)/money.Amount(1+d.pick(20)) + 1
	case 4:
		i.ExpireUs = d.timeUs + int64(d.pick(8))
	}
	d.mayOrder(r)
}

// amend draws a change of any open order.
func (d *decider) amend(r *event.Record) {
	x := d.openOrder()
	if x == nil {
		return
	}
	r.Kind, r.Pair, r.Operator, r.Trigger = event.KindAmended, x.Pair, "", trading.Trigger{}
	o, i := &r.Order, &r.Instructions
	*o = event.Order{ID: x.ID, Account: x.Account, Side: x.Side, Price: x.Price, Amount: x.Amount}
	o.Key, o.Nonce = d.key(x.Account)
	*i = x.Says
	i.Prevented, i.SelfTrade = nil, trading.SelfTrade(d.pick(4))
	if x.Waits {
		r.Trigger = x.Trigger
	}
	if d.pick(2) == 0 {
		o.Amount = d.amount()
	}
	if i.Asked != 0 {
		o.Price = i.Asked
	}
	if d.pick(3) == 0 {
		o.Price = d.price()
	}
	now, half := i.IOC || i.FOK || i.Market, i.OCO != (trading.OCO{}) && !x.Triggered
	if x.Waits && !x.Queued && d.pick(2) == 0 {
		r.Trigger.Price = d.price()
	}
	if i.Display != 0 || d.pick(8) == 0 && !now {
		i.Display = (o.Amount-1)/money.Amount(1+d.pick(20)) + 1
	}
	if (i.ExpireUs != 0 || d.pick(8) == 0) && !now && !half {
		i.ExpireUs = d.timeUs + int64(d.pick(8))
	}
	if d.pick(8) == 0 && !now && (!half || i.OCO.Price != 0) {
		i.PostOnly = true
	}
	if i.Asked != 0 {
		i.Asked = o.Price
	}
	if half && i.OCO.Trigger >= o.Price || x.Queued && !x.Waits {
		r.Kind = 0
	}
	d.mayOrder(r)
}

// arm draws a client's request for a switch, or the end of its sessions.
func (d *decider) arm(r *event.Record) {
	a := d.account()
	key, nonce := d.key(a)
	if key == 0 {
		return
	}
	r.Kind, r.Operator = event.KindSwitch, ""
	w := &r.Switch
	*w = event.Switch{Account: a, Key: key, Nonce: nonce, Armed: d.pick(4) > 0}
	if w.Armed {
		w.Seconds = 5 + uint32(d.pick(3))
		w.DueUs = d.timeUs + int64(w.Seconds)*1e6
		if d.pick(3) == 0 {
			w.Pair = uint16(1 + d.pick(len(d.x.Pairs)))
		}
		w.Side = trading.Side(d.pick(3))
		if d.pick(3) == 0 {
			w.Prefix, _ = event.NewClientID("order-")
		}
	}
	if d.pick(2) == 0 {
		return
	}
	w.Session, w.Nonce, w.DueUs = true, 0, 0
	if was, lives := d.x.SessionsSwitch(key); lives && was.DueUs == 0 && w.Armed &&
		d.pick(2) == 0 {
		*w = was // its last session was lost
		w.DueUs = d.timeUs + int64(w.Seconds)*1e6
	}
}
