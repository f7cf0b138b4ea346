package backup

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"exchange/persistence"
)

// underTheName returns a backup with a proof that names the right key but was made with another.
func underTheName(b []byte) []byte {
	b = bytes.Clone(b)
	b[len(b)-33] = 1 // the last byte of the key's id, before the HMAC
	return b
}

func TestTamperedBackupIsDetected(t *testing.T) {
	h := newHistory(t, inPebble(t, persistence.Retention{}), 10)
	h.play(100)
	h.flush()
	good := write(t, h.store, h.s.AppendTo(nil))
	later := newHistory(t, inPebble(t, persistence.Retention{}), 11)
	later.play(100)
	later.flush()
	other := write(t, later.store, later.s.AppendTo(nil))
	forged := keyring{9}
	described := func(change func(i *Info)) func(raw []byte) []byte {
		return func(raw []byte) []byte {
			b := crafted(t, func(s *sink) {
				in, err := open(bytes.NewReader(good), nil)
				h.must(err)
				defer in.close()
				change(&in.info)
				info, err := json.Marshal(in.info)
				h.must(err)
				s.part(partInfo, info)
				for h.must(in.advance()); !in.ended; h.must(in.advance()) {
					s.part(in.kind, in.part)
				}
			})
			var plain []byte
			repacked(t, b, forged, func(raw []byte) []byte { plain = raw; return raw })
			return plain
		}
	}
	same := func(raw []byte) []byte { return raw }
	for what, x := range map[string]struct {
		b    []byte
		want error
	}{
		"a whole that another key proves": {repacked(t, good, forged, same),
			persistence.ErrNoKey},
		"and that names the right key": {underTheName(repacked(t, good, forged, same)),
			persistence.ErrForged},
		"another time": {underTheName(
			repacked(t, good, forged, described(func(i *Info) {
				i.Taken = i.Taken.AddDate(1, 0, 0)
			}))), persistence.ErrForged},
		"another engine": {underTheName(
			repacked(t, good, forged, described(func(i *Info) { i.Engine = "x" }))),
			persistence.ErrForged},
		"another history": {underTheName(
			repacked(t, good, forged, described(func(i *Info) { i.History = "00" }))),
			persistence.ErrForged},
		"another sequence": {underTheName(
			repacked(t, good, forged, described(func(i *Info) { i.Sequence++ }))),
			persistence.ErrForged},
		"the proof of another": {slices.Concat(good[:len(good)-100], other[len(other)-100:]),
			ErrDamaged},
		"a stream after another": {slices.Concat(other, good), ErrDamaged},
		"without its proof":      {good[:len(good)-103], ErrDamaged},
	} {
		if err := Authenticate(bytes.NewReader(x.b), testKey); !errors.Is(err, x.want) {
			t.Errorf("%s is authentic: %v, want %v", what, err, x.want)
		}
		if _, err := Verify(bytes.NewReader(x.b), testKey); err == nil {
			t.Errorf("%s is right", what)
		}
	}
	if err := Authenticate(bytes.NewReader(good), keyring{3, 1}); err != nil {
		t.Errorf("by a key that is not the first: %v", err)
	}
	if _, err := check(good); err != nil {
		t.Error(err)
	}
}
