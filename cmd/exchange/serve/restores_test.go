package serve

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"exchange/actors/seal"
	"exchange/cmd/exchange/cli"
	"exchange/core/event"
	"exchange/core/state"
	"exchange/persistence"
	"exchange/persistence/pebble"
	"exchange/prove/clitest"
)

func TestARestoreTakesTheNewestBackupIntoAnEmptyStore(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		t.Helper()
		name = filepath.Join(dir, name)
		worked(t, os.WriteFile(name, b, 0o600))
		return name
	}
	before := state.New() // a restore, in other histories
	for id := range byte(2) {
		if err := before.Apply(&event.Record{Kind: event.KindHistory,
			History: event.HistoryID{1 + id}}, new(state.Effects)); err != nil {
			t.Fatal(err)
		}
	}
	older := write("exchange-6.backup", clitest.Backup(t, before, "alice", "bob"))
	newest := write("exchange-4.backup", clitest.Backup(t, state.New(), "alice", "bob"))
	write("notes.txt", []byte("not ours"))
	write("exchange-04.backup", []byte("not ours"))
	store, data := filepath.Join(t.TempDir(), "store"), t.TempDir()
	environ := []string{"EXCHANGE_STORE=pebble:" + store, "EXCHANGE_DATA=" + data,
		clitest.WithZeroKey}
	restore := func(args ...string) clitest.Result {
		return runLine(environ, append([]string{"restore", "--demo"}, args...)...)
	}
	r := restore(dir)
	want := regexp.MustCompile(`^restored +pebble:` + store + `
from +` + newest + `, the newest of 2
taken +2\d\d\d-\d\d-\d\dT.*Z
sequence +4
accounts +2
rows +1
authenticated +yes: written under the server's key, and unchanged; that it is the newest backup nothing proves

Next:
- inform your clients: everything acknowledged after 2\d\d\d-\d\d-\d\dT.*Z is gone
- the secret key in ` + data + `/exchange.key is another: ` + regexp.QuoteMeta(lostKeyHelp) + `
- start the exchange with this configuration: exchange serve
- compare its books: exchange audit
- codes that were mailed for withdrawals before have expired then: an owner's first try has a new one mailed, and costs no try
$`)
	if r.Code != 0 || r.ErrOut != "" || !want.MatchString(r.Out) {
		t.Fatalf("%d %s\n%s\nwant\n%s", r.Code, r.ErrOut, r.Out, want)
	}
	s := must(pebble.Open(store, pebble.Options{}))
	if _, last, err := s.Acquire(t.Context(), persistence.Claim{Owner: "test"}); err != nil ||
		last != 4 {
		t.Errorf("the journal ends at %d, %v", last, err)
	}
	restore(dir).WantError(t, cli.ExitUnavailable, "in use by another process")
	worked(t, s.Close())
	restore(dir).WantError(t, cli.ExitUsage,
		"the store is not empty: it has a history up to sequence 4; nothing was written to pebble:"+
			store)

	restoresChosen(t, data, older, newest)
	restoreRefuses(t, newest)
	restoreMakesItsFolders(t, newest)
}

func restoreMakesItsFolders(t *testing.T, good string) {
	t.Helper()
	dir := t.TempDir()
	in := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	restore := func(data, store string) clitest.Result {
		return runLine([]string{clitest.WithZeroKey}, "restore", "--demo", "--data", data,
			"--store",
			"pebble:"+store, good)
	}
	for _, x := range [][2]string{{in("none", "data"), in("store")},
		{in("data"), in("none", "store")}, {in("none", "data"), in("none", "data", "store")}} {
		restore(x[0], x[1]).WantError(t, cli.ExitUsage,
			"the folder "+in("none")+" for ")
		clitest.WantFiles(t, dir)
	}
	for _, x := range [][2]string{{in("data"), in("store")}, {in("with"), in("with", "store")}} {
		if r := restore(x[0], x[1]); r.Code != 0 {
			t.Errorf("%+v", r)
		}
		if info, err := os.Stat(x[0]); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("the folder has the mode %v, %v", info, err)
		}
	}
}

