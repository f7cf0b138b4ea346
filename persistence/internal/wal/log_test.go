package wal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

const testSegment = 128 << 10 // the first has 64 kB, all others this

type batch struct {
	prev, next uint64
	data       string
}

// A world is a log and its expected content.
type world struct {
	testing.TB
	fs    vfs.FS
	log   *Log
	rng   *rand.Rand
	model []batch // all that was appended
	end   uint64
}

func open(t testing.TB, fs vfs.FS) *world {
	t.Helper()
	w := &world{TB: t, fs: fs, rng: rand.New(rand.NewPCG(1, 2))}
	w.reopen()
	t.Cleanup(func() { w.close() })
	return w
}

func (w *world) close() {
	w.Helper()
	if w.log != nil {
		w.must(w.log.Close())
		w.log = nil
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func options(t testing.TB, fs vfs.FS) Options {
	return Options{FS: fs, maxSegment: testSegment,
		Fatal: func(err error) { t.Error("fatal:", err) }}
}

// reopen opens the log, also after another one of the same folder was abandoned.
func (w *world) reopen() {
	w.Helper()
	log, err := Open("log", options(w, w.fs))
	w.must(err)
	w.log = log
}

// next makes the next batch.
func (w *world) next(size int) batch {
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(w.rng.Uint32())
	}
	return batch{w.end, w.end + 1 + w.rng.Uint64N(50), string(data)}
}

func (w *world) append(size int) {
	w.Helper()
	b := w.next(size)
	w.must(w.log.Append(b.prev, b.next, codec.Digest([]byte(b.data)), []byte(b.data)))
	w.model, w.end = append(w.model, b), b.next
}

func (w *world) read(after, trimmed uint64) (all []batch, err error) {
	err = w.log.Read(context.Background(), after,
		trimmed, func(prev, next uint64, data []byte) error {
			all = append(all, batch{prev, next, string(data)})
			return nil
		})
	return all, err
}

// wantAfter compares the batches after a sequence with the model.
func (w *world) wantAfter(after uint64) {
	w.Helper()
	from, _ := slices.BinarySearchFunc(w.model, after, func(b batch, after uint64) int {
		if b.next > after {
			return 1
		}
		return -1
	})
	all, err := w.read(after, 0)
	w.must(err)
	if !slices.Equal(all, w.model[from:]) {
		w.Fatalf("after %d: %d batches are read, want %d", after, len(all), len(w.model)-from)
	}
	seq, digest := w.log.End()
	if n := len(w.model); seq != w.end ||
		n > 0 && digest != codec.Digest([]byte(w.model[n-1].data)) {
		w.Fatalf("the log ends at %d (%x), want %d", seq, digest, w.end)
	}
}

func (w *world) files() []string {
	w.Helper()
	names, err := w.fs.List("log")
	w.must(err)
	slices.Sort(names)
	return names
}

func (w *world) size() int {
	if w.rng.IntN(50) == 0 {
		return w.rng.IntN(3 * testSegment) // larger than a segment, now and then
	}
	return 1 + w.rng.IntN(4000)
}

func TestAppendedRecordsAreRead(t *testing.T) {
	w := open(t, vfs.NewMem())
	w.wantAfter(0)
	trimmed := uint64(0)
	for i := range 2000 {
		w.append(w.size())
		switch w.rng.IntN(100) {
		case 0, 1:
			w.close()
			w.reopen()
			w.wantAfter(trimmed)
		case 2, 3:
			w.wantAfter(trimmed + w.rng.Uint64N(w.end-trimmed+1))
		case 4:
			trimmed = max(trimmed, w.model[max(0, len(w.model)-w.rng.IntN(200)-1)].next)
			w.must(w.log.Trim(trimmed))
			w.wantAfter(trimmed)
			if n := len(w.files()); n > 30 {
				t.Fatalf("%d batches: %d files after %d was trimmed of %d: %v", i, n, trimmed,
					w.end, w.files())
			}
		}
	}
	w.wantAfter(trimmed)
}

// The power fails, or the process is killed, in the middle of an append. All acknowledged batches
// remain, and of the rest a whole batch or nothing.
func TestCrashLosesNothingAcknowledged(t *testing.T) {
	crashable := vfs.NewCrashableMem()
	w := open(t, crashable)
	rng := rand.New(rand.NewPCG(3, 4))
	torn, landed := 0, 0
	for range 150 {
		for range w.rng.IntN(20) {
			w.append(w.size())
		}
		if w.rng.IntN(5) == 0 && len(w.model) > 0 {
			w.must(w.log.Trim(w.model[max(0, len(w.model)-60)].next))
		}
		b := w.next(w.size())
		w.must(w.log.write(b.prev, b.next, codec.Digest([]byte(b.data)), []byte(b.data)))
		old := w.log
		crashable = crashable.CrashClone(
			vfs.CrashCloneCfg{UnsyncedDataPercent: w.rng.IntN(101), RNG: rng})
		w.must(old.Close()) // of the file system as it would have gone on
		w.fs = crashable
		w.reopen()
		if seq, _ := w.log.End(); seq == b.next {
			w.model, w.end = append(w.model, b), b.next
			landed++
		} else {
			torn++
		}
		if n := len(w.model); n > 0 {
			w.wantAfter(w.model[max(0, n-40)].prev)
		}
	}
	if torn < 10 || landed < 10 {
		t.Errorf("%d batches were torn, %d landed: not a test of both", torn, landed)
	}
}

// Each byte of a log is damaged in turn: a reader gets an error, or all batches. Only damage in the
// last batch is not detected: then the log ends before it.
func TestDamageIsReported(t *testing.T) {
	w := open(t, vfs.NewMem())
	for range 40 {
		w.append(1 + w.rng.IntN(5000))
	}
	w.close()
	files := map[string][]byte{}
	for _, name := range w.files() {
		files[name] = contents(t, w.fs, w.fs.PathJoin("log", name))
	}
	reported := 0
	for range 300 {
		name := w.files()[w.rng.IntN(len(files))]
		at := w.rng.IntN(len(files[name]))
		damaged := bytes.Clone(files[name])
		damaged[at] ^= 1 << w.rng.IntN(8)
		fs := vfs.NewMem()
		w.must(fs.MkdirAll("log", 0o700))
		for n, b := range files {
			if n == name {
				b = damaged
			}
			write(t, fs, fs.PathJoin("log", n), b)
		}
		log, err := Open("log", options(t, fs))
		if err != nil {
			if !errors.Is(err, persistence.ErrCorrupt) {
				t.Fatalf("%s, byte %d: %v", name, at, err)
			}
			reported++
			continue
		}
		end, _ := log.End()
		var all []batch
		err = log.Read(t.Context(), 0, 0, func(prev, next uint64, data []byte) error {
			all = append(all, batch{prev, next, string(data)})
			return nil
		})
		if !slices.Equal(all, w.model[:len(all)]) {
			t.Fatalf("%s, byte %d: a batch was read that was never written", name, at)
		}
		switch {
		case errors.Is(err, persistence.ErrCorrupt):
			reported++
		case err != nil:
			t.Fatalf("%s, byte %d: %v", name, at, err)
		case len(all) == len(w.model),
			len(all) == len(w.model)-1 && end == w.model[len(w.model)-1].prev:
		default:
			t.Fatalf("%s, byte %d: %d batches are read without an error, want %d", name, at,
				len(all), len(w.model))
		}
		w.must(log.Close())
	}
	if reported < 60 {
		t.Errorf("damage was reported %d times of 300", reported)
	}
}

// A failure to make a segment does no harm: the same bytes are retried.
func TestFullDiskDelaysAppend(t *testing.T) {
	full := errors.New("no space left on device")
	var fails bool
	var mu sync.Mutex
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if fails && op.Kind == errorfs.OpFileWriteAt && op.Offset < 2*headBytes {
			return full
		}
		return nil
	}))
	set := func(v bool) { mu.Lock(); fails = v; mu.Unlock() }
	w := open(t, fs)
	for range 10 {
		w.append(1000)
	}
	set(true)
	var b batch
	var err error
	for err == nil {
		b = w.next(4000)
		if err = w.log.Append(b.prev, b.next, codec.Digest([]byte(b.data)),
			[]byte(b.data)); err == nil {
			w.model, w.end = append(w.model, b), b.next
		}
	}
	if !errors.Is(err, full) {
		t.Fatal(err)
	}
	for range 3 {
		if err := w.log.Append(b.prev, b.next, codec.Digest([]byte(b.data)),
			[]byte(b.data)); !errors.Is(err, full) {
			t.Fatal(err)
		}
	}
	w.wantAfter(0)
	set(false)
	w.must(w.log.Append(b.prev, b.next, codec.Digest([]byte(b.data)), []byte(b.data)))
	w.model, w.end = append(w.model, b), b.next
	w.close()
	w.reopen()
	w.wantAfter(0)
}

