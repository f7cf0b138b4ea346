package raftlog

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"exchange/persistence"
	"exchange/persistence/internal/head"
)

var identity = Identity{Cluster: "c", Node: 2, Name: "b"}

var first = Base{Machine: []byte("the first state")}

// A world is a log, and the entries that it should have.
type world struct {
	*testing.T
	files vfs.FS
	log   *Log
	model []*pb.Entry // model[i] has index i+1
	begin uint64
	rng   *rand.Rand
}

func formed(t *testing.T, files vfs.FS) *world {
	t.Helper()
	w := &world{T: t, files: files, rng: rand.New(rand.NewPCG(1, 9))}
	w.must(Form(files, "n", identity, first))
	w.open()
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) try() (*Log, []byte, error) {
	return Open("n", Options{FS: w.files, Nonce: "x", AtNeed: true, Fatal: func(error) {}})
}

func (w *world) open() {
	w.Helper()
	log, _, err := w.try()
	w.must(err)
	w.log = log
}

// refused wants the folder not to be opened.
func (w *world) refused(what string, want error) {
	w.Helper()
	if log, _, err := w.try(); err == nil {
		log.Close()
		w.Errorf("%s: it is opened", what)
	} else if !errors.Is(err, want) {
		w.Errorf("%s: %v", what, err)
	}
}

func entry(index, term uint64, size int) *pb.Entry {
	data := bytes.Repeat([]byte{byte(index), byte(term)}, size/2+1)[:size]
	return &pb.Entry{Type: pb.EntryNormal.Enum(), Index: &index, Term: &term, Data: data}
}

// append adds n entries after an index.
func (w *world) append(after, term uint64, n int) {
	w.Helper()
	var entries []*pb.Entry
	for i := range n {
		entries = append(entries, entry(after+1+uint64(i), term, w.rng.IntN(300)))
	}
	if hard := w.log.State(); hard.GetTerm() < term {
		w.must(w.log.Vote(term, 1))
	}
	w.must(w.log.Append(entries, w.begin))
	w.model = append(w.model[:after], entries...)
}

func same(a, b *pb.Entry) bool {
	return a.GetIndex() == b.GetIndex() && a.GetTerm() == b.GetTerm() &&
		bytes.Equal(a.GetData(), b.GetData())
}

// check compares the log with the model, in all ways that it can be read.
func (w *world) check() {
	w.Helper()
	first, _ := w.log.FirstIndex()
	last, _ := w.log.LastIndex()
	if first != w.begin+1 || last != uint64(len(w.model)) {
		w.Fatalf("the log has %d to %d, want %d to %d", first, last, w.begin+1, len(w.model))
	}
	at := w.begin
	w.must(w.log.Read(w.begin, last, func(e *pb.Entry) error {
		if !same(e, w.model[at]) {
			w.Fatalf("entry %d is read as %v", at+1, e)
		}
		at++
		return nil
	}))
	if at != last {
		w.Fatalf("it is read up to %d, want %d", at, last)
	}
	for lo := first; lo <= last; {
		most := uint64(w.rng.IntN(2000))
		entries, err := w.log.Entries(lo, last+1, most)
		w.must(err)
		for _, e := range entries {
			if term, err := w.log.Term(lo); err != nil || term != e.GetTerm() ||
				!same(e, w.model[lo-1]) {
				w.Fatalf("entry %d is %v, its term %d: %v", lo, e, term, err)
			}
			lo++
		}
	}
}

// Entries are appended, replaced by those of later terms, and truncated, and the folder is opened
// again at any time.
func TestLogEqualsModel(t *testing.T) {
	w := formed(t, vfs.NewMem())
	w.check()
	term := uint64(1)
	for range 400 {
		last := uint64(len(w.model))
		switch w.rng.IntN(8) {
		case 0:
			term++
			w.append(w.begin+w.rng.Uint64N(last-w.begin+1), term, 1+w.rng.IntN(4))
		case 1:
			w.must(w.log.Close())
			w.open()
			w.check()
		case 2:
			if last > w.begin {
				w.begin += w.rng.Uint64N(last-w.begin) / 4
				w.must(w.log.Truncate(w.begin, []byte("the machine")))
				w.check()
			}
		default:
			w.append(last, term, 1+w.rng.IntN(6))
		}
	}
	w.check()
	if _, err := w.log.Entries(w.begin, w.begin+1, 1); w.begin == 0 ||
		!errors.Is(err, raft.ErrCompacted) {
		t.Error(w.begin, err)
	}
	if _, err := w.log.Term(math.MaxUint64); !errors.Is(err, raft.ErrUnavailable) {
		t.Error(err)
	}
	w.must(w.log.Close())
	log, machine, err := w.try()
	w.must(err)
	if string(machine) != "the machine" {
		t.Errorf("the machine is %q", machine)
	}
	w.must(log.Close())
}

