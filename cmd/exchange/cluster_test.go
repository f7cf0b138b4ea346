package main

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exchange/config"
)

// Each node gets what it needs and nothing of the others', for its owner alone.
func TestTheFilesOfAClusterAreMadeOnceAndForTheirOwnersOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	nodes := []string{"a=10.0.0.1:7000", "b=10.0.0.2:7000", "c=10.0.0.3:7000"}
	init := append([]string{"cluster", "init", dir}, nodes...)
	r := runLine(nil, init...)
	if r.code != exitDone || !strings.Contains(r.out, strings.Join(nodes, ",")) ||
		!strings.Contains(r.out, filepath.Join(dir, "b")) {
		t.Fatal(r)
	}
	want := map[string][]string{"": {"ca.crt", "ca.key", "cluster.id", "exchange.key",
		"operator.token"}}
	for _, n := range []string{"a", "b", "c"} {
		want[n] = []string{"ca.crt", "cluster.id", "exchange.key", "node.crt", "node.key",
			"operator.token"}
	}
	read := func(name string) []byte {
		return must(os.ReadFile(filepath.Join(dir, name)))
	}
	for below, files := range want {
		var got []string
		entries := must(os.ReadDir(filepath.Join(dir, below)))
		for _, e := range entries {
			info, err := e.Info()
			if err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Error(e.Name(), info.Mode(), err)
			}
			if !e.IsDir() {
				got = append(got, e.Name())
			}
		}
		if strings.Join(got, " ") != strings.Join(files, " ") {
			t.Errorf("%q has %v", below, got)
		}
		for _, name := range []string{"ca.crt", "cluster.id", "exchange.key", "operator.token"} {
			if !bytes.Equal(read(filepath.Join(below, name)), read(name)) {
				t.Errorf("%s of %q is not the cluster's", name, below)
			}
		}
	}
	if bytes.Equal(read("a/node.key"), read("b/node.key")) {
		t.Error("two nodes have one key")
	}
	id, credentials, err := loadNode(&config.Cluster{Node: "a", Folder: filepath.Join(dir, "a")})
	if err != nil || credentials == nil || id != strings.TrimSpace(string(read("cluster.id"))) {
		t.Error(id, err)
	}
	before := read("ca.key")
	runLine(nil, init...).wantError(t, exitUsage, "is not empty, and nothing is overwritten")
	runLine(nil, "cluster", "certify", dir, "a").wantError(t, exitUsage, "nothing is overwritten")
	if !bytes.Equal(read("ca.key"), before) {
		t.Error("the authority's key was changed")
	}
	if r := runLine(nil, "cluster", "certify", dir, "d"); r.code != exitDone {
		t.Error(r)
	}
	_, _, err = loadNode(&config.Cluster{Node: "d", Folder: filepath.Join(dir, "d")})
	worked(t, err)
	observerHasNoSecret(t, dir)
	refusesOpenKeys(t, dir)
}

// A node that trusts two authorities is understood by those of either, and what a retired one has
// signed proves nothing.
func TestAnAuthorityIsReplacedBesideTheOneBefore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	does := func(args ...string) {
		t.Helper()
		if r := runLine(nil, append([]string{"cluster"}, args...)...); r.code != exitDone {
			t.Fatal(r)
		}
	}
	proves := func(from, to string) bool {
		t.Helper()
		_, mine, err := loadNode(&config.Cluster{Node: from, Folder: filepath.Join(dir, from)})
		if err != nil {
			t.Fatal(err)
		}
		_, theirs, err := loadNode(&config.Cluster{Node: to, Folder: filepath.Join(dir, to)})
		if err != nil {
			t.Fatal(err)
		}
		_, err = mine.Certificate.Leaf.Verify(x509.VerifyOptions{Roots: theirs.Roots})
		return err == nil
	}
	does("init", dir, "a=10.0.0.1:7000", "b=10.0.0.2:7000", "c=10.0.0.3:7000")
	does("authority", "rotate", dir)
	does("certify", dir, "both")
	if !proves("a", "both") || proves("both", "a") {
		t.Error("a node that trusts both authorities does not, or one that trusts the first does")
	}
	if err := os.Remove(filepath.Join(dir, "ca.key")); err != nil { // it broke off
		t.Fatal(err)
	}
	does("authority", "rotate", dir)
	does("authority", "retire", dir)
	does("certify", dir, "new")
	if !proves("new", "new") || proves("a", "new") || proves("both", "new") {
		t.Error("a retired authority is trusted, or the new one is not")
	}
}