// Without room for a segment of the usual size, a small one is made.
func TestSmallSegmentOnAlmostFullDisk(t *testing.T) {
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		// the second piece of the filling
		if op.Kind == errorfs.OpFileWriteAt && op.Offset >= headBytes+fillBytes {
			return errors.New("no space left on device")
		}
		return nil
	}))
	w := open(t, fs)
	w.log.maxSegment = 2 * fillBytes
	for range 400 {
		w.append(2000)
	}
	w.wantAfter(0)
	sizes := map[int64]int{}
	for _, s := range w.log.segments {
		sizes[s.size]++
	}
	if sizes[2*fillBytes] != 0 || sizes[minSegmentBytes] < 3 {
		t.Errorf("how many there are of each size: %v", sizes)
	}
}

// A sync that failed may have left the last record in memory only, because the kernel reports such
// a failure once.
func TestLastRecordIsRewrittenAtStart(t *testing.T) {
	var written, synced atomic.Int64
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpFileWriteAt:
			written.Store(op.Offset)
		case errorfs.OpFileSyncData:
			synced.Store(written.Load())
		}
		return nil
	}))
	w := open(t, fs)
	w.append(5000)
	at := w.log.end.used
	w.append(9000)
	w.close()
	written.Store(-1)
	synced.Store(-1)
	w.reopen()
	if synced.Load() != at {
		t.Errorf("the last sync begins at %d, the last record at %d", synced.Load(), at)
	}
	w.wantAfter(0)
}

