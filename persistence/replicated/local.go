package replicated

import (
	"context"
	"errors"
	"io"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
	"exchange/persistence/internal/machine"
)

// image returns the sequence of a local image; nil: none exists.
func (s *store) image(ctx context.Context, back int) (*uint64, error) {
	seq, r, err := s.local.LoadSnapshot(ctx, back)
	if errors.Is(err, persistence.ErrNoSnapshot) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return &seq, r.Close()
}

// neededSeq returns the sequence above which the local store needs the journal: that of its older
// image.
func (s *store) neededSeq(ctx context.Context) (uint64, error) {
	seq, err := s.image(ctx, 1)
	if seq == nil || err != nil {
		return 0, err
	}
	return *seq, nil
}

// SaveSnapshot stores and then publishes an image on this node. An owner's image is refused if
// another owner follows before its last byte.
func (s *store) SaveSnapshot(ctx context.Context, tok persistence.Token, seq uint64,
	r io.Reader) error {
	if tok == s.nodeToken {
		return s.local.SaveSnapshot(ctx, s.localToken, seq, r)
	}
	if err := s.checkToken(tok); err != nil {
		return err
	}
	return s.local.SaveSnapshot(ctx, s.localToken, seq, &fencedReader{s, tok, r})
}

// A fencedReader fails with ErrFenced once its token no longer owns the engine.
type fencedReader struct {
	s   *store
	tok persistence.Token
	r   io.Reader
}

func (f *fencedReader) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if fenced := f.s.checkToken(f.tok); fenced != nil {
		return 0, fenced
	}
	return n, err
}

// LoadSnapshot opens a local image.
func (s *store) LoadSnapshot(ctx context.Context, back int) (uint64, io.ReadCloser, error) {
	return s.local.LoadSnapshot(ctx, back)
}

// Apply writes rows to the local store. Nonces of reads are proposed as an entry first, because any
// later leader must refuse them, too. An owner's write that does not move the watermark holds only
// such nonces; in any other write they are marked.
func (s *store) Apply(ctx context.Context, tok persistence.Token, from, to uint64,
	w *persistence.Writes) error {
	if w == nil {
		w = &persistence.Writes{}
	}
	if err := codec.CheckWrites(from, to, w); err != nil {
		return err
	}
	if tok == s.nodeToken {
		if err := s.ownReads(ctx, w.Nonces); err != nil {
			return err
		}
		return s.local.Apply(ctx, s.localToken, from, to, w)
	}
	s.writes.RLock()
	defer s.writes.RUnlock()
	if err := s.checkToken(tok); err != nil {
		return err
	}
	if from != to {
		if err := s.proposeNonces(ctx, tok, readNonces(w.Nonces)); err != nil {
			return err
		}
		return s.local.Apply(ctx, s.localToken, from, to, w)
	}
	if now, err := s.local.Watermark(ctx); err != nil {
		return err
	} else if now != from {
		return codec.WatermarkGap(now, from, to)
	}
	return s.proposeNonces(ctx, tok, w.Nonces)
}

// readNonces returns the nonces marked as those of reads.
func readNonces(nonces []persistence.Nonce) (reads []persistence.Nonce) {
	for _, n := range nonces {
		if n.Read {
			reads = append(reads, n)
		}
	}
	return reads
}

// proposeNonces replicates the nonces of reads.
func (s *store) proposeNonces(ctx context.Context, tok persistence.Token,
	list []persistence.Nonce) error {
	if len(list) == 0 {
		return nil
	}
	_, err := s.propose(ctx, &machine.Entry{Kind: machine.Reads, Token: tok, Nonces: list})
	return err
}

// ownReads replicates the nonces of reads, if this node's newest claim owns the engine. A fenced
// owner's stay on this node. While the owner's node does not lead, this fails, and the caller
// retries.
func (s *store) ownReads(ctx context.Context, nonces []persistence.Nonce) error {
	list := readNonces(nonces)
	if len(list) == 0 {
		return nil
	}
	tok := s.claimed.Load()
	if tok == nil || s.view.Load().beat.Token != *tok {
		return nil
	}
	if err := s.proposeNonces(ctx, *tok, list); !errors.Is(err, persistence.ErrFenced) {
		return err
	}
	return nil
}

// Watermark returns the sequence that this node's projections reflect.
func (s *store) Watermark(ctx context.Context) (uint64, error) { return s.local.Watermark(ctx) }

// Nonces calls fn for each key's nonce: the higher of the projected one and that of a read.
func (s *store) Nonces(ctx context.Context, fn func(key string, nonce uint64)) error {
	reads := map[string]uint64{}
	err := s.onNode(ctx, func(n *node) {
		n.machine.Reads(func(key string, nonce uint64) { reads[key] = nonce })
	})
	if err != nil {
		return err
	}
	err = s.local.Nonces(ctx, func(key string, nonce uint64) {
		fn(key, max(nonce, reads[key]))
		delete(reads, key)
	})
	if err != nil {
		return err
	}
	for key, nonce := range reads {
		fn(key, nonce)
	}
	return nil
}

// Wallets calls fn for each projected wallet.
func (s *store) Wallets(ctx context.Context, fn func(*persistence.Wallet) bool) error {
	return s.local.Wallets(ctx, fn)
}

// Verify reads everything in the local projections.
func (s *store) Verify(ctx context.Context, wrong func(place string)) (int, error) {
	return s.local.Verify(ctx, wrong)
}
