package pebble

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/cockroachdb/pebble/v2"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
	"exchange/persistence/internal/head"
)

// meta is the head of an engine: one value, rewritten in each batch that changes it.
type meta struct {
	Epoch uint32            `json:"epoch"`
	Token persistence.Token `json:"token"`
	Owner string            `json:"owner"`
	// Begin is the sequence after which the journal begins, Trimmed the one up to which it was
	// trimmed.
	Begin   uint64 `json:"begin"`
	Trimmed uint64 `json:"trimmed"`
	// Snapshots are codec.Snapshot texts: the newest first, "" if there is none.
	Snapshots [2]string `json:"snapshots"`
	// Flushed is the watermark up to which all rows are in Pebble's tables. Links begin there.
	Flushed uint64 `json:"flushed"`
	// FlushCount is how many times all was flushed after a publication.
	FlushCount uint64 `json:"flushes"`
}

func (s *Store) readMeta(r pebble.Reader) (m meta, err error) {
	b, err := s.get(r, s.key(kindMeta))
	if err != nil || b == nil {
		return m, err
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("%s: %w: its head cannot be read: %w", s, persistence.ErrCorrupt, err)
	}
	return m, nil
}

// commit writes b together with m; then m is the store's head. The caller holds changes.
func (s *Store) commit(b *pebble.Batch, m meta, o *pebble.WriteOptions) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := b.Set(s.key(kindMeta), text, nil); err != nil {
		return err
	}
	if err := s.write("write the head", b, o); err != nil {
		return err
	}
	s.meta.Store(&m)
	return nil
}

// Acquire makes the caller the owner.
func (s *Store) Acquire(_ context.Context, c persistence.Claim) (persistence.Token, uint64, error) {
	if err := s.begin(); err != nil {
		return "", 0, err
	}
	defer s.end()
	id, err := codec.CheckClaim(c)
	if err != nil {
		return "", 0, err
	}
	// With all locks held, no write of an earlier owner is in progress when this returns.
	s.projections.Lock()
	defer s.projections.Unlock()
	s.journal.Lock()
	defer s.journal.Unlock()
	s.changes.Lock()
	defer s.changes.Unlock()
	m := *s.meta.Load()
	if now := s.beat(&m); c.After != nil &&
		(c.After.Token != now.Token || !c.Insist && c.After.Count != now.Count) {
		return "", 0, codec.Held(m.Owner)
	}
	m.Epoch++
	m.Token = persistence.Token(fmt.Sprintf("%d:%s", m.Epoch, id))
	m.Owner = c.Owner
	b := s.db.NewBatch()
	defer b.Close()
	if err := s.commit(b, m, pebble.Sync); err != nil {
		return "", 0, err
	}
	seq, _ := s.log.End()
	return m.Token, seq, nil
}

// beat returns the engine's beat. A check leaves no beat, because this process holds the folder
// alone. So the journal cannot have lost a tail since an earlier read, either.
func (s *Store) beat(m *meta) persistence.Beat {
	seq, digest := s.log.End()
	return persistence.Beat{Token: m.Token, Owner: m.Owner,
		End: persistence.Mark{Seq: seq, Digest: digest}}
}

// Beat returns the engine's newest beat.
func (s *Store) Beat(context.Context) (persistence.Beat, error) {
	if err := s.begin(); err != nil {
		return persistence.Beat{}, err
	}
	defer s.end()
	return s.beat(s.meta.Load()), nil
}

// Release gives the engine back. A crash may undo it, and then the next owner acquires all the
// same.
func (s *Store) Release(_ context.Context, tok persistence.Token) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	s.projections.Lock()
	defer s.projections.Unlock()
	s.journal.Lock()
	defer s.journal.Unlock()
	s.changes.Lock()
	defer s.changes.Unlock()
	if err := s.owned(tok); err != nil {
		return err
	}
	m := *s.meta.Load()
	m.Token = persistence.Released(persistence.NewID())
	b := s.db.NewBatch()
	defer b.Close()
	return s.commit(b, m, pebble.NoSync)
}

// Check returns nil while tok owns the engine.
func (s *Store) Check(_ context.Context, tok persistence.Token) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	return s.owned(tok)
}

// owned returns ErrFenced unless tok is the owner's. It stays so while the caller holds any of
// Acquire's locks.
func (s *Store) owned(tok persistence.Token) error {
	if m := s.meta.Load(); tok == "" || m.Token != tok {
		return codec.Fenced(m.Owner)
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
	s.changes.Lock()
	defer s.changes.Unlock()
	if err := s.owned(tok); err != nil {
		return err
	}
	watermark, err := s.watermark(s.db)
	if err != nil {
		return err
	}
	// A journal that ends somewhere without a digest has begun there and has no records.
	m := *s.meta.Load()
	last, digest := s.log.End()
	switch {
	case watermark != 0:
		return codec.NotEmpty("projections up to sequence " + strconv.FormatUint(watermark, 10))
	case m.Snapshots != [2]string{}:
		return codec.NotEmpty("a snapshot")
	case last == seq && digest == 0:
		return s.head.Reset(seq) // an earlier try landed
	case last != 0:
		return codec.NotEmpty("a journal up to sequence " + strconv.FormatUint(last, 10))
	}
	m.Begin = seq
	b := s.db.NewBatch()
	defer b.Close()
	if err := s.commit(b, m, pebble.Sync); err != nil {
		return err
	}
	s.log.Begin(seq)
	return s.head.Reset(seq)
}

// Append makes a batch durable.
func (s *Store) Append(_ context.Context, tok persistence.Token, prev, next uint64,
	batch []byte) error {
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
	switch seq, last := s.log.End(); {
	case seq == next && last == digest:
		// an earlier try with the same bytes landed
		return s.head.Advance(head.Mark{Seq: next, Digest: digest})
	case seq != prev:
		return codec.Gap(seq, prev)
	}
	if err := s.log.Append(prev, next, digest, batch); err != nil {
		return s.fault("write the journal", err)
	}
	// an error leaves the outcome unknown: the next try finds the append
	return s.head.Advance(head.Mark{Seq: next, Digest: digest})
}

// Read calls fn for each batch that ends above after.
func (s *Store) Read(ctx context.Context, after uint64, fn func(prev, next uint64,
	batch []byte) error) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	var stopped error
	err := s.log.Read(ctx, after, s.meta.Load().Trimmed,
		func(prev, next uint64, batch []byte) error {
			stopped = fn(prev, next, batch)
			return stopped
		})
	if err == nil || stopped != nil {
		return stopped
	}
	return fmt.Errorf("%s: %w", s, err)
}

// Trim forgets batches that end at or below upTo.
func (s *Store) Trim(_ context.Context, tok persistence.Token, upTo uint64) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	if err := s.trim(tok, upTo); err != nil {
		return err
	}
	return s.fault("trim the journal", s.log.Trim(upTo))
}

// trim records the end of the trimmed part.
func (s *Store) trim(tok persistence.Token, upTo uint64) error {
	s.changes.Lock() // and not journal: no append waits for Pebble
	defer s.changes.Unlock()
	if err := s.owned(tok); err != nil {
		return err
	}
	m := *s.meta.Load()
	end, _ := s.log.End()
	if upTo = min(upTo, end); upTo <= m.Trimmed {
		return nil
	}
	m.Trimmed = upTo
	b := s.db.NewBatch()
	defer b.Close()
	return s.commit(b, m, pebble.Sync) // or a start would miss the removed files
}