func TestFailedSyncIsFatal(t *testing.T) {
	broken := errors.New("input/output error")
	fails := false
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if fails && op.Kind == errorfs.OpFileSyncData {
			return broken
		}
		return nil
	}))
	o := options(t, fs)
	var fatalErr error
	o.Fatal = func(err error) { fatalErr = err }
	log, err := Open("log", o)
	succeeds(t, err)
	defer log.Close()
	succeeds(t, log.Append(0, 1, codec.Digest([]byte("a")), []byte("a")))
	fails = true
	if err := log.Append(1, 2, codec.Digest([]byte("b")), []byte("b")); !errors.Is(err, broken) ||
		!errors.Is(fatalErr, broken) {
		t.Fatalf("error %v, fatal error %v", err, fatalErr)
	}
	if seq, _ := log.End(); seq != 1 {
		t.Errorf("the log ends at %d", seq)
	}
}

// Readers see a whole log while it grows and is trimmed. A trim frees no segment that is being
// read. Its file is removed or reused after the read, and not before.
func TestTrimKeepsSegmentsBeingRead(t *testing.T) {
	w := open(t, vfs.NewMem())
	for range 300 {
		w.append(2000)
	}
	want, n := slices.Clone(w.model), 0
	w.must(w.log.Read(t.Context(), 0, 0, func(prev, next uint64, data []byte) error {
		if n == 0 { // all is trimmed and, were it free, overwritten
			w.must(w.log.Trim(w.end))
			for range 300 {
				w.append(2000)
			}
		}
		if got := (batch{prev, next, string(data)}); n >= len(want) || got != want[n] {
			t.Fatalf("batch %d, from %d to %d, was not appended", n, prev, next)
		}
		n++
		return nil
	}))
	if n != len(want) {
		t.Errorf("%d batches are read, want %d", n, len(want))
	}
	if len(w.log.free) != mostFree {
		t.Errorf("after the read %d segments can be reused, want %d", len(w.log.free),
			mostFree)
	}
	w.wantAfter(want[len(want)-1].next)
}

