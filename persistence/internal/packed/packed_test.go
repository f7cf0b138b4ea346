package packed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"

	"exchange/persistence"
)

const magic = "a test 1\n"

// stream returns a whole one with some random bytes, and those.
func stream(t *testing.T, size int) (packed, content []byte) {
	t.Helper()
	content = make([]byte, size)
	rand.NewChaCha8([32]byte{1}).Read(content)
	var b bytes.Buffer
	w, err := NewWriter(&b, magic, testKey)
	if err == nil {
		_, err = w.Write(content)
	}
	succeeds(t, err, w.Close())
	return b.Bytes(), content
}

// read reads a stream of that many bytes to its end.
func read(r io.Reader, size int) ([]byte, error) {
	in, err := NewReader(r, magic, testKey)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	content := make([]byte, size)
	for i := range min(size, 3) {
		if content[i], err = in.ReadByte(); err != nil {
			return nil, err
		}
	}
	if _, err := io.ReadFull(in, content[min(size, 3):]); err != nil {
		return nil, err
	}
	return content, in.Done()
}

func TestWrittenStreamIsRead(t *testing.T) {
	for _, size := range []int{0, 1, 100, 1 << 20} {
		packed, content := stream(t, size)
		if got, err := read(bytes.NewReader(packed), size); err != nil ||
			!bytes.Equal(got, content) {
			t.Errorf("%d bytes: %v", size, err)
		}
		if _, err := read(bytes.NewReader(packed), size+1); err == nil {
			t.Errorf("%d bytes: one more is read", size)
		}
	}
}

func TestDamageIsNamed(t *testing.T) {
	const size = 1 << 20
	good, _ := stream(t, size)
	f := func(what string, bad []byte, want error) {
		t.Helper()
		if _, err := read(bytes.NewReader(bad), size); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	f("nothing", nil, errCut)
	f("half", good[:size/2], errCut)
	f("without its last byte", good[:len(good)-1], errCut)
	f("more", append(bytes.Clone(good), good...), errMore)
	changed := bytes.Clone(good)
	changed[size/2] ^= 1
	f("a changed byte", changed, errPacked)
	unpack, err1 := zstd.NewReader(nil)
	other, err2 := zstd.NewWriter(nil)
	succeeds(t, err1, err2)
	raw, err := unpack.DecodeAll(good, nil)
	succeeds(t, err)
	raw[size/2] ^= 1
	f("a changed byte, packed again", other.EncodeAll(raw, nil), errNoProof)
	own := keyring{2}
	f("a changed byte, packed and proven again without the key",
		proven(t, other.EncodeAll(raw, nil), own), persistence.ErrNoKey)
	forged := proven(t, other.EncodeAll(raw, nil), own)
	copy(forged[len(forged)-proofSize+idAt:], good[len(good)-proofSize+idAt:][:8])
	f("and under the name of the key", forged, persistence.ErrForged)
	for at, want := range map[int]error{0: errNoProof, frameHead: errNoProof, sumAt: errSum,
		idAt: persistence.ErrNoKey, macAt: persistence.ErrForged} {
		bad := bytes.Clone(good)
		bad[len(bad)-proofSize+at] ^= 1
		f(fmt.Sprintf("byte %d of the proof", at), bad, want)
		if err := Authenticate(bytes.NewReader(bad), testKey); !errors.Is(err, want) {
			t.Errorf("byte %d of the proof, not unpacked: %v, want %v", at, err, want)
		}
	}
	if _, err := read(bytes.NewReader(other.EncodeAll([]byte("another 1\n with more"), nil)),
		size); err == nil || !strings.Contains(err.Error(), `begin with "a test 1"`) {
		t.Errorf("another kind: %v", err)
	}
	f("text", []byte("some text that is not compressed"), errPacked)
}

// No byte may be changed, missing or added.
func TestEveryDamageIsDetected(t *testing.T) {
	const size = 1000
	good, _ := stream(t, size)
	if _, err := read(bytes.NewReader(append(bytes.Clone(good), 'x')), size); err == nil {
		t.Error("with a byte more it is read")
	}
	for i := range good {
		changed := bytes.Clone(good)
		changed[i] ^= 1 << (i % 8)
		for what, bad := range map[string][]byte{"changed": changed, "cut off": good[:i]} {
			if _, err := read(bytes.NewReader(bad), size); err == nil {
				t.Errorf("%s at byte %d it is read", what, i)
			}
		}
	}
}

// An error of the decoder about a much later block does not count as damage of the beginning.
func TestLaterDamageIsNotReportedEarly(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b, magic, testKey)
	succeeds(t, err)
	size := 0
	for i := range 2000 {
		n, err := fmt.Fprintf(w, "line %d of %d\n", i, i*i)
		succeeds(t, err)
		size += n
	}
	succeeds(t, w.Close())
	named := 0
	for at := b.Len() / 2; at < b.Len(); at += 11 {
		bad := bytes.Clone(b.Bytes())
		bad[at] ^= 0x55
		if _, err := read(bytes.NewReader(bad), size); errors.Is(err, errPacked) {
			named++
		} else if err != nil && !errors.Is(err, errSum) && !errors.Is(err, errCut) &&
			!errors.Is(err, errMore) && !errors.Is(err, errNoProof) &&
			!errors.Is(err, persistence.ErrNoKey) && !errors.Is(err, persistence.ErrForged) {
			t.Fatalf("byte %d: %v", at, err)
		}
	}
	if named == 0 {
		t.Error("no damage of the compressed data was named")
	}
}

