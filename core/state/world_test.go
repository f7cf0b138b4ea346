package state

import (
	"fmt"
	"maps"
	"slices"

	"exchange/core/event"
	"exchange/core/matching"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/prove/spec"
)

// differs returns the first difference between a state and the specification after the same
// records, "" if none.
func differs(s *State, x *spec.Exchange) string {
	for _, what := range []string{differsInMoney(s, x), differsInKeys(s, x),
		differsInWithdrawals(s, x), differsInSettings(s, x)} {
		if what != "" {
			return what
		}
	}
	for i, p := range s.pairs {
		if what := differsInOrders(p, x.Pairs[i]); what != "" {
			return p.Name + ": " + what
		}
		if p.Halted != x.Pairs[i].IsHalted(x.Seq) {
			return fmt.Sprintf("the halt of %s is %v", p.Name, p.Halted)
		}
	}
	order, trade, _ := s.LastIDs()
	if wantOrder, wantTrade := x.LastIDs(); order != wantOrder || trade != wantTrade {
		return fmt.Sprintf("last ids %d and %d, given were %d and %d", order, trade, wantOrder,
			wantTrade)
	}
	if s.History() != x.History {
		return fmt.Sprintf("the history is %v, want %v", s.History(), x.History)
	}
	if s.Maintenance() != x.Maintenance || s.Maintained() != x.MaintainedUs {
		return fmt.Sprintf("maintenance is %+v, the last ended at %d us, want %+v and %d us",
			s.Maintenance(), s.Maintained(), x.Maintenance, x.MaintainedUs)
	}
	return ""
}

func heldOf(s *State, currency uint16) (sum money.Balance) {
	for _, a := range s.Accounts() {
		sum = sum.Add(a.Wallet.Get(currency).Balance)
	}
	return sum
}

func differsInMoney(s *State, x *spec.Exchange) string {
	in, out, adjusted := map[uint16]money.Balance{}, map[uint16]money.Balance{},
		map[uint16]money.Balance{}
	for _, d := range x.Deposits {
		in[d.Currency] = in[d.Currency].Add(d.Amount.Balance())
	}
	for _, w := range x.Withdrawals {
		switch w.Status {
		case event.WithdrawalApproved:
			out[w.Currency] = out[w.Currency].Add(w.Amount.Balance())
		case event.WithdrawalAdjusted:
			adjusted[w.Currency] = adjusted[w.Currency].Add(w.Amount.Balance())
		}
	}
	for i, c := range s.Currencies() {
		n := uint16(i + 1)
		if c.Deposited != in[n] || c.Withdrawn != out[n] || c.Adjusted != adjusted[n] ||
			heldOf(s, n) != c.Held() {
			return fmt.Sprintf("%s: %+v, all hold %v; in came %v, out went %v, adjusted %v", c.Code,
				c, heldOf(s, n), in[n], out[n], adjusted[n])
		}
	}
	trades := map[uint32]uint64{0: uint64(len(x.Trades))}
	for _, t := range x.Trades {
		if trades[t.Taker]++; t.Taker != t.MakerAccount {
			trades[t.MakerAccount]++
		}
	}
	for account := range uint32(len(s.Accounts()) + 1) {
		if n := s.TradeCount(account); n != trades[account] {
			return fmt.Sprintf("account %d had %d trades, want %d", account, n, trades[account])
		}
	}
	for i, a := range s.Accounts() {
		if err := x.Accounts[i].At(x.Seq).Same(func(n uint16) (balance, reserve money.Balance) {
			h := a.Wallet.Get(n)
			return h.Balance, h.Reserve
		}); err != nil {
			return fmt.Sprintf("account %s: %v", a.Name, err)
		}
	}
	return ""
}

func differsInKeys(s *State, x *spec.Exchange) string {
	for i, k := range s.Keys() {
		want := *x.Keys[i]
		if want.Revoked {
			want.Nonce, want.Kept = 0, nil
		}
		var used []uint64
		if k.Used != nil {
			used = slices.Collect(k.Used.All())
		}
		if k.Revoked != want.Revoked || k.Nonce != want.Nonce || !slices.Equal(used, want.Kept) {
			return fmt.Sprintf("key %d is revoked: %v, has used nonce %d, %v, want %+v",
				k.Number, k.Revoked, k.Nonce, used, want)
		}
	}
	return ""
}

// withdrawalOf returns a withdrawal of the specification.
func withdrawalOf(w *spec.Withdrawal) Withdrawal {
	return Withdrawal{ID: w.ID, Account: w.Account, Currency: w.Currency, Amount: w.Amount,
		Status: w.Status, TimeUs: w.TimeUs, Address: w.Address, Details: w.Details,
		ClientID: w.ClientID, Issue: uint32(w.Issue), IssuedUs: w.IssuedUs,
		Tries: uint32(w.Tries), Stale: w.Stale, Renewed: w.Renewed}
}

