package listen

import (
	"bytes"
	"encoding/pem"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"exchange/gateway/tlstest"
)

// aDay is the life of certificates in tests that are not about a certificate's end.
const aDay = 24 * time.Hour

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestUnusableCertificateFailsStart(t *testing.T) {
	a, folder := tlstest.New(t), t.TempDir()
	certFile, keyFile, _ := tlstest.Files(folder)
	if _, err := LoadCertificate(certFile, keyFile, quiet()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no files: %v", err)
	}
	a.Write(folder, 1, time.Now().Add(aDay))
	for mode, ok := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: true, 0o604: false,
		0o644: false, 0o666: false, 0o601: false} {
		worked(t, os.Chmod(keyFile, mode))
		if _, err := LoadCertificate(certFile, keyFile, quiet()); (err == nil) != ok {
			t.Errorf("a key of mode %04o: %v", mode, err)
		}
	}
}

// A renewal is the files of a served certificate, of number 3, while they are replaced.
type renewal struct {
	t                 *testing.T
	c                 *Certificate
	certFile, keyFile string
	logged            bytes.Buffer
	cert4, key4       []byte
}

func (r *renewal) replace(cert, key []byte, mode os.FileMode) {
	r.t.Helper()
	tlstest.Replace(r.t, r.certFile, cert)
	tlstest.Replace(r.t, r.keyFile, key)
	worked(r.t, os.Chmod(r.keyFile, mode))
}

// serves wants the listener to serve the certificate of a number.
func (r *renewal) serves(name string, number int64) {
	r.t.Helper()
	served, err := r.c.config().GetCertificate(nil)
	if err != nil || served.Leaf.SerialNumber.Int64() != number {
		r.t.Errorf("%s: certificate %d is served, want %d, %v", name, served.Leaf.SerialNumber,
			number, err)
	}
}

// logs wants the log to contain the present fault, once, and nothing of the key.
func (r *renewal) logs(name, word, previous string, before int) {
	r.t.Helper()
	if !r.c.Stale() || !strings.Contains(r.c.lastFault, word) {
		r.t.Fatalf("%s: stale %v, %q", name, r.c.Stale(), r.c.lastFault)
	}
	times := 1
	if r.c.lastFault == previous {
		times = 0
	}
	text := r.logged.String()
	if got := strings.Count(text, "the one before stays") - before; got != times {
		r.t.Errorf("%s: %d times in the log, want %d", name, got, times)
	}
	if block, _ := pem.Decode(r.key4); strings.Contains(text, string(r.key4[30:60])) ||
		strings.Contains(text, string(block.Bytes)) {
		r.t.Errorf("%s: the key is in the log", name)
	}
}

// Unusable files are logged and change nothing. Once usable, they are loaded.
func TestFilesThatCannotBeUsedChangeNothing(t *testing.T) {
	a, folder := tlstest.New(t), t.TempDir()
	a.Write(folder, 3, time.Now().Add(30*aDay))
	r := &renewal{t: t}
	r.certFile, r.keyFile, _ = tlstest.Files(folder)
	c := must(LoadCertificate(r.certFile, r.keyFile, slog.New(slog.NewTextHandler(&r.logged, nil))))
	r.c = c
	r.cert4, r.key4 = a.Pair(4, time.Now().Add(30*aDay))
	cert4, key4 := r.cert4, r.key4
	ended, endedKey := a.Pair(5, time.Now().Add(-time.Hour))
	early, earlyKey := a.PairOf(tlstest.NewKey(t), 6, time.Now().Add(time.Hour),
		time.Now().Add(30*aDay))
	previous := ""
	for _, x := range []struct {
		name      string
		cert, key []byte
		mode      os.FileMode
		word      string
	}{
		{"no certificate", []byte("nothing"), key4, 0o600, "certificate"},
		{"empty files", nil, nil, 0o600, "certificate"},
		{"cut off", cert4[:len(cert4)/2], key4, 0o600, "certificate"},
		{"a key of another", ended, key4, 0o600, "private key"},
		{"no key", cert4, cert4, 0o600, "key"},
		{"one that has ended", ended, endedKey, 0o600, "expired on"},
		{"one that has not begun", early, earlyKey, 0o600, "is not valid before"},
		{"a key that everyone reads", cert4, key4, 0o604, "mode 0604"},
		{"a file without end", append(bytes.Repeat([]byte("\n"), maxPEM), cert4...), key4, 0o600,
			"is longer than"},
	} {
		before := strings.Count(r.logged.String(), "the one before stays")
		r.replace(x.cert, x.key, x.mode)
		for range 3 { // the log names a fault once, however many times the files are checked
			c.Refresh(time.Now())
		}
		c.Reload()
		r.logs(x.name, x.word, previous, before)
		previous = c.lastFault
		r.serves(x.name, 3)
	}
	worked(t, os.Remove(r.certFile))
	c.Refresh(time.Now())
	r.serves("no file", 3)
	r.replace(cert4, key4, 0o600)
	c.Refresh(time.Now())
	r.serves("mended", 4)
	if c.Stale() {
		t.Error("it is still stale")
	}
}

// must returns v, or panics at an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// worked ends the test at an error.
func worked(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
