package audit

import (
	"context"
	"errors"
	"fmt"

	"exchange/actors/seal"
	"exchange/core/event"
	"exchange/core/state"
	"exchange/persistence"
)

// checkSeal opens the seal of an API key, which is bound to the key's account and rights. A seal of
// a retired server key proves nothing: the key was sealed again since, and the replay reaches that
// record.
func (a *audit) checkSeal(s *state.State, k *event.Key) error {
	if a.target.Sealer == nil {
		return nil
	}
	_, err := a.target.Sealer.Open(k.Sealed, k.SealedBy, k.Bound())
	if err == nil || errors.Is(err, seal.ErrOtherKey) {
		return nil
	}
	return persistence.Unreadable(fmt.Errorf("key %s of account %s: %w", k.Key,
		s.Account(k.Account).Name, err))
}

// seals opens the seals of all keys of a state that are not revoked.
func (a *audit) seals(s *state.State) error {
	for _, k := range s.Keys() {
		if k.Revoked {
			continue
		}
		if err := a.checkSeal(s, &k.Key); err != nil {
			return err
		}
	}
	return nil
}

// newestSeals opens the seals of the newest snapshot. The next start uses that snapshot, and the
// replay the oldest one.
func (a *audit) newestSeals(ctx context.Context) error {
	s, err := newestState(ctx, a.target.Store)
	if err != nil {
		return err
	}
	if err := a.seals(s); err != nil {
		return fmt.Errorf("reading the newest snapshot, at sequence %d: %w", s.Seq(), err)
	}
	return nil
}

// newestState decodes the newest snapshot. Without a snapshot it returns an empty state.
func newestState(ctx context.Context, store Store) (*state.State, error) {
	image, seq, err := persistence.ReadSnapshot(ctx, store, 0)
	if errors.Is(err, persistence.ErrNoSnapshot) {
		return state.New(), nil
	}
	var s *state.State
	if err == nil {
		if s, err = state.Decode(image); err != nil {
			err = persistence.Unreadable(err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the newest snapshot, at sequence %d: %w", seq, err)
	}
	return s, nil
}
