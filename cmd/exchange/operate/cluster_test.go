package operate

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exchange/cmd/exchange/cli"
	"exchange/config"
)

const (
	standing = `{"node":"a","role":"leader","serves":true,"leader":"a","leader_url":` +
		`"http://127.0.0.1:8080","term":7,"elections":1,"applied":50,"committed":50,"folded":40,` +
		`"log_bytes":1048576,"format":2,"change":"node b is joining",` +
		`"fault":"","config_differs":[],` +
		`"clock_ahead_ms":3,"clock_wrong":false,"tick_ms":50,` +
		`"nodes":[{"name":"a","role":"voter","replaces":"","match":50,"lag":0,"silent_ticks":0,` +
		`"reads":3,"config_differs":false},` +
		`{"name":"b","role":"learner","replaces":"","match":20,"lag":30,"silent_ticks":1,` +
		`"reads":2,"config_differs":true}]}`
	unserving = `{"node":"b","role":"follower","serves":false,"leader":"","leader_url":"",` +
		`"term":7,"elections":1,"applied":50,"committed":50,"folded":40,"log_bytes":512,"format":2,` +
		`"change":"","fault":"a record",` +
		`"config_differs":["pairs","limits.max_fills"],"clock_ahead_ms":-700,"clock_wrong":true,` +
		`"tick_ms":50,"nodes":[{"name":"a","role":"voter",` +
		`"replaces":"","match":null,"lag":null,"silent_ticks":null,"reads":null,` +
		`"config_differs":null}]}`
)

func TestTheClusterIsShown(t *testing.T) {
	for answer, want := range map[string]string{
		standing: "leader url      http://127.0.0.1:8080\n",
		unserving: "config differs  pairs\n                limits.max_fills\n" +
			"clock ahead ms  -700\n" +
			"clock wrong     yes\ntick ms         50\n\nnodes:\n" +
			"NAME  ROLE   REPLACES  MATCH  LAG  SILENT TICKS  READS  CONFIG DIFFERS\n" +
			"a     voter  -         -      -    -             -      -\n",
	} {
		f := newFake(t, 200, answer)
		if r := runLine(f.environ, "cluster", "status"); r.Code != 0 ||
			!strings.Contains(r.Out, want) {
			t.Errorf("%+v, want\n%s", r, want)
		}
		runLine(f.environ, "cluster", "status", "--json").Want(t, 0, answer+"\n", "")
		f.wantAsked("GET /operator/v1/cluster", "GET /operator/v1/cluster")
	}
	f := newFake(t, 200, `{"node":"a"}`)
	runLine(f.environ, "cluster", "status").WantError(t, cli.ExitUnavailable, "is not one of")
}

// A file is checked before its market part is applied, and the answer names the time of effect.
func TestAFileIsApplied(t *testing.T) {
	f := newFake(t, 200, `{"keys":["pairs","limits.max_fills"]}`)
	file := filepath.Join(t.TempDir(), "exchange.yaml")
	worked(t, os.WriteFile(file, []byte(config.Example()), 0o600))
	runLine(f.environ, "config", "apply", "--config", file).Want(t, 0, "keys  pairs\n"+
		"      limits.max_fills\n\nIt takes effect in the next term: `exchange cluster transfer` "+
		"begins one.\n", "")
	cfg := must(config.Load(config.Sources{File: file}))
	packed := must(config.PackMarket(cfg.Market()))
	body := must(json.Marshal(map[string][]byte{"market": packed}))
	f.wantAsked("POST /operator/v1/cluster/apply " + string(body))
	if text, err := config.UnpackMarket(packed); err != nil || !bytes.Equal(text, cfg.Market()) {
		t.Errorf("%s, %v", text, err)
	}
	f = newFake(t, 200, `{"keys":[]}`)
	runLine(f.environ, "config", "apply", "--config", file).Want(t, 0,
		"keys  -\n\nThe cluster has this market part already.\n", "")
	worked(t, os.WriteFile(file, []byte("currencies: []\n"), 0o600))
	f = newFake(t, 200, "{}")
	runLine(f.environ, "config", "apply", "--config", file).WantError(t, cli.ExitUsage,
		"no currencies and pairs are configured")
	f.wantAsked()
}

