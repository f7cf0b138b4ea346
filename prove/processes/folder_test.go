//go:build prove && linux

package processes

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"exchange/prove/exchangetest"
)

func onPebbleFolder(c *chaos) {
	c.folder = c.t.TempDir()
	c.serve("pebble:" + c.folder)
}

// kindOf returns the kind of file of a name.
func kindOf(name string) string {
	if strings.HasPrefix(name, "MANIFEST") {
		return "MANIFEST"
	}
	return filepath.Ext(name)
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
	succeeds(c.t, err)
	return names
}

func onFullPebble(c *chaos) {
	c.smallDisk()
	c.serve("pebble:" + filepath.Join(c.folder, "data"))
}

// startFull kills the exchange, and starts it on a full disk, or with files that cannot grow. It
// logs that in a few lines and ends. On a disk the exchange may also become ready, because it has
// removed obsolete files of its own.
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

// endsOrIsReady waits for a started exchange, and reports whether it ended.
func (c *chaos) endsOrIsReady(s *exchangetest.Server, what string) (ended bool) {
	c.t.Helper()
	exchangetest.Eventually(c.t, what+" is ready, or ends", func() bool {
		ended = s.Gone()
		return ended || s.Ready() == nil
	})
	return ended
}