// Entries for a peer that lags far behind are read from the disk.
func TestOldEntriesAreReadFromDisk(t *testing.T) {
	w := formed(t, vfs.NewMem())
	for range 6 {
		w.append(uint64(len(w.model)), 1, 50)
	}
	w.log.tail, w.log.bytes = nil, 0 // as after many more
	w.check()
	w.append(200, 2, 3) // and of those a part is replaced
	w.check()
	w.append(203, 2, 3)
	w.check()
}

// A log that ends below its acknowledged end is not opened.
func TestTruncatedLogIsRefused(t *testing.T) {
	w := formed(t, vfs.NewMem())
	for range 5 {
		w.append(uint64(len(w.model)), 3, 1)
	}
	w.must(w.log.Close())
	good := w.files
	names, err := good.List("n/log")
	w.must(err)
	for what, change := range map[string]func(fs vfs.FS){
		"the log is gone":        func(fs vfs.FS) { w.must(fs.RemoveAll("n/log")) },
		"HEAD is gone":           func(fs vfs.FS) { w.must(fs.Remove("n/HEAD")) },
		"a byte of HEAD":         func(fs vfs.FS) { flip(t, fs, "n/HEAD", 12) },
		"the last entry":         func(fs vfs.FS) { flip(t, fs, "n/log/"+names[0], -1) },
		"an entry in the middle": func(fs vfs.FS) { flip(t, fs, "n/log/"+names[0], 4096+20) },
		"the head of the log, and HEAD is as at the start": func(fs vfs.FS) {
			flip(t, fs, "n/log/"+names[0], 35)
			mark(t, fs, head.Mark{})
		},
		"HEAD has another term":  func(fs vfs.FS) { mark(t, fs, head.Mark{Seq: 5, Digest: 4}) },
		"HEAD has another index": func(fs vfs.FS) { mark(t, fs, head.Mark{Seq: 6, Digest: 3}) },
	} {
		w.files = clone(t, good)
		change(w.files)
		w.refused(what, persistence.ErrCorrupt)
	}
	w.files = clone(t, good)
	w.must(w.files.RemoveAll("n"))
	w.refused("an empty disk", ErrNotFormed)
	w.files = clone(t, good)
	w.open()
	w.check()
	if err := Form(w.files, "n", identity, first); !errors.Is(err, persistence.ErrInvalid) {
		t.Errorf("a folder is formed twice: %v", err)
	}
}

