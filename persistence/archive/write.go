package archive

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
	"exchange/persistence/internal/durable"
	"exchange/persistence/internal/packed"
)

// A writer writes parts.
type writer struct {
	fs   vfs.FS
	dir  string
	part int

	by      persistence.Authority
	engine  string
	history persistence.HistoryID
	before  []byte // HMAC of the part before; empty: there is none

	base io.ReadCloser // of the first part; nil: none, or written

	out   vfs.File // nil between two parts
	name  string   // of out, until it is whole
	into  *packed.Writer
	first uint64 // record of the part
	prev  uint64 // the archive's last batch is (prev, last]; prev is 0 if there is none yet
	last  uint64
	size  int
	head  []byte
}

func (w *writer) add(prev, next uint64, batch []byte) error {
	if prev != w.last || len(batch) == 0 {
		return fmt.Errorf("%w: a batch (%d, %d] of %d bytes comes at %d", persistence.ErrCorrupt,
			prev, next, len(batch), w.last)
	}
	if w.out != nil && w.size >= w.part {
		if err := w.finish(); err != nil {
			return err
		}
	}
	if w.out == nil {
		if err := w.begin(prev + 1); err != nil {
			return err
		}
	}
	w.head = binary.AppendUvarint(w.head[:0], uint64(len(batch)))
	w.head = binary.AppendUvarint(binary.AppendUvarint(w.head, prev), next)
	w.prev, w.last = prev, next
	return w.write(w.head, batch)
}

func (w *writer) write(list ...[]byte) error {
	for _, b := range list {
		if _, err := w.into.Write(b); err != nil {
			return fmt.Errorf("writing the archive: %w", err)
		}
		w.size += len(b)
	}
	return nil
}

func (w *writer) begin(first uint64) (err error) {
	w.name = w.fs.PathJoin(w.dir, unfinished+partName(first, first)) // one process writes here
	if w.out, err = create(w.fs, w.name); err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	if w.into, err = packed.NewWriter(cloningFile{w.out}, magic, w.by); err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	head, err := json.Marshal(head{Engine: w.engine, History: hex.EncodeToString(w.history[:]),
		First: first, Before: hex.EncodeToString(w.before)})
	if err != nil {
		return err
	}
	if err := w.write(binary.AppendUvarint(nil, uint64(len(head))), head); err != nil {
		return err
	}
	w.first, w.size = first, 0
	if w.base != nil {
		if err := w.writeBase(); err != nil {
			return err
		}
	}
	return w.write([]byte{0})
}

// writeBase copies the snapshot's image into the first part.
func (w *writer) writeBase() error {
	piece := make([]byte, maxPiece)
	for {
		n, err := io.ReadFull(w.base, piece)
		if n > 0 {
			if err := w.write(binary.AppendUvarint(nil, uint64(n)), piece[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			err = w.base.Close()
			w.base = nil
			return err
		case err != nil:
			return fmt.Errorf("reading a snapshot for the archive to begin with: %w", err)
		}
	}
}

// finish makes the part durable and gives it its name.
func (w *writer) finish() error {
	if w.out == nil {
		return nil
	}
	err := w.write(binary.AppendUvarint([]byte{0}, w.last))
	if err == nil {
		err = w.into.Close()
	}
	if err == nil {
		err = w.out.Sync()
	}
	if err = errors.Join(err, w.out.Close()); err == nil {
		err = w.fs.Rename(w.name, w.fs.PathJoin(w.dir, partName(w.first, w.last)))
	}
	if err == nil {
		err = durable.SyncFolder(w.fs, w.dir)
	}
	if err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	w.out, w.before = nil, w.into.MAC()
	return nil
}

// discard removes an unfinished part.
func (w *writer) discard() {
	if w.base != nil {
		w.base.Close() //nolint:errcheck // it was only read
	}
	if w.out != nil {
		w.out.Close()       //nolint:errcheck // it is thrown away
		w.fs.Remove(w.name) //nolint:errcheck // the next Save does
	}
}
