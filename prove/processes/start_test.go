//go:build prove

package processes

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"exchange/persistence/redistest"
	"exchange/prove/exchangetest"
)

func TestStartIsRefusedWithACodeAndWordsThatHelp(t *testing.T) {
	t.Run("Redis is not there", func(t *testing.T) {
		code, text := exchangetest.New(t,
			"redis://user:hidden-password@"+exchangetest.FreeAddress(t)+"/0").Ends()
		if code != 75 || !strings.Contains(text, "connection refused") {
			t.Errorf("%d: %s", code, text)
		}
		secrets{"the password of the store": "hidden-password"}.hidden(t, "what is written",
			[]byte(text))
	})
	t.Run("Redis may lose what it acknowledged", func(t *testing.T) {
		r := redistest.Start(t, "appendfsync", "everysec")
		exchangetest.New(t, r.URL()).Refuses(64, "appendfsync", "everysec", "always",
			"--accept-redis-durability")
		s := exchangetest.New(t, r.URL(), "--accept-redis-durability")
		s.Start()
		stops(t, s)
	})
	t.Run("another process holds the folder", func(t *testing.T) {
		dir := t.TempDir()
		first := exchangetest.New(t, "pebble:"+dir)
		first.Start()
		exchangetest.New(t, "pebble:"+dir).Refuses(75, "pid")
	})
	t.Run("nothing is configured", func(t *testing.T) {
		s := exchangetest.New(t, "pebble:"+t.TempDir())
		s.Args = []string{"serve"}
		s.Refuses(64, "exchange config example")
	})
	t.Run("the demo on a public address", func(t *testing.T) {
		s := exchangetest.New(t, "pebble:"+t.TempDir())
		s.Args = []string{"serve", "--demo", "--listen", "0.0.0.0:0"}
		s.Refuses(64, "loopback")
	})
	t.Run("the secret key is lost", startWithoutItsSecretKey)
	t.Run("a pair with open orders is missing", startWithoutATradedPair)
	t.Run("the store has lost writes", func(t *testing.T) {
		r := redistest.Start(t)
		s := exchangetest.New(t, r.URL())
		s.Start()
		s.Terminate()
		ctx := context.Background()
		succeeds(t, r.Client().HSet(ctx, "{main}:m", "seq", "1000").Err())
		s.Refuses(70, "corrupt")
	})
}

// A log reader that has ended, or stands still, neither ends nor blocks the exchange.
func TestALogThatNobodyReadsStopsNothing(t *testing.T) {
	for _, ended := range []bool{true, false} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, 4096); err != nil {
			t.Fatal(err)
		}
		if ended {
			r.Close()
		}
		s := exchangetest.New(t, "pebble:"+t.TempDir())
		s.RunLogging(w)
		w.Close()
		exchangetest.Eventually(t, "the exchange is ready", func() bool {
			return s.Gone() || s.Ready() == nil
		})
		for range 100 { // each has a line or more
			s.Signal(syscall.SIGHUP)
			if s.Ready() != nil {
				t.Fatalf("it is not ready any more; reader ended: %v", ended)
			}
		}
		if lost := s.Metrics()["exchange_log_lost_lines_total"]; ended != (lost > 0) {
			t.Errorf("%v lines are lost; reader ended: %v", lost, ended)
		}
		stops(t, s)
	}
}

func startWithoutItsSecretKey(t *testing.T) {
	s := exchangetest.New(t, "pebble:"+t.TempDir())
	s.Start()
	opened(t, s, 1)
	s.Terminate()
	key := s.Data("exchange.key")
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("exchange.key: %v, %v", info, err)
	}
	succeeds(t, os.Rename(key, key+".away"))
	s.Refuses(64, "exchange.key", "EXCHANGE_SECRET_KEY")
	s.Env = append(s.Env, "EXCHANGE_SECRET_KEY="+strings.Repeat("ab", 32))
	s.Refuses(64, "sealed with another secret key")
	b := must[[]byte](t)(os.ReadFile(key + ".away"))
	s.Env = append(s.Env, "EXCHANGE_SECRET_KEY="+strings.TrimSpace(string(b)))
	s.Start()
}

func startWithoutATradedPair(t *testing.T) {
	s := exchangetest.New(t, "pebble:"+t.TempDir())
	s.Start()
	trader := opened(t, s, 1).traders[0]
	status, body, err := trader.send("POST", "/api/v1/order/",
		"amount=1&pair=BTC_USDT&price=100&type=sell", 1)
	if err != nil || status != 201 {
		t.Fatal(status, body, err)
	}
	s.Terminate()
	(&edited{s, t}).writes("", "BTC_USDT", "USDT_BTC")
	s.Refuses(64, "BTC_USDT", "1 orders are open")
}

func TestTheDemoKeepsItsStateAndCreditsOnce(t *testing.T) {
	s := exchangetest.New(t, redistest.Start(t).URL())
	s.Demo()
	alice := &trader{s: s, key: "demo-alice", secret: demoSecret("alice"),
		orders: map[string]*sentOrder{}}
	for range 3 {
		s.Start()
		var wallet []walletRow
		succeeds(t, alice.get("/api/v1/wallets/", &wallet))
		want := map[string]string{"BTC": "100", "ETH": "1000", "USDT": "10000000"}
		for _, h := range wallet {
			if h.Balance.String() != want[h.Currency] {
				t.Errorf("alice has %v %s, want %s", h.Balance, h.Currency, want[h.Currency])
			}
		}
		clean(t, s)
		s.Kill()
	}
}

// A start logs its warnings, and applies the configuration's rules for withdrawals.
func TestAStartWarnsAndKeepsToItsConfigurationOfWithdrawals(t *testing.T) {
	s := exchangetest.New(t, "pebble:"+t.TempDir())
	(&edited{s, t}).writes("", "{code: BTC}", "{code: BTC, address_pattern: '^bc1[a-z0-9]+$'}")
	s.Start()
	w := &world{t: t, s: s}
	w.openBanker(newRandom(t))
	withdrawal := func(status int, address, answer string) {
		t.Helper()
		var body string
		exchangetest.Eventually(t, "a withdrawal is answered", func() bool {
			w.banker.nonce++
			got, text, err := w.banker.send("POST", "/api/v1/withdraw/",
				"address="+address+"&amount=0.1&currency=BTC", w.banker.nonce)
			succeeds(t, err)
			body = fmt.Sprint(got, " ", text)
			// It may be turned away when the machine is busy.
			return got != 503 || strings.Contains(text, "Withdraws are closed.")
		})
		if !strings.HasPrefix(body, fmt.Sprint(status)) || !strings.Contains(body, answer) {
			t.Errorf("a withdrawal to %s: %s", address, body)
		}
	}
	const noMail = "there is no mail server"
	withdrawal(400, "elsewhere", "This is not an address of BTC.")
	withdrawal(201, "bc1q0", `"bc1q0"`)
	if log := s.Log(); strings.Count(log, "orders of this pair have no minimum value") != 1 ||
		!strings.Contains(log, "pair=BTC_USDT") || strings.Contains(log, noMail) {
		t.Errorf("a start with a mail server and a pair without a minimum says:\n%s", log)
	}
	stops(t, s)
	s.Env = append(s.Env, "EXCHANGE_MAIL_HOST=", "EXCHANGE_MAIL_PORT=")
	s.Start()
	withdrawal(503, "bc1q1", "Withdraws are closed.")
	if log := s.Log(); strings.Count(log, noMail) != 1 {
		t.Errorf("a start without a mail server says:\n%s", log)
	}
}
