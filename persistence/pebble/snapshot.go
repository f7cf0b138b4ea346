package pebble

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// chunks starts the keys of one image's chunks.
func (s *Store) chunks(img codec.Snapshot) []byte {
	unique, err := hex.DecodeString(img.Unique)
	if err != nil {
		// not from an upload: its chunks are missing, which Download reports
		unique = []byte(img.Unique)
	}
	return append(u32(u64(s.key(kindChunk), img.Seq), img.Epoch), unique...)
}

// image returns the newest snapshot (back 0) or the one before, of m.
func (s *Store) image(m meta, back int) (codec.Snapshot, error) {
	if back < 0 || back >= len(m.Snapshots) || m.Snapshots[back] == "" {
		return codec.Snapshot{}, fmt.Errorf("%s: %w", s, persistence.ErrNoSnapshot)
	}
	img, err := codec.ParseSnapshot(m.Snapshots[back])
	if err != nil {
		return img, fmt.Errorf("%s: %w", s, err)
	}
	return img, nil
}

// syncChunks is how many chunks of an image are written, at most, until they are synced: 512 kB. So
// the disk never has much of an image to write when an append comes. A chunk's time includes the
// disk's, by which the caller paces the upload.
const syncChunks = 8

// SaveSnapshot stores and then publishes an image.
func (s *Store) SaveSnapshot(ctx context.Context, tok persistence.Token, seq uint64,
	r io.Reader) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	s.snapshots.Lock()
	defer s.snapshots.Unlock()
	if err := s.mayPublish(tok, seq); err != nil {
		return err
	}
	img := codec.NewSnapshot(seq, tok.Epoch())
	keys := s.chunks(img)
	err := img.Upload(r, func(i uint32, chunk []byte) error {
		b := s.db.NewBatch()
		defer b.Close()
		if err := b.Set(u32(bytes.Clone(keys), i), chunk, nil); err != nil {
			return err
		}
		sync := pebble.NoSync
		if i%syncChunks == syncChunks-1 {
			sync = pebble.Sync
		}
		if err := s.write("write a snapshot", b, sync); err != nil {
			return err
		}
		return persistence.Pace(ctx)
	})
	if err == nil {
		err = s.publish(tok, img)
	}
	if err != nil {
		// The chunks written so far are useless. The next publication removes chunks that a crash
		// leaves here.
		b := s.db.NewBatch()
		defer b.Close()
		return errors.Join(err, b.DeleteRange(keys, after(keys), nil),
			s.write("remove a snapshot", b, pebble.NoSync))
	}
	return s.flush()
}

// mayPublish refuses a snapshot that must not become visible.
func (s *Store) mayPublish(tok persistence.Token, seq uint64) error {
	if err := s.owned(tok); err != nil {
		return err
	}
	watermark, err := s.watermark(s.db)
	if err != nil {
		return err
	}
	if watermark < seq {
		return codec.BelowWatermark(seq, watermark)
	}
	if newest, err := s.image(*s.meta.Load(), 0); err == nil && newest.Seq > seq {
		return codec.OlderSnapshot(seq, newest.Seq)
	}
	return nil
}

// publish makes img the newest image and removes all chunks but those of the two newest. Its commit
// is synced, and with it the chunks and the watermark before it in Pebble's log.
func (s *Store) publish(tok persistence.Token, img codec.Snapshot) error {
	s.changes.Lock()
	defer s.changes.Unlock()
	if err := s.mayPublish(tok, img.Seq); err != nil { // again: time has passed
		return err
	}
	m := *s.meta.Load()
	// A second image at one sequence replaces the first: the caller saves it again because the
	// first is bad.
	if newest, err := s.image(m, 0); err != nil || newest.Seq != img.Seq {
		m.Snapshots[1] = m.Snapshots[0]
	}
	m.Snapshots[0] = img.String()
	b := s.db.NewBatch()
	defer b.Close()
	if err := s.dropChunks(b, m); err != nil {
		return err
	}
	return s.commit(b, m, pebble.Sync)
}

// dropChunks deletes the chunks of all images but the two in m.
func (s *Store) dropChunks(b *pebble.Batch, m meta) error {
	all := s.key(kindChunk)
	var keep [][]byte
	for back := range m.Snapshots {
		if img, err := s.image(m, back); err == nil {
			keep = append(keep, s.chunks(img))
		}
	}
	if len(keep) == 2 && bytes.Compare(keep[0], keep[1]) > 0 {
		keep[0], keep[1] = keep[1], keep[0]
	}
	from := all
	for _, k := range keep {
		if bytes.Compare(from, k) < 0 {
			if err := b.DeleteRange(from, k, nil); err != nil {
				return err
			}
		}
		from = after(k)
	}
	return b.DeleteRange(from, after(all), nil)
}

// LoadSnapshot opens an image.
func (s *Store) LoadSnapshot(ctx context.Context, back int) (uint64, io.ReadCloser, error) {
	if err := s.begin(); err != nil {
		return 0, nil, err
	}
	defer s.end()
	img, err := s.image(*s.meta.Load(), back)
	if err != nil {
		return 0, nil, err
	}
	keys := s.chunks(img)
	get := func(_ context.Context, i uint32) ([]byte, error) {
		if err := s.begin(); err != nil {
			return nil, err
		}
		defer s.end()
		v, err := s.get(s.db, u32(bytes.Clone(keys), i))
		if err == nil && v == nil {
			err = codec.ErrNoChunk
		}
		return v, err
	}
	kept := func(context.Context) (bool, error) {
		s.changes.Lock() // a publication removes chunks before it stores meta
		m := s.meta.Load()
		s.changes.Unlock()
		return m.Snapshots[0] == img.String() || m.Snapshots[1] == img.String(), nil
	}
	return img.Seq, img.Download(ctx, get, kept), nil
}
