package api

import (
	"bytes"
	"sync/atomic"

	"exchange/actors"
	"exchange/gateway/encode"
)

// An API answers calls from one engine, or from a follower, and sends commands.
type API struct {
	public     *actors.Public
	commands   actors.Commands // nil: public calls only
	leads      func() error    // set by Lead; nil: this process is a follower
	currencies []byte          // answer of currencies/, encoded once
	demo       []byte          // last member of a demo's exchange-info
	configured atomic.Pointer[configAnswers]
	tickers    atomic.Pointer[tickerList]
}

// configAnswers are encoded parts of answers that depend only on the current configuration.
type configAnswers struct {
	pairs    [][]byte // objects of pairs/
	rules    [][]byte // pairs of exchange-info, up to the status
	limits   []byte
	deposits []byte // members that only a signed exchange-info has
	batch    int    // maximum of items of a batch
}

// New makes the API for the data of p, without rates until Configure. Clients' commands go to c;
// nil: public calls only.
func New(p *actors.Public, c actors.Commands) *API {
	a := &API{public: p, commands: c}
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
	a.Configure(Rates{}, nil)
	return a
}

// Configure updates the answers about the configuration: an edge's rates, the engine's limits and
// rules, and, for keys that may read, deposit instructions, by currency code. Unknown currencies
// are ignored. One goroutine at a time calls it, also while calls run.
func (a *API) Configure(r Rates, instructions map[string]string) {
	p := a.public
	t := &configAnswers{batch: mostItems(&r, p.Limits()),
		deposits: a.encodeInstructions(instructions)}
	t.limits = appendLimits(nil, &r, p.Limits(), t.batch)
	for _, pair := range p.Pairs() {
		r := pair.Rules()
		t.pairs = append(t.pairs, appendPair(nil, r))
		t.rules = append(t.rules, appendAllRules(nil, r))
	}
	a.configured.Store(t)
}

// mostItems returns the maximum of items of a batch. A larger batch could never be admitted: it
// would need more slots or tokens at once than exist.
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

// Lead makes the API serve as the leader. ready returns nil while the leader takes commands, also
// during maintenance. Lead is called before the API's first use.
func (a *API) Lead(ready func() error) *API {
	a.leads = ready
	return a
}

// A DemoKey is a public API key, with its secret.
type DemoKey struct{ Account, Key, Secret string }

// Demo adds a demo's keys to exchange-info; without keys it does nothing. It is called before the
// API's first use.
func (a *API) Demo(keys []DemoKey) *API {
	for i, k := range keys {
		begin := `},{"account":`
		if i == 0 {
			begin = `,"demo":[{"account":`
		}
		a.demo = encode.Text(append(a.demo, begin...), k.Account)
		a.demo = encode.Text(append(a.demo, `,"key":`...), k.Key)
		a.demo = encode.Text(append(a.demo, `,"secret":`...), k.Secret)
	}
	if len(keys) > 0 {
		a.demo = append(a.demo, "}]"...)
	}
	return a
}

// encodeInstructions encodes the deposit instructions of currencies.
func (a *API) encodeInstructions(instructions map[string]string) []byte {
	b := []byte(`,"deposit_instructions":{`)
	for _, c := range a.public.Currencies() {
		if text := instructions[c.Code]; text != "" {
			b = append(encode.Text(append(encode.Text(b, c.Code), ':'), text), ',')
		}
	}
	return append(bytes.TrimSuffix(b, []byte{','}), '}')
}

// Commands returns the receiver of clients' commands; nil: none, see Serves.
func (a *API) Commands() actors.Commands { return a.commands }

// Public returns the public data.
func (a *API) Public() *actors.Public { return a.public }

// Serves reports whether calls of an operation can be answered.
func (a *API) Serves(o *Operation) bool {
	switch {
	case o.leads:
		return a.leads != nil
	case o.Private, o.Probe:
		return a.commands != nil || o.Early
	}
	return true
}

// Ready returns nil while the API answers all of its calls, except for load and maintenance.
func (a *API) Ready() error {
	switch {
	case a.leads != nil:
		return a.leads()
	case a.commands != nil:
		return a.commands.Confirmed()
	}
	return actors.ErrNotConfirmed
}
