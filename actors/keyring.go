package actors

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"sync"

	"exchange/actors/mailbox"
	"exchange/actors/seal"
	"exchange/core/event"
	"exchange/core/state"
	"exchange/persistence"
)

// A Keyring opens the secrets of API keys, each once. A node keeps its keyring over terms. Any
// goroutine may open keys; the one that builds a term uses them.
type Keyring struct {
	sealer   *seal.Sealer            // nil: no server key, so no API key is opened
	material func(secret []byte) any // Options.KeyMaterial
	mu       sync.Mutex
	secrets  []openedKey // by number-1
	// skipLost leaves API keys closed whose server key is missing, because they are about to be
	// revoked; guarded by mu
	skipLost bool
}

// An openedKey holds the material that verifies a key's requests, for one sealing of its secret.
type openedKey struct {
	sealed   []byte // nil: not opened
	material any
}

// NewKeyring makes an empty one; sealer is nil without a server key.
func NewKeyring(sealer *seal.Sealer, o *Options) *Keyring {
	return &Keyring{sealer: sealer, material: o.KeyMaterial, skipLost: o.RevokeLost}
}

// SkipLost reports whether lost keys stay closed, to be revoked.
func (r *Keyring) SkipLost() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.skipLost
}

// requireAll ends that: from now on a lost key is an error.
func (r *Keyring) requireAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.skipLost = false
}

// lost reports whether an API key's server key is missing.
func (r *Keyring) lost(k *state.Key) bool {
	return !k.Revoked && (r.sealer == nil || !r.sealer.Opens(k.SealedBy))
}

// openAll opens all live keys of a state. Errors are those of openSecret.
func (r *Keyring) openAll(s *state.State) error {
	keys := s.Keys()
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.secrets) < len(keys) {
		r.secrets = append(r.secrets, openedKey{})
	}
	return mailbox.AtOnce(len(keys), func(i int) error {
		k, o := keys[i], &r.secrets[i]
		switch {
		case k.Revoked, r.skipLost && r.lost(k): // its secret is gone
			*o = openedKey{}
			return nil
		case o.sealed != nil && subtle.ConstantTimeCompare(o.sealed, k.Sealed) == 1:
			return nil
		}
		secret, err := openSecret(&k.Key, s.Account(k.Account).Name, r.sealer)
		if err != nil {
			return err
		}
		*o = openedKey{k.Sealed, r.material(secret)}
		return nil
	})
}

// all returns the keys that openAll opened, by number-1.
func (r *Keyring) all() []openedKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.secrets)
}

// openSecret opens the secret of an API key. ErrConfig: the server key is missing.
// persistence.ErrCorrupt: the account, number, name, permissions or allow-list was changed, so the
// seal does not match.
func openSecret(k *event.Key, account string, sealer *seal.Sealer) ([]byte, error) {
	secret, err := sealer.Open(k.Sealed, k.SealedBy, k.Bound())
	if err == nil {
		return secret, nil
	}
	err = fmt.Errorf("key %s of account %s: %w", k.Key, account, err)
	if errors.Is(err, seal.ErrOtherKey) {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil, persistence.Unreadable(err)
}