func mark(t *testing.T, fs vfs.FS, m head.Mark) {
	t.Helper()
	h, err := head.OpenOld(fs, "n/HEAD")
	if err == nil {
		err = errors.Join(h.Reset(0), h.Advance(m), h.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// flip changes a bit; -1 is in the last byte that is not 0.
func flip(t *testing.T, fs vfs.FS, name string, at int) {
	t.Helper()
	f, err := fs.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	if at < 0 {
		at = len(bytes.TrimRight(b, "\x00")) - 1
	}
	if _, err := f.WriteAt([]byte{b[at] ^ 1}, int64(at)); err != nil {
		t.Fatal(err)
	}
}

func clone(t *testing.T, fs vfs.FS) vfs.FS {
	t.Helper()
	to := vfs.NewMem()
	if ok, err := vfs.Clone(fs, to, "n", "n"); err != nil || !ok {
		t.Fatal(ok, err)
	}
	return to
}

// No damaged byte of STATE reverts a term, a vote or a start.
func TestDamageNeverRevertsVote(t *testing.T) {
	w := formed(t, vfs.NewMem())
	for term := range uint64(5) {
		w.must(w.log.Vote(term+1, 1+term%3))
	}
	w.must(w.log.RecordStart(3, Start{Boot: 7, Nonce: "of c"}))
	boot := w.log.Own().Boot
	w.must(w.log.Close())
	good := w.files
	for at := 0; at < 2*copyBytes; at += 7 {
		w.files = clone(t, good)
		flip(t, w.files, "n/STATE", at)
		w.open()
		hard := w.log.State()
		if hard.GetTerm() != 5 || hard.GetVote() != 2 || w.log.Own().Boot != boot+1 ||
			w.log.RecordedStart(3) != (Start{Boot: 7, Nonce: "of c"}) {
			t.Fatalf("byte %d: %v, %+v", at, hard, w.log.Own())
		}
		w.must(w.log.Close())
	}
	w.files = clone(t, good)
	flip(t, w.files, "n/STATE", 20)
	flip(t, w.files, "n/STATE", copyBytes+20)
	w.refused("both copies", persistence.ErrCorrupt)
}

// A log with a damaged or missing checkpoint is refused, and not recreated.
func TestLogWithoutCheckpointIsRefused(t *testing.T) {
	w := formed(t, vfs.NewMem())
	for range 200 { // so that truncation removes a file
		w.append(uint64(len(w.model)), 1, 10)
	}
	w.begin = 1500
	w.must(w.log.Truncate(w.begin, []byte("the machine")))
	w.check()
	w.must(w.log.Close())
	good := w.files
	w.files = clone(t, good)
	flip(t, w.files, "n/CHECKPOINT", 40)
	w.refused("a damaged checkpoint", persistence.ErrCorrupt)
	w.files = clone(t, good)
	w.must(w.files.Remove("n/CHECKPOINT"))
	w.refused("no checkpoint", persistence.ErrCorrupt)
	w.files = clone(t, good)
	w.open()
	w.check()
	w.must(w.log.Truncate(w.begin-1, nil)) // it does not go back
	w.check()
}

func TestImpossibleIdentityIsRefused(t *testing.T) {
	for what, change := range map[string]func(*Identity){
		"no cluster":         func(d *Identity) { d.Cluster = "" },
		"no name":            func(d *Identity) { d.Name = "" },
		"a long name":        func(d *Identity) { d.Name = strings.Repeat("x", 65) },
		"node 0":             func(d *Identity) { d.Node = 0 },
		"a cluster too long": func(d *Identity) { d.Cluster = strings.Repeat("x", 65) },
	} {
		d := identity
		change(&d)
		if err := Form(vfs.NewMem(), "n", d, first); !errors.Is(err, persistence.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A log that begins after a base has the base's term, and no entry up to it.
func TestLogBeginsAfterBase(t *testing.T) {
	w := &world{T: t, files: vfs.NewMem(), rng: rand.New(rand.NewPCG(1, 9)), begin: 40}
	w.must(Form(w.files, "n", identity, Base{Index: 40, Term: 7, Machine: []byte("after 40")}))
	log, machine, err := w.try()
	w.must(err)
	w.log = log
	term, err := log.Term(40)
	w.must(err)
	if string(machine) != "after 40" || term != 7 || log.State().GetTerm() != 7 ||
		log.State().GetCommit() != 40 || log.Fresh() {
		t.Fatalf("%q, term %d, %v", machine, term, log.State())
	}
	for i := range uint64(40) {
		w.model = append(w.model, entry(i+1, 7, 1))
	}
	w.append(40, 8, 3)
	w.check()
	w.must(w.log.Close())
	w.open()
	w.check()
}

// FuzzRecord: a decoded record of entries encodes as the same bytes.
func FuzzRecord(f *testing.F) {
	f.Add(encode([]*pb.Entry{entry(1, 2, 3), entry(2, 2, 0), entry(3, 4, 50)}, 1), uint8(3))
	f.Add(encode(nil, 7), uint8(0))
	f.Fuzz(func(t *testing.T, b []byte, n uint8) {
		entries, commit, err := decode(10, 10+uint64(n), b)
		if err != nil {
			if !errors.Is(err, persistence.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(encode(entries, commit), b) {
			t.Fatalf("%x is read as %v", b, entries)
		}
	})
}
