//go:build prove

package processes

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exchange/persistence/redistest"
	"exchange/prove/exchangetest"
)

// A disk that mounts late holds store and archive: starts end with 75 until it is mounted, and
// nothing is lost. --new creates others, and the old ones then belong to another exchange.
func TestAStartWaitsForADiskThatMountsLate(t *testing.T) {
	above := t.TempDir()
	disk, away := filepath.Join(above, "disk"), filepath.Join(above, "away")
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(disk, 0o700))
	s := exchangetest.New(t, "pebble:"+filepath.Join(disk, "store"), "--archive",
		filepath.Join(disk, "archive"))
	s.Env = append(s.Env, manySnapshots...)
	s.Start()
	for _, word := range []string{"a new exchange begins", "the archive is empty"} {
		if !strings.Contains(s.Log(), word) {
			t.Errorf("the log does not say %q:\n%s", word, s.Log())
		}
	}
	w := opened(t, s, 2)
	w.load(100, s.Kill)
	mounted := func(there bool) {
		t.Helper()
		if there {
			must(os.RemoveAll(disk), os.Rename(away, disk))
			return
		}
		must(os.Rename(disk, away), os.Mkdir(disk, 0o700)) // a mount point stays
	}
	mounted(false)
	s.Refuses(75, filepath.Join(disk, "store")+": nothing is there", "--new")
	if names, err := os.ReadDir(disk); err != nil || len(names) > 0 {
		t.Errorf("there are %v, %v", names, err)
	}
	mounted(true)
	s.Start()
	w.compare()
	must(s.Audit())
	s.Kill()
	mounted(false)
	args := s.Args
	s.Args = append(args[:len(args):len(args)], "--new")
	s.Start()
	s.Args = args
	stops(t, s)
	s.Start() // --new was for one start
	s.Kill()
	mounted(true)
	s.Refuses(64, "history")
}

// A Redis without its files is empty. One that another exchange uses belongs to that.
func TestAStartTakesNoOtherRedisForItsOwn(t *testing.T) {
	first, second := redistest.Start(t), redistest.Start(t)
	s := exchangetest.New(t, first.URL())
	s.Start()
	stops(t, s)
	at := func(url string) {
		for i, arg := range s.Args {
			if arg == first.URL() || arg == second.URL() {
				s.Args[i] = url
			}
		}
	}
	at(second.URL())
	s.Refuses(75, "nothing is there", "--new")
	other := exchangetest.New(t, second.URL())
	other.Start()
	opened(t, other, 1)
	stops(t, other)
	s.Refuses(64, "another history is there")
	// another host has begun a new history here, whose beginning is trimmed
	host := exchangetest.New(t, first.URL())
	key, err := os.ReadFile(s.Data("exchange.key"))
	if err == nil {
		err = errors.Join(os.MkdirAll(host.Data(""), 0o700),
			os.WriteFile(host.Data("exchange.key"), key, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		host.Start()
		stops(t, host)
	}
	at(first.URL())
	s.Start()
	stops(t, s)
	if err := second.Client().FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	at(second.URL())
	s.Args = append(s.Args, "--new")
	s.Start()
}
