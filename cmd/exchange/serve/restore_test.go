package serve

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange/cmd/exchange/cli"
	"exchange/core/event"
	"exchange/core/state"
	"exchange/persistence/backup"
	"exchange/prove/clitest"
)

// A backup of the test below: each account is two records of its history.
type takenBackup struct {
	at       time.Duration // when it was taken
	history  byte
	accounts int
}

// Within one history the sequence decides, because a clock may have been wrong. Sequences of
// different histories are not comparable, and times in the future are wrong.
func TestTheNewestBackupIsTheFurthestOfTheLastHistory(t *testing.T) {
	for name, x := range map[string]struct {
		list []takenBackup
		now  time.Duration
		want int // index
		warn int // number in the future
	}{
		"a clock was ahead": {[]takenBackup{{2 * time.Hour, 1, 1}, {time.Hour, 1, 3}},
			3 * time.Hour, 1, 0},
		"and the time has yet to come": {[]takenBackup{{9 * time.Hour, 1, 1}, {time.Hour, 1, 3}},
			2 * time.Hour, 1, 1},
		"after a restore": {[]takenBackup{{time.Hour, 1, 3}, {2 * time.Hour, 2, 1}},
			3 * time.Hour, 1, 0},
		"after a restore of a backup with a wrong clock": {[]takenBackup{{time.Hour, 1, 1},
			{9 * time.Hour, 1, 4}, {2 * time.Hour, 2, 2}}, 3 * time.Hour, 2, 1},
		"all are of the future": {[]takenBackup{{8 * time.Hour, 1, 1}, {7 * time.Hour, 1, 2}},
			time.Hour, 1, 2},
		"one alone": {[]takenBackup{{8 * time.Hour, 1, 1}}, time.Hour, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir, files := t.TempDir(), make([]string, len(x.list))
			for i, b := range x.list {
				files[i] = b.write(t, dir)
			}
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(x.now)
				var stderr bytes.Buffer
				got, of, err := (&Commands{&cli.Program{Stderr: &stderr}}).findBackup(dir)
				if want := files[x.want]; err != nil || got != want || of != len(files) {
					t.Errorf("%s of %d, %v; want %s", got, of, err, want)
				}
				if n := strings.Count(stderr.String(), "is in the future"); n != x.warn {
					t.Errorf("%d warnings, want %d: %s", n, x.warn, stderr.String())
				}
				stderr.Reset() // of a file given by name
				_, _, err = (&Commands{&cli.Program{Stderr: &stderr}}).findBackup(files[x.want])
				if late := x.list[x.want].at > x.now; err != nil ||
					strings.Contains(stderr.String(), "is in the future") != late {
					t.Errorf("%v, and stderr is %q", err, stderr.String())
				}
			})
		})
	}
}

// write writes a backup at its time, and returns its name.
func (b takenBackup) write(t *testing.T, dir string) string {
	t.Helper()
	s := state.New()
	err := s.Apply(&event.Record{Kind: event.KindHistory, History: event.HistoryID{b.history}},
		new(state.Effects))
	var text []byte
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(b.at)
		text = clitest.Backup(t, s, []string{"alice", "bob", "carol", "dave"}[:b.accounts]...)
	})
	name := filepath.Join(dir, backup.FileName(s.Seq()))
	if err := errors.Join(err, os.WriteFile(name, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	return name
}
