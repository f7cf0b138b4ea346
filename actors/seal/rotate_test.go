package seal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheFirstOfSeveralKeysSealsAndAllOpen(t *testing.T) {
	old := sealer(t, serverKey)
	both := must[*Sealer](t)(New(otherKey(), serverKey))
	if both.ID() != sealer(t, otherKey()).ID() ||
		fmt.Sprint(both.IDs()) != fmt.Sprint([]uint64{both.ID(), old.ID()}) ||
		!both.Opens(old.ID()) || both.Opens(1) {
		t.Errorf("%x", both.IDs())
	}
	if got, err := both.Open(old.Seal([]byte("secret"), []byte("a")), old.ID(),
		[]byte("a")); err != nil || string(got) != "secret" {
		t.Errorf("%q, %v", got, err)
	}
	sealed := both.Seal([]byte("secret"), []byte("a"))
	if got, err := sealer(t, otherKey()).Open(sealed, both.ID(), []byte("a")); err != nil ||
		string(got) != "secret" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := old.Open(sealed, both.ID(), []byte("a")); !errors.Is(err, ErrOtherKey) {
		t.Errorf("%v", err)
	}
	if _, err := both.Open(sealed, old.ID(), []byte("a")); err == nil ||
		errors.Is(err, ErrOtherKey) {
		t.Errorf("under the id of the other key: %v", err)
	}
	// A code mailed earlier is valid as long as its key is present; new ones are of the first key.
	w, h := example(1, 1), ofHistory
	before, now := old.Code(h, w), both.Code(h, w)
	if !both.CodeFits(h, w, before) || !both.CodeFits(h, w, now) || old.CodeFits(h, w, now) ||
		both.CodeFits(h, example(1, 2), before) || both.CodeFits(h, w, "") {
		t.Error("codes")
	}
}

func TestKeysAreUniqueAndBounded(t *testing.T) {
	if _, err := New(); err == nil {
		t.Error("no key")
	}
	if _, err := New(serverKey, otherKey(), serverKey); err == nil ||
		!strings.Contains(err.Error(), "is there twice") {
		t.Errorf("%v", err)
	}
	var keys [][]byte
	for i := range MaxKeys {
		key := bytes.Clone(serverKey)
		key[0] = byte(i)
		keys = append(keys, key)
	}
	if _, err := New(keys...); err != nil {
		t.Error(err)
	}
	if _, err := New(append(keys, serverKey)...); err == nil {
		t.Error("one too many")
	}
}

