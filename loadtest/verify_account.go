package loadtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"exchange/core/money"
)

// One account at the end: its received answers against the server's rows.

type orderRow struct {
	id                      uint64
	pair                    *pair
	buy                     bool
	status                  int
	price                   money.Price
	amount, filled, initial money.Amount
	clientID                string
}

// Statuses of orders.
const (
	statusActive    = 1
	statusCancelled = 2
	statusDone      = 3
)

type tradeRow struct {
	id     uint64
	pair   *pair
	buy    bool // the account's side
	price  money.Price
	amount money.Amount
	fee    money.Balance
	feeOf  string // currency
}

// findings are the differences of one account, and the reasons for skipped checks.
type findings struct {
	wrong, skipped              []string
	orders, cancels, trades     uint64
	unknownIn, unknownOut, good uint64
	at, first                   int    // address of this read, and the first of several
	across                      uint64 // orders sent elsewhere, and not counted at first
}

func (f *findings) flag(format string, args ...any) {
	f.wrong = append(f.wrong, fmt.Sprintf(format, args...))
}

// account compares an account at its addresses. It drops one that fails meanwhile, if there are
// others.
func (v *verifier) account(ctx context.Context, a *account) error {
	var all []*findings
	places := v.placesOf(a)
	for len(all) < len(places) {
		at := places[len(all)]
		f, err := v.compareAgain(ctx, a, at, places[0])
		switch {
		case err == nil:
			all = append(all, f)
		case ctx.Err() == nil && unavailable(err) && v.dropAddress(at):
			all, places = nil, v.placesOf(a)
		default:
			return fmt.Errorf("%s: %w", a.title(), err)
		}
	}
	v.addFindings(a, all)
	return nil
}

// compareAgain compares, and compares again after a difference, because an order without an outcome
// may still execute.
func (v *verifier) compareAgain(ctx context.Context, a *account, at, first int) (*findings, error) {
	for try := 0; ; try++ {
		f, err := v.compare(ctx, a, at, first)
		if err != nil || len(f.wrong) == 0 || try == 2 || !pause(ctx, v.pause) {
			return f, err
		}
	}
}

// addFindings adds the findings of an account. Its orders count once, wherever they were read.
func (v *verifier) addFindings(a *account, all []*findings) {
	v.mu.Lock()
	r, f := &v.result, all[0]
	r.Orders += f.orders
	r.Cancels += f.cancels
	r.Trades += f.trades
	r.UnknownIn += f.unknownIn
	r.UnknownOut += f.unknownOut
	r.Accounts += f.good
	for _, f := range all {
		r.Across += f.across
		v.read[f.at]++
	}
	v.mu.Unlock()
	for _, f := range all {
		for _, text := range f.wrong {
			v.flag("%s: %s%s", a.title(), text, v.where(f.at))
		}
	}
	for _, why := range f.skipped {
		v.skip(why)
	}
}

// title names an account in messages.
func (a *account) title() string {
	if a.name != "" {
		return a.name
	}
	return "the account of key " + string(a.users[0].key)
}

