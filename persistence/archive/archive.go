// Package archive keeps the parts of a journal that its store forgets: files in a folder, each a run of
// batches, compressed and with a checksum. Together they are the journal from its first record on.
//
//	a, err := archive.Open(dir)
//	err = a.Save(ctx, store, upTo) // before store.Trim(ctx, token, upTo)
//	err = a.Read(ctx, 0, fn)       // every batch there is, verified
//
// A file is named journal-<first record>-<last record>.zst, with twenty digits each. It is written beside its
// name, synced, and then renamed: what has the name is whole. Decompressed it is a line of text, then each
// batch (its length and its two sequences as uvarints, and its bytes), and then a zero and the SHA-256 of
// all before.
//
// An archive without its beginning is of no use, so none is begun late: not for a journal that was trimmed
// before, and not for a store that was restored from a backup. Fits says so before the first Save does.
package archive

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"exchange/persistence"
)

const (
	magic = "exchange journal 1\n"
	// fileBytes is from which size on the next batch starts another file, before compression.
	fileBytes = 64 << 20
	// maxBatch bounds one batch while reading: what is longer is damage.
	maxBatch = 1 << 30
	// window is how far back the compression looks. Damage that asks the reader for more memory is refused.
	window = 8 << 20

	partPrefix, partSuffix = "journal-", ".zst"
	unfinished             = "unfinished-" // begins the name of a part that is being written
)

// ErrOther: the archive in the folder does not belong to the journal, or cannot be continued from it.
var ErrOther = errors.New("the archive does not fit the journal")

// An Archive is one folder. One process writes it; its methods may be called from any goroutine, but Save
// from one at a time.
type Archive struct {
	dir  string
	part int // bytes of a part, from which on the next one begins
}

// A file is one part.
type file struct {
	name        string
	first, last uint64
}

func partName(first, last uint64) string {
	return fmt.Sprintf("%s%020d-%020d%s", partPrefix, first, last, partSuffix)
}

// Open uses a folder, which it makes when it is not there.
func Open(dir string) (*Archive, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("the archive's folder: %w", err)
	}
	a := &Archive{dir: dir, part: fileBytes}
	_, err = a.files()
	return a, err
}

// Dir is the folder, from the root on.
func (a *Archive) Dir() string { return a.dir }

// files are the parts in order. They must follow each other without a gap.
func (a *Archive) files() ([]file, error) {
	entries, err := os.ReadDir(a.dir) // in order of the names, which is that of the records
	if err != nil {
		return nil, fmt.Errorf("the archive's folder: %w", err)
	}
	var list []file
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, partPrefix) || !strings.HasSuffix(name, partSuffix) {
			continue
		}
		f := file{name: filepath.Join(a.dir, name)}
		if n, err := fmt.Sscanf(name, partPrefix+"%d-%d"+partSuffix, &f.first, &f.last); n != 2 || err != nil || name != partName(f.first, f.last) || f.first < 1 || f.first > f.last {
			return nil, fmt.Errorf("%w: %s is not named as a part of a journal", persistence.ErrCorrupt, f.name)
		}
		if n := len(list); n > 0 && f.first != list[n-1].last+1 {
			return nil, fmt.Errorf("%w: in %s a part ends at record %d, and the next begins at %d", persistence.ErrCorrupt, a.dir, list[n-1].last, f.first)
		}
		list = append(list, f)
	}
	return list, nil
}

// Bounds are the first and the last record in the archive, 0 and 0 if it is empty.
func (a *Archive) Bounds() (first, last uint64, err error) {
	list, err := a.files()
	if err != nil || len(list) == 0 {
		return 0, 0, err
	}
	return list[0].first, list[len(list)-1].last, nil
}

var errEnough = errors.New("enough")

// Fits is nil if the journal goes on where the archive ends, or earlier: then Save can add to it. Else ErrOther.
func (a *Archive) Fits(ctx context.Context, journal persistence.Journal) error {
	_, last, err := a.Bounds()
	if err != nil {
		return err
	}
	err = journal.Read(ctx, last, func(uint64, uint64, []byte) error { return errEnough })
	switch {
	case err == nil, errors.Is(err, errEnough):
		return nil
	case !errors.Is(err, persistence.ErrCorrupt):
		return fmt.Errorf("reading the journal for the archive: %w", err)
	}
	return a.doesNotFit(last, err)
}

