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

// bound opens the seal of an API key, which is bound to the key's account and rights. A seal of a
// retired server key proves nothing. The same API key was sealed anew since, and the replay comes
// to that record.
func (a *audit) bound(s *state.State, k *event.Key) error {
	if a.subject.Sealer == nil {
		return nil
	}
	_, err := a.subject.Sealer.Open(k.Sealed, k.SealedBy, k.Bound())
	if err == nil || errors.Is(err, seal.ErrOtherKey) {
		return nil
	}
	return fmt.Errorf("%w: key %s of account %s: %w", persistence.ErrCorrupt, k.Key,
		s.Account(k.Account).Name, err)
}

// seals opens those of all keys of a state.
func (a *audit) seals(s *state.State) error {
	for _, k := range s.Keys() {
		if k.Revoked {
			continue
		}
		if err := a.bound(s, &k.Key); err != nil {
			return err
		}
	}
	return nil
}

// newestSeals opens those of the newest snapshot, with which the next start begins and the replay
// does not.
func (a *audit) newestSeals(ctx context.Context) error {
	image, seq, err := persistence.ReadSnapshot(ctx, a.subject.Store, 0)
	if errors.Is(err, persistence.ErrNoSnapshot) {
		return nil
	}
	var s *state.State
	if err == nil {
		if s, err = state.Decode(image); err != nil {
			err = fmt.Errorf("%w: %w", persistence.ErrCorrupt, err)
		}
	}
	if err == nil {
		err = a.seals(s)
	}
	if err != nil {
		return fmt.Errorf("reading the newest snapshot, at sequence %d: %w", seq, err)
	}
	return nil
}