func (v *verifier) compare(ctx context.Context, a *account, at, first int) (*findings, error) {
	f, r := &findings{at: at, first: first}, v.rest.at(at)
	rows, err := v.orders(ctx, r, a)
	if err != nil {
		return f, err
	}
	trades, err := v.trades(ctx, r, a)
	if err != nil {
		return f, err
	}
	now, err := a.wallets(ctx, r)
	if err != nil {
		return f, err
	}
	byClient := make(map[string]*orderRow, len(rows))
	for _, row := range rows {
		if row.clientID != "" {
			byClient[row.clientID] = row
		}
	}
	inDoubt := slices.ContainsFunc(a.orders, func(o sentOrder) bool { return o.endsOthers() })
	uncertain := false // a taker's trades are incompletely known
	expected := 0
	for i := range a.orders {
		o := &a.orders[i]
		id := string(appendClientID(nil, []byte(v.run), o.user, o.serial))
		row, err := v.rowOf(ctx, r, a, o, id, rows, byClient)
		if err != nil {
			return f, err
		}
		if row != nil {
			expected++
		}
		uncertain = uncertain || row != nil && row.filled > 0 &&
			(o.outcome == unknown || o.isInDoubt())
		v.order(f, o, id, row, a.evicted, inDoubt)
	}
	if expected < len(rows) {
		v.strangers(f, a, rows)
	}
	self, err := v.ownTrades(ctx, r, f, a, rows, trades)
	if err != nil {
		return f, err
	}
	rested := false // before the test, so its trades may be of orders that are not checked
	for _, h := range a.before {
		rested = rested || !h.reserve.IsZero()
	}
	switch {
	case rested:
		f.skipped = append(f.skipped, "sums of an account that had orders or withdrawals before")
		v.balances(ctx, r, f, a, rows, trades, self, now, false)
	case uncertain:
		f.skipped = append(f.skipped,
			"sums of an account of which an order without an outcome has traded")
	case a.unsure:
		f.skipped = append(f.skipped,
			"sums of an account of which a deposit has no outcome")
	default:
		v.compareFills(f, rows, trades, self)
		v.balances(ctx, r, f, a, rows, trades, self, now, true)
	}
	return f, nil
}

// rowOf returns the row of an order. It looks up an order without an outcome by its client id.
func (v *verifier) rowOf(ctx context.Context, r *rest, a *account, o *sentOrder, clientID string,
	rows map[uint64]*orderRow, byClient map[string]*orderRow) (*orderRow, error) {
	if o.outcome == done {
		return rows[o.id], nil
	}
	row := byClient[clientID]
	if o.outcome == refused || row != nil {
		return row, nil
	}
	err := r.get(ctx, a.users[0],
		"/api/v1/orders/own/?client_order_id="+clientID, func(body []byte) error {
			return eachItem(body, func(item []byte) (err error) {
				row, err = v.readOrder(item)
				return err
			})
		})
	return row, err
}

// order compares one order with its row; nil: there is none. Others of the account removed those of
// ended from the book; inDoubt: there may be more.
func (v *verifier) order(f *findings, o *sentOrder, clientID string, row *orderRow,
	ended map[uint64]bool, inDoubt bool) {
	switch {
	case o.outcome == refused:
		if row != nil {
			f.flag("order %s was refused, and is there with id %d", clientID, row.id)
		}
		return
	case o.outcome == unknown && row == nil:
		f.unknownOut++
		return
	case row == nil:
		f.flag("order %d (%s) was acknowledged, and is missing", o.id, clientID)
		return
	case o.outcome == unknown:
		f.unknownIn++
	}
	p := v.field.pairs[o.pair]
	switch {
	case row.pair != p || row.buy != o.buy || !o.mayHave(row.price, row.initial, p) ||
		row.clientID != clientID:
		f.flag("order %d (%s) was sent as %s %s %s at %s, and is there as %s %s %s at %s (%s)",
			row.id, clientID,
			sideName(o.buy), o.amount, p.name, o.price, sideName(row.buy), row.initial, row.name(),
			row.price, row.clientID)
	case row.filled < o.filled:
		f.flag("of order %d (%s) %s were filled when it was placed, and now it says %s", row.id,
			clientID, o.filled, row.filled)
	case row.filled+row.amount != row.initial:
		f.flag("of order %d (%s) of %s, %s are filled and %s remain", row.id, clientID,
			row.initial, row.filled, row.amount)
	case o.cancelSent && o.cancelOutcome == done && row.status != statusCancelled:
		f.flag("the cancel of order %d (%s) was acknowledged, and its status is %d", row.id,
			clientID, row.status)
	case row.status == statusCancelled && o.outcome == done && !o.cut &&
		!(o.cancelSent && o.cancelOutcome != refused) && !o.mayEnd() && !ended[row.id] && !inDoubt:
		f.flag("order %d (%s) is cancelled, and no cancel was acknowledged", row.id, clientID)
	case row.status == statusDone && row.amount != 0, row.status == statusActive && row.amount == 0,
		row.status < statusActive || row.status > statusDone:
		f.flag("order %d (%s) has status %d, and %s of it remain", row.id, clientID, row.status,
			row.amount)
	case o.fault(row) != "":
		f.flag("order %d (%s), which was sent as %s, %s: status %d, %s filled", row.id, clientID,
			o.instruction, o.fault(row), row.status, row.filled)
	default:
		f.orders++
		if at := int(o.at); at != f.at && (f.at == f.first || at == f.first) {
			f.across++
		}
		if o.cancelSent && o.cancelOutcome == done {
			f.cancels++
		}
	}
}

