package operator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"exchange/actors"
	"exchange/gateway/edge"
	"exchange/gateway/operator"
	"exchange/prove/harness"
)

// A reloads answers operators like a process that reloads.
type reloads struct {
	done *operator.Reloaded
	err  error
	n    int
}

func (r *reloads) Reload(context.Context) (*operator.Reloaded, error) {
	r.n++
	return r.done, r.err
}

func TestAnOperatorReloadsTheConfiguration(t *testing.T) {
	h := harness.New(t, nil)
	h.Stop()
	r := &reloads{}
	h.Tune = func(o *edge.Options) { o.Reload = r }
	h.Start()
	ask := harness.AsOperator(t, h.Gateway)
	const path = "/operator/v1/config/reload"
	for _, x := range []struct {
		done   *operator.Reloaded
		err    error
		status int
		want   string
	}{
		{&operator.Reloaded{}, nil, 200, `{"applied":[],"faults":[]}`},
		{&operator.Reloaded{Applied: []operator.ReloadedOption{{Key: "log.level", Before: "info",
			After: "warn", Origin: "x.yaml line 3"}}, Faults: []string{"no token"}}, nil, 200,
			`{"applied":[{"key":"log.level","before":"info","after":"warn",` +
				`"origin":"x.yaml line 3"}],"faults":["no token"]}`},
		{nil, actors.NewRequestError("listen needs a restart"), 400,
			harness.Refusal("listen needs a restart")},
		{nil, errors.New("nothing was done"), 503, harness.Refusal("nothing was done")},
	} {
		r.done, r.err = x.done, x.err
		harness.Says(t, path, ask("POST", path, "{}"), x.status, x.want)
	}
	r.err = fmt.Errorf("%w: it ends", operator.ErrNotNow)
	now := ask("POST", path, "{}")
	harness.Says(t, "not now", now, 503, harness.Refusal("nothing was done: it ends"))
	if string(now.Header.Peek("Retry-After")) == "" {
		t.Error("no header shows that nothing was done")
	}
	if actions := ask("GET", "/operator/v1/actions", "").Body; r.n != 5 ||
		strings.Count(actions, `"words":"took up another configuration: log.level warn instead of info"`) != 1 {
		t.Errorf("%d reloads, and the log of actions is %s", r.n, actions)
	}
	r.done, r.err = &operator.Reloaded{}, nil
	h.Gateway.SetFollower(nil, nil)
	harness.Says(t, "a follower", ask("POST", path, "{}"), 200, `{"applied":[],"faults":[]}`)
	harness.Says(t, "without a configuration",
		harness.AsOperator(t, harness.New(t, nil).Gateway)("POST", path,
			"{}"), 400, harness.Refusal("this process has no configuration to take up"))
}

// Limits and instructions change while clients are served, and each answer has one or the other.
func TestLimitsChangeUnderLoad(t *testing.T) {
	h, _ := harness.Limited(t, func(o *edge.Options) {
		o.PublicRate, o.ReadRate = harness.PerSecond(1000, 1000), harness.PerSecond(1000, 1000)
		o.DepositInstructions = map[string]string{"BTC": "one"}
	})
	stop, served := make(chan struct{}), make(chan struct{}, 1)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			select {
			case <-stop:
				return
			case served <- struct{}{}:
			}
			a := h.Do("GET", "/api/v1/exchange-info/", "", "", harness.From("192.0.2.1")...)
			i := harness.Decode[harness.ExchangeInfo](t, a)
			r := i.Limits.Rates["reads"]
			if r == nil || r.PerSecond != r.Burst {
				t.Errorf("clients receive %s", a.Body)
				return
			}
		}
	})
	l := h.Gateway.Options().Limits
	for i := range 100 {
		<-served
		l.ReadRate = harness.PerSecond(1000+i, 1000+i)
		l.PublicRate = l.ReadRate
		now := l
		all.Go(func() { h.Gateway.SetLimits(now) })
		all.Go(func() { h.Gateway.SetDepositInstructions(map[string]string{"BTC": "two"}) })
		h.Gateway.SetEngine(h.Engine)
		all.Go(func() { h.Gateway.Reconfigured(i%2 == 0) })
	}
	close(stop)
	all.Wait()
	l.ReadRate = harness.PerSecond(2000, 2000)
	h.Gateway.SetLimits(l)
	a := h.Get("alice", "/api/v1/exchange-info/")
	if i := harness.Decode[harness.ExchangeInfo](t, a); i.Limits.Rates["reads"].Burst != 2000 ||
		!strings.Contains(a.Body, `"BTC":"two"`) {
		t.Errorf("in the end clients receive %s", a.Body)
	}
}

func TestMetricsShowReloads(t *testing.T) {
	h := harness.New(t, nil)
	scrape := harness.Scraping(t, h.Gateway)
	began := scrape().Value("exchange_config_applied_timestamp_seconds")
	if began < 1.7e9 {
		t.Errorf("the configuration counts since %v", began)
	}
	h.Gateway.SetConfigured(7)
	for _, x := range []struct {
		taken bool
		stale float64
		later bool
	}{{false, 1, false}, {true, 0, true}, {false, 1, true}} {
		h.Gateway.Reconfigured(x.taken)
		s := scrape()
		at := s.Value("exchange_config_applied_timestamp_seconds")
		if got := s.Value("exchange_config_stale"); got != x.stale || (at >= began) != x.later {
			t.Errorf("%+v: stale is %v, since %v", x, got, at)
		}
	}
}
