package wal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
	"exchange/persistence/internal/durable"
)

// A Log is one folder of batches. Append, Write and Sync are called by one goroutine at a time; the
// other methods by any.
type Log struct {
	fs         vfs.FS
	dir        string
	folder     vfs.File
	fatal      func(error)
	maxSegment int64
	atNeed     bool

	// The appender's.
	active  *segment // the last of segments; nil: there is none
	number  uint64   // of the newest segment ever
	file    vfs.File // its
	written mark
	torn    bool // the head of an unacknowledged append follows
	buffer  []byte
	// receives the next segment from the goroutine that makes it; nil: none is being made
	prepared chan made

	mu       sync.Mutex
	segments []*segment // by number; guarded by mu
	end      mark       // end of the durable part; guarded by mu
	free     []*segment // of the largest size, for reuse, the oldest first; guarded by mu
}

// mark is the end of a log.
type mark struct {
	used        int64 // of the last segment
	seq, digest uint64
}

// made is a new segment and its file; empty if it could not be made.
type made struct {
	segment *segment
	file    vfs.File
}

// mostFree is how many segments are kept for reuse.
const mostFree = 2

// Options of Open.
type Options struct {
	// FS holds the folder; nil: the disk.
	FS vfs.FS
	// Begin is the sequence after which a log without batches begins.
	Begin uint64
	// Fatal is called when a sync has failed. It must end the process, because the content of the
	// disk is unknown then.
	Fatal func(error)
	// AtNeed makes a segment only when it is needed, so that a simulation can be repeated.
	AtNeed bool

	maxSegment int64 // of tests; 0: maxSegmentBytes
}

