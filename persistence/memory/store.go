package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
	"exchange/persistence/internal/head"
)

// A Store is one user of a disk.
type Store struct {
	// BeforeSync is called between a write of Append and its sync, outside of any lock. There a
	// simulation may delay the caller, or let the disk crash and return an error: the answer is
	// then lost.
	BeforeSync func() error
	// Server: every write is synced before it is answered, projections, too.
	Server bool
	// BeforeHead is called in the same way between that sync and the write of Head.
	BeforeHead func() error
	// Head is the file of the acknowledged end; nil: none is kept.
	Head *Head
	// Fill opens a store to be filled from a backup. Head's mark does not count then, and Begin
	// rewrites it.
	Fill bool

	disk   *Disk
	keep   persistence.Retention
	closed atomic.Bool
}

var _ persistence.Store = (*Store)(nil)

// Open opens a disk.
func Open(d *Disk, keep persistence.Retention) *Store { return &Store{disk: d, keep: keep} }

// String returns the store's name.
func (s *Store) String() string { return "memory:" }

// Engine returns the usual one.
func (s *Store) Engine() string { return "main" }

// Exclusive returns true for an embedded store, as for a real one, whose folder is locked.
func (s *Store) Exclusive() bool { return !s.Server }

// Close ends the use of the disk.
func (s *Store) Close() error {
	s.closed.Store(true)
	return nil
}

var errClosed = errors.New("memory: the store is closed")

// lock begins a use of the disk, which unlock ends.
func (s *Store) lock() error {
	if s.closed.Load() {
		return errClosed
	}
	s.disk.mu.Lock()
	return nil
}

// syncServer ends a write that an embedded store does not sync.
func (s *Store) syncServer() {
	if s.Server {
		s.disk.sync(&s.disk.journal, &s.disk.rest)
	}
}

func (s *Store) unlock() { s.disk.mu.Unlock() }

// owned returns ErrFenced unless tok is the owner's.
func (d *data) owned(tok persistence.Token) error {
	if tok == "" || tok != d.token {
		return codec.Fenced(d.owner)
	}
	return nil
}

// Acquire makes the caller the owner. An embedded store syncs its journal when it is opened, which
// an owner's process does.
func (s *Store) Acquire(_ context.Context, c persistence.Claim) (persistence.Token, uint64, error) {
	id, err := codec.CheckClaim(c)
	if err != nil {
		return "", 0, err
	}
	if err := s.lock(); err != nil {
		return "", 0, err
	}
	defer s.unlock()
	if now := s.disk.beat(); c.After != nil {
		switch {
		case c.After.Token != now.Token, !c.Insist && c.After.Count != now.Count:
			return "", 0, codec.Held(s.disk.live.owner)
		case !c.Insist && now.Lacks(c.After.End, c.After.Accepted):
			return "", 0, persistence.Shortened(c.After.End, now.End)
		}
	}
	if s.Head != nil && !s.Fill {
		if err := s.Head.fits(s.disk.live.mark()); err != nil {
			return "", 0, err
		}
	}
	epoch := s.disk.live.epoch + 1
	tok := persistence.Token(strconv.FormatUint(uint64(epoch), 10) + ":" + id)
	now := time.Now()
	s.disk.write(&s.disk.rest, func(d *data) {
		d.epoch, d.token, d.owner, d.beats, d.heartbeat = epoch, tok, c.Owner, 0, c.Heartbeat
		if c.Insist {
			d.accepted = persistence.NextAccepted(d.accepted, now)
		}
	})
	s.disk.sync(&s.disk.journal, &s.disk.rest)
	if !s.HeadMissing() && !s.Fill {
		s.Head.advance(s.disk.live.mark()) // reads are answered from there
	}
	return tok, s.disk.live.seq, nil
}

// beat returns the newest. A server shows an append when it is durable, as Redis does.
func (k *Disk) beat() persistence.Beat {
	d := k.live
	b := persistence.Beat{Token: d.token, Owner: d.owner, Heartbeat: d.heartbeat,
		Accepted: d.accepted, End: persistence.Mark{Seq: k.durable.seq, Digest: k.durable.digest}}
	if d.beats > 0 {
		b.Count = strconv.FormatUint(d.beats, 10)
	}
	return b
}

// Beat returns the engine's newest beat.
func (s *Store) Beat(context.Context) (persistence.Beat, error) {
	if err := s.lock(); err != nil {
		return persistence.Beat{}, err
	}
	defer s.unlock()
	return s.disk.beat(), nil
}

