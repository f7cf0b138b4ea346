package clitest

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"exchange/actors/seal"
	"exchange/core/event"
	"exchange/core/state"
	"exchange/persistence"
	"exchange/persistence/backup"
	"exchange/persistence/memory"
)

// ZeroKey returns the key that authenticates the backups of Backup.
func ZeroKey() *seal.Sealer {
	key, err := seal.New(make([]byte, seal.KeyBytes))
	if err != nil {
		panic(err)
	}
	return key
}

// WithZeroKey is the environment of a command with the key of ZeroKey.
var WithZeroKey = "EXCHANGE_SECRET_KEY=" + strings.Repeat("00", seal.KeyBytes)

// Backup returns a backup of an exchange that begins with a state, and opens these accounts, each
// with a key.
func Backup(t testing.TB, s *state.State, accounts ...string) []byte {
	t.Helper()
	store, e := memory.Open(memory.NewDisk(), persistence.Retention{}), state.Effects{}
	var all []error
	for i, name := range accounts {
		id := uint32(i + 1)
		all = append(all, s.Apply(
			&event.Record{Kind: event.KindAccount, Account: event.Account{ID: id, Name: name}}, &e),
			s.Apply(&event.Record{Kind: event.KindKey, Key: event.Key{Number: id, Account: id,
				Key: "key of " + name, SealedBy: 5, Sealed: []byte("x")}}, &e))
	}
	ctx := context.Background()
	token, _, err := store.Acquire(ctx, persistence.Claim{Owner: "test"})
	var b bytes.Buffer
	if err := errors.Join(append(all, err, store.Apply(ctx, token, 0, s.Seq(),
		&persistence.Writes{Actions: []persistence.Action{{Seq: 1, Operator: "a", What: "b"}}}),
		backup.Write(ctx, &b, store, s.AppendTo(nil), ZeroKey(), func(int) {}))...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// WantFiles expects exactly these files in a folder, each readable by its owner alone. A missing
// folder has none.
func WantFiles(t testing.TB, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", e.Name(), info.Mode(), err)
		}
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("there are %v, want %v", got, names)
	}
}
