// Package seal keeps the secrets of API keys unreadable wherever they are stored. A secret is
// sealed with AES-256-GCM under the server's secret key before it becomes part of a record, and
// opened in memory only.
//
// The server's key is 32 bytes: in the environment as 64 hex digits, or in a file of the same form
// with mode 0600 that is made at the first start. Sealed secrets carry the id of the key they were
// sealed with. So there may be several keys, one a line: the first seals, and all of them open.
// That is how the key is rotated: a new one comes to the front, the exchange starts and seals
// everything with it, and the old one is not needed any more.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// KeyBytes is the length of the server's secret key.
const KeyBytes = 32

// ErrOtherKey: the secret was sealed with a key that this process does not have.
var ErrOtherKey = errors.New("sealed with another secret key")

// ErrChanged: the sealed bytes, or what they are bound to, are not those that were sealed.
var ErrChanged = errors.New("the sealed secret does not belong to this")

// version is the first byte of a sealed secret. What an earlier version sealed is refused.
const version = 2

// MaxKeys bounds how many server keys there may be at once.
const MaxKeys = 16

// A Sealer seals and opens secrets. It may be used from any goroutine.
type Sealer struct {
	keys []cipherKey // the first one seals
}

// A cipherKey is one of the server's keys.
type cipherKey struct {
	id    uint64
	aead  cipher.AEAD
	codes []byte // what codes are derived with
	files []byte // what backups and archives are authenticated with
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

// Load takes the keys from text (64 hex digits each) if there is any, else from the file, which it
// makes when it does not exist and mayCreate is set. Errors name the file and never a key.
func Load(text, file string, mayCreate bool) (*Sealer, error) {
	if text != "" {
		return parse(text, "the environment's secret key")
	}
	b, err := read(file)
	if errors.Is(err, fs.ErrNotExist) {
		if !mayCreate {
			return nil,
				fmt.Errorf(
					"there are sealed API secrets in the store, but no secret key in %s: bring "+
						"that file back, or give its content in EXCHANGE_SECRET_KEY (%w)", file,
					fs.ErrNotExist)
		}
		return create(file)
	}
	if err != nil {
		return nil, err
	}
	return parse(b, file)
}

// maxRetired bounds how many files of retired keys are read.
const maxRetired = 1000

// LoadAll takes the keys from text or from the file, as Load does, and those that were retired from
// the file, each from its own file beside it. They open, and prove what was written under them. No
// file is made: fs.ErrNotExist is wrapped if there is no key but retired ones.
func LoadAll(text, file string) (*Sealer, error) {
	s, err := Load(text, file, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no secret key in %s (%w)", file, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	names, err := filepath.Glob(globEscape.Replace(file) + ".*")
	if err != nil {
		return nil, fmt.Errorf("looking for retired keys beside %s: %w", file, err)
	}
	for _, name := range names {
		id, err := strconv.ParseUint(strings.TrimPrefix(name, file+"."), 16, 64)
		if err != nil || name != retiredName(file, id) || s.Opens(id) {
			continue
		}
		if len(s.keys) == maxRetired {
			return nil, fmt.Errorf("there are more than %d secret keys beside %s", maxRetired, file)
		}
		if err := s.retired(name, id); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// retired adds the key of a file that Retire made.
func (s *Sealer) retired(name string, id uint64) error {
	text, err := read(name)
	if err != nil {
		return err
	}
	keys, err := parseKeys(text, name)
	if err != nil {
		return err
	}
	k, err := newCipherKey(keys[0])
	if err == nil && (len(keys) != 1 || k.id != id) {
		err = fmt.Errorf("%s has another key than its name says", name)
	}
	s.keys = append(s.keys, k)
	return err
}

// retiredName is the file of a key that was taken out of the file.
func retiredName(file string, id uint64) string { return fmt.Sprintf("%s.%016x", file, id) }

// globEscape keeps a path from being read as a pattern.
var globEscape = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// maxFile bounds the file of the keys, in bytes.
const maxFile = 2 * MaxKeys * 2 * KeyBytes

// read is what the file of the keys has, which nobody but its owner may be able to read.
func read(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("reading the secret key: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("reading the secret key: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "",
			fmt.Errorf("the secret key %s has mode %04o and can be read by others: chmod 600 it",
				file, info.Mode().Perm())
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return "", fmt.Errorf("reading the secret key: %w", err)
	}
	if len(b) > maxFile {
		return "", fmt.Errorf("%s is longer than %d bytes: is it the file of the secret key?", file,
			maxFile)
	}
	return string(b), nil
}

func newKey() []byte {
	key := make([]byte, KeyBytes)
	rand.Read(key)
	return key
}

func create(file string) (*Sealer, error) {
	key := newKey()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, fmt.Errorf("making a folder for the secret key: %w", err)
	}
	if err := WriteSecret(file, line(key)); err != nil {
		return nil, fmt.Errorf("writing the secret key: %w", err)
	}
	return New(key)
}

// line is a key as it stands in the file.
func line(key []byte) string { return hex.EncodeToString(key) + "\n" }

// Rotate puts a new key in front of those in the file: from the next start on it seals. What comes
// back has all of them.
func Rotate(file string) (*Sealer, error) {
	keys, unlock, err := lockKeys(file)
	if err != nil {
		return nil, err
	}
	defer unlock()
	keys = append([][]byte{newKey()}, keys...)
	s, err := New(keys...)
	if err != nil {
		return nil, err
	}
	return s, replace(file, keys)
}

// Retire takes all keys but the first out of the file. Each goes into a file of its own beside it,
// for old backups need it. What comes back are their names. An exchange that runs keeps its keys
// until it is started again.
func Retire(file string) (retired []string, err error) {
	keys, unlock, err := lockKeys(file)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for _, key := range keys[1:] {
		k, err := newCipherKey(key)
		if err != nil {
			return nil, err
		}
		name := retiredName(file, k.id)
		// then from a try that broke off
		if err := write(name, line(key), file,
			os.Link); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("keeping a retired key: %w", err)
		}
		retired = append(retired, name)
	}
	return retired, replace(file, keys[:1])
}

// lockKeys are the keys in the file, which no other command changes until unlock.
func lockKeys(file string) (keys [][]byte, unlock func(), err error) {
	if unlock, err = lock(filepath.Dir(file)); err != nil {
		return nil, nil, err
	}
	text, err := read(file)
	if err == nil {
		keys, err = parseKeys(text, file)
	}
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return keys, unlock, nil
}

// replace gives the file other keys, in one step.
func replace(file string, keys [][]byte) error {
	var text strings.Builder
	for _, key := range keys {
		text.WriteString(line(key))
	}
	if err := write(file, text.String(), file, os.Rename); err != nil {
		return fmt.Errorf("writing the secret key: %w", err)
	}
	return nil
}

// WriteSecret makes a new file that only its owner can read, whole and durable before it has its
// name. An existing file is an error and stays as it is.
func WriteSecret(file, text string) error { return write(file, text, "", os.Link) }

// errBusy is of two commands that would change the same file.
var errBusy = errors.New("another command is changing the secret key: try again when it has ended")

// write makes a file under another name, which name then gives its own. It belongs to whom the file
// like belongs to, if there is one: who serves must be able to read what an administrator has
// changed.
func write(file, text, like string, name func(from, to string) error) error {
	folder := filepath.Dir(file)
	f, err := os.CreateTemp(folder, ".secret-*") // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // its other name, if it got one, stays
	if like != "" {
		err = keepOwner(f, like)
	}
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := name(f.Name(), file); err != nil {
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
	keys, err := parseKeys(text, where)
	if err != nil {
		return nil, err
	}
	s, err := New(keys...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	return s, nil
}

// parseKeys reads keys, at least one, with blanks or line breaks between them.
func parseKeys(text, where string) (keys [][]byte, err error) {
	for word := range strings.FieldsSeq(text) {
		key, err := hex.DecodeString(word)
		if err != nil || len(key) != KeyBytes {
			return nil, fmt.Errorf("%s is not %d hex digits, nor several such lines", where,
				2*KeyBytes)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s is not %d hex digits: it is empty", where, 2*KeyBytes)
	}
	return keys, nil
}

// MAC is the HMAC-SHA256 of a message, under what is derived from the key with that id for backups
// and archives; nil if there is no such key.
func (s *Sealer) MAC(id uint64, message []byte) []byte {
	k := s.key(id)
	if k == nil {
		return nil
	}
	mac := hmac.New(sha256.New, k.files)
	mac.Write(message)
	return mac.Sum(nil)
}

// ID names the key that seals, without giving it away.
func (s *Sealer) ID() uint64 { return s.keys[0].id }

// IDs names all keys, the one that seals first.
func (s *Sealer) IDs() []uint64 {
	ids := make([]uint64, len(s.keys))
	for i := range s.keys {
		ids[i] = s.keys[i].id
	}
	return ids
}

// Opens reports whether there is a key with that id.
func (s *Sealer) Opens(id uint64) bool { return s.key(id) != nil }

func (s *Sealer) key(id uint64) *cipherKey {
	for i := range s.keys {
		if s.keys[i].id == id {
			return &s.keys[i]
		}
	}
	return nil
}

// Seal encrypts a secret. bound is authenticated with it: the secret opens beside the same bytes
// only.
func (s *Sealer) Seal(secret, bound []byte) []byte {
	aead := s.keys[0].aead
	sealed := make([]byte, 1+aead.NonceSize(), 1+aead.NonceSize()+len(secret)+aead.Overhead())
	sealed[0] = version
	nonce := sealed[1:]
	rand.Read(nonce)
	return aead.Seal(sealed, nonce, secret, bound)
}

// Open decrypts what Seal made under the key with that id. ErrOtherKey if there is none, ErrChanged
// if the sealed bytes or bound are not what they were.
func (s *Sealer) Open(sealed []byte, id uint64, bound []byte) ([]byte, error) {
	k := s.key(id)
	if k == nil {
		return nil, fmt.Errorf("%w (id %016x, this one has %016x)", ErrOtherKey, id, s.IDs())
	}
	n := 1 + k.aead.NonceSize()
	if len(sealed) < n {
		return nil, fmt.Errorf("%w: it is too short", ErrChanged)
	}
	if sealed[0] != version {
		return nil, fmt.Errorf("%w: it is of version %d, and this program knows version %d",
			ErrChanged, sealed[0], version)
	}
	secret, err := k.aead.Open(nil, sealed[1:n], sealed[n:], bound)
	if err != nil {
		return nil, fmt.Errorf("%w: one of the two was changed", ErrChanged)
	}
	return secret, nil
}

// String hides everything but the ids.
func (s *Sealer) String() string { return fmt.Sprintf("secret key %016x", s.IDs()) }
