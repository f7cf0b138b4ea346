package main

import (
	"testing"

	"exchange/config"
	"exchange/gateway"
)

func TestMonitoringIsToldWhatThisProgramIs(t *testing.T) {
	cfg := config.Demo()
	if err := cfg.Finish(); err != nil {
		t.Fatal(err)
	}
	if b, v := gatewayOptions(cfg, "", nil).Build, buildVersion(); b.Version == "" || b.Version != v.Version || b.Commit != v.Commit {
		t.Errorf("%+v, the program is %+v", b, v)
	}
}

func TestRateLimitsComeFromTheConfigurationAndOneFlagSwitchesThemOff(t *testing.T) {
	f := func(change func(*config.Config), account, address gateway.Rate) {
		t.Helper()
		cfg := config.Demo()
		change(cfg)
		if err := cfg.Finish(); err != nil {
			t.Fatal(err)
		}
		if o := gatewayOptions(cfg, "", nil); o.AccountRate != account || o.AddressRate != address || o.RateEntries != 100_000 {
			t.Errorf("account %+v, address %+v, %d entries", o.AccountRate, o.AddressRate, o.RateEntries)
		}
	}
	unset := gateway.Rate{PerSecond: 100, Burst: 200}
	f(func(*config.Config) {}, unset, unset)
	f(func(c *config.Config) { c.Limits.AccountRate, c.Limits.AccountBurst = 7, 8 }, gateway.Rate{PerSecond: 7, Burst: 8}, unset)
	f(func(c *config.Config) { c.Limits.AddressRate, c.Limits.AddressBurst = 0, 9 }, unset, gateway.Rate{PerSecond: 0, Burst: 9})
	f(func(c *config.Config) { c.NoRateLimits = true }, gateway.Rate{}, gateway.Rate{})
}
