package pebble

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
	"exchange/persistence/internal/head"
	"exchange/persistence/internal/wal"
)

// A folder of version 1 has its journal among Pebble's keys, and its end in the head.
const (
	kindJournal  = 'j' // last sequence of the batch: previous sequence, digest, batch
	version1Head = 16  // the previous sequence and the digest, in front of a batch
)

// upgrade moves the journal of a folder of version 1 into a log of its own. Until the last step, which is one commit, the
// folder is of version 1, and what a crash left of the log is thrown away.
func (s *Store) upgrade(folder string, acknowledged head.Mark) (err error) {
	var old struct {
		Seq uint64 `json:"seq"`
	}
	text, err := s.get(s.db, s.key(kindMeta))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &old); err != nil {
		return err
	}
	if err := s.atLeast(head.Mark{Seq: old.Seq}, acknowledged); err != nil {
		return err
	}
	lower, upper := s.key(kindJournal), after(s.key(kindJournal))
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return s.fault("read the journal", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if err := s.fs.RemoveAll(folder); err != nil {
		return err
	}
	m := *s.meta.Load()
	m.Version, m.Begin = metaVersion, old.Seq
	if it.First() && len(it.Value()) >= version1Head {
		m.Begin = binary.BigEndian.Uint64(it.Value())
	}
	log, err := s.openLog(folder, m.Begin)
	if err != nil {
		return err
	}
	moved := false
	defer func() {
		if err = errors.Join(err, log.Close()); err != nil && !moved {
			err = errors.Join(err, s.fs.RemoveAll(folder)) // the disk may be full
		}
	}()
	batches, err := s.copyJournal(log, it, m.Begin, old.Seq)
	if err != nil {
		return err
	}
	b := s.db.NewBatch()
	defer b.Close()
	if err := b.DeleteRange(lower, upper, nil); err != nil {
		return err
	}
	moved = true // from here on the log may be the only copy, also if the commit fails in a way that nobody can tell
	if err := s.commit(b, m, pebble.Sync); err != nil {
		return err
	}
	s.logger.Info("the journal is in files of its own now; earlier versions cannot read this folder any more", "folder", s.dir, "batches", batches)
	return nil
}

// copyJournal writes the batches of a journal among the keys, from where it is on, into a log, and syncs it. The journal must go from
// begin to end without a gap.
func (s *Store) copyJournal(log *wal.Log, it *pebble.Iterator, begin, end uint64) (batches int, err error) {
	chain := codec.Chain{After: begin, End: end}
	for ; it.Valid(); it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return 0, s.fault("read the journal", err)
		}
		next := idOf(it.Key())
		if len(v) < version1Head {
			return 0, fmt.Errorf("%s: %w: the batch that ends at %d has %d bytes", s, persistence.ErrCorrupt, next, len(v))
		}
		prev, digest, batch := binary.BigEndian.Uint64(v), binary.BigEndian.Uint64(v[8:]), v[version1Head:]
		if err := chain.Next(prev, next, digest, batch); err != nil {
			return 0, fmt.Errorf("%s: %w", s, err)
		}
		if err := log.Write(prev, next, digest, batch); err != nil {
			return 0, err
		}
		batches++
	}
	if err := it.Error(); err != nil {
		return 0, s.fault("read the journal", err)
	}
	if batches > 0 { // else it was trimmed to its end: begin is end
		if err := chain.Done(); err != nil {
			return 0, fmt.Errorf("%s: %w", s, err)
		}
	}
	return batches, log.Sync()
}
