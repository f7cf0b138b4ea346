package serve

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exchange/cmd/exchange/cli"
	"exchange/config"
	"exchange/persistence"
	"exchange/persistence/archive"
	"exchange/persistence/memory"
	"exchange/prove/clitest"
)

// An unmounted disk ends a start with 75, so that a supervisor waits for it. Nothing is made in its
// place.
func TestStartWaitsForRecordedDisks(t *testing.T) {
	above := t.TempDir()
	t.Chdir(above)
	in := func(names ...string) string {
		return filepath.Join(append([]string{above}, names...)...)
	}
	var logged bytes.Buffer
	withNew := func(beginNew bool) *knownData {
		logged.Reset()
		cfg := &config.Config{Data: above, Store: "pebble:" + in("disk", "store"),
			Archive: in("disk", "archive")}
		return newKnown(cfg, beginNew, slog.New(slog.NewTextHandler(&logged, nil)))
	}
	opens := func(k *knownData, code int) (*archive.Archive, persistence.Store) {
		t.Helper()
		err1, err2 := k.checkArchive(), k.checkFolder()
		if cli.ExitCode(err1) != code || cli.ExitCode(err2) != code {
			t.Fatalf("an archive: %v; a store: %v; want %d", err1, err2, code)
		}
		if code != 0 {
			return nil, nil
		}
		a := must(k.openArchive())
		s, err := k.openStore(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return a, s
	}
	opens(withNew(false), cli.ExitUnavailable) // nothing is recorded, and there is no disk
	clitest.WantFiles(t, above)
	worked(t, os.Mkdir(in("disk"), 0o700))
	k := withNew(false)
	a, s := opens(k, 0)
	if !strings.Contains(logged.String(), "WARN") {
		t.Errorf("about a new archive: %q", logged.String())
	}
	history := persistence.HistoryID{7}
	from := memory.Open(memory.NewDisk(), persistence.Retention{})
	tok, _, err := from.Acquire(t.Context(), persistence.Claim{Owner: "test"})
	if err == nil {
		err = from.Append(t.Context(), tok, 0, 1, []byte("a batch"))
	}
	if err == nil {
		_, err = k.save(a)(t.Context(), from, clitest.ZeroKey(), history, 1)
	}
	if err := errors.Join(err, k.store.Remember(history), s.Close(),
		os.Rename(in("disk"), in("away"))); err != nil {
		t.Fatal(err)
	}
	opens(withNew(false), cli.ExitUnavailable)
	wantNames(t, above, "away", "owner.id")
	worked(t, os.MkdirAll(in("disk", "archive"), 0o700))
	opens(withNew(false), cli.ExitUnavailable) // the mount point is an empty folder
	wantNames(t, in("disk"), "archive")
	clitest.WantFiles(t, in("disk", "archive"))
	_, s = opens(withNew(true), 0)
	if !strings.Contains(logged.String(), "a new one begins") {
		t.Errorf("about a new archive: %q", logged.String())
	}
	if err := errors.Join(s.Close(), os.RemoveAll(in("disk")),
		os.Rename(in("away"), in("disk"))); err != nil {
		t.Fatal(err)
	}
	_, s = opens(withNew(false), 0)
	if err := s.Close(); err != nil || logged.Len() > 0 {
		t.Errorf("%v, and about the present folder: %q", err, logged.String())
	}
}

// The same for the disk of the secret key. No other key is made in its place.
func TestAStartWaitsForTheDiskOfItsKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	cfg := config.Demo()
	cfg.Data, cfg.SecretKeyFile = t.TempDir(), filepath.Join(dir, "exchange.key")
	worked(t, cfg.Finish())
	key := engineOptions(cfg, nil, slog.Default()).Sealer
	holds := func(beginNew bool) int {
		return cli.ExitCode(refusals(newKnown(cfg, beginNew,
			slog.Default())))
	}
	if code := holds(false); code != cli.ExitUnavailable || holds(true) != cli.ExitDone {
		t.Errorf("without its folder: %d, --new: %d", code, holds(true))
	}
	worked(t, os.Mkdir(dir, 0o700))
	_, empty := key(true)
	worked(t, os.WriteFile(filepath.Join(dir, "other"), nil, 0o600))
	_, lost := key(true)
	for err, code := range map[error]int{empty: cli.ExitUnavailable, lost: cli.ExitUsage} {
		if got := startFailed(t.Context(), err); cli.ExitCode(got) != code ||
			!strings.Contains(got.Error(), "sealed API secrets in the store") {
			t.Errorf("%v, want %d", got, code)
		}
	}
	if _, err := key(false); err != nil || holds(false) != cli.ExitDone {
		t.Errorf("a new store: %v, %d", err, holds(false))
	}
}

// wantNames checks the names in a folder.
func wantNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if err != nil || strings.Join(names, " ") != strings.Join(want, " ") {
		t.Errorf("%s has %v, %v; want %v", dir, names, err, want)
	}
}

// The parent of a configured folder is not made: its disk may not be mounted, or the name be wrong.
func TestAStartMakesNoFolderAboveAConfiguredOne(t *testing.T) {
	t.Chdir(t.TempDir())
	for dir, code := range map[string]int{"none/data": cli.ExitUnavailable, "data": 0, "other": 0,
		"./data/nodes/a": 0, "data-2/a": cli.ExitUnavailable, "data/../none/a": cli.ExitUnavailable,
		filepath.Join(t.TempDir(), "none", "a"): cli.ExitUnavailable,
		filepath.Join(t.TempDir(), "a"):         0} {
		if err := mayServeIn(dir); cli.ExitCode(err) != code {
			t.Errorf("%s: %v, want %d", dir, err, code)
		}
	}
	runLine(nil, "serve", "--demo", "--data", "none/data").WantError(t, cli.ExitUnavailable,
		"the folder none for data does not exist: create it")
	clitest.WantFiles(t, ".")
}
