package serve

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	"exchange/actors/seal"
	"exchange/cmd/exchange/cli"
	"exchange/config"
	"exchange/persistence/backup"
)

// A running exchange holds its folder exclusively; its key is changed meanwhile.
func TestTheServersKeyIsChangedWhileAnExchangeRuns(t *testing.T) {
	data := t.TempDir()
	if _, err := seal.Load("", filepath.Join(data, config.SecretKeyName), true); err != nil {
		t.Fatal(err)
	}
	held, err := holdFolder(&config.Config{Data: data, Store: "pebble:" + data})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release() //nolint:errcheck // the test's end
	for i, command := range []string{"rotate", "retire"} {
		r := runLine(nil, "secret-key", command, "--data", data, "--json")
		var a secretKeyAnswer
		if err := json.Unmarshal([]byte(r.Out), &a); err != nil || len(a.Keys) != 2-i {
			t.Errorf("%s: %d %s%s", command, r.Code, r.Out, r.ErrOut)
		}
	}
}

// Everything that opens secrets or proves files finds a retired key in its file beside the other.
func TestARetiredKeyCountsForAllThatNeedIt(t *testing.T) {
	cfg := config.Default()
	cfg.SecretKeyFile = filepath.Join(t.TempDir(), config.SecretKeyName)
	old, err := seal.Load("", cfg.SecretKeyFile, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = seal.Rotate(cfg.SecretKeyFile); err == nil {
		_, err = seal.Retire(cfg.SecretKeyFile)
	}
	if err != nil {
		t.Fatal(err)
	}
	alone := engineOptions(cfg, nil, slog.New(slog.DiscardHandler))
	for what, load := range map[string]func() (*seal.Sealer, error){
		"serve":     func() (*seal.Sealer, error) { return alone.Sealer(true) },
		"of a node": func() (*seal.Sealer, error) { return clusterKey(cfg) },
	} {
		if s, err := load(); err != nil || !s.Opens(old.ID()) || s.ID() == old.ID() {
			t.Errorf("%s: %v, %v", what, s, err)
		}
	}
	info := &backup.Info{SealedBy: []string{fmt.Sprintf("%016x", old.ID())}}
	if is := (&Commands{new(cli.Program)}).keyFor(cfg, info); is != "there" {
		t.Errorf("restore reports the key as %s", is)
	}
}
