package seal

import (
	"crypto/rand"
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

// Load reads the keys from text (64 hex digits each) if there is any, otherwise from the file; and
// the file's retired keys, each from its own file beside it. It creates the file when it does not
// exist and mayCreate is set; otherwise the error wraps fs.ErrNotExist, even if there are retired
// keys. Errors name the file, never a key.
func Load(text, file string, mayCreate bool) (*Sealer, error) {
	s, err := present(text, file)
	switch {
	case !errors.Is(err, fs.ErrNotExist):
	case mayCreate:
		s, err = create(file)
	default:
		err = fmt.Errorf("there is no secret key in %s (%w)", file, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	return s, s.loadRetired(file)
}

// present returns the keys that are not retired.
func present(text, file string) (*Sealer, error) {
	if text != "" {
		return parse(text, "the environment's secret key")
	}
	text, err := read(file)
	if err != nil {
		return nil, err
	}
	return parse(text, file)
}

// maxRetired bounds the number of retired keys' files.
const maxRetired = 1000

// loadRetired adds the keys that Retire put beside the file.
func (s *Sealer) loadRetired(file string) error {
	names, err := filepath.Glob(globEscape.Replace(file) + ".*")
	if err != nil {
		return fmt.Errorf("looking for retired keys beside %s: %w", file, err)
	}
	for _, name := range names {
		id, err := strconv.ParseUint(strings.TrimPrefix(name, file+"."), 16, 64)
		if err != nil || name != retiredName(file, id) || s.Opens(id) {
			continue
		}
		if len(s.retired) == maxRetired {
			return fmt.Errorf("there are more than %d retired secret keys beside %s", maxRetired,
				file)
		}
		if err := s.addRetired(name, id); err != nil {
			return err
		}
	}
	return nil
}

// addRetired adds the key of a file made by Retire.
func (s *Sealer) addRetired(name string, id uint64) error {
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
	s.retired = append(s.retired, k)
	return err
}

// retiredName returns the file name of a retired key.
func retiredName(file string, id uint64) string { return fmt.Sprintf("%s.%016x", file, id) }

// globEscape escapes a path for a pattern.
var globEscape = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// maxFile bounds the key file, in bytes.
const maxFile = 2 * MaxKeys * 2 * KeyBytes

// read returns the text of the key file, which only its owner may be able to read.
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

// line returns a key as one line of the file.
func line(key []byte) string { return hex.EncodeToString(key) + "\n" }

// Rotate puts a new key first in the file: it seals from the next start on. The Sealer holds all of
// them.
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

// Retire removes all keys but the first from the file. Each goes into its own file beside it,
// because old backups need it. Retire returns the names of these files. A running exchange keeps
// its keys until it restarts.
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
		// an existing file is of an interrupted try
		if err := write(name, line(key), file,
			os.Link); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("keeping a retired key: %w", err)
		}
		retired = append(retired, name)
	}
	return retired, replace(file, keys[:1])
}

// lockKeys returns the keys in the file. No other command changes them until unlock.
func lockKeys(file string) (keys [][]byte, unlock func(), err error) {
	if unlock, err = lock(file); err != nil {
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

// replace replaces the keys of the file atomically.
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

// WriteSecret creates a file readable by its owner only, complete and durable before it gets its
// name. An existing file is an error and stays unchanged.
func WriteSecret(file, text string) error { return write(file, text, "", os.Link) }

// errBusy is the error of the later of two commands that change the same file.
var errBusy = errors.New("another command is changing the secret key: try again when it has ended")

// write makes a file under a temporary name, which name then replaces. If like is not empty, the
// new file belongs to the owner of that file: the exchange must be able to read a file that an
// administrator changed.
func write(file, text, like string, name func(from, to string) error) error {
	folder := filepath.Dir(file)
	f, err := os.CreateTemp(folder, ".secret-*") // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // its other name, if any, stays
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

// parseKeys reads one or more keys, separated by blanks or line breaks.
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
