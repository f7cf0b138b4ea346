package api

import (
	"strconv"
	"sync/atomic"

	"exchange/actors"
	"exchange/gateway/encode"
)

// An API answers calls from one engine.
type API struct {
	engine *actors.Engine
	// What follows from the configuration alone, encoded once.
	currencies []byte
	pairs      [][]byte // an object each, in order
	tickers    atomic.Pointer[tickerList]
}

// New makes the API of an engine.
func New(e *actors.Engine) *API {
	a := &API{engine: e}
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
		b := encode.Text([]byte(`{"name":`), p.Name)
		b = encode.Text(append(b, `,"currency1":`...), p.Base)
		b = encode.Text(append(b, `,"currency2":`...), p.Quote)
		b = p.MinimumOrderSize.Append(append(b, `,"minimum_order_size":`...))
		b = p.MaximumOrderSize.Append(append(b, `,"maximum_order_size":`...))
		b = p.MinimumOrderValue.Append(append(b, `,"minimum_order_value":`...))
		b = strconv.AppendInt(append(b, `,"price_precision":`...), int64(p.PricePrecision), 10)
		b = strconv.AppendInt(append(b, `,"amount_precision":`...), int64(p.AmountPrecision), 10)
		a.pairs = append(a.pairs, append(b, '}'))
	}
	return a
}

// Engine returns the engine that answers.
func (a *API) Engine() *actors.Engine { return a.engine }
