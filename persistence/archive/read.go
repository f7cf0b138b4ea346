package archive

import (
	"context"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"exchange/persistence"
	"exchange/persistence/internal/packed"
)

// Base returns the image of the archive's initial state, and its sequence, from which Read
// continues. It returns nil and 0 if the archive begins with the first record. ErrCorrupt: the base
// is damaged or missing.
func (a *Archive) Base(ctx context.Context) (seq uint64, image []byte, err error) {
	list, err := a.files()
	if err != nil || len(list) == 0 || !list[0].based {
		return 0, nil, err
	}
	if err = list[0].authentic(a.by); err != nil {
		return 0, nil, err
	}
	_, _, err = list[0].read(ctx, a.by,
		func(piece []byte) { image = append(image, piece...) }, ignore)
	if err != nil {
		return 0, nil, err // never bytes of a part that is not whole and authentic
	}
	return list[0].first - 1, image, nil
}

// Provable returns nil if by has the key of each part. Otherwise it returns persistence.ErrNoKey,
// with the part and the key.
func (a *Archive) Provable(by persistence.Authority) error {
	list, err := a.files()
	for i := 0; err == nil && i < len(list); i++ {
		var id uint64
		if _, id, err = list[i].proof(); err == nil && by.MAC(id, nil) == nil {
			err = fmt.Errorf("%s: %w: %016x", list[i].name, persistence.ErrNoKey, id)
		}
	}
	return err
}

// Histories returns the ids of the histories that the parts were written under, from their heads.
// It does not check the heads: Read does.
func (a *Archive) Histories() (ids []persistence.HistoryID, err error) {
	list, err := a.files()
	for i := 0; err == nil && i < len(list); i++ {
		var h head
		if h, err = list[i].head(); err == nil {
			ids = append(ids, h.history)
		}
	}
	return ids, err
}

// Newest returns the id of the history that the last part was written under, from its head; false:
// the archive is empty.
func (a *Archive) Newest() (id persistence.HistoryID, ok bool, err error) {
	list, err := a.files()
	if err != nil || len(list) == 0 {
		return id, false, err
	}
	h, err := list[len(list)-1].head()
	return h.history, true, err
}

// head returns the head of a part.
func (f *file) head() (head, error) {
	in, err := f.fs.Open(f.name)
	if err != nil {
		return head{}, fmt.Errorf("reading the archive: %w", err)
	}
	defer in.Close()
	r, err := packed.NewReader(in, magic, nil)
	if err != nil {
		return head{}, f.damaged("%w", err)
	}
	defer r.Close()
	return f.readHead(r)
}

