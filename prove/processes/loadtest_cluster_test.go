//go:build prove

package processes

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"exchange/loadtest"
)

// The load tester drives three nodes at once, and reads at each the requests acknowledged by
// others. The leader is killed meanwhile and comes back; then a follower is killed permanently.
func TestALoadOnThreeNodesIsVerifiedAcrossThem(t *testing.T) {
	c := newCluster(t)
	led := c.led()
	o := testOf(led)
	o.Addresses = nil
	for _, s := range c.nodes {
		o.Addresses = append(o.Addresses, s.Listen)
	}
	o.Accounts, o.Connections, o.Instructed = 6, 12, 30
	o.Mix = loadtest.Mix{Place: 55, Cancel: 30, Read: 15}
	o.Subscribers = map[string]int{"diff": 3, "trades": 3, "own": 3}

	r := loaded(t, o, func() {
		led.Kill()
		next := c.leader(led)
		led.Run()
		c.follows(led, next)
		c.handsOver(led) // which has the operator's listener
	})
	v := r.Verification
	if r.Unknown == 0 || r.Differs() || v.Incomplete != "" || v.Audit != "clean" ||
		v.Orders < 50 || v.Across != v.Orders || v.Witnessed < 20 || v.Alike != 1 || v.Books != 3 ||
		len(v.NotRead) > 0 {
		t.Errorf("%+v", v)
	}
	if s := r.Server; s == nil || s.Node == "" || s.Leader == "" || s.Silent != "" ||
		s.Restarts != 1 || s.Version == "" {
		t.Errorf("%+v", s)
	}
	for _, a := range r.Addresses {
		if a.Connections != 4 || a.Done == 0 || a.AccountsRead == 0 || a.Subscribers != 3 ||
			a.Down == 0 || a.Address == led.Listen && (a.Unknown == 0 || len(a.Outages) == 0) {
			t.Errorf("%+v", a)
		}
	}

	killed := c.others(led)[0]
	r = loaded(t, o, killed.Kill)
	v = r.Verification
	if r.Differs() || v.Incomplete != "" || v.Audit != "clean" || v.Orders < 50 ||
		v.Across != v.Orders || v.Alike != 1 || !slices.Equal(v.NotRead, []string{killed.Listen}) {
		t.Errorf("%+v", v)
	}
	for _, a := range r.Addresses {
		n := len(a.Outages)
		if gone := a.Address == killed.Listen; gone != (n > 0 && a.Outages[n-1].AtEnd) ||
			gone != (a.AccountsRead == 0) {
			t.Errorf("%+v", a)
		}
	}
}

// loaded runs a load test, calls a function after its first second, and returns the report. The
// load continues for three seconds after the call, so that restarted processes serve again.
func loaded(t *testing.T, o loadtest.Options, fault func()) *loadtest.Report {
	t.Helper()
	passed := make(seconds, 3600)
	o.Duration, o.Progress = time.Hour, passed
	ctx, end := context.WithCancel(context.Background())
	defer end()
	type result struct {
		r   *loadtest.Report
		err error
	}
	ended := make(chan result, 1)
	go func() { r, err := loadtest.Run(ctx, o); ended <- result{r, err} }()
	pass := func(n int) {
		for range n {
			select {
			case <-passed:
			case x := <-ended:
				t.Fatalf("the load ends early: %+v, %v", x.r, x.err)
			}
		}
	}
	pass(1)
	fault()
	pass(len(passed) + 3)
	end()
	x := <-ended
	if x.err != nil {
		t.Fatal(x.err)
	}
	return x.r
}

// seconds gets an element for each second of progress of a load of an hour.
type seconds chan struct{}

func (s seconds) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("s of 1h0m0s: ")) {
		s <- struct{}{}
	}
	return len(b), nil
}
