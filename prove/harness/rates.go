package harness

import (
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"exchange/gateway/edge"
)

// A TestClock stands still until the test moves it.
type TestClock struct{ Ns atomic.Int64 }

func (c *TestClock) Pass(d time.Duration) { c.Ns.Add(int64(d)) }

// Limited is the exchange of market, started again with limits on requests a second. The peer of
// all its connections is 0.0.0.0, which is a proxy that is trusted: see from.
func Limited(t *testing.T, rates func(*edge.Options)) (*Exchange, *TestClock) {
	h, c := Traded(t), &TestClock{}
	h.Retune(func(o *edge.Options) {
		rates(o)
		o.RateEntries, o.Clock = 1000, c.Ns.Load
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/32"),
			netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")}
	})
	return h, c
}

// Every sets all limits on requests to one rate, and lets the pages of the API pass.
func Every(o *edge.Options, rate edge.Rate) {
	o.PublicRate, o.ReadRate, o.CommandRate, o.CancelRate, o.FailureRate, o.ProbeRate = rate, rate,
		rate, rate, rate, rate
	o.DocsRate = edge.Rate{PerSecond: 1_000_000_000, Burst: 1_000_000_000}
	if o.RateEntries == 0 {
		o.RateEntries = 100
	}
}

// From is the header in which a proxy names the origin of a request.
func From(address string) []string { return []string{"X-Forwarded-For", address} }
