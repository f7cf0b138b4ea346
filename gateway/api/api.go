package api

import (
	"sync/atomic"

	"exchange/actors"
	"exchange/gateway/encode"
)

// An API answers calls from one engine, or from what a node that follows shows.
type API struct {
	public *actors.Public
	engine *actors.Engine // nil: there is none, and public calls alone can be answered
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
	a := NewPublic(e.Public, r)
	a.engine = e
	return a
}

// NewPublic makes the API of what is public, for an edge with these rates.
func NewPublic(p *actors.Public, r Rates) *API {
	a := &API{public: p, batch: mostItems(&r, p.Limits())}
	a.limits = appendLimits(nil, &r, p.Limits(), a.batch)
	b := []byte{'['}
	for i, c := range p.Currencies() {
		if i > 0 {
			b = append(b, ',')
		}
		b = encode.Text(append(b, `{"sign":`...), c.Sign)
		b = encode.Text(append(b, `,"short_name":`...), c.Code)
		b = append(b, '}')
	}
	a.currencies = append(b, ']')
	for _, pair := range p.Pairs() {
		a.pairs = append(a.pairs, appendPair(nil, pair))
		a.rules = append(a.rules, appendAllRules(nil, pair))
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

// Engine returns the engine that answers; nil: there is none, see Serves.
func (a *API) Engine() *actors.Engine { return a.engine }

// Public returns what everybody is shown.
func (a *API) Public() *actors.Public { return a.public }

// Serves reports whether calls of an operation can be answered.
func (a *API) Serves(o *Operation) bool {
	return a.engine != nil || o.Early || !o.Private && !o.Probe
}
