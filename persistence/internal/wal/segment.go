package wal

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
)

const (
	// maxSegmentBytes is the size of a segment, but for the first ones and one with a larger batch.
	maxSegmentBytes = 32 << 20
	// minSegmentBytes is that of the first: a small exchange keeps a small folder.
	minSegmentBytes = 64 << 10
	// fillBytes is how much of a new segment is written at once: appends continue meanwhile.
	fillBytes = 256 << 10

	magic  = "exchange"
	format = 1
)

// A segment is one file. Only the last one of a log is kept open.
type segment struct {
	number uint64
	name   string
	size   int64
	salt   uint64 // 0: its head cannot be read
	// damaged: its head cannot be read, and a crash while making it does not explain that
	damaged bool
	// the sequence before the first record, once there is one; unreadable if the record is damaged
	first uint64

	refs int // the log's, and one of each read in progress; guarded by Log.mu, like first
}

// unreadable is above every sequence, so that a read never begins with such a segment.
const unreadable = ^uint64(0)

const suffix = ".journal"

func segmentName(number uint64) string { return fmt.Sprintf("%08d%s", number, suffix) }

// segmentNumber returns the number of a file, if its name is a segment's.
func segmentNumber(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, ok && err == nil && segmentName(n) == name
}

// segmentBytes returns the usual size of a segment with room for a record of that many bytes.
func (l *Log) segmentBytes(number uint64, record int64) int64 {
	size := l.maxSegment
	if number < 16 {
		size = min(size, minSegmentBytes<<(number-1))
	}
	return max(size, leastBytes(record))
}

// leastBytes returns the least size of one.
func leastBytes(record int64) int64 {
	return max(minSegmentBytes, roundUp(headBytes+record, pageBytes))
}

// head returns the first page.
func head(number, salt uint64) []byte {
	b := append(make([]byte, 0, headBytes), magic...)
	b = binary.BigEndian.AppendUint64(b, format)
	b = binary.BigEndian.AppendUint64(b, number)
	b = binary.BigEndian.AppendUint64(b, salt)
	b = binary.BigEndian.AppendUint64(b, checksum(salt, b))
	return b[:headBytes]
}

// parseHead returns the salt of the segment that begins with b, if it is whole. other: it is the
// whole head of another segment, for reuse.
func parseHead(b []byte, number uint64) (salt uint64, other bool, err error) {
	if string(b[:8]) != magic {
		return 0, false, nil
	}
	if err := otherFormat(b, number); err != nil {
		return 0, false, err
	}
	switch salt = binary.BigEndian.Uint64(b[24:]); {
	case binary.BigEndian.Uint64(b[32:]) != checksum(salt, b[:32]):
		return 0, false, nil
	case binary.BigEndian.Uint64(b[16:]) != number:
		return 0, true, nil
	}
	return salt, false, nil
}

// otherFormat returns the ErrVersion of a segment of another version that begins with b, or nil.
func otherFormat(b []byte, number uint64) error {
	if v := binary.BigEndian.Uint64(b[8:]); v != format {
		return fmt.Errorf("%s: %w", segmentName(number), persistence.OtherVersion(v, format))
	}
	return nil
}

// Readable returns the ErrVersion of a folder with a segment of another version. It changes
// nothing, and leaves other faults to Open.
func Readable(files vfs.FS, dir string) error {
	names, err := files.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range names {
		number, ok := segmentNumber(name)
		if !ok {
			continue
		}
		f, err := files.Open(files.PathJoin(dir, name))
		if err != nil {
			return err
		}
		var b [16]byte
		_, err = io.ReadFull(f, b[:])
		if f.Close(); err == nil && string(b[:8]) == magic {
			if err := otherFormat(b[:], number); err != nil {
				return err
			}
		}
	}
	return err
}

// hasRecords reports whether any byte after a segment's head is not zero.
func hasRecords(file vfs.File, size int64) (bool, error) {
	b := make([]byte, fillBytes)
	for at := int64(headBytes); at < size; at += fillBytes {
		n, err := file.ReadAt(b[:min(fillBytes, size-at)], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		if len(bytes.TrimLeft(b[:n], "\x00")) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// newSegment makes a segment of that many bytes, and opens it. It reuses a free segment, if there
// is one, otherwise it writes zeros. The segment is durable when newSegment returns.
func (l *Log) newSegment(number uint64, size int64) (made, error) {
	s := &segment{number: number, name: l.fs.PathJoin(l.dir, segmentName(number)), size: size,
		first: unreadable, refs: 1}
	for s.salt == 0 { // 0 is the salt of zeros
		var b [8]byte
		rand.Read(b[:])
		s.salt = binary.BigEndian.Uint64(b[:])
	}
	old := l.reusable(s.size)
	var err error
	if old != nil {
		err = l.fs.Rename(old.name, s.name)
		// the remains of an earlier try that crashed are useless
	} else if err = l.fs.Remove(s.name); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return made{}, err
	}
	file, err := l.fs.OpenReadWrite(s.name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return made{}, err
	}
	if err := l.fill(s, file, old == nil); err != nil {
		return made{}, errors.Join(err, file.Close(), l.fs.Remove(s.name))
	}
	return made{segment: s, file: file}, nil
}

// fill writes the head of a segment, and zeros after it. They are synced a piece at a time: an
// append in the meantime waits for one of them at most.
func (l *Log) fill(s *segment, file vfs.File, empty bool) error {
	if _, err := file.WriteAt(head(s.number, s.salt), 0); err != nil {
		return err
	}
	if empty {
		zeros := make([]byte, fillBytes)
		for at := int64(headBytes); at < s.size; at += fillBytes {
			if _, err := file.WriteAt(zeros[:min(fillBytes, s.size-at)], at); err != nil {
				return err
			}
			if err := file.SyncData(); err != nil {
				return err
			}
		}
	}
	if err := file.Sync(); err != nil {
		return err
	}
	return l.folder.Sync()
}
