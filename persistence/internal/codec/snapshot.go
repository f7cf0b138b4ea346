package codec

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"exchange/persistence"
)

// chunkSize is how many bytes of an image go into one chunk; the last has fewer. An append may wait
// for a chunk, which takes Redis less than a millisecond.
const chunkSize = 64 << 10

// maxChunks bounds an image to 16 GiB.
const maxChunks = 1 << 18

// chunkHead is the crc32c in front of a chunk's bytes.
const chunkHead = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A Snapshot describes one image: the place of its chunks and their sum.
type Snapshot struct {
	Seq    uint64
	Epoch  uint32 // of the owner that stored it
	Unique string // distinguishes uploads at one sequence: neither can overwrite the other
	Chunks uint32
	Size   uint64 // bytes
	CRC    uint32 // crc32c of the whole image
}

// NewSnapshot describes a new image, without content.
func NewSnapshot(seq uint64, epoch uint32) Snapshot {
	var b [8]byte
	rand.Read(b[:])
	return Snapshot{Seq: seq, Epoch: epoch, Unique: hex.EncodeToString(b[:])}
}

// ID names the image's chunks: "<sequence>.<epoch>.<unique>".
func (s Snapshot) ID() string { return fmt.Sprintf("%d.%d.%s", s.Seq, s.Epoch, s.Unique) }

// String returns "<id>:<chunks>:<bytes>:<crc>", which ParseSnapshot reads.
func (s Snapshot) String() string {
	return fmt.Sprintf("%s:%d:%d:%08x", s.ID(), s.Chunks, s.Size, s.CRC)
}

// ParseSnapshot reads a text that String returned.
func ParseSnapshot(text string) (Snapshot, error) {
	var s Snapshot
	plain := strings.NewReplacer(".", " ", ":", " ").Replace(text)
	n, err := fmt.Sscanf(plain, "%d %d %s %d %d %x", &s.Seq, &s.Epoch, &s.Unique, &s.Chunks,
		&s.Size, &s.CRC)
	if err != nil || n != 6 || s.String() != text {
		return s, fmt.Errorf("%w: %q does not describe a snapshot", persistence.ErrCorrupt, text)
	}
	return s, nil
}

// Upload splits r into chunks, passes each to put in order, and fills in s. put must not keep the
// slice.
func (s *Snapshot) Upload(r io.Reader, put func(i uint32, chunk []byte) error) error {
	buf := make([]byte, chunkHead+chunkSize)
	s.Chunks, s.Size, s.CRC = 0, 0, 0
	for {
		n, err := io.ReadFull(r, buf[chunkHead:])
		if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("snapshot at %d: reading the image: %w", s.Seq, err)
		}
		if n > 0 {
			if s.Chunks == maxChunks {
				return fmt.Errorf("snapshot at %d: the image is above %d bytes", s.Seq,
					uint64(maxChunks)*chunkSize)
			}
			data := buf[chunkHead : chunkHead+n]
			binary.BigEndian.PutUint32(buf, crc32.Checksum(data, castagnoli))
			if err := put(s.Chunks, buf[:chunkHead+n]); err != nil {
				return err
			}
			s.CRC = crc32.Update(s.CRC, castagnoli, data)
			s.Size += uint64(n)
			s.Chunks++
		}
		if err != nil {
			return nil
		}
	}
}

// ErrNoChunk is returned by the get function of Download for a missing chunk.
var ErrNoChunk = errors.New("no such chunk")

// Download reads an image back. get returns chunk i as put received it. kept reports whether the
// image is still stored: a chunk removed for a newer image is not damage.
func (s Snapshot) Download(ctx context.Context, get func(ctx context.Context, i uint32) ([]byte,
	error), kept func(ctx context.Context) (bool, error)) io.ReadCloser {
	return &reader{ctx: ctx, s: s, get: get, kept: kept}
}

// reader checks each chunk before it returns a byte of that chunk, and the whole image before it
// returns io.EOF.
type reader struct {
	ctx  context.Context
	s    Snapshot
	get  func(ctx context.Context, i uint32) ([]byte, error)
	kept func(ctx context.Context) (bool, error)
	next uint32
	size uint64
	crc  uint32
	rest []byte
	err  error
}

// Size returns the image's length in bytes, bounded by the capacity of its chunks.
func (r *reader) Size() int { return int(min(r.s.Size, uint64(r.s.Chunks)*chunkSize)) }

func (r *reader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 && r.err == nil {
		r.err = r.fetch()
	}
	if len(r.rest) == 0 {
		return 0, r.err
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *reader) fetch() error {
	if r.next == r.s.Chunks {
		if r.size != r.s.Size || r.crc != r.s.CRC {
			return fmt.Errorf(
				"%w: snapshot %s has %d bytes with checksum %08x, unlike the stored image",
				persistence.ErrCorrupt, r.s, r.size, r.crc)
		}
		return io.EOF
	}
	chunk, err := r.get(r.ctx, r.next)
	if errors.Is(err, ErrNoChunk) {
		kept, err := r.kept(r.ctx)
		if err != nil {
			return err
		}
		if !kept {
			return fmt.Errorf("%w: the snapshot at %d was replaced by newer ones while it was read",
				persistence.ErrNoSnapshot, r.s.Seq)
		}
		return fmt.Errorf("%w: chunk %d of %d of the snapshot at %d is missing",
			persistence.ErrCorrupt, r.next, r.s.Chunks, r.s.Seq)
	}
	if err != nil {
		return fmt.Errorf("snapshot at %d, chunk %d: %w", r.s.Seq, r.next, err)
	}
	if len(chunk) <= chunkHead || binary.BigEndian.Uint32(chunk) !=
		crc32.Checksum(chunk[chunkHead:], castagnoli) {
		return fmt.Errorf("%w: chunk %d of the snapshot at %d has a wrong checksum",
			persistence.ErrCorrupt, r.next, r.s.Seq)
	}
	r.rest = chunk[chunkHead:]
	r.crc = crc32.Update(r.crc, castagnoli, r.rest)
	r.size += uint64(len(r.rest))
	r.next++
	return nil
}

func (r *reader) Close() error {
	r.rest, r.err = nil, errors.New("the snapshot's reader is closed")
	return nil
}
