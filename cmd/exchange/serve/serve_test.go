package serve

import (
	"testing"

	"exchange/cmd/exchange/cli"
	"exchange/config"
	"exchange/gateway/edge"
)

func TestMetricsNameTheProgramsVersion(t *testing.T) {
	cfg := config.Demo()
	worked(t, cfg.Finish())
	if b, v := gatewayOptions(cfg, nil).Build,
		cli.BuildVersion(); b.Version == "" || b.Version != v.Version || b.Commit != v.Commit {
		t.Errorf("%+v, the program is %+v", b, v)
	}
}

func TestRateLimitsComeFromTheConfigurationAndOneFlagSwitchesThemOff(t *testing.T) {
	f := func(change func(*config.Config),
		public, reads, commands, cancels, failures edge.Rate) {
		t.Helper()
		cfg := config.Demo()
		change(cfg)
		worked(t, cfg.Finish())
		o := gatewayOptions(cfg, nil)
		want := [...]edge.Rate{public, reads, commands, cancels, failures}
		if got := [...]edge.Rate{o.PublicRate, o.ReadRate, o.CommandRate, o.CancelRate,
			o.FailureRate}; got != want || o.RateEntries != 100_000 {
			t.Errorf("%+v, want %+v; %d entries", got, want, o.RateEntries)
		}
		if off := o.ProbeRate == (edge.Rate{}) &&
			o.DocsRate == (edge.Rate{}) && o.WebRate == (edge.Rate{}); off !=
			cfg.NoRateLimits {
			t.Errorf("probes %+v, docs %+v, pages %+v", o.ProbeRate, o.DocsRate, o.WebRate)
		}
	}
	unset := edge.Rate{PerSecond: 100, Burst: 200}
	f(func(*config.Config) {}, unset, unset, unset, unset, unset)
	f(func(c *config.Config) {
		l := &c.Limits
		l.PublicRate, l.ReadRate, l.CommandRate, l.CancelRate, l.FailureRate = 1, 2, 3, 4, 0
		l.PublicBurst, l.ReadBurst, l.CommandBurst, l.CancelBurst, l.FailureBurst = 6, 7, 8, 9, 10
	}, edge.Rate{PerSecond: 1, Burst: 6}, edge.Rate{PerSecond: 2, Burst: 7},
		edge.Rate{PerSecond: 3, Burst: 8},
		edge.Rate{PerSecond: 4, Burst: 9}, edge.Rate{})
	off := edge.Rate{}
	f(func(c *config.Config) { c.NoRateLimits = true }, off, off, off, off, off)
}
