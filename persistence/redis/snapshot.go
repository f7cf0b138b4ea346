package redis

import (
	"context"
	"fmt"
	"io"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// SaveSnapshot stores and then publishes an image.
func (s *Store) SaveSnapshot(ctx context.Context, tok persistence.Token, seq uint64,
	r io.Reader) error {
	select {
	case s.uploads <- struct{}{}:
		defer func() { <-s.uploads }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := s.publish(ctx, tok, seq, ""); err != nil {
		return err
	}
	img := codec.NewSnapshot(seq, tok.Epoch())
	key := s.image(img.ID())
	err := img.Upload(r, func(i uint32, chunk []byte) error {
		_, _, err := s.run(ctx, s.projections, chunkScript, "write a snapshot",
			[]string{s.head(), s.images(), key},
			string(tok), img.ID(), i, chunk)
		if err != nil {
			return err
		}
		return persistence.Pace(ctx)
	})
	if err != nil {
		// The set of images names it, so the next publication removes any chunks left here.
		if failed := s.projections.Unlink(context.WithoutCancel(ctx), key).Err(); failed != nil {
			s.log.Warn("the chunks of a broken snapshot stay until the next one", "store", s.name,
				"error", failed)
		}
		return err
	}
	// if its outcome is unknown, the image must stay
	if err := s.publish(ctx, tok, seq, img.String()); err != nil {
		return err
	}
	if s.fill { // the restore ends here, and the mark of an earlier journal is void
		return s.acknowledged.Reset(seq)
	}
	return nil
}

// publish makes an image the newest, or with "" only checks whether it could.
func (s *Store) publish(ctx context.Context, tok persistence.Token, seq uint64, img string) error {
	code, text, err := s.run(ctx, s.projections, publishScript, "publish a snapshot",
		[]string{s.head(), s.watermark(), s.images()}, string(tok), dec(seq), img, s.image(""))
	if err != nil || code == codeDone {
		return err
	}
	stored, err := s.number("a sequence", text)
	if err != nil {
		return err
	}
	switch code {
	case codeBelowWatermark:
		return codec.BelowWatermark(seq, stored)
	case codeOlder:
		return codec.OlderSnapshot(seq, stored)
	}
	return s.fault("publish a snapshot", fmt.Errorf("the script answered %d %s", code, text))
}

// LoadSnapshot opens an image.
func (s *Store) LoadSnapshot(ctx context.Context, back int) (uint64, io.ReadCloser, error) {
	if back < 0 || back > 1 {
		return 0, nil, fmt.Errorf("%s: %w", s.name, persistence.ErrNoSnapshot)
	}
	texts, err := s.snapshots(ctx)
	if err != nil {
		return 0, nil, err
	}
	if texts[back] == "" {
		return 0, nil, fmt.Errorf("%s: %w", s.name, persistence.ErrNoSnapshot)
	}
	img, err := codec.ParseSnapshot(texts[back])
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", s.name, err)
	}
	chunks := &chunkReader{s: s, key: s.image(img.ID()), count: img.Chunks}
	kept := func(ctx context.Context) (bool, error) {
		now, err := s.snapshots(ctx)
		return err == nil && (now[0] == texts[back] || now[1] == texts[back]), err
	}
	return img.Seq, img.Download(ctx, chunks.get, kept), nil
}

// chunksAtOnce is how many chunks of an image are read in one round trip: half a megabyte, which
// takes Redis well below a millisecond. An append of another process may wait for it.
const chunksAtOnce = 8

// A chunkReader reads the chunks of one image in their order.
type chunkReader struct {
	s     *Store
	key   string
	count uint32
	first uint32   // of those that were read at once
	ahead []string // "": missing
}

// get returns a chunk, ErrNoChunk if it is missing.
func (r *chunkReader) get(ctx context.Context, i uint32) ([]byte, error) {
	if i < r.first || i-r.first >= uint32(len(r.ahead)) {
		var names []string
		for n := i; n < min(r.count, i+chunksAtOnce); n++ {
			names = append(names, dec(uint64(n)))
		}
		chunks, err := fields(r.s.history.HMGet(ctx, r.key, names...))
		if err != nil {
			return nil, err
		}
		r.first, r.ahead = i, chunks
	}
	chunk := r.ahead[i-r.first]
	if chunk == "" {
		return nil, codec.ErrNoChunk
	}
	r.ahead[i-r.first] = "" // each is read once
	return []byte(chunk), nil
}

// snapshots returns the texts of the newest image and the one before.
func (s *Store) snapshots(ctx context.Context) ([]string, error) {
	m, err := fields(s.history.HMGet(ctx, s.head(), "snap", "snap1"))
	if err != nil {
		return nil, s.fault("read the snapshots", err)
	}
	return m, nil
}
