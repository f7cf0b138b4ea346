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

// A Keyring opens the secrets of API keys, each once. A node keeps its keyring from one term to
// the next. Any goroutine may open keys, and the one that builds a term uses them.
type Keyring struct {
	sealer   *seal.Sealer            // nil: there is no server's key, so no API key is opened
	material func(secret []byte) any // Options.KeyMaterial
	opening  sync.Mutex
	opened   []openedKey // by number-1
	// forgoes leaves API keys closed whose server's key is not there, because they are about to be
	// revoked; guarded by opening
	forgoes bool
}

// An openedKey is what verifies the requests of a key whose secret was sealed so.
type openedKey struct {
	sealed   []byte // nil: it was not opened
	material any
}

// NewKeyring makes an empty one; sealer is nil where there is no server's key.
func NewKeyring(sealer *seal.Sealer, o *Options) *Keyring {
	return &Keyring{sealer: sealer, material: o.KeyMaterial, forgoes: o.RevokeLost}
}

// Forgo reports whether keys that are lost stay closed, to be revoked.
func (r *Keyring) Forgo() bool {
	r.opening.Lock()
	defer r.opening.Unlock()
	return r.forgoes
}

// kept ends that: from now on a key that is lost is an error.
func (r *Keyring) kept() {
	r.opening.Lock()
	defer r.opening.Unlock()
	r.forgoes = false
}

// lost reports whether the server's key of an API key is not there.
func (r *Keyring) lost(k *state.Key) bool {
	return !k.Revoked && (r.sealer == nil || !r.sealer.Opens(k.SealedBy))
}

// openAll opens all live keys of a state. Errors are those of openSecret.
func (r *Keyring) openAll(s *state.State) error {
	keys := s.Keys()
	r.opening.Lock()
	defer r.opening.Unlock()
	for len(r.opened) < len(keys) {
		r.opened = append(r.opened, openedKey{})
	}
	return mailbox.AtOnce(len(keys), func(i int) error {
		k, o := keys[i], &r.opened[i]
		switch {
		case k.Revoked, r.forgoes && r.lost(k): // its secret is gone
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

// all returns what openAll has opened, by number-1.
func (r *Keyring) all() []openedKey {
	r.opening.Lock()
	defer r.opening.Unlock()
	return slices.Clone(r.opened)
}

// openSecret opens the secret of an API key. ErrConfig means that the server's key is missing.
// persistence.ErrCorrupt means that the account, number, name, permissions or allow-list was
// changed: the seal belongs to others.
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
