package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"maps"
	"strings"
	"testing"
)

// packed returns any text as a file that names its hash.
func packed(text []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s%x\n", packedHead, sha256.Sum256(text))
	w := gzip.NewWriter(&b)
	w.Write(text) //nolint:errcheck // a buffer takes everything
	w.Close()     //nolint:errcheck // likewise
	return b.Bytes()
}

func TestAnotherProgramHasTheFilesThatWerePacked(t *testing.T) {
	own := Pack()
	if len(own) > PackedBytes/4 || len(textOf(contents())) > unpackedBytes/4 ||
		len(contents()) > unpackedFiles/4 {
		t.Errorf("%d bytes, %d unpacked, %d files are near the bounds", len(own),
			len(textOf(contents())), len(contents()))
	}
	same, err := Unpack(own)
	if err != nil || same.Hash() != Hash() {
		t.Fatalf("%v", err)
	}
	for address, f := range made().assets {
		content := contents()[strings.TrimPrefix(address, Folder+Hash()+"/")]
		if got := same.Asset(address); got == nil || !bytes.Equal(got.Plain, content) ||
			got.Tag != tag(content) || got.ContentType != f.ContentType {
			t.Errorf("%s is another file", address)
		}
	}
	all := maps.Clone(contents())
	all["js/api.js"] = append([]byte("let a;\n"), all["js/api.js"]...)
	other, err := Unpack(pack(all))
	if err != nil || other.Hash() == Hash() || other.Hash() != hashOf(all) {
		t.Fatalf("%v", err)
	}
	prefix := Folder + other.Hash()
	if f := other.Asset(prefix + "/js/api.js"); f == nil ||
		!bytes.HasPrefix(f.Plain, []byte("let a;\n")) {
		t.Error("the file that was changed is not there")
	}
	for _, address := range []string{prefix, prefix + "/", prefix + "/trade.html",
		prefix + "/vendor/lit-html/LICENSE", prefix + "x/js/api.js", "/trade",
		Folder + Hash() + "/js/api.js"} {
		if other.Asset(address) != nil {
			t.Errorf("%s is served", address)
		}
	}
	if (*Older)(nil).Asset(prefix+"/js/api.js") != nil {
		t.Error("without another program there is a file")
	}
}

func TestWhatIsNoPackedProgramIsRefused(t *testing.T) {
	whole := pack(map[string][]byte{"js/a.js": []byte("let a;"), "b.css": []byte("b {}")})
	if _, err := Unpack(whole); err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string][]byte{
		"nothing":           nil,
		"another format":    bytes.Replace(whole, []byte(" 1 "), []byte(" 2 "), 1),
		"too much":          append(whole, make([]byte, PackedBytes)...),
		"something behind":  append(bytes.Clone(whole), 'x'),
		"another hash":      bytes.Replace(whole, whole[17:19], []byte("zz"), 1),
		"a name upwards":    packed([]byte("../a.js 1\na")),
		"a name from above": packed([]byte("/a.js 1\na")),
		"an empty name":     packed([]byte(" 1\na")),
		"a line's end":      packed([]byte("a.js")),
		"no size":           packed([]byte("a.js x\na")),
		"a size beyond":     packed([]byte("a.js 2\na")),
		"a size below":      packed([]byte("a.js -1\na")),
		"a great size":      packed([]byte("a.js 18446744073709551615\na")),
		"a name twice":      packed([]byte("a.js 1\naa.js 1\nb")),
		"many files": packed([]byte(func() (all string) {
			for i := range unpackedFiles + 1 {
				all += fmt.Sprintf("%d.js 0\n", i)
			}
			return all
		}())),
		"a file that unpacks to more": packed([]byte("a.js 8388608\n" +
			strings.Repeat("a", unpackedBytes))),
	} {
		if o, err := Unpack(text); o != nil || err == nil {
			t.Errorf("%s is taken", what)
		}
	}
	for i := range whole {
		if o, err := Unpack(whole[:i]); o != nil || err == nil {
			t.Errorf("the first %d bytes are taken", i)
		}
	}
	// The gzip header has bytes that say nothing of the content.
	for i := range whole {
		damaged := bytes.Clone(whole)
		damaged[i] ^= 0x10
		if o, err := Unpack(damaged); err == nil && (o.Hash() != string(whole[17:17+hashDigits]) ||
			string(o.Asset(Folder+o.Hash()+"/js/a.js").Plain) != "let a;") {
			t.Errorf("a change of byte %d is taken", i)
		}
	}
}
