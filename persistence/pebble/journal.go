package pebble

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/cockroachdb/pebble/v2"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// meta is the head of an engine. It is one value, rewritten in the batch that changes it.
type meta struct {
	Version int               `json:"version"`
	Epoch   uint32            `json:"epoch"`
	Token   persistence.Token `json:"token"`
	Owner   string            `json:"owner"`
	Seq     uint64            `json:"seq"`
	Digest  uint64            `json:"digest,string"`
	// Snapshots are codec.Snapshot texts: the newest first, "" if there is none.
	Snapshots [2]string `json:"snapshots"`
}

const metaVersion = 1

func (s *Store) readMeta(r pebble.Reader) (meta, error) {
	m := meta{Version: metaVersion}
	b, err := s.get(r, s.key(kindMeta))
	if err != nil || b == nil {
		return m, err
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("%s: %w: its head cannot be read: %w", s, persistence.ErrCorrupt, err)
	}
	if m.Version != metaVersion {
		return m, fmt.Errorf("%s: %w: it is of version %d and this program reads version %d; run the program that wrote it", s, persistence.ErrCorrupt, m.Version, metaVersion)
	}
	return m, nil
}

// commit writes b together with m, durably; then m is the store's head. The caller holds journal.
func (s *Store) commit(b *pebble.Batch, m meta) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := b.Set(s.key(kindMeta), text, nil); err != nil {
		return err
	}
	if err := b.Commit(pebble.Sync); err != nil {
		return s.fault("write", err)
	}
	s.meta = m
	return nil
}

// Acquire makes the caller the owner.
func (s *Store) Acquire(_ context.Context, owner string) (persistence.Token, uint64, error) {
	if err := s.begin(); err != nil {
		return "", 0, err
	}
	defer s.end()
	if err := codec.CheckOwner(owner); err != nil {
		return "", 0, err
	}
	// With both locks held, nothing of an earlier owner is half done when this returns.
	s.projections.Lock()
	defer s.projections.Unlock()
	s.journal.Lock()
	defer s.journal.Unlock()
	m := s.meta
	m.Epoch++
	m.Token = persistence.Token(fmt.Sprintf("%d:%s", m.Epoch, codec.Unique()))
	m.Owner = owner
	b := s.db.NewBatch()
	defer b.Close()
	if err := s.commit(b, m); err != nil {
		return "", 0, err
	}
	return m.Token, m.Seq, nil
}

// Check is nil while tok owns the engine.
func (s *Store) Check(_ context.Context, tok persistence.Token) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	s.journal.Lock()
	defer s.journal.Unlock()
	return s.owned(tok)
}

// owned is ErrFenced unless tok is the owner's. The caller holds journal.
func (s *Store) owned(tok persistence.Token) error {
	if tok == "" || s.meta.Token != tok {
		return codec.Fenced(s.meta.Owner)
	}
	return nil
}

// Begin makes the journal of an empty store end at seq.
func (s *Store) Begin(_ context.Context, tok persistence.Token, seq uint64) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	if err := codec.CheckBegin(seq); err != nil {
		return err
	}
	s.projections.Lock() // for the watermark
	defer s.projections.Unlock()
	s.journal.Lock()
	defer s.journal.Unlock()
	if err := s.owned(tok); err != nil {
		return err
	}
	watermark, err := s.watermark(s.db)
	if err != nil {
		return err
	}
	// A journal that ends somewhere without a digest has begun there and has no records.
	m := s.meta
	switch {
	case watermark != 0:
		return codec.NotEmpty("projections up to sequence " + strconv.FormatUint(watermark, 10))
	case m.Snapshots != [2]string{}:
		return codec.NotEmpty("a snapshot")
	case m.Seq == seq && m.Digest == 0:
		return s.head.set(seq) // an earlier try landed
	case m.Seq != 0:
		return codec.NotEmpty("a journal up to sequence " + strconv.FormatUint(m.Seq, 10))
	}
	m.Seq = seq
	b := s.db.NewBatch()
	defer b.Close()
	if err := s.commit(b, m); err != nil {
		return err
	}
	return s.head.set(seq)
}

// Append makes a batch durable.
func (s *Store) Append(_ context.Context, tok persistence.Token, prev, next uint64, batch []byte) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	if err := codec.CheckBatch(prev, next, batch); err != nil {
		return err
	}
	digest := codec.Digest(batch)
	s.journal.Lock()
	defer s.journal.Unlock()
	if err := s.owned(tok); err != nil {
		return err
	}
	if s.meta.Seq == next && s.meta.Digest == digest {
		return s.head.set(next) // an earlier try with the same bytes landed
	}
	if s.meta.Seq != prev {
		return codec.Gap(s.meta.Seq, prev)
	}
	b := s.db.NewBatchWithSize(len(batch) + 512)
	defer b.Close()
	key := u64(s.key(kindJournal), next)
	op := b.SetDeferred(len(key), journalHead+len(batch))
	copy(op.Key, key)
	binary.BigEndian.PutUint64(op.Value, prev)
	binary.BigEndian.PutUint64(op.Value[8:], digest)
	copy(op.Value[journalHead:], batch)
	if err := op.Finish(); err != nil {
		return err
	}
	m := s.meta
	m.Seq, m.Digest = next, digest
	if err := s.commit(b, m); err != nil {
		return err
	}
	return s.head.set(next) // an error leaves the outcome unknown: the next try finds the append there
}

// journalHead is the previous sequence and the digest, in front of a batch.
const journalHead = 16

// Read calls fn for each batch that ends above after.
func (s *Store) Read(ctx context.Context, after uint64, fn func(prev, next uint64, batch []byte) error) (err error) {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	snap := s.db.NewSnapshot()
	defer func() { err = errors.Join(err, snap.Close()) }()
	m, err := s.readMeta(snap)
	if err != nil {
		return err
	}
	chain := codec.Chain{After: after, End: m.Seq}
	if empty, err := chain.Empty(); empty || err != nil {
		return err
	}
	it, err := snap.NewIter(&pebble.IterOptions{
		LowerBound: u64(s.key(kindJournal), after+1),
		UpperBound: u64(s.key(kindJournal), m.Seq+1),
	})
	if err != nil {
		return s.fault("read the journal", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for it.First(); it.Valid(); it.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		v, err := it.ValueAndErr()
		if err != nil {
			return s.fault("read the journal", err)
		}
		next := idOf(it.Key())
		if len(v) < journalHead {
			return fmt.Errorf("%s: %w: the batch that ends at %d has %d bytes", s, persistence.ErrCorrupt, next, len(v))
		}
		prev, digest, batch := binary.BigEndian.Uint64(v), binary.BigEndian.Uint64(v[8:]), v[journalHead:]
		if err := chain.Next(prev, next, digest, batch); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
		if err := fn(prev, next, batch); err != nil {
			return err
		}
	}
	if err := it.Error(); err != nil {
		return s.fault("read the journal", err)
	}
	if err := chain.Done(); err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	return nil
}

// Trim forgets batches that end at or below upTo.
func (s *Store) Trim(_ context.Context, tok persistence.Token, upTo uint64) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	s.journal.Lock()
	defer s.journal.Unlock()
	if err := s.owned(tok); err != nil {
		return err
	}
	upTo = min(upTo, s.meta.Seq)
	// Not synced: a trim that a crash forgets is made again with the next snapshot.
	err := s.db.DeleteRange(u64(s.key(kindJournal), 0), u64(s.key(kindJournal), upTo+1), pebble.NoSync)
	return s.fault("trim the journal", err)
}
