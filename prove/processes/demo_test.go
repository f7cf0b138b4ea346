//go:build prove

package processes

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exchange/persistence/redistest"
	"exchange/prove/exchangetest"
)

// The demo's keys are public. Its store must never be served as a real one, and the demo must not
// write its keys into a real store.
func TestTheDemoAndRealExchangesStayApart(t *testing.T) {
	served := func(s *exchangetest.Server, args []string) {
		t.Helper()
		s.Args = args
		s.Start()
	}
	s := exchangetest.New(t, "pebble:"+t.TempDir())
	own := slices.Clone(s.Args)
	s.Demo()
	demo := slices.Clone(s.Args)
	served(s, demo)
	// it is the same store with more accounts
	does(t, s, "account", "create", "zoe")
	s.Kill()
	served(s, demo)
	s.Kill()

	example, _, _ := s.Command("config", "example") // it has the demo's pairs
	own[slices.Index(own, "--config")+1] = write(t, example)
	for _, key := range []string{"", "demo-alice", "demo-bob"} {
		if key != "" {
			served(s, demo)
			does(t, s, "key", "revoke", key)
			if key == "demo-bob" {
				does(t, s, "account", "email", "alice", "alice@new.example")
			}
			s.Kill()
		}
		s.Args = own
		s.Refuses(64, "is the demo's", "alice and bob", "a store of your own")
	}

	real := exchangetest.New(t, "pebble:"+t.TempDir())
	real.Start()
	does(t, real, "account", "create", "alice", "--email", "alice@example.org")
	does(t, real, "account", "email", "alice", "alice@demo.example")
	real.Kill()
	real.Demo()
	real.Refuses(64, "is not the demo's", `"alice"`, "--store pebble:FOLDER")
}

// A demo whose market cannot trade, in maintenance or without its key, serves all the same.
func TestADemoServesWithoutItsMarket(t *testing.T) {
	s := exchangetest.New(t, "pebble:"+t.TempDir())
	s.Demo()
	s.Start()
	does(t, s, "maintenance", "on")
	s.Kill()
	s.DemoWithMarket()
	servesWithout := func(why string) {
		t.Helper()
		before := len(s.Log())
		s.Start()
		exchangetest.Eventually(t, "the log says "+why, func() bool {
			_, after, _ := strings.Cut(s.Log()[before:], "the demo's market is not trading")
			return strings.Contains(after, why)
		})
	}
	servesWithout("maintenance")
	does(t, s, "key", "revoke", "demo-market-1")
	does(t, s, "maintenance", "off")
	s.Kill()
	servesWithout("key demo-market-1 exists already")
}

// A demo that is killed while it plays its past resumes it, and its books balance.
func TestAKilledPastResumes(t *testing.T) {
	s := exchangetest.New(t, "pebble:"+t.TempDir())
	s.DemoWithMarket()
	for range 2 {
		before := len(s.Log())
		s.Run()
		exchangetest.Eventually(t, "the past is being played", func() bool {
			return strings.Contains(s.Log()[before:], pastIsPlayed)
		})
		s.Kill()
	}
	s.Start()
	(&cluster{t: t}).hasDay([]*exchangetest.Server{s})
	if !strings.Contains(s.Log(), pastIsOver) {
		t.Errorf("the past is not complete:\n%s", s.Log())
	}
	does(t, s, "audit")
}

// Log lines of a process that plays the past, and that has played it, or the rest of it.
const (
	pastIsPlayed = `msg="the demo plays a day of trades first"`
	pastIsOver   = "the demo has a past of a day"
)