func (a *Archive) doesNotFit(last uint64, err error) error {
	if last == 0 {
		return fmt.Errorf("%w: the journal's first records are gone already, so an archive in %s cannot be whole: %v", ErrOther, a.dir, err) //nolint:errorlint // the store is not damaged by it
	}
	return fmt.Errorf("%w: the archive in %s ends at record %d, and the journal does not go on from there: %v", ErrOther, a.dir, last, err) //nolint:errorlint
}

// Save takes what the journal has up to upTo, a batch's end, and the archive has not yet. It is durable
// when Save returns.
func (a *Archive) Save(ctx context.Context, journal persistence.Journal, upTo uint64) error {
	_, last, err := a.Bounds()
	if err != nil {
		return err
	}
	if upTo <= last {
		return nil
	}
	if err := a.clean(); err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	w := &writer{dir: a.dir, part: a.part, last: last}
	defer w.discard()
	begun := false
	err = journal.Read(ctx, last, func(prev, next uint64, batch []byte) error {
		begun = true
		if next > upTo {
			return errEnough
		}
		return w.add(prev, next, batch)
	})
	if errors.Is(err, persistence.ErrCorrupt) && !begun {
		return a.doesNotFit(last, err)
	}
	if err != nil && !errors.Is(err, errEnough) {
		return fmt.Errorf("reading the journal for the archive: %w", err)
	}
	return w.finish()
}

// clean removes what a crash left half written.
func (a *Archive) clean() error {
	entries, err := os.ReadDir(a.dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), unfinished) {
			err = errors.Join(err, os.Remove(filepath.Join(a.dir, e.Name())))
		}
	}
	return err
}

// A writer writes parts.
type writer struct {
	dir         string
	part        int
	out         *os.File // nil between two parts
	packed      *zstd.Encoder
	sum         hash.Hash
	first, last uint64 // records of the part; last also of the archive
	size        int
	head        []byte
}

func (w *writer) add(prev, next uint64, batch []byte) error {
	if prev != w.last || len(batch) == 0 {
		return fmt.Errorf("%w: a batch (%d, %d] of %d bytes comes at %d", persistence.ErrCorrupt, prev, next, len(batch), w.last)
	}
	if w.out != nil && w.size >= w.part {
		if err := w.finish(); err != nil {
			return err
		}
	}
	if w.out == nil {
		if err := w.begin(prev + 1); err != nil {
			return err
		}
	}
	w.head = binary.AppendUvarint(w.head[:0], uint64(len(batch)))
	w.head = binary.AppendUvarint(binary.AppendUvarint(w.head, prev), next)
	w.last, w.size = next, w.size+len(w.head)+len(batch)
	return errors.Join(w.write(w.head), w.write(batch))
}

func (w *writer) write(b []byte) error {
	w.sum.Write(b)
	_, err := w.packed.Write(b)
	return err
}

func (w *writer) begin(first uint64) (err error) {
	if w.packed, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window)); err != nil {
		return err
	}
	if w.out, err = os.CreateTemp(w.dir, unfinished); err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	w.packed.Reset(w.out)
	w.sum, w.first, w.size = sha256.New(), first, 0
	return w.write([]byte(magic))
}

// finish makes the part durable and gives it its name.
func (w *writer) finish() error {
	if w.out == nil {
		return nil
	}
	err := w.write([]byte{0})
	if err == nil {
		_, err = w.packed.Write(w.sum.Sum(nil))
	}
	name := filepath.Join(w.dir, partName(w.first, w.last))
	err = errors.Join(err, w.packed.Close())
	if err == nil {
		err = w.out.Sync()
	}
	if err = errors.Join(err, w.out.Close()); err == nil {
		err = os.Rename(w.out.Name(), name)
	}
	if err == nil {
		err = syncDir(w.dir)
	}
	if err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	w.out = nil
	return nil
}