// observerHasNoSecret makes an observer, which gets what proves its name, and no secret of the
// cluster.
func observerHasNoSecret(t *testing.T, dir string) {
	t.Helper()
	if r := runLine(nil, "cluster", "certify", dir, "o1", "--observer"); r.code != exitDone ||
		!strings.Contains(r.out, "observer o1") {
		t.Error(r)
	}
	if _, _, err := loadNode(&config.Cluster{Node: "o1", Observer: true,
		Folder: filepath.Join(dir, "o1")}); err != nil {
		t.Error(err)
	}
	for _, secret := range []string{config.SecretKeyName, config.OperatorTokenName, authorityKey} {
		if _, err := os.Stat(filepath.Join(dir, "o1", secret)); !os.IsNotExist(err) {
			t.Error("an observer has", secret, err)
		}
	}
	runLine(nil, "cluster", "certify", dir, "o1").wantError(t, exitUsage, "nothing is overwritten")
}

// refusesOpenKeys lets others read the keys of a node and of the cluster.
func refusesOpenKeys(t *testing.T, dir string) {
	t.Helper()
	for key, mode := range map[string]os.FileMode{"a/node.key": 0o640, "ca.key": 0o604} {
		worked(t, os.Chmod(filepath.Join(dir, key), mode))
	}
	_, _, err := loadNode(&config.Cluster{Node: "a", Folder: filepath.Join(dir, "a")})
	if err == nil || !strings.Contains(err.Error(), "can be read by others") {
		t.Error(err)
	}
	runLine(nil, "cluster", "certify", dir, "e").wantError(t, exitUsage, "can be read by others")
}

func TestAClusterIsMadeOfNodesThatBearAFault(t *testing.T) {
	dir := t.TempDir()
	for _, x := range []struct {
		args []string
		want string
	}{
		{[]string{"init"}, "cluster init needs a folder and all nodes"},
		{[]string{"init", dir + "/x", "a=10.0.0.1:7000", "b=10.0.0.2:7000"},
			"2 nodes bear no fault"},
		{[]string{"init", dir + "/x", "a=10.0.0.1:7000", "b=10.0.0.2:7000", "c=10.0.0.3:7000",
			"d=10.0.0.4:7000"}, "4 nodes bear no more faults than 3, because more than half of " +
			"them must be there: name 3 or 5"},
		{[]string{"add", "d"}, `"d" is no node such as`},
		{[]string{"add", "d=10.0.0.4"}, "the address of node d"},
		{[]string{"replace", "b"}, "needs NODE=HOST:PORT"},
		{[]string{"remove", "b", "--wait", "-1s"}, "cannot be negative"},
		{[]string{"init", dir + "/x", "a", "b", "c"}, `"a" is no node such as`},
		{[]string{"certify", dir, "a"}, "name the folder that `exchange cluster init` has made"},
		{[]string{"certify", dir}, "needs NODE"},
		{[]string{"certify", dir, "o1", "--observer"}, "name the folder that"},
		{[]string{"inti"}, "cluster has no command"},
	} {
		runLine(nil, append([]string{"cluster"}, x.args...)...).wantError(t, exitUsage, x.want)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Error("something was made:", entries, err)
	}
}

const (
	standing = `{"node":"a","role":"leader","serves":true,"leader":"a","leader_url":` +
		`"http://127.0.0.1:8080","term":7,"elections":1,"applied":50,"committed":50,"folded":40,` +
		`"log_bytes":1048576,"format":2,"change":"node b comes to take part",` +
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
		if r := runLine(f.environ, "cluster", "status"); r.code != 0 ||
			!strings.Contains(r.out, want) {
			t.Errorf("%+v, want\n%s", r, want)
		}
		runLine(f.environ, "cluster", "status", "--json").want(t, 0, answer+"\n", "")
		f.wantAsked("GET /operator/v1/cluster", "GET /operator/v1/cluster")
	}
	f := newFake(t, 200, `{"node":"a"}`)
	runLine(f.environ, "cluster", "status").wantError(t, exitUnavailable, "is not one of")
}