// A fresh cluster's leader is killed while it plays the demo's past, which the next one resumes.
// Nothing is served before the past is complete, each of its orders exists once, and it never
// starts again, whichever node leads.
func TestAKilledPastOfAClusterResumes(t *testing.T) {
	c := prepareCluster(t, nil)
	o := c.observer("o1")
	all := append(slices.Clone(c.nodes), o)
	for _, s := range all {
		s.DemoWithMarket()
	}
	c.runs("EXCHANGE_CLUSTER_OBSERVERS=o1")
	o.Run()
	logs := func(word string) *exchangetest.Server {
		i := slices.IndexFunc(c.nodes, func(s *exchangetest.Server) bool {
			return strings.Contains(s.Log(), word)
		})
		if i < 0 {
			return nil
		}
		return c.nodes[i]
	}
	var killed *exchangetest.Server
	exchangetest.Eventually(t, "the past is being played", func() bool {
		killed = logs(pastIsPlayed)
		return killed != nil
	})
	killed.Kill()
	exchangetest.Eventually(t, "the others and the observer serve", func() bool {
		ready := 0
		for _, s := range all {
			if s != killed && c.status(s, "/readyz") == 200 {
				if ready++; logs(pastIsOver) == nil {
					t.Fatal("clients are served before the past is over")
				}
			}
		}
		return ready == len(all)-1
	})
	led := c.leader(killed)
	played := map[*exchangetest.Server]int{}
	for _, s := range c.nodes {
		played[s] = len(s.Log())
	}
	killed.Run()
	c.follows(killed, led)
	c.hasDay(all)
	c.hasPast(led)
	c.handsOver(killed)
	c.hasPast(killed)
	for _, s := range c.nodes {
		if after := s.Log()[played[s]:]; strings.Contains(after, pastIsPlayed) ||
			strings.Contains(after, pastIsOver) {
			t.Errorf("node %s plays a past that is over:\n%s", c.name(s), after)
		}
	}
}

// hasDay expects a candle for each hour of a day at each process.
func (c *cluster) hasDay(all []*exchangetest.Server) {
	c.t.Helper()
	for _, s := range all {
		_, body, err := s.Client.Get(nil,
			"http://"+s.Listen+"/api/charts/BTC_USDT/60/chart?limit=99")
		var hours []struct{ Time int64 }
		if err != nil || json.Unmarshal(body, &hours) != nil || len(hours) < 24 {
			c.t.Errorf("the chart is %s, %v", body, err)
		}
	}
}

// hasPast expects each order of the past once at the leader, and the same at all nodes.
func (c *cluster) hasPast(led *exchangetest.Server) {
	c.t.Helper()
	w, ids := &world{t: c.t, s: led}, map[string]bool{}
	for _, name := range []string{"market-1", "market-2"} {
		rows, err := pages(w.keyOf(name, []string{"read"}), "/api/v1/orders/own/", 500,
			func(o orderRow) uint64 { return o.ID })
		succeeds(c.t, err)
		for _, o := range rows {
			if strings.HasPrefix(o.ClientID, "past-") {
				if ids[o.ClientID] {
					c.t.Errorf("%s is there twice", o.ClientID)
				}
				ids[o.ClientID] = true
			}
		}
	}
	if len(ids) != 3000 {
		c.t.Errorf("the past has %d orders", len(ids))
	}
	clean(c.t, led)
	c.same()
}

// A refused start has taken over and written nothing.
func TestADemoOnTheStoreOfARunningExchangeDoesNotDisturbIt(t *testing.T) {
	r := redistest.Start(t)
	real := exchangetest.New(t, r.URL())
	real.Start()
	// no key either: nothing is sealed that the other one could not open
	does(t, real, "account", "create", "carol")
	before := must[map[string]string](t)(r.Client().HGetAll(t.Context(), "{main}:m").Result())
	demo := exchangetest.New(t, r.URL())
	demo.Demo()
	demo.Refuses(64, "is not the demo's", `"carol"`)
	after, err := r.Client().HGetAll(t.Context(), "{main}:m").Result()
	delete(before, "beat") // the exchange beats on
	delete(after, "beat")
	if err != nil || len(before) == 0 || !maps.Equal(before, after) {
		t.Errorf("the store was at %v and is at %v, %v", before, after, err)
	}
	does(t, real, "account", "create", "dave")
}

// write creates a file with a text.
func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "exchange.yaml")
	succeeds(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}