// atOnce are the readers of a log that is appended to and trimmed.
type atOnce struct {
	*world
	trimmed atomic.Uint64 // no less than up to where the log may be trimmed
	stop    chan struct{}
}

// readOften reads until it is stopped, and reports each time.
func (w *atOnce) readOften(done chan<- struct{}) {
	defer close(done)
	for {
		end, _ := w.log.End()
		last := end
		err := w.log.Read(w.Context(), end, 0,
			func(_, next uint64, _ []byte) error { last = next; return nil })
		// The appends and a trim may have gone past end before it was read.
		gone := errors.Is(err, persistence.ErrCorrupt) && w.trimmed.Load() > end
		if now, _ := w.log.End(); !gone && (err != nil || last < end || last > now) {
			w.Errorf("read from %d to %d, the log ends at %d: %v", end, last, now, err)
			return
		}
		// A read from the oldest batch on reports the gap, and nothing else.
		err = w.log.Read(w.Context(), 0, 0, func(_, _ uint64, _ []byte) error { return nil })
		if err != nil && !errors.Is(err, persistence.ErrCorrupt) {
			w.Error(err)
			return
		}
		select {
		case <-w.stop:
			return
		case done <- struct{}{}:
		}
	}
}

func TestConcurrentReadsAppendsAndTrims(t *testing.T) {
	w := &atOnce{world: open(t, vfs.NewMem()), stop: make(chan struct{})}
	w.append(100)
	var readers sync.WaitGroup
	var read []chan struct{}
	for range 3 {
		done := make(chan struct{}, 1)
		read = append(read, done)
		readers.Go(func() { w.readOften(done) })
	}
	for i := range 1500 {
		w.append(2000)
		if i%50 == 0 {
			for _, done := range read { // each has read since the last trim, or ended in failure
				<-done
			}
			w.trimmed.Store(w.end)
			w.must(w.log.Trim(w.end))
		}
	}
	close(w.stop)
	readers.Wait()
}

func TestLogBeginsAtGivenSequence(t *testing.T) {
	fs := vfs.NewMem()
	w := open(t, fs)
	w.log.Begin(100)
	if seq, digest := w.log.End(); seq != 100 || digest != 0 {
		t.Fatalf("it ends at %d (%x)", seq, digest)
	}
	w.end = 100
	w.append(10)
	w.wantAfter(100)
	if _, err := w.read(99, 0); !errors.Is(err, persistence.ErrCorrupt) {
		t.Fatal(err)
	}
}