// Check returns nil while tok owns the engine. On a server it leaves a beat.
func (s *Store) Check(_ context.Context, tok persistence.Token) error {
	if err := s.lock(); err != nil {
		return err
	}
	defer s.unlock()
	if err := s.disk.live.owned(tok); err != nil || !s.Server {
		return err
	}
	s.disk.write(&s.disk.rest, func(d *data) { d.beats++ })
	s.syncServer()
	return nil
}

// Release gives the engine back.
func (s *Store) Release(_ context.Context, tok persistence.Token) error {
	if err := s.lock(); err != nil {
		return err
	}
	defer s.unlock()
	if err := s.disk.live.owned(tok); err != nil {
		return err
	}
	none := persistence.Released(persistence.NewID())
	s.disk.write(&s.disk.rest, func(d *data) { d.token = none })
	s.syncServer()
	return nil
}

// Begin makes the journal of an empty store end at seq.
func (s *Store) Begin(_ context.Context, tok persistence.Token, seq uint64) error {
	if err := codec.CheckBegin(seq); err != nil {
		return err
	}
	if err := s.lock(); err != nil {
		return err
	}
	defer s.unlock()
	d := s.disk.live
	if err := d.owned(tok); err != nil {
		return err
	}
	switch {
	case d.watermark != 0:
		return codec.NotEmpty("projections")
	case d.snapshots[0].there:
		return codec.NotEmpty("a snapshot")
	case d.seq != seq && d.seq != 0, d.digest != 0:
		return codec.NotEmpty("a journal")
	}
	now := time.Now()
	s.disk.write(&s.disk.journal, func(d *data) { d.seq = seq })
	s.disk.write(&s.disk.rest, func(d *data) {
		d.accepted = persistence.NextAccepted(d.accepted, now)
	})
	s.disk.sync(&s.disk.journal, &s.disk.rest)
	s.Head.reset(seq)
	return nil
}

// Append makes a batch durable.
func (s *Store) Append(_ context.Context, tok persistence.Token, prev, next uint64,
	batch []byte) error {
	if err := codec.CheckBatch(prev, next, batch); err != nil {
		return err
	}
	if err := s.lock(); err != nil {
		return err
	}
	mark := head.Mark{Seq: next, Digest: codec.Digest(batch)}
	err := s.append(tok, stored{prev, next, mark.Digest, batch})
	s.unlock()
	if err != nil {
		return err
	}
	if err := s.after(s.BeforeSync); err != nil {
		return err
	}
	s.disk.sync(&s.disk.journal)
	s.syncServer()
	s.unlock()
	if err := s.after(s.BeforeHead); err != nil {
		return err
	}
	defer s.unlock()
	s.Head.advance(mark)
	return nil
}

// after begins a use of the disk, after the events that a simulation adds before it.
func (s *Store) after(pause func() error) error {
	if pause != nil {
		if err := pause(); err != nil {
			return err
		}
	}
	return s.lock()
}

func (s *Store) append(tok persistence.Token, b stored) error {
	d := s.disk.live
	if err := d.owned(tok); err != nil {
		return err
	}
	if d.seq == b.next && d.digest == b.digest {
		return nil // an earlier try with the same bytes landed
	}
	if d.seq != b.prev {
		return codec.Gap(d.seq, b.prev)
	}
	b.batch = slices.Clone(b.batch)
	s.disk.write(&s.disk.journal, func(d *data) {
		d.batches = append(d.batches, b)
		d.seq, d.digest = b.next, b.digest
	})
	return nil
}

