package folder

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exchange/persistence"
)

func TestFolderIsLockedByOneNamedProcess(t *testing.T) {
	dir := t.TempDir()
	first, err := Hold(dir)
	succeeds(t, err)
	if _, err := Hold(dir); !errors.Is(err, persistence.ErrLocked) ||
		!strings.Contains(err.Error(), fmt.Sprint("pid ", os.Getpid(), " on ")) {
		t.Errorf("a second one gets %v", err)
	}
	succeeds(t, first.Release())
	second, err := Hold(dir)
	succeeds(t, err)
	succeeds(t, second.Release())
	if info, err := os.Stat(filepath.Join(dir, "serve.lock")); err != nil ||
		info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := Hold(filepath.Join(dir, "none")); err == nil ||
		errors.Is(err, persistence.ErrLocked) {
		t.Errorf("a missing folder: %v", err)
	}
}

// A script that cleans up may remove the lock's file while it is held.
func TestFolderStaysLockedWhenLockFileIsRemoved(t *testing.T) {
	dir := t.TempDir()
	first, err := Hold(dir)
	succeeds(t, err)
	succeeds(t, os.Remove(filepath.Join(dir, lockName)))
	if _, err := Hold(dir); !errors.Is(err, persistence.ErrLocked) {
		t.Errorf("a second one gets %v", err)
	}
	succeeds(t, first.Release())
	second, err := Hold(dir)
	succeeds(t, err)
	if err := second.Release(); err != nil {
		t.Error(err)
	}
}

// The owner in a copied folder's file may live in the original folder. The file's mark of the store
// is valid all the same.
func TestCopiedFolderHasNoClaims(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	held, err := Hold(from)
	succeeds(t, err)
	defer held.Release() //nolint:errcheck // the test's end
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	claims := persistence.Ownerships{Newest: persistence.Ownership{ID: persistence.NewID()},
		Seen: persistence.Mark{Seq: 7}}
	succeeds(t, Of(from, log).Save(claims))
	if again, err := Of(from, log).Load(); err != nil || again != claims || logged.Len() > 0 {
		t.Errorf("%+v, %v, and the log says %s", again, err, logged.String())
	}
	succeeds(t, os.CopyFS(to, os.DirFS(from)))
	copied, err := Of(to, log).Load()
	if want := (persistence.Ownerships{Seen: claims.Seen}); err != nil || copied != want ||
		!strings.Contains(logged.String(), "copy") {
		t.Errorf("%+v, %v, and the log says %s", copied, err, logged.String())
	}
}

func TestIdentityIsLoadedWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	i := Of(dir, log)
	if loaded, err := i.Load(); err != nil || loaded != (persistence.Ownerships{}) {
		t.Fatalf("%+v, %v", loaded, err)
	}
	first := persistence.Ownership{ID: persistence.NewID()}
	for _, want := range []persistence.Ownerships{
		{Newest: first},
		{Newest: persistence.Ownership{ID: persistence.NewID(), WaitMs: 2000}, Before: first},
		{Newest: first, Seen: persistence.Mark{Seq: 7, Digest: 1<<64 - 1}, Accepted: 1 << 60},
		{Seen: persistence.Mark{Seq: 7}}, // of a standby without a claim
	} {
		succeeds(t, i.Save(want))
		if loaded, err := i.Load(); err != nil || loaded != want {
			t.Errorf("%+v, %v, want %+v", loaded, err, want)
		}
	}
	if logged.Len() > 0 {
		t.Errorf("it says %s", logged.String())
	}
	file := filepath.Join(dir, identityName)
	whole, err := os.ReadFile(file)
	succeeds(t, err)
	for _, text := range []string{"", "{", "null", "[]", `{"version":5,"newest":"other"}`,
		`{"version":5,"newest":{"id":"` + first.ID + `"}}`,
		`{"version":3,"newest":{"id":"` + first.ID + `"}}`,
		`{"version":0,"newest":{"id":"` + first.ID + `"}}`,
		`{"version":4}`, `{"version":4,"newest":{},"seen":{},"store":["x"]}`,
		`{"version":4,"newest":{"id":"x"}}`,
		`{"version":4,"newest":{"id":"x"},"seen":{"Seq":7}}`,
		string(whole[:len(whole)/2]), strings.Repeat(" ", 1<<20) + string(whole)} {
		succeeds(t, os.WriteFile(file, []byte(text), 0o600))
		logged.Reset()
		loaded, err := Of(dir, log).Load()
		if err != nil || loaded != (persistence.Ownerships{}) ||
			!strings.Contains(logged.String(), file) || strings.Contains(text, `"version":5`) &&
			!strings.Contains(logged.String(), "it is of version 5 and this program reads") {
			t.Errorf("%.60q gives %+v, %v, and the log says %s", text, loaded, err, logged.String())
		}
	}
}

func TestHistoriesAreStoredBesideClaims(t *testing.T) {
	dir := t.TempDir()
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	wants := func(m *Memory, want ...byte) {
		t.Helper()
		var got []byte
		ids, err := m.Known()
		for _, id := range ids {
			got = append(got, id[0])
		}
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("ids are %v, %v; want %v", got, err, want)
		}
	}
	i := Of(dir, log)
	claims := persistence.Ownerships{Newest: persistence.Ownership{ID: persistence.NewID()}}
	wants(i.Store())
	var err error
	for _, id := range []byte{1, 2, 3, 1, 1, 3} {
		err = errors.Join(err, i.Store().Remember(persistence.HistoryID{id}))
	}
	err = errors.Join(err, i.Archive().Remember(persistence.HistoryID{3}), i.Save(claims))
	i = Of(dir, log)
	wants(i.Store(), 2, 3, 1)
	wants(i.Archive(), 3)
	if loaded, e := i.Load(); e != nil || loaded != claims {
		t.Errorf("the claims are %+v, %v", loaded, e)
	}
	for id := range byte(40) {
		err = errors.Join(err, i.Store().Remember(persistence.HistoryID{100 + id}))
	}
	wants(i.Store(), 124, 125, 126, 127, 128, 129, 130, 131, 132, 133, 134, 135, 136, 137, 138, 139)
	err = errors.Join(err, i.Restored())
	wants(i.Store(), 0)
	wants(i.Archive())
	err = errors.Join(err, i.Archive().Remember(persistence.HistoryID{4}), i.Store().Forget())
	wants(i.Store())
	wants(i.Archive(), 4)
	if loaded, e := i.Load(); e != nil || loaded != (persistence.Ownerships{}) {
		t.Errorf("after another store the claims are %+v, %v", loaded, e)
	}
	err = errors.Join(err, i.Archive().Forget())
	wants(i.Archive())
	if err != nil || logged.Len() > 0 {
		t.Errorf("%v, and the log says %s", err, logged.String())
	}
}

// succeeds wants no errors.
func succeeds(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
