//go:build linux

package crash

import (
	"os"
	"path/filepath"
	"strings"

	"exchange/cmd/exchange/exchangetest"
)

func onPebbleFolder(c *chaos) {
	c.folder = c.t.TempDir()
	c.serve("pebble:" + c.folder)
}

// removeFiles kills the exchange, and removes each file of its folder in turn, on a copy: a start refuses
// the copy as damaged and says what to do, or everything that was acknowledged is there.
func (c *chaos) removeFiles() {
	c.t.Helper()
	c.tradeOn(c.s)
	c.s.Kill()
	var names []string
	err := filepath.WalkDir(c.folder, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			names = append(names, strings.TrimPrefix(path, c.folder+"/"))
		}
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	refused := 0
	for _, name := range names {
		if c.refusesWithout(name) {
			refused++
		}
	}
	c.t.Logf("of %d files, a start without one is refused for %d", len(names), refused)
	if refused < 3 || refused == len(names) {
		c.t.Errorf("a start without one of %v is refused for %d of them", names, refused)
	}
	c.s.Start()
}

// refusesWithout starts an exchange on a copy of the folder without a file, and reports whether it refuses that.
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
		if text := s.Log(); s.ExitCode() != 70 || !strings.Contains(strings.ToLower(text), "restore a backup") {
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

// startFull kills the exchange, and starts it on a disk without room. It says so in a few lines and ends,
// or is ready, because it has found files of its own that it could remove.
func (c *chaos) startFull() {
	c.t.Helper()
	c.s.Kill()
	if c.mounted {
		makeRoom, before := c.ballast(), len(c.s.Log())
		c.s.Run()
		if ended := c.endsOrIsReady(c.s, "a start on a full disk"); ended {
			text := c.s.Log()[before:]
			if lines := strings.Count(text, "\n"); c.s.ExitCode() != 75 || lines > 20 || !strings.Contains(text, "no space left on device") {
				c.t.Errorf("on a full disk a start ends with %d and says %d lines:\n%.4000s", c.s.ExitCode(), lines, text)
			}
		}
		c.s.Kill()
		makeRoom()
	}
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
