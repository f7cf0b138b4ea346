package operator

import (
	"encoding/json"

	"exchange/actors/committed"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/gateway/api"
)

// Lists of what is set: pairs, and fees.

type pairAnswer struct {
	Pair              string        `json:"pair"`
	PricePrecision    int           `json:"price_precision"`
	AmountPrecision   int           `json:"amount_precision"`
	PriceTick         money.Price   `json:"price_tick"`
	AmountStep        money.Amount  `json:"amount_step"`
	MinimumOrderSize  money.Amount  `json:"minimum_order_size"`
	MaximumOrderSize  money.Amount  `json:"maximum_order_size"`
	MinimumOrderValue money.Balance `json:"minimum_order_value"`
	PriceBand         json.Number   `json:"price_band"` // 0: none
	ratesAnswer
	Last   money.Price `json:"last"` // price of the last trade; 0: there was none
	Open   int         `json:"open_orders"`
	Halted bool        `json:"halted"` // orders are refused, and cancels are taken
	Since  string      `json:"since"`  // "": it is not halted, or that is not known any more
}

type ratesAnswer struct {
	Maker json.Number `json:"maker"`
	Taker json.Number `json:"taker"`
}

func newRates(r state.FeeRates) ratesAnswer {
	return ratesAnswer{json.Number(r.Maker.String()), json.Number(r.Taker.String())}
}

type pairsAnswer struct {
	Pairs []pairAnswer `json:"pairs"`
}

// listPairs returns all configured pairs, in the order of the configuration.
func listPairs(c *call) (any, error) {
	q, since := new(committed.PairStates), map[string]string(nil)
	if err := c.read(q); err != nil {
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
				since = c.closings()
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
	Pairs    []pairFees `json:"pairs"` // usual rates; of the first page alone
	Accounts []ownFees  `json:"accounts"`
	// id of the last account, if more accounts may follow it
	Next uint64 `json:"next,omitempty"`
}

// listFees returns the usual rates, and a page of accounts with rates of their own: those above
// `after`, in order of their ids. All rates of an account are on one page.
func listFees(c *call) (any, error) {
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	q := &committed.OwnFees{Limit: limit}
	if q.After, err = c.after(); err != nil {
		return nil, err
	}
	a := feesAnswer{Pairs: []pairFees{}, Accounts: []ownFees{}}
	if q.After == 0 {
		for _, p := range c.engine.Pairs() {
			a.Pairs = append(a.Pairs, pairFees{p.Name, newRates(p.Rules().Fees)})
		}
	}
	for more := true; more; more = q.After != 0 && len(q.List) < limit {
		if err := c.read(q); err != nil {
			return nil, err
		}
	}
	for i := range q.List {
		x := &q.List[i]
		a.Accounts = append(a.Accounts, ownFees{x.Account.Name, x.Account.ID,
			pairFees{c.engine.Market(x.Pair).Name, newRates(x.FeeRates)}})
	}
	a.Next = q.After
	return a, nil
}

// after returns the id behind which a page of accounts begins; 0: with the first.
func (c *call) after() (id uint64, err error) {
	text := c.query("after")
	if len(text) == 0 {
		return 0, nil
	}
	id, ok := api.Integer(text)
	if !ok {
		return 0, &badRequest{"after: the id of an account"}
	}
	return id, nil
}
