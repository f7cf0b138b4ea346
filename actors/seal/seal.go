// Package seal keeps the secrets of API keys unreadable wherever they are stored. A secret is sealed
// with AES-256-GCM under the server's secret key before it becomes part of a record, and opened in
// memory only.
//
// The server's key is 32 bytes: in the environment as 64 hex digits, or in a file of the same form
// with mode 0600 that is made at the first start. Sealed secrets carry the id of the key they were
// sealed with, so that keys can be rotated.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// KeyBytes is the length of the server's secret key.
const KeyBytes = 32

// ErrOtherKey: the secret was sealed with a key that this process does not have.
var ErrOtherKey = errors.New("sealed with another secret key")

// A Sealer seals and opens secrets. It may be used from any goroutine.
type Sealer struct {
	id    uint64
	aead  cipher.AEAD
	codes []byte // what codes are derived with
}

// New makes a Sealer from the server's key, KeyBytes long.
func New(key []byte) (*Sealer, error) {
	if len(key) != KeyBytes {
		return nil, fmt.Errorf("the secret key has %d bytes, it needs %d", len(key), KeyBytes)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(append([]byte("exchange secret key id\n"), key...))
	codes := sha256.Sum256(append([]byte("exchange withdraw codes\n"), key...))
	return &Sealer{id: binary.BigEndian.Uint64(sum[:]), aead: aead, codes: codes[:]}, nil
}

// Load takes the key from text (64 hex digits) if there is any, else from the file, which it makes
// when it does not exist and mayCreate is set. Errors name the file and never the key.
func Load(text, file string, mayCreate bool) (*Sealer, error) {
	if text != "" {
		return parse(text, "the environment's secret key")
	}
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if !mayCreate {
			return nil, fmt.Errorf("there are sealed API secrets in the store, but no secret key in %s: bring that file back, or give its content in EXCHANGE_SECRET_KEY", file)
		}
		return create(file)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the secret key: %w", err)
	}
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the secret key %s has mode %04o and can be read by others: chmod 600 it", file, info.Mode().Perm())
	}
	return parse(string(b), file)
}

func create(file string) (*Sealer, error) {
	key := make([]byte, KeyBytes)
	rand.Read(key)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, fmt.Errorf("making a folder for the secret key: %w", err)
	}
	if err := WriteSecret(file, hex.EncodeToString(key)+"\n"); err != nil {
		return nil, fmt.Errorf("writing the secret key: %w", err)
	}
	return New(key)
}

// WriteSecret makes a new file that only its owner can read, whole and durable before it has its name. An
// existing file is an error and stays as it is.
func WriteSecret(file, text string) error {
	folder := filepath.Dir(file)
	f, err := os.CreateTemp(folder, ".secret-*") // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // its other name, if it got one, stays
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), file); err != nil {
		return err
	}
	dir, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

func parse(text, where string) (*Sealer, error) {
	key, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != KeyBytes {
		return nil, fmt.Errorf("%s is not %d hex digits", where, 2*KeyBytes)
	}
	return New(key)
}

// ID names the key without giving it away.
func (s *Sealer) ID() uint64 { return s.id }

// Seal encrypts a secret. owner is authenticated with it: the secret opens for the same owner only.
func (s *Sealer) Seal(secret []byte, owner string) []byte {
	nonce := make([]byte, s.aead.NonceSize())
	rand.Read(nonce)
	return s.aead.Seal(nonce, nonce, secret, []byte(owner))
}

// Open decrypts what Seal made under the key with that id. ErrOtherKey if it is not this one.
func (s *Sealer) Open(sealed []byte, id uint64, owner string) ([]byte, error) {
	if id != s.id {
		return nil, fmt.Errorf("%w (id %016x, this one has %016x)", ErrOtherKey, id, s.id)
	}
	n := s.aead.NonceSize()
	if len(sealed) < n {
		return nil, errors.New("a sealed secret is too short")
	}
	secret, err := s.aead.Open(nil, sealed[:n], sealed[n:], []byte(owner))
	if err != nil {
		return nil, errors.New("a sealed secret was changed, or belongs to another key")
	}
	return secret, nil
}

// String hides everything but the id.
func (s *Sealer) String() string { return fmt.Sprintf("secret key %016x", s.id) }