func (row *orderRow) name() string {
	if row.pair == nil {
		return "?"
	}
	return row.pair.name
}

func sideName(buy bool) string {
	if buy {
		return "buy"
	}
	return "sell"
}

// strangers reports rows that the test has not sent.
func (v *verifier) strangers(f *findings, a *account, rows map[uint64]*orderRow) {
	mine := make(map[string]bool, len(a.orders))
	for i := range a.orders {
		mine[string(appendClientID(nil, []byte(v.run), a.orders[i].user,
			a.orders[i].serial))] = true
	}
	for _, row := range rows {
		if !mine[row.clientID] {
			f.flag(
				"order %d (%s) is there, and this test has not sent it: its accounts must be "+
					"its own", row.id, row.clientID)
		}
	}
}

// ownTrades looks up every trade of an answer. It returns the ids of those with an order of the
// same account.
func (v *verifier) ownTrades(ctx context.Context, r *rest, f *findings, a *account,
	rows map[uint64]*orderRow, trades map[uint64]*tradeRow) (self map[uint64]bool, err error) {
	self = map[uint64]bool{}
	older := map[uint64]bool{} // orders from before the test: whether they are the account's
	for i := range a.trades {
		t := &a.trades[i]
		row := trades[t.id]
		p := v.field.pairs[t.pair]
		switch {
		case row == nil:
			f.flag("trade %d was acknowledged, and is missing", t.id)
			continue
		case row.pair != p || row.buy != t.buy || row.price != t.price || row.amount != t.amount:
			f.flag("trade %d was acknowledged as %s %s %s at %s, and is there as %s %s at %s", t.id,
				sideName(t.buy), t.amount, p.name, t.price,
				sideName(row.buy), row.amount, row.price)
		default:
			f.trades++
		}
		own, known := older[t.maker]
		if rows[t.maker] != nil {
			own = true
		} else if t.maker <= a.newest.order && !known {
			if own, err = v.owns(ctx, r, a, t.maker); err != nil {
				return nil, err
			}
			older[t.maker] = own
		}
		if own {
			self[t.id] = true
		}
	}
	return self, nil
}

// owns reports whether an order is the account's: another's is not found.
func (v *verifier) owns(ctx context.Context, r *rest, a *account, id uint64) (bool, error) {
	err := r.get(ctx, a.users[0],
		fmt.Sprintf("/api/v1/order/%d/", id), func([]byte) error { return nil })
	var status *statusError
	if errors.As(err, &status) && status.status == 404 {
		return false, nil
	}
	return err == nil, err
}

// compareFills compares, for each pair and side, the filled amounts of the orders with the trades.
func (v *verifier) compareFills(f *findings, rows map[uint64]*orderRow, trades map[uint64]*tradeRow,
	self map[uint64]bool) {
	type key struct {
		pair *pair
		buy  bool
	}
	filled, traded := map[key]money.Total{}, map[key]money.Total{}
	for _, row := range rows {
		k := key{row.pair, row.buy}
		filled[k] = filled[k].Add(row.filled)
	}
	for id, t := range trades {
		k := key{t.pair, t.buy}
		traded[k] = traded[k].Add(t.amount)
		if self[id] {
			k.buy = !k.buy
			traded[k] = traded[k].Add(t.amount)
		}
	}
	for k := range traded {
		filled[k] = filled[k].Add(0)
	}
	for k, sum := range filled {
		if sum.Cmp(traded[k]) != 0 {
			f.flag("of its orders to %s %s, %s are filled, and its trades have %s",
				sideName(k.buy), k.pair.name, sum, traded[k])
		}
	}
}

