package pebble

import (
	"context"
	"encoding/binary"
	"fmt"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
)

// Nonces calls fn for each key's nonce.
func (s *Store) Nonces(ctx context.Context, fn func(key string, nonce uint64)) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	prefix := s.key(kindNonce)
	return s.scan(ctx, s.db, prefix, after(prefix), true, func(k, v []byte) (bool, error) {
		if len(v) != 9 {
			return false, fmt.Errorf("%s: %w: a nonce has %d bytes", s, persistence.ErrCorrupt,
				len(v))
		}
		fn(string(k[len(prefix):]), binary.BigEndian.Uint64(v[1:]))
		return true, nil
	})
}

// Wallets calls fn for each projected wallet.
func (s *Store) Wallets(ctx context.Context, fn func(*persistence.Wallet) bool) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	prefix := s.key(kindWallet)
	var w persistence.Wallet
	return s.scan(ctx, s.db, prefix, after(prefix), true, func(k, v []byte) (bool, error) {
		if len(k) != len(prefix)+4 {
			return false, fmt.Errorf("%s: %w: the key of a wallet has %d bytes", s,
				persistence.ErrCorrupt, len(k))
		}
		if err := codec.DecodeWallet(v, binary.BigEndian.Uint32(k[len(prefix):]), &w); err != nil {
			return false, fmt.Errorf("%s: %w", s, err)
		}
		return fn(&w), nil
	})
}

func (a *applier) wallets(w *persistence.Writes) error {
	for i := range w.Wallets {
		a.buf = codec.AppendWallet(a.buf[:0], &w.Wallets[i])
		if err := a.set(u32(a.s.key(kindWallet), w.Wallets[i].Account), a.buf); err != nil {
			return err
		}
	}
	return nil
}

// nonces writes max(old, new) of each key, also when one appears twice. The watermark does not
// order Applies that do not move it, so a late one must not lower a nonce.
func (a *applier) nonces(w *persistence.Writes) error {
	for _, n := range w.Nonces {
		old, ok := a.s.memo.nonces[n.Key]
		if !ok {
			v, err := a.s.row(a.s.db, append(a.s.key(kindNonce), n.Key...))
			if err != nil {
				return err
			}
			if len(v) == 9 {
				old = nonce{binary.BigEndian.Uint64(v[1:]), true}
			}
		}
		if !old.there || old.value < n.Nonce {
			old = nonce{n.Nonce, true}
			if err := a.set(append(a.s.key(kindNonce), n.Key...),
				u64([]byte{codec.Version}, n.Nonce)); err != nil {
				return err
			}
		}
		a.s.memo.nonces[n.Key] = old
	}
	return nil
}
