package operator

import (
	"encoding/json"

	"exchange/actors/committed"
	"exchange/core/money"
	"exchange/core/state"
)

// Lists of current settings: pairs, and fees.

type pairAnswer struct {
	Pair              string        `json:"pair"`
	PricePrecision    int           `json:"price_precision" doc:"Decimals of prices"`
	AmountPrecision   int           `json:"amount_precision" doc:"Decimals of amounts"`
	PriceTick         money.Price   `json:"price_tick" doc:"Prices are multiples of this"`
	AmountStep        money.Amount  `json:"amount_step" doc:"Amounts are multiples of this"`
	MinimumOrderSize  money.Amount  `json:"minimum_order_size" doc:"Least amount"`
	MaximumOrderSize  money.Amount  `json:"maximum_order_size" doc:"Largest amount"`
	MinimumOrderValue money.Balance `json:"minimum_order_value" doc:"Least value of an order"`
	PriceBand         json.Number   `json:"price_band" doc:"How far off the last price; 0: any"`
	ratesAnswer
	Last   money.Price `json:"last" doc:"Price of the last trade; 0: there was none"`
	Open   int         `json:"open_orders" doc:"Number of open orders"`
	Halted bool        `json:"halted" doc:"Whether orders are refused, and cancels taken"`
	Since  string      `json:"since"`
}

type ratesAnswer struct {
	Maker json.Number `json:"maker"`
	Taker json.Number `json:"taker"`
}

func newRates(r state.FeeRates) ratesAnswer {
	return ratesAnswer{json.Number(r.Maker.String()), json.Number(r.Taker.String())}
}

type pairsAnswer struct {
	Pairs []pairAnswer `json:"pairs" doc:"The pairs"`
}

// listPairs returns all configured pairs, in the order of the configuration.
func listPairs(c *call, _ *nothing) (*pairsAnswer, error) {
	q, since := new(committed.PairStates), map[string]string(nil)
	if err := c.ask(q); err != nil {
		return nil, err
	}
	list := []pairAnswer{}
	for _, p := range c.engine.Pairs() {
		now := q.List[p.Number-1]
		r := p.Rules()
		a := pairAnswer{Pair: p.Name, PricePrecision: p.PricePrecision,
			AmountPrecision: p.AmountPrecision, PriceTick: p.PriceTick, AmountStep: p.AmountStep,
			MinimumOrderSize: r.MinimumOrderSize, MaximumOrderSize: r.MaximumOrderSize,
			MinimumOrderValue: r.MinimumOrderValue, PriceBand: json.Number(r.PriceBand.String()),
			ratesAnswer: newRates(r.Fees), Last: now.Last, Open: now.Open, Halted: now.Halted}
		if a.Halted {
			if since == nil {
				since = c.haltTimes()
			}
			a.Since = since[p.Name]
		}
		list = append(list, a)
	}
	return &pairsAnswer{list}, nil
}

type pairFees struct {
	Pair string `json:"pair"`
	ratesAnswer
}

type ownFees struct {
	Account string `json:"account"`
	ID      uint32 `json:"id"`
	pairFees
}

type feesAnswer struct {
	Pairs    []pairFees `json:"pairs" doc:"Usual rates; only on the first page"`
	Accounts []ownFees  `json:"accounts" doc:"Accounts with rates of their own"`
	Next     uint64     `json:"next,omitempty"`
}

// A FeesQuery is a page of accounts with rates of their own.
type feesQuery struct{ accountPage }

// listFees returns the usual rates, and a page of accounts with rates of their own: those above
// `after`, in order of their ids. All rates of an account are on one page.
func listFees(c *call, q *feesQuery) (*feesAnswer, error) {
	limit := int(q.Limit)
	own := &committed.OwnFees{After: q.After, Limit: limit}
	a := &feesAnswer{Pairs: []pairFees{}, Accounts: []ownFees{}}
	if q.After == 0 {
		for _, p := range c.engine.Pairs() {
			a.Pairs = append(a.Pairs, pairFees{p.Name, newRates(p.Rules().Fees)})
		}
	}
	for more := true; more; more = own.After != 0 && len(own.List) < limit {
		if err := c.ask(own); err != nil {
			return nil, err
		}
	}
	for i := range own.List {
		x := &own.List[i]
		a.Accounts = append(a.Accounts, ownFees{x.Account.Name, x.Account.ID,
			pairFees{c.engine.Market(x.Pair).Name, newRates(x.FeeRates)}})
	}
	a.Next = own.After
	return a, nil
}
