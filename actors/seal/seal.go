package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"exchange/core/wire"
)

// KeyBytes is the length of the server's secret key.
const KeyBytes = 32

// ErrOtherKey means that the secret was sealed with a key that this process does not have.
var ErrOtherKey = errors.New("sealed with another secret key")

// ErrChanged means that the sealed bytes, or the bytes they are bound to, have changed.
var ErrChanged = errors.New("the sealed secret does not belong to this")

// version is the first byte of a sealed secret. Another version is refused.
const version = 2

// MaxKeys bounds the number of server keys in use.
const MaxKeys = 16

// A Sealer seals and opens secrets. It may be used from any goroutine.
type Sealer struct {
	keys []cipherKey // the first one seals
	// retired keys open secrets, and verify backups and archives written under them. They make no
	// codes: one may have been retired because it was stolen.
	retired []cipherKey
}

// A cipherKey is one of the server's keys.
type cipherKey struct {
	id    uint64
	aead  cipher.AEAD
	codes []byte // key of codes
	files []byte // key that authenticates backups and archives
}

// New makes a Sealer from the server's keys, each KeyBytes long, at least one. The first one seals.
func New(keys ...[]byte) (*Sealer, error) {
	if len(keys) == 0 || len(keys) > MaxKeys {
		return nil, fmt.Errorf("there are %d secret keys, 1 to %d are possible", len(keys), MaxKeys)
	}
	s := &Sealer{}
	for _, key := range keys {
		k, err := newCipherKey(key)
		if err != nil {
			return nil, err
		}
		if s.Opens(k.id) {
			return nil, fmt.Errorf("the secret key %016x is there twice", k.id)
		}
		s.keys = append(s.keys, k)
	}
	return s, nil
}

func newCipherKey(key []byte) (cipherKey, error) {
	if len(key) != KeyBytes {
		return cipherKey{}, fmt.Errorf("the secret key has %d bytes, it needs %d", len(key),
			KeyBytes)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return cipherKey{}, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return cipherKey{}, err
	}
	sum := sha256.Sum256(append([]byte("exchange secret key id\n"), key...))
	codes := sha256.Sum256(append([]byte("exchange withdraw codes\n"), key...))
	files := sha256.Sum256(append([]byte("exchange backups and archives\n"), key...))
	return cipherKey{id: binary.BigEndian.Uint64(sum[:]), aead: aead, codes: codes[:],
		files: files[:]}, nil
}

// MAC returns the HMAC-SHA256 of a message, with the key for backups and archives that is derived
// from the key with that id; nil if there is no such key.
func (s *Sealer) MAC(id uint64, message []byte) []byte {
	k := s.key(id)
	if k == nil {
		return nil
	}
	mac := hmac.New(sha256.New, k.files)
	mac.Write(message)
	return mac.Sum(nil)
}

// ID returns the id of the key that seals; it reveals nothing of the key.
func (s *Sealer) ID() uint64 { return s.keys[0].id }

// IDs returns the ids of all keys but the retired ones. The first one seals.
func (s *Sealer) IDs() []uint64 {
	ids := make([]uint64, len(s.keys))
	for i := range s.keys {
		ids[i] = s.keys[i].id
	}
	return ids
}

// Opens reports whether a key with that id is present, retired or not.
func (s *Sealer) Opens(id uint64) bool { return s.key(id) != nil }

func (s *Sealer) key(id uint64) *cipherKey {
	for _, list := range [][]cipherKey{s.keys, s.retired} {
		for i := range list {
			if list[i].id == id {
				return &list[i]
			}
		}
	}
	return nil
}

// Seal encrypts a secret and authenticates bound: opening needs the same bytes.
func (s *Sealer) Seal(secret, bound []byte) []byte {
	aead := s.keys[0].aead
	sealed := make([]byte, 1+aead.NonceSize(), 1+aead.NonceSize()+len(secret)+aead.Overhead())
	sealed[0] = version
	nonce := sealed[1:]
	rand.Read(nonce)
	return aead.Seal(sealed, nonce, secret, bound)
}

// Open decrypts bytes that Seal made under the key with that id. It returns ErrOtherKey if there is
// no such key, ErrChanged if the sealed bytes or bound have changed, or a wire.OtherVersion.
func (s *Sealer) Open(sealed []byte, id uint64, bound []byte) ([]byte, error) {
	k := s.key(id)
	if k == nil {
		return nil, fmt.Errorf("%w (id %016x, here is %v)", ErrOtherKey, id, s)
	}
	n := 1 + k.aead.NonceSize()
	if len(sealed) < n {
		return nil, fmt.Errorf("%w: it is too short", ErrChanged)
	}
	if err := wire.Version(uint64(sealed[0]), version); err != nil {
		return nil, fmt.Errorf("a sealed secret: %w", err)
	}
	secret, err := k.aead.Open(nil, sealed[1:n], sealed[n:], bound)
	if err != nil {
		return nil, fmt.Errorf("%w: one of the two was changed", ErrChanged)
	}
	return secret, nil
}

// String hides everything but the ids.
func (s *Sealer) String() string {
	text := fmt.Sprintf("secret key %016x", s.IDs())
	if n := len(s.retired); n > 0 {
		text += fmt.Sprintf(" and %d retired", n)
	}
	return text
}
