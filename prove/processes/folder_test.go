//go:build prove && linux

package processes

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exchange/prove/exchangetest"
)

func onPebbleFolder(c *chaos) {
	c.folder = c.t.TempDir()
	c.serve("pebble:" + c.folder)
}

// removeFiles kills the exchange when its folder has two of Pebble's logs with data that no table
// has. It removes each file of the folder in turn, on a copy. A start refuses the copy as damaged
// and says how to go on, or everything that was acknowledged is there.
func (c *chaos) removeFiles() {
	c.t.Helper()
	needed := c.twoLogs()
	names := c.files()
	var refused []string
	for _, name := range names {
		if c.refusesWithout(name) {
			refused = append(refused, name)
		}
	}
	c.t.Logf("of %d files, a start is refused without any of %v", len(names), refused)
	for _, kind := range []string{".sst", "MANIFEST", ".journal", needed} {
		if !slices.ContainsFunc(refused,
			func(name string) bool { return name == kind || kindOf(name) == kind }) {
			c.t.Errorf("no start is refused without %s; the folder has %v", kind, names)
		}
	}
	c.s.Start()
}

// kindOf returns the kind of file of a name.
func kindOf(name string) string {
	if strings.HasPrefix(name, "MANIFEST") {
		return "MANIFEST"
	}
	return filepath.Ext(name)
}

// twoLogs has the exchange trade, without snapshots, until Pebble has begun another log and written
// no table since. It kills the exchange, and returns the name of the earlier log. That log has
// Applies that no other file has, and the newer log has those that follow.
func (c *chaos) twoLogs() (before string) {
	c.t.Helper()
	often := c.s.Env
	defer func() { c.s.Env = often }()
	const never = "1000000" // records
	c.s.Env = slices.Concat(often,
		[]string{"EXCHANGE_SNAPSHOT_MIN_RECORDS=" + never,
			"EXCHANGE_SNAPSHOT_MAX_RECORDS=" + never})
	for range 5 {
		c.s.Kill()
		c.s.Start()
		other := c.tradeOn(c.s)
		exchangetest.Eventually(c.t, "Pebble has a log behind its newest table", func() bool {
			c.trade(other, 100)
			return c.logBefore() != ""
		})
		c.trade(other, 100) // these are in the newest log
		c.s.Kill()
		if before = c.logBefore(); before != "" {
			return before
		}
	}
	c.t.Fatalf("Pebble writes tables again and again: %v", c.files())
	return ""
}

// logBefore returns the log before the newest one, if that is behind all tables. Pebble numbers all
// its files in one sequence.
func (c *chaos) logBefore() string {
	c.t.Helper()
	var logs, all []string
	for _, name := range c.files() {
		switch kindOf(name) {
		case ".log":
			logs = append(logs, name)
			fallthrough
		case ".sst":
			all = append(all, name)
		}
	}
	if len(logs) < 2 || slices.Max(all) != slices.Max(logs) { // numbers have 6 digits
		return ""
	}
	slices.Sort(logs)
	return logs[len(logs)-2]
}

// files returns the names of all files in the exchange's folder.
func (c *chaos) files() (names []string) {
	c.t.Helper()
	err := filepath.WalkDir(c.folder, func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			return nil
		}
		if err == nil && d.Type().IsRegular() {
			names = append(names, strings.TrimPrefix(path, c.folder+"/"))
		}
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return names
}

// refusesWithout starts an exchange on a copy of the folder without a file, and reports whether it
// refuses that.
func (c *chaos) refusesWithout(name string) bool {
	c.t.Helper()
	folder := filepath.Join(c.t.TempDir(), "folder")
	if err := os.CopyFS(folder, os.DirFS(c.folder)); err != nil {
		c.t.Fatal(err)
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a folder in the system's temporary folder
	if err := os.Remove(filepath.Join(folder, name)); err != nil {
		c.t.Fatal(err)
	}
	s := exchangetest.New(c.t, "pebble:"+folder, "--secret-key-file", c.s.Data("exchange.key"))
	s.Env = append(s.Env, manySnapshots...)
	s.Run()
	if c.endsOrIsReady(s, "a start without "+name) {
		if text := s.Log(); s.ExitCode() != 70 ||
			!strings.Contains(strings.ToLower(text), "restore a backup") {
			c.t.Errorf("a start without %s ends with %d: %s", name, s.ExitCode(), text)
		}
		return true
	}
	defer s.Kill()
	if err := s.Audit(); err != nil {
		c.t.Errorf("without %s: %v", name, err)
	}
	first := c.s
	c.s = s
	c.compareOthers()
	c.s = first
	return false
}

func onFullPebble(c *chaos) {
	c.smallDisk()
	c.serve("pebble:" + filepath.Join(c.folder, "data"))
}

// startFull kills the exchange, and starts it on a disk without room, or with files that may not
// grow. It says so in a few lines and ends. On a disk the exchange may also be ready, because it
// has found files of its own to remove.
func (c *chaos) startFull() {
	c.t.Helper()
	c.s.Kill()
	before, reason, makeRoom := len(c.s.Log()), "file too large", func() {}
	if c.mounted {
		makeRoom, reason = c.ballast(), "no space left on device"
		c.s.Run()
	} else {
		c.s.RunWithoutRoom()
	}
	if c.endsOrIsReady(c.s, "a start on a full disk") {
		text := c.s.Log()[before:]
		if lines := strings.Count(text, "\n"); c.s.ExitCode() != 75 || lines > 20 ||
			!strings.Contains(text, reason) {
			c.t.Errorf("on a full disk a start ends with %d and says %d lines:\n%.4000s",
				c.s.ExitCode(), lines, text)
		}
	} else if !c.mounted {
		c.t.Error("a start that can write no file is ready")
	}
	c.s.Kill()
	makeRoom()
	c.s.Start()
}

// endsOrIsReady waits for an exchange that was started, and reports whether it ended.
func (c *chaos) endsOrIsReady(s *exchangetest.Server, what string) (ended bool) {
	c.t.Helper()
	exchangetest.Eventually(c.t, what+" is ready, or ends", func() bool {
		select {
		case <-s.Exited():
			ended = true
			return true
		default:
			return s.Ready() == nil
		}
	})
	return ended
}
