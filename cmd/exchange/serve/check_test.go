package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exchange/cmd/exchange/cli"
	"exchange/config"
)

func TestConfigExampleIsAcceptedByConfigCheck(t *testing.T) {
	example := runLine(nil, "config", "example")
	example.Want(t, 0, config.Example(), "")
	file := filepath.Join(t.TempDir(), "exchange.yaml")
	worked(t, os.WriteFile(file, []byte(example.Out), 0o600))
	r := runLine([]string{"EXCHANGE_LIMIT=1"}, "config", "check", "--config", file)
	if r.Code != 0 || !strings.HasPrefix(r.Out,
		"The configuration is good: listen 127.0.0.1:8080,") ||
		!strings.Contains(r.ErrOut, "EXCHANGE_LIMIT names no option") {
		t.Errorf("%+v", r)
	}
	if r := runLine([]string{"EXCHANGE_CONFIG=" + file}, "config", "check",
		"--json"); r.Code != 0 || !strings.HasPrefix(r.Out, `{"ok":true,"summary":"listen`) {
		t.Errorf("%+v", r)
	}
	runLine(nil, "config", "check", "--config", file, "--listen", "x", "--log-level", "y").Want(t,
		cli.ExitUsage, "",
		"exchange: the configuration has 2 problems:\n"+
			"  - log.level is \"y\" (--log-level): write one of debug, info, warn, error.\n"+
			"  - listen is \"x\" (--listen): write host:port with a port from 0 to 65535, such "+
			"as 127.0.0.1:8080.\n")
}

func TestServeRefusesAWrongConfiguration(t *testing.T) {
	runLine(nil, "serve").WantError(t, cli.ExitUsage,
		"`exchange config example > exchange.yaml` makes a sample")
	runLine(nil, "serve", "--demo", "--operator", "0.0.0.0:8081").WantError(t, cli.ExitUsage,
		"bearer token would cross the network without TLS")
	runLine(nil, "serve", "--demo=maybe").WantError(t, cli.ExitUsage,
		`demo is "maybe" (--demo): write true or false.`)
	runLine([]string{"EXCHANGE_DEMO=1"}, "serve", "--listen", "0.0.0.0:1").WantError(t,
		cli.ExitUsage,
		"with demo only a loopback address")
	runLine(nil, "serve", "--json").WantJSONError(t, cli.ExitUsage,
		"no currencies and pairs are configured")
	r := runLine(nil, "serve", "--demo", "--store", "redis://:hunter2@h:1/x")
	r.WantError(t, cli.ExitUsage, "the database must be a number")
	if strings.Contains(r.ErrOut, "hunter2") {
		t.Errorf("the password is shown: %s", r.ErrOut)
	}
}

// config check refuses everything that serve refuses without opening its store, and both report all
// of it.
func TestConfigCheckRefusesTheFilesThatServeRefuses(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cluster := filepath.Join(dir, "cluster")
	if r := runLine(nil, "cluster", "init", cluster, "a=127.0.0.1:1",
		"b=127.0.0.1:2", "c=127.0.0.1:3"); r.Code != 0 {
		t.Fatal(r)
	}
	const three = "CLUSTER_NODE=a CLUSTER_NODES=a=127.0.0.1:1,b=127.0.0.1:2,c=127.0.0.1:3 " +
		"CLUSTER_FOLDER="
	missing, short := filepath.Join(dir, "missing"), file("short", "x\n", 0o600)
	wide := file("wide", strings.Repeat("ab", 32), 0o644)
	for given, want := range map[string][]string{
		"TLS_CERT_FILE=" + missing + " TLS_KEY_FILE=" + missing +
			" METRICS_LISTEN=127.0.0.1:0 METRICS_TOKEN_FILE=" + short +
			" SECRET_KEY_FILE=" + wide: {"TLS: ", missing, short + " has 1 characters",
			wide + " has mode 0644"},
		"OPERATOR=unix:" + strings.Repeat("x", 200):        {"its path has 2"},
		"OPERATOR=127.0.0.1:0 OPERATOR_TOKEN_FILE=" + wide: {"wide has mode 0644"},
		three + missing:                     {"cluster: ", "cluster.id"},
		three + filepath.Join(cluster, "b"): {"cluster: ", "the certificate is of b.voter"},
	} {
		environ := []string{"EXCHANGE_DEMO=1", "EXCHANGE_LISTEN=127.0.0.1:0",
			"EXCHANGE_DATA=" + filepath.Join(dir, "data")}
		for _, x := range strings.Fields(given) {
			environ = append(environ, "EXCHANGE_"+x)
		}
		for _, command := range [][]string{{"config", "check"}, {"serve"}} {
			r := runLine(environ, command...)
			for _, text := range want {
				if r.Code != cli.ExitUsage || !strings.Contains(r.ErrOut, text) {
					t.Errorf("%s: code %d, %s; want %q", given, r.Code, r.ErrOut, text)
				}
			}
		}
	}
}

// The same for folders, names and addresses. Faults that a late mount can fix are 75.
func TestConfigCheckRefusesTheFoldersThatServeRefuses(t *testing.T) {
	dir := t.TempDir()
	file, none := filepath.Join(dir, "file"), filepath.Join(dir, "none")
	worked(t, os.WriteFile(file, nil, 0o600))
	example := filepath.Join(t.TempDir(), "example.yaml")
	worked(t, os.WriteFile(example, []byte(config.Example()), 0o600))
	isFile, noFolder := "mkdir "+file+": not a directory", "the folder "+none
	for given, want := range map[string]struct {
		code int
		text string
	}{
		"ARCHIVE=" + file:                       {64, isFile},
		"ARCHIVE=" + file + "/a":                {64, "not a directory"},
		"STORE=pebble:" + file:                  {64, isFile},
		"STORE=pebble:/dev/null":                {64, "not a directory"},
		"DATA=" + file:                          {64, isFile},
		"OPERATOR=unix:" + file:                 {64, "something else under this name"},
		"OPERATOR=unix:" + none + "/s":          {64, "the operator's socket cannot listen: "},
		"CONFIG=" + example + " LISTEN=a..b:80": {64, "the API cannot listen: listen tcp: "},
		"DATA=" + none + "/d":                   {75, noFolder},
		"STORE=pebble:" + none + "/s":           {75, noFolder},
		"ARCHIVE=" + none + "/a":                {75, noFolder},
		"SECRET_KEY_FILE=" + none + "/k":        {75, noFolder},

		"ARCHIVE=" + none + "/a STORE=pebble:" + file: {64, noFolder},
	} {
		environ := []string{"EXCHANGE_DATA=" + filepath.Join(dir, "data")}
		if !strings.HasPrefix(given, "CONFIG=") {
			environ = append(environ, "EXCHANGE_DEMO=1", "EXCHANGE_LISTEN=127.0.0.1:0")
		}
		for _, x := range strings.Fields(given) {
			environ = append(environ, "EXCHANGE_"+x)
		}
		var logged [2]string
		for i, command := range [][]string{{"config", "check"}, {"serve"}} {
			r := runLine(environ, append(command, "--log-level", "error")...)
			if logged[i] = r.ErrOut; r.Code != want.code || !strings.Contains(r.ErrOut, want.text) {
				t.Errorf("%s %s: code %d, %s; want %v", command, given, r.Code, r.ErrOut, want)
			}
		}
		if logged[0] != logged[1] {
			t.Errorf("config check says %q, and serve %q", logged[0], logged[1])
		}
		wantNames(t, dir, "file")
	}
}
