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

func TestOfSeveralKeysTheFirstSealsAndAllOpen(t *testing.T) {
	old := sealer(t, serverKey)
	both, err := New(otherKey(), serverKey)
	if err != nil {
		t.Fatal(err)
	}
	if both.ID() != sealer(t, otherKey()).ID() || fmt.Sprint(both.IDs()) != fmt.Sprint([]uint64{both.ID(), old.ID()}) || !both.Opens(old.ID()) || both.Opens(1) {
		t.Errorf("%x", both.IDs())
	}
	if got, err := both.Open(old.Seal([]byte("secret"), []byte("a")), old.ID(), []byte("a")); err != nil || string(got) != "secret" {
		t.Errorf("%q, %v", got, err)
	}
	sealed := both.Seal([]byte("secret"), []byte("a"))
	if got, err := sealer(t, otherKey()).Open(sealed, both.ID(), []byte("a")); err != nil || string(got) != "secret" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := old.Open(sealed, both.ID(), []byte("a")); !errors.Is(err, ErrOtherKey) {
		t.Errorf("%v", err)
	}
	if _, err := both.Open(sealed, old.ID(), []byte("a")); err == nil || errors.Is(err, ErrOtherKey) {
		t.Errorf("under the id of the other key: %v", err)
	}
	// A code that was mailed before is good as long as its key is there; new ones are of the first key.
	if !both.CodeFits(1, 1, old.Code(1, 1)) || !both.CodeFits(1, 1, both.Code(1, 1)) || old.CodeFits(1, 1, both.Code(1, 1)) || both.CodeFits(1, 2, old.Code(1, 1)) || both.CodeFits(1, 1, "") {
		t.Error("codes")
	}
}

func TestAKeyIsThereOnceAndTheirNumberIsBounded(t *testing.T) {
	if _, err := New(); err == nil {
		t.Error("no key")
	}
	if _, err := New(serverKey, otherKey(), serverKey); err == nil || !strings.Contains(err.Error(), "is there twice") {
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

func TestAKeyIsRotatedInItsFileAndRetiredOnesAreKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "exchange.key")
	if _, err := Rotate(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	first, err := Load("", file, true)
	if err != nil {
		t.Fatal(err)
	}
	var last *Sealer
	for n := 2; n <= MaxKeys; n++ {
		rotated, err := Rotate(file)
		if err != nil {
			t.Fatal(err)
		}
		if last, err = Load("", file, false); err != nil || fmt.Sprint(last.IDs()) != fmt.Sprint(rotated.IDs()) || len(last.IDs()) != n || !last.Opens(first.ID()) {
			t.Fatalf("%v, %v", last, err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	}
	if _, err := Rotate(file); err == nil {
		t.Error("one too many")
	}
	if again, err := Load("", file, false); err != nil || len(again.IDs()) != MaxKeys {
		t.Errorf("a rotation that failed has changed the file: %v, %v", again, err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := Load(string(text), "", false); err != nil || fmt.Sprint(s.IDs()) != fmt.Sprint(last.IDs()) {
		t.Errorf("the same in the environment: %v, %v", s, err)
	}
	if s, err := Load(strings.ReplaceAll(string(text), "\n", "  "), "", false); err != nil || s.ID() != last.ID() {
		t.Errorf("on one line: %v, %v", s, err)
	}

	retired, err := Retire(file)
	if err != nil || len(retired) != MaxKeys-1 {
		t.Fatal(retired, err)
	}
	if s, err := Load("", file, false); err != nil || fmt.Sprint(s.IDs()) != fmt.Sprint([]uint64{last.ID()}) {
		t.Errorf("%v, %v", s, err)
	}
	for i, name := range retired {
		s, err := Load("", name, false) // which looks at its mode
		if err != nil || s.ID() != last.IDs()[i+1] || !strings.HasSuffix(name, fmt.Sprintf(".%016x", s.ID())) {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
	if retired, err := Retire(file); err != nil || len(retired) != 0 {
		t.Errorf("nothing to retire: %v, %v", retired, err)
	}
	// What a retirement that broke off has left is no obstacle.
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if retired, err := Retire(file); err != nil || len(retired) != MaxKeys-1 {
		t.Errorf("%v, %v", retired, err)
	}
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(entries) != MaxKeys {
		t.Errorf("%d files, %v", len(entries), err)
	}
}

func TestAFileThatIsNoListOfKeysIsRefusedAndStays(t *testing.T) {
	for _, text := range []string{"", "\n", "x\n", strings.Repeat("ab", 31), strings.Repeat("ab", 32) + "\n" + strings.Repeat("ab", 32), strings.Repeat("\n", maxFile) + strings.Repeat("ab", 32)} {
		file := filepath.Join(t.TempDir(), "exchange.key")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err1 := Load("", file, true)
		_, err2 := Rotate(file)
		if got, err := os.ReadFile(file); err1 == nil || err2 == nil || err != nil || string(got) != text {
			t.Errorf("%.80q: %v, %v, %v", text, err1, err2, err)
		}
	}
}