func TestErrorsBelowAreNotDamage(t *testing.T) {
	good, _ := stream(t, 1000)
	broken := errors.New("the disk is gone")
	if _, err := read(io.MultiReader(bytes.NewReader(good[:500]), iotest.ErrReader(broken)),
		1000); !errors.Is(err, broken) {
		t.Errorf("a reader that breaks: %v", err)
	}
	w, err := NewWriter(&full{room: 100}, magic, testKey)
	succeeds(t, err)
	random := make([]byte, 1<<20)
	rand.NewChaCha8([32]byte{2}).Read(random)
	_, err = w.Write(random)
	if closed := w.Close(); !errors.Is(closed, errFull) {
		t.Errorf("a writer that breaks: %v, and closed %v", err, closed)
	}
	if _, err := w.Write(random); !errors.Is(err, errFull) {
		t.Errorf("after that: %v", err)
	}
}

var errFull = errors.New("the disk is full")

type full struct{ room int }

func (f *full) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return 0, errFull
	}
	return len(b), nil
}

// A stream that unpacks to far more than its own size is refused. A stream that merely packs well
// is not.
func TestUnpackedSizeIsBounded(t *testing.T) {
	stream := func(size int, line func(i int) string) (b []byte, n int) {
		t.Helper()
		var packed bytes.Buffer
		w, err := NewWriter(&packed, magic, testKey)
		for i := 0; n < size && err == nil; i++ {
			var more int
			more, err = io.WriteString(w, line(i))
			n += more
		}
		succeeds(t, err, w.Close())
		return packed.Bytes(), n
	}
	b, n := stream(4*slack, func(i int) string {
		return fmt.Sprintf("account-%08d has 1000000 of everything\n", i)
	})
	if _, err := read(bytes.NewReader(b), n); err != nil {
		t.Errorf("%d bytes that unpack to %d: %v", len(b), n, err)
	}
	zeros := strings.Repeat("\x00", 1<<20)
	b, n = stream(20*slack, func(int) string { return zeros })
	if _, err := read(bytes.NewReader(b), n); err != nil || len(b) > n/8 {
		t.Errorf("%d bytes that were written of zeros unpack to %d: %v", len(b), n, err)
	}
	n = 8 * slack
	w, err := zstd.NewWriter(nil)
	succeeds(t, err)
	b = w.EncodeAll(append([]byte(magic), make([]byte, n)...), nil)
	in, err := NewReader(bytes.NewReader(b), magic, testKey)
	succeeds(t, err)
	defer in.Close()
	if got, err := io.Copy(io.Discard, in); !errors.Is(err, errBomb) ||
		got > slack+ratio*int64(len(b)) {
		t.Errorf("%d bytes of %d were read of %d: %v", got, n, len(b), err)
	}
	one, err := NewReader(bytes.NewReader(b), magic, testKey)
	succeeds(t, err)
	defer one.Close()
	for i := 0; err == nil; i++ {
		if _, err = one.ReadByte(); i > n {
			t.Fatal("byte by byte all of it can be read")
		}
	}
	if !errors.Is(err, errBomb) {
		t.Errorf("byte by byte: %v", err)
	}
}

// succeeds wants no errors.
func succeeds(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