// Read calls fn for each batch that ends above after, in order, until the end or fn's error. The
// slice is valid during the call only. A part is verified before fn receives any of it. ErrCorrupt:
// a part is damaged or missing, or after is below the base.
func (a *Archive) Read(ctx context.Context, after uint64, fn func(prev, next uint64,
	batch []byte) error) error {
	list, err := a.files()
	if err != nil {
		return err
	}
	if len(list) > 0 && list[0].first > after+1 {
		return fmt.Errorf(
			"%w: the archive in %s begins at record %d, so it does not follow record %d",
			persistence.ErrCorrupt, a.dir, list[0].first, after)
	}
	for _, f := range list {
		if f.last <= after {
			continue
		}
		if err := f.authentic(a.by); err != nil {
			return err
		}
		if _, _, err := f.read(ctx, a.by, discard, ignore); err != nil {
			return err
		}
		_, _, err := f.read(ctx, a.by, discard, func(prev, next uint64, batch []byte) error {
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
	err := fmt.Errorf(format, args...)
	if errors.Is(err, persistence.ErrNoKey) { // it may be good
		return fmt.Errorf("%s: %w", f.name, err)
	}
	return persistence.Unreadable(fmt.Errorf("%s: %w", f.name, err))
}

// authentic returns nil if the part is authentic, or if by is nil. Nothing of the part is unpacked.
func (f *file) authentic(by persistence.Authority) error {
	if by == nil {
		return nil
	}
	in, err := f.fs.Open(f.name)
	if err != nil {
		return fmt.Errorf("reading the archive: %w", err)
	}
	defer in.Close()
	if err := packed.Authenticate(in, by); err != nil {
		return f.damaged("%w", err)
	}
	return nil
}

// proof returns the proof of a part, unchecked.
func (f *file) proof() (mac []byte, id uint64, err error) {
	in, err := f.fs.Open(f.name)
	if err != nil {
		return nil, 0, fmt.Errorf("reading the archive: %w", err)
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return nil, 0, fmt.Errorf("reading the archive: %w", err)
	}
	if mac, id, err = packed.Named(in, info.Size()); err != nil {
		err = f.damaged("%w", err)
	}
	return mac, id, err
}

// A head describes a part.
type head struct {
	Engine  string `json:"engine"`
	History string `json:"history"` // id, in hex
	First   uint64 `json:"first"`
	Before  string `json:"before"` // HMAC of the part before, in hex; "": there is none

	history persistence.HistoryID
}

// readHead reads the head of a part. The head must fit the part's name, and follow the part before.
func (f *file) readHead(r *packed.Reader) (h head, err error) {
	n, err := binary.ReadUvarint(r)
	if err == nil && n > maxHead {
		err = fmt.Errorf("a head of %d bytes", n)
	}
	var b []byte
	if err == nil {
		b, err = readAll(r, nil, int(n))
	}
	if err == nil {
		err = json.Unmarshal(b, &h)
	}
	if err == nil {
		var id []byte
		if id, err = hex.DecodeString(h.History); err == nil && copy(h.history[:], id) != len(id) {
			err = fmt.Errorf("a history's id of %d bytes", len(id))
		}
	}
	if err != nil {
		return h, f.damaged("in its head: %w", err)
	}
	if h.First != f.first {
		return h, f.damaged("it begins at record %d", h.First)
	}
	return h, f.follows(h.Before)
}

// follows returns an error unless the part names the HMAC of the part before it.
func (f *file) follows(before string) error {
	if f.before == "" {
		if before != "" {
			return f.damaged("the parts before record %d are missing", f.first)
		}
		return nil
	}
	previous := file{fs: f.fs, name: f.before}
	mac, _, err := previous.proof()
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare([]byte(before), []byte(hex.EncodeToString(mac))) != 1 {
		return f.damaged("it was not written after %s", filepath.Base(f.before))
	}
	return nil
}

// read hands the pieces of the base to base, and the batches to fn. It returns the part's HMAC,
// which by must confirm at the end; a nil by confirms every HMAC.
func (f *file) read(ctx context.Context, by persistence.Authority, base func(piece []byte),
	fn func(prev, next uint64, batch []byte) error) (h head, mac []byte, err error) {
	in, err := f.fs.Open(f.name)
	if err != nil {
		return head{}, nil, fmt.Errorf("reading the archive: %w", err)
	}
	defer in.Close()
	r, err := packed.NewReader(in, magic, by)
	if err != nil {
		return head{}, nil, f.damaged("%w", err)
	}
	defer r.Close()
	h, err = f.readHead(r)
	if err == nil {
		err = f.readBase(r, base)
	}
	if err == nil {
		err = f.readBatches(ctx, r, fn)
	}
	return h, r.MAC(), err
}

func (f *file) readBatches(ctx context.Context, r *packed.Reader, fn func(prev, next uint64,
	batch []byte) error) error {
	at := f.first - 1
	var batch []byte
	for ctx.Err() == nil {
		n, err := binary.ReadUvarint(r)
		if err != nil {
			return f.damaged("after record %d: %w", at, err)
		}
		if n == 0 {
			return f.checkEnd(r, at)
		}
		prev, err1 := binary.ReadUvarint(r)
		next, err2 := binary.ReadUvarint(r)
		if err := errors.Join(err1, err2); err != nil {
			return f.damaged("after record %d: %w", at, err)
		}
		if n > maxBatch || prev != at || next <= prev {
			return f.damaged("a batch (%d, %d] of %d bytes comes after record %d", prev, next, n,
				at)
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
			return f.damaged("in its base: %w", err)
		}
		switch {
		case n > maxPiece:
			return f.damaged("it begins with a piece of %d bytes", n)
		case size+n > packed.MaxImage:
			return f.damaged("it begins with a state of more than %d bytes",
				uint64(packed.MaxImage))
		case n > 0:
			if piece, err = readAll(r, piece[:0], int(n)); err != nil {
				return f.damaged("in its base: %w", err)
			}
			base(piece)
			size += n
			continue
		case f.based && pieces == 0:
			return f.damaged(
				"it does not begin with a state, and the parts before record %d are missing",
				f.first)
		case !f.based && pieces > 0:
			return f.damaged("it begins with a state, as only the first part of an archive may")
		}
		return nil
	}
}

// readAll reads n bytes in steps, so a damaged length does not allocate memory for missing bytes.
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

// checkEnd checks the bytes after the last batch.
func (f *file) checkEnd(r *packed.Reader, at uint64) error {
	last, err := binary.ReadUvarint(r)
	if err == nil {
		err = r.Done()
	}
	if err != nil {
		return f.damaged("%w", err)
	}
	if at != f.last || last != at {
		return f.damaged("it ends at record %d, and its trailer says at %d", at, last)
	}
	return nil
}
