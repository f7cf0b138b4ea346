package conformance

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"

	"exchange/persistence"
)

// load returns a whole snapshot.
func (w *world) load(back int) (uint64, []byte, error) {
	seq, r, err := w.s.LoadSnapshot(w.ctx, back)
	if err != nil {
		return 0, nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	return seq, data, err
}

func (w *world) wantSnapshot(back int, seq uint64, data []byte) {
	w.Helper()
	gotSeq, got, err := w.load(back)
	w.must(err)
	if gotSeq != seq || !bytes.Equal(got, data) {
		w.Fatalf("snapshot %d back is of %d with %d bytes, want %d with %d", back, gotSeq, len(got),
			seq, len(data))
	}
}

func (w *world) save(seq uint64, data []byte) {
	w.Helper()
	w.must(w.s.SaveSnapshot(w.ctx, w.tok, seq, bytes.NewReader(data)))
}

func (w *world) twoSnapshots() {
	w.open(persistence.Retention{})
	w.append(10, []byte("ten records"))
	w.apply(10, nil)
	w.save(2, []byte("two"))
	w.wantSnapshot(0, 2, []byte("two"))
	_, _, err := w.s.LoadSnapshot(w.ctx, 1)
	w.is(err, persistence.ErrNoSnapshot)
	w.save(4, []byte("four"))
	w.save(6, []byte("six"))
	w.again(persistence.Retention{})
	w.wantSnapshot(0, 6, []byte("six"))
	w.wantSnapshot(1, 4, []byte("four"))
	w.refused(w.s.SaveSnapshot(w.ctx, w.tok, 5, strings.NewReader("five")))
	w.save(6, []byte("six again")) // replaces the one at the same sequence, not the one before
	w.wantSnapshot(0, 6, []byte("six again"))
	w.wantSnapshot(1, 4, []byte("four"))
	_, _, err = w.s.LoadSnapshot(w.ctx, 2)
	w.is(err, persistence.ErrNoSnapshot)

	// One that is replaced while it is read returns an error.
	_, r, err := w.s.LoadSnapshot(w.ctx, 1)
	w.must(err)
	w.save(8, []byte("eight"))
	_, err = io.ReadAll(r)
	w.is(err, persistence.ErrNoSnapshot)
	w.must(r.Close())
}

func (w *world) snapshotAboveWatermark() {
	w.open(persistence.Retention{})
	w.append(10, []byte("ten records"))
	w.refused(w.s.SaveSnapshot(w.ctx, w.tok, 1, strings.NewReader("x")))
	w.apply(5, nil)
	w.refused(w.s.SaveSnapshot(w.ctx, w.tok, 6, strings.NewReader("x")))
	_, _, err := w.s.LoadSnapshot(w.ctx, 0)
	w.is(err, persistence.ErrNoSnapshot)
	w.save(5, []byte("at the watermark"))
	w.wantSnapshot(0, 5, []byte("at the watermark"))
}

func (w *world) fencedSnapshot() {
	w.open(persistence.Retention{})
	w.append(10, []byte("ten records"))
	w.apply(10, nil)
	w.save(1, []byte("one"))
	old := w.tok
	tok, _, err := w.s.Acquire(w.ctx, persistence.Claim{Owner: "another"})
	w.must(err)
	w.is(w.s.SaveSnapshot(w.ctx, old, 2, strings.NewReader("two")), persistence.ErrFenced)
	w.is(w.s.SaveSnapshot(w.ctx, old, 2, strings.NewReader("")), persistence.ErrFenced)
	// Fenced in the middle of an upload: the owner changes with each read.
	r := readerFunc(func(p []byte) (int, error) {
		if tok, _, err = w.s.Acquire(w.ctx, persistence.Claim{Owner: "another"}); err != nil {
			return 0, err
		}
		return copy(p, "half of an image"), io.EOF
	})
	w.is(w.s.SaveSnapshot(w.ctx, tok, 3, r), persistence.ErrFenced)
	w.wantSnapshot(0, 1, []byte("one"))
	w.must(w.s.SaveSnapshot(w.ctx, tok, 4, strings.NewReader("four")))
	w.wantSnapshot(0, 4, []byte("four"))
	w.wantSnapshot(1, 1, []byte("one"))
}

// pacedSnapshot counts the pauses of an upload, and ends another by an error of one.
func (w *world) pacedSnapshot() {
	w.open(persistence.Retention{})
	w.append(10, []byte("ten records"))
	w.apply(10, nil)
	data := bytes.Repeat([]byte("paced"), 100_000)
	rests := 0
	ctx := persistence.WithPace(w.ctx, func() error {
		rests++
		return nil
	})
	w.must(w.s.SaveSnapshot(ctx, w.tok, 1, bytes.NewReader(data)))
	w.wantSnapshot(0, 1, data)
	if least := len(data) / (128 << 10); rests < least {
		w.Fatalf("%d rests of an upload of %d bytes, want %d at least", rests, len(data), least)
	}
	over := errors.New("over")
	ctx = persistence.WithPace(w.ctx, func() error { return over })
	w.is(w.s.SaveSnapshot(ctx, w.tok, 2, bytes.NewReader(data)), over)
	w.wantSnapshot(0, 1, data)
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func (w *world) snapshotSizes() {
	w.open(persistence.Retention{})
	w.append(100, []byte("a hundred records"))
	w.apply(100, nil)
	rng := newRand(w.T, 2)
	var before []byte
	for i, size := range []int{0, 1, 256<<10 - 1, 256 << 10, 256<<10 + 1, 5*256<<10 + 12345, 0} {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		seq := uint64(i + 1)
		w.save(seq, data)
		w.wantSnapshot(0, seq, data)
		if i > 0 {
			w.wantSnapshot(1, seq-1, before)
		}
		before = data
	}
}

func (w *world) tornSnapshot() {
	w.open(persistence.Retention{})
	w.append(10, []byte("ten records"))
	w.apply(10, nil)
	w.save(1, []byte("whole"))
	broken := errors.New("the state cannot be encoded")
	torn := io.MultiReader(bytes.NewReader(make([]byte, 700_000)),
		readerFunc(func([]byte) (int, error) { return 0, broken }))
	w.is(w.s.SaveSnapshot(w.ctx, w.tok, 2, torn), broken)
	ctx, cancel := context.WithCancel(w.ctx)
	cancelled := io.MultiReader(bytes.NewReader(make([]byte, 300_000)),
		readerFunc(func([]byte) (int, error) {
			cancel()
			return 0, io.EOF
		}))
	if err := w.s.SaveSnapshot(ctx, w.tok, 3, cancelled); err == nil {
		w.Fatal("no error although the context ended before the last chunk")
	}
	w.wantSnapshot(0, 1, []byte("whole"))
	_, _, err := w.s.LoadSnapshot(w.ctx, 1)
	w.is(err, persistence.ErrNoSnapshot)
	w.again(persistence.Retention{})
	w.wantSnapshot(0, 1, []byte("whole"))
	w.save(4, []byte("next"))
	w.wantSnapshot(1, 1, []byte("whole"))
}

func (w *world) damagedSnapshot() {
	w.open(persistence.Retention{})
	w.append(10, []byte("ten records"))
	w.apply(10, nil)
	w.save(1, []byte("older"))
	w.save(2, make([]byte, 600_000))
	w.backend.DamageSnapshot(w.T, w.s)
	_, _, err := w.load(0)
	w.is(err, persistence.ErrCorrupt)
	w.wantSnapshot(1, 1, []byte("older"))
	w.save(2, []byte("made again"))
	w.wantSnapshot(0, 2, []byte("made again"))
	w.wantSnapshot(1, 1, []byte("older"))
}
