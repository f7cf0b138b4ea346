package wal

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// A cutter returns the part of a batch up to a sequence that lies within the batch.
type cutter func(prev, next uint64, batch []byte) (part []byte, err error)

// Cut removes everything above a sequence. If that lies within a batch, part returns the remaining
// part of the batch. After a crash the log ends at the sequence or anywhere above, with its old
// content. The goroutine that appends calls it. A read that begins before a Cut and goes beyond the
// sequence may fail.
//
// ErrCorrupt: the log has no whole batch there. Then nothing has changed.
func (l *Log) Cut(seq uint64, part cutter) error {
	if err := l.Sync(); err != nil { // so that end is the end of the last write
		return err
	}
	if end, _ := l.End(); seq >= end {
		return nil
	}
	if err := l.dropPrepared(); err != nil {
		return err
	}
	keep, err := l.last(seq)
	if err != nil {
		return err
	}
	if keep < 0 {
		return l.cutAll(seq)
	}
	kept := l.segments[keep]
	edge, err := l.edge(kept, seq, part)
	if err != nil {
		return err
	}
	if err := l.removeAfter(keep); err != nil {
		return err
	}
	return l.shorten(kept, edge)
}

// drop discards the segment that is being prepared.
func (l *Log) dropPrepared() error {
	if l.prepared == nil {
		return nil
	}
	next := <-l.prepared
	l.prepared = nil
	if next.segment == nil {
		return nil
	}
	return l.discard(next)
}

// last returns the index of the segment that holds the batch with a sequence; -1: none, and the log
// begins there.
func (l *Log) last(seq uint64) (int, error) {
	keep := -1
	for i, s := range l.segments {
		switch {
		case s.first == unreadable && s != l.active:
			return 0, fmt.Errorf("%w: the first batch of %s cannot be read", persistence.ErrCorrupt,
				s.name)
		case s.first < seq:
			keep = i
		}
	}
	if keep < 0 && l.segments[0].first != seq {
		return 0, fmt.Errorf("%w: the log begins at %d, and is to be cut at %d",
			persistence.ErrCorrupt, l.segments[0].first, seq)
	}
	return keep, nil
}

// An edge is the future end of a segment.
type edge struct {
	at     int64  // offset of the cut
	last   record // the last one before at; zero: none
	part   []byte // remaining part of the batch after it; nil: none
	prev   uint64
	seq    uint64
	digest uint64
}

// edge finds where to cut a segment.
func (l *Log) edge(s *segment, seq uint64, part cutter) (e edge, err error) {
	file, err := l.fs.Open(s.name)
	if err != nil {
		return e, err
	}
	defer file.Close()
	e = edge{at: headBytes, seq: seq, prev: s.first}
	scan := scanner{file: file, salt: s.salt, at: headBytes, end: s.size}
	for {
		r, batch, ok, err := scan.next()
		if err != nil {
			return e, fmt.Errorf("read %s: %w", s.name, err)
		}
		if !ok || r.prev != e.prev || codec.Digest(batch) != r.digest {
			return e, fmt.Errorf("%w: %s has no whole batch after sequence %d",
				persistence.ErrCorrupt, s.name, e.prev)
		}
		if r.next > seq {
			e.part, err = part(r.prev, r.next, batch)
			e.digest = codec.Digest(e.part)
			return e, err
		}
		e.at, e.last, e.prev, e.digest = r.at+recordBytes(int(r.length)), r, r.next, r.digest
		if r.next == seq {
			return e, nil
		}
	}
}

// removeAfter removes the segments after one, from the last one on: after a crash the log has no
// gap.
func (l *Log) removeAfter(keep int) error {
	if l.file != nil {
		if err := l.file.Close(); err != nil {
			return err
		}
		l.active, l.file = nil, nil
	}
	for len(l.segments) > keep+1 {
		n := len(l.segments) - 1
		gone := l.segments[n]
		l.mu.Lock()
		l.segments = l.segments[:n]
		l.mu.Unlock()
		if err := l.fs.Remove(gone.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := l.folder.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// cutAll removes all segments of a log, and the free ones: no leftover may look like the log's end.
func (l *Log) cutAll(seq uint64) error {
	if err := l.removeAfter(-1); err != nil {
		return err
	}
	for s := l.reusable(l.maxSegment); s != nil; s = l.reusable(l.maxSegment) {
		if err := l.fs.Remove(s.name); err != nil {
			return err
		}
	}
	if err := l.folder.Sync(); err != nil {
		return err
	}
	l.setEnd(mark{seq: seq})
	return nil
}

// setEnd sets the end of the log on the disk.
func (l *Log) setEnd(m mark) {
	l.written, l.torn = m, false
	l.mu.Lock()
	l.end = m
	l.mu.Unlock()
}

const cutSuffix = ".cut"

// shorten replaces the last segment by a copy that ends at an edge. The copy has the same salt, so
// a reader finds the same records in both.
func (l *Log) shorten(s *segment, e edge) error {
	name := s.name + cutSuffix // a crash's leftover is useless
	if err := l.fs.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := l.fs.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	used, err := l.copyUpTo(s, file, e)
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = l.fs.Rename(name, s.name)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	l.active, l.file = s, file // Close closes it from here on
	if err := l.folder.Sync(); err != nil {
		return err
	}
	l.setEnd(mark{used: used, seq: e.seq, digest: e.digest})
	return nil
}

// copyUpTo writes a segment's bytes up to an edge, the part after it, and zeros.
func (l *Log) copyUpTo(s *segment, to vfs.File, e edge) (used int64, err error) {
	from, err := l.fs.Open(s.name)
	if err != nil {
		return 0, err
	}
	defer from.Close()
	for at := int64(0); at < s.size; at += fillBytes {
		b := make([]byte, min(fillBytes, s.size-at))
		if n := min(int64(len(b)), e.at-at); n > 0 {
			if _, err := from.ReadAt(b[:n], at); err != nil {
				return 0, err
			}
		}
		if _, err := to.WriteAt(b, at); err != nil {
			return 0, err
		}
	}
	if e.part == nil {
		return e.at, nil
	}
	b := appendRecord(nil, s.salt, e.prev, e.seq, e.digest, e.part)
	_, err = to.WriteAt(b, e.at)
	return e.at + recordBytes(len(e.part)), err
}
