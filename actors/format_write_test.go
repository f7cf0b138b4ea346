//go:build prove

package actors

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exchange/persistence"
	"exchange/persistence/redistest"
)

var rewrite = flag.Bool("write-format", false, "rewrite "+formatFolder)

func init() {
	formats["redis"] = openRedisFormat
	writeFormats = func(t *testing.T) {
		if *rewrite {
			writeFormat(t, formatFolder)
		}
	}
}

func openRedisFormat(t *testing.T) persistence.Store {
	t.Helper()
	r := redistest.Start(t)
	r.Kill()
	entries := must[[]string](t)(filepath.Glob(filepath.Join(r.Dir(), "appendonlydir", "*")))
	for _, e := range entries {
		succeeds(t, os.Remove(e))
	}
	copyFolder(t, r.Dir(), filepath.Join(formatFolder, "redis"))
	r.Restart()
	return openRedis(t, r.URL(), "")
}

func writeFormat(t *testing.T, folder string) {
	succeeds(t, os.RemoveAll(folder))
	dir := filepath.Join(folder, "pebble")
	s := openPebble(t, dir)
	writeEverything(t, s)
	// it names this machine
	succeeds(t, errors.Join(s.Close(), os.Remove(filepath.Join(dir, "HOLDER"))))
	r := redistest.Start(t)
	s = openRedis(t, r.URL(), "")
	writeEverything(t, s)
	succeeds(t, s.Close())
	r.Kill()
	copyFolder(t, filepath.Join(folder, "redis", "appendonlydir"),
		filepath.Join(r.Dir(), "appendonlydir"))
	for name, open := range map[string]func() persistence.Store{
		"pebble": func() persistence.Store {
			tmp := filepath.Join(t.TempDir(), "data")
			copyFolder(t, tmp, dir)
			return openPebble(t, tmp)
		},
		"redis": func() persistence.Store { r.Restart(); return openRedis(t, r.URL(), "") },
	} {
		s := open()
		text := summary(t, s)
		s.Close()
		succeeds(t, os.WriteFile(filepath.Join(folder, name+".txt"), []byte(text),
			0o644))
		t.Logf("%s: %s", name, strings.TrimSpace(text))
	}
}