// restoresChosen restores backups by their names.
func restoresChosen(t *testing.T, data, older, newest string) {
	t.Helper()
	environ := []string{"EXCHANGE_STORE=pebble:" + filepath.Join(t.TempDir(), "second"),
		"EXCHANGE_DATA=" + data, clitest.WithZeroKey}
	environ = append(environ, "EXCHANGE_SOMETHING=x")
	before := t.TempDir()
	worked(t, os.WriteFile(filepath.Join(before, "part"), nil, 0o600))
	r := runLine(environ, "restore", "--demo", older, "--archive", before)
	for _, word := range []string{older + "\n", "sequence       6",
		"is another: bring exchange.key back", "name an empty folder as archive",
		"that in " + before + " belongs to what was before; keep it"} {
		if r.Code != 0 || !strings.Contains(r.Out, word) {
			t.Errorf("%q is missing: %+v", word, r)
		}
	}
	if r.ErrOut !=
		"exchange: the environment variable EXCHANGE_SOMETHING names no option and is ignored\n" {
		t.Errorf("stderr is %q", r.ErrOut)
	}
	r = runLine([]string{"EXCHANGE_STORE=pebble:" + filepath.Join(t.TempDir(), "third"),
		"EXCHANGE_DATA=" + data},
		"restore", "--demo", "--json", "--without-authentication", newest)
	if r.Code != 0 || !strings.Contains(r.Out, `"of":1,"sequence":4,`) ||
		!strings.HasPrefix(r.ErrOut, "exchange: WITHOUT AUTHENTICATION: nothing proves that") ||
		!strings.HasSuffix(r.Out,
			`"accounts":2,"rows":1,"authenticated":false,"secret_key":"missing"}`+"\n") {
		t.Errorf("%+v", r)
	}
}

// restoreRefuses checks refusals that come before anything is written.
func restoreRefuses(t *testing.T, good string) {
	store, dir := filepath.Join(t.TempDir(), "store"), t.TempDir()
	f := func(code int, path, want string, more ...string) {
		t.Helper()
		args := append([]string{"restore", "--demo", "--store", "pebble:" + store, path}, more...)
		runLine([]string{clitest.WithZeroKey}, args...).WantError(t, code, want)
		if _, err := os.Stat(store); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the store was made: %v", err)
		}
	}
	f(cli.ExitUsage, dir,
		"there is no backup in "+dir+": it would be called exchange-SEQUENCE.backup")
	f(cli.ExitUsage, filepath.Join(dir, "nothing"), "there is no backup: stat ")
	f(cli.ExitUsage, good, "listen is ", "--listen", "nowhere")
	b := must(os.ReadFile(good))
	bad := filepath.Join(dir, "exchange-9.backup")
	keyless := filepath.Join(dir, "exchange.key")
	other := []string{"EXCHANGE_SECRET_KEY=" + strings.Repeat("11", seal.KeyBytes)}
	for want, environ := range map[string][]string{
		"there is no secret key in " + keyless: {"EXCHANGE_DATA=" + dir},
		fmt.Sprintf(
			"authenticated under a secret key that is not at hand: %016x; there is secret key",
			clitest.ZeroKey().ID()): other,
	} {
		r := runLine(environ, "restore", "--demo", "--store", "pebble:"+store, good)
		r.WantError(t, cli.ExitUsage, want)
		for _, word := range []string{"--without-authentication", "exchange.key.ID",
			"nothing was written"} {
			if !strings.Contains(r.ErrOut, word) {
				t.Errorf("%q is missing: %s", word, r.ErrOut)
			}
		}
	}
	forged := bytes.Clone(b)
	forged[len(forged)-1] ^= 1
	for what, b := range map[string][]byte{"authentication is wrong": forged,
		"does not end with the proof": append(bytes.Clone(b), 'x')} {
		worked(t, os.WriteFile(bad, b, 0o600))
		f(cli.ExitBroken, bad, what)
	}
	f(cli.ExitBroken, bad, bad+": the backup is damaged")
	f(cli.ExitBroken, dir, "nothing was written")
	if err := os.WriteFile(bad, b[:10], 0o600); err != nil { // how old is it?
		t.Fatal(err)
	}
	f(cli.ExitBroken, dir, "if it is not the one to restore, name the file that is")
	if r := runLine(nil, "restore", good); r.Code != cli.ExitUsage ||
		!strings.Contains(r.ErrOut, "exchange config example") {
		t.Errorf("without a configuration: %+v", r)
	}
}