// Open opens the log in a folder, or makes one.
func Open(dir string, o Options) (_ *Log, err error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	l := &Log{fs: o.FS, dir: dir, fatal: o.Fatal, atNeed: o.AtNeed,
		maxSegment: cmp.Or(o.maxSegment, maxSegmentBytes), end: mark{seq: o.Begin}}
	if err := l.fs.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if l.folder, err = l.fs.OpenDir(dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	if err := durable.SyncFolder(l.fs, l.fs.PathDir(dir)); err != nil { // for dir's entry in it
		return nil, err
	}
	if err := l.find(); err != nil {
		return nil, err
	}
	// A segment without records was made and not used, or all its records are damaged; then the
	// store detects the loss.
	for n := len(l.segments); n > 0; n = len(l.segments) {
		found, err := l.findEnd(l.segments[n-1])
		if err != nil || found {
			return l, err
		}
		l.segments = l.segments[:n-1]
	}
	return l, nil
}

// find finds the folder's segments.
func (l *Log) find() error {
	names, err := l.fs.List(l.dir)
	if err != nil {
		return err
	}
	var numbers []uint64
	for _, name := range names {
		if n, ok := segmentNumber(name); ok {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		s := &segment{number: n, name: l.fs.PathJoin(l.dir, segmentName(n)), first: unreadable,
			refs: 1}
		if err := l.readHead(s); err != nil {
			return err
		}
		l.segments = append(l.segments, s)
	}
	return nil
}

// readHead reads the beginning of a segment.
func (l *Log) readHead(s *segment) error {
	file, err := l.fs.Open(s.name)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if s.size = info.Size(); s.size < headBytes {
		return nil
	}
	b := make([]byte, headBytes+recordHead)
	got, err := file.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	salt, other, err := parseHead(b, s.number)
	if err != nil || other {
		return err
	}
	if s.salt = salt; salt == 0 {
		// its head was durable before the first record
		s.damaged, err = hasRecords(file, s.size)
		return err
	}
	if r, ok := parse(b[headBytes:], salt, headBytes); ok && got == len(b) {
		s.first = r.prev
	}
	return nil
}

// findEnd finds the last record of the segment that may be the last one. false: it has none.
// ErrCorrupt: it had some, which cannot be found without its head.
func (l *Log) findEnd(s *segment) (bool, error) {
	if s.damaged {
		return false, fmt.Errorf("%w: the first page of %s is damaged, and the journal may "+
			"continue after it", persistence.ErrCorrupt, s.name)
	}
	if s.salt == 0 {
		return false, nil
	}
	file, err := l.fs.OpenReadWrite(s.name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return false, err
	}
	scan := scanner{file: file, salt: s.salt, at: headBytes, end: s.size}
	var last, before record // zero: none
	torn := false
	for {
		r, batch, ok, err := scan.next()
		if err != nil {
			return false, errors.Join(err, file.Close())
		}
		if !ok {
			break
		}
		before, last = last, r
		torn = codec.Digest(batch) != r.digest
	}
	if torn {
		last = before
	}
	if last.next == 0 {
		return false, file.Close()
	}
	l.active, l.file, l.number, l.torn = s, file, s.number, torn // Close closes it from here on
	l.end = mark{used: last.at + recordBytes(int(last.length)), seq: last.next, digest: last.digest}
	l.written = l.end
	return true, l.syncAgain(last)
}

// syncAgain writes and syncs the last record unchanged. A killed process may not have synced it.
// After a failed sync the kernel counts pages as written that never reached the disk.
func (l *Log) syncAgain(last record) error {
	b := make([]byte, recordHead+last.length)
	if _, err := l.file.ReadAt(b, last.at); err != nil {
		return err
	}
	if _, err := l.file.WriteAt(b, last.at); err != nil {
		return err
	}
	return l.file.SyncData()
}

// End returns the last sequence and the digest of its batch; 0 if there is none.
func (l *Log) End() (seq, digest uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end.seq, l.end.digest
}

// Complete returns ErrCorrupt if a segment is missing between the batch after a sequence and the
// end.
func (l *Log) Complete(after uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := -1
	for i, s := range l.segments {
		if s.first <= after || i == 0 && s.first == unreadable {
			from = i
		}
	}
	if from < 0 && len(l.segments) > 0 {
		return fmt.Errorf(
			"%w: the journal begins at sequence %d, and should at %d: the part before %s is "+
				"missing",
			persistence.ErrCorrupt, l.segments[0].first, after, l.segments[0].name)
	}
	for i := from + 1; i < len(l.segments); i++ {
		if number := l.segments[i-1].number + 1; l.segments[i].number != number {
			return fmt.Errorf("%w: %s is missing", persistence.ErrCorrupt,
				l.fs.PathJoin(l.dir, segmentName(number)))
		}
	}
	return nil
}

// Begin makes a log without batches end at a sequence.
func (l *Log) Begin(seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end.seq = seq
}

// Append makes a batch durable. After an error it is not in the log, and the same bytes may be
// tried again.
func (l *Log) Append(prev, next, digest uint64, batch []byte) error {
	if err := l.write(prev, next, digest, batch); err != nil {
		return err
	}
	return l.Sync()
}

// write adds a batch after the last one. It is durable, and readable, after Sync.
func (l *Log) write(prev, next, digest uint64, batch []byte) error {
	if int64(len(batch)) > math.MaxUint32 {
		return fmt.Errorf("%w: a batch of %d bytes", persistence.ErrInvalid, len(batch))
	}
	size := recordBytes(len(batch))
	if l.active == nil || l.written.used+size > l.active.size {
		if err := l.rotate(size); err != nil {
			return fmt.Errorf("make a segment of the journal: %w", err)
		}
	}
	s := l.active
	b := appendRecord(l.buffer[:0], s.salt, prev, next, digest, batch)
	filled := min(roundUp(l.written.used+size, pageBytes), s.size) - l.written.used
	b = append(b, make([]byte, filled-int64(len(b)))...)
	if cap(b) <= keepBytes {
		l.buffer = b
	}
	if _, err := l.file.WriteAt(b, l.written.used); err != nil {
		return err
	}
	l.written, l.torn = mark{l.written.used + size, next, digest}, false
	if s.first == unreadable {
		l.mu.Lock()
		s.first = prev
		l.mu.Unlock()
	}
	if l.prepared == nil && !l.atNeed && l.written.used > s.size/2 {
		l.prepare()
	}
	return nil
}

// keepBytes is the largest buffer kept for reuse, in bytes.
const keepBytes = 1 << 20

// Sync makes all written batches durable.
func (l *Log) Sync() error {
	if l.active == nil {
		return nil
	}
	if err := l.file.SyncData(); err != nil {
		l.fatal(fmt.Errorf("sync the journal: %w", err))
		return err
	}
	l.mu.Lock()
	l.end = l.written
	l.mu.Unlock()
	return nil
}

// prepare makes the next segment while appends continue. After a failure it is made when it is
// needed.
func (l *Log) prepare() {
	number := l.active.number + 1
	coming := make(chan made, 1)
	l.prepared = coming
	go func() {
		next, err := l.newSegment(number, l.segmentBytes(number, 0))
		if err != nil {
			next = made{}
		}
		coming <- next
	}()
}

// rotate continues in the next segment.
func (l *Log) rotate(record int64) error {
	number := l.number + 1
	if l.active != nil {
		if l.torn { // a later reader of this segment must not take it for damage
			if _, err := l.file.WriteAt(make([]byte, recordHead), l.written.used); err != nil {
				return err
			}
			l.torn = false
		}
		if err := l.Sync(); err != nil {
			return err
		}
	}
	next, err := l.next(number, record)
	if err != nil {
		return err
	}
	old := l.file
	l.active, l.file, l.number, l.written.used = next.segment, next.file, number, headBytes
	l.mu.Lock()
	l.segments = append(l.segments, l.active)
	l.end.used = headBytes
	l.mu.Unlock()
	if old != nil {
		return old.Close()
	}
	return nil
}

// next returns the prepared segment, if it has room for that record. Otherwise it makes one now,
// smaller than usual if the disk has no more room.
func (l *Log) next(number uint64, record int64) (next made, err error) {
	if l.prepared != nil {
		next, l.prepared = <-l.prepared, nil
	}
	if next.segment != nil {
		if headBytes+record <= next.segment.size {
			return next, nil
		}
		if err := l.discard(next); err != nil {
			return made{}, err
		}
	}
	usual, least := l.segmentBytes(number, record), leastBytes(record)
	if next, err = l.newSegment(number, usual); err != nil && least < usual {
		next, err = l.newSegment(number, least)
	}
	return next, err
}

func (l *Log) discard(m made) error {
	return errors.Join(m.file.Close(), l.fs.Remove(m.segment.name))
}

// Read calls fn for each batch that ends above after, in order, as persistence.Journal requires.
// Batches that end at or below trimmed count as gone.
func (l *Log) Read(ctx context.Context, after, trimmed uint64, fn func(prev, next uint64,
	batch []byte) error) (err error) {
	l.mu.Lock()
	end := l.end
	from := 0
	for i, s := range l.segments {
		if s.first <= after {
			from = i
		}
	}
	segments := slices.Clone(l.segments[from:])
	for _, s := range segments {
		s.refs++
	}
	l.mu.Unlock()
	defer func() { err = errors.Join(err, l.release(segments)) }()

	chain := codec.Chain{After: after, End: end.seq}
	if empty, err := chain.Empty(); empty || err != nil {
		return err
	}
	for i, s := range segments {
		used := s.size
		if i == len(segments)-1 {
			// a file may be cut off after its last record, in its padding
			used = min(end.used, s.size)
		}
		if err := l.readSegment(ctx, s, used, max(after, trimmed), &chain, fn); err != nil {
			return err
		}
	}
	return chain.Done()
}

// readSegment reads the batches that end above a sequence.
func (l *Log) readSegment(ctx context.Context, s *segment, used int64, after uint64,
	chain *codec.Chain, fn func(prev, next uint64, batch []byte) error) error {
	if s.salt == 0 {
		return nil // the chain shows a missing batch
	}
	file, err := l.fs.Open(s.name)
	if err != nil {
		return err
	}
	defer file.Close()
	scan := scanner{file: file, salt: s.salt, at: headBytes, end: used}
	for {
		r, batch, ok, err := scan.next()
		if err != nil {
			return fmt.Errorf("read %s: %w", s.name, err)
		}
		if !ok {
			return nil
		}
		if r.next <= after {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := chain.Next(r.prev, r.next, r.digest, batch); err != nil {
			return fmt.Errorf("%w (%s, byte %d)", err, s.name, r.at)
		}
		if err := fn(r.prev, r.next, batch); err != nil {
			return err
		}
	}
}

// Trim drops the segments with only batches that end at or below upTo. The last one stays.
func (l *Log) Trim(upTo uint64) error {
	l.mu.Lock()
	keep := 0
	for i, s := range l.segments {
		if s.first <= upTo {
			keep = i
		}
	}
	gone := slices.Clone(l.segments[:keep])
	l.segments = slices.Delete(l.segments, 0, keep)
	l.mu.Unlock()
	return l.release(gone)
}

// Size returns how many bytes the segments take on the disk, with those kept for reuse.
func (l *Log) Size() (bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, list := range [][]*segment{l.segments, l.free} {
		for _, s := range list {
			bytes += s.size
		}
	}
	return bytes
}

// Newest returns the sequence after which the newest segments begin that take at most a number of
// bytes. The last segment is one of them in any case.
func (l *Log) Newest(bytes int64) (after uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, s := range slices.Backward(l.segments) {
		if bytes -= s.size; bytes < 0 && i < len(l.segments)-1 {
			break
		}
		if s.first != unreadable {
			after = s.first
		}
	}
	return after
}

// release releases one hold of each segment. Trimmed segments without a hold are kept for reuse, or
// removed.
func (l *Log) release(segments []*segment) (err error) {
	var gone []*segment
	l.mu.Lock()
	for _, s := range segments {
		if s.refs--; s.refs > 0 {
			continue
		}
		// A reused damaged one would be refused if a crash lost its new head.
		if s.size == l.maxSegment && !s.damaged && len(l.free) < mostFree {
			l.free = append(l.free, s)
		} else {
			gone = append(gone, s)
		}
	}
	l.mu.Unlock()
	for _, s := range gone {
		err = errors.Join(err, l.fs.Remove(s.name))
	}
	return err
}

// reusable returns the oldest segment for reuse with that size; nil: none.
func (l *Log) reusable(size int64) *segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.free) == 0 || l.free[0].size != size {
		return nil
	}
	s := l.free[0]
	l.free = slices.Delete(l.free, 0, 1)
	return s
}

// Close frees the files. No other call may be in progress.
func (l *Log) Close() error {
	var err error
	if l.prepared != nil {
		if next := <-l.prepared; next.segment != nil {
			err = l.discard(next)
		}
	}
	if l.file != nil {
		err = errors.Join(err, l.file.Close())
	}
	return errors.Join(err, l.folder.Close())
}
