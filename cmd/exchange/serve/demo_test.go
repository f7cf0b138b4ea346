package serve

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange/actors/committed"
	"exchange/cmd/exchange/demomarket"
	"exchange/config"
)

// The demo's accounts have a plain key each, whose nonces grow, and one for parallel use, which the
// pages use: nobody's first test of the API's contract fails on the demo.
func TestThePlainKeysOfTheDemoTakeGrowingNoncesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, e := leading(t, &standingReplica{})
		defer func() { worked(t, e.Stop(t.Context())) }()
		worked(t, fillDemo(e))
		for _, account := range demomarket.Accounts {
			for key, plain := range map[string]bool{"demo-" + account: true,
				"demo-" + account + "-parallel": false} {
				for _, nonce := range []uint64{7, 5} {
					w, err := e.Wallet(committed.Client{Key: e.Key([]byte(key)), Nonce: nonce})
					if refused := errors.Is(err, committed.ErrNonce); refused != (plain &&
						nonce == 5) || err != nil && !refused {
						t.Errorf("%s, nonce %d: %v", key, nonce, err)
					}
					if err == nil {
						w.Free()
					}
				}
			}
		}
	})
	runtime.GC() // pooled objects have timers and channels of this bubble, and a second
	runtime.GC() // collection frees those that the first one found
	for i, k := range demoKeys() {
		if name := demomarket.Accounts[i]; k.Account != name || k.Key != "demo-"+name+"-parallel" ||
			k.Secret != k.Key+"-secret" {
			t.Errorf("the pages have the key %+v", k)
		}
	}
}

// A first text without a reader keeps no exchange from serving.
func TestAFirstTextThatNobodyReadsIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		defer r.Close()
		d, began := newDemo(config.Demo()), time.Now()
		d.out = w
		d.show("127.0.0.1:8080")
		d.show("127.0.0.1:8080")
		if took := time.Since(began); took != logPatience {
			t.Errorf("it is waited for %v", took)
		}
	})
}

// Only main and bounded writers write to the standard streams, which may block.
func TestTheStandardStreamsAreWrittenInOnePlaceEach(t *testing.T) {
	for _, name := range must(filepath.Glob("*.go")) {
		for _, stream := range []string{"os.Stdout", "os.Stderr", "fmt.Print"} {
			if text := must(os.ReadFile(name)); !strings.HasSuffix(name, "_test.go") &&
				name != "main.go" && name != "demo.go" && strings.Contains(string(text), stream) {
				t.Errorf("%s names %s", name, stream)
			}
		}
	}
}

// The demo's first text is about the served demo.
func TestTheFirstTextOfTheDemoIsTrue(t *testing.T) {
	for _, x := range []struct {
		name      string
		change    func(*config.Config)
		has, lack []string
	}{
		{"as usual", func(*config.Config) {}, []string{"http://127.0.0.1:8080: open", "maker",
			"http://127.0.0.1:8080/demo/mails", "price=55000", "Bob sells at what others pay"},
			[]string{"https:", "--cacert"}},
		{"TLS", func(c *config.Config) { c.TLS.CertFile = "cert.pem" },
			[]string{"https://127.0.0.1:8080: open", "https://127.0.0.1:8080$3", "--cacert"},
			[]string{"http:"}},
		{"no market", func(c *config.Config) { c.NoDemoMarket = true },
			[]string{"Bob sells to her", "type=sell", "price=50000"},
			[]string{"maker", "65,000", "55000", "others pay"}},
		{"no pages", func(c *config.Config) { c.NoPages = true }, []string{"no page shows them"},
			[]string{"browser", "/demo/mails"}},
	} {
		cfg := config.Demo()
		x.change(cfg)
		var b strings.Builder
		printDemo(&b, cfg, "127.0.0.1:8080")
		for _, text := range append(x.has, "demo-alice, demo-bob:", "demo-bob-parallel") {
			if !strings.Contains(b.String(), text) {
				t.Errorf("%s: it lacks %q:\n%s", x.name, text, b.String())
			}
		}
		for _, text := range append(x.lack, "%!", "EXTRA") {
			if strings.Contains(b.String(), text) {
				t.Errorf("%s: it has %q:\n%s", x.name, text, b.String())
			}
		}
	}
}