// differsInWithdrawals checks mails, too.
func differsInWithdrawals(s *State, x *spec.Exchange) string {
	last, pending := uint64(0), 0
	own := map[uint32][]Withdrawal{}
	for _, id := range slices.Sorted(maps.Keys(x.Withdrawals)) {
		w := x.Withdrawals[id]
		if last = id; !w.Pending() {
			continue
		}
		pending++
		k := withdrawalOf(w)
		if got := s.Withdrawal(id); got == nil || *got != k || got != s.Withdrawals()[id] {
			return fmt.Sprintf("withdraw %+v, want %+v", got, k)
		}
		own[w.Account] = append(own[w.Account], k)
	}
	if len(s.Withdrawals()) != pending || s.LastWithdrawal() != last {
		return fmt.Sprintf("%d withdraws up to id %d, want %d up to %d", len(s.Withdrawals()),
			s.LastWithdrawal(), pending, last)
	}
	for _, a := range s.Accounts() {
		var got []Withdrawal
		for _, k := range a.Withdrawals() {
			got = append(got, *k)
		}
		if !slices.Equal(got, own[a.ID]) {
			return fmt.Sprintf("account %s has %+v pending, want %+v", a.Name, got, own[a.ID])
		}
	}
	var mails []Mail
	for _, m := range x.Mails {
		mail := Mail{ID: m.ID, TimeUs: m.TimeUs}
		if m.About == spec.Code || m.About == spec.Refusal {
			m.Withdrawal.ClientID = event.ClientID{}
			mail.Withdrawal = withdrawalOf(&m.Withdrawal)
		} else {
			mail.Change = AccountChange{m.Account, m.To, ChangeKind(m.About - spec.FormerAddress),
				m.HoldEndsUs}
		}
		mails = append(mails, mail)
	}
	if out := mailsOf(s); !slices.Equal(out, mails) {
		return fmt.Sprintf("the outbox is %+v, want %+v", out, mails)
	}
	return ""
}

func mailsOf(s *State) (list []Mail) {
	for m := range s.MailsAfter(0) {
		list = append(list, *m)
	}
	return list
}

// differsInSettings returns the first difference in accounts, apart from money and orders.
func differsInSettings(s *State, x *spec.Exchange) string {
	var switches []event.Switch
	for i, a := range s.Accounts() {
		w := x.Accounts[i]
		if a.Frozen != w.Frozen || a.Email != w.Email || a.Operated().HoldEndsUs != w.HoldEndsUs ||
			a.Operated().ClosedUs != w.ClosedUs || a.SelfTrade() != w.SelfTrade() {
			return fmt.Sprintf("account %s is %+v, held until %d, closed at %d, want %+v", a.Name,
				a, a.Operated().HoldEndsUs, a.Operated().ClosedUs, w)
		}
		for _, p := range x.Pairs {
			rates, own := a.Fees()[p.Number]
			if !own {
				rates = FeeRates(p.Usual)
			}
			if want := FeeRates(w.Rates(p)); rates != want {
				return fmt.Sprintf("account %s has the fees %+v in %s, want %+v", a.Name, rates,
					p.Name, want)
			}
		}
		switches = append(switches, a.Switches()...)
	}
	want := x.Switches()
	for i := range want {
		want[i].Nonce = 0
	}
	if !slices.Equal(switches, want) {
		return fmt.Sprintf("armed are %+v, want %+v", switches, want)
	}
	return ""
}

// orderOf returns an order of the specification.
func orderOf(o *spec.Order) trading.Order {
	return trading.Order{ID: o.ID, Account: o.Account, Side: o.Side, Price: o.Price,
		Amount: o.Amount, Remaining: o.Remaining, TimeUs: o.TimeUs}
}

// differsInOrders returns the first difference in a pair's open orders, and in its count of
// updates.
func differsInOrders(p *Pair, x *spec.Pair) string {
	for _, side := range []trading.Side{trading.Buy, trading.Sell} {
		n, orders := 0, x.Orders(side)
		for o := range p.Book.Open(nil) {
			if o.Side != side {
				continue
			}
			var want matching.Iceberg
			if n < len(orders) && orders[n].Shown < orders[n].Remaining {
				want = matching.Iceberg{Display: orders[n].Says.Display,
					Hidden: orders[n].Remaining - orders[n].Shown}
			}
			if n >= len(orders) || o.Order != orderOf(orders[n]) || o.Iceberg != want {
				return fmt.Sprintf("%v order %d of the book is %v, want %+v", side, n+1, o,
					orders)
			}
			n++
		}
		if n != len(orders) {
			return fmt.Sprintf("%d %v orders, want %+v", n, side, orders)
		}
	}
	var waits, queue []uint64
	for stop := range p.Stops.All(nil) {
		o := x.Find(stop.Order.ID)
		if o == nil || stop.InBook == o.Waits || stop.Queued != o.Queued || !stop.InBook &&
			(stop.Order != orderOf(o) || stop.Trigger != o.Trigger) || stop.InBook &&
			stop.Trigger != (trading.Trigger{Price: o.Says.OCO.Trigger, When: trading.Fall}) {
			return fmt.Sprintf("a stop is %+v, want %+v", stop, o)
		}
		if waits = append(waits, o.ID); stop.Queued {
			queue = append(queue, o.ID)
		}
	}
	if slices.Sort(waits); !slices.Equal(waits, x.StopIDs()) || !slices.Equal(queue, x.Queue()) {
		return fmt.Sprintf("stops are %v, queued %v, want %v, %v", waits, queue, x.StopIDs(),
			x.Queue())
	}
	says := 0
	for _, o := range x.Open() {
		got := trading.Packed("")
		if i := p.Instructed(o.ID); i != nil {
			says++
			got = i.Pack()
		}
		if got != o.Packed() {
			return fmt.Sprintf("order %d says %x, want %+v", o.ID, string(got), o)
		}
	}
	if says != len(p.instructed) || p.OpenOrders() != len(x.Open()) ||
		p.Market.UpdateID != uint64(len(x.Updates)) {
		return fmt.Sprintf("%d open orders, %d with instructions, %d updates, want %d, %d, %d",
			p.OpenOrders(), len(p.instructed), p.Market.UpdateID, len(x.Open()), says,
			len(x.Updates))
	}
	return ""
}
