package archive

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"exchange/persistence"
)

// tampered returns a world with five parts, and the content of their files.
func tampered(t *testing.T, journal *list,
	text string) (w *world, parts []string, files map[string][]byte) {
	t.Helper()
	w = newWorld(t, journal)
	w.archive.part = 1
	for range 5 {
		w.append(3, text)
	}
	w.save(w.end())
	parts, files = w.names(), map[string][]byte{}
	for _, name := range parts {
		b, err := os.ReadFile(filepath.Join(w.archive.Dir(), name))
		w.must(err)
		files[name] = b
	}
	return w, parts, files
}

// put replaces files in the folder; nil removes one.
func (w *world) put(files map[string][]byte) {
	w.Helper()
	for name, b := range files {
		path := filepath.Join(w.archive.Dir(), name)
		if b == nil {
			w.must(os.Remove(path))
		} else {
			w.must(os.WriteFile(path, b, 0o600))
		}
	}
}

// repacked returns a part with other content, compressed and proven under a key.
func repacked(t *testing.T, part []byte, by keyring, change func(raw []byte) []byte) []byte {
	t.Helper()
	in, err := zstd.NewReader(nil)
	succeeds(t, err)
	defer in.Close()
	out, err := zstd.NewWriter(nil)
	succeeds(t, err)
	raw, err := in.DecodeAll(part, nil)
	succeeds(t, err)
	return proven(t, out.EncodeAll(change(raw), nil), by)
}

// underTheName returns a part with a proof that names the right key but was made with another.
func underTheName(part []byte) []byte {
	b := bytes.Clone(part)
	b[len(b)-33] = 1 // the last byte of the key's id, before the HMAC
	return b
}

func TestTamperedArchiveIsDetected(t *testing.T) {
	w, parts, files := tampered(t, &list{}, "a batch of ours")
	// of the same key, engine, history and lengths
	other, _, theirs := tampered(t, &list{}, "a batch of them")
	if !slices.Equal(parts, other.names()) {
		t.Fatal("the two archives have other parts")
	}
	changed := func(raw []byte) []byte {
		return bytes.Replace(raw, []byte("ours"), []byte("mine"), 1)
	}
	headed := func(change func(h *head)) func(raw []byte) []byte {
		return func(raw []byte) []byte {
			at := len(magic) + 1
			n := int(raw[at-1]) & 0x7f
			if raw[at-1] >= 0x80 {
				n += int(raw[at]) << 7
				at++
			}
			var h head
			w.must(json.Unmarshal(raw[at:at+n], &h))
			change(&h)
			b, err := json.Marshal(h)
			w.must(err)
			if len(b) != n {
				t.Fatal("the head has another length")
			}
			return slices.Concat(raw[:at], b, raw[at+n:])
		}
	}
	forged := keyring{9}
	for what, x := range map[string]struct {
		put  map[string][]byte
		want error
		word string
	}{
		"the same part of another archive": {map[string][]byte{parts[2]: theirs[parts[2]]},
			persistence.ErrCorrupt, "was not written after"},
		"the end of another archive": {
			map[string][]byte{parts[3]: theirs[parts[3]], parts[4]: theirs[parts[4]]},
			persistence.ErrCorrupt, "was not written after"},
		"the beginning of another archive": {map[string][]byte{parts[0]: theirs[parts[0]]},
			persistence.ErrCorrupt, "was not written after"},
		"two parts swapped": {map[string][]byte{parts[1]: files[parts[2]],
			parts[2]: files[parts[1]]}, persistence.ErrCorrupt, "it begins at record"},
		"a part dropped": {map[string][]byte{parts[2]: nil}, persistence.ErrCorrupt,
			"the next begins at 10"},
		"a part dropped, and the one before renamed": {
			map[string][]byte{parts[2]: nil, parts[1]: nil, partName(4, 9): files[parts[1]]},
			persistence.ErrCorrupt, "it ends at record 6"},
		"a part changed without the key": {
			map[string][]byte{parts[2]: repacked(t, files[parts[2]], forged, changed)},
			persistence.ErrNoKey, "0000000000000009"},
		"a part changed under the key's name": {
			map[string][]byte{parts[2]: underTheName(
				repacked(t, files[parts[2]], forged, changed))},
			persistence.ErrCorrupt, persistence.ErrForged.Error()},
		"the last part changed under the key's name": {
			map[string][]byte{parts[4]: underTheName(
				repacked(t, files[parts[4]], forged, changed))},
			persistence.ErrCorrupt, persistence.ErrForged.Error()},
		"another history under the key's name": {
			map[string][]byte{parts[4]: underTheName(repacked(t, files[parts[4]], forged,
				headed(func(h *head) { h.History = strings.Repeat("ab", 16) })))},
			persistence.ErrCorrupt, persistence.ErrForged.Error()},
		"another engine under the key's name": {
			map[string][]byte{parts[4]: underTheName(repacked(t, files[parts[4]], forged,
				headed(func(h *head) { h.Engine = "niam" })))}, persistence.ErrCorrupt,
			persistence.ErrForged.Error()},
		"a part cut off": {map[string][]byte{parts[4]: files[parts[4]][:100]},
			persistence.ErrCorrupt, parts[4]},
	} {
		w.put(x.put)
		_, err := w.read(0)
		w.fails(err, x.want, x.word)
		for name := range x.put {
			if files[name] == nil {
				w.put(map[string][]byte{name: nil})
			}
		}
		w.put(files)
		if _, err := w.read(0); err != nil {
			t.Fatalf("%s: afterwards %v", what, err)
		}
	}
	// No byte of a part is passed on before the whole part is authentic.
	w.put(map[string][]byte{parts[2]: underTheName(repacked(t, files[parts[2]], forged, changed))})
	got, err := w.read(0)
	if w.fails(err, persistence.ErrCorrupt); !slices.Equal(got, w.all[:2]) {
		t.Errorf("handed out was %v", got)
	}
	if _, err := w.read(15); err != nil {
		t.Errorf("the part after all others is not checked: %v", err)
	}
}

