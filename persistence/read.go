package persistence

import (
	"bytes"
	"context"
	"errors"
)

var errEnough = errors.New("enough")

// First returns the first batch of a journal that ends above after. Without one batch is nil, and
// next 0. The errors are those of Journal.Read.
func First(ctx context.Context, journal Journal, after uint64) (prev, next uint64, batch []byte,
	err error) {
	err = journal.Read(ctx, after, func(p, n uint64, b []byte) error {
		prev, next, batch = p, n, append([]byte(nil), b...)
		return errEnough
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return prev, next, batch, err
}

// ReadSnapshot returns the newest image (back 0) or the one before (back 1) as a whole. The errors
// are those of LoadSnapshot; seq is the image's even where its bytes are damaged.
func ReadSnapshot(ctx context.Context, store Images, back int) (image []byte, seq uint64,
	err error) {
	seq, r, err := store.LoadSnapshot(ctx, back)
	if err != nil {
		return nil, seq, err
	}
	var b bytes.Buffer
	if sized, ok := r.(interface{ Size() int }); ok {
		b.Grow(sized.Size() + bytes.MinRead) // room to see its end: no copy, and half the memory
	}
	_, err = b.ReadFrom(r)
	return b.Bytes(), seq, errors.Join(err, r.Close())
}
