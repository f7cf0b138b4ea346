package serve

import (
	"bytes"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exchange/cmd/exchange/cli"
	"exchange/config"
)

// Each node gets the files it needs and nothing of the others', for its owner alone.
func TestTheFilesOfAClusterAreMadeOnceAndForTheirOwnersOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	nodes := []string{"a=10.0.0.1:7000", "b=10.0.0.2:7000", "c=10.0.0.3:7000"}
	init := append([]string{"cluster", "init", dir}, nodes...)
	r := runLine(nil, init...)
	if r.Code != cli.ExitDone || !strings.Contains(r.Out, strings.Join(nodes, ",")) ||
		!strings.Contains(r.Out, filepath.Join(dir, "b")) {
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
	runLine(nil, init...).WantError(t, cli.ExitUsage, "is not empty, and nothing is overwritten")
	runLine(nil, "cluster", "certify", dir, "a").WantError(t, cli.ExitUsage,
		"nothing is overwritten")
	if !bytes.Equal(read("ca.key"), before) {
		t.Error("the authority's key was changed")
	}
	if r := runLine(nil, "cluster", "certify", dir, "d"); r.Code != cli.ExitDone {
		t.Error(r)
	}
	_, _, err = loadNode(&config.Cluster{Node: "d", Folder: filepath.Join(dir, "d")})
	worked(t, err)
	observerHasNoSecret(t, dir)
	refusesOpenKeys(t, dir)
}

// A node that trusts two authorities is understood by those of either, and a retired authority's
// signatures prove nothing.
func TestAnAuthorityIsReplacedBesideTheOneBefore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	does := func(args ...string) {
		t.Helper()
		if r := runLine(nil, append([]string{"cluster"}, args...)...); r.Code != cli.ExitDone {
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
	if err := os.Remove(filepath.Join(dir, "ca.key")); err != nil { // the command was interrupted
		t.Fatal(err)
	}
	does("authority", "rotate", dir)
	does("authority", "retire", dir)
	does("certify", dir, "new")
	if !proves("new", "new") || proves("a", "new") || proves("both", "new") {
		t.Error("a retired authority is trusted, or the new one is not")
	}
}

// observerHasNoSecret makes an observer, whose files prove its name, and include no secret of the
// cluster.
func observerHasNoSecret(t *testing.T, dir string) {
	t.Helper()
	if r := runLine(nil, "cluster", "certify", dir, "o1", "--observer"); r.Code != cli.ExitDone ||
		!strings.Contains(r.Out, "observer o1") {
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
	runLine(nil, "cluster", "certify", dir, "o1").WantError(t, cli.ExitUsage,
		"nothing is overwritten")
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
	runLine(nil, "cluster", "certify", dir, "e").WantError(t, cli.ExitUsage,
		"can be read by others")
}

func TestAClusterIsMadeOfNodesThatBearAFault(t *testing.T) {
	dir := t.TempDir()
	for _, x := range []struct {
		args []string
		want string
	}{
		{[]string{"init"}, "cluster init needs a folder and all nodes"},
		{[]string{"init", dir + "/x", "a=10.0.0.1:7000", "b=10.0.0.2:7000"},
			"2 nodes tolerate no failure"},
		{[]string{"init", dir + "/x", "a=10.0.0.1:7000", "b=10.0.0.2:7000", "c=10.0.0.3:7000",
			"d=10.0.0.4:7000"}, "4 nodes tolerate no more failures than 3, because more than " +
			"half of them must be up: name 3 or 5"},
		{[]string{"init", dir + "/x", "a", "b", "c"}, `"a" is no node such as`},
		{[]string{"certify", dir, "a"}, "name the folder that `exchange cluster init` has made"},
		{[]string{"certify", dir}, "needs NODE"},
		{[]string{"certify", dir, "o1", "--observer"}, "name the folder that"},
		{[]string{"inti"}, "cluster has no command"},
	} {
		runLine(nil, append([]string{"cluster"}, x.args...)...).WantError(t, cli.ExitUsage, x.want)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Error("something was made:", entries, err)
	}
}
