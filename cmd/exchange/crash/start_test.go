package crash

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"exchange/persistence/redistest"
)

// ends runs the program until it ends by itself, and returns its exit code and what it wrote.
func (s *server) ends() (int, string) {
	s.t.Helper()
	at, err := s.log.Seek(0, 2)
	if err != nil {
		s.t.Fatal(err)
	}
	s.run()
	select {
	case <-s.exited:
	case <-time.After(2 * time.Minute):
		s.t.Fatal("the exchange does not end")
	}
	b, err := os.ReadFile(s.log.Name())
	if err != nil {
		s.t.Fatal(err)
	}
	return s.process.ProcessState.ExitCode(), string(b[at:])
}

// refuses expects an exit code and words in what is written.
func (s *server) refuses(code int, words ...string) {
	s.t.Helper()
	got, text := s.ends()
	if got != code {
		s.t.Errorf("exit code %d, want %d", got, code)
	}
	for _, w := range words {
		if !strings.Contains(text, w) {
			s.t.Errorf("%q is not said; this is:\n%s", w, text)
		}
	}
}

func TestStartIsRefusedWithACodeAndWordsThatHelp(t *testing.T) {
	t.Run("Redis is not there", func(t *testing.T) {
		newServer(t, "redis://user:hidden-password@"+freeAddress(t)+"/0").refuses(75, "connection refused")
	})
	t.Run("Redis may lose what it acknowledged", func(t *testing.T) {
		r := redistest.Start(t, "appendfsync", "everysec")
		newServer(t, r.URL()).refuses(64, "appendfsync", "everysec", "always", "--accept-redis-durability")
		s := newServer(t, r.URL(), "--accept-redis-durability")
		s.start()
		if code := s.terminate(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
	t.Run("another process holds the folder", func(t *testing.T) {
		dir := t.TempDir()
		first := newServer(t, "pebble:"+dir)
		first.start()
		newServer(t, "pebble:"+dir).refuses(75, "pid")
	})
	t.Run("nothing is configured", func(t *testing.T) {
		s := newServer(t, "pebble:"+t.TempDir())
		s.args = []string{"serve"}
		s.refuses(64, "exchange config example")
	})
	t.Run("the demo on a public address", func(t *testing.T) {
		s := newServer(t, "pebble:"+t.TempDir())
		s.args = []string{"serve", "--demo", "--listen", "0.0.0.0:0"}
		s.refuses(64, "loopback")
	})
	t.Run("the secret key is lost", func(t *testing.T) {
		s := newServer(t, "pebble:"+t.TempDir())
		s.start()
		(&world{t: t, s: s, paid: map[string]string{}}).open(1, newRandom(t))
		s.terminate()
		key := s.data("exchange.key")
		if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("exchange.key: %v, %v", info, err)
		}
		if err := os.Rename(key, key+".away"); err != nil {
			t.Fatal(err)
		}
		s.refuses(64, "exchange.key", "EXCHANGE_SECRET_KEY")
		s.env = append(s.env, "EXCHANGE_SECRET_KEY="+strings.Repeat("ab", 32))
		s.refuses(64, "sealed with another secret key")
		b, err := os.ReadFile(key + ".away")
		if err != nil {
			t.Fatal(err)
		}
		s.env = append(s.env, "EXCHANGE_SECRET_KEY="+strings.TrimSpace(string(b)))
		s.start()
	})
	t.Run("a pair with open orders is missing", func(t *testing.T) {
		s := newServer(t, "pebble:"+t.TempDir())
		s.start()
		w := &world{t: t, s: s, paid: map[string]string{}}
		w.open(1, newRandom(t))
		trader := w.traders[0]
		status, body, err := trader.send("POST", "/api/v1/order/", "amount=1&pair=BTC_USDT&price=100&type=sell", 1)
		if err != nil || status != 201 {
			t.Fatal(status, body, err)
		}
		s.terminate()
		file := s.args[2]
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(settings, "BTC_USDT", "USDT_BTC")), 0o600); err != nil {
			t.Fatal(err)
		}
		s.refuses(64, "BTC_USDT", "1 orders are open")
	})
	t.Run("the store has lost writes", func(t *testing.T) {
		r := redistest.Start(t)
		s := newServer(t, r.URL())
		s.start()
		s.terminate()
		ctx := context.Background()
		if err := r.Client().HSet(ctx, "{main}:m", "seq", "1000").Err(); err != nil {
			t.Fatal(err)
		}
		s.refuses(70, "corrupt")
	})
}

func TestASecondExchangeOnOneRedisEndsTheFirst(t *testing.T) {
	r := redistest.Start(t)
	first, second := newServer(t, r.URL()), newServer(t, r.URL())
	first.start()
	w := &world{t: t, s: first, paid: map[string]string{}}
	w.open(1, newRandom(t))
	second.args = append(second.args, "--secret-key-file", first.data("exchange.key"))
	second.start()
	<-first.exited
	if code := first.process.ProcessState.ExitCode(); code != 77 {
		t.Errorf("the first one ends with %d, want 77", code)
	}
	w.s, w.traders[0].s = second, second
	w.compare()
}

func TestTheDemoKeepsItsStateAndCreditsOnce(t *testing.T) {
	for name, store := range map[string]string{"pebble": "pebble:" + t.TempDir(), "redis": redistest.Start(t).URL()} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, store)
			s.args = append([]string{"serve", "--demo"}, s.args[3:]...)
			alice := &trader{s: s, key: "demo-alice", secret: demoSecret("alice"), orders: map[string]*sentOrder{}}
			for range 3 {
				s.start()
				var wallet []walletRow
				if err := alice.get("/api/v1/wallets/", &wallet); err != nil {
					t.Fatal(err)
				}
				want := map[string]string{"BTC": "100", "ETH": "1000", "USDT": "10000000"}
				for _, h := range wallet {
					if h.Balance.String() != want[h.Currency] {
						t.Errorf("alice has %v %s, want %s", h.Balance, h.Currency, want[h.Currency])
					}
				}
				s.kill()
			}
		})
	}
}

// data is a file in the server's data folder.
func (s *server) data(name string) string {
	for i, a := range s.args {
		if a == "--data" {
			return filepath.Join(s.args[i+1], name)
		}
	}
	s.t.Fatal("the server has no data folder")
	return ""
}
