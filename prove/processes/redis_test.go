//go:build prove

package processes

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exchange/persistence/redistest"
	"exchange/prove/exchangetest"
)

// swap replaces one folder by another.
func swap(t *testing.T, dir, by string) {
	t.Helper()
	succeeds(t, os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(by)))
}

// refusesLostTail starts on a Redis that has lost acknowledged records.
func refusesLostTail(t *testing.T, s *exchangetest.Server) {
	t.Helper()
	head := s.Data("HEAD.redis")
	if info, err := os.Stat(head); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info, err)
	}
	for range 2 {
		s.Refuses(70, "were acknowledged, and this Redis ends at", "restore a backup",
			"remove "+head, "Nothing was changed")
	}
}

// A Redis comes back from an older copy of its files: intact, but without the newest orders. An
// exchange that has acknowledged these must not resume, until an operator accepts the loss or
// restores a backup.
func TestARedisThatLostItsTailIsNotServed(t *testing.T) {
	r := redistest.Start(t)
	s := exchangetest.New(t, r.URL())
	s.Start()
	w := opened(t, s, 2)
	w.load(100, func() {})
	backups := t.TempDir()
	w.run(0, "", "backup", backups)
	files, older := filepath.Join(r.Dir(), "appendonlydir"), filepath.Join(t.TempDir(), "older")
	r.Kill()
	swap(t, older, files)
	r.Restart()
	serves(t, s)
	w.load(100, s.Kill)
	lost := func() { t.Helper(); refusesLostTail(t, s) }
	newer := filepath.Join(t.TempDir(), "newer")
	r.Kill()
	swap(t, newer, files)
	swap(t, files, older)
	r.Restart()
	lost()
	// The right files are restored.
	r.Kill()
	swap(t, files, newer)
	r.Restart()
	s.Start()
	w.compare()
	// They are permanently lost, and a backup is restored: it is accepted, and from then on the
	// store is checked as before.
	s.Kill()
	flush := func() {
		t.Helper()
		succeeds(t, r.Client().FlushAll(t.Context()).Err())
	}
	flush()
	s.Refuses(75, "nothing is there")
	restore := append([]string{"restore", backups}, s.Args[1:]...)
	w.run(0, "", restore...)
	s.Start()
	succeeds(t, s.Audit())
	w.run(75, "is held by pid", restore...)
	s.Kill()
	w.run(64, "the store is not empty", restore...)
	flush()
	s.Refuses(75, "nothing is there")
	// A truncated file does not count as 0: neither a start nor a restore continues.
	succeeds(t, os.Truncate(s.Data("HEAD.redis"), 16))
	s.Refuses(70, s.Data("HEAD.redis"), "up to where the journal was acknowledged", "remove it")
	w.run(64, "remove it", restore...)
	// The loss is accepted.
	succeeds(t, os.Remove(s.Data("HEAD.redis")))
	s.Args = append(s.Args, "--new")
	s.Start()
	stops(t, s)
	if _, err := os.Stat(s.Data("HEAD.redis")); errors.Is(err, fs.ErrNotExist) {
		t.Error("nobody remembers what is acknowledged from now on")
	}
}

// Redis is no longer durable, while it runs or since its restart: no order is acknowledged on it.
func TestARedisThatIsNotDurableAnyMoreIsNotUsed(t *testing.T) {
	r := redistest.Start(t, "appendfsync", "everysec")
	set := func(value string) {
		t.Helper()
		succeeds(t, r.Client().ConfigSet(t.Context(), "appendfsync", value).Err())
	}
	set("always")
	s := exchangetest.New(t, r.URL())
	s.Env = append(s.Env, "EXCHANGE_TIMING_STALL_MAX_MS=6000",
		"EXCHANGE_TIMING_REQUEST_TIMEOUT_MS=1000")
	s.Start()
	w := opened(t, s, 2)
	w.load(50, func() {})
	refuses := func() { w.waitFor("orders are refused", 503, "store is not available") }
	set("everysec")
	refuses()
	set("always")
	w.waitFor("orders are taken", 401, "Wrong Nonce")
	w.load(50, func() {})
	w.compare()
	r.Kill()
	r.Restart() // the right value is not written to its file
	refuses()
	exchangetest.Eventually(t, "the exchange ends", func() bool {
		w.traders[0].act() //nolint:errcheck // a waiting append ends it
		return s.Gone()
	})
	if code := s.ExitCode(); code != 75 {
		t.Errorf("it ends with %d, want 75", code)
	}
	for _, want := range []string{"the store does not ", "appendfsync is", "everysec",
		"--accept-redis-durability"} {
		if !strings.Contains(s.Log(), want) {
			t.Errorf("the log does not say %q", want)
		}
	}
}

// Redis may listen on a Unix socket.
func TestRedisOnAUnixSocketIsServed(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "redis.sock")
	redistest.Start(t, "unixsocket", socket)
	s := exchangetest.New(t, "unix://"+socket+"?db=2")
	s.Start()
	w := opened(t, s, 2)
	w.load(50, s.Kill)
	s.Start()
	w.compare()
}