// balances compares the wallets with the earlier ones plus the trades, and the reserves with the
// resting orders.
func (v *verifier) balances(ctx context.Context, r *rest, f *findings, a *account,
	rows map[uint64]*orderRow, trades map[uint64]*tradeRow, self map[uint64]bool, now funds,
	reserves bool) {
	in, out, rest := map[string]money.Balance{}, map[string]money.Balance{},
		map[string]money.Balance{}
	doubtful := map[string]string{} // currencies with unknown balances, and why
	add := func(m map[string]money.Balance, currency string, b money.Balance) {
		m[currency] = m[currency].Add(b)
	}
	for currency, h := range a.before {
		in[currency] = h.balance
	}
	for currency, sum := range a.banked {
		add(in, currency, sum)
	}
	for id, t := range trades {
		value := t.price.Times(t.amount).Balance()
		if self[id] {
			currency, changed, err := a.charge(ctx, r, t, out)
			if err != nil {
				f.skipped = append(f.skipped, "wallets of an account whose fees could not be read")
				return
			}
			if changed {
				doubtful[currency] = a.feesChanged(t.pair, currency)
			}
			continue
		}
		if t.buy {
			add(in, t.pair.base, t.amount.Balance())
			add(out, t.pair.quote, value)
		} else {
			add(out, t.pair.base, t.amount.Balance())
			add(in, t.pair.quote, value)
		}
		add(out, t.feeOf, t.fee)
	}
	for _, row := range rows {
		switch {
		case row.status != statusActive:
		case row.buy:
			add(rest, row.pair.quote, row.price.Times(row.amount).Balance())
		default:
			add(rest, row.pair.base, row.amount.Balance())
		}
	}
	f.skipped = slices.AppendSeq(f.skipped, maps.Values(doubtful))
	good := len(doubtful) == 0
	for currency := range union(in, out, nowOf(now)) {
		has := now[currency]
		if doubtful[currency] == "" &&
			in[currency].Cmp(has.balance.Add(out[currency])) != 0 {
			f.flag(
				"its balance is %s %s; from what it had before (%s) and its trades (+ %s in all, "+
					"- %s) it must be another", has.balance, currency,
				a.before[currency].balance, in[currency].Sub(a.before[currency].balance),
				out[currency])
			good = false
		}
		if reserves && has.reserve.Cmp(rest[currency]) != 0 {
			f.flag("%s %s are reserved, and its open orders hold %s", has.reserve, currency,
				rest[currency])
			good = false
		}
	}
	if good {
		f.good = 1
	}
}

func nowOf(h funds) map[string]money.Balance {
	m := map[string]money.Balance{}
	for c := range h {
		m[c] = money.Balance{}
	}
	return m
}

func union(all ...map[string]money.Balance) map[string]bool {
	u := map[string]bool{}
	for _, m := range all {
		for k := range m {
			if k != "" {
				u[k] = true
			}
		}
	}
	return u
}

// charge counts an account's cost of a trade with itself: two fees. The outgoing amount comes in
// again. It returns the currency of the maker's fee, and whether its rate changed after the load
// began: then that fee is unknown, and not counted.
func (a *account) charge(ctx context.Context, r *rest, t *tradeRow,
	out map[string]money.Balance) (currency string, changed bool, err error) {
	out[t.feeOf] = out[t.feeOf].Add(t.fee)
	currency, received := t.pair.base, t.amount.Balance()
	if t.buy {
		currency, received = t.pair.quote, t.price.Times(t.amount).Balance()
	}
	if a.fees == nil {
		if a.fees, err = a.makerFees(ctx, r); err != nil {
			return "", false, err
		}
	}
	rate := a.fees[t.pair.name]
	if rate != a.feesBefore[t.pair.name] {
		return currency, true, nil
	}
	out[currency] = out[currency].Add(rate.FeeRoundedUp(received))
	return currency, false, nil
}

// feesChanged returns why a balance is not verified.
func (a *account) feesChanged(p *pair, currency string) string {
	return fmt.Sprintf("the balance in %s of an account that traded %s with itself, while its "+
		"maker's fee changed from %s to %s", currency, p.name, a.feesBefore[p.name], a.fees[p.name])
}