// rotated makes a file with the maximum of keys. last is its Sealer.
func rotated(t *testing.T) (file string, last *Sealer) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "exchange.key")
	if _, err := Rotate(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	first := must[*Sealer](t)(Load("", file, true))
	for n := 2; n <= MaxKeys; n++ {
		rotated := must[*Sealer](t)(Rotate(file))
		last = must[*Sealer](t)(Load("", file, false))
		if fmt.Sprint(last.IDs()) != fmt.Sprint(rotated.IDs()) || len(last.IDs()) != n ||
			!last.Opens(first.ID()) {
			t.Fatal(last)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	}
	return file, last
}

func TestAKeyIsRotatedInItsFile(t *testing.T) {
	file, last := rotated(t)
	if _, err := Rotate(file); err == nil {
		t.Error("one too many")
	}
	if again, err := Load("", file, false); err != nil || len(again.IDs()) != MaxKeys {
		t.Errorf("a rotation that failed has changed the file: %v, %v", again, err)
	}
	text := must[[]byte](t)(os.ReadFile(file))
	if s, err := Load(string(text), "", false); err != nil ||
		fmt.Sprint(s.IDs()) != fmt.Sprint(last.IDs()) {
		t.Errorf("the same in the environment: %v, %v", s, err)
	}
	if s, err := Load(strings.ReplaceAll(string(text), "\n", "  "), "", false); err != nil ||
		s.ID() != last.ID() {
		t.Errorf("on one line: %v, %v", s, err)
	}
}

func TestRetiredKeysAreKept(t *testing.T) {
	file, last := rotated(t)
	text := must[[]byte](t)(os.ReadFile(file))
	retired, err := Retire(file)
	if err != nil || len(retired) != MaxKeys-1 {
		t.Fatal(retired, err)
	}
	if s, err := Load("", file, false); err != nil ||
		fmt.Sprint(s.IDs()) != fmt.Sprint([]uint64{last.ID()}) {
		t.Errorf("%v, %v", s, err)
	}
	for i, name := range retired {
		s, err := Load("", name, false) // which checks its mode
		if err != nil || s.ID() != last.IDs()[i+1] ||
			!strings.HasSuffix(name, fmt.Sprintf(".%016x", s.ID())) {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
	if retired, err := Retire(file); err != nil || len(retired) != 0 {
		t.Errorf("nothing to retire: %v, %v", retired, err)
	}
	// The files of an interrupted retirement are no obstacle.
	succeeds(t, os.WriteFile(file, text, 0o600))
	if retired, err := Retire(file); err != nil || len(retired) != MaxKeys-1 {
		t.Errorf("%v, %v", retired, err)
	}
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(entries) != MaxKeys {
		t.Errorf("%d files, %v", len(entries), err)
	}
}

func TestAFileThatIsNoListOfKeysIsRefusedAndStays(t *testing.T) {
	for _, text := range []string{"", "\n", "x\n", strings.Repeat("ab", 31),
		strings.Repeat("ab", 32) + "\n" + strings.Repeat("ab", 32),
		strings.Repeat("\n", maxFile) + strings.Repeat("ab", 32)} {
		file := filepath.Join(t.TempDir(), "exchange.key")
		succeeds(t, os.WriteFile(file, []byte(text), 0o600))
		_, err1 := Load("", file, true)
		_, err2 := Rotate(file)
		if got, err := os.ReadFile(file); err1 == nil || err2 == nil || err != nil ||
			string(got) != text {
			t.Errorf("%.80q: %v, %v, %v", text, err1, err2, err)
		}
	}
}

// Retired keys verify and open what was made under them. They seal nothing, and make no codes: one
// may have been stolen.
func TestRetiredKeysAreLoadedFromTheirFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a[b]*", "secret.key")
	if _, err := Load("", file, false); !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), file) {
		t.Errorf("without a file: %v", err)
	}
	first := must[*Sealer](t)(Load("", file, true))
	for range MaxKeys + 2 { // more than the maximum in use
		must[any](t)(Rotate(file))
		must[any](t)(Retire(file))
	}
	for _, name := range []string{".bak", ".0123", ".00000000000000zz"} { // not ours
		succeeds(t, os.WriteFile(file+name, []byte("x"), 0o600))
	}
	all := must[*Sealer](t)(Load("", file, false))
	message := []byte("message")
	if len(all.IDs()) != 1 || len(all.retired) != MaxKeys+2 ||
		!bytes.Equal(all.MAC(first.ID(), message), first.MAC(first.ID(), message)) {
		t.Errorf("there are %v, the first was %016x", all, first.ID())
	}
	w := example(1, 1)
	if all.CodeFits(ofHistory, w, first.Code(ofHistory, w)) ||
		!all.CodeFits(ofHistory, w, all.Code(ofHistory, w)) {
		t.Error("a code of a retired key is good, or one of the present key is not")
	}
	if _, err := all.Open(first.Seal([]byte("secret"), nil), first.ID(), nil); err != nil {
		t.Error(err)
	}
	retired := retiredName(file, first.ID())
	succeeds(t, os.Chmod(retired, 0o644))
	if _, err := Load("", file, false); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a retired key that others can read: %v", err)
	}
	succeeds(t, errors.Join(os.Remove(retired), os.Link(file, retired)))
	if _, err := Load("", file, false); err == nil ||
		!strings.Contains(err.Error(), "another key than its name says") {
		t.Errorf("another key in its place: %v", err)
	}
}

func TestAMACIsOfItsKeyAndMessage(t *testing.T) {
	a, b := sealer(t, serverKey), sealer(t, otherKey())
	mac := a.MAC(a.ID(), []byte("message"))
	if len(mac) != 32 || bytes.Equal(mac, a.MAC(a.ID(), []byte("massage"))) ||
		bytes.Equal(mac, b.MAC(b.ID(), []byte("message"))) || b.MAC(a.ID(), nil) != nil {
		t.Errorf("%x", mac)
	}
}
