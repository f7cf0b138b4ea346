package api

import (
	"sync/atomic"

	"exchange/actors"
	"exchange/gateway/encode"
)

// An API answers calls from one engine.
type API struct {
	engine *actors.Engine
	// Answers that follow from the configuration alone, encoded once.
	currencies []byte
	pairs      [][]byte // an object each, in order
	rules      [][]byte // as exchange-info shows them, up to the status
	limits     []byte
	batch      int // most items of a batch
	tickers    atomic.Pointer[tickerList]
}

// New makes the API of an engine, for an edge with these rates.
func New(e *actors.Engine, r Rates) *API {
	a := &API{engine: e, batch: mostItems(&r, e.Limits())}
	a.limits = appendLimits(nil, &r, e.Limits(), a.batch)
	b := []byte{'['}
	for i, c := range e.Currencies() {
		if i > 0 {
			b = append(b, ',')
		}
		b = encode.Text(append(b, `{"sign":`...), c.Sign)
		b = encode.Text(append(b, `,"short_name":`...), c.Code)
		b = append(b, '}')
	}
	a.currencies = append(b, ']')
	for _, p := range e.Pairs() {
		a.pairs = append(a.pairs, appendPair(nil, p))
		a.rules = append(a.rules, appendAllRules(nil, p))
	}
	return a
}

// mostItems returns how many items a batch may have: a larger one would never find as many slots or
// tokens as it needs at once.
func mostItems(r *Rates, l actors.Limits) int {
	most := min(l.Batch, l.InFlightPerAccount-l.InFlightPerAccount/8,
		l.InFlight-l.InFlightCancels)
	for _, rate := range [...]Rate{r.Commands, r.Cancels} {
		if rate != (Rate{}) {
			most = min(most, rate.Burst)
		}
	}
	return max(most, 1)
}

// Engine returns the engine that answers.
func (a *API) Engine() *actors.Engine { return a.engine }