// Without a key only the order of the parts is proven.
func TestArchiveIsReadWithoutAuthentication(t *testing.T) {
	w, parts, files := tampered(t, &list{}, "a batch of ours")
	w.put(map[string][]byte{parts[4]: repacked(t, files[parts[4]],
		keyring{9}, func(raw []byte) []byte {
			return bytes.Replace(raw, []byte("ours"), []byte("mine"), 1)
		})})
	var last string
	w.must(w.archive.Read(w.ctx, 0,
		func(_, _ uint64, data []byte) error { last = string(data); return nil }))
	if last != "a batch of mine" {
		t.Errorf("read was %q", last)
	}
	w.fails(w.archive.Provable(testKey), persistence.ErrNoKey, parts[4], "0000000000000009")
	w.must(w.archive.Provable(keyring{1, 9}))
}

// The server's key is changed, and the old one retired: new parts follow, and old keys prove the
// old ones.
func TestArchiveContinuesUnderAnotherKeyAndHistory(t *testing.T) {
	w, parts, _ := tampered(t, &list{}, "a batch of ours")
	w.append(3, "after the change")
	another := persistence.HistoryID{7}
	_, err := w.archive.Save(w.ctx, w.journal, keyring{2}, another, w.end())
	w.must(err)
	if names := w.names(); len(names) != len(parts)+1 {
		t.Fatalf("there are %v", names)
	}
	_, err = w.read(0)
	w.fails(err, persistence.ErrNoKey, "0000000000000002")
	n := 0
	w.must(w.archive.Under(keyring{2, 1}).Read(w.ctx, 0,
		func(uint64, uint64, []byte) error { n++; return nil }))
	if n != 6 {
		t.Errorf("there are %d batches", n)
	}
	ids, err := w.archive.Under(keyring{2, 1}).Histories()
	w.must(err)
	if len(ids) != len(parts)+1 ||
		!slices.Equal(ids[len(ids)-2:], []persistence.HistoryID{testHistory, another}) {
		t.Errorf("the histories are %x", ids)
	}
	// A part of another engine does not follow.
	w.archive.part = 1 << 20
	_, err = w.archive.Save(w.ctx, &ofEngine{w.journal, "another"}, keyring{2}, another, w.end())
	w.fails(err, ErrOther, `of the engine "main"`)
}

// An ofEngine is a journal of another engine.
type ofEngine struct {
	persistence.Store
	engine string
}

func (o *ofEngine) Engine() string { return o.engine }
