package archive

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"exchange/persistence"
	"exchange/persistence/internal/packed"
)

// Base is what the archive begins with: the image of the state at a sequence, which Read goes on from; nil and 0 if
// it begins with the first record. ErrCorrupt if it is damaged or missing.
func (a *Archive) Base(ctx context.Context) (seq uint64, image []byte, err error) {
	list, err := a.files()
	if err != nil || len(list) == 0 || !list[0].based {
		return 0, nil, err
	}
	err = list[0].read(ctx, func(piece []byte) { image = append(image, piece...) }, ignore)
	return list[0].first - 1, image, err
}

// Read calls fn for each batch that ends above after, in order, until the end or fn's error. The slice is
// valid during the call only. A part is verified before fn sees anything of it. ErrCorrupt if a part is
// damaged or missing, also if after is below the base.
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
		if err := f.read(ctx, discard, ignore); err != nil {
			return err
		}
		err := f.read(ctx, discard, func(prev, next uint64, batch []byte) error {
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

func discard([]byte)                      {}
func ignore(uint64, uint64, []byte) error { return nil }

func (f *file) damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s: %w", persistence.ErrCorrupt, f.name, fmt.Errorf(format, args...))
}

// read gives the pieces of the base to base, and the batches to fn.
func (f *file) read(ctx context.Context, base func(piece []byte), fn func(prev, next uint64, batch []byte) error) error {
	in, err := os.Open(f.name)
	if err != nil {
		return fmt.Errorf("reading the archive: %w", err)
	}
	defer in.Close()
	r, err := packed.NewReader(in, magic)
	if err != nil {
		return f.damaged("%w", err)
	}
	defer r.Close()
	if err := f.readBase(r, base); err != nil {
		return err
	}
	at := f.first - 1
	var batch []byte
	for ctx.Err() == nil {
		n, err := binary.ReadUvarint(r)
		if err != nil {
			return f.damaged("after record %d: %w", at, err)
		}
		if n == 0 {
			return f.ends(r, at)
		}
		prev, err1 := binary.ReadUvarint(r)
		next, err2 := binary.ReadUvarint(r)
		if err := errors.Join(err1, err2); err != nil {
			return f.damaged("after record %d: %w", at, err)
		}
		if n > maxBatch || prev != at || next <= prev {
			return f.damaged("a batch (%d, %d] of %d bytes comes after record %d", prev, next, n, at)
		}
		if batch, err = readAll(r, batch[:0], int(n)); err != nil {
			return f.damaged("in the batch (%d, %d]: %w", prev, next, err)
		}
		if err := fn(prev, next, batch); err != nil {
			return err
		}
		at = next
	}
	return ctx.Err()
}

func (f *file) readBase(r *packed.Reader, base func(piece []byte)) error {
	var piece []byte
	var size uint64
	for pieces := 0; ; pieces++ {
		n, err := binary.ReadUvarint(r)
		if err != nil {
			return f.damaged("in what it begins with: %w", err)
		}
		switch {
		case n > maxPiece:
			return f.damaged("it begins with a piece of %d bytes", n)
		case size+n > packed.MaxImage:
			return f.damaged("it begins with a state of more than %d bytes", uint64(packed.MaxImage))
		case n > 0:
			if piece, err = readAll(r, piece[:0], int(n)); err != nil {
				return f.damaged("in what it begins with: %w", err)
			}
			base(piece)
			size += n
			continue
		case f.based && pieces == 0:
			return f.damaged("it does not begin with a state, and the parts before record %d are missing", f.first)
		case !f.based && pieces > 0:
			return f.damaged("it begins with a state, as only the first part of an archive may")
		}
		return nil
	}
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

// ends checks what is behind the last batch.
func (f *file) ends(r *packed.Reader, at uint64) error {
	if err := r.Done(); err != nil {
		return f.damaged("%w", err)
	}
	if at != f.last {
		return f.damaged("it ends at record %d", at)
	}
	return nil
}
