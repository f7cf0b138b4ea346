package wal

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	recordHead  = 40
	recordAlign = 8
	// pageBytes: every write ends at a multiple of it. So the file system never reads a page to
	// write a part of it.
	pageBytes = 4096
	// headBytes is the size of a segment's head.
	headBytes = pageBytes
)

// A record is one batch's place in a segment.
type record struct {
	at, length         int64 // of the record, of its batch
	prev, next, digest uint64
}

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }

// recordBytes returns the size of a batch's record.
func recordBytes(batch int) int64 { return roundUp(recordHead+int64(batch), recordAlign) }

// appendRecord adds a record to b, without the padding up to recordAlign.
func appendRecord(b []byte, salt, prev, next, digest uint64, batch []byte) []byte {
	at := len(b)
	b = append(b, make([]byte, 8)...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(batch)))
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint64(b, prev)
	b = binary.BigEndian.AppendUint64(b, next)
	b = binary.BigEndian.AppendUint64(b, digest)
	binary.BigEndian.PutUint64(b[at:], checksum(salt, b[at+8:]))
	return append(b, batch...)
}

func checksum(salt uint64, b []byte) uint64 {
	var text [recordHead]byte
	binary.BigEndian.PutUint64(text[:], salt)
	n := copy(text[8:], b)
	return xxhash.Sum64(text[:8+n])
}

// parse returns the record of the head at the start of b, if it has that salt.
func parse(b []byte, salt uint64, at int64) (record, bool) {
	b = b[:recordHead]
	r := record{at: at, length: int64(binary.BigEndian.Uint32(b[8:])),
		prev: binary.BigEndian.Uint64(b[16:]), next: binary.BigEndian.Uint64(b[24:]),
		digest: binary.BigEndian.Uint64(b[32:])}
	// The first two conditions hold for a record, and seldom for other bytes. They avoid most
	// checksums of a search.
	return r, r.prev < r.next && binary.BigEndian.Uint32(b[12:]) == 0 &&
		binary.BigEndian.Uint64(b) == checksum(salt, b[8:])
}

// A scanner finds the records of a segment, through a window that moves over the file.
type scanner struct {
	file   vfs.File
	salt   uint64
	at     int64 // expected offset of the next record
	end    int64 // end of the part to be read
	window []byte
	from   int64 // of the window in the file
}

// windowBytes is the size of one read.
const windowBytes = 256 << 10

// bytes returns that part of the file; it is valid until the next call.
func (s *scanner) bytes(at, n int64) ([]byte, error) {
	if at < s.from || at+n > s.from+int64(len(s.window)) {
		size := min(max(n, windowBytes), s.end-at)
		if int64(cap(s.window)) < size {
			s.window = make([]byte, size)
		}
		s.window, s.from = s.window[:size], at
		if got, err := s.file.ReadAt(s.window, at); int64(got) < size {
			s.window = s.window[:0]
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return s.window[at-s.from:][:n], nil
}

// next returns the next record and its batch, which is valid until the next call. It skips bytes
// that are no record: the sequences reveal the gap. false: there is no further record.
func (s *scanner) next() (record, []byte, bool, error) {
	for ; s.at+recordHead <= s.end; s.at += recordAlign {
		b, err := s.bytes(s.at, recordHead)
		if err != nil {
			return record{}, nil, false, err
		}
		r, ok := parse(b, s.salt, s.at)
		if !ok || r.at+recordHead+r.length > s.end {
			continue
		}
		if b, err = s.bytes(r.at+recordHead, r.length); err != nil {
			return record{}, nil, false, err
		}
		s.at += recordBytes(int(r.length))
		return r, b, true, nil
	}
	return record{}, nil, false, nil
}
