package crash

import (
	"context"
	"slices"
	"testing"
	"time"

	"exchange/loadtest"
)

// The load tester drives three nodes at once, and reads at one what another one acknowledged. The
// node that leads is killed meanwhile and comes back; then one that follows is killed for good.
func TestALoadOnThreeNodesIsVerifiedAcrossThem(t *testing.T) {
	c := newCluster(t)
	led := c.leader(nil)
	for _, s := range c.others(led) {
		c.follows(s, led)
	}
	o := testOf(led)
	o.Addresses = nil
	for _, s := range c.nodes {
		o.Addresses = append(o.Addresses, s.Listen)
	}
	o.Accounts, o.Connections, o.Instructed, o.Duration = 6, 12, 30, 4*time.Second
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

// loaded runs a load test, does something after its first second, and returns the report.
func loaded(t *testing.T, o loadtest.Options, fault func()) *loadtest.Report {
	t.Helper()
	seen := make(chan struct{})
	o.Progress = &watched{text: "1s of 4s: ", seen: seen}
	type result struct {
		r   *loadtest.Report
		err error
	}
	ended := make(chan result, 1)
	go func() { r, err := loadtest.Run(context.Background(), o); ended <- result{r, err} }()
	select {
	case <-seen:
	case x := <-ended:
		t.Fatal(x.err)
	}
	fault()
	x := <-ended
	if x.err != nil {
		t.Fatal(x.err)
	}
	return x.r
}
