package seal

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var serverKey = []byte("0123456789abcdefghijklmnopqrstuv")

func sealer(t *testing.T, key []byte) *Sealer {
	t.Helper()
	return must[*Sealer](t)(New(key))
}

// must returns the value of a call that must not fail.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		succeeds(t, err)
		return v
	}
}

func succeeds(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func otherKey() []byte {
	key := bytes.Clone(serverKey)
	key[31]++
	return key
}

func TestASecretOpensForItsOwner(t *testing.T) {
	s := sealer(t, serverKey)
	rapid.Check(t, func(t *rapid.T) {
		secret, owner := rapid.SliceOf(rapid.Byte()).Draw(t, "secret"),
			rapid.SliceOf(rapid.Byte()).Draw(t, "owner")
		sealed := s.Seal(secret, owner)
		got, err := s.Open(sealed, s.ID(), owner)
		if err != nil || !bytes.Equal(got, secret) {
			t.Fatalf("%x, %v", got, err)
		}
		if len(secret) > 8 && bytes.Contains(sealed, secret) {
			t.Fatal("the secret is readable in its stored form")
		}
		if _, err := s.Open(sealed, s.ID(), append(owner, 0)); err == nil {
			t.Fatal("another owner opens it")
		}
	})
}

func TestEqualSecretsAreSealedDifferently(t *testing.T) {
	s := sealer(t, serverKey)
	if bytes.Equal(s.Seal([]byte("secret"), []byte("a")), s.Seal([]byte("secret"), []byte("a"))) {
		t.Error("two seals of one secret are equal")
	}
}

func TestChangedAndShortSecretsAreRefused(t *testing.T) {
	s := sealer(t, serverKey)
	sealed := s.Seal([]byte("secret"), []byte("a"))
	for i := range sealed {
		sealed[i] ^= 1
		if _, err := s.Open(sealed, s.ID(), []byte("a")); err == nil {
			t.Fatalf("byte %d was changed", i)
		}
		sealed[i] ^= 1
	}
	for n := range sealed {
		if _, err := s.Open(sealed[:n], s.ID(), []byte("a")); err == nil {
			t.Fatalf("%d of %d bytes are opened", n, len(sealed))
		}
	}
	if _, err := s.Open(append(sealed, 0), s.ID(), []byte("a")); err == nil {
		t.Error("a byte too many is opened")
	}
}

func TestKeysOfAnotherLengthAreRefused(t *testing.T) {
	for _, n := range []int{0, 16, 31, 33, 64} {
		if _, err := New(make([]byte, n)); err == nil {
			t.Errorf("a key of %d bytes is taken", n)
		}
	}
}

func TestTheKeyFileIsMadeOnceAndForItsOwnerOnly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "folder", "secret.key")
	made := must[*Sealer](t)(Load("", file, true))
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(filepath.Dir(file)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its folder: %v, %v", info.Mode(), err)
	}
	for _, mayCreate := range []bool{true, false} {
		again, err := Load("", file, mayCreate)
		if err != nil || again.ID() != made.ID() {
			t.Fatalf("the next start has another key: %v", err)
		}
	}
	other, err := Load("", filepath.Join(t.TempDir(), "secret.key"), true)
	if err != nil || other.ID() == made.ID() {
		t.Errorf("two new keys are equal: %v", err)
	}
}

func TestAKeyFileThatOthersCanReadIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret.key")
	must[any](t)(Load("", file, true))
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o620, 0o610, 0o666} {
		os.Chmod(file, mode)
		if _, err := Load("", file, true); err == nil ||
			!strings.Contains(err.Error(), "chmod 600") ||
			!strings.Contains(err.Error(), fmt.Sprintf("%04o", mode)) {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
	os.Chmod(file, 0o400)
	if _, err := Load("", file, true); err != nil {
		t.Errorf("mode 0400: %v", err)
	}
}

func TestAMissingKeyFileIsNotMadeWhenSecretsAreSealedAlready(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret.key")
	if _, err := Load("", file, false); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file: %v", err)
	}
}

func TestTheEnvironmentGoesBeforeTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret.key")
	text := hex.EncodeToString(serverKey)
	want := sealer(t, serverKey).ID()
	for _, text := range []string{text, strings.ToUpper(text), " " + text + "\n"} {
		s, err := Load(text, file, true)
		if err != nil || s.ID() != want {
			t.Errorf("%v", err)
		}
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was made beside it: %v", err)
	}
	succeeds(t, WriteSecret(file, text+"\n"))
	if s, err := Load("", file, false); err != nil || s.ID() != want {
		t.Errorf("the same text in a file: %v", err)
	}
}

func TestNoErrorAndNoTextShowsTheKey(t *testing.T) {
	text := hex.EncodeToString(serverKey)
	hides := func(what, s string) {
		t.Helper()
		for _, part := range []string{text[:16], text[20:40], string(serverKey[:8]),
			fmt.Sprint(serverKey[:4])[1:8], fmt.Sprintf("%#v", serverKey[:4])[7:20]} {
			if strings.Contains(strings.ToLower(s), strings.ToLower(part)) {
				t.Errorf("%s shows the key: %s", what, s)
			}
		}
	}
	s := sealer(t, serverKey)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
		hides(verb, fmt.Sprintf(verb, s))
		hides(verb+" of the value", fmt.Sprintf(verb, *s))
	}
	if !strings.Contains(s.String(), fmt.Sprintf("%016x", s.ID())) {
		t.Errorf("%v does not name its id", s)
	}
	for _, bad := range []string{text[:63], text + "0", text[:62] + "xy", text + text,
		"g" + text[1:]} {
		_, err := Load(bad, "", false)
		if err == nil {
			t.Fatalf("%q is taken", bad)
		}
		hides("an error of the environment", err.Error())
		file := filepath.Join(t.TempDir(), "secret.key")
		succeeds(t, WriteSecret(file, bad))
		if _, err = Load("", file, true); err == nil || !strings.Contains(err.Error(), file) {
			t.Fatalf("a bad file: %v", err)
		}
		hides("an error of the file", err.Error())
	}
	_, err := s.Open([]byte("changed and long enough to hold a nonce"), s.ID(), []byte("a"))
	hides("an error of Open", err.Error())
	_, err = s.Open(nil, 1, []byte("a"))
	hides("an error of another key", err.Error())
}

func TestWriteSecretOverwritesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	succeeds(t, WriteSecret(file, "first"))
	if err := WriteSecret(file, "second"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v", err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "first" {
		t.Errorf("%q, %v", b, err)
	}
	if err := WriteSecret(filepath.Join(file, "below a file"), "x"); err == nil {
		t.Error("a file below a file")
	}
}