// A file is checked before its market part is applied, and the answer says when that counts.
func TestAFileIsApplied(t *testing.T) {
	f := newFake(t, 200, `{"keys":["pairs","limits.max_fills"]}`)
	file := filepath.Join(t.TempDir(), "exchange.yaml")
	worked(t, os.WriteFile(file, []byte(config.Example()), 0o600))
	runLine(f.environ, "config", "apply", "--config", file).want(t, 0, "keys  pairs\n"+
		"      limits.max_fills\n\nIt counts from the next term on: `exchange cluster transfer` "+
		"begins one.\n", "")
	cfg := must(config.Load(config.Sources{File: file}))
	packed := must(pack(cfg.Market()))
	body := must(json.Marshal(map[string][]byte{"market": packed}))
	f.wantAsked("POST /operator/v1/cluster/apply " + string(body))
	if text, err := unpack(packed); err != nil || !bytes.Equal(text, cfg.Market()) {
		t.Errorf("%s, %v", text, err)
	}
	f = newFake(t, 200, `{"keys":[]}`)
	runLine(f.environ, "config", "apply", "--config", file).want(t, 0,
		"keys  -\n\nThe cluster has this market part already.\n", "")
	worked(t, os.WriteFile(file, []byte("currencies: []\n"), 0o600))
	f = newFake(t, 200, "{}")
	runLine(f.environ, "config", "apply", "--config", file).wantError(t, exitUsage,
		"nothing is said")
	f.wantAsked()
}

func TestARunningExchangeReloads(t *testing.T) {
	f := newFake(t, 200, `{"applied":[{"key":"log.level","before":"info","after":"warn",`+
		`"origin":"x.yaml line 3"}],"faults":["the tokens stay as they were"]}`)
	runLine(f.environ, "config", "reload").want(t, 0, "faults  the tokens stay as they "+
		"were\n\napplied:\nKEY        BEFORE  AFTER  ORIGIN\n"+
		"log.level  info    warn   x.yaml line 3\n", "")
	f.wantAsked("POST /operator/v1/config/reload {}")
	f = newFake(t, 200, `{"applied":[],"faults":[]}`)
	runLine(f.environ, "config", "reload").want(t, 0, "faults  -\n", "")
	runLine(f.environ, "config", "reload", "--json").want(t, 0, `{"applied":[],"faults":[]}`+"\n",
		"")
	f = newFake(t, 400, `{"error":"it stays as it was:\n  - listen needs a restart"}`)
	runLine(f.environ, "config", "reload").want(t, exitUsage, "",
		"exchange: it stays as it was:\n  - listen needs a restart\n")
	f = newFake(t, 200, "{}")
	runLine(f.environ, "config", "reload").wantError(t, exitUnavailable, "is not one of")
}

// What is packed to be larger than any market part does not take its memory.
func TestAPackedMarketPartIsBounded(t *testing.T) {
	packed := must(pack(make([]byte, 4*config.MaxMarket)))
	text, err := unpack(packed)
	if err != nil || len(text) != config.MaxMarket+1 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	for _, bad := range [][]byte{nil, []byte("x"), packed[:len(packed)/2][:20]} {
		if _, err := unpack(bad); err == nil {
			t.Errorf("%d bytes are a market part", len(bad))
		}
	}
}

func TestTheLeadIsHandedOver(t *testing.T) {
	f := newFake(t, 200, `{"from":"a","to":"b"}`)
	runLine(f.environ, "cluster", "transfer", "b").want(t, 0, "from  a\nto    b\n", "")
	f.wantAsked(`POST /operator/v1/cluster/transfer {"to":"b"}`)
	f = newFake(t, 200, `{"from":"a","to":""}`)
	runLine(f.environ, "cluster", "transfer").want(t, 0, "from  a\nto    -\n", "")
	f.wantAsked(`POST /operator/v1/cluster/transfer {}`)
	runLine(f.environ, "cluster", "transfer", "b", "c").wantError(t, exitUsage, "one argument too")
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
		runLine(f.environ, append([]string{"cluster"}, x.args...)...).want(t, 0,
			"node  d\ndone  yes\nrole  voter\nlag   0\nsays  node d is a voter\n", "")
		f.wantAsked(x.asked)
		f = newFake(t, 200, `{"node":"d","done":false,"role":"learner","lag":9,"says":"it lags"}`)
		x.args = append([]string{"cluster"}, x.args...)
		runLine(f.environ, append(x.args, "--wait", "0s")...).wantError(t, exitUnavailable,
			"it lags; the same command again goes on")
		f = newFake(t, 400, `{"error":"another change is under way"}`)
		runLine(f.environ, x.args...).wantError(t, exitUsage,
			"another change is under way")
	}
}
