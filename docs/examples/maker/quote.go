package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/shopspring/decimal"
)

// resolve ends orders of which no answer came. One that is not found now was never carried out.
func (m *maker) resolve() error {
	for id := range maps.Clone(m.unknown) {
		a, err := m.ask("order-cancel", fields{"client_order_id": id})
		if err != nil {
			return err
		}
		if a.Status == 200 || a.Status == 400 {
			delete(m.unknown, id)
		}
	}
	return nil
}

// carryOut carries out commands, in a batch if there are several, until the account shows them.
func (m *maker) carryOut(commands ...fields) error {
	for _, c := range commands {
		if id, ok := c["client_order_id"].(string); ok {
			m.unknown[id] = true
		}
	}
	answers, err := m.send(commands)
	if err != nil {
		return err
	}
	for i, a := range answers {
		var body struct {
			Oid   uint64
			Price decimal.Decimal
			Code  string
		}
		if err := json.Unmarshal(a.Body, &body); err != nil {
			return err
		}
		if id, ok := commands[i]["client_order_id"].(string); ok && body.Code != "outcome_unknown" {
			delete(m.unknown, id)
		}
		late := time.After(patience)
		for a.Status < 300 && !m.account.Shows(body.Oid, body.Price) {
			if err := m.socket.wait(late); err != nil {
				return err
			}
		}
	}
	return nil
}

// send sends commands, and returns their answers.
func (m *maker) send(commands []fields) ([]answer, error) {
	if len(commands) == 1 {
		name := map[any]string{"place": "order", "amend": "order-amend"}[commands[0]["do"]]
		f := maps.Clone(commands[0])
		delete(f, "do")
		a, err := m.ask(name, f)
		return []answer{a}, err
	}
	a, err := m.ask("order-batch", fields{"orders": commands})
	if err != nil || a.Status != 200 {
		return slices.Repeat([]answer{a}, len(commands)), err
	}
	var body struct{ Results []answer }
	err = json.Unmarshal(a.Body, &body)
	return body.Results, err
}

// position returns what was bought since the first snapshot, less what was sold.
func (m *maker) position() decimal.Decimal {
	return m.account.Balances[m.coin].Balance.Sub(m.account.Begin)
}

// quote has an order on each side of a price that falls as the maker holds more.
func (m *maker) quote() error {
	spread := m.price.Div(decimal.NewFromInt(1000))
	middle := m.price.Sub(spread.Mul(m.position()).Div(m.size).Div(decimal.NewFromInt(10)))
	free := func(currency string) decimal.Decimal {
		b := m.account.Balances[currency]
		return b.Balance.Sub(b.Reserve)
	}
	buy, sell := middle.Sub(spread), middle.Add(spread)
	if p := Prices(m.book.Sell); len(p) > 0 { // a post-only order must not trade at once
		buy = decimal.Min(buy, decimal.RequireFromString(p[0]).Sub(m.tick))
	}
	if p := Prices(m.book.Buy); len(p) > 0 {
		sell = decimal.Max(sell, decimal.RequireFromString(p[len(p)-1]).Add(m.tick))
	}
	var commands []fields
	for _, w := range []struct {
		side        string
		price, most decimal.Decimal
	}{{"buy", buy, free(m.money).Div(m.price)}, {"sell", sell, free(m.coin)}} {
		price := whole(w.price, m.tick)
		amount := whole(decimal.Min(m.size, w.most), m.step)
		switch o, ok := m.account.Open(w.side); {
		case ok && !o.Price.Equal(price):
			commands = append(commands, fields{"do": "amend", "order": o.ID, "price": price})
		case !ok && amount.IsPositive():
			commands = append(commands, fields{"do": "place", "pair": m.pair, "type": w.side,
				"price": price, "amount": amount, "post_only": 1, "client_order_id": m.name()})
		}
	}
	if len(commands) == 0 {
		return nil
	}
	return m.carryOut(commands...)
}

// whole returns a number as a multiple of a step that is not larger.
func whole(x, step decimal.Decimal) decimal.Decimal { return x.Div(step).Floor().Mul(step) }

func (m *maker) name() string {
	m.names++
	return fmt.Sprintf("maker-%d", m.names)
}

// flatten takes all orders back, and trades until the account has the coins that it began with.
func (m *maker) flatten() error {
	side, amount := "sell", whole(m.position().Abs(), m.step)
	if m.position().IsNegative() {
		side = "buy"
	}
	_, buys := m.account.Open("buy")
	_, sells := m.account.Open("sell")
	switch {
	case buys || sells:
		_, err := m.ask("order-cancel-all", fields{"pair": m.pair})
		for late := time.After(time.Second); err == nil && (buys || sells); {
			_, buys = m.account.Open("buy")
			_, sells = m.account.Open("sell")
			if buys || sells {
				err = m.socket.wait(late)
			}
		}
		return err
	case amount.IsPositive():
		return m.carryOut(fields{"do": "place", "pair": m.pair, "type": side,
			"order_type": "market", "amount": amount, "client_order_id": m.name()})
	}
	m.done = len(m.unknown) == 0
	return nil
}
