package replicated

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"exchange/persistence/internal/raftlog"
)

var errPower = errors.New("the power has failed")

// A disk is a simulated one. Its power can fail between any two changes.
type disk struct {
	mem  *vfs.MemFS
	left int // how many changes still work; -1: all
}

func newDisk() *disk { return &disk{mem: vfs.NewCrashableMem(), left: -1} }

// files returns the file system as a node sees it.
func (d *disk) files() vfs.FS {
	return errorfs.Wrap(d.mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsRead || d.left < 0 {
			return nil
		}
		if d.left == 0 {
			return errPower
		}
		d.left--
		return nil
	}))
}

// killed returns the disk after a process has ended: all that was written is there.
func (d *disk) killed(t *testing.T) *disk {
	all := d.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100,
		RNG: rand.New(rand.NewPCG(1, 1))})
	return &disk{mem: all, left: -1}
}

// crash returns the disk after the power failed: all that was synced, and of the rest some blocks.
// vfs.CrashClone draws in the order of a map; this draws in the order of names.
func (d *disk) crash(t *testing.T, rng *rand.Rand) *disk {
	t.Helper()
	synced := d.mem.CrashClone(vfs.CrashCloneCfg{})
	all := d.killed(t).mem
	for _, dir := range folders(t, all, folder) {
		if _, err := synced.Stat(dir); err != nil { // its name was not synced
			if _, err := all.Stat(dir); err != nil || rng.IntN(2) == 0 {
				break
			}
			must(t, synced.MkdirAll(dir, 0o700))
			top, err := synced.OpenDir(synced.PathDir(dir))
			must(t, err)
			must(t, errors.Join(top.Sync(), top.Close()))
		}
		was, is := names(t, synced, dir), names(t, all, dir)
		both := append(slices.Clone(was), is...)
		slices.Sort(both)
		for _, name := range slices.Compact(both) {
			path := dir + "/" + name
			switch there, here := slices.Contains(was, name), slices.Contains(is, name); {
			case isFolder(t, all, path):
			case there && !here:
				if rng.IntN(2) == 0 {
					must(t, synced.Remove(path))
				}
			case here && !there:
				if rng.IntN(2) == 0 {
					put(t, synced, path, get(t, all, path))
				}
			default:
				old, now := get(t, synced, path), get(t, all, path)
				if mixed := mix(rng, old, now); !bytes.Equal(mixed, old) {
					put(t, synced, path, mixed)
				}
			}
		}
		if f, err := synced.OpenDir(dir); err == nil {
			must(t, errors.Join(f.Sync(), f.Close()))
		}
	}
	return &disk{mem: synced, left: -1}
}

// folders returns a folder and all below it.
func folders(t *testing.T, fs vfs.FS, dir string) []string {
	list := []string{dir}
	for _, name := range slices.Sorted(slices.Values(names(t, fs, dir))) {
		if path := dir + "/" + name; isFolder(t, fs, path) {
			list = append(list, folders(t, fs, path)...)
		}
	}
	return list
}

// isFolder reports whether a path is that of a folder. One that is not there is none.
func isFolder(t *testing.T, fs vfs.FS, path string) bool {
	t.Helper()
	info, err := fs.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	must(t, err)
	return info.IsDir()
}

// flip returns the disk of a killed process, with a flipped bit in a file of one of the folders.
func (d *disk) flip(t *testing.T, rng *rand.Rand, dirs ...string) *disk {
	t.Helper()
	d = d.killed(t)
	dir := dirs[rng.IntN(len(dirs))]
	list := slices.DeleteFunc(names(t, d.mem, dir), func(name string) bool {
		path := dir + "/" + name
		return isFolder(t, d.mem, path) || len(get(t, d.mem, path)) == 0
	})
	slices.Sort(list)
	if len(list) > 0 {
		path := dir + "/" + list[rng.IntN(len(list))]
		b := get(t, d.mem, path)
		at := rng.IntN(len(b))
		if rng.IntN(2) == 0 { // where something was written
			at = rng.IntN(1 + len(bytes.TrimRight(b, "\x00")))
		}
		b[at%len(b)] ^= 1 << rng.IntN(8)
		put(t, d.mem, path, b)
	}
	return d.killed(t)
}

// lastEntry returns the last entry of the raft log in a killed process's folder; 0: the log is
// refused.
func (d *disk) lastEntry(t *testing.T, dir string) uint64 {
	t.Helper()
	log, _, err := raftlog.Open(dir, raftlog.Options{FS: d.killed(t).files(), AtNeed: true})
	if err != nil {
		return 0
	}
	last, err := log.LastIndex()
	must(t, errors.Join(err, log.Close()))
	return last
}

const block = 4096

// mix returns some of the blocks written over zeros, and otherwise one file or the other.
func mix(rng *rand.Rand, old, now []byte) []byte {
	if len(old) != len(now) {
		return [][]byte{old, now}[rng.IntN(2)]
	}
	mixed := bytes.Clone(old)
	for at := 0; at < len(old); at += block {
		end := min(at+block, len(old))
		for i := at; i < end; i++ {
			if old[i] != now[i] && old[i] != 0 && len(old) > 4*block { // another file was renamed
				return [][]byte{old, now}[rng.IntN(2)]
			}
		}
		if rng.IntN(2) == 0 {
			copy(mixed[at:end], now[at:end])
		}
	}
	return mixed
}

func names(t *testing.T, fs vfs.FS, dir string) []string {
	t.Helper()
	list, err := fs.List(dir)
	if err != nil {
		return nil
	}
	return list
}

func get(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	must(t, err)
	defer f.Close()
	b, err := io.ReadAll(f)
	must(t, err)
	return b
}

func put(t *testing.T, fs vfs.FS, name string, b []byte) {
	t.Helper()
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	must(t, err)
	_, err = f.Write(bytes.Clone(b)) // Write may change its argument
	must(t, errors.Join(err, f.Sync(), f.Close()))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