// discard removes what was not finished.
func (w *writer) discard() {
	if w.out != nil {
		w.packed.Close() //nolint:errcheck // it is thrown away
		w.out.Close()    //nolint:errcheck
		os.Remove(w.out.Name())
	}
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Read calls fn for each batch that ends above after, in order, until the end or fn's error. The slice is
// valid during the call only. A part is verified before fn sees anything of it. ErrCorrupt if a part is
// damaged or missing.
func (a *Archive) Read(ctx context.Context, after uint64, fn func(prev, next uint64, batch []byte) error) error {
	list, err := a.files()
	if err != nil {
		return err
	}
	if len(list) > 0 && list[0].first > after+1 {
		return fmt.Errorf("%w: the archive in %s begins at record %d, so it does not follow record %d", persistence.ErrCorrupt, a.dir, list[0].first, after)
	}
	for _, f := range list {
		if f.last <= after {
			continue
		}
		if err := f.read(ctx, func(uint64, uint64, []byte) error { return nil }); err != nil {
			return err
		}
		err := f.read(ctx, func(prev, next uint64, batch []byte) error {
			if next <= after {
				return nil
			}
			return fn(prev, next, batch)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *file) damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", persistence.ErrCorrupt, f.name, fmt.Sprintf(format, args...))
}

func (f *file) read(ctx context.Context, fn func(prev, next uint64, batch []byte) error) error {
	in, err := os.Open(f.name)
	if err != nil {
		return fmt.Errorf("reading the archive: %w", err)
	}
	defer in.Close()
	packed, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return f.damaged("it cannot be decompressed: %v", err)
	}
	defer packed.Close()
	sum := sha256.New()
	r := &summing{in: bufio.NewReaderSize(packed, 1<<16), sum: sum}
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(r, head); err != nil {
		return f.damaged("it does not begin as a part of a journal: %v", err)
	}
	if string(head) != magic {
		return f.damaged("it does not begin as a part of a journal")
	}
	at := f.first - 1
	var batch []byte
	for ctx.Err() == nil {
		n, err := binary.ReadUvarint(r)
		if err != nil {
			return f.damaged("it is cut off after record %d: %v", at, err)
		}
		if n == 0 {
			return f.verify(r, at, sum.Sum(nil))
		}
		prev, err1 := binary.ReadUvarint(r)
		next, err2 := binary.ReadUvarint(r)
		if err := errors.Join(err1, err2); err != nil {
			return f.damaged("it is cut off after record %d: %v", at, err)
		}
		if n > maxBatch || prev != at || next <= prev {
			return f.damaged("a batch (%d, %d] of %d bytes comes after record %d", prev, next, n, at)
		}
		if batch, err = readAll(r, batch[:0], int(n)); err != nil {
			return f.damaged("the batch (%d, %d] is cut off: %v", prev, next, err)
		}
		if err := fn(prev, next, batch); err != nil {
			return err
		}
		at = next
	}
	return ctx.Err()
}

// readAll reads n bytes in steps, so that a damaged length does not ask for memory that is not needed.
func readAll(r io.Reader, b []byte, n int) ([]byte, error) {
	for len(b) < n {
		step := min(n-len(b), 1<<20)
		b = slices.Grow(b, step)[:len(b)+step]
		if _, err := io.ReadFull(r, b[len(b)-step:]); err != nil {
			return b, err
		}
	}
	return b, nil
}

func (f *file) verify(r *summing, at uint64, want []byte) error {
	got := make([]byte, sha256.Size)
	if _, err := io.ReadFull(r.in, got); err != nil {
		return f.damaged("its checksum is cut off: %v", err)
	}
	if !bytes.Equal(got, want) {
		return f.damaged("its checksum is wrong")
	}
	if at != f.last {
		return f.damaged("it ends at record %d", at)
	}
	switch _, err := r.in.ReadByte(); {
	case err == nil:
		return f.damaged("there is more behind its checksum")
	case !errors.Is(err, io.EOF):
		return f.damaged("its end is cut off: %v", err)
	}
	return nil
}

// summing hashes what is read.
type summing struct {
	in  *bufio.Reader
	sum hash.Hash
	one [1]byte
}

func (s *summing) Read(p []byte) (int, error) {
	n, err := s.in.Read(p)
	s.sum.Write(p[:n])
	return n, err
}

func (s *summing) ReadByte() (byte, error) {
	b, err := s.in.ReadByte()
	if err == nil {
		s.one[0] = b
		s.sum.Write(s.one[:])
	}
	return b, err
}
