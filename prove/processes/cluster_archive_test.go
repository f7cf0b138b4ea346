//go:build prove

package processes

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"exchange/actors/seal"
	"exchange/persistence"
	"exchange/persistence/archive"
	"exchange/persistence/memory"
	"exchange/prove/exchangetest"
)

// archives gives each node an archive of its own, and many snapshots. It returns the folders.
func (c *cluster) archives() (dirs map[*exchangetest.Server]string) {
	dirs = map[*exchangetest.Server]string{}
	for _, s := range c.nodes {
		dirs[s] = filepath.Join(c.t.TempDir(), "archive")
		s.Args = append(s.Args, "--archive", dirs[s])
		s.Env = append(s.Env, manySnapshots...)
	}
	return dirs
}

// archived waits until a node's archive holds all that the leader has folded now. It needs a load.
func (c *cluster) archived(dir string) {
	c.t.Helper()
	var now uint64
	exchangetest.Eventually(c.t, "the archive "+dir+" has come further", func() bool {
		if now == 0 {
			if k, err := c.view(c.leader(nil)); err == nil {
				now = k.Folded
			}
			return false
		}
		a := must[*archive.Archive](c.t)(archive.Open(dir))
		end := must[uint64](c.t)(a.End())
		return end >= now
	})
}

// Each node archives its own journal. The leader is killed under load; the archives of the next
// leader and of the restarted node give a clean audit from the first record. A node does not start
// with another exchange's archive, or with one that has lost parts.
func TestAnArchiveOfANodeIsWholeAfterAFailOver(t *testing.T) {
	c := prepareCluster(t, nil)
	dirs := c.archives()
	c.runs()
	led := c.leader(nil)
	w := opened(t, led, 2)
	w.load(100, func() {
		for _, s := range c.nodes {
			c.archived(dirs[s])
		}
	})
	w.compare()
	w.books(dirs[led])
	w.load(60, led.Kill)
	killed := led
	led = c.leader(killed)
	w.turnTo(led)
	w.compare()
	w.books(dirs[led])
	killed.Run()
	c.follows(killed, led)
	w.load(60, func() {
		for _, s := range c.nodes {
			c.archived(dirs[s])
		}
	})
	c.handsOver(killed)
	w.turnTo(killed)
	w.compare()
	w.books(dirs[killed])

	// A follower is restarted with another exchange's archive, with one that has lost parts, and
	// with an empty one, which begins with the node's journal.
	s := c.others(killed)[0]
	if code := s.Terminate(); code != 0 {
		t.Fatalf("node %s ends with %d", c.name(s), code)
	}
	at := slices.Index(s.Args, "--archive") + 1
	s.Args[at] = anothersArchive(t)
	s.Refuses(64, "the journal has other records there")
	s.Args[at] = dirs[s]
	parts, err := filepath.Glob(filepath.Join(dirs[s], "journal-*.zst"))
	if err != nil || len(parts) < 2 {
		t.Fatalf("there are %v, %v", parts, err)
	}
	for _, name := range parts[:len(parts)-1] {
		succeeds(t, os.Remove(name))
	}
	s.Refuses(70, "are missing")
	s.Args[at] = filepath.Join(t.TempDir(), "later")
	s.Refuses(75, "is known to have parts")
	s.Args = append(s.Args, "--new")
	s.Run()
	c.follows(s, killed)
	w.load(60, func() { c.archived(s.Args[at]) })
	c.handsOver(s)
	w.turnTo(s)
	w.compare()
	w.books(s.Args[at])
}

// anothersArchive returns the folder of another exchange's archive.
func anothersArchive(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "another")
	a := must[*archive.Archive](t)(archive.Open(dir))
	store := memory.Open(memory.NewDisk(), persistence.Retention{})
	defer store.Close() //nolint:errcheck // it is in memory
	tok, _, err := store.Acquire(t.Context(), persistence.Claim{Owner: "another"})
	if err == nil {
		err = store.Append(t.Context(), tok, 0, 1, []byte("another's"))
	}
	var key *seal.Sealer
	if err == nil {
		key, err = seal.New(make([]byte, seal.KeyBytes))
	}
	if err == nil {
		_, err = a.Save(t.Context(), store, key, persistence.HistoryID{1}, 1)
	}
	succeeds(t, err)
	return dir
}