func TestARunningExchangeReloads(t *testing.T) {
	f := newFake(t, 200, `{"applied":[{"key":"log.level","before":"info","after":"warn",`+
		`"origin":"x.yaml line 3"}],"faults":["the tokens stay as they were"]}`)
	runLine(f.environ, "config", "reload").Want(t, 0, "faults  the tokens stay as they "+
		"were\n\napplied:\nKEY        BEFORE  AFTER  ORIGIN\n"+
		"log.level  info    warn   x.yaml line 3\n", "")
	f.wantAsked("POST /operator/v1/config/reload {}")
	f = newFake(t, 200, `{"applied":[],"faults":[]}`)
	runLine(f.environ, "config", "reload").Want(t, 0, "faults  -\n", "")
	runLine(f.environ, "config", "reload", "--json").Want(t, 0, `{"applied":[],"faults":[]}`+"\n",
		"")
	f = newFake(t, 400, `{"error":"it stays as it was:\n  - listen needs a restart"}`)
	runLine(f.environ, "config", "reload").Want(t, cli.ExitUsage, "",
		"exchange: it stays as it was:\n  - listen needs a restart\n")
	f = newFake(t, 200, "{}")
	runLine(f.environ, "config", "reload").WantError(t, cli.ExitUnavailable, "is not one of")
}

func TestLeadershipIsHandedOver(t *testing.T) {
	f := newFake(t, 200, `{"from":"a","to":"b"}`)
	runLine(f.environ, "cluster", "transfer", "b").Want(t, 0, "from  a\nto    b\n", "")
	f.wantAsked(`POST /operator/v1/cluster/transfer {"to":"b"}`)
	f = newFake(t, 200, `{"from":"a","to":""}`)
	runLine(f.environ, "cluster", "transfer").Want(t, 0, "from  a\nto    -\n", "")
	f.wantAsked(`POST /operator/v1/cluster/transfer {}`)
	runLine(f.environ, "cluster", "transfer", "b", "c").WantError(t, cli.ExitUsage,
		"one argument too")
}

func TestTheMembershipIsChanged(t *testing.T) {
	const done = `{"node":"d","done":true,"role":"voter","lag":0,"says":"node d is a voter"}`
	for _, x := range []struct {
		args  []string
		asked string
	}{
		{[]string{"add", "d=10.0.0.4:7000"},
			`POST /operator/v1/cluster/add {"node":"d","address":"10.0.0.4:7000"}`},
		{[]string{"replace", "b", "d=10.0.0.4:7000"},
			`POST /operator/v1/cluster/replace {"node":"d","address":"10.0.0.4:7000","old":"b"}`},
		{[]string{"remove", "d"}, `POST /operator/v1/cluster/remove {"node":"d"}`},
	} {
		f := newFake(t, 200, done)
		runLine(f.environ, append([]string{"cluster"}, x.args...)...).Want(t, 0,
			"node  d\ndone  yes\nrole  voter\nlag   0\nsays  node d is a voter\n", "")
		f.wantAsked(x.asked)
		f = newFake(t, 200, `{"node":"d","done":false,"role":"learner","lag":9,"says":"it lags"}`)
		x.args = append([]string{"cluster"}, x.args...)
		runLine(f.environ, append(x.args, "--wait", "0s")...).WantError(t, cli.ExitUnavailable,
			"it lags; repeat the command to continue")
		f = newFake(t, 400, `{"error":"another change is under way"}`)
		runLine(f.environ, x.args...).WantError(t, cli.ExitUsage,
			"another change is under way")
	}
}

func TestAWrongChangeOfTheMembershipIsNotSent(t *testing.T) {
	for line, want := range map[string]string{
		"add d":               `"d" is no node such as`,
		"add d=10.0.0.4":      "the address of node d",
		"replace b":           "needs NODE=HOST:PORT",
		"remove b --wait -1s": "cannot be negative",
	} {
		runLine(nil, append([]string{"cluster"}, strings.Fields(line)...)...).
			WantError(t, cli.ExitUsage, want)
	}
}