// All records of a segment need its head. A damaged one is distinguished from one that a crash left
// unfinished: made and not used, or reused and not written yet.
func TestDamagedSegmentHeadIsRefused(t *testing.T) {
	w := open(t, vfs.NewMem())
	for range 30 {
		w.append(4000)
	}
	first, last := w.log.segments[0].name, w.log.active.name
	w.close()
	whole := contents(t, w.fs, last)
	for at := range 40 {
		b := bytes.Clone(whole)
		b[at] ^= 1 << w.rng.IntN(8)
		write(t, w.fs, last, b)
		if _, err := Open("log", options(t, w.fs)); !errors.Is(err, persistence.ErrCorrupt) {
			t.Fatalf("byte %d: %v", at, err)
		}
	}
	b := bytes.Clone(whole)
	clear(b[:headBytes])
	write(t, w.fs, last, b)
	if _, err := Open("log", options(t, w.fs)); !errors.Is(err, persistence.ErrCorrupt) {
		t.Fatal("a head of zeros:", err)
	}
	write(t, w.fs, last, whole)
	next := w.fs.PathJoin("log", segmentName(99))
	for what, b := range map[string][]byte{"made": make([]byte, testSegment),
		"taken over": contents(t, w.fs, first), "begun": make([]byte, 100),
		"made, and damaged": append(bytes.Repeat([]byte{1}, 40), make([]byte, testSegment)...)} {
		write(t, w.fs, next, b)
		log, err := Open("log", options(t, w.fs))
		w.must(err)
		if seq, _ := log.End(); seq != w.end {
			t.Errorf("%s: the log ends at %d, want %d", what, seq, w.end)
		}
		w.must(log.Close())
	}
}

func TestLaterVersionIsRefused(t *testing.T) {
	w := open(t, vfs.NewMem())
	w.append(10)
	w.close()
	name := w.fs.PathJoin("log", w.files()[0])
	b := contents(t, w.fs, name)
	binary.BigEndian.PutUint64(b[8:], format+1)
	write(t, w.fs, name, b)
	if _, err := Open("log", options(t, w.fs)); !errors.Is(err, persistence.ErrCorrupt) {
		t.Fatal(err)
	}
}

// FuzzOpen damages a log. Every batch that is read without an error was written.
func FuzzOpen(f *testing.F) {
	w := open(f, vfs.NewMem())
	for range 6 {
		w.append(300)
	}
	w.close()
	good := contents(f, w.fs, "log/"+segmentName(1))[:2*headBytes]
	f.Add(uint16(0), []byte{}, uint16(0))
	f.Add(uint16(headBytes), []byte{1, 2, 3}, uint16(headBytes))
	f.Add(uint16(headBytes+recordHead), good[headBytes:headBytes+400], uint16(2*headBytes))
	f.Fuzz(func(t *testing.T, at uint16, change []byte, length uint16) {
		b := bytes.Clone(good)
		copy(b[min(int(at), len(b)):], change)
		b = b[:min(int(length), len(b))]
		fs := vfs.NewMem()
		succeeds(t, fs.MkdirAll("log", 0o700))
		write(t, fs, "log/"+segmentName(1), b)
		log, err := Open("log", options(t, fs))
		if err != nil {
			return
		}
		defer log.Close()
		n := 0
		if err := log.Read(t.Context(), 0, 0, func(prev, next uint64, data []byte) error {
			if n == len(w.model) || w.model[n] != (batch{prev, next, string(data)}) {
				return fmt.Errorf("batch (%d, %d] was never written", prev, next)
			}
			n++
			return nil
		}); err != nil && !errors.Is(err, persistence.ErrCorrupt) {
			t.Fatal(err)
		}
	})
}

func contents(t testing.TB, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	succeeds(t, err)
	defer f.Close()
	info, err := f.Stat()
	succeeds(t, err)
	b := make([]byte, info.Size())
	if _, err := f.ReadAt(b, 0); err != nil && len(b) > 0 {
		t.Fatal(err)
	}
	return b
}

func write(t testing.TB, fs vfs.FS, name string, b []byte) {
	t.Helper()
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	succeeds(t, err)
	if _, err := f.Write(bytes.Clone(b)); err != nil { // it may change the bytes
		t.Fatal(err)
	}
	succeeds(t, f.Close())
}

// succeeds wants no errors.
func succeeds(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
