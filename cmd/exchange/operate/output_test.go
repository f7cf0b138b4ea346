package operate

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"exchange/cmd/exchange/cli"
	"exchange/core/state"
	"exchange/prove/clitest"
)

var errDiskFull = errors.New("no space left on device")

// A brokenWriter takes room bytes.
type brokenWriter struct{ room int }

func (w *brokenWriter) Write(b []byte) (int, error) {
	if w.room -= len(b); w.room < 0 {
		return 0, errDiskFull
	}
	return len(b), nil
}

// The command is carried out; only its answer cannot be written. That is no broken invariant, and
// for `audit` no difference.
func TestAnAnswerThatCannotBeWrittenExitsWith75(t *testing.T) {
	run := func(room int, environ []string, line string) (int, string) {
		var errOut bytes.Buffer
		p := &cli.Program{Environ: environ, Stdout: &brokenWriter{room}, Stderr: &errOut}
		code := p.Execute(t.Context(), commandLine, words(line))
		return code, errOut.String()
	}
	for _, line := range []string{"export --help", "--help"} {
		if code, output := run(0, nil, line); code != cli.ExitUnavailable ||
			strings.Count(output, errDiskFull.Error()) != 1 {
			t.Errorf("%s: %d %s", line, code, output)
		}
	}
	for _, x := range streaming {
		for _, room := range []int{0, 30} {
			f := newFake(t, 200, x.lines+end(x.end))
			for _, form := range []string{"", " --json"} {
				code, output := run(room, f.environ, x.line+form)
				if code != cli.ExitUnavailable || strings.Count(output, errDiskFull.Error()) != 1 ||
					strings.Count(output, "\n") != 1 {
					t.Errorf("%s%s, room for %d bytes: %d %s", x.line, form, room, code, output)
				}
			}
		}
	}
	f := newFake(t, 200,
		`{"deposit":1,"account":"alice","currency":"BTC","amount":1,"balance":1,"reference":"cli-17"}`)
	if code, output := run(0, f.environ, "deposit alice BTC 1"); code != cli.ExitUnavailable ||
		!strings.Contains(output, "if you repeat it, use --reference cli-") {
		t.Errorf("a deposit: %d %s", code, output)
	}
}

func TestAnExportReplacesNothingButAFile(t *testing.T) {
	dir := t.TempDir()
	f := newFake(t, 200, trade1+"\n"+end("1"))
	path := func(name string) string { return filepath.Join(dir, name) }
	worked(t, errors.Join(os.WriteFile(path("file"), []byte("old"), 0o600),
		os.Symlink(path("file"), path("link")), os.Symlink(path("nowhere"), path("dangling")),
		os.Mkdir(path("folder"), 0o700), syscall.Mkfifo(path("pipe"), 0o600)))
	socket, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err := errors.Join(err, syscall.Bind(socket, &syscall.SockaddrUnix{Name: path("socket")}),
		syscall.Close(socket)); err != nil { // its file stays
		t.Fatal(err)
	}
	for name, kind := range map[string]string{path("link"): "a symbolic link",
		path("dangling"): "a symbolic link", path("folder"): "a folder", path("pipe"): "a pipe",
		path("socket"): "a socket", path("file") + "/x": "not a directory"} {
		before, _ := os.Lstat(name)
		runLine(f.environ, "export", "trades", "--pair", "BTC_USDT", "--output", name).WantError(t,
			cli.ExitUsage, kind)
		runLine(f.environ, "export", "trades", "--pair", "BTC_USDT", "--output", name).WantError(t,
			cli.ExitUsage, "--output")
		if after, _ := os.Lstat(name); before != nil &&
			(after == nil || after.Mode() != before.Mode()) {
			t.Errorf("%s is %v now", name, after)
		}
	}
	f.wantAsked()
	// Only checked: a fault of the command would replace this machine's own.
	if err := cli.CheckReplaceable("--output", os.DevNull); cli.ExitCode(err) != cli.ExitUsage ||
		!strings.Contains(err.Error(), "a device") {
		t.Errorf("a device: %v", err)
	}
	for _, name := range []string{"file", "new"} {
		if r := runLine(f.environ, "export", "trades", "--pair", "BTC_USDT", "--output",
			path(name)); r.Code != 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestAnExportThatIsRefusedWritesNothing(t *testing.T) {
	runLine(newFake(t, 400, `{"error":"there is no pair XX_YY"}`).environ,
		words("export trades --pair XX_YY")...).WantError(t, cli.ExitUsage,
		"there is no pair XX_YY")
	header, _, _ := strings.Cut(tradeCSV, "\n")
	runLine(newFake(t, 200, end("0")).environ, words("export trades --pair BTC_USDT")...).Want(t, 0,
		header+"\n", "")
	runLine(newFake(t, 200, end("0")).environ,
		words("export trades --pair BTC_USDT --json")...).Want(t, 0, "", "")
}

func TestLeftoversOfKilledCommandsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-cli.StreamTimeout - time.Minute)
	for name, at := range map[string]time.Time{".exchange-unfinished-1": old,
		".exchange-unfinished-2": time.Now(), ".unfinished-3": old, "exchange-unfinished-4": old} {
		worked(t, errors.Join(os.WriteFile(filepath.Join(dir, name), nil, 0o600),
			os.Chtimes(filepath.Join(dir, name), at, at)))
	}
	if r := runLine(newFake(t, 200, string(clitest.Backup(t, state.New(), "alice"))).environ,
		"backup",
		dir); r.Code != 0 {
		t.Fatal(r)
	}
	clitest.WantFiles(t, dir, ".exchange-unfinished-2", ".unfinished-3", "exchange-2.backup",
		"exchange-unfinished-4")
}
