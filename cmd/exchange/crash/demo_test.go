package crash

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exchange/cmd/exchange/exchangetest"
	"exchange/persistence/redistest"
)

// The keys of the demo are public. Its store must never be served as a real one, and the demo may
// not write them into a real store.
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
	// more accounts do not make it another store
	if _, text, code := s.Command("account", "create", "zoe"); code != 0 {
		t.Fatal(text)
	}
	s.Kill()
	served(s, demo)
	s.Kill()

	example, _, _ := s.Command("config", "example") // it has the demo's pairs
	own[slices.Index(own, "--config")+1] = write(t, example)
	for _, key := range []string{"", "demo-alice", "demo-bob"} {
		if key != "" {
			served(s, demo)
			if _, text, code := s.Command("key", "revoke", key); code != 0 {
				t.Fatal(text)
			}
			s.Kill()
		}
		s.Args = own
		s.Refuses(64, "is the demo's", "alice and bob", "a store of your own")
	}

	real := exchangetest.New(t, "pebble:"+t.TempDir())
	real.Start()
	if _, text, code := real.Command("account", "create", "alice", "--email",
		"alice@example.org"); code != 0 {
		t.Fatal(text)
	}
	real.Kill()
	real.Demo()
	real.Refuses(64, "is not the demo's", `"alice"`, "--store pebble:FOLDER")
}

// A demo whose market cannot trade, in maintenance or without its key, serves all the same.
func TestADemoServesWithoutItsMarket(t *testing.T) {
	s := exchangetest.New(t, "pebble:"+t.TempDir())
	s.Demo()
	s.Start()
	if _, text, code := s.Command("maintenance", "on"); code != 0 {
		t.Fatal(text)
	}
	s.Kill()
	s.DemoWithMarket()
	servesWithout := func(why string) {
		t.Helper()
		before := len(s.Log())
		s.Start()
		exchangetest.Eventually(t, "the log says "+why, func() bool {
			_, after, _ := strings.Cut(s.Log()[before:], "the demo's market does not trade for now")
			return strings.Contains(after, why)
		})
	}
	servesWithout("maintenance")
	if _, text, code := s.Command("key", "revoke", "demo-market-1"); code != 0 {
		t.Fatal(text)
	}
	if _, text, code := s.Command("maintenance", "off"); code != 0 {
		t.Fatal(text)
	}
	s.Kill()
	servesWithout("key demo-market-1 exists already")
}

// A demo that is killed while it plays its past goes on with it, and its books are right.
func TestAPastThatIsKilledGoesOn(t *testing.T) {
	s := exchangetest.New(t, "pebble:"+t.TempDir())
	s.DemoWithMarket()
	for range 2 {
		before := len(s.Log())
		s.Run()
		exchangetest.Eventually(t, "the past is being played", func() bool {
			return strings.Contains(s.Log()[before:], "the demo plays a day of trades first")
		})
		s.Kill()
	}
	s.Start()
	_, body, err := s.Client.Get(nil, "http://"+s.Listen+"/api/charts/BTC_USDT/60/chart?limit=99")
	var hours []struct{ Time int64 }
	if err != nil || json.Unmarshal(body, &hours) != nil || len(hours) < 24 {
		t.Errorf("the chart is %s, %v", body, err)
	}
	if !strings.Contains(s.Log(), "the demo has a past of a day") {
		t.Errorf("the past is not complete:\n%s", s.Log())
	}
	if _, text, code := s.Command("audit"); code != 0 {
		t.Errorf("the audit: %s", text)
	}
}

// A start that is refused has taken nothing over, and written nothing.
func TestADemoOnTheStoreOfARunningExchangeDoesNotDisturbIt(t *testing.T) {
	r := redistest.Start(t)
	real := exchangetest.New(t, r.URL())
	real.Start()
	// and no key: nothing is sealed that the other could not open
	if _, text, code := real.Command("account", "create", "carol"); code != 0 {
		t.Fatal(text)
	}
	before, err := r.Client().HGetAll(t.Context(), "{main}:m").Result()
	if err != nil {
		t.Fatal(err)
	}
	demo := exchangetest.New(t, r.URL())
	demo.Demo()
	demo.Refuses(64, "is not the demo's", `"carol"`)
	after, err := r.Client().HGetAll(t.Context(), "{main}:m").Result()
	delete(before, "beat") // the exchange beats on
	delete(after, "beat")
	if err != nil || len(before) == 0 || !maps.Equal(before, after) {
		t.Errorf("the store was at %v and is at %v, %v", before, after, err)
	}
	if _, text, code := real.Command("account", "create", "dave"); code != 0 {
		t.Error(text)
	}
}

// write makes a file with a text.
func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "exchange.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