// Read calls fn for each batch that ends above after.
func (s *Store) Read(ctx context.Context, after uint64, fn func(prev, next uint64,
	batch []byte) error) error {
	if err := s.lock(); err != nil {
		return err
	}
	chain := codec.Chain{After: after, End: s.disk.live.seq}
	batches := slices.Clone(s.disk.live.batches)
	s.unlock()
	if empty, err := chain.Empty(); empty || err != nil {
		return err
	}
	for _, b := range batches {
		if b.next <= after {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := chain.Next(b.prev, b.next, b.digest, b.batch); err != nil {
			return err
		}
		if err := fn(b.prev, b.next, b.batch); err != nil {
			return err
		}
	}
	return chain.Done()
}

// Trim forgets batches that end at or below upTo. The trim is durable with the next sync of the
// journal, even if projections are lost.
func (s *Store) Trim(_ context.Context, tok persistence.Token, upTo uint64) error {
	if err := s.lock(); err != nil {
		return err
	}
	defer s.unlock()
	if err := s.disk.live.owned(tok); err != nil {
		return err
	}
	s.disk.write(&s.disk.journal, func(d *data) {
		d.batches = slices.DeleteFunc(d.batches, func(b stored) bool { return b.next <= upTo })
	})
	s.syncServer()
	return nil
}

// mayPublish refuses a snapshot that must not become visible.
func (d *data) mayPublish(tok persistence.Token, seq uint64) error {
	if err := d.owned(tok); err != nil {
		return err
	}
	if d.watermark < seq {
		return codec.BelowWatermark(seq, d.watermark)
	}
	if newest := &d.snapshots[0]; newest.there && newest.name.Seq > seq {
		return codec.OlderSnapshot(seq, newest.name.Seq)
	}
	return nil
}

// SaveSnapshot stores and then publishes an image. It syncs all projections before it, but not the
// journal.
func (s *Store) SaveSnapshot(ctx context.Context, tok persistence.Token, seq uint64,
	r io.Reader) error {
	may := func() error {
		if err := s.lock(); err != nil {
			return err
		}
		defer s.unlock()
		return s.disk.live.mayPublish(tok, seq)
	}
	if err := may(); err != nil {
		return err
	}
	img := image{name: codec.NewSnapshot(seq, tok.Epoch()), there: true}
	err := img.name.Upload(r, func(_ uint32, chunk []byte) error {
		img.chunks = append(img.chunks, slices.Clone(chunk))
		return persistence.Pace(ctx)
	})
	if err != nil {
		return err
	}
	if err := may(); err != nil { // again: time has passed
		return err
	}
	if err := s.lock(); err != nil {
		return err
	}
	defer s.unlock()
	s.disk.write(&s.disk.rest, func(d *data) {
		// A second image at one sequence replaces the first: the caller saves it again because the
		// first is bad.
		if newest := d.snapshots[0]; newest.there && newest.name.Seq != seq {
			d.snapshots[1] = newest
		}
		d.snapshots[0] = img
	})
	s.disk.sync(&s.disk.rest)
	s.syncServer()
	return nil
}

// LoadSnapshot opens an image.
func (s *Store) LoadSnapshot(ctx context.Context, back int) (uint64, io.ReadCloser, error) {
	if err := s.lock(); err != nil {
		return 0, nil, err
	}
	defer s.unlock()
	if back < 0 || back > 1 || !s.disk.live.snapshots[back].there {
		return 0, nil, fmt.Errorf("memory: %w", persistence.ErrNoSnapshot)
	}
	name := s.disk.live.snapshots[back].name
	get := func(_ context.Context, i uint32) ([]byte, error) {
		if err := s.lock(); err != nil {
			return nil, err
		}
		defer s.unlock()
		for _, img := range s.disk.live.snapshots {
			if img.there && img.name == name {
				return slices.Clone(img.chunks[i]), nil
			}
		}
		return nil, codec.ErrNoChunk
	}
	// chunks are removed only with their image
	kept := func(context.Context) (bool, error) { return false, nil }
	return name.Seq, name.Download(ctx, get, kept), nil
}

// Apply writes w and moves the watermark. It is durable with the next snapshot or owner, and not
// with an append.
func (s *Store) Apply(_ context.Context, tok persistence.Token, from, to uint64,
	w *persistence.Writes) error {
	if w == nil {
		w = &persistence.Writes{}
	}
	if err := codec.CheckWrites(from, to, w); err != nil {
		return err
	}
	if err := s.lock(); err != nil {
		return err
	}
	defer s.unlock()
	d := s.disk.live
	if err := d.owned(tok); err != nil {
		return err
	}
	if from != to && d.watermark == to {
		return nil // an earlier try landed
	}
	if d.watermark != from {
		return codec.WatermarkGap(d.watermark, from, to)
	}
	rows := copyOf(w)
	s.disk.write(&s.disk.rest, func(d *data) { d.apply(to, rows) })
	s.syncServer()
	return nil
}

// Watermark returns the sequence the projections are exact for.
func (s *Store) Watermark(context.Context) (uint64, error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.unlock()
	return s.disk.live.watermark, nil
}
